// Tables of cells: a search field that hides rows, and heads that sort them. Works for parts that arrive later.

function numberIn(cell) {
  const text = cell?.querySelector(".num")?.textContent.replace("−", "-").replace(/[^\d.+-]/g, "") ?? "";
  return text === "" ? NaN : Number(text);
}

// Numbers by size, the largest first; text in its order; cells without a number last.
function compared(first, second, column) {
  const [a, b] = [numberIn(first.cells[column]), numberIn(second.cells[column])];
  if (!Number.isNaN(a) || !Number.isNaN(b)) return Number.isNaN(a) ? 1 : Number.isNaN(b) ? -1 : b - a;
  return first.cells[column].textContent.trim().localeCompare(second.cells[column].textContent.trim());
}

function sortBy(head) {
  const body = head.closest("table").tBodies[0];
  const sign = head.getAttribute("aria-sort") === "descending" ? -1 : 1;
  const rows = [...body.rows].sort((first, second) => sign * compared(first, second, head.cellIndex));
  body.append(...rows);
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", sign === 1 ? "descending" : "ascending");
}

// The heads become buttons here: without script they are plain text.
function prepare(root) {
  for (const head of root.querySelectorAll("th[data-sorts]")) {
    if (head.querySelector("button")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
  }
}

function filterRows(field) {
  const wanted = field.value.trim().toLocaleLowerCase();
  let matches = 0;
  for (const row of document.getElementById(field.dataset.filters).tBodies[0].rows) {
    row.hidden = !row.cells[0].textContent.toLocaleLowerCase().includes(wanted);
    if (!row.hidden) matches += 1;
  }
  const status = field.parentElement.querySelector("[data-none]");
  if (status) status.textContent = matches ? "" : status.dataset.none;
}

document.addEventListener("click", (event) => {
  const head = event.target.closest("th[data-sorts] > button")?.parentElement;
  if (head) sortBy(head);
});
document.addEventListener("input", (event) => {
  if (event.target.matches("[data-filters]")) filterRows(event.target);
});
document.addEventListener("htmx:afterSettle", () => prepare(document));
prepare(document);
