// The desk's rules, pure. The server has the last word; these only tell the annotator early.

export const NA = "na";

// As annotation/rationales.py counts: words between spaces and punctuation; Thai, Lao, Myanmar, Khmer, kana and Han put
// no spaces, about two letters make a word there.
const UNSPACED_LETTER =
  /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\u{20000}-\u{3ffff}]/gu;
const SPACED_WORD = /[\p{L}\p{M}\p{N}]+(?:['’-][\p{L}\p{M}\p{N}]+)*/gu;

export function countWords(text) {
  const unspaced = text.match(UNSPACED_LETTER)?.length ?? 0;
  const spaced = text.replace(UNSPACED_LETTER, " ").match(SPACED_WORD)?.length ?? 0;
  return spaced + Math.ceil(unspaced / 2);
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
