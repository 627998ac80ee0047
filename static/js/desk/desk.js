// The desk: joins the sheet, the keys, the draft, the lease and the submission.
import { ActiveClock, keepTime } from "./clock.js";
import { Criterion } from "./criterion.js";
import { Draft } from "./draft.js";
import { command } from "./keys.js";
import { keepLease } from "./lease.js";
import { Sheet } from "./sheet.js";
import { Status } from "./status.js";
import { Unsent, sweep } from "./storage.js";
import { Submission } from "./submission.js";
import { switchViews } from "./views.js";
import { readWords } from "./words.js";

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
  const unsent = new Unsent(form.elements.key.value);
  const lost = lostDialog(words, status);
  const showSaved = (state, body) => (state === "lost" ? lost(body) : status.saved(state));
  const draft = new Draft({ url: form.dataset.draft, fields, unsent, show: showSaved });
  const submission = new Submission({ url: form.action, fields, on: outcomes({ words, status, sheet, draft, unsent, lost }) });

  keepTime(clock);
  sweep();
  const restored = restore(unsent.read());
  const begun = sheet.criteria.some((criterion) => criterion.score !== null);
  const desk = { status, sheet, draft, submission, show: switchViews(document, begun ? "rubric" : "dialogue") };
  refresh(desk);
  sheet.openFirstUnanswered();
  listen(desk);
  keepLease({ url: form.dataset.heartbeat, fields: () => csrfOf(fields()), lost });
  if (restored) draft.change();
  // Back from the next item: what this page remembers of the last one is over.
  window.addEventListener("pageshow", (event) => event.persisted && location.reload());
}

function readSheet(words) {
  return new Sheet([...form.querySelectorAll("[data-criterion]")].map((element) => new Criterion(element, words)));
}

function refresh({ sheet, status }) {
  sheet.refresh();
  status.count(sheet);
}

function listen(desk) {
  const { sheet, draft, status } = desk;
  let byPointer = false;
  document.addEventListener("pointerdown", () => { byPointer = true; sheet.holdStill(); });
  document.addEventListener("keydown", (event) => { byPointer = false; onKey(event, desk); });
  form.addEventListener("input", (event) => {
    if (!event.target.matches("textarea, input[type=number]")) return;
    sheet.containing(event.target)?.say("");
    changed(desk, draft);
  });
  form.addEventListener("change", (event) => {
    const criterion = sheet.containing(event.target);
    if (!criterion || event.target.matches("textarea, input[type=number]")) return;
    criterion.say("");
    changed(desk, draft);
    status.say(`${criterion.element.querySelector(".criterion-name").textContent}: ${criterion.shown}`);
    // Arrows inside the radio group also land here: somebody is still looking through the points.
    if (byPointer || !event.isTrusted) sheet.advanceFrom(criterion, () => document.querySelector("[data-submit]").focus());
  });
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
  if (commands[pressed.name](desk, pressed) !== false) event.preventDefault();
}

// A command that returns false leaves the key to the browser.
const commands = {
  score({ sheet }, { digit }) {
    const { current } = sheet;
    current.element.open = true;
    if (!current.number) return current.giveDigit(digit);
    current.number.focus();
    return false;
  },
  na({ sheet }) {
    sheet.current.element.open = true;
    return sheet.current.giveNotApplicable();
  },
  next: ({ sheet }) => sheet.step(1),
  previous: ({ sheet }) => sheet.step(-1),
  rationale: ({ sheet }) => sheet.current.rationale?.focus(),
  "leave-text": ({ sheet }) => sheet.current.summary.focus(),
  submit: (desk) => submit(desk),
  save: ({ draft }) => void draft.flush(),
  shortcuts: () => document.getElementById("shortcuts").showModal(),
  undo: () => document.querySelector("[data-undo]")?.requestSubmit(),
};

function outcomes({ words, status, sheet, draft, unsent, lost }) {
  const again = (sentence = "") => {
    draft.reopen();
    status.busy("");
    status.alert(sentence);
  };
  return {
    sending: () => status.busy(words.sending),
    waiting() {
      unsent.write([...new FormData(form)]);
      status.saved("offline");
      status.alert(words.waiting);
    },
    accepted({ next }) {
      unsent.forget();
      location.assign(new URL(next, location.href));
    },
    invalid({ detail, fields = {} }) {
      again(Object.keys(fields).length ? "" : detail);
      sheet.sayAll(fields);
    },
    conflict(body) {
      again();
      lost(body);
    },
    signedOut: () => again(words.signIn),
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
    if (!/^(score|rationale)-/.test(name)) continue;
    for (const input of form.querySelectorAll(`[name="${CSS.escape(name)}"]`)) put(input, value);
  }
  return true;
}

function put(input, value) {
  if (input.type === "radio" || input.type === "checkbox") input.checked ||= input.value === value;
  else if (input.type !== "number" || value !== "na") input.value = value;
}

function csrfOf(fields) {
  return fields.filter(([name]) => name === "csrfmiddlewaretoken" || name === "seconds" || name === "key");
}
