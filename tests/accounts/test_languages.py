"""Language tags: one spelling in, one spelling out; direction and names from the tag alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounts.languages import canonical_language, direction, endonym, english_name, language_called, script


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("et", "et"),
        ("ET", "et"),
        (" en_us ", "en-US"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("ZH-HANT-hk-x-Taxi", "zh-Hant-HK-x-taxi"),
        ("iw", "he"),
        ("in-ID", "id-ID"),
        ("eng", "en"),
        ("ekk", "et"),
        ("zh-yue", "yue"),
        ("zh-cmn-Hans", "zh-Hans"),
        ("sh", "sr-Latn"),
        ("sh-Cyrl", "sr-Cyrl"),
        ("en-UK", "en-GB"),
        ("es-419", "es-419"),
        ("sl-ROZAJ-biske", "sl-rozaj-biske"),
        ("de-1996", "de-1996"),
        ("ar-u-nu-latn-a-bc", "ar-a-bc-u-nu-latn"),
        ("qaa", "qaa"),
        ("sr-XK", "sr-XK"),
    ],
)
def test_one_spelling(written: str, meant: str) -> None:
    assert canonical_language(written) == meant


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "und",
        "x-klingon",
        "english",
        "e",
        "en-",
        "en--US",
        "en US",
        "en-Xxxx",
        "en-ABC",
        "en-QA1",
        "xx",
        "en-XYZA-US",
        "de-1996-1996",
        "en-u-aa-u-bb",
        "en-OO",
        "eesti keel",
        "éé",
        "en\n-US",
        "١٢",
    ],
)
def test_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"language|script|region|repeats"):
        canonical_language(wrong)


def test_a_country_typed_for_a_language_is_told_the_language() -> None:
    with pytest.raises(ValueError, match="did you mean 'ja'"):
        canonical_language("jp")


def test_a_language_called_by_its_name_is_told_the_tag() -> None:
    with pytest.raises(ValueError, match=r"'Estonian' is not a language tag; write et$"):
        canonical_language("Estonian")
    assert [language_called(name) for name in ("brazilian portuguese", " Arabic ", "Elvish")] == ["pt-BR", "ar", ""]


@pytest.mark.parametrize(
    ("tag", "way"),
    [
        ("ar", "rtl"),
        ("he", "rtl"),
        ("fa-AF", "rtl"),
        ("ur", "rtl"),
        ("ps", "rtl"),
        ("ckb", "rtl"),
        ("yi", "rtl"),
        ("dv", "rtl"),
        ("pa-PK", "rtl"),
        ("az-Arab", "rtl"),
        ("uz-AF", "rtl"),
        ("et", "ltr"),
        ("pa", "ltr"),
        ("ar-Latn", "ltr"),
        ("he-Latn-IL", "ltr"),
        ("hi", "ltr"),
        ("ja", "ltr"),
        ("qaa", "ltr"),
    ],
)
def test_direction_is_that_of_the_script(tag: str, way: str) -> None:
    assert direction(tag) == way


def test_script_is_likely_unless_it_is_said() -> None:
    assert [script(tag) for tag in ("ru", "zh-TW", "zh", "sr-Latn")] == [
        "Cyrl",
        "Hant",
        "Hans",
        "Latn",
    ]


@pytest.mark.parametrize(
    ("tag", "own", "english"),
    [
        ("et", "eesti", "Estonian"),
        ("pt-BR", "português (Brasil)", "Portuguese (Brazil)"),
        ("en-EE", "English (Estonia)", "English (Estonia)"),
        ("ar-EG", "العربية (مصر)", "Arabic (Egypt)"),
        ("tlh", "Klingon", "Klingon"),
        ("qaa-x-elvish", "qaa (x-elvish)", "qaa (x-elvish)"),
    ],
)
def test_names(tag: str, own: str, english: str) -> None:
    assert (endonym(tag), english_name(tag)) == (own, english)


@settings(deadline=None)
@given(st.from_regex(r"[A-Za-z]{2,3}([-_][A-Za-z]{4})?([-_][A-Za-z]{2})?", fullmatch=True) | st.text(max_size=12))
def test_canonical_is_a_fixed_point_or_refuses(text: str) -> None:
    try:
        once = canonical_language(text)
    except ValueError:
        return
    assert canonical_language(once) == once
    assert direction(once) in {"ltr", "rtl"}
    assert endonym(once)
    assert english_name(once)
