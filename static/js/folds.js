// Long sections, details[data-fold-narrow], begin closed on a narrow screen and open on a wide one. A link to what is
// in a closed one opens it (anchors.js).
const narrow = matchMedia("(max-width: 640px)");
const known = new WeakSet();
const opened = new Set(); // identifiers of the sections that the reader has opened: they may be fetched again

const nameOf = (section) => section.closest("section[id]")?.id ?? "";

function fold(sections) {
  for (const section of sections) {
    const name = nameOf(section);
    const isWanted = name !== "" && (opened.has(name) || location.hash === `#${name}`);
    section.open = !narrow.matches || isWanted;
    known.add(section);
  }
}

const everySection = () => [...document.querySelectorAll("details[data-fold-narrow]")];

fold(everySection());
narrow.addEventListener("change", () => fold(everySection()));
document.addEventListener("htmx:afterSettle", () => fold(everySection().filter((section) => !known.has(section))));

document.addEventListener("click", (event) => {
  const section = event.target.closest?.("details[data-fold-narrow] > summary")?.parentElement;
  if (section) opened[section.open ? "delete" : "add"](nameOf(section)); // before it opens or closes
});
