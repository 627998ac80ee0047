"""Placeholders that nobody filled in, and markup that readers would see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import regex

from analytics.stats.declared.declaring import translatable
from annotation.checkup.checked_items import CheckedItem, excerpt_around
from annotation.checkup.declared import Check, Hit

# No pattern has a repetition inside a repetition: the time grows with the length of the text.
_PLACEHOLDER = regex.compile(
    r"""
    \[ [^\[\]\n@]{0,40} \] (?!\()                                    # [REDACTED], [Your Name]; not [text](address)
    | \{\{?[ ]?[^\W\d][\w .:-]{0,40} \}?\}                             # {name}, {{ order.number }}
    | < (?=[\p{Lu}]) [\p{Lu}_][\p{Lu}\d_ ]{2,40} >                  # <NAME>, <ORDER NUMBER>
    | \$\{ [^{}\n]{1,40} \} | %\( \w{1,30} \)[sd] | %s(?!\w)        # ${name}, %(name)s
    | \b lorem [ ] ipsum \b
    | \b(?: X{3,} | TODO(?=:) | TBD | FIXME | PLACEHOLDER | REDACTED )\b
    | (?<![\p{L}]) _{3,} (?![\p{L}])                                # ____
    | \b HTTPURL \b | (?m: (?<=(?:^|:)[ ]{0,9}) URL (?=[ ]{0,9}$) )  # an address that was taken out
    """,
    regex.VERBOSE,
)
_LOREM = regex.compile(r"\blorem ipsum\b", regex.IGNORECASE)
# In square brackets stand remarks and references too: [1], [...], [sic], [Luke 2:14], [Smith, 2019].
_REMARK = regex.compile(r"\[(?:[\W\d_]*|sic|x|X|\p{L}[\p{L}\p{M}\d .&'’-]*(?:[:,] ?|\d:)\d[\d:.,–-]*)\]")
_MARKUP = regex.compile(
    r"</?(?:a|b|i|u|p|br|hr|em|li|ol|ul|td|th|tr|h[1-6]|div|img|pre|code|span|font|strong|table|tbody|thead|script|style)"
    r"(?:\s[^<>]{0,200})?\s{0,3}/?>|&(?:nbsp|amp|lt|gt|quot|apos|hellip|[mn]dash|[lr][ds]quo|#\d{2,6}|#x[0-9a-fA-F]{2,6});",
    regex.IGNORECASE,
)


class _Pattern(Check):
    """Whatever a pattern finds in any turn or field; the first place in each."""

    subject = "placeholders"
    patterns: ClassVar[tuple[regex.Pattern[str], ...]]

    def look(self, item: CheckedItem) -> Iterator[Hit]:
        for part in item.parts:
            matches = (match for pattern in self.patterns for match in pattern.finditer(part.text))
            if match := next((match for match in matches if not _REMARK.fullmatch(match.group())), None):
                shown = excerpt_around(part.text, match.start(), match.end())
                yield Hit(item.ordinal, part.place, {"found": match.group(), "text": shown})


class Placeholder(_Pattern):
    name = "placeholder"
    severity = "warning"
    title = translatable("Placeholder that was not filled in")
    help = translatable("Such as a word in brackets or braces, or a row of X; also other remarks in square brackets.")
    says = translatable("%(found)s in “%(text)s”")
    patterns = (_PLACEHOLDER, _LOREM)


class Markup(_Pattern):
    name = "markup"
    severity = "warning"
    title = translatable("HTML in the text")
    help = translatable("Line breaks and other tags: annotators and judges see them as they are written.")
    says = translatable("%(found)s in “%(text)s”")
    patterns = (_MARKUP,)


CHECKS: tuple[type[Check], ...] = (Placeholder, Markup)
