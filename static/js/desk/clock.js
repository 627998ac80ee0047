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
export function keepTime(clock, target = document) {
  const alive = () => clock.touch();
  for (const kind of ["pointerdown", "pointermove", "keydown", "wheel", "touchmove"]) {
    target.addEventListener(kind, alive, { passive: true });
  }
  target.addEventListener("visibilitychange", () => (target.hidden ? clock.stop() : clock.touch()));
  clock.touch();
}
