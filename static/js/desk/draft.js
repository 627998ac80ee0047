// Autosave: 600 ms after the last change, retried with growing pauses, kept on this device until the server has it.
import { backOff } from "./rules.js";
import { post } from "./wire.js";

const PAUSE_MS = 600;

export class Draft {
  #url;
  #fields;
  #unsent;
  #show;
  #timer = 0;
  #tries = 0;
  #sending = null;
  #closed = false;
  #changes = 0;

  // fields() reads the form; show(state, body) says saving | saved | offline | signed-out | unsaved | lost to the annotator.
  constructor({ url, fields, unsent, show }) {
    this.#url = url;
    this.#fields = fields;
    this.#unsent = unsent;
    this.#show = show;
    window.addEventListener("online", () => this.#timer && this.#in(0));
    document.addEventListener("visibilitychange", () => document.hidden && this.flush({ keepalive: true }));
  }

  change() {
    if (this.#closed) return;
    this.#changes += 1;
    this.#tries = 0;
    this.#unsent.write(this.#fields());
    this.#show("saving");
    this.#in(PAUSE_MS);
  }

  // Sends now what is waiting; resolves when nothing is under way.
  async flush({ keepalive = false } = {}) {
    if (this.#timer) {
      clearTimeout(this.#timer);
      this.#timer = 0;
      await this.#send(keepalive);
    }
    await this.#sending;
  }

  // The submission takes over: no draft sets out after it.
  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  reopen() {
    this.#closed = false;
  }

  #in(ms) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.#send(false);
    }, ms);
  }

  async #send(keepalive) {
    await this.#sending;
    const sent = this.#changes;
    this.#sending = post(this.#url, this.#fields(), { keepalive });
    const answer = await this.#sending;
    this.#sending = null;
    if (!this.#closed) this.#settle(answer, sent);
  }

  #settle({ kind, body, retryAfter }, sent) {
    if (kind === "ok" && sent === this.#changes) {
      this.#tries = 0;
      this.#unsent.forget();
      this.#show("saved");
    } else if (kind === "unavailable") {
      this.#show("offline");
      this.#in(1000 * backOff(this.#tries, retryAfter));
      this.#tries += 1;
    } else if (kind === "signed-out") {
      this.#show("signed-out");
    } else if (kind === "conflict") {
      this.close();
      this.#show("lost", body);
    } else if (kind !== "ok") {
      this.#show("unsaved");
    }
  }
}
