"""Canonical language tags (BCP 47), and the direction and the names of languages.

Pure: the registry is Unicode CLDR in Babel. All tags stored or compared in Panelbench come from
`canonical_language`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from babel.languages import get_official_languages

_RIGHT_TO_LEFT = """
Adlm Arab Aran Armi Avst Chrs Cprt Elym Gara Hatr Hebr Hung Khar Lydi Mand Mani Mend Merc Mero Narb Nbat Nkoo Orkh Ougr
Palm Phli Phlp Phnx Prti Rohg Samr Sarb Sogd Sogo Syrc Thaa Todr Yezi
"""
RTL_SCRIPTS = frozenset(_RIGHT_TO_LEFT.split())
_ENGLISH = Locale("en")
_EXTLANG_PREFIXES = frozenset({"ar", "kok", "lv", "ms", "sgn", "sw", "uz", "zh"})

_SHAPE = re.compile(
    r"""
    (?P<language>[a-z]{2,3})
    (?P<extlang>-[a-z]{3})?
    (?P<script>-[a-z]{4})?
    (?P<region>-(?:[a-z]{2}|[0-9]{3}))?
    (?P<variants>(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*)
    (?P<extensions>(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*)
    (?P<private>-x(?:-[a-z0-9]{1,8})+)?
    """,
    re.VERBOSE,
)
_PRIVATE_LANGUAGE = re.compile(r"q[a-t][a-z]")
_PRIVATE_REGION = re.compile(r"AA|Q[M-Z]|X[A-Z]|ZZ")


@dataclass(frozen=True, slots=True)
class _Tag:
    """The subtags of one canonical tag."""

    language: str
    script: str = ""
    region: str = ""
    rest: str = ""

    def __str__(self) -> str:
        return "-".join(part for part in (self.language, self.script, self.region, self.rest) if part)


@lru_cache(maxsize=4096)
def canonical_language(tag: str) -> str:
    """The one spelling of a language tag: ``iw`` -> ``he``, ``pt_br`` -> ``pt-BR``, ``eng`` -> ``en``.

    Raises ``ValueError``, with a sentence for the person who typed it, when the tag is not well formed, names no known
    language, script or region, or is ``und``.
    """
    return str(_parse(tag))


def direction(tag: str) -> str:
    """``"rtl"`` or ``"ltr"``: the direction of the script that a canonical tag is written in."""
    return "rtl" if script(tag) in RTL_SCRIPTS else "ltr"


def script(tag: str) -> str:
    """The four-letter script of a canonical tag, named in it or likely for it (``pa-PK`` -> ``Arab``)."""
    parsed = _parse(tag)
    if parsed.script:
        return parsed.script
    likely = get_global("likely_subtags")
    full = likely.get(f"{parsed.language}_{parsed.region}") or likely.get(parsed.language) or ""
    return next((part for part in full.split("_") if len(part) == 4), "Latn")


def likely_region(tag: str) -> str:
    """The country of a canonical tag, named in it or likely for it (``et`` -> ``EE``); ``""`` if none is."""
    parsed = _parse(tag)
    likely = str(get_global("likely_subtags").get(parsed.language) or "")
    return parsed.region or next((part for part in likely.split("_")[1:] if len(part) == 2), "")


def endonym(tag: str) -> str:
    """The name of a language in that language, with its script and region: ``português (Brasil)``."""
    parsed = _parse(tag)
    return _name(parsed, _own_locale(parsed) or _ENGLISH)


def english_name(tag: str) -> str:
    """The English name of a language, with its script and region: ``Portuguese (Brazil)``."""
    return _name(_parse(tag), _ENGLISH)


def both_names(tag: str, reader: str | None = None) -> str:
    """A language's English name, and its own where that is another: ``Arabic (العربية)``; its own for others."""
    english, own = english_name(tag), endonym(tag)
    if not (reader or "en").startswith("en"):
        return own
    return english if own == english else f"{english} ({own})"


def name_for(tag: str, reader: str | None) -> str:
    """What pages call a language: in English for a reader of English pages, else in the language itself."""
    return english_name(tag) if (reader or "en").startswith("en") else endonym(tag)


def in_name_order(tags: Iterable[str], reader: str | None) -> list[str]:
    """Tags in the order in which every page lists languages: by their names on it."""
    return sorted(tags, key=lambda tag: (name_for(tag, reader).casefold(), tag))


def spoken_in(code: str) -> str:
    """People write the country for the language (``jp``, ``cz``): the language which that country speaks, or ``""``."""
    return next(iter(get_official_languages(code.upper())), "")


def language_called(name: str) -> str:
    """The tag of a language called by its English name (``Estonian`` -> ``et``), or ``""``."""
    return _by_english_name().get(name.strip().casefold(), "")


@lru_cache(maxsize=1)
def _by_english_name() -> dict[str, str]:
    return {name.casefold(): str(code).replace("_", "-") for code, name in _ENGLISH.languages.items()}


@lru_cache(maxsize=4096)
def _parse(tag: str) -> _Tag:
    match = _SHAPE.fullmatch(tag.strip().replace("_", "-").lower()) if tag.isascii() else None
    if match is None:
        meant = language_called(tag)
        raise ValueError(f"{tag!r} is not a language tag; write {meant or 'one such as et, pt-BR or zh-Hant'}")
    part = {name: (value or "").lstrip("-") for name, value in match.groupdict().items()}
    if part["extlang"] and part["language"] not in _EXTLANG_PREFIXES:
        raise ValueError(f"{tag!r}: {part['extlang']!r} is neither a script nor a region")
    base = _with_aliases(part["extlang"] or part["language"], part["script"].title(), part["region"].upper())
    _require_known(base, tag)
    rest = [*_variants(part["variants"], tag), *_extensions(part["extensions"], tag), part["private"]]
    return _Tag(base.language, base.script, base.region, "-".join(subtag for subtag in rest if subtag))


def _with_aliases(language: str, script_: str, region: str) -> _Tag:
    """Replace deprecated subtags; subtags that a replacement adds (``sh`` -> ``sr-Latn``) never override given ones."""
    regions = get_global("territory_aliases").get(region, [region])
    region = regions[0] if len(regions) == 1 else region
    language, *implied = str(get_global("language_aliases").get(language, language)).split("_")
    for subtag in implied:
        script_ = script_ or (subtag if len(subtag) == 4 else "")
        region = region or (subtag if len(subtag) != 4 else "")
    return _Tag(language, get_global("script_aliases").get(script_, script_), region)


def _require_known(base: _Tag, tag: str) -> None:
    if base.language == "und":
        raise ValueError(f"{tag!r} means an undetermined language; name the language")
    if not _is_language(base.language):
        raise ValueError(f"{base.language!r} is not a language code{_hint(base.language)}")
    if base.script and base.script not in _ENGLISH.scripts and not base.script.startswith("Qa"):
        raise ValueError(f"{base.script!r} is not a script code")
    if base.region and base.region not in _ENGLISH.territories and not _PRIVATE_REGION.fullmatch(base.region):
        raise ValueError(f"{base.region!r} is not a region code")


def _is_language(code: str) -> bool:
    known = code in get_global("likely_subtags") or code in _ENGLISH.languages
    return known or bool(_PRIVATE_LANGUAGE.fullmatch(code))


def _hint(code: str) -> str:
    meant = spoken_in(code)
    return f" (did you mean {meant!r}?)" if meant else ""


def _variants(text: str, tag: str) -> list[str]:
    variants = text.split("-") if text else []
    if len(set(variants)) != len(variants):
        raise ValueError(f"{tag!r} repeats a variant")
    return variants


def _extensions(text: str, tag: str) -> list[str]:
    """Extensions in the order of their singletons, as RFC 5646 section 4.5 has it."""
    extensions = sorted(re.findall(r"[a-wyz0-9](?:-[a-z0-9]{2,8})+", text))
    if len({extension[0] for extension in extensions}) != len(extensions):
        raise ValueError(f"{tag!r} repeats an extension")
    return extensions


def _own_locale(parsed: _Tag) -> Locale | None:
    """The locale of the language itself; a region or script that CLDR has no locale for does not matter."""
    for parts in ((parsed.language, parsed.script), (parsed.language, "")):
        try:
            return Locale.parse("_".join(part for part in parts if part))
        except (UnknownLocaleError, ValueError):
            continue
    return None


def _name(parsed: _Tag, locale: Locale) -> str:
    language = locale.languages.get(parsed.language) or _ENGLISH.languages.get(parsed.language) or parsed.language
    details = [
        locale.scripts.get(parsed.script, parsed.script),
        locale.territories.get(parsed.region, parsed.region),
        parsed.rest,
    ]
    shown = ", ".join(detail for detail in details if detail)
    return f"{language} ({shown})" if shown else language
