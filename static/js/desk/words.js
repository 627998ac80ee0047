// The translated sentences of _desk_words.html; fill("count", {done: 3}) puts values, in the page's digits, into {braces}.
export function readWords(element, language = document.documentElement.lang) {
  const digits = new Intl.NumberFormat(language);
  const shown = (value) => (typeof value === "number" ? digits.format(value) : value);
  return {
    ...element.dataset,
    fill: (name, values) => element.dataset[name].replace(/\{(\w+)\}/g, (_, slot) => shown(values[slot])),
    format: shown,
  };
}
