from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.judges import canonical, digest, judge_digest, template_digest
from judging.prompts import INSTRUCTION_LANGUAGES, PromptVariant

JUDGE: dict[str, Any] = {
    "endpoint": "local",
    "model": "m-1",
    "variant": PromptVariant(),
    "parameters": {"temperature": 0, "top_p": 1},
}


def test_the_canonical_spelling_is_sorted_tight_and_in_utf8() -> None:
    assert canonical({"b": [1, 2.5, None], "a": "\u00f5"}) == '{"a":"\u00f5","b":[1,2.5,null]}'.encode()
    # printf '{}' | sha256sum
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_what_is_no_json_has_no_digest() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        digest(float("nan"))


@given(st.dictionaries(st.text(), st.integers() | st.text()))
def test_the_order_of_members_does_not_matter(members: dict[str, Any]) -> None:
    assert digest(dict(reversed(members.items()))) == digest(members)


@pytest.mark.parametrize(
    "change",
    [
        {"endpoint": "other"},
        {"model": "m-2"},
        {"variant": PromptVariant(explanation=False)},
        {"parameters": {"temperature": 1, "top_p": 1}},
        {"parameters": {"temperature": 0}},
    ],
)
def test_a_changed_judge_is_a_new_judge(change: dict[str, Any]) -> None:
    assert judge_digest(**JUDGE | change) != judge_digest(**JUDGE) == judge_digest(**JUDGE)


def test_the_template_digest_tells_every_variant_apart() -> None:
    variants = [
        PromptVariant(grouping, detail, explanation, language)  # type: ignore[arg-type]
        for grouping in ("single", "compound")
        for detail in ("name", "anchors", "reasons")
        for explanation in (True, False)
        for language in INSTRUCTION_LANGUAGES
    ]
    assert len({template_digest(variant) for variant in variants}) == len(variants)
