// [data-copies="id"] copies that element's text and says so.
export function copyTexts(root) {
  root.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copies]");
    if (!button) return;
    const source = root.getElementById(button.dataset.copies);
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    button.textContent = button.dataset.copied;
  });
}

// form[data-submits-on-change] submits when one of its controls changes. Arrow keys run through a list's choices, each a
// change: those wait until the list is left, or for Enter. The next page shows the control that has the focus where it was.
export function submitOnChange(root) {
  const formOf = (event) => event.target.closest("form[data-submits-on-change]");
  let isPassing = false;
  let waiting = null;
  const opened = new WeakSet();
  const settle = () => {
    const form = waiting;
    waiting = null;
    if (form) setTimeout(() => form.requestSubmit()); // once the focus is where it goes
  };
  root.addEventListener("keydown", (event) => {
    const opens = event.key === " " || event.altKey; // an open list changes once, when it closes
    if (opens) opened.add(event.target);
    isPassing = !opened.has(event.target) && (event.key.startsWith("Arrow") || event.key.length === 1);
    if (event.key === "Enter") settle();
  });
  root.addEventListener("pointerdown", () => (isPassing = false));
  root.addEventListener("change", (event) => {
    opened.delete(event.target);
    if (isPassing && event.target.matches("select")) waiting = formOf(event);
    else formOf(event)?.requestSubmit();
  });
  root.addEventListener("focusout", settle);
  root.addEventListener("submit", (event) => formOf(event) && keepPlace(document.activeElement));
  findPlace();
}

const PLACE = "panelbench.place";

function keepPlace(control) {
  if (!control.id) return;
  const place = { id: control.id, page: location.pathname, top: control.getBoundingClientRect().top };
  try {
    sessionStorage.setItem(PLACE, JSON.stringify(place));
  } catch {
    // without storage the next page begins at its top
  }
}

function findPlace() {
  try {
    const { id, page, top } = JSON.parse(sessionStorage.getItem(PLACE) ?? "{}");
    sessionStorage.removeItem(PLACE);
    const control = page === location.pathname && document.getElementById(id);
    if (!control) return;
    control.focus({ preventScroll: true });
    scrollBy({ top: control.getBoundingClientRect().top - top, behavior: "instant" });
  } catch {
    // see above
  }
}
