"""Specs: presets, YAML there and back, what is refused; draws that are the same everywhere, with their weights."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

from accounts.refusals import Refused
from judging.generation.drawing import draw_families, draw_parameters
from judging.generation.messages import TOLD, WritingProblem, generation_messages, generation_schema
from judging.generation.preset_words import PARAMETER_TITLES, PRESET_TITLES
from judging.generation.specs import LISTS, PRESETS, SIMULATIONS, from_yaml, list_levels, parse_spec, preset

STORY = {
    "key": "own-stories",
    "title": "O'Hara’s “stories” – قصص",
    "kind": "text",
    "templates": {"": "Write about {hero} in {language}.", "et": "Kirjuta loost, mille kangelane on {hero}."},
    "fields": ["answer"],
    "parameters": [
        {"name": "hero", "levels": [{"value": "cat", "text": {"": "a cat", "et": "kass", "ar": "قطة"}}, "dog"]},
        {"name": "paragraphs", "levels": [1, 2], "weights": [3, 1]},
    ],
}


@pytest.mark.parametrize("key", [*PRESETS, *SIMULATIONS])
def test_presets_go_to_yaml_and_back(key: str) -> None:
    spec = preset(key)
    assert from_yaml(spec.as_yaml) == parse_spec(spec.stored) == spec
    assert from_yaml(spec.as_yaml).digest == spec.digest


def test_support_dialogues_have_the_parameters_of_table_5() -> None:
    levels = {parameter.name: parameter.levels for parameter in preset("support-dialogues").parameters}
    counts = {"industry": 49, "problem": 20, "channel": 2, "agent_experience": 2, "agent_type": 2, "messages": 4}
    assert {name: len(listed) for name, listed in levels.items()} == counts
    assert [(level.value, level.weight) for level in levels["messages"]] == [(4, 0.4), (8, 0.3), (12, 0.2), (16, 0.1)]


def test_draws_depend_on_spec_seed_and_number_alone_and_keep_to_the_weights() -> None:
    spec = preset("support-dialogues")
    assert draw_parameters(spec, seed=1, number=7) == draw_parameters(from_yaml(spec.as_yaml), seed=1, number=7)
    assert draw_parameters(spec, seed=1, number=7) != draw_parameters(spec, seed=2, number=7)
    drawn = [draw_parameters(spec, seed=11, number=number) for number in range(2_000)]
    counts = Counter(parameters["messages"] for parameters in drawn)
    for messages, share in ((4, 0.4), (8, 0.3), (12, 0.2), (16, 0.1)):
        assert abs(counts[messages] / 2_000 - share) < 0.04  # more than three standard errors
    assert len({parameters["industry"] for parameters in drawn}) == 49
    # Pinned: a change of the draws would break what a digest and a seed promise.
    assert draw_parameters(parse_spec(STORY), seed=1, number=1) == {"hero": "cat", "paragraphs": 2}


def test_families_are_drawn_alike_one_by_one_and_together_and_soon() -> None:
    spec = preset("support-dialogues")
    one_by_one = [draw_parameters(spec, seed=5, number=number) for number in range(1, 40)]
    assert draw_families(spec, seed=5, numbers=range(1, 40)) == one_by_one
    levels = [{"value": number, "weight": 0 if number % 2 else 0.1} for number in range(1_000)]
    large = parse_spec(
        {**STORY, "parameters": [{"name": f"p{n}", "levels": levels} for n in range(40)], "templates": "Write."}
    )
    began = time.process_time()
    drawn = draw_families(large, seed=5, numbers=range(1, 10_001))
    assert time.process_time() - began < 10, "not the spec's digest for every one, nor every level"
    assert len(drawn) == 10_000 and all(value % 2 == 0 for value in drawn[0].values())


def test_a_filled_template_has_an_end() -> None:
    level = {"value": "x", "text": "y" * 2_000}
    long = {**STORY, "parameters": [{"name": "hero", "levels": ["cat", level]}], "rules": {}}
    assert parse_spec({**long, "templates": "{hero}" * 49})
    with pytest.raises(Refused) as refused:
        parse_spec({**long, "templates": {"en": "{hero}" * 50}, "system": "{hero}" * 50})
    assert {"templates.en", "system"} <= set(refused.value.fields)


def test_a_level_of_weight_nought_is_never_drawn() -> None:
    parameters = [{"name": "hero", "levels": ["cat", "dog", "owl"], "weights": [0, 1, 0]}]
    spec = parse_spec(STORY | {"parameters": parameters})
    assert {draw_parameters(spec, seed=1, number=number)["hero"] for number in range(50)} == {"dog"}


def test_a_request_is_in_its_language_and_tells_the_rules_and_the_problems() -> None:
    spec = parse_spec(STORY)
    cat: dict[str, str | int] = {"hero": "cat", "paragraphs": 1}
    assert "mille kangelane on kass." in generation_messages(spec, cat, language="et")[0]["content"]
    assert "Write about قطة in Arabic (Egypt)." in generation_messages(spec, cat, language="ar-EG")[0]["content"]
    assert generation_schema(spec)["required"] == ["answer"]
    support = preset("support-dialogues")
    drawn = draw_parameters(support, seed=1, number=1)
    system, user = generation_messages(
        support, drawn, language="hi", problems=[WritingProblem("wrong_count", {"count": 3})]
    )
    assert (system["role"], user["role"]) == ("system", "user")
    assert f"- Messages: exactly {drawn['messages']}." in user["content"]
    assert "- Language: Hindi (hi)" in user["content"]
    assert "- It had 3 messages." in user["content"]
    assert "{" not in user["content"].split("Its form:")[0]


def test_every_problem_can_be_told() -> None:
    values = {
        "turn": 2,
        "before": 1,
        "count": 3,
        "role": "agent",
        "longest": 10,
        "text": "100 % [name]",
        "language": "et",
        "percent": 300,
    }
    for words in TOLD.values():
        assert words % values


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"kind": "novel"}, "kind"),
        ({"key": "Ä b"}, "key"),
        ({"title": ""}, "title"),
        ({"title": "a\x00b"}, "title"),
        ({"templates": {"xx-wrong": "a"}}, "templates.xx-wrong"),
        ({"templates": "Write about {villain}."}, "templates"),
        ({"templates": 7}, "templates"),
        ({"parameters": []}, "parameters"),
        ({"parameters": [{"name": "language", "levels": ["a"]}]}, "parameters[1].name"),
        ({"parameters": [{"name": "hero", "levels": ["a", "a"]}]}, "parameters[1].levels"),
        ({"parameters": [{"name": "hero", "levels": ["a", None]}]}, "parameters[1].levels[2]"),
        ({"parameters": [{"name": "hero", "levels": ["a"], "weights": [1, 2]}]}, "parameters[1].weights"),
        (
            {"parameters": [{"name": "hero", "levels": [{"value": "a", "weight": -1}]}]},
            "parameters[1].levels[1].weight",
        ),
        ({"parameters": [{"name": "hero", "levels": ["a"], "colour": 1}]}, "parameters[1].colour"),
        ({"fields": ["poem"]}, "fields[1].name"),
        ({"fields": []}, "fields"),
        ({"kind": "pair"}, "fields"),
        ({"kind": "dialogue", "fields": []}, "rules.roles"),
        ({"rules": {"roles": ["user"], "starts": "bot"}}, "rules.starts"),
        ({"rules": {"count": "hero"}}, "rules.count"),
        ({"rules": {"least": 9, "most": 3}}, "rules.most"),
        ({"retries": True}, "retries"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_problems_of_a_spec_name_their_place(change: dict[str, object], place: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_spec(STORY | change)
    assert place in refused.value.fields
    assert refused.value.code == "invalid"


@pytest.mark.parametrize("text", ["", "[1, 2]", "key: [", "a: &a [1]\nb: *a", "- " * 400_000, "\x00"])
def test_a_text_that_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        from_yaml(text)


TALKS: dict[str, Any] = {
    "key": "own-talks",
    "title": "O'Hara’s talks – محادثات",
    "kind": "conversation",
    "templates": {"": "The person likes {hero}.", "ja": "その人は{hero}が好きです。"},
    "parameters": [{"name": "hero", "levels": ["cats", {"value": "dogs", "text": {"ja": "犬"}}]}],
    "rules": {"roles": ["user", "assistant"]},
    "conversation": {"opening": "Write to a chatbot.", "later": "Go on, in {language}.", "chatbot": "Answer."},
}


def test_the_simulation_of_our_own_has_the_limits_and_sampling_of_the_study() -> None:
    spec = preset("simulated-users")
    rules = spec.simulation
    assert (rules.most_tries(0), rules.most_tries(1), rules.most_tries(9), rules.user_turns) == (10, 5, 5, 10)
    assert rules.sampling == {
        "opening": {"temperature": 1.5, "presence_penalty": 0.6, "max_tokens": 512},
        "utterance": {"temperature": 0.9, "top_p": 0.95, "max_tokens": 512},
        "answer": {"temperature": 0.9, "top_p": 0.95, "max_tokens": 512},
    }
    levels = {parameter.name: len(parameter.levels) for parameter in spec.parameters}
    assert levels == {"scene": 48, "persona": 48, "affective_state": 16, "gender": 2, "culture": 4}
    assert len(LISTS) == len(spec.parameters)
    drawn = [draw_parameters(spec, seed=4, number=number) for number in range(1, 201)]
    assert drawn[:5] == [draw_parameters(from_yaml(spec.as_yaml), seed=4, number=number) for number in range(1, 6)]
    assert {one["gender"] for one in drawn} == {"woman", "man"} and len({one["scene"] for one in drawn}) > 40


def test_an_uploaded_list_gives_the_levels_of_a_parameter() -> None:
    table = '\ufeffvalue,weight,text,text_ar\r\n"O\'Hara, Zoë",2,a neighbour,جارة\r\nuncle,,,\r\n'.encode()
    levels = list_levels("people.csv", table)
    assert levels == [
        {"value": "O'Hara, Zoë", "weight": 2.0, "text": {"": "a neighbour", "ar": "جارة"}},
        "uncle",
    ]
    spec = parse_spec({**TALKS, "parameters": [{"name": "hero", "levels": levels}]})
    assert [(one.weight, one.text("ar-EG")) for one in spec.parameters[0].levels] == [(2.0, "جارة"), (1.0, "uncle")]
    assert list_levels("people.tsv", "猫\t3\n犬\t4\n".encode()) == ["猫", "犬"]
    assert list_levels("people.yaml", b"- a\n- {value: b, weight: 3}\n") == ["a", {"value": "b", "weight": 3}]
    assert list_levels("people.json", b'{"levels": [1, 2]}') == [1, 2]


@pytest.mark.parametrize(
    ("name", "raw", "place"),
    [
        ("a.csv", b"value,weight\na,many\n", "list.levels[1].weight"),
        ("a.csv", b"value,text_xx-wrong\na,b\n", "list.levels[1].text.xx-wrong"),
        ("a.csv", b"value\na\na\n", "list.levels"),
        ("a.csv", b"\n", "list.levels"),
        ("a.csv", b"\xff\xfe", "levels"),
        ("a.csv", b"value\n" + b"\n".join(b"%d" % number for number in range(1_001)), "list.levels"),
        ("a.yaml", b"&a [*a]", "levels"),
        ("a.json", b"7", "list.levels"),
    ],
)
def test_problems_of_a_list_name_their_place(name: str, raw: bytes, place: str) -> None:
    with pytest.raises(Refused) as refused:
        list_levels(name, raw)
    assert place in refused.value.fields


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"conversation": None}, "conversation"),
        ({"conversation": {**TALKS["conversation"], "opening": ""}}, "conversation.opening"),
        ({"conversation": {**TALKS["conversation"], "chatbot": "They like {hero}."}}, "conversation.chatbot"),
        ({"conversation": {**TALKS["conversation"], "later": "Tell {villain}."}}, "conversation.later"),
        ({"conversation": {**TALKS["conversation"], "stop_mark": "the end"}}, "conversation.stop_mark"),
        ({"conversation": {**TALKS["conversation"], "first_tries": 0}}, "conversation.first_tries"),
        ({"conversation": {**TALKS["conversation"], "user_turns": 1}}, "conversation.least_user_turns"),
        ({"conversation": {**TALKS["conversation"], "mood": 1}}, "conversation.mood"),
        ({"conversation": {**TALKS["conversation"], "sampling": {"verdict": {}}}}, "conversation.sampling.verdict"),
        (
            {"conversation": {**TALKS["conversation"], "sampling": {"answer": {"temperature": "hot"}}}},
            "conversation.sampling.answer",
        ),
        ({"rules": {"roles": ["user"]}}, "rules.roles"),
        ({"rules": {"roles": ["user", "assistant"], "starts": "user"}}, "rules.starts"),
        ({"system": "Write."}, "system"),
        ({"fields": ["answer"]}, "fields"),
        ({"parameters": [{"name": "hero", "levels_from": "villains"}]}, "parameters[1].levels_from"),
    ],
)
def test_problems_of_a_conversation_name_their_place(change: dict[str, object], place: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_spec({**TALKS, **change})
    assert place in refused.value.fields


def test_only_a_conversation_has_the_rules_of_one() -> None:
    with pytest.raises(Refused) as refused:
        parse_spec({**STORY, "conversation": TALKS["conversation"]})
    assert "conversation" in refused.value.fields
    assert "conversation" not in parse_spec(STORY).stored
    with pytest.raises(ValueError, match="no conversation"):
        _ = parse_spec(STORY).simulation


def test_every_title_of_our_own_specs_can_be_translated() -> None:
    shown = [preset(key) for key in PRESETS]
    assert {spec.title for spec in shown} <= set(PRESET_TITLES)
    assert {parameter.title for spec in shown for parameter in spec.parameters} <= set(PARAMETER_TITLES)
