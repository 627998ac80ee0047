"""Rows of rating files -> ratings, one per rater, item and criterion; rows of files of judges -> verdicts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from annotation.readers.answers import (
    AnswerCounts,
    AnswerReader,
    AnswerRow,
    ValuesByField,
    as_answer,
    cached_conversion,
    convert_column,
    optional_number,
)
from annotation.readers.archives import File
from annotation.readers.columns import TableFacts
from annotation.readers.evidence import as_spans, spans_as_json
from annotation.readers.mapping import Mapping
from annotation.readers.problems import InvalidValue, Problems, Progress, excerpt
from annotation.readers.reading import FileProgress
from annotation.readers.rows import KeysRead, TextReplacement, as_language, as_number, as_text, is_blank
from annotation.readers.spool import PlainRow, Spool
from annotation.readers.words import Words

CriterionKey = Callable[[str], str]
Row = TypeVar("Row", bound=AnswerRow)


@dataclass(frozen=True, slots=True)
class ParsedAnswers(Generic[Row]):
    """Ratings or verdicts: ``read = len(rows) + collapsed + refused``; ``rows`` includes those marked as missing.

    ``collapsed`` counts identical repetitions (``collapsed_blank`` of them blank), ``missing`` rows without a score.
    """

    rows: Spool[Row]
    read: int
    collapsed: int
    collapsed_blank: int
    refused: int
    problems: Problems

    def counts(self) -> AnswerCounts:
        """How many rows have a score, N/A or nothing, and the names in them."""
        return AnswerCounts.of(self.rows)

    @property
    def missing(self) -> int:
        """Rows without a score."""
        return self.counts().missing

    @property
    def scored(self) -> int:
        """Rows that have a score."""
        return self.counts().scored


class _AnswerBuilder:
    """Makes rows of answers. Files repeat a few values very often, so the results of conversions are cached."""

    who = ""

    def __init__(self, mapping: Mapping, criterion_key: CriterionKey | None) -> None:
        self.mapping = mapping
        self._keys_read = KeysRead()
        self._as_key = partial(self._keys_read.key, is_trusted=mapping.trust_ids)
        self._score = cached_conversion(partial(as_answer, decimal_comma=mapping.decimal_comma))
        self._replacement = TextReplacement(mapping.replace)
        self._criterion_key = criterion_key
        self._keys = {
            "item": cached_conversion(partial(self._as_key, field="item")),
            self.who: cached_conversion(partial(self._as_key, field=self.who)),
            "criterion": cached_conversion(self._criterion),
        }

    def _criterion(self, value: Any) -> str:
        name = self._as_key(value, field="criterion")
        return name if self._criterion_key is None else self._criterion_key(name)

    def rows(self, answers: ValuesByField, file: str) -> list[PlainRow]:
        """The rows of some answers, as plain values. Raises ``InvalidValue`` at the first bad one."""
        given = zip(*self._score.convert_all(answers["score"]), strict=True)  # score, applicable, missing
        blank = [None] * len(answers["line"])
        keys = [convert.convert_all(answers.get(name, blank)) for name, convert in self._keys.items()]
        places = (repeat(file), answers["line"], answers["column"])
        rationales = answers["rationale"]
        if self._replacement:
            rationales = [self._replacement.inside(rationale) for rationale in rationales]
        return list(zip(*keys, *given, rationales, *self._beside(answers, places), strict=False))

    def notes(self) -> list[str]:
        """Sentences for the report."""
        return [*self._replacement.notes("rationales"), *self._keys_read.notes()]

    def _beside(self, answers: ValuesByField, places: tuple[Iterable[Any], ...]) -> Sequence[Iterable[Any]]:
        """The columns after the rationale, including the file, line and column of each answer."""
        raise NotImplementedError


def _parsed(
    builder: _AnswerBuilder,
    restore: Callable[[PlainRow], Row],
    key: Callable[[PlainRow], Hashable],
    files: Iterable[File],
    progress: Progress | None,
    facts: TableFacts | None,
) -> ParsedAnswers[Row]:
    reader = AnswerReader(builder.mapping, builder, restore, key)
    rows = reader.read_files(FileProgress(files, progress, facts))
    reader.problems.notes += builder.notes()
    return ParsedAnswers(
        rows=rows,
        read=reader.read,
        collapsed=reader.repetitions.collapsed,
        collapsed_blank=reader.repetitions.collapsed_blank,
        refused=reader.problems.refused,
        problems=reader.problems,
    )


class RatingRow(NamedTuple):
    """One person's answer on one criterion of one item: exactly one of a score, not applicable, or missing.

    ``file``, ``line`` and ``column`` give the place of the score; ``evidence`` is its spans as JSON text, "" for none.
    """

    item: str
    rater: str
    criterion: str
    score: float | None
    applicable: bool
    missing: bool
    rationale: str
    seconds: float | None
    language: str | None
    scale_max: float | None
    file: str
    line: int
    column: str = "score"
    evidence: str = ""


def parse_ratings(
    files: Iterable[File],
    mapping: Mapping,
    *,
    progress: Progress | None = None,
    facts: TableFacts | None = None,
    criterion_key: CriterionKey | None = None,
) -> ParsedAnswers[RatingRow]:
    """Read the ratings of one study from all its ``(name, content)`` files at once. Never raises on bad input.

    Repeated (rater, item, criterion) rows with the same content are merged into one and counted, also across files.
    Rows that contradict each other are a problem that names both lines. A blank score is missing, never 0.
    ``criterion_key`` converts a file's name of a criterion to its key, before answers are compared.
    """
    return _parsed(_RatingBuilder(mapping, criterion_key), RatingRow._make, _rating_key, files, progress, facts)


_rating_key: Callable[[PlainRow], Hashable] = itemgetter(0, 1, 2)


class _RatingBuilder(_AnswerBuilder):
    who = "rater"

    def __init__(self, mapping: Mapping, criterion_key: CriterionKey | None) -> None:
        super().__init__(mapping, criterion_key)
        self._number = {
            name: cached_conversion(partial(optional_number, field=name, decimal_comma=mapping.decimal_comma))
            for name in ("seconds", "scale_max")
        }
        self._language = cached_conversion(lambda value: None if is_blank(value) else as_language(value))

    def _evidence(self, answers: ValuesByField) -> Iterable[str]:
        """The spans of each answer, from the column of its criterion or from the column for all criteria."""
        shared = answers.get("evidence", repeat(None))
        return (spans_as_json(as_spans(value)) if value else "" for value in shared)

    def _beside(self, answers: ValuesByField, places: tuple[Iterable[Any], ...]) -> Sequence[Iterable[Any]]:
        seconds, scale_max = (convert_column(convert, answers.get(name)) for name, convert in self._number.items())
        languages = convert_column(self._language, answers.get("language"))
        return seconds, languages, scale_max, *places, self._evidence(answers)


class VerdictRow(NamedTuple):
    """One judge's answer on one criterion of one item; the score may be a fraction or off the scale (import flags it).

    ``generator`` is given if the id of an item is only unique together with it; ``reply`` is the judge's raw text;
    ``variant`` names the prompt if a study used several prompts with one judge. ``file``, ``line`` and ``column`` give
    the place of the score. The other fields describe the request: ``prompt`` is its text, or its messages as JSON;
    ``cost`` is in USD, ``latency`` in seconds; then the counts of its tokens, and the model that answered.
    """

    item: str
    judge: str
    criterion: str
    score: float | None
    applicable: bool
    missing: bool
    rationale: str
    repeat: int
    reply: str
    generator: str | None
    file: str
    line: int
    column: str = "score"
    variant: str = ""
    prompt: str = ""
    served_model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    latency: float | None = None

    @property
    def request(self) -> VerdictRequest:
        """The request and the reply of the verdict."""
        return VerdictRequest(
            self.prompt, self.reply, self.served_model, self.tokens_in, self.tokens_out, self.cost, self.latency
        )


class VerdictRequest(NamedTuple):
    """The request of a verdict, as far as a file gives it."""

    prompt: str
    reply: str
    served_model: str
    tokens_in: int | None
    tokens_out: int | None
    cost: float | None
    latency: float | None


def parse_verdicts(
    files: Iterable[File],
    mapping: Mapping,
    *,
    progress: Progress | None = None,
    facts: TableFacts | None = None,
    criterion_key: CriterionKey | None = None,
) -> ParsedAnswers[VerdictRow]:
    """Read verdicts from all ``(name, content)`` files at once, in long format or with one column per criterion.

    Repetitions and contradictions are treated as in ``parse_ratings``; the key of an answer is (judge, variant, item,
    generator, criterion, repeat).
    """
    return _parsed(_VerdictBuilder(mapping, criterion_key), VerdictRow._make, _verdict_key, files, progress, facts)


_VERDICT_KEY = ("judge", "variant", "item", "generator", "criterion", "repeat")
_verdict_key: Callable[[PlainRow], Hashable] = itemgetter(*map(VerdictRow._fields.index, _VERDICT_KEY))


class _VerdictBuilder(_AnswerBuilder):
    who = "judge"

    def __init__(self, mapping: Mapping, criterion_key: CriterionKey | None) -> None:
        super().__init__(mapping, criterion_key)
        key = self._as_key
        self._repeat = cached_conversion(_repeat)
        self._generator = cached_conversion(lambda value: None if is_blank(value) else key(value, field="generator"))
        self._variant = cached_conversion(lambda value: "" if is_blank(value) else key(value, field="variant"))
        self._amounts = {
            name: cached_conversion(
                partial(_amount, field=name, is_whole=name in _TOKENS, decimal_comma=mapping.decimal_comma)
            )
            for name in (*_TOKENS, "cost", "latency")
        }

    def _beside(self, answers: ValuesByField, places: tuple[Iterable[Any], ...]) -> Sequence[Iterable[Any]]:
        repeats = self._repeat.convert_all(answers.get("repeat", [None] * len(answers["line"])))
        if (counted := answers.get("repeat_number")) is not None and "repeat" not in answers:
            repeats = map(_repeat_from_one, counted)
        replies = map(partial(_body, field="reply"), answers.get("reply", repeat(None)))
        generators = convert_column(self._generator, answers.get("generator"))
        variants = map(self._variant, answers.get("variant", repeat("")))
        prompts = map(partial(_body, field="prompt"), answers.get("prompt", repeat(None)))
        models = map(partial(as_text, field="served_model"), answers.get("served_model", repeat(None)))
        amounts = (convert_column(convert, answers.get(name)) for name, convert in self._amounts.items())
        return repeats, replies, generators, *places, variants, prompts, models, *amounts


_TOKENS = ("tokens_in", "tokens_out")
_MOST = {"tokens_in": 2**31 - 1, "tokens_out": 2**31 - 1, "cost": 9_999, "latency": 1e7}


def _body(value: Any, field: str) -> str:
    """A request or a reply as text; a list of messages becomes JSON."""
    if type(value) is str:
        return value
    return orjson.dumps(value).decode() if isinstance(value, list | dict) else as_text(value, field)


def _amount(value: Any, *, field: str, is_whole: bool, decimal_comma: bool) -> float | None:
    """The tokens, USD or seconds of a request, or None. Raises ``InvalidValue`` for any other value."""
    number = optional_number(value, field, decimal_comma=decimal_comma)
    if number is None:
        return None
    if not 0 <= number <= _MOST[field] or (is_whole and not number.is_integer()):
        most = f"{_MOST[field]:,.0f}"
        expected = (
            Words("a whole number from 0 to %(number)s for %(field)s", number=most, field=field)
            if is_whole
            else Words("a number from 0 to %(number)s for %(field)s", number=most, field=field)
        )
        raise InvalidValue(excerpt(value), expected, "amount", field=field)
    return int(number) if is_whole else number


def _repeat_from_one(value: Any) -> int:
    number = 1 if is_blank(value) else _repeat(value)
    if number < 1:
        raise InvalidValue(
            excerpt(value),
            Words("a whole number from 1 for %(field)s", field="repeat_number"),
            "repeat",
            field="repeat_number",
        )
    return number - 1


def _repeat(value: Any) -> int:
    number = 0.0 if is_blank(value) else as_number(value, "repeat")
    if number < 0 or not number.is_integer():
        raise InvalidValue(
            excerpt(value), Words("a whole number from 0 for %(field)s", field="repeat"), "repeat", field="repeat"
        )
    return int(number)
