// One criterion of the sheet: its <details>, the score in it, and what it still asks for.
import { NA, countWords, isStop, wordsNeeded } from "./rules.js";

export class Criterion {
  #words;

  constructor(element, words) {
    this.element = element;
    this.key = element.dataset.criterion;
    this.summary = element.querySelector("summary");
    this.scale = element.querySelector("[data-scale]");
    this.inputs = [...this.scale.querySelectorAll("input")];
    this.rationale = element.querySelector("textarea");
    this.critical = "critical" in element.dataset;
    this.best = element.dataset.best === "" ? null : Number(element.dataset.best);
    this.rule = { rule: element.dataset.rule, minWords: Number(element.dataset.minWords) || 0 };
    this.#words = words;
  }

  get number() {
    return this.inputs.find((input) => input.type === "number") ?? null;
  }

  // The points of the scale, or its two ends.
  get values() {
    if (this.number) return [Number(this.number.min), Number(this.number.max)];
    return this.inputs.filter((input) => input.value !== NA).map((input) => Number(input.value));
  }

  // null (nothing yet), "na", or the score as the form will send it.
  get score() {
    const checked = this.inputs.find((input) => input.checked);
    if (checked) return checked.value;
    return this.number?.value || null;
  }

  get shown() {
    const checked = this.inputs.find((input) => input.checked);
    return checked ? checked.dataset.label : (this.number?.value ?? "");
  }

  get isOnScale() {
    return !this.number || this.score === NA || this.number.validity.valid;
  }

  get rationaleWords() {
    return {
      needed: wordsNeeded(this.rule, this.score, this.best),
      written: countWords(this.rationale?.value ?? ""),
    };
  }

  get wantsRationale() {
    const { needed, written } = this.rationaleWords;
    return written < needed;
  }

  get isComplete() {
    return this.score !== null && this.isOnScale && !this.wantsRationale;
  }

  get stops() {
    return isStop(this, this.score);
  }

  // Chooses the point with this digit; false when the scale has none, or takes its number by typing.
  giveDigit(digit) {
    return this.#choose((input) => input.dataset.digit === digit);
  }

  giveNotApplicable() {
    return this.#choose((input) => input.value === NA && input.type !== "number");
  }

  #choose(matches) {
    const input = this.inputs.find((candidate) => candidate.type !== "number" && matches(candidate));
    if (!input || this.scale.disabled) return false;
    input.checked = input.type === "radio" || !input.checked;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    return true;
  }

  open() {
    this.element.open = true;
    this.summary.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "nearest" });
  }

  // Stopped by a critical criterion: kept as it was, but not sent.
  stop(stopped) {
    this.scale.disabled = stopped;
    if (this.rationale) this.rationale.disabled = stopped;
    this.element.querySelector("[data-stopped-chip]").hidden = !stopped;
    this.element.toggleAttribute("data-stopped", stopped);
  }

  // The summary, the word count and the stop note follow the form.
  refresh() {
    const { needed, written } = this.rationaleWords;
    const scored = this.score !== null && this.isOnScale;
    this.element.dataset.state = this.isComplete ? "done" : scored ? "wants-rationale" : "";
    this.element.querySelector("[data-given]").textContent = scored ? this.shown : "";
    this.element.querySelector("[data-wants-rationale]").hidden = !(scored && this.wantsRationale);
    const count = this.element.querySelector("[data-words]");
    if (count) count.textContent = needed > 0 ? this.#words.fill("words", { written, needed }) : "";
    this.rationale?.setAttribute("aria-required", String(needed > 0));
    const note = this.element.querySelector("[data-stop-note]");
    if (note) note.hidden = !this.stops;
  }

  // What is wrong, in words, or "" when nothing is.
  get problem() {
    if (this.score === null) return this.number?.validity.badInput ? this.#words.outOfRange : this.#words.missing;
    if (!this.isOnScale) return this.#words.outOfRange;
    return this.wantsRationale ? this.#words.fill("wantsWords", this.rationaleWords) : "";
  }

  say(problem) {
    const line = this.element.querySelector("[data-error]");
    line.textContent = problem;
    line.hidden = !problem;
    this.element.querySelector(`#error-${CSS.escape(this.key)}`)?.remove();
    this.element.toggleAttribute("data-wrong", Boolean(problem));
  }
}
