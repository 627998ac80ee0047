// The criteria together: which one is open, how many are done, and the stop of a critical mark.
import { nextOpen } from "./rules.js";

export const ADVANCE_MS = 350;

export class Sheet {
  #advance = 0;

  constructor(criteria) {
    this.criteria = criteria;
  }

  get current() {
    return this.criteria.find((criterion) => criterion.element.open) ?? this.criteria[0];
  }

  get stopper() {
    return this.criteria.find((criterion) => criterion.stops) ?? null;
  }

  // What this submission has to answer: all of it, or the critical mark alone.
  get asked() {
    return this.stopper ? [this.stopper] : this.criteria;
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

  // After a score: on to the next unanswered criterion, or to `last` when there is none; any other move calls it off.
  advanceFrom(criterion, last) {
    this.holdStill();
    if (criterion.wantsRationale || !criterion.isOnScale) return;
    this.#advance = setTimeout(() => {
      const next = this.stopper ? -1 : nextOpen(this.#answered, this.criteria.indexOf(criterion));
      if (next === -1) last();
      else this.criteria[next].open();
    }, ADVANCE_MS);
  }

  holdStill() {
    clearTimeout(this.#advance);
  }

  openFirstUnanswered() {
    const next = nextOpen(this.#answered, -1);
    if (next > 0) this.criteria[next].element.open = true;
  }

  refresh() {
    const { stopper } = this;
    for (const criterion of this.criteria) {
      criterion.stop(stopper !== null && criterion !== stopper);
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
    return this.criteria.map((criterion) => criterion.isComplete);
  }
}
