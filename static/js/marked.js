// Evidence of ratings on the pages of leads: highlighted in the text beside them; a press shows where it is.
import { Part } from "./desk/evidence.js";

const ranges = [];
for (const scope of document.querySelectorAll(document.querySelector(".discussed") ? ".discussed" : "main")) {
  const parts = [...scope.querySelectorAll("[data-part]")].map((element) => new Part(element));
  for (const marked of scope.querySelectorAll("[data-marked]")) {
    const span = JSON.parse(marked.dataset.marked);
    const part = parts.find((each) => each.holds(span));
    if (!part) continue;
    const range = part.range(part.places(span));
    ranges.push(range);
    marked.addEventListener("click", () => reveal(range));
  }
}
if (globalThis.CSS?.highlights) CSS.highlights.set("evidence", new Highlight(...ranges));

function reveal(range) {
  const element = range.startContainer.parentElement;
  for (let fold = element.closest("details:not([open])"); fold; fold = fold.closest("details:not([open])")) fold.open = true;
  element.scrollIntoView({ block: "center" });
  const selection = document.getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}
