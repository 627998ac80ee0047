// On the page of one's duties: what was submitted on this device and never answered is sent until it is stored.
import { resendKept } from "./saving.js";

const AGAIN_MS = 30_000;
const notice = document.querySelector("[data-resends]");

async function resend() {
  const { isLeft, stored, refused } = await resendKept();
  const { sayStored, sayLeft, sayRefused } = notice.dataset;
  const sentences = [stored ? sayStored : "", isLeft ? sayLeft : "", refused.length ? sayRefused : ""];
  const said = sentences.filter(Boolean).join(" ");
  const links = refused.map(({ url, detail }) => {
    const link = document.createElement("a");
    link.href = url;
    link.textContent = detail || url;
    return link;
  });
  if (said) notice.querySelector("[data-text]").replaceChildren(said, ...links.flatMap((link) => [" ", link]));
  if (said) notice.hidden = false;
  if (isLeft) setTimeout(resend, AGAIN_MS);
}

if (notice) resend();
