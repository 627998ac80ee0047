// .upload: names the chosen files in its <output>, and takes files dropped on it. In a form[data-uploads-to] they go to
// that address one after the other, in chunks, with a line for each; then the form is sent with their keys instead.
import { keepChosen, size } from "./chosen.js";
import { Upload, Refusal } from "./resumable.js";

export function showUploads(root) {
  for (const zone of root.querySelectorAll(".upload")) {
    takeDrops(zone);
    const form = zone.closest("form[data-uploads-to]");
    if (!form) continue;
    const input = zone.querySelector("input[type=file]");
    keepChosen(form, input);
    sendInChunks(form, input);
  }
}

function takeDrops(zone) {
  const input = zone.querySelector("input[type=file]");
  const chosen = zone.querySelector("output");
  input.addEventListener("change", () => {
    if (chosen) chosen.textContent = [...input.files].map((file) => file.name).join(", ");
  });
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.dataset.over = "";
  });
  zone.addEventListener("dragleave", () => delete zone.dataset.over);
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    delete zone.dataset.over;
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });
}

function sendInChunks(form, input) {
  const list = form.querySelector("[data-uploads]");
  const cancel = form.querySelector("[data-cancels-uploads]");
  const refusal = form.querySelector("[data-upload-refusal]");
  let under = [];
  const busy = (isBusy) => {
    cancel.hidden = !isBusy;
    form.querySelector("[data-chosen]").hidden = isBusy;
    input.disabled = isBusy;
    form.querySelector("[type=submit]").disabled = isBusy;
  };
  form.addEventListener("submit", async (event) => {
    if (!input.files.length) return; // the server says what is missing
    event.preventDefault();
    refusal.hidden = true;
    list.replaceChildren();
    const csrf = form.elements.csrfmiddlewaretoken.value;
    under = [...input.files].map((file) => {
      const line = lineFor(form, list, file);
      return { line, upload: new Upload(file, form.dataset.uploadsTo, csrf, line) };
    });
    busy(true);
    try {
      for (const { upload, line } of under) {
        form.append(field("upload", await upload.send()));
        line.told(upload.file.size);
      }
      under.forEach(({ upload }) => upload.forget());
      cancel.hidden = true;
      form.submit();
    } catch (error) {
      form.querySelectorAll("input[name=upload]").forEach((each) => each.remove());
      busy(false);
      if (error instanceof Refusal) say(refusal, error.message);
      else if (error.name !== "AbortError") throw error;
    }
  });
  cancel.addEventListener("click", async () => {
    await Promise.all(under.map(({ upload }) => upload.cancel()));
    list.replaceChildren();
    busy(false);
    input.focus();
  });
  window.addEventListener("pageshow", () => busy(false)); // back from the next page
}

// One file's line: its name, how much has arrived, and how long the rest will take.
function lineFor(form, list, file) {
  const line = form.querySelector("template[data-upload-line]").content.cloneNode(true).firstElementChild;
  const [bar, done, rest] = ["progress", "[data-done]", "[data-rest]"].map((part) => line.querySelector(part));
  const { words } = form.querySelector("template[data-upload-line]").dataset;
  const [lost, seconds, minutes] = words.split("|");
  line.querySelector("[data-name]").textContent = file.name;
  bar.setAttribute("aria-label", file.name);
  list.append(line);
  let first;
  const told = (received) => {
    const share = file.size ? received / file.size : 1;
    first ??= { received, at: performance.now() };
    bar.value = share;
    done.textContent = `${Math.floor(100 * share)} % · ${size(received)} / ${size(file.size)}`;
    const speed = (received - first.received) / (performance.now() - first.at);
    rest.textContent = speed > 0 && share < 1 ? left((file.size - received) / speed / 1000) : "";
  };
  const left = (time) => (time < 90 ? seconds.replace("0", Math.ceil(time)) : minutes.replace("0", Math.ceil(time / 60)));
  told(0);
  first = undefined;
  return { told, troubled: (isTroubled) => isTroubled && (rest.textContent = lost) };
}

function field(name, value) {
  return Object.assign(document.createElement("input"), { type: "hidden", name, value });
}

function say(element, text) {
  element.querySelector("[data-text]").textContent = text;
  element.hidden = false;
}
