// From a key press to a command's name, pure; the desk decides what the command does.

const LETTERS = { KeyN: "na", KeyJ: "next", KeyK: "previous", KeyR: "rationale", KeyU: "undo" };
const ARROWS = { ArrowDown: "next", ArrowUp: "previous" };

export function command(event) {
  if (event.isComposing || event.defaultPrevented) return null;
  if ((event.ctrlKey || event.metaKey) && !event.altKey) return withControl(event);
  if (event.altKey || event.ctrlKey || event.metaKey) return null;
  if (isTyping(event.target)) return event.key === "Escape" ? { name: "leave-text" } : null;
  return plain(event);
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

function plain(event) {
  if (event.key === "?" || event.key === "؟") return { name: "shortcuts" };
  const digit = digitOf(event);
  if (digit !== null) return { name: "score", digit };
  if (event.key in ARROWS) return isRadio(event.target) ? null : { name: ARROWS[event.key] };
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
