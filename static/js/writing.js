// The writing page: what is entered is kept on this device and saved as a draft; a submission is sent until the server
// answers, under a key that stores it once. Ctrl + Enter submits. Counts characters, what is pasted in, and the time.
import { Draft, Submission, Unsent } from "./desk/saving.js";

const IDLE_MS = 60_000; // of a pause, one minute counts at most

const form = document.querySelector("[data-writing]");
const boxes = [...form.querySelectorAll("[data-text]")];
const { seconds, pasted } = form.elements;
const state = form.querySelector("[data-state]");
const unsent = new Unsent(form.dataset.key);
const aborts = new AbortController();
let lastAt = Date.now();

function say(name) {
  state.textContent = form.dataset[name] ?? "";
}

function fields() {
  return [...new FormData(form)].map(([name, value]) => [name, String(value)]);
}

function count(box) {
  const shown = box.closest(".field").querySelector("[data-count]");
  shown.textContent = form.dataset.sayCount.replace("%s", [...box.value.trim()].length);
}

function spend() {
  const now = Date.now();
  seconds.value = Math.round(Number(seconds.value) + Math.min(now - lastAt, IDLE_MS) / 1000);
  lastAt = now;
}

const SAID = { saving: "saySaving", saved: "saySaved", offline: "sayOffline", away: "sayOffline", "signed-out": "saySignedOut", lost: "sayLost", unsaved: "sayOffline" };
const sent = new Set(); // drafts that this page has sent, whether an answer came or not

function entered() {
  return boxes.map((box) => box.value);
}

const draft = new Draft({
  url: form.dataset.draft,
  fields: () => {
    sent.add(JSON.stringify(entered()));
    return fields();
  },
  unsent,
  show: (what, body) => {
    if (what !== "lost" || !body?.texts) say(SAID[what]);
    else if (sent.has(JSON.stringify(body.texts))) {
      form.elements.based_on.value = body.based_on; // it is of this page: its answer was lost
      draft.reopen();
      draft.change();
    } else choose(body.texts, body.based_on);
  },
  signal: aborts.signal,
  stored: (body) => {
    form.elements.based_on.value = body.based_on ?? "";
    unsent.write(fields()); // what is entered since then is based on it
  },
});

// Another draft, perhaps of another device: until the author has chosen, neither changes.
const other = form.querySelector("[data-other]");
let texts = [];

function choose(found, basedOn = form.elements.based_on.value) {
  draft.close();
  texts = found;
  form.elements.based_on.value = basedOn;
  for (const box of boxes) box.readOnly = true;
  other.querySelector("[data-other-text]").textContent = found.join("\n\n");
  other.querySelector("[data-other-choice]").hidden = false;
  other.hidden = false;
}

function chosen(isOther) {
  for (const [place, box] of boxes.entries()) {
    if (isOther) box.value = texts[place] ?? "";
    box.readOnly = false;
    count(box);
  }
  other.hidden = true;
  draft.reopen();
  draft.change();
}

other.querySelector("[data-take-other]").addEventListener("click", () => chosen(true));
other.querySelector("[data-keep-own]").addEventListener("click", () => chosen(false));

const submission = new Submission({
  url: form.action,
  fields,
  signal: aborts.signal,
  on: {
    sending: () => say("saySending"),
    waiting: () => {
      unsent.write(fields(), { submit: true, url: form.action });
      say("sayOffline");
    },
    accepted: ({ next }) => {
      unsent.forget();
      aborts.abort();
      location.assign(next);
    },
    // The page says what is wrong; what was entered is in the form that is sent.
    invalid: () => form.submit(),
    conflict: () => form.submit(),
    signedOut: () => say("saySignedOut"),
    refused: () => form.submit(),
  },
});

const kept = unsent.read();
const before = new Map(kept?.fields);
const restored = boxes.map((box) => before.get(box.name) ?? box.value);
const isTyped = boxes.some((box) => box.value !== box.defaultValue); // before this script was there
if (kept && JSON.stringify(restored) !== JSON.stringify(entered())) {
  if (before.get("based_on") === form.elements.based_on.value && !isTyped) {
    for (const [place, box] of boxes.entries()) box.value = restored[place];
    draft.change();
  } else choose(restored);
} else if (isTyped) draft.change();

for (const box of boxes) {
  count(box);
  box.addEventListener("input", () => {
    spend();
    count(box);
    draft.change();
  });
  box.addEventListener("paste", (event) => {
    pasted.value = Number(pasted.value) + (event.clipboardData?.getData("text/plain").length ?? 0);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!other.hidden) return;
  spend();
  draft.close();
  submission.send();
});
if (kept?.submit && other.hidden) form.requestSubmit(); // it was submitted, and never answered
