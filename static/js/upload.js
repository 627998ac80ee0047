// A file goes to the server in chunks (tus 1.0.0). The server says how much it has; what is kept here is only where it
// keeps that, so a reload, a lost chunk or a restarted server costs one chunk at most.
const CHUNK = 4 * 2 ** 20;
const PATIENCE = [500, 1000, 2000, 4000, 8000, 15000, 30000]; // milliseconds before each further try
const SPOKEN = { "Tus-Resumable": "1.0.0" };

class Refusal extends Error {} // the server's no, with its sentence
class Trouble extends Error {} // worth another try

class Upload {
  // `showProgress(received)` is called as bytes arrive, `troubled(isTroubled)` when the connection is lost and found.
  constructor(file, address, csrf, { showProgress = () => {}, troubled = () => {} } = {}) {
    Object.assign(this, { file, address, showProgress, troubled, headers: { ...SPOKEN, "X-CSRFToken": csrf } });
    this.memory = `panelbench.upload ${address} ${file.name} ${file.size} ${file.lastModified}`;
    this.stopping = new AbortController();
  }

  // Resolves to the upload's key once all of the file is there.
  async send() {
    let place = (await this.continued()) ?? (await this.begun());
    while (place.offset < this.file.size) {
      place = await this.patient(() => this.chunk(place));
      this.showProgress(place.offset);
    }
    return place.url.replace(/\/$/, "").split("/").pop();
  }

  // Once an import has the file, there is nothing to continue.
  forget() {
    forget(this.memory);
  }

  async cancel() {
    this.stopping.abort();
    const url = remembered(this.memory);
    forget(this.memory);
    if (url) await fetch(url, { method: "DELETE", headers: this.headers }).catch(() => {});
  }

  // The server is the truth: what it does not know any more begins anew.
  async continued() {
    const url = remembered(this.memory);
    if (!url) return null;
    const answer = await this.patient(() => this.ask(url, { method: "HEAD" }));
    if (!answer.ok) return null;
    const place = { url, offset: Number(answer.headers.get("Upload-Offset")) };
    this.showProgress(place.offset);
    return place;
  }

  async begun() {
    const headers = { "Upload-Length": this.file.size, "Upload-Metadata": `filename ${base64(this.file.name)}` };
    const answer = await this.patient(() => this.ask(this.address, { method: "POST", headers }));
    if (!answer.ok) throw new Refusal(await sentence(answer));
    const url = new URL(answer.headers.get("Location"), location.href).pathname;
    remember(this.memory, url);
    return { url, offset: 0 };
  }

  async chunk({ url, offset }) {
    const body = this.file.slice(offset, offset + CHUNK);
    const headers = { "Upload-Offset": offset, "Content-Type": "application/offset+octet-stream" };
    const answer = await this.ask(url, { method: "PATCH", headers, body });
    if (answer.ok) return { url, offset: Number(answer.headers.get("Upload-Offset")) };
    // Another tab was faster, or an answer got lost: go on from where the server is.
    if (answer.status === 409) return (await this.continued()) ?? (await this.begun());
    if ([404, 410].includes(answer.status)) forget(this.memory);
    throw new Refusal(await sentence(answer));
  }

  async ask(url, options) {
    const { signal } = this.stopping;
    const sent = fetch(url, { ...options, signal, headers: { ...this.headers, ...options.headers } });
    const answer = await sent.catch((error) => {
      throw signal.aborted ? error : new Trouble();
    });
    if (answer.status === 429 || (answer.status >= 500 && answer.status !== 507)) throw new Trouble();
    return answer;
  }

  async patient(attempt) {
    for (let tries = 0; ; tries += 1) {
      try {
        const result = await attempt();
        this.troubled(false);
        return result;
      } catch (error) {
        if (!(error instanceof Trouble)) throw error;
        this.troubled(true);
        await pause(PATIENCE[Math.min(tries, PATIENCE.length - 1)], this.stopping.signal);
      }
    }
  }
}

function pause(milliseconds, signal) {
  return new Promise((resume, stop) => {
    const timer = setTimeout(resume, milliseconds);
    window.addEventListener("online", resume, { once: true });
    signal.addEventListener("abort", () => (clearTimeout(timer), stop(signal.reason)), { once: true });
  });
}

async function sentence(answer) {
  const body = await answer.json().catch(() => ({}));
  return body.detail || `${answer.status} ${answer.statusText}`;
}

const base64 = (text) => btoa(String.fromCodePoint(...new TextEncoder().encode(text)));

// Without storage an upload still goes through; it only can't be continued after a reload.
function remembered(memory) {
  try {
    return localStorage.getItem(memory);
  } catch {
    return null;
  }
}

function remember(memory, url) {
  try {
    localStorage.setItem(memory, url);
  } catch {
    // see above
  }
}

function forget(memory) {
  try {
    localStorage.removeItem(memory);
  } catch {
    // see above
  }
}

// The files chosen for an upload: those of a second choice, or a second drop, come to those of the first. In a form with
// [data-chosen] each has a line with its size and a button that takes it out again.
function keepChosen(form, input) {
  const list = form.querySelector("[data-chosen]");
  const template = form.querySelector("template[data-chosen-line]");
  const held = new Map();
  const show = () => {
    const files = new DataTransfer();
    held.forEach((file) => files.items.add(file));
    input.files = files.files;
    list.replaceChildren(...[...held].map(([key, file]) => lineFor(key, file)));
  };
  const lineFor = (key, file) => {
    const line = template.content.cloneNode(true).firstElementChild;
    line.querySelector("bdi").textContent = file.name;
    line.querySelector(".num").textContent = size(file.size);
    const remove = line.querySelector("button");
    remove.setAttribute("aria-label", `${remove.getAttribute("aria-label")} ${file.name}`);
    remove.addEventListener("click", () => {
      held.delete(key);
      show();
      (list.querySelector("button") ?? input).focus();
    });
    return line;
  };
  const add = () => {
    if (!input.multiple) held.clear();
    for (const file of input.files) held.set(`${file.name} ${file.size} ${file.lastModified}`, file);
    show();
  };
  input.addEventListener("change", add);
  if (input.files.length) add(); // chosen before this script was there, or kept by the browser
}

// As people read it: 7.8 kB.
function size(bytes) {
  const [unit, factor] = [["gigabyte", 2 ** 30], ["megabyte", 2 ** 20], ["kilobyte", 2 ** 10]].find(([, each]) => bytes >= each) ?? ["byte", 1];
  const format = { style: "unit", unit, maximumFractionDigits: 1 };
  return new Intl.NumberFormat(document.documentElement.lang, format).format(bytes / factor);
}

// button[data-chooses-folder]: puts every file of a chosen folder into the file input of that id, but for hidden ones.
export function chooseFolders(root) {
  for (const button of root.querySelectorAll("[data-chooses-folder]")) {
    const folder = Object.assign(document.createElement("input"), { type: "file", multiple: true });
    if (!("webkitdirectory" in folder)) continue; // the button stays hidden
    folder.webkitdirectory = true;
    folder.addEventListener("change", () => fill(document.getElementById(button.dataset.choosesFolder), folder));
    button.addEventListener("click", () => folder.click());
    button.hidden = false;
  }
}

function fill(input, folder) {
  const files = new DataTransfer();
  for (const file of folder.files) {
    if (!/(^|\/)\./.test(file.webkitRelativePath)) files.items.add(file);
  }
  folder.value = "";
  input.files = files.files;
  input.dispatchEvent(new Event("change", { bubbles: true }));
}

// .upload: names the chosen files in its <output>, and takes files dropped on it. In a form[data-uploads-to] they go to
// that address one after the other, in chunks, with a line for each; then the form is sent with their keys instead.

export function showUploads(root) {
  for (const zone of root.querySelectorAll(".upload")) {
    takeDrops(zone);
    const form = zone.closest("form[data-uploads-to]");
    if (!form) continue;
    const input = zone.querySelector("input[type=file]");
    keepChosen(form, input);
    sendInChunks(form, input);
  }
}

function takeDrops(zone) {
  const input = zone.querySelector("input[type=file]");
  const chosen = zone.querySelector("output");
  input.addEventListener("change", () => {
    if (chosen) chosen.textContent = [...input.files].map((file) => file.name).join(", ");
  });
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.dataset.over = "";
  });
  zone.addEventListener("dragleave", () => delete zone.dataset.over);
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    delete zone.dataset.over;
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });
}

function sendInChunks(form, input) {
  const list = form.querySelector("[data-uploads]");
  const cancel = form.querySelector("[data-cancels-uploads]");
  const refusal = form.querySelector("[data-upload-refusal]");
  let under = [];
  const busy = (isBusy) => {
    cancel.hidden = !isBusy;
    form.querySelector("[data-chosen]").hidden = isBusy;
    input.disabled = isBusy;
    form.querySelector("[type=submit]").disabled = isBusy;
  };
  form.addEventListener("submit", async (event) => {
    if (!input.files.length) return; // the server says what is missing
    event.preventDefault();
    refusal.hidden = true;
    list.replaceChildren();
    const csrf = form.elements.csrfmiddlewaretoken.value;
    under = [...input.files].map((file) => {
      const line = lineFor(form, list, file);
      return { line, upload: new Upload(file, form.dataset.uploadsTo, csrf, line) };
    });
    busy(true);
    try {
      for (const { upload, line } of under) {
        form.append(field("upload", await upload.send()));
        line.showProgress(upload.file.size);
      }
      under.forEach(({ upload }) => upload.forget());
      cancel.hidden = true;
      form.submit();
    } catch (error) {
      form.querySelectorAll("input[name=upload]").forEach((each) => each.remove());
      busy(false);
      if (error instanceof Refusal) say(refusal, error.message);
      else if (error.name !== "AbortError") throw error;
    }
  });
  cancel.addEventListener("click", async () => {
    await Promise.all(under.map(({ upload }) => upload.cancel()));
    list.replaceChildren();
    busy(false);
    input.focus();
  });
  window.addEventListener("pageshow", () => busy(false)); // back from the next page
}

// One file's line: its name, how much has arrived, and how long the rest will take.
function lineFor(form, list, file) {
  const line = form.querySelector("template[data-upload-line]").content.cloneNode(true).firstElementChild;
  const [bar, done, rest] = ["progress", "[data-done]", "[data-rest]"].map((part) => line.querySelector(part));
  const { words } = form.querySelector("template[data-upload-line]").dataset;
  const [lost, seconds, minutes] = words.split("|");
  line.querySelector("[data-name]").textContent = file.name;
  bar.setAttribute("aria-label", file.name);
  list.append(line);
  let first;
  const showProgress = (received) => {
    const share = file.size ? received / file.size : 1;
    first ??= { received, at: performance.now() };
    bar.value = share;
    done.textContent = `${Math.floor(100 * share)} % · ${size(received)} / ${size(file.size)}`;
    const speed = (received - first.received) / (performance.now() - first.at);
    rest.textContent = speed > 0 && share < 1 ? left((file.size - received) / speed / 1000) : "";
  };
  const left = (time) => (time < 90 ? seconds.replace("0", Math.ceil(time)) : minutes.replace("0", Math.ceil(time / 60)));
  showProgress(0);
  first = undefined;
  return { showProgress, troubled: (isTroubled) => isTroubled && (rest.textContent = lost) };
}

function field(name, value) {
  return Object.assign(document.createElement("input"), { type: "hidden", name, value });
}

function say(element, text) {
  element.querySelector("[data-text]").textContent = text;
  element.hidden = false;
}
