// An address with a #hash leads to its target also where the target is folded away, or moves because sections above it
// are fetched after the jump: it is scrolled to again after each swap, until the person scrolls, points or presses a key.
const MOVED = 8; // pixels from where the last jump left the target: more than rounding
let isLeading = false;
let leftAt = null; // the target's place in the window after the last jump

function target() {
  try {
    return document.getElementById(decodeURIComponent(location.hash.slice(1)));
  } catch {
    return null; // a % that encodes nothing
  }
}

function lead() {
  const goal = isLeading ? target() : null;
  if (!goal) return;
  const inside = goal.matches("section") ? goal.querySelector("details.fold") : null;
  for (let fold = goal.closest("details") ?? inside; fold; fold = fold.parentElement.closest("details")) fold.open = true;
  goal.scrollIntoView({ block: "start", behavior: "instant" });
  leftAt = goal.getBoundingClientRect().top;
}

function begin() {
  isLeading = true;
  lead();
}

const stop = () => (isLeading = false);
for (const sign of ["wheel", "touchmove", "keydown", "pointerdown"]) addEventListener(sign, stop, { capture: true, passive: true });

// The page was scrolled by other means, such as the scroll bar.
document.addEventListener("htmx:beforeSwap", () => {
  const top = target()?.getBoundingClientRect().top;
  if (top !== undefined && leftAt !== null && Math.abs(top - leftAt) > MOVED) stop();
});
for (const moment of ["htmx:afterSwap", "htmx:afterSettle"]) document.addEventListener(moment, lead);

// Back, forward and reload return to where the page was scrolled to.
const isNew = performance.getEntriesByType("navigation")[0]?.type === "navigate";
addEventListener("DOMContentLoaded", () => isNew && begin());
addEventListener("load", lead);
addEventListener("hashchange", begin);
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href*='#']");
  if (link?.href === location.href) setTimeout(begin); // the hash that is there already: nothing changes
});
