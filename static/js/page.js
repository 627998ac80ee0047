// What every page can do. Each part finds its own markup and stays away when there is none.

// [data-theme-switch]: the other theme, remembered; back on the system's own, the memory is dropped.
const KEY = "panelbench.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function otherTheme(root = document.documentElement) {
  const current = root.dataset.theme || (dark.matches ? "dark" : "light");
  return current === "dark" ? "light" : "dark";
}

function switchTheme(root) {
  root.addEventListener("click", ({ target }) => target.closest("[data-theme-switch]") && remember(otherTheme()));
}

function remember(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    if (theme === (dark.matches ? "dark" : "light")) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // Private windows may refuse; the choice then lasts for this page.
  }
}

// [data-opens="id"] shows that dialog; [data-closes] inside one closes it, and so does a press on the backdrop, unless it
// is the second press of the double click that opened the dialog.
function openDialogs(root) {
  root.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-opens]");
    if (opener) {
      event.preventDefault();
      root.getElementById(opener.dataset.opens).showModal();
      return;
    }
    const dialog = event.target.closest("dialog");
    if (dialog && ((event.target === dialog && event.detail < 2) || event.target.closest("[data-closes]"))) dialog.close();
  });
}

// <form data-confirm="Question?" data-confirm-text="What follows." data-confirm-yes="Delete" data-confirm-danger>
// Asks before it posts. Without script the form posts at once, so a verb behind it must be safe to undo or ask itself.
function confirmSubmits(root) {
  const dialog = root.querySelector("[data-confirm-dialog]");
  if (!dialog) return;
  root.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.dataset.confirm || form.dataset.confirmed) return;
    event.preventDefault();
    const { submitter } = event;
    if (!(await ask(dialog, form.dataset))) return;
    form.dataset.confirmed = "yes";
    form.requestSubmit(submitter);
  });
}

export function ask(dialog, { confirm, confirmText = "", confirmYes, confirmDanger }) {
  const yes = dialog.querySelector("[data-confirm-yes]");
  dialog.querySelector("h2").textContent = confirm;
  dialog.querySelector("[data-confirm-text]").textContent = confirmText;
  if (confirmYes) yes.textContent = confirmYes;
  yes.classList.toggle("btn-danger", confirmDanger !== undefined);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((answer) => {
    dialog.addEventListener("close", () => answer(dialog.returnValue === "yes"), { once: true });
  });
}

// [data-copies="id"] copies that element's text and says so.
function copyTexts(root) {
  root.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copies]");
    if (!button) return;
    const source = root.getElementById(button.dataset.copies);
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      button.textContent = button.dataset.copied;
    } catch {
      getSelection().selectAllChildren(source); // no clipboard without https: the text is marked, ready for Ctrl+C
    }
  });
}

// form[data-submits-on-change] submits when one of its controls changes. Arrow keys run through a list's choices, each a
// change: those wait until the list is left, or for Enter. A text that was changed waits until the focus is elsewhere, and
// controls within [data-together] until it leaves them all. The next page shows the control that has the focus where it
// was; if it is not there any more, the one that changed.
function submitOnChange(root) {
  const formOf = (event) => event.target.closest("form[data-submits-on-change]");
  let isPassing = false;
  let waiting = null;
  let changed = null;
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
    changed = event.target;
    const isLeft = event.target.matches("input:is([type='text'], :not([type]))"); // changes when the focus goes elsewhere
    const isPassed = isLeft || (isPassing && event.target.matches("select"));
    if (isPassed || event.target.closest("[data-together]")) waiting = formOf(event);
    else formOf(event)?.requestSubmit();
  });
  root.addEventListener("focusout", (event) => {
    if (!event.target.closest("[data-together]")?.contains(event.relatedTarget)) settle();
  });
  root.addEventListener("submit", (event) => formOf(event) && keepPlace([document.activeElement, changed]));
  findPlace();
}

const PLACE = "panelbench.place";

function keepPlace(controls) {
  const places = controls.filter((control) => control?.id);
  const tops = places.map((control) => [control.id, control.getBoundingClientRect().top]);
  const place = { page: location.pathname, tops };
  try {
    sessionStorage.setItem(PLACE, JSON.stringify(place));
  } catch {
    // without storage the next page begins at its top
  }
}

function findPlace() {
  try {
    const { page, tops } = JSON.parse(sessionStorage.getItem(PLACE) ?? "{}");
    sessionStorage.removeItem(PLACE);
    const [id, top] = page === location.pathname ? tops.find(([name]) => document.getElementById(name)) : [];
    const control = document.getElementById(id);
    control.focus({ preventScroll: true });
    scrollBy({ top: control.getBoundingClientRect().top - top, behavior: "instant" });
  } catch {
    // see above
  }
}

// form[data-submits-itself] is sent as soon as somebody looks at the page: not while the browser only prepares it.
function submitItself(root) {
  const form = root.querySelector("form[data-submits-itself]");
  if (!form) return;
  if (root.prerendering) root.addEventListener("prerenderingchange", () => form.requestSubmit(), { once: true });
  else form.requestSubmit();
}

// form[data-warns-unsaved] asks before the page is left with changes that were not sent.
function warnUnsaved(root) {
  let isChanged = false;
  const isKept = (event) => event.target.closest("form[data-warns-unsaved]");
  root.addEventListener("input", (event) => (isChanged ||= Boolean(isKept(event))));
  root.addEventListener("submit", (event) => {
    if (isKept(event)) isChanged = false;
  });
  addEventListener("beforeunload", (event) => isChanged && event.preventDefault());
}

// details[data-keeps-open] stay as they are when htmx writes them anew; what has the focus keeps it: by its id, its
// address, or its place among the links and buttons of the nearest element with an id.
function keepOpen(root) {
  const FOCUSABLE = "a[href], button, select, input, summary, [tabindex]";
  let opened = [];
  let focused = null;
  root.addEventListener("htmx:beforeSwap", (event) => {
    opened = [...root.querySelectorAll("details[data-keeps-open][open]")].map((details) => details.id);
    const active = root.activeElement;
    focused = null;
    if (!event.detail.target?.contains(active) || active === root.body) return;
    const around = active.closest("[id]");
    if (!around) return;
    const place = active === around ? -1 : [...around.querySelectorAll(FOCUSABLE)].indexOf(active);
    focused = { id: around.id, address: active.getAttribute("href"), place };
  });
  root.addEventListener("htmx:afterSwap", () => {
    for (const id of opened) root.getElementById(id)?.setAttribute("open", "");
    const around = focused && root.getElementById(focused.id);
    if (!around || around.contains(root.activeElement)) return;
    const others = [...around.querySelectorAll(FOCUSABLE)];
    const same = focused.address === null ? undefined : others.find((other) => other.getAttribute("href") === focused.address);
    (focused.place < 0 ? around : (same ?? others[focused.place]))?.focus({ preventScroll: true });
  });
}

switchTheme(document);
openDialogs(document);
confirmSubmits(document);
copyTexts(document);
submitOnChange(document);
submitItself(document);
warnUnsaved(document);
keepOpen(document);
if (document.querySelector(".upload, [data-chooses-folder]")) {
  const { chooseFolders, showUploads } = await import("./upload.js");
  showUploads(document);
  chooseFolders(document);
}
