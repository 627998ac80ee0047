// Sends the finished sheet: the same idempotency key on every try, so that a lost answer costs nothing.
import { backOff } from "./rules.js";
import { post } from "./wire.js";

export class Submission {
  #url;
  #fields;
  #on;
  #busy = false;
  #wake = null;

  // on: sending(), waiting(), accepted(body), invalid(body), conflict(body), signedOut(), refused(body)
  constructor({ url, fields, on }) {
    this.#url = url;
    this.#fields = fields;
    this.#on = on;
    window.addEventListener("online", () => this.#wake?.());
  }

  async send() {
    if (this.#busy) {
      this.#wake?.();
      return;
    }
    this.#busy = true;
    this.#on.sending();
    const answer = await this.#untilAnswered();
    this.#busy = false;
    this.#report(answer);
  }

  async #untilAnswered() {
    for (let tries = 0; ; tries += 1) {
      const answer = await post(this.#url, this.#fields());
      if (answer.kind !== "unavailable") return answer;
      this.#on.waiting();
      await this.#pause(1000 * backOff(tries, answer.retryAfter));
    }
  }

  #pause(ms) {
    return new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, ms);
    });
  }

  #report({ kind, body }) {
    if (kind === "ok") this.#on.accepted(body);
    else if (kind === "invalid") this.#on.invalid(body);
    else if (kind === "conflict") this.#on.conflict(body);
    else if (kind === "signed-out") this.#on.signedOut();
    else this.#on.refused(body);
  }
}
