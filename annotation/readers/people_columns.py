"""Columns with the scores of one person each, such as `rating_anna` and `rating_boris`, known by name and values."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from annotation.readers.rows import as_written, case_folded, is_blank


class RaterColumn(NamedTuple):
    """A column with the scores of one person (``is_rationale``: with the reasons), and the criterion if it is named."""

    column: str
    rater: str
    criterion: str = ""
    is_rationale: bool = False


MOST_DIFFERENT_SCORES = 101  # different scores in a column
WIDEST_OF_ONE_SCALE = 10  # scores that are no further apart may be of one scale, also if no two columns share a range
_WORD = re.compile(r"[^\s_\-./:()\[\]|]+")
_SCORE_WORD = re.compile(
    "ratings?|rated|rates|scored?|scores|bewertung|puntuaci[oó]n|calificaci[oó]n|hinne|hinnang|評価|点数|تقييم|درجة|оценка"
    "|评分|分数|अंक"
)
# Words that also stand in the names of other columns: with these alone, it is not certain whose scores they are.
_UNSURE_WORD = re.compile("grades?|marks?|labels?|points|human|note|punkte|nota|punktid|балл")
_RATIONALE_WORD = re.compile("rationale|explanation|justification|reason|comments?|notes")
_RATER_WORD = re.compile("annotator|rater|reviewer|worker|coder|participant|assessor|evaluator|expert")
_NUMBERED = re.compile(rf"({_RATER_WORD.pattern})s?\d{{1,3}}")
_CRITERION = re.compile(
    "fluency|adequacy|accuracy|coherence|consistency|relevance|grammar|readability|helpfulness|correctness|clarity"
    "|naturalness|informativeness|factuality|faithfulness|safety|politeness|engagement|understandability|quality"
)
# Criteria that are also said of other things than texts, such as `audio_quality`: these make no columns of people.
_UNSURE_CRITERION = re.compile("accuracy|consistency|relevance|correctness|clarity|safety|engagement|quality")
_NOT_PEOPLE = re.compile(
    r"(?i)(?:[ab12]|first|second|chosen|rejected|gold|reference|average|avg|mean|median|mode|sum|total|min|max|minimum"
    r"|maximum|std|sd|var|count|n|id|ids|date|time|type|level|name|text|scale|range|overall|final|majority|aggregated?"
    r"|bleu\d?|rouge.*|chrf.*|comet.*|bleurt|bertscore|meteor|ter|perplexity|ppl|f1|em|auto.*|metric.*"
    r"|(?:model|output|response|answer|system|candidate|completion|translation|hypothesis|passage|summary|turn|judge|dialogue|dialog|conversation|item|sample"
    r"|question|prompt|task|example|case|story|segment)"
    r"[ _-]?\w{0,3}|.*(?:gpt|claude|gemini|llama|mistral|mixtral|qwen|deepseek|command-r|llm).*)"
)
# What a column of scores is called after, if not after a person: qualities, languages, parts, classes, groups.
_THING_WORDS = """
good bad better best worse worst easy hard medium difficult simple complex high low positive negative neutral
mixed toxic toxicity insult threat hate hateful offensive profanity obscene spam abuse harm harmful harmfulness
harmless harmlessness bias stereotype sentiment emotion anger joy fear sadness disgust surprise trust love
valence arousal dominance humor humour irony sarcasm empathy warmth creativity novelty originality diversity
usefulness useful utility honesty truthfulness truth verbosity length brevity conciseness completeness complete
coverage precision recall detail depth structure organization organisation style tone register voice formality
form meaning sense understanding comprehension knowledge reasoning logic interest interestingness specificity
similarity agreement confidence certainty uncertainty importance priority severity difficulty likelihood
probability satisfaction preference acceptability acceptable pass fail passed failed correct incorrect wrong
right yes no true false maybe error errors fluent adequate coherent consistent relevant clear accurate
grammatical readable helpful natural informative factual faithful safe polite engaging grammaticality spelling
vocabulary pronunciation punctuation intelligibility loudness noise speed latency cost price value service food
ambience location cleanliness comfort design performance battery content delivery support fine coarse raw clean
normalized normalised scaled weighted adjusted binary ordinal categorical continuous old new before after pre
post early late start end initial previous current next last main other none unknown all any each top bottom
left right middle upper lower front back inner outer big small large long short source target src tgt ref hyp
input audio video image speech transcript title headline abstract intro introduction body conclusion paragraph
sentence word token document article page section chapter line row column part parts theme topic subject domain
genre category class group set split train training dev test validation fold batch round phase stage step
session day week month year morning evening user assistant agent bot tutor customer client speaker student
teacher machine human automatic manual crowd public private internal external home away host guest winner loser
red green blue yellow black white orange north south east west man woman men women male female age gender sex
education country region experience occupation income native math maths mathematics mates matemáticas lengua
lenguaje language languages english spanish castellano history science sciences physics chemistry biology
geography music art arts reading writing listening speaking literature sport sports politics economy business
health technology travel law finance news one two three four five six seven eight nine ten third fourth fifth
alpha beta gamma delta ar arabic ja japanese es et eesti estonian en eng esp est fr fra french français de deu
ger german deutsch it ita italian italiano pt por portuguese português ru rus russian русский zh zho chi chinese
中文 ko kor korean hi hin hindi हिन्दी fi fin finnish suomi sv swe swedish da dan danish nb nn nor norwegian nl
nld dutch pl pol polish cs ces czech sk slovak hu hun hungarian ro ron romanian bg bulgarian el greek tr tur
turkish uk ukr ukrainian he heb hebrew fa fas persian farsi ur urd urdu bn bengali ta tam tamil te telugu mr
marathi gu gujarati pa punjabi vi vie vietnamese th tha thai id ind indonesian ms malay tl tagalog sw swa
swahili am amharic ha hausa yo yoruba ig igbo zu zulu xh xhosa af afrikaans lv lav latvian lt lit lithuanian sl
slovenian hr croatian sr serbian mk sq albanian ka georgian hy armenian az kk kazakh uz uzbek mn mongolian ne
nepali si sinhala km khmer lo lao my burmese ca catalan gl galician eu basque ga irish cy welsh is icelandic mt
maltese la latin eo esperanto español العربية 日本語
"""
_THINGS = frozenset(_THING_WORDS.split())
_NUMBER = re.compile(r"[^\W\d]{0,2}\d+[^\W\d]{0,2}|[^\W\d_]")
_ANSWER = re.compile(r"[+-]?\d{1,3}(?:[.,]0{1,6})?|[+-]?\d{1,3}[.,]50{0,5}")
_SOME_NUMBER = re.compile(r"[+-]?\d+(?:[.,/]\d+)?")


class _Named(NamedTuple):
    """What a name says: the person, the criterion, and the words around them by which alike columns are known.

    ``is_sure``: its words are used for people's scores only; ``is_thing``: it names no person, but a criterion,
    language, class or number, so that columns with the same words around may not be people's either.
    """

    rater: str
    criterion: str
    around: tuple[str, ...]
    is_rationale: bool
    is_sure: bool = True
    is_thing: bool = False

    @property
    def person(self) -> str:
        return case_folded(self.rater)

    @property
    def group(self) -> tuple[str, ...]:
        return () if self.criterion else self.around


def rater_columns(
    values: Mapping[str, Iterable[object]], criteria: Collection[str] = (), labels: Collection[str] = ()
) -> tuple[RaterColumn, ...]:
    """The columns with the scores of one person each, if that is nearly certain; ``values``: some cells.

    ``criteria`` and ``labels``: the names of criteria and of points of the project's rubrics, case folded. The name of
    a column has a person and a word for people's scores, or a person and a criterion, in either order; its cells are
    scores or labels. Columns with the same words are decided together: at least two persons, none is a criterion, a
    language or another thing, and all scores are of one scale. Aggregates, metrics and judges are left out by name.
    """
    named = _names(values, criteria)
    cells = {column: _written(values[column]) for column in named}
    return _decided(
        {
            column: found
            for column, found in named.items()
            if found.is_rationale or _is_group_of_scores(found, named, cells, labels)
        }
    )


def columns_called_after_raters(columns: Iterable[str], criteria: Collection[str] = ()) -> tuple[RaterColumn, ...]:
    """The columns that `rater_columns` would recognise if their cells fit."""
    return _decided(_names(columns, criteria))


def possible_rater_columns(
    values: Mapping[str, Iterable[object]], criteria: Collection[str] = (), labels: Collection[str] = ()
) -> tuple[str, ...]:
    """The columns that may have the scores of one person each, certain or not, for a question or a warning."""
    phrases = _phrases(criteria)
    named = {column: found for column in values if (found := _named(column, phrases)) and not found.is_thing}
    people: dict[tuple[str, ...], set[str]] = {}
    for found in named.values():
        people.setdefault(found.group, set()).add(found.person)
    return tuple(
        column
        for column, found in named.items()
        if not found.is_rationale
        and len(people[found.group]) > 1
        and any(_SOME_NUMBER.fullmatch(text) or case_folded(text) in labels for text in _written(values[column]))
    )


def _phrases(criteria: Collection[str]) -> set[tuple[str, ...]]:
    return {tuple(_words(name)[0]) for name in criteria if name}


def _names(columns: Iterable[str], criteria: Collection[str]) -> dict[str, _Named]:
    """The names that are surely of people, without groups in which a column is called after a thing, or in which a
    person has two columns for one criterion."""
    phrases = _phrases(criteria)
    named = {column: found for column in columns if (found := _named(column, phrases))}
    pairs = Counter((found.person, case_folded(found.criterion)) for found in named.values() if not found.is_rationale)
    things = {
        found.group
        for found in named.values()
        if found.is_thing or (not found.is_rationale and pairs[found.person, case_folded(found.criterion)] > 1)
    }
    return {
        column: found
        for column, found in named.items()
        if not found.is_thing and (found.is_rationale or (found.is_sure and found.group not in things))
    }


def _decided(named: Mapping[str, _Named]) -> tuple[RaterColumn, ...]:
    """The columns of groups with at least two persons, none twice for a criterion; a person has one spelling."""
    groups: dict[tuple[str, ...], set[str]] = {}
    for found in named.values():
        if not found.is_rationale:
            groups.setdefault(found.group, set()).add(found.person)
    kept = {column: found for column, found in named.items() if not found.is_rationale and len(groups[found.group]) > 1}
    pairs = [(found.person, case_folded(found.criterion)) for found in kept.values()]
    if not kept or len(set(pairs)) < len(pairs):
        return ()
    spelled: dict[str, str] = {}
    for found in kept.values():
        spelled.setdefault(found.person, found.rater)
    return tuple(
        RaterColumn(column, spelled[found.person], found.criterion, found.is_rationale)
        for column, found in named.items()
        if column in kept or (found.is_rationale and found.person in spelled)
    )


def _is_group_of_scores(
    one: _Named, named: Mapping[str, _Named], cells: Mapping[str, set[str]], labels: Collection[str]
) -> bool:
    """Whether the columns beside ``one`` have scores of one scale; those that are blank so far are as the others."""
    beside = {column: found for column, found in named.items() if found.group == one.group and not found.is_rationale}
    if not all(_are_answers(cells[column], labels) for column in beside):
        return False
    filled = {column: cells[column] for column in beside if cells[column]}
    if len({beside[column].person for column in filled}) < 2:
        return False
    by_criterion: dict[str, list[set[str]]] = {}
    for column, texts in filled.items():
        by_criterion.setdefault(case_folded(beside[column].criterion), []).append(texts)
    return all(_is_one_scale(alike, labels) for alike in by_criterion.values())


def _is_one_scale(columns: Sequence[set[str]], labels: Collection[str]) -> bool:
    if any(case_folded(text) in labels and not _ANSWER.fullmatch(text) for texts in columns for text in texts):
        return all(case_folded(text) in labels or text.upper() == "N/A" for texts in columns for text in texts)
    numbers = [[float(text.replace(",", ".")) for text in texts if _ANSWER.fullmatch(text)] for texts in columns]
    ranges = [(min(found), max(found)) for found in numbers if found]
    if not ranges:
        return True
    lows, highs = [low for low, _high in ranges], [high for _low, high in ranges]
    return max(lows) <= min(highs) or max(highs) - min(lows) <= WIDEST_OF_ONE_SCALE


def _words(name: str) -> tuple[list[str], list[tuple[int, int]], str]:
    """The words of a name, case folded, with their places in the name in normal form."""
    text = unicodedata.normalize("NFC", name.rpartition("\n")[2]).strip()
    found = list(_WORD.finditer(text))
    return [case_folded(match[0]) for match in found], [match.span() for match in found], text


def _named(column: str, phrases: Collection[tuple[str, ...]]) -> _Named | None:
    words, places, text = _words(column)
    start, end, criterion, around = 0, len(words), "", []
    is_rationale = is_sure = False
    changed = True
    while changed and start < end:
        changed = False
        for at in (start, end - 1):
            is_why = bool(_RATIONALE_WORD.fullmatch(words[at]))
            is_score = bool(_SCORE_WORD.fullmatch(words[at]))
            if (is_why or is_score or _UNSURE_WORD.fullmatch(words[at])) and end - start > 1:
                is_rationale |= is_why
                is_sure |= is_score
                around.append(words[at])
                start, end, changed = (start + 1, end, True) if at == start else (start, end - 1, True)
                break
        if not changed and not criterion:
            sizes = range(end - start - 1, 0, -1)
            spans = [*((start, start + size) for size in sizes), *((end - size, end) for size in sizes)]
            span = next((span for span in spans if _is_criterion(words[slice(*span)], phrases)), None)
            if span:
                found = words[slice(*span)]
                is_sure |= tuple(found) in phrases or not _UNSURE_CRITERION.fullmatch(found[0])
                criterion, changed = text[places[span[0]][0] : places[span[1] - 1][1]], True
                start, end = (span[1], end) if span[0] == start else (start, span[0])
    rest = words[start:end]
    if not rest or (len(rest) == 1 and _RATIONALE_WORD.fullmatch(rest[0])):
        return None
    rater = re.sub(r"(?<=\w\w)['’]s$", "", text[places[start][0] : places[end - 1][1]])
    is_numbered = bool(_NUMBERED.fullmatch("".join(rest)))
    says_rater = (len(rest) > 1 and bool(_RATER_WORD.fullmatch(rest[0]))) or is_numbered
    if says_rater:
        around.append("rater")
    called = rest[1:] if says_rater and len(rest) > 1 else rest
    is_number = len(called) == 1 and bool(_NUMBER.fullmatch(called[0]))
    is_counted_rater = is_numbered or (says_rater and is_number)
    if not (criterion or around) or (not is_counted_rater and _NOT_PEOPLE.fullmatch(" ".join(called))):
        return None
    is_thing = not is_counted_rater and (
        is_number
        or tuple(rest) in phrases
        or (len(rest) == 1 and bool(_RATER_WORD.fullmatch(rest[0])))
        or any(_CRITERION.fullmatch(word) or word in _THINGS or word.isdigit() for word in called)
        or any(pattern.fullmatch(word) for word in called for pattern in (_SCORE_WORD, _UNSURE_WORD))
    )
    return _Named(rater, criterion, tuple(around), is_rationale, is_sure or says_rater, is_thing)


def _is_criterion(words: Sequence[str], phrases: Collection[tuple[str, ...]]) -> bool:
    return tuple(words) in phrases or (len(words) == 1 and bool(_CRITERION.fullmatch(words[0])))


def _written(cells: Iterable[object]) -> set[str]:
    return {as_written(cell).strip() for cell in cells if not is_blank(cell) and not isinstance(cell, list | dict)}


def _are_answers(written: Collection[str], labels: Collection[str]) -> bool:
    return len(written) <= MOST_DIFFERENT_SCORES and all(
        text.upper() == "N/A" or _ANSWER.fullmatch(text) or case_folded(text) in labels for text in written
    )


def cells_of(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    """The cells of some rows by column."""
    return {column: [row.get(column) for row in rows] for column in columns}
