// Tables of cells: a search field that hides rows, and heads that sort them. Works for parts that arrive later.

function numberIn(cell) {
  if (cell?.dataset.value !== undefined) return Number(cell.dataset.value);
  const found = cell?.querySelector(".estimate b, .num");
  const text = found?.textContent.replace("−", "-").replace(/[^\d.+-]/g, "") ?? "";
  return text === "" ? NaN : Number(text);
}

const isHead = (row) => row.classList.contains("group-row");

// Numbers by size, the largest first; text in its order; cells without a number last.
function compared(first, second, column) {
  const [a, b] = [numberIn(first.cells[column]), numberIn(second.cells[column])];
  if (!Number.isNaN(a) || !Number.isNaN(b)) return Number.isNaN(a) ? 1 : Number.isNaN(b) ? -1 : b - a;
  return first.cells[column].textContent.trim().localeCompare(second.cells[column].textContent.trim());
}

// Groups of rows keep their places: each is sorted by itself.
function sortBy(head) {
  const sign = head.getAttribute("aria-sort") === "descending" ? -1 : 1;
  for (const body of head.closest("table").tBodies) {
    const rows = [...body.rows].filter((row) => !isHead(row));
    body.append(...rows.sort((first, second) => sign * compared(first, second, head.cellIndex)));
  }
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", sign === 1 ? "descending" : "ascending");
}

// The heads become buttons here: without script they are plain text.
function prepare(root) {
  for (const head of root.querySelectorAll("th[data-sorts], th[data-folds]")) {
    if (head.querySelector("button")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    if (head.matches("[data-folds]")) button.setAttribute("aria-expanded", "true");
  }
}

function fold(button) {
  const isOpen = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!isOpen));
  button.closest("tbody").classList.toggle("is-folded", isOpen);
}

// A cell of two raters leads to the items of both; the form below the table does the same without script.
function showPair(cell) {
  const table = cell.closest("table");
  const form = document.querySelector(`form[data-pairs="${table.id}"]`);
  if (!form || cell.textContent.trim() === "") return;
  const [first, second] = form.querySelectorAll("select");
  first.value = cell.parentElement.cells[0].textContent;
  second.value = table.tHead.rows[0].cells[cell.cellIndex].textContent;
  form.requestSubmit();
}

// What matches is shown in folded groups, too; a group without a match has no head.
function filterRows(field) {
  const wanted = field.value.trim().toLocaleLowerCase();
  let matches = 0;
  for (const body of document.getElementById(field.dataset.filters).tBodies) {
    const rows = [...body.rows].filter((row) => !isHead(row));
    for (const row of rows) row.hidden = !row.cells[0].textContent.toLocaleLowerCase().includes(wanted);
    const shown = rows.filter((row) => !row.hidden).length;
    for (const row of body.rows) if (isHead(row)) row.hidden = shown === 0;
    body.classList.toggle("is-searched", wanted !== "");
    matches += shown;
  }
  const status = field.parentElement.querySelector("[data-none]");
  if (status) status.textContent = matches ? "" : status.dataset.none;
}

document.addEventListener("click", (event) => {
  const head = event.target.closest("th[data-sorts] > button")?.parentElement;
  if (head) sortBy(head);
  const folding = event.target.closest("th[data-folds] > button");
  if (folding) fold(folding);
  const pair = event.target.closest(".agreement-small td");
  if (pair) showPair(pair);
});
document.addEventListener("input", (event) => {
  if (event.target.matches("[data-filters]")) filterRows(event.target);
});
document.addEventListener("htmx:afterSettle", () => prepare(document));
prepare(document);
