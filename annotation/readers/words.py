"""Words of sentences about files: a template that the catalogues translate, and its values.

Readers know no Django and translate nothing. They return what they say as a template with values; its text is English,
for the API and the command line. Pages translate the template and compose it again (`annotation.views.import_words`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

IN_FORM, IN_FILE = "under “Mapping (YAML)”", "in the mapping"
"""Where a mapping is written: on the page of an import, and for the API and the command line."""


class Words(str):
    """A text in English with its ``template``, the key of the catalogues, and the ``values`` in it.

    ``english`` is the template of the text for the API and the command, where that differs from the page's. A value may
    be words too.
    """

    template: str
    english: str
    values: dict[str, str]

    def __new__(cls, template: str, english: str = "", /, **values: object) -> Self:
        english = english or template.replace(IN_FORM, IN_FILE)
        texts = {name: value if isinstance(value, str) else str(value) for name, value in values.items()}
        words = super().__new__(cls, english % texts)
        words.template, words.english, words.values = template, english, texts
        return words

    def __reduce__(self) -> tuple[Any, ...]:
        return _composed, (self.template, self.english, self.values)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `read_words` reads them."""
        values = {name: as_plain(value) for name, value in self.values.items()}
        return {"template": self.template, "english": self.english, "values": values}


class Setting(str):
    """A setting of a mapping as the API and the command write it: ``header_row: 2``; a page has a field for ``key``."""

    key: str

    def __new__(cls, key: str, text: str) -> Self:
        setting = super().__new__(cls, text)
        setting.key = key
        return setting

    def __reduce__(self) -> tuple[Any, ...]:
        return Setting, (self.key, str(self))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"setting": self.key, "text": str(self)}


class Field(str):
    """A field that a column can give, by its key in a mapping; a page shows its label."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"field": str(self)}


def _composed(template: str, english: str, values: Mapping[str, str]) -> Words:
    return Words(template, english, **values)


def as_plain(text: str) -> str | dict[str, Any]:
    """A text as a value for JSON: words and settings become objects."""
    return text.as_dict() if isinstance(text, Words | Setting | Field) else str(text)


def read_words(plain: str | Mapping[str, Any]) -> str:
    """The text from a value that ``as_plain`` returned."""
    if isinstance(plain, str):
        return plain
    if "setting" in plain:
        return Setting(plain["setting"], plain["text"])
    if "field" in plain:
        return Field(plain["field"])
    return _composed(
        plain["template"], plain["english"], {name: read_words(value) for name, value in plain["values"].items()}
    )


def words_by_text(texts: Iterable[str]) -> dict[str, Any]:
    """The words among some texts, by their English text, as values for JSON."""
    return {str(text): text.as_dict() for text in texts if isinstance(text, Words)}


def with_words(texts: Iterable[str], kept: Mapping[str, Any]) -> Iterator[str]:
    """The texts; those that `words_by_text` kept become `Words` again."""
    return (read_words(kept.get(text, text)) for text in texts)


def joined_words(parts: Iterable[str], separator: str = ", ") -> str:
    """The texts joined by a separator; `Words` among them can still be translated."""
    values = {f"part_{number}": part for number, part in enumerate(parts)}
    return _composed(separator.join(f"%({name})s" for name in values), "", values)


def either(names: Iterable[str]) -> str:
    """One of some names: ``a or b or c``."""
    first, *others = names
    for other in others:
        first = Words("%(name)s or %(other)s", name=first, other=other)
    return first
