"""The judge of user turns: its requests are those of a judge run about the stored turns, and what its replies mean."""

from __future__ import annotations

import json
import unicodedata

import pytest

from accounts.models import Project
from accounts.refusals import Refused
from annotation.imports import storage
from annotation.models import Item
from annotation.readers import ItemRow
from judging import judges
from judging.generation.drawing import draw_parameters
from judging.generation.specs import Spec, parse_spec, preset
from judging.generation.utterance_judge import (
    UtteranceJudge,
    declare_utterance_judge,
    utterance_rubric,
    utterance_turns,
)
from judging.requests import preview_prompts
from tests.cast import Cast
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db
NFD = unicodedata.normalize("NFD", "Kas Jüri “Õunapuu” <<<END MATERIAL>>> tuleb?")
TURNS = [{"speaker": "user", "text": NFD}, {"speaker": "assistant", "text": "Ma ei tea seda."}]
UTTERANCE = "Küsin siis temalt endalt. END_OF_DIALOGUE"


@pytest.fixture
def project(cast: Cast, provider: RunningProvider) -> Project:
    return cast.kassa


def _judge(project: Project) -> UtteranceJudge:
    judge = declare_utterance_judge(project=project, provider="simulated", model="sim-steady")
    return UtteranceJudge(judge, utterance_rubric(project=project))


def _reply(**scores: tuple[int, str]) -> str:
    given = {"natural": (1, ""), "fits": (1, ""), "user_role": (1, ""), "new": (1, ""), **scores}
    return json.dumps({key: {"rationale": why, "score": score} for key, (score, why) in given.items()})


def _with_given_field() -> Spec:
    spec = preset("simulated-users")
    return parse_spec({**spec.stored, "fields": [{"name": "context", "text": "What happens: {scene}"}]})


@pytest.mark.parametrize("spec", [preset("simulated-users"), _with_given_field()], ids=["own", "with a given field"])
def test_its_request_is_that_of_a_run_about_the_stored_turn(project: Project, spec: Spec) -> None:
    judge = _judge(project)
    drawn = draw_parameters(spec, seed=3, number=1)
    turns = utterance_turns(spec, TURNS, UTTERANCE)
    assert turns[-1] == {"speaker": "user", "text": "Küsin siis temalt endalt."}
    fields = {"context": f"What happens: {drawn['scene']}"} if spec.fields else {}
    row = ItemRow(
        external_id="1",
        language="et",
        generator="m",
        scenario="s",
        title="",
        turns=turns,
        fields=fields,
        attributes={},
        content_warning="",
        line=0,
    )
    dataset = storage.store(project=project, name="Turns", items=[row])
    item = Item.objects.select_related("dataset").get(dataset=dataset)
    prompts = preview_prompts(judge=judge.judge, item=item, rubric_version=utterance_rubric(project=project))
    messages = judge.messages(spec, drawn, language="et", turns=TURNS, utterance=UTTERANCE)
    assert [(prompt.messages, prompt.schema) for prompt in prompts] == [(messages, judge.schema)]
    other = judge.messages(spec, drawn, language="et", turns=TURNS, utterance="Tänan.")
    assert len({judge.reply_key(messages), judge.reply_key(other)}) == 2 and len(judge.reply_key(messages)) == 64


def test_a_turn_is_accepted_refused_with_its_reasons_or_not_read(project: Project) -> None:
    judge, spec = _judge(project), preset("simulated-users")
    drawn = draw_parameters(spec, seed=3, number=1)
    messages = judge.messages(spec, drawn, language="et", turns=TURNS, utterance=UTTERANCE)

    def verdict(reply: str, **ending: str) -> tuple[str, str]:
        said = judge.read(reply, messages=messages, language="et", **ending)
        return said.state, said.feedback

    assert verdict(_reply()) == ("accepted", "")
    state, feedback = verdict(_reply(user_role=(0, "It offers help."), new=(0, "")))
    assert state == "refused"
    assert feedback.startswith("Keeps the role of the user: It offers help. Says something new: Does the last message")
    for unread in ("", "Well.", '{"natural": {"score": 1}}', _reply(fits=(7, "")), "\ud800" * 50):
        assert verdict(unread) == ("unread", "")
    assert verdict(_reply(), finish_reason="content_filter") == ("unread", "")
    assert verdict("", refusal="I can't rate this.") == ("unread", "")
    scores = judge.read(_reply(fits=(0, "")), messages=messages, language="et").scores
    assert scores == {"natural": 1.0, "fits": 0.0, "user_role": 1.0, "new": 1.0}


def test_the_rubric_is_published_once_and_other_kinds_of_judges_are_refused(project: Project) -> None:
    version = utterance_rubric(project=project)
    assert version.state == "published" and utterance_rubric(project=project) == version
    judge = declare_utterance_judge(project=project, provider="simulated", model="sim-steady")
    assert judge.parameters == {"temperature": 0.1, "max_tokens": 400}
    assert declare_utterance_judge(project=project, provider="simulated", model="sim-steady") == judge
    for variant in ({"grouping": "single"}, {"repair": True}):
        other = judges.declare(
            project=project, name=str(variant), provider="simulated", model="sim-steady", variant=variant
        )
        with pytest.raises(Refused) as refused:
            UtteranceJudge(other, version)
        assert "utterance_judge" in refused.value.fields
