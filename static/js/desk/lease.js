// Keeps the item on this desk while somebody looks at it: one beat a minute, and one on coming back.
import { post } from "./wire.js";

const BEAT_MS = 60_000;

export function keepLease({ url, fields, lost }) {
  const beat = async () => {
    if (document.hidden) return;
    const { kind, body } = await post(url, fields());
    if (kind !== "conflict") return;
    clearInterval(timer);
    lost(body);
  };
  const timer = setInterval(beat, BEAT_MS);
  document.addEventListener("visibilitychange", beat);
}
