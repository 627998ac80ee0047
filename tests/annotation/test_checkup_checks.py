"""The checks of a check-up, on texts made for them: what each finds, what it must leave alone, and its bounds."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence

import pytest

from annotation.checkup import checking
from annotation.checkup.checked_items import LONGEST_PART, CheckedItem, checked_item
from annotation.checkup.declared import REASONS, SEVERITIES, SUBJECTS, CheckScope
from annotation.checkup.personal_data import is_iban, is_luhn

ESTONIAN = "Tere päevast! Tellisin teilt eelmisel nädalal raamatu, aga pakk ei ole ikka veel kohale jõudnud."
ENGLISH = "Hello, I ordered a book from you last week, but the parcel has still not arrived at my place."


def item(
    ordinal: int, *texts: str, language: str = "et", roles: Sequence[str] = ("customer", "agent"), **parts: str
) -> CheckedItem:
    turns = [{"speaker": roles[index % len(roles)], "text": text} for index, text in enumerate(texts)]
    given = {"generator": "atlas", "scenario": "", **parts}
    return checked_item(ordinal=ordinal, language=language, turns=turns, fields={}, **given)


def held(items: Iterable[CheckedItem], check: str) -> list[int]:
    """In which items a check found something."""
    rows = list(items)
    result = checking.check_items(rows, CheckScope(frozenset(row.language for row in rows)))
    return next(finding for finding in result.findings if finding.check == check).held()


def reason(items: Iterable[CheckedItem], check: str) -> str:
    result = checking.check_items(items, CheckScope())
    return next(finding for finding in result.findings if finding.check == check).reason


def of_texts(texts: Sequence[str], language: str = "et") -> list[CheckedItem]:
    return [item(ordinal, text, language=language) for ordinal, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("check", "wrong", "right", "language"),
    [
        ("empty_turn", ["", " \n\t", "...", "?!", "@USER ?"], ["Jah.", "👍", "5", "ok"], "et"),
        ("no_text", ["", "  "], ["."], "et"),
        ("other_script", ["Здравствуйте, где моя посылка?"], [ESTONIAN, "Привет"], "et"),
        ("other_script", [ENGLISH], ["Здравствуйте, где моя посылка из магазина Panelbench?"], "ru"),
        (
            "other_script",
            [ENGLISH],
            ["この本を先週注文しましたが、まだ届いていません。", "注文番号一二三四五六七八九十百千万"],
            "ja",
        ),
        (
            "mixed_scripts",
            ["Ma ei saa реалвое aru", "tere 我的 maja"],
            ["5 µm ja Ω", "¯\\_(ツ)_/¯", "façade naïve"],
            "et",
        ),
        ("mixed_scripts", ["مرحبا שלום"], ["مرحبا iPhone 15", "أهلًا بِكَ"], "ar"),
        ("mixed_word", ["tilauksети siin"], ["Samsung-овский телефон", "tere Петр"], "et"),
        ("other_language", [ENGLISH], [ESTONIAN, "Ok, thanks!", "https://example.org/where/is/my/parcel jah"], "et"),
        ("other_language", [ESTONIAN], [ENGLISH], "en"),
        (
            "placeholder",
            [
                "Tere [REDACTED]",
                "Tere {name}!",
                "{{ order.id }}",
                "<ORDER NUMBER>",
                "XXXX",
                "Lorem ipsum dolor",
                "[nimi]",
                "Loe siit:\n URL \nja ütle.",
                "Allikas: URL",
                "HTTPURL jah",
            ],
            ["[Luuka 2:14-16]", "[Kask: 5]", "[Tamm & Kask, 2019]", "Mis on URL?", "URL on vale"],
            "et",
        ),
        ("placeholder", ["[Date]"], ["قال [التوبة: 5] كذا"], "ar"),
        (
            "placeholder",
            ["[Sinu nimi 1]"],
            ["vaata [1]", "[…]", "[siin](https://example.org)", "a < b > c", "{1, 2}", "100 % kindel", "todo el mundo"],
            "et",
        ),
        ("markup", ["Tere<br>Tere", "<p class='x'>", "&nbsp;", "a &amp; b"], ["2 < 3", "<3", "AT&T;"], "et"),
        (
            "email_address",
            ["kirjuta mari.maasikas@firma.ee", "a+b@c.co.uk"],
            ["mari@example.com", "@USER", "kell 5 @ kodus", "a@b", "test@shop.example"],
            "et",
        ),
        ("bank_account", ["EE38 2200 2210 2014 5685", "EE382200221020145685"], ["EE382200221020145686"], "et"),
        (
            "card_number",
            ["4111 1111 1111 1111", "5500-0000-0000-0004", "4111 1111 1111 1111 12/27", "5500000000000004 737, palun"],
            ["4111 1111 1111 1112", "0" * 16, "4111 1111 1111 1112 12/27"],
            "et",
        ),
        ("other_script", [ENGLISH], ["我想买 Samsung Galaxy Ultra Pro 手机，谢谢你们。"], "zh"),
        ("other_script", [ENGLISH], ["삼성 Samsung Galaxy Pro 주문했어요"], "ko"),
        (
            "telephone_number",
            ["+372 5123 4567", "helista +1 650-253-0000", "Telefon: 6800123", "minu telefoninumber on 51234567"],
            [
                "tellimus 51234567",
                "12.03.2026",
                "3 x 4 = 12",
                "+372 000",
                "Telefon on katki. Tellimus 51234567",
                "tel 123",
            ],
            "et",
        ),
        ("telephone_number", ["हमारा फ़ोन नंबर 9812345678"], ["9812345678"], "hi"),
        (
            "wrong_encoding",
            ["kÃ¤si", "donâ€™t", "Ð¿Ñ€Ð¸Ð²ÐµÑ‚"],
            ["käsi", "„muß“", "Über", "naïve façade", "привет"],
            "et",
        ),
        (
            "lost_character",
            ["k�si", "tore ??\u200d♂️", "jah ?\ufe0f", "aitäh ?\U0001f3fd"],
            ["kas?", "kas?? 👩\u200d💻", "❤️ ?", "kas\u200d?"],
            "et",
        ),
        (
            "escaped_character",
            ["esimene\\nTeine", "k\\u00e4si", "ku00e4si", "u00fcks", "при u0432 u0435т"],
            ["C:\\nimi", "a \\ b", "mudel XU0415", "mudel u0415", "menu0002", "u00e4"],
            "et",
        ),
        ("direction_mark", ["\u202eabc", "a\u200f"], ["مرحبا"], "et"),
        ("unseen_character", ["a\u200bb", "\ufefftere", "ko\u00adha"], ["👩\u200d💻", "a\tb\nc"], "et"),
        (
            "self_repetition",
            ["See on üks pikk lause siin. Ja nii. See on üks pikk lause siin.", "ma lähen koju ja siis " * 8],
            ["Jah. Jah. Jah.", ESTONIAN],
            "et",
        ),
    ],
)
def test_a_check_finds_what_is_wrong_and_leaves_the_rest(
    check: str, wrong: list[str], right: list[str], language: str
) -> None:
    rows = of_texts([*wrong, *right], language)
    assert held(rows, check) == list(range(len(wrong)))


@pytest.mark.parametrize(
    ("language", "wrong", "right"),
    [
        (
            "fr",
            ["voilÃ\u00a0 le franÃ§ais", "sÃ»r", "Câ€™est", "motÂ\u00a0!", "oui â€” non"],
            [
                "«\u00a0voilà\u00a0», dit-il, «\u00a0là\u00a0»",
                "«\u00a0été\u00a0»",
                "le café\u00a0…», «\u00a0thé\u00a0»",
            ],
        ),
        ("pt", ["nÃ£o", "AMANHÃƒ", "Ã”nibus"], ["“ATÉ AMANHÃ”, “DE MANHÃ”", "“AMANHÃ”."]),
        ("da", ["pÃ¥", "Ã…rhus"], ["“PÅ”", "”PÅ„ og ”Å„", "PÅ\u00a0DEN", "Ø»"]),
        ("ru", ["Ð¼Ð¸Ñ€", "Ñ‚Ð°"], ["мир"]),
        ("hi", ["à¤¨"], ["नमस्ते"]),
    ],
)
def test_signs_that_look_like_a_wrong_encoding_by_chance(language: str, wrong: list[str], right: list[str]) -> None:
    assert held(of_texts([*wrong, *right], language), "wrong_encoding") == list(range(len(wrong)))


def test_a_long_item_is_cut_and_its_length_is_right() -> None:
    """405 turns of 1,000 characters: five are not read, though none is longer than what is read of a turn."""
    rows = [item(number, *["Tere. " * 166 + "Aitä"] * 405) for number in range(21)]
    assert {row.characters for row in rows} == {405_000}
    result = checking.check_items(rows, CheckScope(frozenset({"et"})))
    found = {finding.check: finding.held() for finding in result.findings}
    assert found["cut_text"] == list(range(21))
    assert found["unusual_length"] == found["empty_turn"] == []
    assert checking.check_items(rows[:1], CheckScope()).lengths[0]["characters"] == [405_000] * 5


def test_a_long_text_that_items_share_makes_them_no_duplicates() -> None:
    document = " ".join(f"Punkt {number} lepingust ütleb seda." for number in range(400))  # over 10,000 characters
    answers = [" ".join(f"Vastus {seed} {number * seed}" for number in range(600)) for seed in (7, 11)]
    rows = [item(0, document, answers[0]), item(1, document, answers[1]), item(2, document.upper(), answers[0])]
    assert held(rows, "equal_text") == [2]
    assert held(rows, "nearly_equal_text") == []
    ends = [item(number, "Tere. " * 30_000 + end) for number, end in enumerate(("üks", "kaks", "üks"))]
    assert held(ends, "equal_text") == [2], "what is not read differs"


def test_a_template_does_not_make_the_search_quadratic() -> None:
    """6,000 items that begin alike; among them the last 40 are each nearly equal to one of the others."""
    template = (
        f"{ESTONIAN} Palun vaadake järele, kus see praegu on, ja öelge mulle, millal kuller minu juurde jõuab, sest "
        "olen kodus ainult õhtuti. Aitäh teile juba ette! Kirjutan kohe numbri siia alla:"
    )
    chance = random.Random(3)
    own = ["".join(chance.choices("abdeghijklmnoprstuvõäöü  ", k=70)) for _number in range(6_000)]
    own += [f"{text[:35]}xy{text[35:]}" for text in own[3_000:3_040]]
    (kind,) = (check for check in checking.CHECKS.values() if check.name == "nearly_equal_text")
    check = kind(CheckScope())
    began = time.process_time()
    for number, text in enumerate(own):
        assert not list(check.look(item(number, f"{template} {text}")))
    beats: list[int] = []
    check.at_work = lambda: beats.append(1)
    found = {hit.ordinal: hit.values["other"] for hit in check.finish()}
    assert len(beats) == len(own)
    assert sum(found.get(6_000 + number) == 3_000 + number for number in range(40)) >= 38
    assert len(found) <= 45
    assert time.process_time() - began < 12, "each with each takes 28"


def test_a_check_up_that_was_cancelled_ends_after_the_last_item() -> None:
    rows = of_texts([ESTONIAN + " " + ENGLISH, ENGLISH + " Tere!"])
    told: list[int] = []
    checking.check_items(rows, CheckScope(), progress=told.append)
    assert told == [1, 2, 2, 2]


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("hi-Latn", "mera order abhi tak nahi aaya hai, kripya jaldi bata dijiye ki kab aayega"),
        ("kk-Latn", "men bul kitapty otken aptada satyp aldym, biraq ol ali kelgen joq"),
        ("az-Cyrl", "Мән бу китабы кечән һәфтә сифариш етмишәм, амма һәлә дә ҝәлмәјиб"),
    ],
)
def test_a_language_in_another_script_is_unknown_to_the_identifier(tag: str, text: str) -> None:
    assert reason([item(0, text, language=tag)], "other_language") == "unknown_languages"
    assert held([item(0, text, language=tag), item(1, ESTONIAN)], "other_language") == []


def test_traditional_chinese_and_serbian_in_latin_letters_are_known() -> None:
    rows = [
        item(0, "我上個星期訂了一本書，但是包裹還沒有送到我家，請問在哪裡？", language="zh-Hant"),
        item(1, "Naručio sam knjigu prošle nedelje, ali paket još uvek nije stigao.", language="sr-Latn"),
    ]
    assert reason(rows, "other_language") == ""
    assert held(rows, "other_language") == []


def test_a_signature_is_no_repetition_and_a_long_sentence_said_again_is() -> None:
    signed = item(0, "Tere!\nKlaus klienditeenindus", "Aitäh!\nKlaus klienditeenindus")
    again = item(1, ESTONIAN, "Kas?", ESTONIAN)
    assert held([signed, again], "self_repetition") == [1]


def test_a_turn_said_again_by_its_role_is_a_repetition_and_a_quotation_is_none() -> None:
    farewell = "Olge lahked! Soovin teile head päeva. Kirjutage jälle."
    looped = item(0, farewell, "Tänan teid!", farewell)
    echoed = item(1, farewell, farewell)
    short = item(2, "Tänan. Head aega!", "Olge lahke.", "Tänan. Head aega!")
    answered = item(3, ESTONIAN, f"> {ESTONIAN}\nMillal te selle tellisite?", f"&gt; {ESTONIAN}\nEile.")
    quoted_twice = item(4, ESTONIAN, f">{ESTONIAN}\n\n>{ESTONIAN}\nVaatan.")
    assert held([looped, echoed, short, answered, quoted_twice], "self_repetition") == [0]


def test_dialogues_without_what_the_others_have() -> None:
    rows = [item(number, f"Kus on minu pakk {number}?", f"Vaatan {number}.") for number in range(18)]
    rows += [item(18, "Kas keegi on seal?"), item(19, "Tere!", "Halloo?", roles=("customer",))]
    assert held(rows, "one_message") == [18]
    assert held(rows, "missing_role") == [18, 19]
    assert held(rows, "role_in_row") == [19]
    single = of_texts(["üks", "kaks"])
    assert reason(single, "one_message") == reason(single, "role_in_row") == "no_dialogues"


def test_families_are_complete_or_say_what_is_missing() -> None:
    rows = [
        item(0, "a", language="et", scenario="s 1"),
        item(1, "b", language="fi", scenario="s 1"),
        item(2, "c", language="et", scenario="«s» 2"),
        item(3, "d", language="et"),
    ]
    assert held(rows, "incomplete_family") == [2]
    result = checking.check_items(rows, CheckScope())
    assert result.families == {"scenarios": 2, "complete": 1, "combinations": 2}
    example = result.findings[0].examples[0]
    assert example["values"] == {"scenario": "«s» 2", "gaps": 1, "text": "fi · atlas"}
    assert reason(rows[3:], "incomplete_family") == "no_families"
    assert reason([*rows[:1], item(1, "b", scenario="s 1")], "incomplete_family") == "one_combination"


def test_duplicates_are_counted_once_and_only_within_a_language() -> None:
    near = ESTONIAN.replace("raamatu", "raamatud")
    rows = [
        item(0, ESTONIAN),
        item(1, ESTONIAN.upper() + " !"),
        item(2, near),
        item(3, ESTONIAN, language="fi"),
        item(4, "Hoopis midagi muud, mis ei ole kuidagi eelmiste moodi, vaid ainult iseenda moodi."),
        item(5, "ei"),
        item(6, "Ei!"),
    ]
    assert held(rows, "equal_text") == [1], "“ei” and “Ei!” are short answers, equal by chance"
    assert reason(rows[5:], "equal_text") == reason(rows[5:], "nearly_equal_text") == ""
    assert reason(of_texts(["", "…"]), "equal_text") == reason(of_texts([""]), "nearly_equal_text") == "no_texts"
    assert held(rows, "nearly_equal_text") == [2]
    found = next(f for f in checking.check_items(rows, CheckScope()).findings if f.check == "nearly_equal_text")
    assert found.examples[0]["values"]["item"] == 1


def test_an_unusual_length_is_one_among_its_language() -> None:
    rows = [item(number, "Tere hommikust, head inimesed! " * 3) for number in range(20)]
    rows += [item(20, "Tere hommikust, head inimesed! " * 300), item(21, "Hei! " * 900, language="fi")]
    assert held(rows, "unusual_length") == [20]
    assert reason(rows[:3], "unusual_length") == "few_items"


def test_languages_with_two_scripts_and_unknown_ones() -> None:
    latin, cyrillic = "Naručio sam knjigu prošle nedelje", "Наручио сам књигу прошле недеље"
    rows = [item(0, latin, language="sr"), item(1, cyrillic, language="sr"), item(2, cyrillic, language="sr-Latn")]
    assert held(rows, "other_script") == [2]
    assert reason([item(0, ESTONIAN, language="qaa")], "other_language") == "unknown_languages"
    assert reason([item(0, "ok")], "other_language") == "too_short"
    assert held([item(0, ESTONIAN, language="vro"), item(1, ESTONIAN, language="et-EE")], "other_language") == []


def test_what_annotators_skipped_as_another_language() -> None:
    rows = of_texts([ESTONIAN, ESTONIAN[::-1]])
    result = checking.check_items(rows, CheckScope(flagged={1: 2}))
    flagged = next(finding for finding in result.findings if finding.check == "flagged_language")
    assert (flagged.held(), flagged.examples[0]["values"]) == ([1], {"people": 2})
    assert reason(rows, "flagged_language") == "nobody_skipped"


def test_check_digits() -> None:
    assert is_luhn("79927398713")
    assert not is_luhn("79927398710")
    assert is_iban("GB82WEST12345698765432")
    assert not is_iban("GB82WEST12345698765433")


def test_every_check_is_declared_whole() -> None:
    for name, check in checking.CHECKS.items():
        assert name == check.name
        assert check.subject in SUBJECTS
        assert check.severity in SEVERITIES
        assert check.title and check.help.endswith("."), name
    order = [check.subject for check in checking.CHECKS.values()]
    assert order == sorted(order, key=list(SUBJECTS).index), "pages list checks by subject"


def test_a_result_is_stored_as_json_and_read_back() -> None:
    rows = [item(0, "Tere {name}", "[REDACTED]", language="et"), item(1, ENGLISH), item(2, "x")]
    result = checking.check_items(rows, CheckScope(frozenset({"et"})))
    assert checking.CheckedDataset.from_json(result.as_json()) == result
    assert {finding.reason for finding in result.findings} <= REASONS.keys() | {""}
    empty = checking.check_items([], CheckScope())
    assert {finding.reason for finding in empty.findings} == {"no_items"}
    assert checking.from_ranges(checking.as_ranges([0, 1, 2, 5, 7, 8])) == [0, 1, 2, 5, 7, 8]
    assert checking.as_ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"


def test_examples_are_bounded_and_of_every_language() -> None:
    rows = [item(n, f"[{n:05} nimi]", language=("et", "fi")[n >= 900]) for n in range(1_000)]
    found = next(f for f in checking.check_items(rows, CheckScope()).findings if f.check == "placeholder")
    assert (found.items, found.ordinals) == (1_000, "0-999")
    shown = [example["ordinal"] for example in found.examples]
    assert len(shown) == 2 * checking.MOST_EXAMPLES_OF_KIND
    assert max(shown) >= 900


HOSTILE = {
    "spaces": " " * 1_000_000,
    "brackets": "[" * 1_000_000,
    "braces": "{{" * 500_000,
    "angles": "<a " * 300_000,
    "ampersands": "&#" * 500_000,
    "digits": "1 " * 500_000,
    "plus": "+1-" * 300_000,
    "letters": "A" * 1_000_000,
    "ibans": "EE38 " * 200_000,
    "ats": "a@" * 500_000,
    "dots": "a@b." + "c." * 500_000,
    "backslashes": "\\" * 1_000_000,
    "mojibake": "Ã" * 1_000_000,
    "words": "ab " * 300_000,
    "sentences": "Tere. " * 160_000,
    "newlines": "\n" * 1_000_000,
    "alternating scripts": "aбaб" * 250_000,
    "lone surrogate": "\ud800" * 1_000,
    "combining": "a" + "\u0301" * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_makes_a_check_run_for_long(name: str) -> None:
    rows = [item(0, HOSTILE[name]), item(1, HOSTILE[name][::-1])]
    checking.check_items(of_texts([ESTONIAN]), CheckScope(frozenset({"et"})))  # the model is loaded once
    began = time.process_time()
    checking.check_items(rows, CheckScope(frozenset({"et"})))
    assert time.process_time() - began < 15


def test_a_turn_of_10_mb_is_cut_and_named() -> None:
    rows = [item(0, "Tere! " * 1_700_000, "Jah."), item(1, ESTONIAN, "Jah.")]
    assert held(rows, "cut_text") == [0]
    assert len(rows[0].parts[0].text) == LONGEST_PART
    assert rows[0].characters == 10_200_004
