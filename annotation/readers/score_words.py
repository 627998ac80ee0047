"""Answers that are neither plain numbers nor names of categories: percentages, fractions, dates, and the five words of
agreement, in the languages of the interface. A person is asked for their meaning; it is never assumed. Pure."""

from __future__ import annotations

import re
import unicodedata

# By language, from 1, the least agreement, to 5.
AGREEMENT = {
    "en": "strongly disagree | disagree | neither agree nor disagree | agree | strongly agree",
    "es": "totalmente en desacuerdo | en desacuerdo | ni de acuerdo ni en desacuerdo | "
    "de acuerdo | totalmente de acuerdo",
    "et": "ei nõustu üldse | ei nõustu | ei seda ega teist | nõustun | nõustun täielikult",
    "ja": "全くそう思わない | そう思わない | どちらともいえない | そう思う | 非常にそう思う",
    "ar": "لا أوافق بشدة | لا أوافق | محايد | أوافق | أوافق بشدة",
    "de": "stimme überhaupt nicht zu | stimme nicht zu | weder noch | stimme zu | stimme voll und ganz zu",
    "fr": "pas du tout d'accord | pas d'accord | ni d'accord ni pas d'accord | d'accord | tout à fait d'accord",
    "it": "per niente d'accordo | in disaccordo | né d'accordo né in disaccordo | d'accordo | completamente d'accordo",
    "pt": "discordo totalmente | discordo | nem concordo nem discordo | concordo | concordo totalmente",
    "ru": "полностью не согласен | не согласен | ни да ни нет | согласен | полностью согласен",
    "hi": "पूरी तरह असहमत | असहमत | न सहमत न असहमत | सहमत | पूरी तरह सहमत",
    "zh": "非常不同意 | 不同意 | 中立 | 同意 | 非常同意",
    "cs": "rozhodně nesouhlasím | nesouhlasím | ani souhlas ani nesouhlas | souhlasím | rozhodně souhlasím",
    "fi": "täysin eri mieltä | eri mieltä | en samaa enkä eri mieltä | samaa mieltä | täysin samaa mieltä",
    "hu": "egyáltalán nem értek egyet | nem értek egyet | egyet is értek meg nem is | egyetértek | teljesen egyetértek",
}
_NEUTRAL = (
    "neutral | neutraal | neutro | neutre | neutrale | нейтрально | तटस्थ | "
    "neutrální | neutraali | semleges | 普通 | 一般"
)
# Other answers on such scales; without a number, the place depends on how many there are.
_FURTHER = {
    "täiesti nõus": "5", "olen nõus": "4", "nõus": "4", "ei ole nõus": "2", "pole nõus": "2",
    "ei ole üldse nõus": "1", "üldse ei ole nõus": "1", "completely agree": "5", "completely disagree": "1",
    "somewhat agree": "", "slightly agree": "", "tend to agree": "", "pigem nõus": "",
    "somewhat disagree": "", "slightly disagree": "", "tend to disagree": "", "pigem ei ole nõus": "",
}  # fmt: skip
_PERCENT = re.compile(r"([+-]?[0-9]+(?:[.,][0-9]+)?)\s*(?:[%٪％]|per ?cent|protsenti)", re.IGNORECASE)
_OF = "/|⁄|／|out of|of|von|de|sur|su|из"
_FRACTION = re.compile(rf"([0-9]+(?:[.,][0-9]+)?)\s*(?:{_OF})\s*[0-9]+(?:[.,][0-9]+)?", re.IGNORECASE)
_DATE = re.compile(
    r"[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}(?:[T ][0-9:.]+Z?)?|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4}"
    r"|[0-9]{1,2}[-. ](?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*(?:[-. ][0-9]{2,4})?",
    re.IGNORECASE,
)
DATE, PERCENT, FRACTION, LIKERT = "dates", "percentages", "fractions", "words of agreement"


def _spelling(word: str) -> str:
    return " ".join(unicodedata.normalize("NFC", word).replace("’", "'").casefold().split())


_LIKERT = {
    _spelling(word): str(place)
    for words in AGREEMENT.values()
    for place, word in enumerate(words.split(" | "), start=1)
}
_LIKERT |= {_spelling(word): "3" for word in _NEUTRAL.split(" | ")} | _FURTHER


def _in_ascii_digits(word: str) -> str:
    """The answer with the digits of every script as 0 to 9, and without white space around it."""
    digits = (str(unicodedata.decimal(character, character)) for character in word.strip())
    return "".join(digits).replace("٫", ".")


def kind_of_answer(word: str) -> str:
    """The likely type of an answer that is not a number: `DATE`, `PERCENT`, `FRACTION` or `LIKERT`; "" for a name."""
    text = _in_ascii_digits(word)
    if _DATE.fullmatch(text):
        return DATE
    if _PERCENT.fullmatch(text):
        return PERCENT
    if _FRACTION.fullmatch(text):
        return FRACTION
    return LIKERT if _spelling(text) in _LIKERT else ""


def likely_score(word: str) -> str:
    """The number that an answer may mean, for a person to confirm; "" if no number is likely."""
    kind, text = kind_of_answer(word), _in_ascii_digits(word)
    if kind == LIKERT:
        return _LIKERT[_spelling(text)]
    match = _PERCENT.fullmatch(text) if kind == PERCENT else _FRACTION.fullmatch(text) if kind == FRACTION else None
    return match[1].replace(",", ".") if match else ""
