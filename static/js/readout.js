// [data-sentence] cells say their title in the nearest [data-readout] line, when pointed at or focused.
function tell(event) {
  const cell = event.target.closest?.("[data-sentence]");
  const line = cell?.closest(".panel").querySelector("[data-readout]");
  if (line) line.textContent = cell.title;
}

document.addEventListener("mouseover", tell);
document.addEventListener("focusin", tell);
