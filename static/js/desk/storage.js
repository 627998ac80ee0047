// What the server has not acknowledged yet, by assignment key, on this device. Storage may be refused: then nothing is kept.
const PREFIX = "panelbench.draft.";
const KEEP_DAYS = 14;

export class Unsent {
  #key;
  #store;

  constructor(assignment, store = localStore()) {
    this.#key = PREFIX + assignment;
    this.#store = store;
  }

  read() {
    try {
      return JSON.parse(this.#store.getItem(this.#key));
    } catch {
      return null;
    }
  }

  write(fields) {
    try {
      this.#store.setItem(this.#key, JSON.stringify({ at: Date.now(), fields }));
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

// Drafts of assignments that never came back (a lease that expired elsewhere).
export function sweep(store = localStore(), now = Date.now()) {
  for (const key of Object.keys(store ?? {})) {
    if (!key.startsWith(PREFIX)) continue;
    const kept = JSON.parse(store.getItem(key));
    if (now - kept.at > KEEP_DAYS * 86_400_000) store.removeItem(key);
  }
}

function localStore() {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}
