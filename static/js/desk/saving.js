// What is written is kept: on this machine, as a draft on the server, and handed in; and the lease that lets it be.

// Seconds to wait before try number `tries` (from 0): 1, 2, 4 ... 30, and what the server asked for when that is more.
export function backOff(tries, asked = 0) {
  return Math.max(Math.min(30, 2 ** tries), asked);
}

// One POST of the form's fields, and what became of it, without exceptions:
// (a connection that hangs for 20 s counts as none)
//   ok {body} | invalid {body} | conflict {body} | signed-out | unavailable {retryAfter} | refused {body}
export async function post(url, fields, { keepalive = false } = {}) {
  let response;
  try {
    response = await sent(url, fields, keepalive);
    // Somebody who signed in again has another token, and a browser that lost its cookies has none: this page brings one.
    if (response.status === 403) {
      await fetch(location.href, { credentials: "same-origin", signal: AbortSignal.timeout(20_000) });
      response = await sent(url, fields, keepalive);
    }
  } catch {
    return { kind: "unavailable", body: {}, retryAfter: 0, hasAnswered: false };
  }
  return { kind: kindOf(response), body: await bodyOf(response), retryAfter: waitOf(response), hasAnswered: true };
}

// A page as a document of its own, without running anything in it: ok {document, url} | unavailable {retryAfter} | refused
// With fields, they are posted, and the page is where that leads.
export async function pageAt(url, fields = null) {
  try {
    const posted = fields ? { method: "POST", body: withToken(new URLSearchParams(fields)) } : {};
    const shared = { headers: { Accept: "text/html" }, credentials: "same-origin", signal: AbortSignal.timeout(20_000) };
    const response = await fetch(url, { ...posted, ...shared });
    if (response.status === 429 || response.status >= 500) return { kind: "unavailable", retryAfter: waitOf(response) };
    if (!response.ok) return { kind: "refused" };
    const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
    return { kind: "ok", document: parsed, url: response.url };
  } catch {
    return { kind: "unavailable", retryAfter: 0 };
  }
}

function sent(url, fields, keepalive) {
  return fetch(url, {
    method: "POST",
    body: withToken(new URLSearchParams(fields)),
    headers: { Accept: "application/json" },
    credentials: "same-origin",
    signal: AbortSignal.timeout(20_000),
    keepalive,
  });
}

// Signing in elsewhere renews the token; the form still has the one that came with the page.
export function freshToken() {
  return /(?:^|; )csrftoken=([^;]+)/.exec(document.cookie)?.[1];
}

function withToken(fields) {
  const token = freshToken();
  if (token) fields.set("csrfmiddlewaretoken", token);
  return fields;
}

export function kindOf(response) {
  if (response.redirected || response.status === 401) return "signed-out";
  if (response.ok) return "ok";
  if (response.status === 422) return "invalid";
  if (response.status === 409) return "conflict";
  if (response.status === 429 || response.status >= 500) return "unavailable";
  return "refused";
}

// The seconds that Retry-After asks for, written as a number or as a date; an hour at most.
function waitOf(response) {
  const asked = response.headers.get("Retry-After") ?? "";
  const seconds = Number(asked) || (Date.parse(asked) - Date.now()) / 1000;
  return seconds > 0 ? Math.min(seconds, 3600) : 0;
}

async function bodyOf(response) {
  try {
    return await response.json();
  } catch {
    return {};
  }
}

// What the server has not acknowledged yet, by assignment key, on this device. Storage may be refused: then nothing is kept.
const PREFIX = "panelbench.draft.";
const ASIDE = "panelbench.damaged."; // what can't be read, so that somebody else may still rescue it
const KEEP_DAYS = 14;

export class Unsent {
  #key;
  #store;

  constructor(assignment, store = localStore()) {
    this.#key = PREFIX + assignment;
    this.#store = store;
  }

  read() {
    return parsed(this.#store?.getItem(this.#key));
  }

  // more: {submit: true, url}, when it was submitted to this address and is sent again until there is an answer.
  write(fields, more = {}) {
    try {
      this.#store.setItem(this.#key, JSON.stringify({ at: Date.now(), fields, ...more }));
      return true;
    } catch {
      return false;
    }
  }

  forget() {
    try {
      this.#store.removeItem(this.#key);
    } catch {
      // Nothing was kept.
    }
  }
}

// What was kept, or null when it can't be read: another program may have written it, or a crash cut it short.
function parsed(text) {
  try {
    const kept = JSON.parse(text);
    return Number.isFinite(kept?.at) && kept.fields.every(Array.isArray) ? kept : null;
  } catch {
    return null;
  }
}

// Removes drafts of assignments that never came back (a lease that expired elsewhere), and sets aside those that can't be
// read. How many were set aside.
export function sweep(store = localStore(), now = Date.now()) {
  let damaged = 0;
  for (const key of Object.keys(store ?? {})) {
    const kept = key.startsWith(PREFIX) ? parsed(store.getItem(key)) : null;
    if (key.startsWith(PREFIX) && !kept) {
      setAside(store, key, now);
      damaged += 1;
    } else if (kept ? !(now - kept.at <= KEEP_DAYS * 86_400_000) : isOld(key, now)) {
      store.removeItem(key);
    }
  }
  return damaged;
}

function setAside(store, key, now) {
  try {
    store.setItem(`${ASIDE}${now}.${key.slice(PREFIX.length)}`, store.getItem(key));
  } catch {
    // The storage is full.
  }
  store.removeItem(key);
}

function isOld(key, now) {
  return key.startsWith(ASIDE) && !(now - parseInt(key.slice(ASIDE.length), 10) <= KEEP_DAYS * 86_400_000);
}

function localStore() {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

// Sends what was submitted on this device and was never answered, of other items than `except`. Its key makes the server
// store it once. What the server refuses is kept as text, and is not sent again: its page says what happened.
export async function resendKept({ except = "", fields = () => [], store = localStore() } = {}) {
  const refused = [];
  let stored = 0;
  for (const name of Object.keys(store ?? {})) {
    const kept = name.startsWith(PREFIX) && name !== PREFIX + except ? parsed(store.getItem(name)) : null;
    if (!kept?.submit || !kept.url?.startsWith(location.origin)) continue;
    const own = kept.fields.filter(([field]) => field !== "csrfmiddlewaretoken");
    const { kind, body } = await post(kept.url, [...fields().filter(([field]) => field === "csrfmiddlewaretoken"), ...own]);
    if (kind === "unavailable") return { isLeft: true, stored, refused };
    if (kind === "ok") {
      store.removeItem(name);
      stored += 1;
    }
    if (kind !== "conflict" && kind !== "invalid") continue; // of somebody else, or signed out: it is kept
    store.setItem(name, JSON.stringify({ at: kept.at, fields: kept.fields }));
    refused.push({ url: kept.url.replace(/submit\/$/, ""), detail: body.detail ?? "" });
  }
  return { isLeft: false, stored, refused };
}

// Keeps the item on this desk while somebody looks at it: one beat a minute, and one on coming back.

const BEAT_MS = 60_000;

export function keepLease({ url, fields, lost, signal }) {
  const beat = async () => {
    if (document.hidden) return;
    const { kind, body } = await post(url, fields());
    if (kind !== "conflict" || signal.aborted) return;
    clearInterval(timer);
    lost(body);
  };
  const timer = setInterval(beat, BEAT_MS);
  document.addEventListener("visibilitychange", beat, { signal });
  signal.addEventListener("abort", () => clearInterval(timer));
}

// Autosave: 600 ms after the last change, retried with growing pauses, kept on this device until the server has it.

const PAUSE_MS = 600;

export class Draft {
  #url;
  #fields;
  #unsent;
  #show;
  #stored;
  #timer = 0;
  #tries = 0;
  #sending = null;
  #closed = false;
  #changes = 0;
  #notBefore = 0; // what Retry-After asked for, whatever is entered meanwhile

  // Without a url (of scores that were submitted before) only this device keeps it.
  // fields() reads the form; show(state, body) says saving | saved | offline | away | signed-out | unsaved | lost to the annotator.
  // stored(body) sees each answer to a draft that is stored, before the next one is sent.
  constructor({ url, fields, unsent, show, signal, stored = () => {} }) {
    this.#url = url;
    this.#fields = fields;
    this.#unsent = unsent;
    this.#show = show;
    this.#stored = stored;
    window.addEventListener("online", () => this.#timer && this.#in(0), { signal });
    document.addEventListener("visibilitychange", () => document.hidden && this.flush({ keepalive: true }), { signal });
    signal.addEventListener("abort", () => this.close());
  }

  change() {
    if (this.#closed) return;
    this.#changes += 1;
    this.#tries = 0;
    this.#unsent.write(this.#fields());
    if (!this.#url) return;
    this.#show("saving");
    this.#in(Math.max(PAUSE_MS, this.#notBefore - Date.now()));
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

  #settle({ kind, body, retryAfter, hasAnswered }, sent) {
    if (kind === "ok") this.#stored(body);
    if (kind === "ok" && sent === this.#changes) {
      this.#tries = 0;
      this.#unsent.forget();
      this.#show("saved");
    } else if (kind === "unavailable") {
      this.#show(hasAnswered ? "away" : "offline");
      this.#notBefore = Date.now() + 1000 * retryAfter;
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

// Sends the finished sheet: the same idempotency key on every try, so that a lost answer costs nothing.

export class Submission {
  #url;
  #fields;
  #on;
  #busy = false;
  #wake = null;

  // on: sending(), waiting({hasAnswered, seconds}), accepted(body), invalid(body), conflict(body), signedOut(), refused(body)
  constructor({ url, fields, on, signal }) {
    this.#url = url;
    this.#fields = fields;
    this.#on = on;
    window.addEventListener("online", () => this.#wake?.(), { signal });
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
      const seconds = backOff(tries, answer.retryAfter);
      this.#on.waiting({ hasAnswered: answer.hasAnswered, seconds: Math.ceil(seconds) });
      await this.#pause(1000 * seconds);
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
