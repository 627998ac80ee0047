"""Changed texts: what each change does to a text, that the same seed does the same, and what it leaves alone. Pure."""

from __future__ import annotations

import unicodedata
from collections import Counter

import pytest

from judging import perturbation
from judging.perturbation import change_of, changed_criteria, changed_text, changes_request, graphemes, units
from judging.prompts import ItemText, PromptVariant, Turn
from tests.judging.briefs import COMPOUND, DIALOGUE, EMPATHY, GRAMMAR, SINGLE

SENTENCE = " ".join(f"word{number}" for number in range(100))
JAPANESE = "注文した荷物がまだ届いていません。昨日の午後に届く予定でした。"
THAI = "สวัสดีครับ ผมยังไม่ได้รับพัสดุของผม"
ARABIC = "طلبت الطرد رقم 4711 قبل ٣ أيام ولم يصل"
TALK = ItemText(
    turns=(
        Turn("customer", "Hello! I am Ann Lee from Tartu and order 4711 is late."),
        Turn("agent", "Dear Ann, order 4711 left for Riga on 12 May. Anything else?"),
        Turn("customer", "No, thanks."),
    ),
    language="en",
)


def answer(text: str, language: str = "en") -> ItemText:
    return ItemText(fields=(("question", "Why?"), ("answer", text)), language=language)


def changed(item: ItemText, key: str, seed: int = 1, donor: ItemText | None = None) -> ItemText | None:
    return changed_text(item, key, seed=seed, name="d1", donor=donor)


def words_moved(before: str, after: str) -> int:
    return sum(first != second for first, second in zip(units(before), units(after), strict=True))


@pytest.mark.parametrize(("share", "moved"), [(10, 10), (30, 30), (100, 100)])
def test_so_many_words_in_a_hundred_are_shuffled(share: int, moved: int) -> None:
    after = changed(answer(SENTENCE), f"shuffled_words_{share}")
    assert after is not None
    text = after.fields[1][1]
    assert words_moved(SENTENCE, text) == moved
    assert Counter(text.split()) == Counter(SENTENCE.split())
    assert after.fields[0] == ("question", "Why?")


@pytest.mark.parametrize("text", [JAPANESE, THAI, "订单4711还没有到"])
def test_scripts_without_spaces_are_shuffled_by_graphemes_in_audits_from_before(text: str) -> None:
    after = changed_text(answer(text, "ja"), "shuffled_words_50", seed=1, name="d1", rule=1)
    assert after is not None
    assert after.fields[1][1] != text
    assert Counter(graphemes(after.fields[1][1])) == Counter(graphemes(text))
    assert "".join(units(text)) == text


CHINESE = "订单4711还没有到，请问什么时候能收到我的包裹？今天天气很好，我们去公园散步吧。"
LAO = "ຂ້ອຍຍັງບໍ່ໄດ້ຮັບພັດສະດຸຂອງຂ້ອຍ"
KHMER = "ខ្ញុំមិនទាន់បានទទួលកញ្ចប់របស់ខ្ញុំទេ"
BURMESE = "ကျွန်တော့်ပါဆယ်ကို မရသေးပါဘူး"


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        (JAPANESE, "ja", ["注文", "荷物", "まだ", "昨日", "午後", "予定"]),
        (CHINESE, "zh-Hans", ["4711", "没有", "时候", "今天", "天气", "我们", "公园"]),
        ("今天天氣很好，我們去公園。", "zh-TW", ["今天", "天氣", "我們", "公園"]),
        ("สวัสดีครับผมยังไม่ได้รับพัสดุของผม", "th", ["สวัสดี", "ครับ", "ยัง", "พัสดุ", "ของ"]),
        ("He said 注文した荷物 twice.", "en", ["He", "said", "注文", "荷物", "twice."]),
    ],
)
def test_scripts_without_spaces_are_cut_into_words(text: str, language: str, words: list[str]) -> None:
    cut = units(text, language)
    assert "".join(cut) == text
    assert {*words} <= {*cut}


@pytest.mark.parametrize(("text", "language"), [(LAO, "lo"), (KHMER, "km"), (BURMESE, "my")])
def test_without_a_model_pairs_of_syllables_stand_for_words(text: str, language: str) -> None:
    cut = [unit for unit in units(text, language) if unit.strip()]
    assert "".join(units(text, language)) == text
    assert len(cut) < len(graphemes(text)) / 2
    for unit in cut:  # no vowel sign, tone mark or subscript without its consonant
        assert unicodedata.category(unit[0])[0] != "M" and unit[0] not in "\u17d2\u1039"
        assert unit[-1] not in "\u17d2\u1039\u0ec0\u0ec1\u0ec2\u0ec3\u0ec4"


UNSPACED = [(JAPANESE, "ja"), (CHINESE, "zh"), (THAI, "th"), (KHMER, "km"), (LAO, "lo")]


@pytest.mark.parametrize(("text", "language"), UNSPACED)
def test_words_without_spaces_change_places_whole(text: str, language: str) -> None:
    """As words elsewhere: each is still there as often as before. By graphemes, most were torn."""
    words = Counter(unit for unit in units(text, language) if len(graphemes(unit)) > 1)
    torn = {}
    for rule in (1, 2):
        after = changed_text(answer(text, language), "nonsense", seed=1, name="d1", rule=rule)
        assert after is not None
        new = after.fields[1][1]
        assert new != text and Counter(new) == Counter(text)
        torn[rule] = sum(max(0, often - new.count(word)) for word, often in words.items())
    assert torn[2] == 0
    assert torn[1] > words.total() / 2


def test_a_mark_stays_with_its_character_and_a_number_in_one_piece() -> None:
    assert graphemes("ที่นี่") == ["ที่", "นี่"]
    assert units("订单4711还") == ["订", "单", "4711", "还"]


def test_words_change_places_over_the_whole_dialogue() -> None:
    after = changed(TALK, "nonsense")
    assert after is not None
    assert [turn.speaker for turn in after.turns] == ["customer", "agent", "customer"]
    assert Counter(" ".join(t.text for t in after.turns).split()) == Counter(
        " ".join(t.text for t in TALK.turns).split()
    )


def test_the_last_half_of_the_text_is_cut_off() -> None:
    after = changed(TALK, "truncated_50")
    assert after is not None
    whole = sum(len(turn.text) for turn in TALK.turns)
    assert [turn.speaker for turn in after.turns] == ["customer", "agent"]
    assert sum(len(turn.text) for turn in after.turns) in (whole // 2, whole // 2 - 1)
    assert TALK.turns[1].text.startswith(after.turns[1].text)


def test_one_turn_comes_from_the_same_place_of_the_text_in_another_language() -> None:
    donor = ItemText(turns=tuple(Turn("x", text) for text in ("Tere!", "Pakk on teel.", "Aitäh.")), language="et")
    after = changed(TALK, "foreign_turn", donor=donor)
    assert after is not None
    (place,) = [place for place in range(3) if after.turns[place] != TALK.turns[place]]
    assert after.turns[place].text == donor.turns[place].text
    assert after.turns[place].speaker == TALK.turns[place].speaker
    assert changed(TALK, "foreign_turn") is None


def test_numbers_and_names_of_one_turn_are_swapped() -> None:
    seen = set()
    for seed in range(20):
        after = changed(TALK, "swapped_entities", seed)
        assert after is not None
        (place,) = [place for place in range(3) if after.turns[place] != TALK.turns[place]]
        assert place < 2
        assert "4711" not in after.turns[place].text
        seen.add(place)
        if place:
            assert after.turns[place].text.split()[1] != "Ann,"
            assert after.turns[place].text.split()[6] != "Riga"
            assert after.turns[place].text.endswith("Anything else?")
    assert seen == {0, 1}


def test_without_case_only_numbers_are_swapped_and_without_numbers_nothing() -> None:
    after = changed(answer(ARABIC, "ar"), "swapped_entities")
    assert after is not None
    first, second = ARABIC.split(), after.fields[1][1].split()
    assert [place for place, word in enumerate(first) if second[place] != word] == [
        first.index("4711"),
        first.index("٣"),
    ]
    assert "٠" <= second[first.index("٣")] <= "٩"
    assert changed(answer(JAPANESE, "ja"), "swapped_entities") is None
    assert changed(answer("Tere, kuidas läheb?", "et"), "swapped_entities") is None


def test_a_turn_is_said_twice_and_a_last_sentence_too() -> None:
    after = changed(TALK, "repeated_turn")
    assert after is not None
    assert len(after.turns) == 4
    assert Counter(turn.text for turn in after.turns).most_common(1)[0][1] == 2
    single = changed(answer("First. Second one."), "repeated_turn")
    assert single is not None
    assert single.fields[1][1] == "First. Second one. Second one."


def test_so_many_words_are_mistyped() -> None:
    after = changed(answer(SENTENCE), "typos_10")
    assert after is not None
    before, now = SENTENCE.split(), after.fields[1][1].split()
    assert sum(first != second for first, second in zip(before, now, strict=True)) == 10


def test_what_must_not_matter_leaves_the_words() -> None:
    spaced = changed(TALK, "whitespace")
    assert spaced is not None
    assert spaced != TALK
    assert [turn.text.split() for turn in spaced.turns] == [turn.text.split() for turn in TALK.turns]
    named = changed(DIALOGUE, "speaker_names")
    assert named is not None
    assert [turn.name for turn in named.turns] == ["P1", "P2"]
    assert [turn.text for turn in named.turns] == [turn.text for turn in DIALOGUE.turns]


def test_the_request_inside_the_text_is_at_its_end() -> None:
    after = changed(TALK, "instruction")
    assert after is not None
    assert after.turns[-1].text == f"No, thanks.\n\n{perturbation.REQUEST}"


def test_the_same_seed_changes_the_same_and_another_one_does_not() -> None:
    for key in ("shuffled_words_30", "typos_30", "whitespace"):
        assert changed(answer(SENTENCE), key, 1) == changed(answer(SENTENCE), key, 1)
        assert changed(answer(SENTENCE), key, 1) != changed(answer(SENTENCE), key, 2)


def test_what_a_change_is_of() -> None:
    both = {"variant": COMPOUND, "criteria": [GRAMMAR, EMPATHY]}
    assert changes_request("criteria_reversed", **both) is True
    assert changes_request("criteria_reversed", variant=SINGLE, criteria=[GRAMMAR, EMPATHY]) is False
    assert changes_request("instructions_et", **both) is True
    assert changes_request("instructions_en", **both) is False
    assert changes_request("typos_10", **both) is None
    assert changed_criteria([GRAMMAR, EMPATHY], "criteria_reversed") == [EMPATHY, GRAMMAR]
    assert [point.value for point in changed_criteria([GRAMMAR], "points_reversed")[0].points] == [2, 1, 0]
    assert perturbation.changed_variant(PromptVariant(), "instructions_et").instruction_language == "et"


@pytest.mark.parametrize(
    "key", ["shuffled_words_0", "shuffled_words_101", "typos", "typos_x", "instructions_xx", "typos_05"]
)
def test_an_unknown_change_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=key):
        change_of(key)


def test_every_usual_change_has_its_audit() -> None:
    assert {change_of(key).audit for key in perturbation.USUAL} == {
        "perturbation", "position", "prompt_language", "canaries"
    }  # fmt: skip
    assert change_of("shuffled_words_10").kind == "shuffled_words"


def test_text_of_one_character_or_nothing_is_left_alone() -> None:
    for text in ("", "a", "   ", "。"):
        for key in perturbation.USUAL:
            if change_of(key).audit == "perturbation":
                after = changed(answer(text), key)
                assert after is None or after != answer(text)
