// The desk's rules, pure. The server has the last word; these only tell the annotator early.

export const NA = "na";

// Words as the language itself counts them: Japanese and Thai write none of the spaces that split() needs.
export function countWords(text, language = undefined) {
  if (!text.trim()) return 0;
  if (!Intl.Segmenter) return text.trim().split(/\s+/u).length;
  let words = 0;
  for (const segment of segmenter(language).segment(text)) if (segment.isWordLike) words += 1;
  return words;
}

function segmenter(language) {
  try {
    return new Intl.Segmenter(language, { granularity: "word" });
  } catch {
    return new Intl.Segmenter(undefined, { granularity: "word" });
  }
}

// How many words the rationale needs for this score: 0 when it may stay empty. The best point asks for one word at most.
export function wordsNeeded({ rule, minWords }, score, best) {
  if (score === null || score === NA) return 0;
  const isBest = best !== null && Number(score) === best;
  if (rule === "required") return isBest ? 1 : Math.max(1, minWords);
  if (rule === "required_except_best") return isBest ? 0 : Math.max(1, minWords);
  return 0;
}

// A critical criterion at its worst point, the one farthest from the best, stops the rest.
export function isStop({ critical, best, values }, score) {
  if (!critical || best === null || score === null || score === NA || !values.length) return false;
  const farthest = Math.max(...values.map((value) => Math.abs(value - best)));
  return farthest > 0 && Math.abs(Number(score) - best) === farthest;
}

// The next one without an answer after `from`, going round; -1 when all are answered.
export function nextOpen(answered, from) {
  for (let step = 1; step <= answered.length; step += 1) {
    const index = (from + step) % answered.length;
    if (!answered[index]) return index;
  }
  return -1;
}

// Seconds to wait before try number `tries` (from 0): 1, 2, 4 ... 30, and what the server asked for when that is more.
export function backOff(tries, asked = 0) {
  return Math.max(Math.min(30, 2 ** tries), asked);
}
