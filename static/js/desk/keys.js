// The keys of the desk: what a press means, and the presses that wait for the next item.

// From a key press to a command's name, pure; the desk decides what the command does.

const LETTERS = { KeyN: "na", KeyJ: "next", KeyK: "previous", KeyR: "rationale", KeyE: "evidence", KeyC: "whole-item", KeyU: "undo" };
const PAGES = { PageDown: 0.9, PageUp: -0.9, Home: -Infinity, End: Infinity }; // of the height that is visible
const SIDES = { ArrowLeft: "left", ArrowRight: "right" };
const ARROWS = { ArrowDown: "next", ArrowUp: "previous" };

// `target`: where the key goes; null for a key that waits for the next item, wherever the focus is now.
export function command(event, target = event.target) {
  if (event.isComposing || event.defaultPrevented) return null;
  if ((event.ctrlKey || event.metaKey) && !event.altKey) return withControl(event);
  if (event.altKey || event.ctrlKey || event.metaKey) return null;
  if (isTyping(target)) return event.key === "Escape" ? { name: "leave-text" } : null;
  return plain(event, target);
}

// Fields where a letter is a letter. A radio button is not one: digits pass through it.
export function isTyping(target) {
  if (!target?.matches) return false;
  return target.matches("textarea, select, input:not([type=radio], [type=checkbox], [type=button]), [contenteditable]");
}

function withControl(event) {
  if (event.key === "Enter") return { name: "submit" };
  if (event.code === "KeyS" && !event.shiftKey) return { name: "save" };
  return null;
}

function plain(event, target) {
  if (event.key === "?" || event.key === "؟") return { name: "shortcuts" };
  const digit = digitOf(event);
  if (digit !== null) return { name: "score", digit };
  if (event.key in PAGES) return { name: "read", by: PAGES[event.key] };
  if (event.key === " ") return isControl(target) ? null : { name: "read", by: event.shiftKey ? -0.9 : 0.9 };
  if (event.key in SIDES) return { name: "side", side: SIDES[event.key] };
  if (event.key in ARROWS) return isRadio(target) || isInText(target) ? null : { name: ARROWS[event.key] };
  const letter = letterOf(event);
  return letter ? { name: letter } : null;
}

// By the character where the layout writes 0-9, else by the key's place: French rows need Shift, Arabic ones write ٣.
function digitOf(event) {
  if (/^[0-9]$/.test(event.key)) return event.key;
  const place = /^(?:Digit|Numpad)([0-9])$/.exec(event.code);
  return place && !event.shiftKey && event.key.length === 1 ? place[1] : null;
}

// A Latin layout is read by its letters (Dvorak, AZERTY), any other by the key's place (Cyrillic, Arabic, Hangul).
function letterOf(event) {
  if (event.shiftKey) return null;
  const code = /^[a-z]$/i.test(event.key) ? `Key${event.key.toUpperCase()}` : event.code;
  return LETTERS[code] ?? null;
}

// Arrows inside a radio group belong to the group.
function isRadio(target) {
  return Boolean(target?.matches?.("input[type=radio]"));
}

// The space bar presses these.
function isControl(target) {
  return Boolean(target?.closest?.("a, button, input, label, summary"));
}

// Arrows inside the text to rate scroll it.
function isInText(target) {
  return Boolean(target?.closest?.("#dialogue"));
}

// Enter alone: it submits where the button for it has the focus, and goes on from a view between items. Of a key that is
// held down only the first press counts.
export function isEnter(event) {
  const { altKey, ctrlKey, metaKey, shiftKey, repeat, isComposing } = event;
  return event.key === "Enter" && !(altKey || ctrlKey || metaKey || shiftKey || repeat || isComposing);
}

// The presses between a submission and the next item, in order: they are meant for that item, and are played there. After
// R letters are text until Esc, as they would be in the rationale.
export class KeysAhead {
  #presses = [];
  #isText = false;
  #since = null;

  // True when the press was kept.
  take(event) {
    const press = this.#isText ? this.#typed(event) : isEnter(event) ? { name: "enter" } : command(event, null);
    if (!press || !AHEAD.has(press.name)) return false;
    if (press.name === "rationale") this.#isText = true;
    if (press.name === "leave-text" || press.name === "submit") this.#isText = false;
    this.#since ??= performance.now();
    this.#presses.push(press);
    return true;
  }

  next() {
    return this.#presses.shift();
  }

  get isEmpty() {
    return !this.#presses.length;
  }

  // Seconds since the first press: the work on the next item began with it.
  get seconds() {
    return this.#since === null ? 0 : (performance.now() - this.#since) / 1000;
  }

  #typed(event) {
    if (event.isComposing) return null;
    if (event.ctrlKey || event.metaKey) return command(event, null);
    if (event.key === "Escape") return { name: "leave-text" };
    if (event.key === "Backspace") return { name: "erase" };
    if (event.key === "Enter") return { name: "text", text: "\n" };
    return event.key.length === 1 ? { name: "text", text: event.key } : null;
  }
}

const AHEAD = new Set(["score", "side", "na", "next", "previous", "rationale", "text", "erase", "leave-text", "submit", "enter", "whole-item"]);
