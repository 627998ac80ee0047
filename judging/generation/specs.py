"""What is written: templates, parameters with their levels and weights, and the rules of a reply. Pure.

A spec has one form, as JSON and as YAML. It is frozen into the plan that uses it, and `Spec.digest` names it.
A text that differs by language is a mapping from language tags to texts; the text under ``""`` is for all others.
The levels of a parameter may come from a list, of our own (`LISTS`) or uploaded (`list_levels`); they are frozen, too.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any, Final, Literal, get_args

import yaml
from django.utils.translation import gettext as _

from accounts.inputs import is_storable
from accounts.languages import canonical_language
from accounts.refusals import Refused
from annotation.readers import NAMED_FIELDS, FormatError, plain_document
from judging.asking.refused_parts import RESERVED as RESERVED_PARAMETERS

Kind = Literal["dialogue", "text", "pair", "conversation", "translation"]
Texts = Mapping[str, str]

PRESETS: Final = ("support-dialogues", "single-answers", "pairs", "stories", "translations")
ANSWERS: Final = "answers-to-prompts"
"""The spec of our own whose families are the items of a dataset: prompts that people wrote."""
SIMULATIONS: Final = ("simulated-users",)
"""Specs of our own whose texts are conversations, turn by turn."""
LISTS: Final = ("scenes", "personas", "affective-states", "genders", "cultures")
"""Lists of our own, for the levels of a parameter: ``levels_from: scenes``."""
RESERVED: Final = frozenset(
    {"language", "source_language", "family", "family_is_whole", "generator", "plan", "repeat", "spec"}
    | {"simulator", "user_turns", "ended", "set_aside"}
)
"""Names that no parameter has: places of a template, and attributes of an item."""
MOST_PARAMETERS: Final = 40
MOST_LEVELS: Final = 1_000
MOST_ROLES: Final = 8
MOST_TURNS: Final = 200
LONGEST_TEMPLATE: Final = 20_000
LONGEST_LEVEL: Final = 2_000
LONGEST_FILLED: Final = 100_000  # a template, or a field that is given, with the longest levels in its places
MOST_RETRIES: Final = 10
MOST_TRIES: Final = 50
MOST_USER_TURNS: Final = 50
SAMPLED_STEPS: Final = ("opening", "utterance", "answer")
"""The requests of a conversation for which a spec has sampling parameters."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,49}")
_KEY: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_STOP_MARK: Final = re.compile(r"[A-Z][A-Z0-9_]{3,39}")
_PLACE: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_FOLDER: Final = Path(__file__).parent / "presets"


@dataclass(frozen=True, slots=True)
class ParameterLevel:
    """One level of a parameter. ``texts``: what a template says for it, by language; the value itself without any."""

    value: str | int
    weight: float = 1.0
    texts: Texts = field(default_factory=dict)

    def text(self, language: str) -> str:
        """What stands in a template of this language."""
        return in_language(self.texts, language) or str(self.value)


@dataclass(frozen=True, slots=True)
class SpecParameter:
    """A parameter that is drawn for each family, and becomes an attribute of its items.

    One with a ``source`` has no levels: each family is an item of a dataset, and has the value of that field of it."""

    name: str
    title: str
    levels: tuple[ParameterLevel, ...]
    source: str = ""

    def level(self, value: str | int) -> ParameterLevel:
        """The level with this value."""
        return next(level for level in self.levels if level.value == value)


@dataclass(frozen=True, slots=True)
class WrittenField:
    """A named text of an item. One with ``texts`` is given: filled in as a template is, and not asked for."""

    name: str
    title: str = ""
    texts: Texts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnRules:
    """What every reply must keep to. ``count``: the parameter that says how many turns there are; without one there
    are from ``least`` to ``most``. ``longest``: characters of a turn or a field. ``least_percent``, ``most_percent``:
    the length of a translation in percent of its source."""

    roles: tuple[str, ...] = ()
    alternate: bool = True
    starts: str = ""
    ends: str = ""
    greets: str = ""
    count: str = ""
    least: int = 2
    most: int = 40
    longest: int = 8_000
    least_percent: int = 40
    most_percent: int = 250


@dataclass(frozen=True, slots=True)
class ConversationRules:
    """How a conversation is simulated: a model plays the user, a chatbot answers it.

    ``opening`` and ``later`` are what the user model is told for its first turn and for all others, before the scene
    (the spec's templates); ``chatbot`` is all that a chatbot is told: no parameter stands in it. ``first_tries`` and
    ``later_tries`` are the requests for one turn of the user; a conversation has at most ``user_turns``, and may end by
    the ``stop_mark`` after ``least_user_turns``. ``sampling``: parameters of requests, by step (`SAMPLED_STEPS`).
    """

    opening: Texts
    later: Texts
    chatbot: Texts
    stop_mark: str = "END_OF_DIALOGUE"
    first_tries: int = 10
    later_tries: int = 5
    user_turns: int = 10
    least_user_turns: int = 2
    longest_utterance: int = 600
    sampling: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def most_tries(self, turn: int) -> int:
        """How many requests one turn of the user may take; ``turn`` counts from 0."""
        return self.later_tries if turn else self.first_tries

    @property
    def stored(self) -> dict[str, Any]:
        """As JSON; numbers too where they are as usual, so that a spec shows its limits."""
        texts = {name: _stored_texts(getattr(self, name)) for name in _CONVERSATION_TEXTS}
        numbers = {name: getattr(self, name) for name in _CONVERSATION_NUMBERS}
        sampling = {step: dict(parameters) for step, parameters in self.sampling.items()}
        return {**texts, "stop_mark": self.stop_mark, **numbers, **({"sampling": sampling} if sampling else {})}


_CONVERSATION_TEXTS: Final = ("opening", "later", "chatbot")
_CONVERSATION_NUMBERS: Final = ("first_tries", "later_tries", "user_turns", "least_user_turns", "longest_utterance")


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec, checked. ``retries``: how often a realisation is asked for again after a reply that breaks the rules.
    ``conversation`` has a spec whose kind is conversation, and no other."""

    key: str
    title: str
    version: int
    kind: Kind
    system: str
    templates: Texts
    parameters: tuple[SpecParameter, ...]
    fields: tuple[WrittenField, ...] = ()
    rules: TurnRules = TurnRules()
    retries: int = 3
    description: str = ""
    conversation: ConversationRules | None = None

    @property
    def simulation(self) -> ConversationRules:
        """The rules of a conversation. Raises for a spec of another kind."""
        if self.conversation is None:
            raise ValueError(f"the spec {self.key!r} is no conversation")
        return self.conversation

    @property
    def user_role(self) -> str:
        """The speaker that a conversation begins with."""
        return self.rules.roles[0]

    @property
    def chatbot_role(self) -> str:
        """The speaker that answers."""
        return self.rules.roles[1]

    @property
    def sources(self) -> dict[str, str]:
        """By parameter, the field of an item that it is: with one, the families are the items of a dataset."""
        return {parameter.name: parameter.source for parameter in self.parameters if parameter.source}

    @property
    def asked_fields(self) -> tuple[WrittenField, ...]:
        """The fields that the generator writes."""
        return tuple(one for one in self.fields if not one.texts)

    @property
    def stored(self) -> dict[str, Any]:
        """As JSON that `parse_spec` reads; what is as usual is left out."""
        usual = TurnRules()
        rules = {name: getattr(self.rules, name) for name in TurnRules.__slots__}
        rules["roles"] = list(self.rules.roles)
        kept_rules = {name: value for name, value in rules.items() if value not in (getattr(usual, name), [])}
        whole: dict[str, Any] = {
            "key": self.key,
            "title": self.title,
            "description": self.description,
            "version": self.version,
            "kind": self.kind,
            "system": self.system,
            "templates": _stored_texts(self.templates),
            "parameters": [_stored_parameter(parameter) for parameter in self.parameters],
            "fields": [_stored_field(one) for one in self.fields],
            "rules": kept_rules,
            "retries": self.retries,
            "conversation": self.conversation.stored if self.conversation else {},
        }
        return {name: value for name, value in whole.items() if value not in ("", [], {})}

    @property
    def digest(self) -> str:
        """SHA-256 of what is stored."""
        plain = json.dumps(self.stored, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(plain.encode()).hexdigest()

    @property
    def as_yaml(self) -> str:
        """What `from_yaml` reads, for people to edit."""
        return yaml.dump(self.stored, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=110)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _block)


def _stored_parameter(parameter: SpecParameter) -> dict[str, Any]:
    if parameter.source:
        return {"name": parameter.name, "title": parameter.title, "source": parameter.source}
    levels: list[Any] = []
    for level in parameter.levels:
        more = {"weight": level.weight} if level.weight != 1 else {}
        texts = {"text": _stored_texts(level.texts)} if level.texts else {}
        levels.append({"value": level.value, **more, **texts} if more or texts else level.value)
    return {"name": parameter.name, "title": parameter.title, "levels": levels}


def _stored_field(one: WrittenField) -> dict[str, Any]:
    texts = {"text": _stored_texts(one.texts)} if one.texts else {}
    return {"name": one.name, **({"title": one.title} if one.title else {}), **texts}


def _stored_texts(texts: Texts) -> Any:
    return texts[""] if set(texts) == {""} else dict(texts)


def in_language(texts: Texts, language: str) -> str:
    """The text for a language: its own, that of the language without a region or script, or that for all."""
    return texts.get(language) or texts.get(language.split("-", maxsplit=1)[0]) or texts.get("", "")


def filled_text(
    spec: Spec, text: str, parameters: Mapping[str, str | int], language: str, language_name: str = ""
) -> str:
    """A text with the drawn parameters in its places."""
    levels = {parameter.name: parameter for parameter in spec.parameters}

    def written(place: re.Match[str]) -> str:
        name = place[1]
        if name == "language":
            return language_name
        if name not in levels or (levels[name].source and name not in parameters):
            return place[0]
        value = parameters[name]
        return str(value) if levels[name].source else levels[name].level(value).text(language)

    return _PLACE.sub(written, text).strip()


# --- Reading ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=len(PRESETS) + len(SIMULATIONS) + 1)
def preset(key: str) -> Spec:
    """A spec of our own."""
    if key not in (*PRESETS, *SIMULATIONS, ANSWERS):
        raise Refused(_("There is no preset “%(key)s”.") % {"key": key}, code="invalid")
    return from_yaml((_FOLDER / f"{key}.yaml").read_text(encoding="utf-8"))


def from_yaml(text: str) -> Spec:
    """The spec of a YAML or JSON text. Raises `Refused` with the field ``spec``, or with the fields of `parse_spec`."""
    try:
        values = plain_document("spec.yaml", text.encode("utf-8", "replace"))
    except FormatError as error:
        raise _refused({"spec": str(error)}) from None
    return parse_spec(values)


def parse_spec(stored: Any) -> Spec:
    """The spec, checked. Raises `Refused` whose fields name the place of each problem: ``parameters[2].levels``."""
    if not isinstance(stored, Mapping):
        raise _refused({"spec": _("Write a spec as named values: key, title, kind, templates, parameters, rules.")})
    reading = _Reading({})
    spec = reading.spec(stored)
    if reading.problems:
        raise _refused(reading.problems)
    return spec


def list_levels(name: str, raw: bytes) -> list[Any]:
    """The levels of an uploaded list, as a parameter of a spec has them; the ending of its name says the format.

    A table (CSV or TSV) has the columns value, weight, text and text_et, text_ar and so on; without such a heading, its
    first column has the values. YAML and JSON have a list as in a spec. Raises `Refused` with the places of problems.
    """
    try:
        if name.lower().endswith((".csv", ".tsv")):
            listed: Any = _table_levels(raw.decode("utf-8-sig"), "\t" if name.lower().endswith(".tsv") else ",")
        else:
            listed = plain_document(name, raw)
    except (FormatError, UnicodeDecodeError, csv.Error) as error:
        raise _refused({"levels": str(error)}) from None
    listed = listed.get("levels") if isinstance(listed, Mapping) else listed
    reading = _Reading({})
    parameter = reading.parameter({"name": "listed", "levels": listed}, "list")
    if reading.problems:
        raise _refused(reading.problems)
    levels: list[Any] = _stored_parameter(parameter)["levels"]
    return levels


def _table_levels(text: str, delimiter: str) -> list[Any]:
    rows = [row for row in csv.reader(StringIO(text), delimiter=delimiter) if any(cell.strip() for cell in row)]
    heading = [cell.strip().casefold() for cell in rows[0]] if rows else []
    if "value" not in heading:
        return [row[0].strip() for row in rows]
    levels: list[Any] = []
    for row in rows[1:]:
        cells = {name: cell.strip() for name, cell in zip(heading, row, strict=False) if cell.strip()}
        texts = {name[5:]: cell for name, cell in cells.items() if name.startswith("text_")}
        texts |= {"": cells["text"]} if "text" in cells else {}
        weight = cells.get("weight", "1")
        level = {"value": cells.get("value", ""), "weight": float(weight) if _NUMBER.fullmatch(weight) else weight}
        levels.append({**level, **({"text": texts} if texts else {})})
    return levels


def _texts_with_places(spec: Spec) -> dict[str, str]:
    """Every text in which parameters may stand, by its place in the spec."""
    texts = {"system": spec.system} | {f"templates.{tag}": text for tag, text in spec.templates.items()}
    texts |= {f"fields.{one.name}.{tag}": text for one in spec.fields for tag, text in one.texts.items()}
    for part in _CONVERSATION_TEXTS if spec.conversation else ():
        texts |= {f"conversation.{part}.{tag}": text for tag, text in getattr(spec.conversation, part).items()}
    return texts


_NUMBER: Final = re.compile(r"\d{1,9}(?:\.\d{1,9})?")


@lru_cache(maxsize=len(LISTS))
def _own_list(key: str) -> tuple[Any, ...]:
    return tuple(plain_document(f"{key}.yaml", (_FOLDER / "lists" / f"{key}.yaml").read_bytes()))


def _refused(problems: Mapping[str, str]) -> Refused:
    first = next(iter(problems.items()))
    sentence = _("The spec can't be used: %(place)s: %(problem)s") % {"place": first[0], "problem": first[1]}
    return Refused(sentence, code="invalid", fields=problems)


@dataclass(slots=True)
class _Reading:
    """Reads plain values; the first problem of each place is kept."""

    problems: dict[str, str]

    def refuse(self, place: str, sentence: str) -> None:
        self.problems.setdefault(place, sentence)

    def spec(self, stored: Mapping[str, Any]) -> Spec:
        self.known(stored, "", Spec.__slots__)
        kind = self.text(stored, "kind", longest=20)
        if kind not in get_args(Kind):
            self.refuse("kind", _("Write one of: %(names)s.") % {"names": ", ".join(get_args(Kind))})
        key = self.text(stored, "key", longest=60)
        if not _KEY.fullmatch(key):
            self.refuse("key", _("Use small Latin letters, digits and hyphens."))
        parameters = tuple(
            self.parameter(one, f"parameters[{number}]")
            for number, one in enumerate(
                self.list(stored, "parameters", MOST_PARAMETERS, required=kind != "translation"), 1
            )
        )
        names = [parameter.name for parameter in parameters]
        for number, name in enumerate(names, 1):
            if name in names[: number - 1]:
                self.refuse(f"parameters[{number}].name", _("Another parameter has this name."))
        spec = Spec(
            key=key,
            title=self.text(stored, "title", longest=200),
            version=self.whole(stored, "version", 1, 1_000_000, 1),
            kind=kind,  # type: ignore[arg-type]  # checked above
            system=self.text(stored, "system", longest=LONGEST_TEMPLATE, required=False),
            templates=self.texts(stored.get("templates"), "templates", LONGEST_TEMPLATE, required=True),
            parameters=parameters,
            fields=tuple(
                self.field(one, f"fields[{number}]")
                for number, one in enumerate(self.list(stored, "fields", len(NAMED_FIELDS), required=False), 1)
            ),
            rules=self.rules(stored.get("rules") or {}, kind),
            retries=self.whole(stored, "retries", 0, MOST_RETRIES, 3),
            description=self.text(stored, "description", longest=2_000, required=False),
            conversation=self.conversation(stored.get("conversation")) if kind == "conversation" else None,
        )
        if kind != "conversation" and stored.get("conversation"):
            self.refuse("conversation", _("Only a spec of the kind “conversation” has this part."))
        self.together(spec)
        if spec.conversation:
            self.conversation_together(spec, spec.conversation)
        return spec

    def together(self, spec: Spec) -> None:
        """What depends on several parts."""
        names = {parameter.name for parameter in spec.parameters} | {"language"}
        names |= {"source_language"} if spec.kind == "translation" else set()
        texts = _texts_with_places(spec)
        longest = {
            one.name: max(
                (len(text) for level in one.levels for text in (str(level.value), *level.texts.values())), default=0
            )
            for one in spec.parameters
        }
        for place, text in texts.items():
            places = _PLACE.findall(text)
            if unknown := [name for name in places if name not in names]:
                self.refuse(place.rstrip("."), _("There is no parameter “%(name)s”.") % {"name": unknown[0]})
            if len(text) + sum(longest.get(name, 0) for name in places) > LONGEST_FILLED:
                wrong = _("With its parameters filled in, it could have more than %d characters.") % LONGEST_FILLED
                self.refuse(place.rstrip("."), wrong)
        counted = next((one for one in spec.parameters if one.name == spec.rules.count), None)
        if spec.rules.count and counted is None:
            self.refuse("rules.count", _("There is no parameter “%(name)s”.") % {"name": spec.rules.count})
        elif counted and not all(isinstance(one.value, int) and 0 < one.value <= MOST_TURNS for one in counted.levels):
            self.refuse("rules.count", _("Each of its levels must be a whole number from 1 to %d.") % MOST_TURNS)
        self.by_kind(spec)

    def by_kind(self, spec: Spec) -> None:
        """What each kind of text needs."""
        asked = {one.name for one in spec.asked_fields}
        if spec.kind == "translation":
            if spec.parameters or spec.fields:
                wrong = _("A translation has no parameters and no fields of its own: they are those of the items.")
                self.refuse("parameters" if spec.parameters else "fields", wrong)
        elif not spec.parameters:
            self.refuse("parameters", _("Give at least one parameter: without one, all families are the same."))
        if spec.kind == "text" and not asked:
            self.refuse("fields", _("Name at least one field that the generator writes, such as answer."))
        if spec.kind == "pair" and not {"passage_a", "passage_b"} <= asked:
            self.refuse("fields", _("A pair needs the fields passage_a and passage_b."))
        if spec.kind == "dialogue" and asked:
            self.refuse("fields", _("A dialogue is written as turns. Its fields need a text of their own."))

    def conversation(self, stored: Any) -> ConversationRules:
        place = "conversation"
        if not isinstance(stored, Mapping):
            names = ", ".join(ConversationRules.__slots__)
            self.refuse(place, _("Write named values: %(names)s.") % {"names": names})
            return ConversationRules({}, {}, {})
        self.known(stored, place, ConversationRules.__slots__)
        usual = ConversationRules({}, {}, {})
        most = {"first_tries": MOST_TRIES, "later_tries": MOST_TRIES, "longest_utterance": 100_000}
        parts: dict[str, Any] = {
            name: self.whole(stored, name, 1, most.get(name, MOST_USER_TURNS), getattr(usual, name), place)
            for name in _CONVERSATION_NUMBERS
        }
        parts |= {
            name: self.texts(stored.get(name), f"{place}.{name}", LONGEST_TEMPLATE, required=True)
            for name in _CONVERSATION_TEXTS
        }
        mark = self.text(stored, "stop_mark", place, longest=40, required=False) or usual.stop_mark
        if not _STOP_MARK.fullmatch(mark):
            self.refuse(f"{place}.stop_mark", _("Use at least four capital Latin letters, digits and underscores."))
        sampling = self.sampling(stored.get("sampling") or {}, f"{place}.sampling")
        return ConversationRules(**parts, stop_mark=mark, sampling=sampling)

    def sampling(self, stored: Any, place: str) -> dict[str, dict[str, float]]:
        if not isinstance(stored, Mapping):
            self.refuse(place, _("Write named values: %(names)s.") % {"names": ", ".join(SAMPLED_STEPS)})
            return {}
        self.known(stored, place, SAMPLED_STEPS)
        sampling: dict[str, dict[str, float]] = {}
        for step, parameters in stored.items():
            if not isinstance(parameters, Mapping) or not all(
                isinstance(number, int | float) and not isinstance(number, bool) and abs(number) <= 1_000_000
                for number in parameters.values()
            ):
                self.refuse(f"{place}.{step}", _("Write parameters with numbers, such as temperature: 0.9."))
                continue
            if reserved := sorted(RESERVED_PARAMETERS & parameters.keys()):
                self.refuse(f"{place}.{step}", _("Not a parameter of a judge: %s") % ", ".join(reserved))
                continue
            sampling[str(step)] = {str(name)[:50]: number for name, number in parameters.items()}
        return sampling

    def conversation_together(self, spec: Spec, rules: ConversationRules) -> None:
        """What a conversation needs, and what must not be in it."""
        if len(spec.rules.roles) != 2:
            self.refuse("rules.roles", _("A conversation has two roles: first the user, then the chatbot."))
        if spec.asked_fields:
            self.refuse("fields", _("A dialogue is written as turns. Its fields need a text of their own."))
        if spec.system:
            self.refuse("system", _("A conversation has its system texts under “conversation”."))
        for name in (*_NAMING_ROLES, "count"):
            if getattr(spec.rules, name):
                self.refuse(f"rules.{name}", _("A conversation has no such rule."))
        if rules.least_user_turns > rules.user_turns:
            self.refuse("conversation.least_user_turns", _("The most is less than the least."))
        for tag, text in rules.chatbot.items():
            if seen := [name for name in _PLACE.findall(text) if name != "language"]:
                place = f"conversation.chatbot.{tag}".rstrip(".")
                self.refuse(place, _("The chatbots must not see the parameter “%(name)s”.") % {"name": seen[0]})

    def parameter(self, stored: Any, place: str) -> SpecParameter:
        if not isinstance(stored, Mapping):
            self.refuse(place, _("Write name, title and levels."))
            return SpecParameter("", "", ())
        self.known(stored, place, SpecParameter.__slots__)
        name = self.text(stored, "name", place, longest=50)
        if not _NAME.fullmatch(name):
            self.refuse(f"{place}.name", _("Use small Latin letters, digits and underscores; begin with a letter."))
        if name in RESERVED:
            self.refuse(f"{place}.name", _("This name has a meaning of its own. Choose another one."))
        if "source" in stored:
            return self.of_source(stored, name, place)
        if own := self.text(stored, "levels_from", place, longest=50, required=False):
            if own not in LISTS:
                self.refuse(f"{place}.levels_from", _("Write one of: %(names)s.") % {"names": ", ".join(LISTS)})
            stored = {**stored, "levels": [*_own_list(own)] if own in LISTS else ["-"]}
        levels = tuple(
            self.level(one, f"{place}.levels[{number}]")
            for number, one in enumerate(self.list(stored, "levels", MOST_LEVELS, place), 1)
        )
        weights = stored.get("weights")  # beside levels that are plain values
        if weights is not None:
            levels = self.weighted(levels, weights, f"{place}.weights")
        values = [str(level.value) for level in levels]
        if len(set(values)) < len(values):
            self.refuse(f"{place}.levels", _("Two levels are the same."))
        if levels and sum(level.weight for level in levels) <= 0:
            self.refuse(f"{place}.levels", _("At least one weight must be above 0."))
        return SpecParameter(name, self.text(stored, "title", place, longest=100, required=False) or name, levels)

    def of_source(self, stored: Mapping[str, Any], name: str, place: str) -> SpecParameter:
        source = self.text(stored, "source", place, longest=50)
        if source not in NAMED_FIELDS:
            self.refuse(f"{place}.source", _("Write one of: %(names)s.") % {"names": ", ".join(NAMED_FIELDS)})
        return SpecParameter(name, self.text(stored, "title", place, longest=100, required=False) or name, (), source)

    def weighted(self, levels: tuple[ParameterLevel, ...], weights: Any, place: str) -> tuple[ParameterLevel, ...]:
        if not isinstance(weights, list) or len(weights) != len(levels):
            self.refuse(place, _("Give a weight for each level."))
            return levels
        read = [self.weight(weight, place) for weight in weights]
        return tuple(
            ParameterLevel(level.value, weight, level.texts) for level, weight in zip(levels, read, strict=True)
        )

    def level(self, stored: Any, place: str) -> ParameterLevel:
        value, weight, texts = stored, 1.0, {}
        if isinstance(stored, Mapping):
            self.known(stored, place, ("value", "weight", "text"))
            value = stored.get("value")
            weight = self.weight(stored.get("weight", 1), f"{place}.weight")
            texts = self.texts(stored.get("text"), f"{place}.text", LONGEST_LEVEL)
        if (
            isinstance(value, bool)
            or not isinstance(value, str | int)
            or (isinstance(value, str) and not value.strip())
        ):
            self.refuse(place, _("A level is a text or a whole number."))
            return ParameterLevel("")
        if len(str(value)) > LONGEST_LEVEL or not is_storable(value):
            self.refuse(place, _("At most %d characters.") % LONGEST_LEVEL)
            return ParameterLevel("")
        return ParameterLevel(value, weight, texts)

    def weight(self, weight: Any, place: str) -> float:
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1_000_000:
            self.refuse(place, _("A weight is a number from 0 on."))
            return 1.0
        return float(weight)

    def field(self, stored: Any, place: str) -> WrittenField:
        stored = {"name": stored} if isinstance(stored, str) else stored
        if not isinstance(stored, Mapping):
            self.refuse(place, _("Write the name of a field."))
            return WrittenField("")
        self.known(stored, place, ("name", "title", "text"))
        name = self.text(stored, "name", place, longest=50)
        names = [one for one in NAMED_FIELDS if one != "passages"]
        if name not in names:
            self.refuse(f"{place}.name", _("Write one of: %(names)s.") % {"names": ", ".join(names)})
        texts = self.texts(stored.get("text"), f"{place}.text", LONGEST_TEMPLATE)
        return WrittenField(name, self.text(stored, "title", place, longest=100, required=False), texts)

    def rules(self, stored: Any, kind: str) -> TurnRules:
        if not isinstance(stored, Mapping):
            self.refuse("rules", _("Write named values: %(names)s.") % {"names": ", ".join(TurnRules.__slots__)})
            return TurnRules()
        self.known(stored, "rules", TurnRules.__slots__)
        roles = self.list(stored, "roles", MOST_ROLES, "rules", required=kind in ("dialogue", "conversation"))
        if not all(isinstance(role, str) and _NAME.fullmatch(role) for role in roles) or len({*map(str, roles)}) < len(
            roles
        ):
            self.refuse("rules.roles", _("Use small Latin letters, digits and underscores; begin with a letter."))
            roles = []
        usual = TurnRules()
        alternate = stored.get("alternate", usual.alternate)
        if not isinstance(alternate, bool):
            self.refuse("rules.alternate", _("Write true or false."))
        parts = {name: self.text(stored, name, "rules", longest=50, required=False) for name in _NAMING_ROLES}
        for name, role in parts.items():
            if role and role not in roles:
                self.refuse(f"rules.{name}", _("Write one of: %(names)s.") % {"names": ", ".join(roles)})
        rules = TurnRules(
            roles=tuple(roles),
            alternate=bool(alternate),
            **parts,
            count=self.text(stored, "count", "rules", longest=50, required=False),
            least=self.whole(stored, "least", 1, MOST_TURNS, usual.least, "rules"),
            most=self.whole(stored, "most", 1, MOST_TURNS, usual.most, "rules"),
            longest=self.whole(stored, "longest", 1, 100_000, usual.longest, "rules"),
            least_percent=self.whole(stored, "least_percent", 1, 100, usual.least_percent, "rules"),
            most_percent=self.whole(stored, "most_percent", 100, 2_000, usual.most_percent, "rules"),
        )
        if rules.least > rules.most:
            self.refuse("rules.most", _("The most is less than the least."))
        return rules

    # Plain values

    def known(self, stored: Mapping[str, Any], place: str, names: Iterable[str]) -> None:
        allowed = [*names, "weights", "levels_from"] if "levels" in names else [*names]
        for name in stored:
            if name not in allowed:
                inside = f"{place}.{name}" if place else str(name)
                self.refuse(inside[:100], _("Unknown. There are: %(names)s.") % {"names": ", ".join(allowed)})

    def text(
        self, stored: Mapping[str, Any], name: str, place: str = "", *, longest: int, required: bool = True
    ) -> str:
        text = stored.get(name, "")
        text = "" if text is None else str(text) if isinstance(text, int) and not isinstance(text, bool) else text
        inside = f"{place}.{name}" if place else name
        if not isinstance(text, str) or not is_storable(text):
            self.refuse(inside, _("Write a text."))
            return ""
        if required and not text.strip():
            self.refuse(inside, _("Write a text."))
        if len(text) > longest:
            self.refuse(inside, _("At most %d characters.") % longest)
        return text.strip()

    def texts(self, stored: Any, place: str, longest: int, *, required: bool = False) -> dict[str, str]:
        if stored is None and not required:
            return {}
        stored = {"": stored} if isinstance(stored, str) else stored
        if not isinstance(stored, Mapping) or not stored:
            self.refuse(place, _("Write a text, or texts by language."))
            return {}
        texts: dict[str, str] = {}
        for tag, text in stored.items():
            inside = f"{place}.{tag}" if tag else place
            if not isinstance(text, str) or not text.strip() or len(text) > longest or not is_storable(text):
                self.refuse(inside, _("Write a text of at most %d characters.") % longest)
                continue
            try:
                texts[canonical_language(str(tag)) if tag else ""] = text.strip()
            except ValueError as error:
                self.refuse(inside, str(error))
        return texts

    def whole(self, stored: Mapping[str, Any], name: str, least: int, most: int, default: int, place: str = "") -> int:
        number = stored.get(name, default)
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            wrong = _("Write a whole number from %(least)s to %(most)s.") % {"least": least, "most": most}
            self.refuse(f"{place}.{name}" if place else name, wrong)
            return default
        return number

    def list(
        self, stored: Mapping[str, Any], name: str, most: int, place: str = "", *, required: bool = True
    ) -> Sequence[Any]:
        values = stored.get(name) or []
        inside = f"{place}.{name}" if place else name
        if not isinstance(values, list) or (required and not values):
            self.refuse(inside, _("Write a list."))
            return []
        if len(values) > most:
            self.refuse(inside, _("At most %d.") % most)
        return values[:most]


_NAMING_ROLES: Final = ("starts", "ends", "greets")
