// The files chosen for an upload: those of a second choice, or a second drop, come to those of the first. In a form with
// [data-chosen] each has a line with its size and a button that takes it out again.
export function keepChosen(form, input) {
  const list = form.querySelector("[data-chosen]");
  const template = form.querySelector("template[data-chosen-line]");
  const held = new Map();
  const show = () => {
    const files = new DataTransfer();
    held.forEach((file) => files.items.add(file));
    input.files = files.files;
    list.replaceChildren(...[...held].map(([key, file]) => lineFor(key, file)));
  };
  const lineFor = (key, file) => {
    const line = template.content.cloneNode(true).firstElementChild;
    line.querySelector("bdi").textContent = file.name;
    line.querySelector(".num").textContent = size(file.size);
    const remove = line.querySelector("button");
    remove.setAttribute("aria-label", `${remove.getAttribute("aria-label")} ${file.name}`);
    remove.addEventListener("click", () => {
      held.delete(key);
      show();
      (list.querySelector("button") ?? input).focus();
    });
    return line;
  };
  input.addEventListener("change", () => {
    if (!input.multiple) held.clear();
    for (const file of input.files) held.set(`${file.name} ${file.size} ${file.lastModified}`, file);
    show();
  });
}

// As people read it: 7.8 kB.
export function size(bytes) {
  const [unit, factor] = [["gigabyte", 2 ** 30], ["megabyte", 2 ** 20], ["kilobyte", 2 ** 10]].find(([, each]) => bytes >= each) ?? ["byte", 1];
  const told = { style: "unit", unit, maximumFractionDigits: 1 };
  return new Intl.NumberFormat(document.documentElement.lang, told).format(bytes / factor);
}
