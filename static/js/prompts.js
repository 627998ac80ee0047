// The writing page: what is entered is kept on the server a moment after the last key, and on this device as long as
// the server does not answer, with the draft that it is based on: where another draft is stored meanwhile, both are
// shown, and the author chooses. Ctrl + Enter submits.
const PAUSE = 700;
const AGAIN = 10_000;
const PATIENCE = 20_000; // for an answer
const LAST_DRAFT = 3_000; // that a submission waits for a draft under way

export class Draft {
  constructor(form, { storage = localStorage, send = (...given) => fetch(...given) } = {}) {
    this.form = form;
    this.text = form.elements.text;
    this.basedOn = form.elements.based_on;
    this.state = form.querySelector("[data-state]");
    this.other = form.querySelector("[data-other]");
    this.name = `panelbench.prompt.${form.dataset.person}.${form.dataset.draft}`;
    this.storage = storage;
    this.send = send;
    this.timer = 0;
    this.underWay = null;
    this.sent = new Set(); // what this page has sent, whether an answer came or not
  }

  start() {
    this.other.querySelector("[data-take-other]").addEventListener("click", () => this.#chosen(true));
    this.other.querySelector("[data-keep-own]").addEventListener("click", () => this.#chosen(false));
    const { key, text, basedOn } = this.#kept();
    const isTyped = this.text.value !== this.text.defaultValue; // before this script was there
    if (this.form.dataset.done.split(" ").includes(key)) {
      this.#keep(null); // it has reached the server as a submission
      if (isTyped) this.#later(PAUSE);
    } else if (!this.other.hidden) this.#choose(this.other.querySelector("[data-other-text]").textContent);
    else if (text && text !== this.text.value) {
      if (basedOn === this.basedOn.value && !isTyped) {
        this.text.value = text;
        this.#later(0);
      } else this.#choose(text);
    } else if (isTyped) this.#later(PAUSE);
    this.text.addEventListener("input", () => this.#later(PAUSE));
    this.form.addEventListener("submit", (event) => this.#submit(event));
    this.text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.form.requestSubmit();
    });
  }

  // No draft lands after the submission, and the submission is based on the last one.
  async #submit(event) {
    clearTimeout(this.timer);
    if (!this.underWay) return;
    event.preventDefault();
    await Promise.race([this.underWay, new Promise((resolve) => setTimeout(resolve, LAST_DRAFT))]);
    clearTimeout(this.timer);
    this.underWay = null;
    if (!this.text.readOnly) this.form.requestSubmit(event.submitter);
  }

  #later(wait) {
    clearTimeout(this.timer);
    this.#keep(this.text.value);
    this.timer = setTimeout(() => this.save(), wait);
  }

  async save() {
    if (this.underWay || this.text.readOnly) return;
    const own = this.#send();
    this.underWay = own;
    await own;
    if (this.underWay === own) this.underWay = null;
  }

  async #send() {
    const text = this.text.value;
    this.sent.add(text);
    const body = new FormData();
    body.set("text", text);
    for (const name of ["key", "based_on", "csrfmiddlewaretoken"]) body.set(name, this.form.elements[name].value);
    let answer = null;
    let reply = {};
    try {
      const signal = AbortSignal.timeout(PATIENCE);
      answer = await this.send(this.form.dataset.draft, { method: "POST", body, redirect: "error", signal });
      reply = await answer.json();
    } catch {
      // The server is away, or the session has ended: the text stays on this device.
    }
    const isLost = reply.text !== undefined && this.sent.has(reply.text); // it is of this page: its answer was lost
    if (answer?.ok || isLost) {
      this.basedOn.value = reply.based_on;
      if (this.text.value === text && !isLost) this.#keep(null);
      else this.#later(PAUSE);
    } else if (reply.text !== undefined) this.#choose(reply.text, reply.based_on);
    else if (answer?.status !== 409) this.timer = setTimeout(() => this.save(), AGAIN);
    const said = { true: "sayKept", false: "sayOffline" }[Boolean(answer?.ok)];
    this.state.textContent = this.form.dataset[answer?.status === 409 ? "sayLost" : said];
    if (this.text.readOnly || isLost) this.state.textContent = "";
  }

  // Another draft: until the author has chosen, neither changes.
  #choose(text, basedOn = this.basedOn.value) {
    clearTimeout(this.timer);
    this.basedOn.value = basedOn;
    this.text.readOnly = true;
    this.other.querySelector("[data-other-text]").textContent = text;
    this.other.querySelector("[data-other-choice]").hidden = false;
    this.other.hidden = false;
  }

  #chosen(isOther) {
    if (isOther) this.text.value = this.other.querySelector("[data-other-text]").textContent;
    this.text.readOnly = false;
    this.other.hidden = true;
    this.text.focus();
    this.#later(0);
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
      const kept = { key: this.form.elements.key.value, text, basedOn: this.basedOn.value };
      if (text === null) this.storage.removeItem(this.name);
      else this.storage.setItem(this.name, JSON.stringify(kept));
    } catch {
      // Private windows may refuse; the server keeps the draft.
    }
  }
}

const form = document.querySelector("[data-prompt]");
if (form) new Draft(form).start();
