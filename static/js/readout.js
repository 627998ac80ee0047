// [data-sentence] cells say what they hold in the nearest [data-readout] line, when pointed at or focused.
function tell(event) {
  const cell = event.target.closest?.("[data-sentence]");
  const line = cell?.closest(".panel").querySelector("[data-readout]");
  if (line) line.textContent = cell.dataset.sentence;
}

document.addEventListener("mouseover", tell);
document.addEventListener("focusin", tell);
