// What the frame around the sheet says: the saved state in the bar, the count at the foot, the live line for screen readers.
const ICONS = { saving: "saving", saved: "saved", offline: "offline", "signed-out": "lock", unsaved: "warning", lost: "warning" };
const SPOKEN = new Set(["offline", "signed-out", "unsaved", "lost"]);

export class Status {
  #words;
  #root;

  constructor(root, words) {
    this.#root = root;
    this.#words = words;
  }

  saved(state) {
    const place = this.#find("[data-save-state]");
    const sentence = this.#words[state.replace(/-./, (dash) => dash[1].toUpperCase())];
    if (SPOKEN.has(state) && place.dataset.saveState !== state) this.say(sentence);
    place.dataset.saveState = state;
    this.#find("[data-save-text]").textContent = sentence;
    const icon = this.#find("[data-save-icon]");
    icon.setAttribute("href", icon.getAttribute("href").replace(/#.*/, `#${ICONS[state]}`));
  }

  count(sheet) {
    const [done, total] = [sheet.done, sheet.asked.length];
    const { fill, format, stopped, complete } = this.#words;
    const note = sheet.isReady ? complete : fill("toGo", { left: total - done });
    this.#find("[data-count]").textContent = fill("count", { done, total });
    this.#find("[data-count-note]").textContent = sheet.stopper ? stopped : note;
    this.#find("[data-short-count]").textContent = `${format(done)}/${format(total)}`;
    this.#find("[data-ring]").setAttribute("stroke-dasharray", `${done} ${total}`);
    this.#find("[data-ring]").setAttribute("pathLength", total);
    this.#find("[data-submit]").toggleAttribute("data-ready", sheet.isReady);
  }

  busy(sentence) {
    const button = this.#find("[data-submit]");
    button.setAttribute("aria-disabled", String(Boolean(sentence)));
    const label = button.querySelector("span");
    label.dataset.rest ??= label.textContent;
    label.textContent = sentence || label.dataset.rest;
  }

  // A sentence above the foot that stays until it is taken back with "".
  alert(sentence) {
    const place = this.#find("[data-alert]");
    place.hidden = !sentence;
    place.querySelector("[data-alert-text]").textContent = sentence;
  }

  say(sentence) {
    this.#find("[data-live]").textContent = sentence;
  }

  #find(selector) {
    return this.#root.querySelector(selector);
  }
}
