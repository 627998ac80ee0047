// The desk: joins the sheet, the keys, the draft, the lease and the submission; the next item comes without a new page.
import { Evidence } from "./evidence.js";
import { KeysAhead, command, isEnter, isTyping } from "./keys.js";
import { ActiveClock, Criterion, Sheet, keepTime } from "./sheet.js";
import { Draft, Submission, Unsent, backOff, freshToken, keepLease, pageAt, post, resendKept, sweep } from "./saving.js";

const STAYS = "panelbench.stays"; // in the local storage of who wants no next criterion opened
const HAND = "panelbench.hand"; // there too: the hand that holds the phone, "left" or "right"

// What the frame around the sheet says: the saved state in the bar, the count at the foot, the live line for screen readers.
const ICONS = { saving: "saving", saved: "saved", offline: "offline", away: "offline", "signed-out": "lock", unsaved: "warning", lost: "warning" };
const SPOKEN = new Set(["offline", "away", "signed-out", "unsaved", "lost"]);

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

let desk = null; // the item that is on the page now
if (document.getElementById("sheet")) start();
// Back from the next item: what this page remembers of the last one is over.
window.addEventListener("pageshow", (event) => event.persisted && location.reload());
window.addEventListener("popstate", () => location.pathname !== desk?.path && location.reload());

// Begins with the item on the page. `ahead`: the keys that were pressed for it before it was there.
function start(ahead = new KeysAhead()) {
  const form = document.getElementById("sheet");
  const words = readWords(document.getElementById("words"));
  const ending = new AbortController();
  const { signal } = ending;
  const status = new Status(document, words);
  const sheet = readSheet(form, words);
  const clock = new ActiveClock({ start: Number(form.elements.seconds.value) + ahead.seconds });
  const fields = () => {
    form.elements.seconds.value = clock.seconds;
    return [...new FormData(form)];
  };
  const unsent = new Unsent(form.dataset.keptAs);
  const lost = lostDialog(words, status);
  const showSaved = (state, body) => (state === "lost" ? lost(body) : status.saved(state));
  const draft = new Draft({ url: form.dataset.draft, fields, unsent, show: showSaved, signal });
  desk = { form, words, status, sheet, draft, unsent, lost, ending, signal, ahead: null, path: location.pathname };
  desk.submission = new Submission({ url: form.action, fields, on: outcomes(desk), signal });

  keepTime(clock, document, signal);
  switchAdvance(desk);
  switchHand(desk);
  if (sweep()) status.alert(words.damaged);
  const kept = unsent.read();
  const restored = restore(form, kept);
  const begun = sheet.criteria.some((criterion) => criterion.score !== null);
  const notified = form.querySelector(".notices[role=status]"); // at the top of the sheet: a question was sent
  desk.show = switchViews(document, begun || notified ? "rubric" : "dialogue");
  desk.evidence = new Evidence({ sheet, status, words, changed: () => changed(desk), signal });
  if (restored) desk.evidence.restore(kept.fields);
  refresh(desk);
  sheet.openFirstUnanswered();
  listen(desk);
  if (form.dataset.heartbeat) keepLease({ url: form.dataset.heartbeat, fields: () => csrfOf(fields()), lost, signal });
  if (restored) draft.change();
  if (kept?.submit) submit(desk); // it was submitted, and the server never answered
  resendKept({ except: form.dataset.keptAs, fields: () => csrfOf([...new FormData(form)]) });
  playAhead(desk, ahead);
}

function readSheet(form, words) {
  return new Sheet([...form.querySelectorAll("[data-criterion]")].map((element) => new Criterion(element, words)));
}

// The annotator's choice, on this device, whether a score opens the next criterion.
function switchAdvance({ form, sheet }) {
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
function switchHand({ form, sheet }) {
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
  const { form, sheet, status, signal } = desk;
  let byPointer = false;
  const pointed = ({ target }) => {
    byPointer = true;
    sheet.holdStill();
    if (sheet.containing(target)) sheet.left = null;
  };
  document.addEventListener("pointerdown", pointed, { signal });
  document.addEventListener("keydown", (event) => { byPointer = false; onKey(event, desk); }, { signal });
  form.addEventListener("input", (event) => {
    if (!event.target.matches("textarea, input[type=number]")) return;
    sheet.containing(event.target)?.say("");
    changed(desk);
  });
  form.addEventListener("click", ({ target }) => { if (target.closest("summary")) sheet.left = null; });
  form.addEventListener("change", (event) => {
    const criterion = sheet.containing(event.target);
    sheet.left = null;
    if (!criterion || event.target.matches("textarea, input[type=number]")) return;
    criterion.say("");
    changed(desk);
    status.say(`${criterion.element.querySelector(".criterion-name").textContent}: ${criterion.shown}`);
    // Arrows inside the radio group also land here: somebody is still looking through the points. After a key the next
    // criterion is open before the next key comes; a finger gets a moment to see what it chose.
    if (!event.isTrusted) sheet.advanceFrom(criterion, toSubmit);
    else if (byPointer) sheet.advanceSoon(criterion, toSubmit);
  });
  const leaving = (event) => {
    renewToken(event.target);
    if (event.target !== form && !event.defaultPrevented) desk.isLeaving = true;
  };
  document.addEventListener("submit", leaving, { capture: true, signal });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit(desk);
  });
}

// After the last score: to the button, or to a required question about the item that has no answer yet.
function toSubmit() {
  const open = [...document.querySelectorAll("[data-whole-item]:required")].find(({ value }) => !value);
  (open ?? document.querySelector("[data-submit]")).focus();
}

function wholeItemFieldsOf({ form }) {
  return [...form.querySelectorAll("[data-whole-item]")];
}

// Whether the answers about the item are what the rubric asks for; if not, says so. `refused`: sentences by name.
function checkWholeItem(desk, refused = {}) {
  const wrong = wholeItemFieldsOf(desk).filter((field) => {
    const place = document.getElementById(`error-${field.name}`);
    const isWrong = !field.validity.valid || field.name in refused;
    place.textContent = isWrong ? refused[field.name] || place.dataset.correction : "";
    place.hidden = !isWrong;
    return isWrong;
  });
  wrong[0]?.focus();
  return !wrong.length;
}

function changed(desk) {
  refresh(desk);
  desk.draft.change();
}

// What was sent stays as it is until there is an answer: every try sends the same.
function freeze({ form, sheet }, isSent) {
  sheet.isSent = isSent;
  form.querySelector(".pane-scroll").inert = isSent;
}

// True when the item is on its way; until the next one is there, keys are kept for it.
function submit(desk) {
  const { sheet, draft, submission, show } = desk;
  sheet.holdStill();
  show("rubric");
  if (!sheet.check() || !checkWholeItem(desk)) return false;
  draft.close();
  freeze(desk, true);
  desk.ahead ??= new KeysAhead();
  submission.send();
  return true;
}

function onKey(event, desk) {
  if (desk.isLeaving) return void event.preventDefault(); // the page is about to go: no key may change its scores
  if (document.querySelector("dialog[open], [popover]:popover-open")) return;
  if (desk.ahead) return keepAhead(event, desk);
  const pressed = command(event);
  if (!pressed) return;
  desk.sheet.advanceNow();
  if (CHOOSING.has(pressed.name)) desk.sheet.left = null;
  if (commands[pressed.name](desk, pressed) !== false) event.preventDefault();
}

// Submitted: Ctrl+Enter again asks the server at once, every other key waits for the next item.
function keepAhead(event, desk) {
  if (event.key === "Enter" && desk.ahead.isEmpty && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    desk.submission.send();
  } else if (desk.ahead.take(event)) {
    event.preventDefault();
  }
}

// Plays the keys that came before the item. A key that has no effect, or a sheet that is not complete, ends it: what
// follows was meant for another item.
function playAhead(desk, ahead) {
  while (!ahead.isEmpty) {
    const pressed = ahead.next();
    desk.sheet.advanceNow();
    if (CHOOSING.has(pressed.name)) desk.sheet.left = null;
    const isAboutItem = document.activeElement?.matches("[data-whole-item]");
    if (pressed.name === "submit" || (pressed.name === "enter" && (isAboutItem || document.activeElement?.matches("[data-submit]")))) {
      desk.ahead = ahead;
      if (submit(desk)) return;
      desk.ahead = null;
    } else if (pressed.name !== "enter") {
      if (isAboutItem && IGNORED_BY_NUMBERS.has(pressed.name)) continue;
      if (played[pressed.name]?.(desk, pressed) !== false) continue;
    }
    desk.status.alert(desk.words.keysLeft);
    return;
  }
}

const IGNORED_BY_NUMBERS = new Set(["side", "na", "next", "previous", "whole-item"]);

// Keys that the browser itself would put into a field.
const played = {
  "whole-item": (desk) => commands["whole-item"](desk),
  score(desk, pressed) {
    const field = wholeItemFieldsOf(desk).find((one) => one === document.activeElement);
    if (field) {
      field.value += pressed.digit;
      return entered(field);
    }
    const { current } = desk.sheet;
    const { number } = current;
    if (!number) return commands.score(desk, pressed) && (current.scale.disabled || current.has(pressed.digit));
    const isBegun = document.activeElement === number;
    commands.score(desk, pressed);
    number.value = isBegun ? number.value + pressed.digit : pressed.digit;
    return entered(number);
  },
  side: (desk, pressed) => commands.side(desk, pressed),
  na: (desk, pressed) => commands.na(desk, pressed),
  next: (desk, pressed) => commands.next(desk, pressed),
  previous: (desk, pressed) => commands.previous(desk, pressed),
  rationale: (desk, pressed) => commands.rationale(desk, pressed),
  "leave-text": (desk, pressed) => commands["leave-text"](desk, pressed),
  text(_desk, { text }) {
    const field = document.activeElement;
    if (!field?.matches("textarea")) return false;
    field.value += text;
    return entered(field);
  },
  erase() {
    const field = document.activeElement;
    if (!field?.matches("textarea")) return false;
    field.value = [...field.value].slice(0, -1).join("");
    return entered(field);
  },
};

function entered(field) {
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

// These keys choose a criterion or act on the open one. Any other leaves R with the criterion that was scored last.
const CHOOSING = new Set(["score", "side", "na", "next", "previous"]);

// A command that returns false leaves the key to the browser.
const commands = {
  score({ sheet, words }, { digit }) {
    const { current } = sheet;
    current.element.open = true;
    if (!current.number) {
      if (!current.giveDigit(digit) && !current.scale.disabled) current.say(words.outOfRange);
      return true;
    }
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
  "whole-item"(desk) {
    const fields = wholeItemFieldsOf(desk);
    const field = fields.find(({ value }) => !value) ?? fields[0];
    field?.focus();
    field?.select();
    return Boolean(field);
  },
  "leave-text": ({ sheet }) => sheet.current.summary.focus(),
  submit: (desk) => void submit(desk),
  save: ({ draft }) => void draft.flush(),
  shortcuts: () => document.getElementById("shortcuts").showModal(),
  undo: () => document.querySelector("[data-undo]")?.requestSubmit(),
};

function outcomes(desk) {
  const { form, words, status, sheet, draft, unsent, lost } = desk;
  const again = (sentence = "", state = "unsaved") => {
    const isAhead = desk.ahead && !desk.ahead.isEmpty;
    desk.ahead = null; // what was pressed was meant for the next item
    freeze(desk, false);
    draft.reopen();
    status.busy("");
    status.alert([sentence, isAhead ? words.keysLeft : ""].filter(Boolean).join(" "));
    status.saved(state);
  };
  return {
    sending() {
      unsent.write([...new FormData(form)], { submit: true, url: form.action });
      status.busy(words.sending);
    },
    waiting({ hasAnswered, seconds }) {
      status.saved(hasAnswered ? "away" : "offline");
      status.alert(hasAnswered ? words.fill("waitingServer", { seconds }) : words.waiting);
    },
    accepted({ next, opened_by }) {
      unsent.forget();
      status.alert("");
      if (opened_by === "get") location.assign(next);
      else if (opened_by === "view") showNext(desk, next, () => pageAt(next));
      else takeNext(desk, next);
    },
    invalid({ detail, fields = {} }) {
      again(Object.keys(fields).length ? "" : detail);
      draft.change();
      sheet.sayAll(fields);
      if (wholeItemFieldsOf(desk).some(({ name }) => name in fields)) checkWholeItem(desk, fields);
    },
    conflict(body) {
      again();
      unsent.write([...new FormData(form)]);
      lost(body);
    },
    signedOut: () => again(words.signIn, "signed-out"),
    refused: ({ detail }) => again(detail || words.refused),
  };
}

// Takes the next item, and puts it into this page: a new page would lose the keys that are pressed meanwhile.
async function takeNext(desk, url) {
  const taken = await untilThere(desk, () => post(url, csrfOf([...new FormData(desk.form)])));
  const { next, opened_by } = taken.body;
  if (taken.kind !== "ok" || !next || opened_by === "get") return location.assign(next ?? url);
  return showNext(desk, next, () => pageAt(next));
}

// Puts what comes next into this page, an item or a view between items, and gives it the keys pressed meanwhile. Any other
// page is loaded as a whole.
async function showNext(before, url, ask) {
  const page = await untilThere(before, ask);
  const isItem = page.document?.getElementById("sheet");
  if (!isItem && !page.document?.querySelector("[data-between]")) return location.assign(url);
  before.ending.abort();
  putInPlace(page.document);
  history.pushState(null, "", page.url);
  if (isItem) start(before.ahead);
  else between(before);
  return undefined;
}

// A view between items, such as the feedback of the training or the result of an exam. Enter does what its first button
// does; keys that come meanwhile wait for what follows. Keys that came before it and mean nothing here are left out, and
// so are all after them: they were meant for an item that nobody has seen yet.
function between({ words, ahead }) {
  const main = document.getElementById("main");
  const notice = main.querySelector("[data-between]");
  const status = { alert: (sentence) => { notice.hidden = !sentence; notice.textContent = sentence; } };
  const way = main.querySelector("[data-goes-on]"); // a form or a link; none where the annotator has to choose
  const ending = new AbortController();
  const { signal } = ending;
  desk = { words, status, ending, ahead: null, path: location.pathname };
  const here = desk;
  const goOn = (keys) => {
    here.ahead = keys;
    const url = way.action ?? way.href;
    showNext(here, url, () => (way.matches("form") ? pageAt(url, [...new FormData(way)]) : pageAt(url)));
  };
  const pressed = (event) => {
    if (here.ahead) {
      if (here.ahead.take(event)) event.preventDefault();
    } else if (way && isEnter(event) && !isTyping(event.target) && !event.target.closest("a, button, summary")) {
      event.preventDefault();
      goOn(new KeysAhead());
    }
  };
  const chosen = (event) => {
    if (event.type === "click" && (event.ctrlKey || event.metaKey || event.shiftKey)) return;
    event.preventDefault();
    if (!here.ahead) goOn(new KeysAhead());
  };
  document.addEventListener("keydown", pressed, { signal });
  way?.addEventListener(way.matches("form") ? "submit" : "click", chosen, { signal });
  main.focus({ preventScroll: true });
  if (ahead.isEmpty) return;
  if (way && ahead.next().name === "enter") goOn(ahead);
  else status.alert(words.keysLeft);
}

// Asks until there is an answer; says meanwhile that the scores are stored.
async function untilThere({ status, words }, ask) {
  for (let tries = 0; ; tries += 1) {
    const answer = await ask();
    if (answer.kind !== "unavailable") return answer;
    status.alert(words.storedNextLater);
    const seconds = backOff(tries, answer.retryAfter);
    await new Promise((resolve) => { setTimeout(resolve, 1000 * seconds); });
  }
}

function putInPlace(next) {
  const { hand, large } = document.body.dataset;
  document.title = next.title;
  document.body.replaceWith(document.adoptNode(next.body));
  if (hand) document.body.dataset.hand = hand;
  if (large !== undefined) document.body.toggleAttribute("data-large", true);
  window.scrollTo(0, 0);
}

// The item is gone (its lease ran out), it was submitted in another tab, or nothing can be submitted now; the server says.
function lostDialog(words, status) {
  const dialog = document.getElementById("lost");
  return ({ code, detail, title, rows = [], change }) => {
    status.saved("lost");
    dialog.querySelector("h2").textContent = title || (code === "lease_lost" ? words.lostTitle : words.closedTitle);
    dialog.querySelector("[data-lost-detail]").textContent = detail || words.lostDetail;
    const both = dialog.querySelector("[data-both]");
    both.hidden = !rows.length;
    both.tBodies[0].replaceChildren(...rows.map(comparedRow));
    const link = dialog.querySelector("[data-change]");
    link.hidden = !change;
    if (change) link.href = change;
    if (!dialog.open) dialog.showModal();
  };
}

function comparedRow({ name, lang, dir, stored, sent }) {
  const row = document.createElement("tr");
  for (const [tag, text] of [["th", name], ["td", stored], ["td", sent]]) {
    const cell = document.createElement(tag);
    cell.textContent = text;
    if (tag === "th") Object.assign(cell, { scope: "row", lang, dir });
    else cell.dir = "auto";
    row.append(cell);
  }
  return row;
}

// Puts back what this device kept because the server never had it. True when there was something.
function restore(form, kept) {
  if (!kept) return false;
  for (const [name, value] of kept.fields) {
    const isAboutItem = form.elements[name]?.matches?.("[data-whole-item]");
    if (name !== "note" && !isAboutItem && !/^(score|rationale)-/.test(name)) continue;
    for (const input of form.querySelectorAll(`[name="${CSS.escape(name)}"]`)) put(input, value);
  }
  return true;
}

function put(input, value) {
  if (input.type === "radio" || input.type === "checkbox") input.checked ||= input.value === value;
  else if (input.type !== "number" || value !== "na") input.value = value;
}

function renewToken(posted) {
  const { csrfmiddlewaretoken } = posted.elements;
  if (csrfmiddlewaretoken) csrfmiddlewaretoken.value = freshToken() ?? csrfmiddlewaretoken.value;
}

function csrfOf(fields) {
  return fields.filter(([name]) => name === "csrfmiddlewaretoken" || name === "seconds" || name === "key");
}
