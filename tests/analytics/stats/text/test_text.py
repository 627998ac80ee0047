"""Words of many scripts, lemmas, diversity and repetition: worked by hand, NLTK's printed values, brute force."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.stats.text import surface
from analytics.stats.text import words as text_words
from analytics.stats.text.words import sentences, tokeniser, words

CORPUS = ["the cat sat on the mat", "the cat sat on the hat today", "a dog barked", "the dog sat on the mat the mat"]
# Printed by NLTK 3.10.4: sentence_bleu(others, text, smoothing_function=SmoothingFunction().method4) for each text.
NLTK_PRINTED = (0.846481724890614, 0.6147881529512643, 0.026670339752046985, 0.38260294162784475)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop, e-post: 3.5!", ["don't", "stop", "e-post", "3.5"]),
        ("Tere päevast", ["tere", "päevast"]),
        ("हिन्दी में है।", ["हिन्दी", "में", "है"]),
        ("السَّلَامُ عَلَيْكُم", ["السَّلَامُ", "عَلَيْكُم"]),
        ("今日は Hello", ["今", "日", "は", "hello"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("", []),
    ],
)
def test_words_of_many_scripts_keep_their_marks(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_the_tokeniser_is_named_and_languages_with_spaces_need_no_model() -> None:
    name, cut = tokeniser("et")
    assert name == "words by script"
    assert cut("Üks kaks") == ["üks", "kaks"]


def test_sentences_end_in_any_script() -> None:
    assert sentences("One. Two!\nThree") == ["One", "Two", "Three"]
    assert sentences("今日は。明日。") == ["今日は", "明日"]
    assert sentences("एक है। दो है।") == ["एक है", "दो है"]


@pytest.mark.slow
def test_lemmas_come_from_the_dictionary_of_the_language_or_are_said_to_be_word_forms() -> None:
    name, of = text_words.lemmatiser("et-EE")
    assert name == "simplemma"
    assert of(["koerad", "jooksid"]) == ["koer", "jooksma"]
    name, of = text_words.lemmatiser("zh")
    assert (name, of(["今"])) == ("word forms", ["今"])


def test_stop_words_go_as_written_and_as_lemmas() -> None:
    assert text_words.without_stop_words(["the", "be", "cat"], "en") == ["cat"]
    assert text_words.without_stop_words(["the", "cat"], "xx") == ["the", "cat"]


def test_a_missing_optional_lemmatiser_says_how_to_get_it() -> None:
    with pytest.raises(text_words.MissingEngineError, match=r"pip install .panelbench\[stanza\]"):
        text_words.lemmatiser("fi", "stanza")
    with pytest.raises(text_words.MissingEngineError, match="Estonian only"):
        text_words.lemmatiser("fi", "estnltk")


def test_ttr_and_mattr_worked_by_hand() -> None:
    tokens = list("abaca")
    assert surface.ttr(tokens) == 3 / 5
    # Windows of three: aba 2/3, bac 3/3, aca 2/3.
    assert surface.mattr(tokens, 3) == pytest.approx((2 + 3 + 2) / 9)
    assert surface.mattr(tokens, 10) == 3 / 5
    assert surface.mattr([], 3) is None


@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=60), st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_mattr_is_the_mean_over_all_windows(tokens: list[str], window: int) -> None:
    windows = [tokens[i : i + window] for i in range(max(1, len(tokens) - window + 1))]
    expected = sum(len(set(w)) / len(w) for w in windows) / len(windows)
    assert surface.mattr(tokens, window) == pytest.approx(expected)


def test_mtld_worked_by_hand() -> None:
    # "a a" falls to .5 <= .72 at the second word: one run of two words; four words make two runs either way.
    assert surface.mtld(["a"] * 4) == 2
    # a b b is 2/3 <= .72, one run, and the last word alone adds none; the same backwards: 4 words a run.
    assert surface.mtld(["a", "b", "b", "a"]) == pytest.approx(4)
    assert surface.mtld(["a", "b", "c"]) is None
    assert surface.mtld([]) is None


def test_self_bleu_is_what_nltk_prints() -> None:
    assert surface.self_bleu([text.split() for text in CORPUS]) == pytest.approx(NLTK_PRINTED, abs=1e-12)


def bleu_by_definition(text: list[str], others: list[list[str]]) -> float:
    """BLEU-4 with smoothing method 4, every pair of texts compared."""
    log_sum, zeros = 0.0, 0
    for n in range(1, 5):
        own, *rest = (Counter(tuple(t[i : i + n]) for i in range(len(t) - n + 1)) for t in (text, *others))
        matched = sum(min(count, max(other[gram] for other in rest)) for gram, count in own.items())
        total = max(1, sum(own.values()))
        if n == 1 and matched == 0:
            return 0.0
        if matched == 0 and len(text) > 1:
            zeros += 1
            log_sum += math.log(math.log(len(text)) / (2**zeros * 5) / total) / 4
        elif matched:
            log_sum += math.log(matched / total) / 4
    closest = min((abs(len(o) - len(text)), len(o)) for o in others)[1]
    return math.exp(log_sum + min(0.0, 1 - closest / len(text)))


@pytest.mark.parametrize("seed", range(6))
def test_self_bleu_without_the_quadratic_blow_up_is_the_quadratic_one(seed: int) -> None:
    rng = random.Random(seed)
    vocabulary = rng.choice([3, 10, 60])
    texts = [[str(int(rng.paretovariate(1)) % vocabulary) for _ in range(rng.randint(1, 30))] for _ in range(10)]
    expected = [bleu_by_definition(text, texts[:i] + texts[i + 1 :]) for i, text in enumerate(texts)]
    assert surface.self_bleu(texts) == pytest.approx(expected, abs=1e-9)


def test_self_bleu_of_lone_and_empty_texts() -> None:
    assert np.isnan(surface.self_bleu([["a"]])).all()
    assert surface.self_bleu([[], ["a"]]).tolist() == [0, 0]


def test_self_repetition_counts_the_other_texts_that_hold_an_ngram() -> None:
    texts = [list("abcdef"), list("xabcdef"), list("abcdefabcdef"), list("short")]
    # abcdef is in three texts: each of them counts two others; the shifted n-grams of the third occur nowhere else.
    assert surface.self_repetition(texts) == pytest.approx([math.log(3), math.log(3), math.log(3), 0])


def test_mean_cosine_is_the_mean_over_pairs() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(7, 5))
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = [units[i] @ units[j] for i in range(7) for j in range(i)]
    assert surface.mean_cosine(vectors) == pytest.approx(np.mean(pairs))
    assert surface.mean_cosine(vectors[:1]) is None
