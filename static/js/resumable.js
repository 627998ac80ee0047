// A file goes to the server in chunks (tus 1.0.0). The server says how much it has; what is kept here is only where it
// keeps that, so a reload, a lost chunk or a restarted server costs one chunk at most.
const CHUNK = 4 * 2 ** 20;
const PATIENCE = [500, 1000, 2000, 4000, 8000, 15000, 30000]; // milliseconds before each further try
const SPOKEN = { "Tus-Resumable": "1.0.0" };

export class Refusal extends Error {} // the server's no, with its sentence
class Trouble extends Error {} // worth another try

export class Upload {
  // `told(received)` is called as bytes arrive, `troubled(isTroubled)` when the connection is lost and found.
  constructor(file, address, csrf, { told = () => {}, troubled = () => {} } = {}) {
    Object.assign(this, { file, address, told, troubled, headers: { ...SPOKEN, "X-CSRFToken": csrf } });
    this.memory = `panelbench.upload ${address} ${file.name} ${file.size} ${file.lastModified}`;
    this.stopping = new AbortController();
  }

  // Resolves to the upload's key once all of the file is there.
  async send() {
    let place = (await this.continued()) ?? (await this.begun());
    while (place.offset < this.file.size) {
      place = await this.patient(() => this.chunk(place));
      this.told(place.offset);
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
    this.told(place.offset);
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
  const told = await answer.json().catch(() => ({}));
  return told.detail || `${answer.status} ${answer.statusText}`;
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
