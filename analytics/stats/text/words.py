"""Words and sentences of any script (METHODS 6).

Words are runs of letters, marks and digits, so that Devanagari vowel signs and Arabic tashkil stay in their word.
Scripts written without spaces (Han, kana, Thai, Lao, Khmer, Burmese) are cut by the optional ``budoux`` package where
it is installed and knows the language, else into characters with their marks. ``tokeniser`` says which was used.

Lemmas and stop words by language; the lemmatiser used is always named (METHODS 6).

The default is simplemma's dictionaries. EstNLTK (Estonian, as in S0) and Stanza are used on request where they are
installed; a language none of them knows keeps its word forms, and the name says so.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from analytics.stats.core.messages import Message

# --- words and sentences ---------------------------------------------------------------------------------------------
Words = Callable[[str], list[str]]

_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # Han iteration and zero
    (0x3041, 0x30FF),  # kana
    (0x31F0, 0x31FF),  # small katakana
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3134F),
)
_BUDOUX = {
    "ja": "japanese",
    "th": "thai",
    "zh": "simplified_chinese",
    "zh-Hant": "traditional_chinese",
    "zh-HK": "traditional_chinese",
    "zh-TW": "traditional_chinese",
}
_SENTENCE_ENDS = re.compile(r"[.!?…。！？｡।॥؟۔።]+[\s\"'»”’)\]」』]*|\n+")
_JOINERS = "\u200c\u200d"


def tokeniser(language: str | None = None) -> tuple[str, Words]:
    """The name of the tokeniser used for a language (BCP-47) and the function from text to lowercase words."""
    tag = language or ""
    model = _BUDOUX.get(tag) or _BUDOUX.get(tag.split("-")[0])
    if model and find_spec("budoux"):
        return "budoux", lambda text: [word for phrase in _phrases(model, text) for word in words(phrase, whole=True)]
    return Message("words by script"), words


def words(text: str, *, whole: bool = False) -> list[str]:
    """Lowercase words in order; unspaced scripts by character unless ``whole`` keeps their runs together."""
    return (_patterns().whole if whole else _patterns().by_character).findall(
        unicodedata.normalize("NFC", text).lower()
    )


def sentences(text: str) -> list[str]:
    """Sentences by their closing marks (Latin, CJK, danda, Arabic, Ethiopic) and line breaks."""
    return [part.strip() for part in _SENTENCE_ENDS.split(text) if words(part)]


class _Patterns:
    def __init__(self) -> None:
        unspaced = "".join(f"{chr(low)}-{chr(high)}" for low, high in _UNSPACED)
        marks = _marks()
        letter = rf"[^\W_]|[{marks}{_JOINERS}]"
        spaced = rf"(?:(?![{unspaced}])(?:{letter}))"
        inner = rf"{spaced}+(?:['’\-]{spaced}+)*"
        number = r"\d+(?:[.,]\d+)+"
        self.by_character = re.compile(rf"{number}|(?=[^\W_])(?:[{unspaced}](?:(?![{_JOINERS}])[{marks}])*|{inner})")
        self.whole = re.compile(rf"{number}|(?=[^\W_])(?:(?:[{unspaced}]|[{marks}])+|{inner})")


@cache
def _patterns() -> _Patterns:
    return _Patterns()


def _marks() -> str:
    """All combining marks as ranges of a character class: ``\\w`` leaves them out."""
    ranges: list[list[int]] = []
    for code in range(0x300, 0x20000):
        if unicodedata.category(chr(code))[0] == "M":
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges)


def _phrases(model: str, text: str) -> list[str]:
    return [str(phrase) for phrase in _parser(model).parse(text)]


@cache
def _parser(model: str) -> Any:
    return getattr(import_module("budoux"), f"load_default_{model}_parser")()


# --- lemmas and stop words -------------------------------------------------------------------------------------------
Lemmas = Callable[[list[str]], list[str]]


class MissingEngineError(ValueError):
    """An optional lemmatiser was asked for and isn't installed, or doesn't know the language."""


def lemmatiser(language: str | None, engine: str = "simplemma") -> tuple[str, Lemmas]:
    """The name of the lemmatiser used for a language (BCP-47) and the function from words to lemmas."""
    base = (language or "").split("-")[0].lower()
    if engine == "estnltk":
        return _estnltk(base)
    if engine == "stanza":
        return _stanza(base)
    if engine == "simplemma" and (known := _simplemma_language(base)):
        return "simplemma", lambda words: [_simplemma(word, known) for word in words]
    return Message("word forms"), lambda words: words


def without_stop_words(lemmas: list[str], language: str | None) -> list[str]:
    """The lemmas less the language's stop words; all of them where it has no list (``has_stop_words``)."""
    stop = _stop_lemmas((language or "").split("-")[0].lower())
    return [lemma for lemma in lemmas if lemma not in stop]


def has_stop_words(language: str | None) -> bool:
    """Whether there is a list of stop words for a language."""
    return (language or "").split("-")[0].lower() in STOP_WORDS


@cache
def _stop_lemmas(base: str) -> frozenset[str]:
    """Stop words as written and as lemmas, since they are looked up after lemmatising."""
    stop_words = STOP_WORDS.get(base, "").split()
    return frozenset(stop_words) | frozenset(lemmatiser(base)[1](list(stop_words)))


@cache
def _simplemma_language(base: str) -> str | None:
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

    code = {"no": "nb", "sr": "hbs", "hr": "hbs", "bs": "hbs", "fil": "tl"}.get(base, base)
    return code if code in SUPPORTED_LANGUAGES else None


@lru_cache(maxsize=200_000)
def _simplemma(word: str, language: str) -> str:
    from simplemma import lemmatize

    return str(lemmatize(word, lang=language)).lower()


def _estnltk(base: str) -> tuple[str, Lemmas]:
    if base != "et":
        raise MissingEngineError("EstNLTK knows Estonian only")
    _require("estnltk")
    analyze = import_module("estnltk.vabamorf.morf").analyze

    def lemmas(words: list[str]) -> list[str]:
        return [
            entry["analysis"][0]["lemma"].lower() if entry["analysis"] else entry["text"] for entry in analyze(words)
        ]

    return "estnltk", lemmas


def _stanza(base: str) -> tuple[str, Lemmas]:
    _require("stanza")
    pipeline = _stanza_pipeline(base)

    def lemmas(words: list[str]) -> list[str]:
        document = pipeline([words] if words else [])
        return [(word.lemma or word.text).lower() for sentence in document.sentences for word in sentence.words]

    return "stanza", lemmas


@cache
def _stanza_pipeline(base: str) -> Any:
    stanza = import_module("stanza")
    return stanza.Pipeline(base, processors="tokenize,pos,lemma", tokenize_pretokenized=True, download_method=None)


def _require(package: str) -> None:
    if find_spec(package) is None:
        raise MissingEngineError(f"the lemmatiser {package} is not installed: pip install 'panelbench[{package}]'")


# Function words by language: what says nothing about how varied a text's vocabulary is.

STOP_WORDS = {
    "ar": """
        في من على إلى عن مع هذا هذه ذلك التي الذي ما لا لم لن أن إن كان كانت هو هي هم أنا نحن أو و ثم كل بعد
        قبل بين حتى إذا قد كما لكن عند غير
    """,
    "cs": """
        a i o u k s z v ve na do od po pro při se si že je jsem jsi jsou jsme byl byla bylo být to ta ten ti
        já ty on ona my vy oni co jak kde když který která které ale nebo ani tak také už jen ještě má mít
        mi mě můj
    """,
    "de": """
        der die das den dem des ein eine einen einem einer eines und oder aber auch nicht kein keine ich du
        er sie es wir ihr mich mir dich dir ihn ihm uns euch ihnen sein ist sind war waren bin bist wird
        werden haben hat habe in im an am auf aus bei mit nach von vom zu zum zur für um über unter durch
        als wie wenn dass weil so noch nur schon sehr hier da was wer wo mein dein unser ihre ihren
    """,
    "en": """
        a an the and or but if then than so as of in on at by for with from to into about over under up down
        out off i you he she it we they me him her us them my your his its our their mine yours this that
        these those is am are was were be been being have has had do does did will would can could shall
        should may might must not no nor only very too just there here what which who whom whose when where
        why how all any some each both more most other such own same again don't doesn't didn't isn't aren't
        can't won't i'm you're it's that's i've i'll we're we'll
    """,
    "es": """
        el la los las un una unos unas y o pero si no ni de del a al en con por para sin sobre entre desde
        hasta que como cuando donde quien cual yo tú él ella ello nosotros vosotros ellos ellas me te se nos
        os lo le les mi tu su nuestro este esta esto ese esa eso es son era ser estar está están ha han hay
        he fue muy más ya también sólo
    """,
    "et": """
        ja ning või aga kuid et kui siis nagu see selle seda need nende neid tema ta nad ma mina sa sina me
        meie te teie mu mind mulle minu sinu oma oli on olen oled oleme olete olid ole olla ei mitte ka juba
        veel nii väga ainult kõik mis mida kes keda kus kuidas millal miks sest kas siin seal üks selles
        sellest sellele selleks peale pärast enne kohta jaoks ära välja
    """,
    "fa": """
        و در به از که این آن را با است برای تا بر هم یا اما اگر نه من تو او ما شما آنها بود شد می های یک هر
        چه کند شده باشد دارد خود
    """,
    "fi": """
        ja tai mutta että kun jos niin kuin myös vain vielä jo nyt hyvin ei en et emme ette eivät minä sinä
        hän me te he se ne tämä nämä tuo nuo minun sinun hänen meidän teidän heidän sen niiden tämän on olen
        olet olemme olette ovat oli olivat ollut olla joka jotka mikä mitä kuka missä milloin miksi miten
        kanssa jälkeen ennen sekä eli koska siis minulla sinulla teillä meillä siitä siinä sitä
    """,
    "fr": """
        le la les l un une des du de d et ou mais si ne pas ni que qui quoi dont où à au aux en dans par
        pour sur avec sans sous entre vers chez je tu il elle on nous vous ils elles me te se lui leur leurs
        mon ma mes ton ta tes son sa ses notre nos votre vos ce cet cette ces est sont était être suis es
        êtes a ont ai avez avoir plus très aussi bien comme quand y c j n s qu
    """,
    "he": """
        של על את אל עם הוא היא הם הן אני אתה אנחנו זה זאת זו לא כן או אבל כי אם גם רק מה מי איך איפה כל יש
        אין היה היתה להיות עוד מאוד
    """,
    "hi": """
        का की के को से में पर और या लेकिन यह वह ये वे मैं हम तुम आप है हैं था थी थे हो होना हूँ नहीं भी ही
        तो कि जो क्या कौन कहाँ कब कैसे एक इस उस इन उन अपने मेरा मेरे मेरी आपके आपका लिए साथ बाद तक
    """,
    "hu": """
        a az egy és vagy de hogy ha mert is nem ne sem csak már még nagyon úgy így mint én te ő mi ti ők ez
        azt ezt azok ezek annak ennek van vannak volt voltak vagyok lesz lenne lenni volna ki mit kit hol
        mikor miért hogyan minden meg el fel le be át ide oda itt ott akkor most után előtt alatt által
        szerint való ami aki amely
    """,
    "it": """
        il lo la i gli le l un uno una e o ma se non né di del dello della dei degli delle a al allo alla ai
        agli alle da dal dalla in nel nella nei con su sul sulla per tra fra che chi cui come quando dove io
        tu lui lei noi voi loro mi ti si ci vi mio tuo suo nostro vostro questo questa quello quella è sono
        era essere ho hai ha abbiamo hanno più molto anche già
    """,
    "nl": """
        de het een en of maar als dan dat die dit deze van in op aan bij met voor door over onder uit naar
        tot om te ik jij je hij zij ze wij we jullie u mij me hem haar ons hun mijn jouw zijn is was waren
        ben bent wordt worden heeft hebben heb niet geen ook nog al wel er hier daar wat wie waar wanneer
        hoe zo
    """,
    "pl": """
        i a o u w we z ze na do od po za przy dla że się nie tak to ten ta te ja ty on ona ono my wy oni
        mnie mi cię ci go mu jej jest są był była było być jestem co jak gdzie kiedy który która które ale
        lub albo czy już tylko jeszcze bardzo
    """,
    "pt": """
        o a os as um uma uns umas e ou mas se não nem de do da dos das em no na nos nas ao à com por para
        sem sobre entre até que como quando onde quem qual eu tu ele ela nós vós eles elas você vocês me te
        lhe meu minha seu sua nosso este esta isto esse essa isso é são era ser estar está foi tem ter há
        muito mais já também só
    """,
    "ru": """
        и а но или что чтобы как если то так же бы ли не ни в во на с со к ко по из за от до у о об при для
        над под без я ты он она оно мы вы они меня мне тебя тебе его ему её ей нас нам вас вам их им мой
        твой свой наш ваш это этот эта эти тот та те был была было были есть быть кто где когда почему
        который которая которые ещё уже только очень там тут
    """,
    "sv": """
        och eller men att om som så när då det den de en ett i på av för med till från vid under över jag du
        han hon vi ni mig dig honom henne oss er dem min din sin vår är var vara har hade inte ej också bara
        redan mycket här där vad vem hur varför denna detta dessa
    """,
    "tr": """
        ve veya ama fakat ile için bir bu şu o ben sen biz siz onlar da de ki mi mı mu mü ne kim nerede
        nasıl neden çok daha en gibi kadar sonra önce her hiç değil var yok olan olarak ise ya
    """,
    "uk": """
        і й та а але або що щоб як якщо то так же б чи не ні в у на з зі до по із за від про при для над під
        без я ти він вона воно ми ви вони мене мені тебе тобі його йому її їй нас нам вас вам їх їм мій твій
        свій наш ваш це цей ця ці той був була було були є бути хто де коли чому який яка які ще вже тільки
        дуже там тут
    """,
}
