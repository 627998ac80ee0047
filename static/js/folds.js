// Long sections, details[data-fold-narrow], begin closed on a narrow screen and open on a wide one.
const narrow = matchMedia("(max-width: 640px)");

function fold() {
  for (const section of document.querySelectorAll("details[data-fold-narrow]")) section.open = !narrow.matches;
}

fold();
narrow.addEventListener("change", fold);

// A link to a table inside a closed section opens it.
function openTarget() {
  document.querySelector(":target")?.closest("details[data-fold-narrow]")?.setAttribute("open", "");
}

openTarget();
addEventListener("hashchange", openTarget);
