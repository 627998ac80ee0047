"""Evidence spans: marked texts of a turn or a named field that explain a score. Pure.

Offsets are Unicode code points of the stored text, from 0, half-open: ``text[start:end]`` is the quote. A turn is its
place in the dialogue, from 0. A field that is a list of texts is their text with a blank line between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from annotation.readers.problems import InvalidValue, excerpt
from annotation.readers.words import Words

MOST_SPANS = 200  # on one criterion of one item
LONGEST_LABEL = 120
_STARTS = ("start", "start_offset", "startOffset", "start_char", "begin")
_ENDS = ("end", "end_offset", "endOffset", "end_char")
_QUOTES = ("quote", "text", "span", "surface")
_EXPECTED = Words("a list of spans, each with start and end, from 0, and its turn (from 0) or field")


class Span(NamedTuple):
    """A marked text: ``turn`` or ``field`` name the text, unless a file leaves that to the quote (`located_span`)."""

    start: int
    end: int
    turn: int | None = None
    field: str = ""
    quote: str = ""
    label: str = ""
    severity: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values in the order of exports; what is not given is left out."""
        part = {"field": self.field} if self.turn is None else {"turn": self.turn}
        more = {name: text for name in ("label", "severity") if (text := getattr(self, name))}
        return {
            **({} if part == {"field": ""} else part),
            "start": self.start,
            "end": self.end,
            "quote": self.quote,
        } | more


def field_text(value: Any) -> str:
    """The text of a field; a list of texts becomes paragraphs."""
    return "\n\n".join(map(str, value)) if isinstance(value, list) else str(value)


def item_texts(turns: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> dict[int | str, str]:
    """The texts of an item that can be marked, by turn and by name of a field."""
    return {
        **{number: turn["text"] for number, turn in enumerate(turns)},
        **{name: field_text(value) for name, value in fields.items()},
    }


def span_fault(span: Span, texts: Mapping[int | str, str]) -> str:
    """What is wrong with a span: ``part``, ``range`` or ``quote``; "" if nothing is."""
    text = texts.get(span.field if span.turn is None else span.turn)
    if text is None:
        return "part"
    if not 0 <= span.start < span.end <= len(text):
        return "range"
    return "" if _lines(text[span.start : span.end]) == _lines(span.quote) else "quote"


def _lines(text: str) -> str:
    """The text with the line ends that a browser gives it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def located_span(span: Span, texts: Mapping[int | str, str]) -> Span:
    """The span with its turn or field and its quote, if a file leaves one of them out.

    Without turn or field, it is in the only text that has its quote at that place, or, without a quote, in the item's
    only text. Raises ``InvalidValue`` for a span that is in no text or in several, or with a quote that differs.
    """
    if span.turn is None and not span.field:
        fitting = [part for part in texts if not span_fault(_in(span, part, texts), texts)]
        if len(fitting) != 1 or not (span.quote or len(texts) == 1):
            text = Words("a span from %(start)s to %(end)s without turn and field", start=span.start, end=span.end)
            raise InvalidValue(text, Words("the turn or the field of each span"), "evidence", field="evidence")
        span = _in(span, fitting[0], texts)
    elif not span.quote:
        span = _in(span, span.field if span.turn is None else span.turn, texts)
    fault = span_fault(span, texts)
    if fault:
        raise InvalidValue(*_fault_in_words(fault, span), "evidence", field="evidence")
    return span._replace(quote=texts[span.field if span.turn is None else span.turn][span.start : span.end])


def _in(span: Span, part: int | str, texts: Mapping[int | str, str]) -> Span:
    place = {"turn": part} if isinstance(part, int) else {"field": part}
    text = texts.get(part, "")[max(span.start, 0) : max(span.end, 0)]
    return span._replace(**place, quote=span.quote or text)


def _place(span: Span) -> str:
    return (
        Words("the field %(field)s", field=span.field)
        if span.turn is None
        else Words("turn %(number)s (from 0)", number=span.turn)
    )


def _fault_in_words(fault: str, span: Span) -> tuple[str, str]:
    """The actual and the expected value of a span's fault, in words."""
    if fault == "part":
        return Words("a span in %(place)s", place=_place(span)), Words("a turn or field that the item has")
    ends = {"start": span.start, "end": span.end}
    if fault == "range":
        return Words("a span from %(start)s to %(end)s", **ends), Words("offsets within %(place)s", place=_place(span))
    return excerpt(span.quote), Words("the text of %(place)s from %(start)s to %(end)s", place=_place(span), **ends)


def as_spans(value: Any) -> tuple[Span, ...]:
    """The spans in a list of objects, or in its JSON text; empty for a blank. Raises ``InvalidValue``.

    Besides our own names of the offsets it reads those of other tools; ``labels`` is a list of one or more labels.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    parsed = _from_json(value) if isinstance(value, str) else value
    entries = [parsed] if isinstance(parsed, dict) else parsed
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidValue(excerpt(value), _EXPECTED, "evidence", field="evidence")
    if len(entries) > MOST_SPANS:
        raise InvalidValue(
            Words("%(number)s spans", number=f"{len(entries):,}"),
            Words("at most %(number)s", number=MOST_SPANS),
            "evidence",
            field="evidence",
        )
    return tuple(dict.fromkeys(_span(entry) for entry in entries))


def spans_as_json(spans: Iterable[Span]) -> str:
    """The spans as JSON text; "" without spans."""
    plain = [span.as_dict() for span in spans]
    return orjson.dumps(plain).decode() if plain else ""


def _from_json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise InvalidValue(excerpt(text), _EXPECTED, "evidence", field="evidence") from None


def _span(entry: Mapping[str, Any]) -> Span:
    start, end = (_whole(next((entry[name] for name in names if name in entry), None), entry) for names in _OFFSETS)
    turn, labels = entry.get("turn"), entry.get("labels", ())
    label = entry.get("label") or (", ".join(map(str, labels)) if isinstance(labels, list) else labels) or ""
    quote = next((entry[name] for name in _QUOTES if name in entry), "")
    return Span(
        start=start,
        end=end,
        turn=None if turn is None else _whole(turn, entry),
        field=_plain(entry.get("field")) if turn is None else "",
        quote=_plain(quote),
        label=_plain(label)[:LONGEST_LABEL],
        severity=_plain(entry.get("severity"))[:LONGEST_LABEL],
    )


def _plain(value: Any) -> str:
    return str(value or "").replace("\0", "")


_OFFSETS = (_STARTS, _ENDS)


def _whole(value: Any, entry: Mapping[str, Any]) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise InvalidValue(excerpt(dict(entry)), _EXPECTED, "evidence", field="evidence")
    return value
