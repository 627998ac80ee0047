// The desk: joins the sheet, the keys, the draft, the lease and the submission.
import { Evidence } from "./evidence.js";
import { ActiveClock, Criterion, Sheet, keepTime } from "./sheet.js";
import { Draft, Submission, Unsent, freshToken, keepLease, sweep } from "./saving.js";

// From a key press to a command's name, pure; the desk decides what the command does.

const STAYS = "panelbench.stays"; // in the local storage of who wants no next criterion opened
const HAND = "panelbench.hand"; // there too: the hand that holds the phone, "left" or "right"
const LETTERS = { KeyN: "na", KeyJ: "next", KeyK: "previous", KeyR: "rationale", KeyE: "evidence", KeyU: "undo" };
const PAGES = { PageDown: 0.9, PageUp: -0.9, Home: -Infinity, End: Infinity }; // of the height that is visible
const SIDES = { ArrowLeft: "left", ArrowRight: "right" };
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
  if (event.key in PAGES) return { name: "read", by: PAGES[event.key] };
  if (event.key === " ") return isControl(event.target) ? null : { name: "read", by: event.shiftKey ? -0.9 : 0.9 };
  if (event.key in SIDES) return { name: "side", side: SIDES[event.key] };
  if (event.key in ARROWS) return isRadio(event.target) || isInText(event.target) ? null : { name: ARROWS[event.key] };
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

// What the frame around the sheet says: the saved state in the bar, the count at the foot, the live line for screen readers.
const ICONS = { saving: "saving", saved: "saved", offline: "offline", "signed-out": "lock", unsaved: "warning", lost: "warning" };
const SPOKEN = new Set(["offline", "signed-out", "unsaved", "lost"]);

class Status {
  #words;
  #root;

  constructor(root, words) {
    this.#root = root;
    this.#words = words;
  }

  saved(state) {
    const place = this.#find("[data-save-state]");
    const sentence = this.#words[state.replace(/-./, (dash) => dash[1].toUpperCase())];
    if (SPOKEN.has(state) && place.dataset.saveState !== state) this.say(sentence);
    place.dataset.saveState = state;
    this.#find("[data-save-text]").textContent = sentence;
    const icon = this.#find("[data-save-icon]");
    icon.setAttribute("href", icon.getAttribute("href").replace(/#.*/, `#${ICONS[state]}`));
  }

  count(sheet) {
    const [done, total] = [sheet.done, sheet.asked.length];
    const { fill, format, stopped, complete } = this.#words;
    const note = sheet.isReady ? complete : fill("toGo", { left: total - done });
    this.#find("[data-count]").textContent = fill("count", { done, total });
    this.#find("[data-count-note]").textContent = sheet.stopper ? stopped : note;
    this.#find("[data-short-count]").textContent = `${format(done)}/${format(total)}`;
    this.#find("[data-ring]").setAttribute("stroke-dasharray", `${done} ${total}`);
    this.#find("[data-ring]").setAttribute("pathLength", total);
    this.#find("[data-submit]").toggleAttribute("data-ready", sheet.isReady);
  }

  busy(sentence) {
    const button = this.#find("[data-submit]");
    button.setAttribute("aria-disabled", String(Boolean(sentence)));
    const label = button.querySelector("span");
    label.dataset.rest ??= label.textContent;
    label.textContent = sentence || label.dataset.rest;
  }

  // A sentence above the foot that stays until it is taken back with "".
  alert(sentence) {
    const place = this.#find("[data-alert]");
    place.hidden = !sentence;
    place.querySelector("[data-alert-text]").textContent = sentence;
  }

  say(sentence) {
    this.#find("[data-live]").textContent = sentence;
  }

  #find(selector) {
    return this.#root.querySelector(selector);
  }
}

// Phones show the rubric as a sheet over the dialogue, or the dialogue alone; wide screens show both and ignore this.
// Both keep their places. Returns the function that shows one of the two.
function switchViews(root, first) {
  const links = [...root.querySelectorAll("[data-shows]")];
  const size = root.querySelector("[data-enlarges]");
  const show = (view) => {
    root.body.dataset.view = view;
    for (const link of links) {
      if (link.dataset.shows === view) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  for (const link of links) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      show(link.dataset.shows);
    });
  }
  size.addEventListener("click", () => {
    const large = root.body.toggleAttribute("data-large");
    size.setAttribute("aria-pressed", String(large));
  });
  show(first);
  return show;
}

// The translated sentences of _desk_words.html (data-say-to-go is toGo); fill("count", {done: 3}) puts values, written as
// the page's language does but in the digits that stand on the keys and in what the server wrote, into their {braces}.
function readWords(element, language = document.documentElement.lang) {
  const sentences = {};
  for (const [name, sentence] of Object.entries(element.dataset)) {
    sentences[name[3].toLowerCase() + name.slice(4)] = sentence;
  }
  const digits = new Intl.NumberFormat(language, { numberingSystem: "latn" });
  const format = (value) => (typeof value === "number" ? digits.format(value) : value);
  const fill = (name, values) => sentences[name].replace(/\{(\w+)\}/g, (_, slot) => format(values[slot]));
  return { ...sentences, fill, format };
}

const form = document.getElementById("sheet");
if (form) start();

function start() {
  const words = readWords(document.getElementById("words"));
  const status = new Status(document, words);
  const sheet = readSheet(words);
  const clock = new ActiveClock({ start: Number(form.elements.seconds.value) });
  const fields = () => {
    form.elements.seconds.value = clock.seconds;
    return [...new FormData(form)];
  };
  const unsent = new Unsent(form.dataset.keptAs);
  const lost = lostDialog(words, status);
  const showSaved = (state, body) => (state === "lost" ? lost(body) : status.saved(state));
  const draft = new Draft({ url: form.dataset.draft, fields, unsent, show: showSaved });
  const submission = new Submission({ url: form.action, fields, on: outcomes({ words, status, sheet, draft, unsent, lost }) });

  keepTime(clock);
  switchAdvance(sheet);
  switchHand(sheet);
  if (sweep()) status.alert(words.damaged);
  const kept = unsent.read();
  const restored = restore(kept);
  const begun = sheet.criteria.some((criterion) => criterion.score !== null);
  const notified = form.querySelector(".notices[role=status]"); // at the top of the sheet: a question was sent
  const desk = { status, sheet, draft, submission, show: switchViews(document, begun || notified ? "rubric" : "dialogue") };
  desk.evidence = new Evidence({ sheet, status, words, changed: () => changed(desk, draft) });
  if (restored) desk.evidence.restore(kept.fields);
  refresh(desk);
  sheet.openFirstUnanswered();
  listen(desk);
  if (form.dataset.heartbeat) keepLease({ url: form.dataset.heartbeat, fields: () => csrfOf(fields()), lost });
  if (restored) draft.change();
  // Back from the next item: what this page remembers of the last one is over.
  window.addEventListener("pageshow", (event) => event.persisted && location.reload());
}

function readSheet(words) {
  return new Sheet([...form.querySelectorAll("[data-criterion]")].map((element) => new Criterion(element, words)));
}

// The annotator's choice, on this device, whether a score opens the next criterion.
function switchAdvance(sheet) {
  const box = form.querySelector("[data-advances]");
  const choose = () => { sheet.advances = box.checked; };
  try {
    box.checked = localStorage.getItem(STAYS) === null;
  } catch {
    // Without storage the choice lasts for this page.
  }
  choose();
  box.addEventListener("change", () => {
    choose();
    try {
      if (box.checked) localStorage.removeItem(STAYS);
      else localStorage.setItem(STAYS, "yes");
    } catch {
      // See above.
    }
  });
}

// One-hand mode on a phone, on this device: the style sheet puts scores and buttons where the thumb is.
function switchHand(sheet) {
  const choice = form.querySelector("[data-hands]");
  const use = (hand) => {
    choice.value = hand;
    if (hand) document.body.dataset.hand = hand;
    else delete document.body.dataset.hand;
    sheet.current?.show();
  };
  try {
    const kept = localStorage.getItem(HAND);
    if (kept === "left" || kept === "right") use(kept);
  } catch {
    // Without storage the choice lasts for this page.
  }
  choice.addEventListener("change", () => {
    use(choice.value);
    const box = form.querySelector("[data-advances]");
    if (choice.value && !box.checked) box.click(); // one criterion after the other; it can be switched off again
    try {
      if (choice.value) localStorage.setItem(HAND, choice.value);
      else localStorage.removeItem(HAND);
    } catch {
      // See above.
    }
  });
  for (const button of form.querySelectorAll("[data-steps]")) {
    button.addEventListener("click", () => {
      sheet.holdStill();
      sheet.left = null;
      sheet.step(Number(button.dataset.steps));
      button.focus({ preventScroll: true });
    });
  }
}

function refresh({ sheet, status }) {
  sheet.refresh();
  status.count(sheet);
}

function listen(desk) {
  const { sheet, draft, status } = desk;
  let byPointer = false;
  document.addEventListener("pointerdown", ({ target }) => {
    byPointer = true;
    sheet.holdStill();
    if (sheet.containing(target)) sheet.left = null;
  });
  document.addEventListener("keydown", (event) => { byPointer = false; onKey(event, desk); });
  form.addEventListener("input", (event) => {
    if (!event.target.matches("textarea, input[type=number]")) return;
    sheet.containing(event.target)?.say("");
    changed(desk, draft);
  });
  form.addEventListener("click", ({ target }) => { if (target.closest("summary")) sheet.left = null; });
  form.addEventListener("change", (event) => {
    const criterion = sheet.containing(event.target);
    sheet.left = null;
    if (!criterion || event.target.matches("textarea, input[type=number]")) return;
    criterion.say("");
    changed(desk, draft);
    status.say(`${criterion.element.querySelector(".criterion-name").textContent}: ${criterion.shown}`);
    // Arrows inside the radio group also land here: somebody is still looking through the points.
    if (byPointer || !event.isTrusted) sheet.advanceFrom(criterion, () => document.querySelector("[data-submit]").focus());
  });
  document.addEventListener("submit", (event) => renewToken(event.target), { capture: true });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit(desk);
  });
}

function changed(desk, draft) {
  refresh(desk);
  draft.change();
}

function submit({ sheet, draft, submission, show }) {
  sheet.holdStill();
  show("rubric");
  if (!sheet.check()) return;
  draft.close();
  submission.send();
}

function onKey(event, desk) {
  if (document.querySelector("dialog[open], [popover]:popover-open")) return;
  const pressed = command(event);
  if (!pressed) return;
  desk.sheet.holdStill();
  if (CHOOSING.has(pressed.name)) desk.sheet.left = null;
  if (commands[pressed.name](desk, pressed) !== false) event.preventDefault();
}

// These keys choose a criterion or act on the open one. Any other leaves R with the criterion that was scored last.
const CHOOSING = new Set(["score", "side", "na", "next", "previous"]);

// A command that returns false leaves the key to the browser.
const commands = {
  score({ sheet }, { digit }) {
    const { current } = sheet;
    current.element.open = true;
    if (!current.number) return current.giveDigit(digit);
    current.number.focus();
    current.number.select(); // the digit begins the number anew
    return false;
  },
  // Of two texts the one on this side; the first one is on the right where the page is read from the right.
  side({ sheet }, { side }) {
    const { current } = sheet;
    if (!("pairwise" in current.element.dataset)) return false;
    const start = document.documentElement.dir === "rtl" ? "right" : "left";
    current.element.open = true;
    return current.giveDigit(side === start ? "1" : "2");
  },
  na({ sheet }) {
    sheet.current.element.open = true;
    return sheet.current.giveNotApplicable();
  },
  next: ({ sheet }) => sheet.step(1),
  previous: ({ sheet }) => sheet.step(-1),
  // Of the criterion just scored, when its score has opened the next one by itself.
  rationale({ sheet }) {
    const criterion = sheet.left?.rationale ? sheet.left : sheet.current;
    criterion.element.open = true;
    criterion.rationale?.focus();
  },
  evidence({ evidence, show }) {
    show("dialogue");
    evidence.begin();
  },
  read(_desk, { by }) {
    const text = document.querySelector("#dialogue .pane-scroll");
    if (getComputedStyle(text).overflowY === "visible") return false; // on a phone the whole page scrolls
    const top = text.scrollTop + by * text.clientHeight;
    text.scrollTo({ top: Math.max(0, Math.min(top, text.scrollHeight)) });
    return true;
  },
  "leave-text": ({ sheet }) => sheet.current.summary.focus(),
  submit: (desk) => submit(desk),
  save: ({ draft }) => void draft.flush(),
  shortcuts: () => document.getElementById("shortcuts").showModal(),
  undo: () => document.querySelector("[data-undo]")?.requestSubmit(),
};

function outcomes({ words, status, sheet, draft, unsent, lost }) {
  const again = (sentence = "", state = "unsaved") => {
    draft.reopen();
    status.busy("");
    status.alert(sentence);
    status.saved(state);
  };
  return {
    sending: () => status.busy(words.sending),
    waiting() {
      unsent.write([...new FormData(form)]);
      status.saved("offline");
      status.alert(words.waiting);
    },
    accepted({ next, opened_by }) {
      unsent.forget();
      if (opened_by === "get") location.assign(next);
      else postTo(next);
    },
    invalid({ detail, fields = {} }) {
      again(Object.keys(fields).length ? "" : detail);
      draft.change();
      sheet.sayAll(fields);
    },
    conflict(body) {
      again();
      lost(body);
    },
    signedOut: () => again(words.signIn, "signed-out"),
    refused: ({ detail }) => again(detail || words.refused),
  };
}

// The item is gone (its lease ran out), or the campaign takes nothing now (paused, closed); the server says which.
function lostDialog(words, status) {
  const dialog = document.getElementById("lost");
  return ({ code, detail }) => {
    status.saved("lost");
    dialog.querySelector("h2").textContent = code === "lease_lost" ? words.lostTitle : words.closedTitle;
    dialog.querySelector("[data-lost-detail]").textContent = detail || words.lostDetail;
    if (!dialog.open) dialog.showModal();
  };
}

// Puts back what this device kept because the server never had it. True when there was something.
function restore(kept) {
  if (!kept) return false;
  for (const [name, value] of kept.fields) {
    if (name !== "note" && !/^(score|rationale)-/.test(name)) continue;
    for (const input of form.querySelectorAll(`[name="${CSS.escape(name)}"]`)) put(input, value);
  }
  return true;
}

function put(input, value) {
  if (input.type === "radio" || input.type === "checkbox") input.checked ||= input.value === value;
  else if (input.type !== "number" || value !== "na") input.value = value;
}

// Opens the address by POST, as pressing a button there would: only a POST takes the next item.
function postTo(url) {
  const onward = document.createElement("form");
  onward.method = "post";
  onward.action = url;
  onward.append(form.elements.csrfmiddlewaretoken.cloneNode());
  renewToken(onward);
  document.body.append(onward);
  onward.submit();
}

function renewToken(posted) {
  const { csrfmiddlewaretoken } = posted.elements;
  if (csrfmiddlewaretoken) csrfmiddlewaretoken.value = freshToken() ?? csrfmiddlewaretoken.value;
}

function csrfOf(fields) {
  return fields.filter(([name]) => name === "csrfmiddlewaretoken" || name === "seconds" || name === "key");
}
