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
const draft = new Draft({ url: form.dataset.draft, fields, unsent, show: (what) => say(SAID[what]), signal: aborts.signal });

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
for (const [name, value] of kept?.fields ?? []) {
  const box = boxes.find((one) => one.name === name);
  if (box && value !== box.value && box.value === box.defaultValue) box.value = value;
}
if (kept) draft.change();

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
  spend();
  draft.close();
  submission.send();
});
