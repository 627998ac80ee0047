// The writing page: what is entered is kept on the server a moment after the last key, and on this device as long as
// the server does not answer. Ctrl + Enter submits.
const PAUSE = 700;
const AGAIN = 10_000;

export class Draft {
  constructor(form, { storage = localStorage, send = fetch } = {}) {
    this.form = form;
    this.text = form.elements.text;
    this.state = form.querySelector("[data-state]");
    this.name = `panelbench.prompt.${form.dataset.person}.${form.dataset.draft}`;
    this.storage = storage;
    this.send = send;
    this.timer = 0;
  }

  start() {
    const { key, text } = this.#kept();
    if (this.form.dataset.done.split(" ").includes(key)) this.#keep(null); // it has reached the server as a submission
    else if (text && text !== this.text.value && this.text.value === this.text.defaultValue) {
      this.text.value = text;
      this.#later(0);
    }
    this.text.addEventListener("input", () => this.#later(PAUSE));
    this.form.addEventListener("submit", () => clearTimeout(this.timer));
    this.text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.form.requestSubmit();
    });
  }

  #later(wait) {
    clearTimeout(this.timer);
    this.#keep(this.text.value);
    this.timer = setTimeout(() => this.save(), wait);
  }

  async save() {
    const sent = this.text.value;
    const body = new FormData();
    body.set("text", sent);
    body.set("csrfmiddlewaretoken", this.form.elements.csrfmiddlewaretoken.value);
    let isKept = false;
    try {
      const answer = await this.send(this.form.dataset.draft, { method: "POST", body, redirect: "error" });
      isKept = answer.ok;
    } catch {
      // The server is away, or the session has ended: the text stays on this device.
    }
    if (isKept && this.text.value === sent) this.#keep(null);
    this.state.textContent = isKept ? this.form.dataset.sayKept : this.form.dataset.sayOffline;
    if (!isKept) this.timer = setTimeout(() => this.save(), AGAIN);
  }

  #kept() {
    try {
      return JSON.parse(this.storage.getItem(this.name)) ?? {};
    } catch {
      return {};
    }
  }

  #keep(text) {
    try {
      if (text === null) this.storage.removeItem(this.name);
      else this.storage.setItem(this.name, JSON.stringify({ key: this.form.elements.key.value, text }));
    } catch {
      // Private windows may refuse; the server keeps the draft.
    }
  }
}

const form = document.querySelector("[data-prompt]");
if (form) new Draft(form).start();
