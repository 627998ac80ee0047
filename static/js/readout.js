// [data-told] cells say what they hold in the nearest [data-readout] line, when pointed at or focused.
function tell(event) {
  const cell = event.target.closest?.("[data-told]");
  const line = cell?.closest(".panel").querySelector("[data-readout]");
  if (line) line.textContent = cell.dataset.told;
}

document.addEventListener("mouseover", tell);
document.addEventListener("focusin", tell);
