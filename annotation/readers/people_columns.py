"""Columns with the scores of one person each, such as `rating_anna` and `rating_boris`, known by name and values."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from annotation.readers.rows import as_written, case_folded, is_blank


class RaterColumn(NamedTuple):
    """A column with the scores of one person (``is_rationale``: with the reasons), and the criterion if it is named."""

    column: str
    rater: str
    criterion: str = ""
    is_rationale: bool = False


MOST_DIFFERENT_SCORES = 25  # different scores in a column
_WORD = re.compile(r"[^\s_\-./:()\[\]|]+")
_SCORE_WORD = re.compile(
    "ratings?|rated|rates|scored?|scores|grades?|marks?|labels?|points|human|bewertung|note|punkte|puntuaci[oó]n|nota"
    "|calificación|hinne|hinnang|punktid|評価|点数|تقييم|درجة|оценка|балл|评分|分数|अंक"
)
_RATIONALE_WORD = re.compile("rationale|explanation|justification|reason|comments?|notes")
_RATER_WORD = re.compile("annotator|rater|reviewer|worker|coder|participant|assessor|evaluator|expert")
_NUMBERED = re.compile(rf"({_RATER_WORD.pattern})s?\d{{1,3}}")
_CRITERION = re.compile(
    "fluency|adequacy|accuracy|coherence|consistency|relevance|grammar|readability|helpfulness|correctness|clarity"
    "|naturalness|informativeness|factuality|faithfulness|safety|politeness|engagement|understandability|quality"
)
_NOT_PEOPLE = re.compile(
    r"(?i)(?:[ab12]|first|second|chosen|rejected|gold|reference|average|avg|mean|median|mode|sum|total|min|max|minimum"
    r"|maximum|std|sd|var|count|n|id|ids|date|time|type|level|name|text|scale|range|overall|final|majority|aggregated?"
    r"|bleu\d?|rouge.*|chrf.*|comet.*|bleurt|bertscore|meteor|ter|perplexity|ppl|f1|em|auto.*|metric.*"
    r"|(?:model|output|response|answer|system|candidate|completion|translation|hypothesis|passage|summary|turn|judge|dialogue|dialog|conversation|item|sample"
    r"|question|prompt|task|example|case|story|segment)"
    r"[ _-]?\w{0,3}|.*(?:gpt|claude|gemini|llama|mistral|mixtral|qwen|deepseek|command-r|llm).*)"
)
_ANSWER = re.compile(r"[+-]?\d{1,3}(?:[.,]0{1,6})?|[+-]?\d{1,3}[.,]50{0,5}")


class _Named(NamedTuple):
    """What a name says: the person, the criterion, and the words around them by which alike columns are known."""

    rater: str
    criterion: str
    around: tuple[str, ...]
    is_rationale: bool


def rater_columns(
    values: Mapping[str, Iterable[object]], criteria: Collection[str] = (), labels: Collection[str] = ()
) -> tuple[RaterColumn, ...]:
    """The columns with the scores of one person each, if there are at least two persons; ``values``: some cells.

    ``criteria`` and ``labels``: the names of criteria and of points of the project's rubrics, case folded. The name of
    a column has a person and a word for scores, or a person and a criterion, in either order; its cells are scores or
    labels. Columns with aggregates, metrics and judges are left out by their names.
    """
    phrases = {tuple(_words(name)[0]) for name in criteria if name}
    named = {column: found for column in values if (found := _named(column, phrases))}
    scored = {
        column: found
        for column, found in named.items()
        if not found.is_rationale and _are_answers(values[column], labels)
    }
    groups: dict[tuple[str, ...], set[str]] = {}
    for found in scored.values():
        groups.setdefault(_group(found), set()).add(found.rater)
    kept = {column: found for column, found in scored.items() if len(groups[_group(found)]) > 1}
    cells = [(found.rater, found.criterion) for found in kept.values()]
    people = {rater for rater, _criterion in cells}
    if len(people) < 2 or len(set(cells)) < len(cells):
        return ()
    whys = {column: found for column, found in named.items() if found.is_rationale and found.rater in people}
    return tuple(
        RaterColumn(column, found.rater, found.criterion, found.is_rationale)
        for column in values
        if (found := kept.get(column) or whys.get(column))
    )


def _group(found: _Named) -> tuple[str, ...]:
    return () if found.criterion else found.around


def _words(name: str) -> tuple[list[str], list[tuple[int, int]], str]:
    """The words of a name, case folded, with their places in the name in normal form."""
    text = unicodedata.normalize("NFC", name.rpartition("\n")[2]).strip()
    found = list(_WORD.finditer(text))
    return [case_folded(match[0]) for match in found], [match.span() for match in found], text


def _named(column: str, phrases: Collection[tuple[str, ...]]) -> _Named | None:
    words, places, text = _words(column)
    start, end, criterion, around = 0, len(words), "", []
    is_rationale = False
    changed = True
    while changed and start < end:
        changed = False
        for at in (start, end - 1):
            is_why = bool(_RATIONALE_WORD.fullmatch(words[at]))
            if (is_why or _SCORE_WORD.fullmatch(words[at])) and end - start > 1:
                is_rationale |= is_why
                around.append(words[at])
                start, end, changed = (start + 1, end, True) if at == start else (start, end - 1, True)
                break
        if not changed and not criterion:
            sizes = range(end - start - 1, 0, -1)
            spans = [*((start, start + size) for size in sizes), *((end - size, end) for size in sizes)]
            span = next((span for span in spans if _is_criterion(words[slice(*span)], phrases)), None)
            if span:
                criterion, changed = text[places[span[0]][0] : places[span[1] - 1][1]], True
                start, end = (span[1], end) if span[0] == start else (start, span[0])
    rest = words[start:end]
    if not rest:
        return None
    rater = re.sub(r"(?<=\w\w)['’]s$", "", text[places[start][0] : places[end - 1][1]])
    says_rater = (len(rest) > 1 and _RATER_WORD.fullmatch(rest[0])) or bool(_NUMBERED.fullmatch("".join(rest)))
    if says_rater:
        around.append("rater")
    if not (criterion or around) or (not says_rater and _NOT_PEOPLE.fullmatch(" ".join(rest))):
        return None
    return _Named(rater, criterion, tuple(around), is_rationale)


def _is_criterion(words: Sequence[str], phrases: Collection[tuple[str, ...]]) -> bool:
    return tuple(words) in phrases or (len(words) == 1 and bool(_CRITERION.fullmatch(words[0])))


def _are_answers(cells: Iterable[object], labels: Collection[str]) -> bool:
    written = {as_written(cell).strip() for cell in cells if not is_blank(cell) and not isinstance(cell, list | dict)}
    return 0 < len(written) <= MOST_DIFFERENT_SCORES and all(
        text.upper() == "N/A" or _ANSWER.fullmatch(text) or case_folded(text) in labels for text in written
    )


def cells_of(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    """The cells of some rows by column."""
    return {column: [row.get(column) for row in rows] for column in columns}
