// Evidence: text that is marked in a turn or a field and attached to a criterion, by mouse, touch or keys.
//
// An element with data-part ("turn:0", "field:answer") has the stored text as its text. Offsets are sent in code points
// of the stored text, half-open; data-returns says where a line end of two characters is shown as one.

// --- pure: places in a text ------------------------------------------------------------------------------------------

// UTF-16 places of the beginnings of what readers see as one character, and of the end.
export function graphemes(text, language) {
  return boundaries(text, language, "grapheme");
}

function boundaries(text, language, granularity) {
  if (!globalThis.Intl?.Segmenter) return [...Array(text.length + 1).keys()];
  const segments = new Intl.Segmenter(known(language), { granularity }).segment(text);
  return [...[...segments].map(({ index }) => index), text.length];
}

function known(language) {
  try {
    return Intl.getCanonicalLocales(language || "und");
  } catch {
    return "und";
  }
}

// The words of a text as [start, end], in UTF-16 places.
export function wordsOf(text, language) {
  if (!globalThis.Intl?.Segmenter) return [...text.matchAll(/\S+/gu)].map((found) => [found.index, found.index + found[0].length]);
  const segments = [...new Intl.Segmenter(known(language), { granularity: "word" }).segment(text)];
  return segments.filter(({ segment }) => segment.trim()).map(({ index, segment }) => [index, index + segment.length]);
}

// Without the space at its ends, and with whole characters; null when nothing is left.
export function snapped(text, [from, to], language) {
  const places = graphemes(text, language);
  let start = places.findLast((place) => place <= from) ?? 0;
  let end = places.find((place) => place >= to) ?? text.length;
  while (start < end && !text[start].trim()) start += 1;
  while (end > start && !text[end - 1].trim()) end -= 1;
  return start < end ? [start, end] : null;
}

// UTF-16 places of the shown text as code points of the stored one, and back. `returns`: code points of the shown text.
export function toStored(text, place, returns) {
  const points = [...text.slice(0, place)].length;
  return points + returns.filter((each) => each < points).length;
}

export function toShown(text, stored, returns) {
  const points = stored - returns.filter((each, before) => each + before < stored).length;
  return [...text].slice(0, points).join("").length;
}

// Of every UTF-16 place of a formatted text, its place in the text as it is written: the same words in the same order.
// Marks of emphasis may stand inside a word: `**Note**:` is the word `Note:`, not a later `Note:`.
export function aligned(shown, source) {
  const map = [];
  let from = 0;
  for (const [text] of shown.matchAll(/\S+|\s+/gu)) {
    const whole = text.trim() ? wordAt(source, text, from) : -1;
    if (whole >= 0) from = whole;
    for (const char of text.split("")) {
      const found = source.indexOf(char, from);
      const isNear = found >= 0 && found - from < 40;
      map.push(isNear ? found : Math.min(from, source.length - 1));
      if (isNear && (char.trim() || found === from)) from = found + 1;
    }
  }
  return map;
}

const MARKS = "[*_~`\\\\]*";
const FARTHEST = 400; // markup between two words: a link's address, the line below the head of a table

function wordAt(source, word, from) {
  const letters = [...word].map((letter) => letter.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&"));
  const found = new RegExp(letters.join(MARKS), "u").exec(source.slice(from, from + FARTHEST + word.length));
  return found ? from + found.index : -1;
}

// --- the texts on the page -------------------------------------------------------------------------------------------

export class Part {
  constructor(element) {
    this.element = element;
    this.text = element.textContent;
    this.language = element.closest("[lang]")?.lang ?? "";
    this.returns = (element.dataset.returns ?? "").split(" ").filter(Boolean).map(Number);
    const [kind, ...name] = element.dataset.part.split(":");
    this.place = kind === "turn" ? { turn: Number(name[0]) } : { field: name.join(":") };
    this.where = element.dataset.where;
    this.source = element.dataset.source ?? this.text;
    this.map = this.source === this.text ? null : aligned(this.text, this.source);
  }

  get isRightToLeft() {
    return getComputedStyle(this.element).direction === "rtl";
  }

  // The UTF-16 places of the part of a range that lies in this text.
  within(range) {
    const whole = document.createRange();
    whole.selectNodeContents(this.element);
    const place = (node, offset) => {
      if (whole.comparePoint(node, offset) < 0) return 0;
      if (whole.comparePoint(node, offset) > 0) return this.text.length;
      const before = whole.cloneRange();
      before.setEnd(node, offset);
      return before.toString().length;
    };
    return [place(range.startContainer, range.startOffset), place(range.endContainer, range.endOffset)];
  }

  range([start, end]) {
    const range = document.createRange();
    range.setStart(...this.#node(start, false));
    range.setEnd(...this.#node(end, true));
    return range;
  }

  #node(place, isEnd) {
    const walker = document.createTreeWalker(this.element, NodeFilter.SHOW_TEXT);
    let left = place;
    let last = [this.element, 0];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (left < node.length || (isEnd && left === node.length)) return [node, left];
      left -= node.length;
      last = [node, node.length];
    }
    return last;
  }

  span(places) {
    const [start, end] = this.map ? [this.map[places[0]], this.map[places[1] - 1] + 1] : places;
    const quote = this.source.slice(start, end);
    return { ...this.place, start: toStored(this.source, start, this.returns), end: toStored(this.source, end, this.returns), quote };
  }

  places({ start, end }) {
    const places = [toShown(this.source, start, this.returns), toShown(this.source, end, this.returns)];
    if (!this.map) return places;
    const first = this.map.findIndex((place) => place >= places[0]);
    return [first, Math.max(first, this.map.findLastIndex((place) => place < places[1])) + 1];
  }

  holds({ turn, field }) {
    return "turn" in this.place ? this.place.turn === turn : turn === undefined && this.place.field === field;
  }
}

// --- marking ---------------------------------------------------------------------------------------------------------

export class Evidence {
  #sheet;
  #status;
  #words;
  #changed;
  #bar = document.querySelector("[data-mark-bar]:has(option)"); // none where no criterion takes evidence
  #choice = document.querySelector("[data-mark-for]");
  #parts = [...document.querySelectorAll("[data-part]")].map((element) => new Part(element));
  #pending = null; // {part, places}
  #keys = null; // {part, first, last}: words chosen by the keys
  #isLeft = false; // the last press was on the bar
  #done = []; // what Ctrl+Z takes back, the newest last

  constructor({ sheet, status, words, changed, signal }) {
    this.#sheet = sheet;
    this.#status = status;
    this.#words = words;
    this.#changed = changed;
    if (!this.#bar) return;
    document.addEventListener("selectionchange", () => this.#select(), { signal });
    document.addEventListener("keydown", (event) => this.#key(event), { capture: true, signal });
    document.addEventListener("click", (event) => this.#click(event), { signal });
    document.addEventListener("mousedown", (event) => this.#press(event), { signal });
    document.addEventListener("toggle", () => this.paint(), { capture: true, signal });
    this.paint();
  }

  // Chooses the first word on the screen for the keys.
  begin() {
    const first = this.#parts.find((part) => part.text.trim() && part.element.checkVisibility?.() !== false && isOnScreen(part.element));
    const part = this.#pending?.part ?? first ?? this.#parts.find(({ text }) => text.trim());
    if (!part || !this.#bar) return;
    this.#keys = { part, words: wordsOf(part.text, part.language), first: 0, last: 0 };
    this.#show();
    this.#status.say(this.#words.markKeys);
  }

  // Puts back spans that this device kept.
  restore(fields) {
    for (const criterion of this.#sheet.criteria) {
      const kept = fields.filter(([name]) => name === `evidence-${criterion.key}`).map(([, written]) => written);
      const list = criterion.chips;
      if (!list) continue;
      list.replaceChildren();
      for (const written of kept) this.#add(criterion, JSON.parse(written));
    }
    this.paint();
  }

  paint() {
    if (!globalThis.CSS?.highlights) return;
    const ranges = { evidence: [], "evidence-open": [] };
    for (const chip of document.querySelectorAll("[data-span]")) {
      const found = this.#rangeOf(chip);
      const isOpen = chip.closest("details")?.open;
      if (found) ranges[isOpen ? "evidence-open" : "evidence"].push(found);
    }
    for (const [name, some] of Object.entries(ranges)) CSS.highlights.set(name, new Highlight(...some));
  }

  #rangeOf(chip) {
    const span = JSON.parse(chip.querySelector("input").value);
    const part = this.#parts.find((each) => each.holds(span));
    return part?.range(part.places(span));
  }

  #select() {
    const selection = document.getSelection();
    if (!selection.rangeCount || selection.isCollapsed) {
      if (!this.#bar.contains(document.activeElement)) this.#hide();
      return;
    }
    const range = selection.getRangeAt(0);
    const part = this.#parts.find(({ element }) => range.intersectsNode(element) && element.textContent);
    const places = part && snapped(part.text, part.within(range), part.language);
    if (!places) return;
    this.#offer(part, places);
  }

  #offer(part, places) {
    if (this.#bar.hidden) this.#choose(this.#sheet.current.key);
    this.#pending = { part, places };
    this.#bar.hidden = false;
  }

  #choose(key) {
    if ([...this.#choice.options].some(({ value }) => value === key)) this.#choice.value = key;
  }

  #hide() {
    this.#bar.hidden = true;
    this.#pending = null;
    this.#keys = null;
  }

  #click(event) {
    const { target } = event;
    this.#isLeft = target.closest("[data-mark-bar]") !== null || (this.#isLeft && event.detail > 1);
    if (target.closest("[data-mark]")) this.#mark();
    else if (target.closest("[data-mark-cancel]")) this.#leave();
    else if (target.closest("[data-removes-span]")) this.#remove(target.closest("[data-span]"));
    else if (target.closest("[data-shows-span]")) this.#find(target.closest("[data-span]"));
  }

  // The second press of a double click on "Mark" meets the text below the bar, and would choose a word of it.
  #press(event) {
    if (event.detail > 1 && this.#isLeft) event.preventDefault();
    else this.#isLeft = false;
  }

  #leave() {
    document.getSelection().removeAllRanges();
    this.#hide();
    this.#sheet.current.summary.focus({ preventScroll: true });
  }

  #mark() {
    if (!this.#pending || this.#sheet.isSent) return;
    const { part, places } = this.#pending;
    const criterion = this.#sheet.of(this.#choice.value);
    const span = part.span(places);
    const written = JSON.stringify(span);
    const is_there = [...criterion.chips.querySelectorAll("input")].some(({ value }) => sameSpan(JSON.parse(value), span));
    if (!is_there) {
      const chip = this.#add(criterion, span, written);
      this.#done.push(() => this.#drop(chip));
      this.#follow(criterion);
    }
    this.#status.say(this.#words.fill("marked", { criterion: criterion.called, quote: span.quote }));
    document.getSelection().removeAllRanges();
    this.#hide();
  }

  #add(criterion, span, written = JSON.stringify(span)) {
    const chip = document.getElementById("evidence-chip").content.firstElementChild.cloneNode(true);
    const part = this.#parts.find((each) => each.holds(span));
    const input = chip.querySelector("input");
    input.name = `evidence-${criterion.key}`;
    input.value = written;
    chip.querySelector("[data-where]").textContent = part?.where ?? span.field ?? "";
    const quote = chip.querySelector("[data-quote]");
    quote.textContent = span.quote;
    quote.lang = part?.language ?? "";
    criterion.chips.append(chip);
    return chip;
  }

  #remove(chip) {
    const list = chip.parentElement;
    const next = chip.nextElementSibling;
    const criterion = this.#sheet.containing(chip);
    this.#done.push(() => {
      list.insertBefore(chip, next?.parentElement === list ? next : null);
      this.#follow(criterion);
    });
    this.#drop(chip, criterion);
    (list.querySelector("[data-removes-span]") ?? criterion.summary).focus({ preventScroll: true });
    this.#status.say(this.#words.unmarked);
  }

  #drop(chip, criterion = this.#sheet.containing(chip)) {
    chip.remove();
    if (criterion) this.#follow(criterion);
  }

  #follow(criterion) {
    criterion.say("");
    this.paint();
    this.#changed();
  }

  #find(chip) {
    const range = this.#rangeOf(chip);
    if (!range) return;
    const cover = range.startContainer.parentElement.closest("details:not([open])");
    if (cover) cover.open = true;
    document.querySelector('[data-shows="dialogue"]')?.click();
    range.startContainer.parentElement.scrollIntoView({ block: "center" });
    const selection = document.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  }

  // --- keys ------------------------------------------------------------------------------------------------------------
  #key(event) {
    if (event.isComposing) return;
    const isUndo = (event.ctrlKey || event.metaKey) && event.code === "KeyZ" && !event.shiftKey && !event.altKey;
    if (isUndo && this.#done.length && !event.target.matches?.("textarea, input:not([type=radio], [type=checkbox]), select")) {
      this.#done.pop()();
      event.preventDefault();
      return;
    }
    if (this.#bar.hidden || event.target.matches?.("select, textarea, input[type=number]")) return;
    const does = this.#keyed(event);
    if (!does) return;
    does();
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  #keyed(event) {
    if (event.key === "Escape") return () => this.#leave();
    const isOnButton = event.target.closest?.("button, a, summary");
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) return isOnButton && !this.#keys ? null : () => this.#mark();
    if (!this.#keys) return null;
    if (event.key === "ArrowDown") return () => this.#turn(1);
    if (event.key === "ArrowUp") return () => this.#turn(-1);
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return null;
    const by = (event.key === "ArrowRight") === !this.#keys.part.isRightToLeft ? 1 : -1;
    return () => (event.shiftKey ? this.#extend(by, event.ctrlKey || event.metaKey) : this.#step(by));
  }

  #turn(by) {
    const texts = this.#parts.filter((part) => part.text.trim());
    const part = texts[texts.indexOf(this.#keys.part) + by];
    if (!part) return;
    this.#keys = { part, words: wordsOf(part.text, part.language), first: 0, last: 0 };
    this.#show();
  }

  #step(by) {
    const { words, first, last } = this.#keys;
    const next = Math.max(0, Math.min((by > 0 ? last : first) + by, words.length - 1));
    Object.assign(this.#keys, { first: next, last: next, end: undefined });
    this.#show();
  }

  // By a word, or by a character of the word at its end.
  #extend(by, byCharacter) {
    const keys = this.#keys;
    if (byCharacter) {
      const places = graphemes(keys.part.text, keys.part.language);
      const start = keys.words[keys.first][0];
      const at = places.indexOf(keys.end ?? keys.words[keys.last][1]);
      const end = places[at + by];
      if (end !== undefined && end > start) keys.end = end;
    } else {
      keys.end = undefined;
      keys.last = Math.max(keys.first, Math.min(keys.last + by, keys.words.length - 1));
    }
    this.#show();
  }

  #show() {
    const { part, words, first, last, end } = this.#keys;
    const places = [words[first][0], end ?? words[last][1]];
    const cover = part.element.closest("details:not([open])");
    if (cover) cover.open = true;
    const range = part.range(places);
    const selection = document.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    this.#offer(part, places);
    this.#reveal([...range.getClientRects()].at(-1));
    this.#status.say(part.text.slice(...places));
  }

  // Moves the texts so that the last of the chosen words is between their upper edge and the bar.
  #reveal(last) {
    if (!last) return;
    const pane = this.#bar.parentElement.querySelector(".pane-scroll");
    const isPane = getComputedStyle(pane).overflowY !== "visible";
    const top = isPane ? pane.getBoundingClientRect().top : innerHeight / 5;
    const bottom = this.#bar.getBoundingClientRect().top;
    if (last.top >= top && last.bottom <= bottom) return;
    (isPane ? pane : globalThis).scrollBy(0, (last.top + last.bottom - top - bottom) / 2);
  }
}

function isOnScreen(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

function sameSpan(one, other) {
  return ["turn", "field", "start", "end"].every((name) => one[name] === other[name]);
}
