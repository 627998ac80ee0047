"""Surface metrics, cell by cell: of dialogues (``panelbench stats surface``, METHODS 6), of rationales (METHODS 1).

Dialogues are read from a plain file: a dialogue a row with ``text`` or ``turns``, or a turn a row.
Variety of words: TTR, MATTR, MTLD. Repetition between texts of one source: self-BLEU, self-repetition, mean cosine of
sentence embeddings, from an OpenAI-compatible endpoint or from sentence-transformers. Vectors are cached by model and
text, so that a repeated run sends no request and costs nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np
from numpy.typing import NDArray

from analytics.stats.core.estimates import CellEstimate, Estimate
from analytics.stats.core.identifiers import normal_identifier
from analytics.stats.core.messages import Message, joined
from analytics.stats.core.number_arrays import Floats, Integers
from analytics.stats.core.resampling import Units, bootstrap, jackknife
from analytics.stats.core.tables import HUMAN_KINDS, Cell, RatingsTable, TableError, TableProblem, cells
from analytics.stats.judge.ppi import classical_mean
from analytics.stats.text.words import has_stop_words, lemmatiser, sentences, tokeniser, without_stop_words

if TYPE_CHECKING:
    import pandas as pd


# --- dialogues -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Dialogue:
    """One text: its turns as (speaker, text), a plain text one turn of no speaker; other columns in ``labels``."""

    item: str
    turns: tuple[tuple[str, str], ...]
    language: str | None = None
    generator: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def text(self, speaker: str | None = None) -> str:
        """All turns, or those of one speaker, a line each."""
        return "\n".join(text for who, text in self.turns if speaker is None or who == speaker)

    def value(self, column: str) -> str | None:
        """The dialogue's value of a grouping column."""
        if column in ("language", "generator"):
            return self.language if column == "language" else self.generator
        return self.labels.get(column)


def dialogues(frame: pd.DataFrame) -> list[Dialogue]:
    """The dialogues of a frame with ``item`` and ``turns`` (JSON list of {speaker, text}) or ``text``.

    Rows that share an item (and language and generator) and have a ``speaker`` are turns of one dialogue, in their
    order. Raises ``TableError`` naming every bad row.
    """
    if "item" not in frame or not ({"text", "turns"} & set(frame.columns)):
        raise TableError([TableProblem(None, "a file of dialogues needs the column 'item' and 'text' or 'turns'")])
    problems: list[TableProblem] = []
    held: dict[tuple[str, str | None, str | None], list[tuple[str, str]]] = {}
    labels: dict[tuple[str, str | None, str | None], dict[str, str]] = {}
    for row, record in enumerate(_records(frame)):
        key = (normal_identifier(str(record["item"])), _known(record.get("language")), _known(record.get("generator")))
        turns = list(_turns(record, row, problems))
        if key in held and "speaker" not in record:
            problems.append(TableProblem(row, f"the item {key[0]!r} occurs twice"))
        held.setdefault(key, []).extend(turns)
        labels.setdefault(key, {name: str(v) for name, v in record.items() if name not in _TEXT and _known(v)})
    if problems:
        raise TableError(problems)
    return [Dialogue(key[0], tuple(turns), key[1], key[2], labels[key]) for key, turns in held.items()]


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [dict(zip(map(str, frame.columns), row, strict=True)) for row in frame.itertuples(index=False, name=None)]


_TEXT = frozenset({"item", "text", "turns", "speaker", "language", "generator"})


def _turns(record: Mapping[str, Any], row: int, problems: list[TableProblem]) -> Iterator[tuple[str, str]]:
    if not _known(record.get("turns")):
        yield str(record.get("speaker") or ""), str(record.get("text") or "")
        return
    try:
        turns = json.loads(record["turns"]) if isinstance(record["turns"], str) else record["turns"]
        yield from [(_word(turn.get("speaker")), _word(turn["text"])) for turn in turns]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        problems.append(TableProblem(row, "turns is not a JSON list of {speaker, text}"))


def _word(value: Any) -> str:
    """A text or a number as text, null as none; ``TypeError`` for anything else."""
    if isinstance(value, (list, dict)):
        raise TypeError(value)
    return "" if value is None else str(value)


def _known(value: Any) -> str | None:
    return None if value is None or value != value or value == "" else str(value)


# --- variety of words ------------------------------------------------------------------------------------------------
WINDOW = 100
MTLD_THRESHOLD = 0.72


def ttr(tokens: Sequence[str]) -> float | None:
    """Type-token ratio: distinct / all; None without tokens. Falls with length: compare texts of one length only."""
    return len(set(tokens)) / len(tokens) if tokens else None


def mattr(tokens: Sequence[str], window: int = WINDOW) -> float | None:
    """Moving-average TTR over all windows of ``window`` tokens; of a shorter text its TTR, None without tokens.

    Source: Covington & McFall 2010, doi:10.1080/09296171003643098.
    """
    if len(tokens) <= window:
        return ttr(tokens)
    held = Counter(tokens[:window])
    total = distinct = len(held)
    for old, new in zip(tokens, tokens[window:], strict=False):
        held[new] += 1
        distinct += held[new] == 1
        held[old] -= 1
        distinct -= held[old] == 0
        total += distinct
    return total / (window * (len(tokens) - window + 1))


def mtld(tokens: Sequence[str], threshold: float = MTLD_THRESHOLD) -> float | None:
    """Measure of textual lexical diversity: mean length of runs that keep TTR above .72, forwards and backwards.

    The rest of the text counts as the part (1 - TTR) / (1 - threshold) of a run. None without tokens, or when no token
    recurs and so no run ever ends. Source: McCarthy & Jarvis 2010, doi:10.3758/BRM.42.2.381.
    """
    runs = [_runs(order, threshold) for order in (tokens, tokens[::-1])]
    if not tokens or 0 in runs:
        return None
    return sum(len(tokens) / n for n in runs) / 2


def _runs(tokens: Iterable[str], threshold: float) -> float:
    seen: set[str] = set()
    runs, length, ratio = 0.0, 0, 1.0
    for token in tokens:
        length += 1
        seen.add(token)
        ratio = len(seen) / length
        if ratio <= threshold:
            runs, length, ratio = runs + 1, 0, 1.0
            seen.clear()
    return runs + (1 - ratio) / (1 - threshold)


# --- repetition between texts ----------------------------------------------------------------------------------------

ORDER = 4
_SMOOTHING_K = 5
SELF_REPETITION_N = 6


def self_bleu(texts: Sequence[Sequence[str]]) -> Floats:
    """BLEU of each tokenised text against all others -> (D,), NaN for a lone text; their mean is the self-BLEU.

    4-grams, equal weights, smoothing method 4 with K = 5, as NLTK computes them. The clipped count of an n-gram is the
    smaller of its own count and the largest in any other text; that largest is known from the two largest counts over
    all texts, so the cost grows with the number of n-grams, not of pairs of texts. Sources: Zhu et al. 2018 (Texygen),
    doi:10.1145/3209978.3210080; Papineni et al. 2002, doi:10.3115/1073083.1073135; Chen & Cherry 2014,
    doi:10.3115/v1/W14-3346.
    """
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    if len(texts) < 2:
        return np.full(len(texts), np.nan)
    matched, total = np.array([_clipped(*grams, len(texts)) for grams in _grams(texts, lengths)]).swapaxes(0, 1)
    precision = _smoothed(matched, np.maximum(total, 1), lengths)
    # A precision that stays 0 (a one-word text) is left out of the product, as NLTK leaves it out.
    mean = np.log(precision, out=np.zeros_like(precision), where=precision > 0).mean(axis=0)
    return np.where(matched[0] > 0, _brevity(lengths) * np.exp(mean), 0.0)


def self_repetition(texts: Sequence[Sequence[str]], n: int = SELF_REPETITION_N) -> Floats:
    """log(1 + how often n-grams of each text recur in other texts) -> (D,); 0: nothing recurs, and none too short to.

    For each distinct n-gram of the text the other texts that hold it are counted. Source: Salkar et al. 2022,
    doi:10.18653/v1/2022.aacl-short.42.
    """
    holders: dict[tuple[str, ...], int] = {}
    distinct = [{tuple(text[i : i + n]) for i in range(len(text) - n + 1)} for text in texts]
    for grams in distinct:
        for gram in grams:
            holders[gram] = holders.get(gram, 0) + 1
    return np.log1p([sum(holders[gram] - 1 for gram in grams) for grams in distinct])


def mean_cosine(vectors: Floats) -> float | None:
    """Mean cosine over all pairs of D vectors (D, k): (|sum of unit vectors|^2 - D) / (D (D - 1)); higher = more alike.

    None for fewer than two vectors that aren't zero.
    """
    norms = np.linalg.norm(vectors, axis=1)
    units = vectors[norms > 0] / norms[norms > 0, None]
    d = len(units)
    return None if d < 2 else float((np.square(units.sum(axis=0)).sum() - d) / (d * (d - 1)))


def _grams(texts: Sequence[Sequence[str]], lengths: Integers) -> Iterator[tuple[Integers, Integers]]:
    """For n = 1..4 every n-gram as a number, and the text it is of."""
    numbers: dict[str, int] = {}
    words = np.array([numbers.setdefault(word, len(numbers)) for text in texts for word in text], dtype=np.int64)
    owner = np.repeat(np.arange(len(texts)), lengths)
    left = np.cumsum(lengths)[owner] - np.arange(len(words))
    start, grams = np.arange(len(words)), words
    for n in range(1, ORDER + 1):
        if n > 1:
            fits = left[start] >= n
            start = start[fits]
            # Numbering the shorter n-grams anew keeps the product below 2^63.
            _, shorter = np.unique(grams[fits], return_inverse=True)
            grams = shorter * len(numbers) + words[start + n - 1]
        yield grams, owner[start]


def _clipped(grams: Integers, owner: Integers, n_texts: int) -> tuple[Floats, Floats]:
    """(D,) sum of clipped counts and of all counts of the n-grams of each text."""
    _, gram = np.unique(grams, return_inverse=True)
    held, count = np.unique(gram * n_texts + owner, return_counts=True)
    gram, owner = np.divmod(held, n_texts)
    order = np.lexsort((-count, gram))
    gram, owner, count = gram[order], owner[order], count[order]
    is_first = np.concatenate([[True], gram[1:] != gram[:-1]])[: len(gram)]
    largest = count[np.maximum.accumulate(np.where(is_first, np.arange(len(gram)), 0))]
    following = np.concatenate([np.where(is_first[1:], 0, count[1:]), [0]])[: len(gram)]
    elsewhere = np.where(is_first, following, largest)
    clipped, every = (
        np.bincount(owner, weights=weights, minlength=n_texts) for weights in (np.minimum(count, elsewhere), count)
    )
    return clipped.astype(np.float64), every.astype(np.float64)


def _smoothed(matched: Floats, total: Floats, lengths: Integers) -> Floats:
    """(4, D) precisions; the j-th that is 0 becomes ln(length) / (2^j K total), in texts of two words or more."""
    is_empty = (matched == 0) & (lengths > 1)
    j = np.cumsum(is_empty, axis=0)
    return np.where(is_empty, np.log(np.maximum(lengths, 1)) / (2.0**j * _SMOOTHING_K), matched) / total


def _brevity(lengths: Integers) -> Floats:
    """(D,) exp(1 - r / c) where the text is shorter than the other text closest in length (the shorter of two)."""
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order].astype(np.float64)
    below, above = np.concatenate([[-np.inf], ordered[:-1]]), np.concatenate([ordered[1:], [np.inf]])
    closest = np.empty(len(lengths))
    closest[order] = np.where(ordered - below <= above - ordered, below, above)
    own = np.maximum(lengths, 1)
    return np.where(lengths == 0, 0.0, np.exp(np.minimum(0.0, 1 - closest / own)))


# --- embeddings ------------------------------------------------------------------------------------------------------
Embed = Callable[[Sequence[str]], Floats]
_BATCH = 64


@dataclass(frozen=True, slots=True)
class EmbeddingEndpoint:
    """An OpenAI-compatible ``/embeddings`` endpoint; the key is read from the environment when it is asked."""

    url: str
    model: str
    key_variable: str = ""
    timeout: float = 60.0

    def __call__(self, texts: Sequence[str]) -> Floats:
        """(D, k) vectors of D texts, in order."""
        if not self.url.startswith(("http://", "https://")):
            raise ValueError("the embeddings address should start with http:// or https://")
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(self.key_variable, ""):
            headers["Authorization"] = f"Bearer {key}"
        body = json.dumps({"model": self.model, "input": list(texts)}).encode()
        request = Request(f"{self.url.rstrip('/')}/embeddings", data=body, headers=headers)  # noqa: S310 - checked above
        try:
            with build_opener(_NoRedirect).open(request, timeout=self.timeout) as reply:
                return _vectors(reply.read(), len(texts))
        except (OSError, HTTPException) as error:
            raise ValueError(f"{request.full_url} gave no embeddings: {str(error).strip('<>')}") from error


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: it would send the texts, and the key, to a host that nobody named."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        host = urlsplit(newurl).netloc.rpartition("@")[2]
        raise URLError(f"{code}, a redirect to {host}, which is not followed")


def _vectors(reply: bytes, n: int) -> Floats:
    """(n, k) vectors of a reply, in the order of the texts."""
    try:
        rows = sorted(json.loads(reply)["data"], key=lambda row: row["index"])
        vectors = np.array([row["embedding"] for row in rows], dtype=np.float64)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("the reply of the embeddings address is not a list of embeddings") from error
    if len(vectors) != n:
        raise ValueError(f"the embeddings address gave {len(vectors)} vectors for {n} texts")
    return vectors


def local_embedding(model: str) -> Embed:
    """A sentence-transformers model on this machine; the package is optional."""
    try:
        package = import_module("sentence_transformers")
    except ImportError as error:
        advice = "pip install 'panelbench[sentence-transformers]'"
        raise ValueError(f"local embeddings need sentence-transformers: {advice}") from error
    encoder = package.SentenceTransformer(model)
    return lambda texts: np.asarray(encoder.encode(list(texts)), dtype=np.float64)


def cached(embed: Embed, *, model: str, directory: Path) -> Embed:
    """The same embeddings, computed once per text and stored in a directory."""

    def look_up(texts: Sequence[str]) -> Floats:
        places = [directory / f"{_digest(model, text)}.npy" for text in texts]
        missing = [i for i, place in enumerate(places) if not place.exists()]
        directory.mkdir(parents=True, exist_ok=True)
        for start in range(0, len(missing), _BATCH):
            chunk = missing[start : start + _BATCH]
            for i, vector in zip(chunk, embed([texts[i] for i in chunk]), strict=True):
                _write(places[i], vector)
        return np.array([np.load(place) for place in places])

    return look_up


def _digest(model: str, text: str) -> str:
    return hashlib.sha256(f"{model}\0{text}".encode()).hexdigest()


def _write(place: Path, vector: Floats) -> None:
    """Whole or not at all: a run that is cut off leaves no half vector behind."""
    staged = place.with_suffix(f".{os.getpid()}.tmp")
    with staged.open("wb") as file:
        np.save(file, vector)
    staged.replace(place)


# --- the report ------------------------------------------------------------------------------------------------------
STATISTICS = (
    "characters", "words", "sentences", "turns", "ttr", "mattr", "mtld", "self_repetition", "self_bleu",
    "pairwise_cosine",
)  # fmt: skip
BY = ("language", "generator")
MOST_SPEAKERS = 4
_SHARED = Message("texts are each other's references: they don't vary alone")


def surface_report(
    texts: Sequence[Dialogue],
    *,
    by: Sequence[str] = BY,
    engine: str = "simplemma",
    window: int = WINDOW,
    embed: Embed | None = None,
) -> list[CellEstimate]:
    """Every surface metric of every cell.

    Means over dialogues with t intervals and the standard deviation in the note: ``ttr``, ``mattr``, ``mtld`` (lemmas;
    TTR and MATTR without stop words), ``characters``, ``words``, ``sentences``, ``turns``,
    ``self_repetition`` (lemmas).
    Over the cell's texts together: ``self_bleu`` (words; variant: a speaker's side) and, with ``embed``,
    ``pairwise_cosine``. The note names tokeniser and lemmatiser.
    """
    report: list[CellEstimate] = []
    for key, cell in _cells(texts, by):
        estimates = [*_counts(cell), *_vocabulary(cell, engine, window), *_self_bleu(cell), *_cosine(cell, embed)]
        report += [CellEstimate(estimate=estimate, cell=key) for estimate in estimates]
    return report


OF_ONE_TEXT = ("characters", "words", "sentences", "turns", "ttr", "mattr", "mtld")


def text_measures(
    dialogue: Dialogue, names: Sequence[str] = OF_ONE_TEXT, *, engine: str = "simplemma", window: int = WINDOW
) -> dict[str, float | None]:
    """The surface metrics that one text has by itself, as ``surface_report`` averages them; None where it is too short.

    Source: METHODS 6.
    """
    found: dict[str, float | None] = {}
    if "characters" in names:
        found["characters"] = float(len(dialogue.text()))
    if "turns" in names:
        found["turns"] = float(len(dialogue.turns))
    if "sentences" in names:
        found["sentences"] = float(len(sentences(dialogue.text())))
    if "words" in names:
        found["words"] = float(len(_words(dialogue)))
    if {"ttr", "mattr", "mtld"} & set(names):
        lemmas = _lemmas(dialogue, engine)
        kept = without_stop_words(lemmas, dialogue.language)
        found |= {"ttr": ttr(kept), "mattr": mattr(kept, window), "mtld": mtld(lemmas)}
    return {name: found[name] for name in names}


def _cells(texts: Sequence[Dialogue], by: Sequence[str]) -> Iterator[tuple[dict[str, str | None], list[Dialogue]]]:
    def key(dialogue: Dialogue) -> tuple[str, ...]:
        return tuple(dialogue.value(column) or "" for column in by)

    for values, cell in groupby(sorted(texts, key=key), key):
        yield {column: value or None for column, value in zip(by, values, strict=True)}, list(cell)


def _counts(cell: list[Dialogue]) -> Iterator[Estimate]:
    counted = {
        "characters": [len(d.text()) for d in cell],
        "words": [len(_words(d)) for d in cell],
        "sentences": [len(sentences(d.text())) for d in cell],
        "turns": [len(d.turns) for d in cell],
    }
    for statistic, values in counted.items():
        yield _mean(statistic, list(map(float, values)))


def _vocabulary(cell: list[Dialogue], engine: str, window: int) -> Iterator[Estimate]:
    lemmas = [_lemmas(d, engine) for d in cell]
    kept = [without_stop_words(words, d.language) for words, d in zip(lemmas, cell, strict=True)]
    tools, removed = _tools(cell, engine), _stop_word_note(cell)
    yield _mean("ttr", [ttr(words) for words in kept], joined((tools, removed)))
    yield _mean(
        "mattr", [mattr(words, window) for words in kept], joined((tools, removed, f"window {window}")), str(window)
    )
    yield _mean("mtld", [mtld(words) for words in lemmas], joined((tools, Message("stop words kept"))))
    yield _mean("self_repetition", self_repetition(lemmas).tolist(), joined((tools, Message("stop words kept"))))


def _self_bleu(cell: list[Dialogue]) -> Iterator[Estimate]:
    speakers = sorted({who for d in cell for who, _ in d.turns if who})
    sides: list[str | None] = [None, *(speakers if len(speakers) <= MOST_SPEAKERS else [])]
    for side in sides:
        texts = [words for d in cell if (words := _words(d, side))]
        name = "whole" if side is None else side
        if len(texts) < 2:
            reason = Message("it needs two texts")
            yield Estimate(statistic="self_bleu", variant=name, value=None, n_items=len(texts), reason=reason)
            continue
        value = float(self_bleu(texts).mean())
        note = _tokeniser_note(cell)
        yield Estimate(
            statistic="self_bleu", variant=name, value=value, n_items=len(texts), interval_reason=_SHARED, note=note
        )


def _cosine(cell: list[Dialogue], embed: Embed | None) -> Iterator[Estimate]:
    if embed is None:
        return
    value = mean_cosine(embed([d.text() for d in cell]))
    reason = Message("it needs two texts") if value is None else None
    yield Estimate(
        statistic="pairwise_cosine", value=value, n_items=len(cell), reason=reason, interval_reason=_SHARED,
        note=Message("higher: more alike"),
    )  # fmt: skip


def _mean(
    statistic: str, values: Sequence[float | None], note: str | None = None, variant: str | None = None
) -> Estimate:
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    estimate = classical_mean(known, np.arange(len(known))).with_(
        statistic=statistic, variant=variant, n_missing=len(values) - len(known)
    )
    if not estimate.is_defined:
        return estimate.with_(reason=Message("no dialogue is long enough"), note=note)
    sd = f"sd {known.std(ddof=1):.4f}" if len(known) > 1 else None
    return estimate.with_(note=joined((sd, note)) or None)


def _words(dialogue: Dialogue, speaker: str | None = None) -> list[str]:
    return tokeniser(dialogue.language)[1](dialogue.text(speaker))


def _lemmas(dialogue: Dialogue, engine: str) -> list[str]:
    return lemmatiser(dialogue.language, engine)[1](_words(dialogue))


def _tools(cell: list[Dialogue], engine: str) -> str:
    """The tokenisers and lemmatisers of the cell's languages."""
    names = sorted({lemmatiser(language, engine)[0] for language in {d.language or "" for d in cell}})
    return joined((_tokeniser_note(cell), f"lemmas: {', '.join(names)}"))


def _stop_word_note(cell: list[Dialogue]) -> str:
    return (
        Message("stop words removed")
        if all(has_stop_words(d.language or "") for d in cell)
        else Message("no list of stop words")
    )


def _tokeniser_note(cell: list[Dialogue]) -> str:
    return joined(sorted({tokeniser(d.language)[0] for d in cell}), ", ")


# --- rationales of people and judges: how long, how varied, in the item's language? (METHODS 1: S2, Tables 6 and 7) ---


def rationale_report(
    table: RatingsTable,
    *,
    column: str = "rationale",
    by: Sequence[str] = ("language", "criterion"),
    resamples: int = 2000,
    seed: int = 0,
) -> list[CellEstimate]:
    """Per cell, for the annotators together (``judge`` None) and for each judge; blank rationales are left out.

    ``rationale_words``: mean length. ``rationale_mattr``: moving-average type-token ratio (window 100) of all of them
    in the order of the table. ``rationale_in_language``: mean share of words that the dictionary of the cell's language
    knows; undefined for a language without one. ``n_missing`` counts ratings without a rationale.
    """
    return [row for cell in cells(table, by=by) for row in _of_cell(cell, column, resamples, seed)]


def _of_cell(cell: Cell, column: str, resamples: int, seed: int) -> Iterator[CellEstimate]:
    human = cell.frame["rater_kind"].isin(HUMAN_KINDS).to_numpy()
    is_judge = cell.frame["rater_kind"].isin(("judge", "jury")).to_numpy()
    yield from _of_rows(cell, cell.frame[human], None, column, resamples, seed)
    for judge in sorted(cell.frame["rater"][is_judge].unique()):
        rows = cell.frame[(cell.frame["rater"] == judge).to_numpy()]
        yield from _of_rows(cell, rows, judge, column, resamples, seed)


def _of_rows(
    cell: Cell, rows: pd.DataFrame, judge: str | None, column: str, resamples: int, seed: int
) -> Iterator[CellEstimate]:
    texts = rows[column].fillna("").astype(str).str.strip()
    written = (texts != "").to_numpy()
    kept = rows[written]
    counts = {
        "n_items": int(kept["item_key"].nunique()),
        "n_clusters": int(kept["cluster"].nunique()),
        "n_raters": int(kept["rater"].nunique()),
        "n_ratings": int(written.sum()),
        "n_missing": int((~written).sum()),
    }
    language = cell.key.get("language")
    split = tokeniser(language)[1]
    words = [split(text) for text in texts[written]]
    clusters = kept["cluster"].to_numpy(dtype=str)
    lengths = np.array([len(tokens) for tokens in words], dtype=np.float64)
    known, why = _shares_in_language(list(texts[written]), language)
    variety = mattr([word for tokens in words for word in tokens])
    estimates = (
        _mean_by_cluster("rationale_words", lengths, clusters, resamples, seed, Message("nobody wrote one")),
        Estimate(statistic="rationale_mattr", value=variety, reason=None if variety else Message("nobody wrote one"),
                 interval_reason=Message("one figure of one long text")),
        _mean_by_cluster("rationale_in_language", known, clusters, resamples, seed, why),
    )  # fmt: skip
    yield from (CellEstimate(estimate=estimate.with_(**counts), cell=cell.key, judge=judge) for estimate in estimates)


def _shares_in_language(texts: list[str], language: str | None) -> tuple[Floats, str]:
    """(N,) share of each text's words that the language's dictionary knows; empty, and why, where there is none."""
    from simplemma import in_target_language

    base = (language or "").split("-")[0]
    try:
        shares = [in_target_language(text, lang=base) for text in texts] if base else []
    except ValueError:
        return np.empty(0), Message("no dictionary of %(language)s", language=language)
    return np.array(shares, dtype=np.float64), Message("nobody wrote one") if base else Message(
        "the table names no language"
    )


def _mean_by_cluster(
    statistic: str, values: Floats, clusters: NDArray[np.str_], resamples: int, seed: int, why: str
) -> Estimate:
    """Mean of values (N,), resampled by cluster: a ratio of the clusters' sums and sizes."""
    if not values.size:
        return Estimate(statistic=statistic, value=None, reason=why)
    cluster = np.unique(clusters, return_inverse=True)[1]
    sums, sizes = np.bincount(cluster, weights=values), np.bincount(cluster)

    def ratio(weights: Floats) -> Floats:
        return np.asarray(weights @ sums / (weights @ sizes))

    units = Units.of(np.arange(len(sizes)))
    rng = np.random.default_rng(seed)
    interval = bootstrap(ratio, units, rng=rng, resamples=resamples) if resamples else jackknife(ratio, units)
    estimate = Estimate(statistic=statistic, value=float(values.mean()), seed=seed if resamples else None)
    return estimate.with_(**interval.as_changes())
