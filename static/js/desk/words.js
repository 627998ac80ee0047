// The translated sentences of _desk_words.html (data-say-to-go is toGo); fill("count", {done: 3}) puts values, written as
// the page's language does but in the digits that stand on the keys and in what the server wrote, into their {braces}.
export function readWords(element, language = document.documentElement.lang) {
  const sentences = {};
  for (const [name, sentence] of Object.entries(element.dataset)) {
    sentences[name[3].toLowerCase() + name.slice(4)] = sentence;
  }
  const digits = new Intl.NumberFormat(language, { numberingSystem: "latn" });
  const format = (value) => (typeof value === "number" ? digits.format(value) : value);
  const fill = (name, values) => sentences[name].replace(/\{(\w+)\}/g, (_, slot) => format(values[slot]));
  return { ...sentences, fill, format };
}
