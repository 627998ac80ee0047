// The sheet: its rules, its criteria, and the seconds somebody was at work on it.

// The desk's rules, pure. The server has the last word; these only tell the annotator early.

export const NA = "na";

// As annotation/desk/answers.py counts: words between spaces and punctuation; Thai, Lao, Myanmar, Khmer, kana and Han put
// no spaces, about two letters make a word there.
const UNSPACED_LETTER =
  /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\u{20000}-\u{3ffff}]/gu;
const SPACED_WORD = /[\p{L}\p{M}\p{N}]+(?:['’-][\p{L}\p{M}\p{N}]+)*/gu;

export function countWords(text) {
  const unspaced = text.match(UNSPACED_LETTER)?.length ?? 0;
  const spaced = text.replace(UNSPACED_LETTER, " ").match(SPACED_WORD)?.length ?? 0;
  return spaced + Math.ceil(unspaced / 2);
}

// How many words the rationale needs for this score: 0 when it may stay empty. The best point asks for one word at most.
export function wordsNeeded({ rule, minWords }, score, best) {
  if (score === null || score === NA) return 0;
  const isBest = best !== null && Number(score) === best;
  if (rule === "required") return isBest ? 1 : Math.max(1, minWords);
  if (rule === "required_except_best") return isBest ? 0 : Math.max(1, minWords);
  return 0;
}

// A critical criterion at its worst point, the one farthest from the best, stops the rest.
export function isStop({ critical, best, values }, score) {
  if (!critical || best === null || score === null || score === NA || !values.length) return false;
  const farthest = Math.max(...values.map((value) => Math.abs(value - best)));
  return farthest > 0 && Math.abs(Number(score) - best) === farthest;
}

// The next one without an answer after `from`, going round; -1 when all are answered.
export function nextOpen(answered, from) {
  for (let step = 1; step <= answered.length; step += 1) {
    const index = (from + step) % answered.length;
    if (!answered[index]) return index;
  }
  return -1;
}

// Seconds somebody was at work here: the page visible and a sign of life within the last minute.
export class ActiveClock {
  #idle;
  #now;
  #spent = 0;
  #since = null;
  #seen = 0;

  constructor({ start = 0, idleAfter = 60, now = () => performance.now() / 1000 } = {}) {
    this.#spent = start;
    this.#idle = idleAfter;
    this.#now = now;
  }

  // A sign of life: starts the clock, or closes the stretch before a pause and starts a new one.
  touch() {
    const now = this.#now();
    if (this.#since === null) this.#since = now;
    else if (now - this.#seen > this.#idle) {
      this.#spent += this.#seen + this.#idle - this.#since;
      this.#since = now;
    }
    this.#seen = now;
  }

  stop() {
    this.#spent = this.#total();
    this.#since = null;
  }

  get seconds() {
    return Math.round(this.#total());
  }

  #total() {
    if (this.#since === null) return this.#spent;
    return this.#spent + Math.min(this.#now(), this.#seen + this.#idle) - this.#since;
  }
}

// Feeds a clock from the page.
export function keepTime(clock, target, signal) {
  const alive = () => clock.touch();
  for (const kind of ["pointerdown", "pointermove", "keydown", "wheel", "touchmove"]) {
    target.addEventListener(kind, alive, { passive: true, signal });
  }
  target.addEventListener("visibilitychange", () => (target.hidden ? clock.stop() : clock.touch()), { signal });
  clock.touch();
}

// One criterion of the sheet: its <details>, the score in it, and what it still asks for.

export class Criterion {
  #words;

  constructor(element, words) {
    this.element = element;
    this.key = element.dataset.criterion;
    this.summary = element.querySelector("summary");
    this.scale = element.querySelector("[data-scale]");
    this.inputs = [...this.scale.querySelectorAll("input")];
    this.rationale = element.querySelector("textarea");
    this.chips = element.querySelector("[data-evidence]");
    this.called = element.querySelector(".criterion-name").textContent;
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

  // The best point has nothing to mark.
  get wantsEvidence() {
    if (this.element.dataset.evidenceRule !== "required" || this.score === null || this.score === NA) return false;
    const isBest = this.best !== null && Number(this.score) === this.best;
    return !isBest && !this.chips.childElementCount;
  }

  get isComplete() {
    return this.score !== null && this.isOnScale && !this.wantsRationale && !this.wantsEvidence;
  }

  get stops() {
    return isStop(this, this.score);
  }

  // Chooses the point with this digit; false when the scale has none, or takes its number by typing.
  giveDigit(digit) {
    return this.#choose((input) => input.dataset.digit === digit);
  }

  // Whether the scale has a point with this digit.
  has(digit) {
    return this.inputs.some((input) => input.dataset.digit === digit);
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
    this.show();
  }

  // In one-hand mode its scores are at the lower end, which has to be in sight.
  show() {
    const isOneHanded = "hand" in document.body.dataset && matchMedia("(max-width: 860px)").matches;
    this.element.scrollIntoView({ block: isOneHanded ? "end" : "nearest" });
  }

  // Stopped by a critical mark before it had a score: it takes none, and its rationale is not sent.
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
    this.element.querySelector("[data-wants-evidence]").hidden = !(scored && this.wantsEvidence);
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
    if (this.wantsRationale) return this.#words.fill("wantsWords", this.rationaleWords);
    return this.wantsEvidence ? this.#words.wantsEvidence : "";
  }

  say(problem) {
    const line = this.element.querySelector("[data-error]");
    line.textContent = problem;
    line.hidden = !problem;
    this.element.querySelector(`#error-${CSS.escape(this.key)}`)?.remove();
    this.element.toggleAttribute("data-wrong", Boolean(problem));
  }
}

// The criteria together: which one is open, how many are done, and the stop of a critical mark.

export const ADVANCE_MS = 350;

export class Sheet {
  #advance = 0;
  #waiting = null;

  constructor(criteria) {
    this.criteria = criteria;
    this.advances = true; // whether a score opens the next criterion
    this.isSent = false; // nothing may change it now
    this.left = null; // the criterion that a score has closed by itself
  }

  get current() {
    return this.criteria.find((criterion) => criterion.element.open) ?? this.criteria[0];
  }

  get stopper() {
    return this.criteria.find((criterion) => criterion.stops) ?? null;
  }

  // What this submission has to answer: all of it; after a critical mark only what has a score, which is kept.
  get asked() {
    return this.stopper ? this.criteria.filter((criterion) => criterion.score !== null) : this.criteria;
  }

  get done() {
    return this.asked.filter((criterion) => criterion.isComplete).length;
  }

  get isReady() {
    return this.done === this.asked.length;
  }

  of(key) {
    return this.criteria.find((criterion) => criterion.key === key);
  }

  containing(node) {
    return this.criteria.find((criterion) => criterion.element.contains(node));
  }

  step(by) {
    const index = this.criteria.indexOf(this.current) + by;
    this.criteria[Math.max(0, Math.min(index, this.criteria.length - 1))].open();
  }

  // After a score: on to the next unanswered criterion, or to `last` when there is none.
  advanceFrom(criterion, last) {
    this.holdStill();
    if (!this.advances || criterion.wantsRationale || criterion.wantsEvidence || !criterion.isOnScale) return;
    const next = nextOpen(this.#answered, this.criteria.indexOf(criterion));
    if (next === -1) last();
    else this.criteria[next].open();
    this.left = criterion;
  }

  // The same after a moment, in which a finger sees what it chose; any other move of the pointer calls it off.
  advanceSoon(criterion, last) {
    this.holdStill();
    this.#waiting = () => this.advanceFrom(criterion, last);
    this.#advance = setTimeout(() => this.advanceNow(), ADVANCE_MS);
  }

  // A key does not wait for that moment.
  advanceNow() {
    const waiting = this.#waiting;
    this.holdStill();
    waiting?.();
  }

  holdStill() {
    clearTimeout(this.#advance);
    this.#waiting = null;
  }

  openFirstUnanswered() {
    const next = nextOpen(this.#answered, -1);
    if (next > 0) this.criteria[next].element.open = true;
  }

  refresh() {
    const { asked } = this;
    for (const criterion of this.criteria) {
      criterion.stop(!asked.includes(criterion));
      criterion.refresh();
    }
  }

  // Says under each criterion what is missing and opens the first; true when nothing is.
  check() {
    const { asked } = this;
    for (const criterion of this.criteria) criterion.say(asked.includes(criterion) ? criterion.problem : "");
    const first = asked.find((criterion) => criterion.problem);
    first?.open();
    return !first;
  }

  // The server's sentences, by criterion key.
  sayAll(sentences) {
    for (const criterion of this.criteria) criterion.say(sentences[criterion.key] ?? "");
    this.criteria.find((criterion) => criterion.key in sentences)?.open();
  }

  get #answered() {
    const { asked } = this;
    return this.criteria.map((criterion) => criterion.isComplete || !asked.includes(criterion));
  }
}
