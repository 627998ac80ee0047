"""Which scripts a language is written in, how people greet in it, and words that tell it from its neighbours. Pure.

Script first: it decides about most mistakes and is never wrong. Between languages of one script, frequent words are
counted, in a turn too; a language without a list is never said to be the wrong one by them. Of a whole dialogue
py3langid is asked as well, as in the check-up of datasets.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import regex

from accounts.languages import script
from annotation.checkup.written_languages import READ, Identifier, language_words

_SCRIPTS: Final = {
    "Jpan": ("Han", "Hiragana", "Katakana"),
    "Kore": ("Hangul", "Han"),
    "Hans": ("Han",),
    "Hant": ("Han",),
}
"""Scripts of the registry that are several scripts of Unicode. For all others regex knows the name."""
MOSTLY: Final = 0.7
"""The share of letters that are of the language's script. Other scripts write names of products and people."""
IN_A_TURN: Final = 0.4
FEWEST_LETTERS: Final = 15
"""With fewer letters nothing is said about the script or the language."""

GREETINGS: Final = {
    "ar": "مرحب أهلا اهلا السلام عليكم تحي صباح الخير مساء الخير حياك يسعد عزيز سيد",
    "cs": "dobrý dobré zdravím vážen ahoj",
    "da": "hej goddag godmorgen kære velkommen",
    "de": "hallo guten grüß moin liebe geehrte willkommen servus",
    "el": "γεια καλημέρα καλησπέρα αγαπητ χαίρετε καλώς",
    "en": "hello hi hey good dear welcome greetings thank",
    "es": "hola buen buenos buenas saludos estimad querid bienvenid gracias",
    "et": "tere tervis tervit lugupee austatud hei aitäh täname",
    "fa": "سلام درود وقت روز بخیر",
    "fi": "hei hyvä moi terve päivää huomenta iltaa tervetuloa arvoisa kiitos",
    "fr": "bonjour bonsoir salut chère cher bienvenue madame monsieur merci",
    "he": "שלום היי בוקר ערב צהריים יקר",
    "hi": "नमस्ते नमस्कार प्रणाम आदरणीय प्रिय हैलो सुप्रभात स्वागत",
    "hu": "jó üdvöz szia helló kedves tisztelt szervusz köszön",
    "id": "halo hai selamat salam yth",
    "it": "buongiorno buonasera salve ciao gentile benvenut caro cara grazie",
    "ja": "こんにちは こんばんは おはよう はじめまして お世話 ありがとう いらっしゃいませ お問い合わせ 様 さま 拝啓",
    "ko": "안녕 반갑 어서",
    "lt": "laba labas sveik gerb",
    "lv": "labdien sveik labrīt labvakar cien",
    "nb": "hei god hallo kjære velkommen",
    "nl": "hallo goed beste geachte hoi welkom dag",
    "pl": "dzień dobry witam cześć szanown hej",
    "pt": "olá ola bom boa prezad car bem-vind oi",
    "ro": "bun salut stimat drag",
    "ru": "здравствуй добрый доброе привет уважаем добро приветств",
    "sv": "hej god kära välkommen hallå",
    "tr": "merhaba selam günaydın iyi sayın değerli hoş",
    "uk": "добрий доброго вітаю привіт шановн здрастуй",
    "vi": "xin chào chào kính",
    "zh": "您好 你好 早上好 下午好 晚上好 欢迎 歡迎 尊敬 亲爱 感谢 嗨",
}
"""Beginnings of what stands in a greeting."""
_WORDS: Final = {
    "cs": "je se na že to jsem jak ale by tak není pro jste které už nebo",
    "da": "jeg er det ikke til har med som på vi kan af og din hvad mig",
    "de": "ich und ist nicht die der das sie mit für ein eine haben wir auf auch",
    "en": "the and you is to of that for have with this your are was can my",
    "es": "que el los las por con para una está su pero como más del muy mi",
    "et": "ja on ei et ma see kas saab teie oma kui aga siis mis meie olen seda selle minu mul või juba kuid nii veel",
    "fi": "ja on ei että se hän olen mutta kun myös teidän minä voit ole mitä tämä oli ovat nyt sen siinä jos vielä",
    "fr": "le les des est vous je pour une dans pas nous avec votre sur que mais",
    "hu": "a az és hogy nem egy van meg de ez is vagy már önnek lehet csak",
    "id": "yang dan di saya anda untuk dengan ini tidak itu dari akan kami bisa ada",
    "it": "il che di non per una sono gli della con mi ho del più questo anche",
    "lt": "ir kad yra tai aš jūsų ne su iš bet kaip ar mano prašau",
    "lv": "un ir ka es jūs jūsu ar no kas par bet var lai mans",
    "nb": "jeg er det ikke til har med som på vi kan av og deg hva meg",
    "nl": "de het een en ik niet van dat je voor met wij zijn maar uw ook",
    "pl": "nie się jest na że to do jak ale czy proszę już pan mam dla od",
    "pt": "que não uma para você com os por está mas em do da meu isso foi",
    "ro": "și este nu că pe în cu la pentru sunt dar mai am un vă din",
    "sv": "jag är det inte att och har med som på vi kan av din vad mig",
    "tr": "bir ve bu için ne ben siz ile de da var çok değil gibi ama",
    "vi": "và là của không có tôi cho bạn được với này một những đã",
    "bg": "и не да на се за е си от че съм ви как това ще",
    "ru": "и не в на что я вы с это по но как мы для ваш",
    "uk": "і не в на що я ви з це та але як ми для ваш",
    "ar": "في من على أن هذا ما لا إلى مع هل كان يمكن أو قد هذه",
    "fa": "در از به که این را با است برای شما می من آن یک",
    "ur": "کے میں کی ہے اور سے کا کو نے ہیں پر آپ یہ کہ",
    "hi": "है के में की से को का और हैं पर यह मैं आप नहीं",
    "mr": "आहे आणि मी या तो ते आहेत नाही तुम्ही मला हे काय",
}
_SURELY: Final = 4
"""Frequent words of another language, and so many times those of the language itself, that make it the other one.
Words that both have do not count."""


def scripts_of(language: str) -> tuple[str, ...]:
    """The Unicode scripts that a language is written in."""
    named = script(language)
    return _SCRIPTS.get(named, (named,))


@lru_cache(maxsize=256)
def _letters_of(scripts: tuple[str, ...]) -> regex.Pattern[str]:
    try:
        own = "".join(rf"\p{{Script={name}}}" for name in scripts)
        return regex.compile(rf"(?V1)[\p{{L}}&&[{own}]]")
    except regex.error:  # a script that Unicode does not have
        return regex.compile(r"\p{L}")


_LETTERS: Final = regex.compile(r"\p{L}")


def letter_counts(text: str, language: str) -> tuple[int, int]:
    """How many letters of the language's scripts a text has, and how many letters in all."""
    return len(_letters_of(scripts_of(language)).findall(text)), len(_LETTERS.findall(text))


def likely_language(text: str, language: str) -> str:
    """Another language that this text is surely in; empty if it may well be in ``language``."""
    own = language.split("-", maxsplit=1)[0]
    lists = _word_lists()
    if own not in lists:
        return ""
    words = _word_counts(text)
    theirs: Counter[str] = Counter()
    for word, count in words.items():
        if word not in lists[own]:
            for tag in _languages_of_words().get(word, ()):
                theirs[tag] += count
    for tag, listed in lists.items():
        if theirs[tag] >= _SURELY:
            ours = sum(words[word] for word in lists[own] - listed)
            if theirs[tag] >= _SURELY * ours:
                return tag
    return ""


def has_frequent_words(text: str, language: str) -> bool:
    """Whether a text has any of the frequent words of its language; true of a language without a list."""
    listed = _word_lists().get(language.split("-", maxsplit=1)[0])
    return listed is None or not listed.isdisjoint(_word_counts(text))


_WORD: Final = regex.compile(r"[\p{L}\p{M}]+")


@lru_cache(maxsize=8)
def _word_counts(text: str) -> Counter[str]:
    """How often each word stands in a text; kept, because one text is asked about several times in a row."""
    return Counter(_WORD.findall(unicodedata.normalize("NFC", text).casefold()))


def identified_language(text: str, language: str) -> str:
    """Another language that a whole dialogue or text is in, by the identifier of the check-up of datasets; empty if it
    may well be in ``language``, or the identifier does not know that."""
    identifier = _identifier(language)
    words = language_words(text[:READ])
    if not identifier.knows(language) or sum(map(str.isalpha, words)) < FEWEST_LETTERS:
        return ""
    return identifier.other_language(words, language)


def is_probably_in(text: str, language: str) -> bool:
    """Whether the identifier finds this language more probable than all others together."""
    identifier = _identifier(language)
    return identifier.knows(language) and identifier.share_of(language.split("-", maxsplit=1)[0], text) > 0.5


@lru_cache(maxsize=60)
def _identifier(language: str) -> Identifier:
    return Identifier([language])


@lru_cache(maxsize=1)
def _word_lists() -> dict[str, frozenset[str]]:
    return {tag: frozenset(unicodedata.normalize("NFC", words).split()) for tag, words in _WORDS.items()}


@lru_cache(maxsize=1)
def _languages_of_words() -> dict[str, list[str]]:
    """By frequent word, the languages that have it."""
    found: dict[str, list[str]] = {}
    for tag, listed in _word_lists().items():
        for word in listed:
            found.setdefault(word, []).append(tag)
    return found


def has_greeting(text: str, language: str) -> bool:
    """Whether a message has a greeting near its beginning; true in languages whose greetings are not known."""
    listed = GREETINGS.get(language.split("-", maxsplit=1)[0])
    if listed is None:
        return True
    beginning = unicodedata.normalize("NFKC", text[:400])[:160].casefold()
    beginning = "".join(letter for letter in beginning if letter not in _ARABIC_MARKS)
    return any(_begins_a_word(beginning, start) for start in _plain(listed.split()))


_ARABIC_MARKS: Final = frozenset("ًٌٍَُِّْـ")


def _plain(starts: Iterable[str]) -> list[str]:
    return [unicodedata.normalize("NFKC", start).casefold() for start in starts]


_WITHOUT_SPACES: Final = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Arabic}\p{Hebrew}]")


def _begins_a_word(text: str, start: str) -> bool:
    """Whether a word begins so; a short one of Latin letters must be the whole word. Where words are not divided by
    spaces, or an article may be joined to them, it may stand anywhere."""
    if _WITHOUT_SPACES.match(start):
        return start in text
    ending = r"(?![\p{L}\p{M}])" if len(start) <= SHORT_GREETING else ""
    return regex.search(rf"(?<![\p{{L}}\p{{M}}]){regex.escape(start)}{ending}", text) is not None


SHORT_GREETING: Final = 3
