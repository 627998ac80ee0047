"""The later factors of a prompt variant: old judges stay what they are, and each factor changes what it says."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any
from uuid import uuid4

import orjson
import pytest

from accounts.refusals import Refused
from analytics.workload import FEWEST_ITEMS, judge_positions
from annotation import selections
from annotation.models import Campaign, Item, ItemSelection, Rating
from annotation.readers import parse_rubric
from judging import calls, judges, perturbed_runs, requests, runs
from judging.asking import allowances
from judging.asking.client import ProviderAnswer
from judging.generation import specs
from judging.judges import judge_digest
from judging.models import Call, Judge, JudgeRun, Verdict
from judging.prompts import (
    FRAMES,
    INSTRUCTION_LANGUAGES,
    CriterionBrief,
    ItemText,
    PromptVariant,
    render,
    response_schema,
)
from judging.requests import CallRequestWriter
from judging.study_presets import OWN, STUDY_PRESETS, TASKS
from judging.versions import alignment
from panelbench import environment
from tests import make
from tests.annotation.test_pairs import ONE, OTHER, duty_of_pairs
from tests.cast import Cast
from tests.judging import briefs
from tests.judging.test_continuing import asked
from tests.judging.test_runs import worked
from tests.provider_server import RunningProvider

EVERY_EARLIER = list(
    itertools.product(
        ("single", "compound"), ("name", "anchors", "reasons"), (True, False), ("en", "et"), (True, False)
    )
)


def test_judges_from_before_these_factors_keep_their_digests() -> None:
    """The digest of all digests was computed with the code before the factors existed (commit ad62af3)."""
    about: dict[str, Any] = {"endpoint": "simulated", "model": "m", "parameters": {"temperature": 0}}
    found = "".join(judge_digest(variant=PromptVariant(*levels), **about) for levels in EVERY_EARLIER)
    assert hashlib.sha256(found.encode()).hexdigest() == (
        "ab1c7720cf0125797d327deb4e6c91e56755fd0dc16cfcf8314b985c6b519967"
    )
    assert PromptVariant().factors.keys() == {"grouping", "anchor_detail", "explanation", "instruction_language"}


CRITERIA = (briefs.GRAMMAR, briefs.EMPATHY)
CHANGES: dict[str, dict[str, Any]] = {
    "task": {"task": "s3_detector"},
    "own text": {"task": OWN, "role_text": "You grade essays."},
    "persona": {"persona": "a retired teacher"},
    "rubric text": {"rubric_text": "general"},
    "order of criteria": {"criteria_order": "reversed"},
    "order of points": {"points_order": "reversed"},
}


def prompt(**factors: Any) -> str:
    made = render(item=briefs.DIALOGUE, criteria=CRITERIA, variant=judges.variant_of(factors))
    return "\n".join(message["content"] for message in made)


@pytest.mark.parametrize("change", CHANGES)
def test_every_factor_changes_prompt_and_digest(change: str) -> None:
    variant = judges.variant_of(CHANGES[change])
    assert prompt(**CHANGES[change]) != prompt()
    about: dict[str, Any] = {"endpoint": "e", "model": "m", "parameters": {}}
    assert judge_digest(variant=variant, **about) != judge_digest(variant=PromptVariant(), **about)
    assert judges.variant_of(orjson.loads(orjson.dumps(variant.factors))) == variant


def test_what_the_factors_say() -> None:
    assert prompt(task=OWN, role_text="You grade essays.").startswith("You grade essays.")
    assert prompt(persona="a retired teacher").startswith("Judge from this point of view: a retired teacher\n\nYou are")
    first, last = CRITERIA[0], CRITERIA[-1]
    assert prompt(criteria_order="reversed").index(last.name) < prompt(criteria_order="reversed").index(first.name)
    general = prompt(rubric_text="general")
    anchors = [point.text for criterion in CRITERIA for point in criterion.points if point.text]
    assert anchors
    assert not [text for text in anchors if text in general]
    assert FRAMES["en"].general_rubric in general
    values = [str(int(point.value)) for point in first.points]
    assert f"Score: one of {', '.join(reversed(values))}." in prompt(points_order="reversed")


@pytest.mark.parametrize(
    ("criterion", "sentences"),
    [
        (briefs.EMPATHY, ["The best score is 3, the worst is 0."]),
        (replace(briefs.EMPATHY, direction="lower_is_better"), ["The best score is 0, the worst is 3."]),
        (replace(briefs.EMPATHY, direction="none"), []),
        (briefs.CHANNEL, []),
    ],
)
def test_a_general_rubric_names_the_best_end_of_each_scale(criterion: CriterionBrief, sentences: list[str]) -> None:
    variant = judges.variant_of({"rubric_text": "general"})
    general = render(item=briefs.DIALOGUE, criteria=[criterion], variant=variant)[0]["content"]
    assert re.findall(r"The best score[^\n]*", general) == sentences
    assert "lowest" not in general
    specific = [
        render(item=briefs.DIALOGUE, criteria=[one], variant=PromptVariant())
        for one in (criterion, replace(criterion, direction="higher_is_better"))
    ]
    assert specific[0] == specific[1]


@pytest.mark.parametrize(
    ("factors", "sentence"),
    [
        ({"few_shot": 2}, "has no “few_shot”"),
        ({"task": "s9"}, "not a valid task"),
        ({"task": OWN}, "“Own text” (own) needs “Own role and task”"),
        ({"role_text": "You grade."}, "“Own text” (own) needs “Own role and task”"),
        ({"persona": "x" * 501}, "at most 500"),
        (
            {"task": "s3_detector", "instruction_language": "et"},
            "“MEDAL: detector of issues” (s3_detector) has instructions in: English (en)",
        ),
        ({"points_order": "shuffled"}, "Use one of: rubric, reversed"),
    ],
)
def test_factors_that_make_no_sense_are_refused(factors: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=re.escape(sentence)):
        judges.variant_of(factors)


def test_every_study_preset_is_a_readable_rubric_and_a_known_variant() -> None:
    for key, preset in STUDY_PRESETS.items():
        parsed = parse_rubric("rubric.json", orjson.dumps(preset.rubric))
        assert parsed.document is not None, (key, parsed.problems.sentences())
        judges.variant_of(preset.variant)
    s3 = STUDY_PRESETS["s3"]
    assert (len(s3.rubric["criteria"]), s3.parameters["temperature"], s3.repeats) == (10, 0, 5)
    assert {preset.variant["task"] for preset in STUDY_PRESETS.values()} == TASKS.keys()
    assert all(languages.keys() <= INSTRUCTION_LANGUAGES for languages in TASKS.values())


def test_label_recovery_of_s0_asks_for_the_levels_that_its_dialogues_are_drawn_from() -> None:
    drawn = {
        parameter.name: [level.value for level in parameter.levels]
        for parameter in specs.preset("support-dialogues").parameters
        if parameter.name != "messages"
    }
    asked = {
        criterion["key"]: [point["label"]["en"] for point in criterion["scale"]["points"]]
        for criterion in STUDY_PRESETS["s0_labels"].rubric["criteria"]
    }
    assert asked == drawn
    assert (len(drawn["industry"]), len(drawn["problem"])) == (49, 20)


def study_bytes(key: str, **factors: Any) -> bytes:
    """All that a judge with the configuration of a study is sent about an item, with the schemas of its replies."""
    preset = STUDY_PRESETS[key]
    variant = judges.variant_of({**preset.variant, **factors})
    briefs = [requests.criterion_brief(criterion, "en") for criterion in judges.study_criteria(key)]
    groups = [[brief] for brief in briefs] if variant.grouping == "single" else [briefs]
    item = ItemText(fields=(("request", "Write."), ("answer", "Done."), ("reference", "Well done.")), language="en")
    sent = [(render(item=item, criteria=group, variant=variant), response_schema(group, variant)) for group in groups]
    return orjson.dumps([sent, preset.parameters])


def test_no_two_study_presets_send_equal_bytes() -> None:
    sent = {key: study_bytes(key) for key in STUDY_PRESETS}
    equal = [(first, second) for first, second in combinations(sent, 2) if sent[first] == sent[second]]
    assert equal == []


def test_detailed_instructions_of_s4_add_a_definition_and_reasons_to_every_metric() -> None:
    plain, detailed = (study_bytes(key).decode() for key in ("s4_single", "s4_detailed"))
    for criterion in STUDY_PRESETS["s4_detailed"].rubric["criteria"]:
        (own,) = [
            text["text"]
            for text in STUDY_PRESETS["s4_detailed"].variant["own_texts"]
            if text["criterion"] == criterion["key"]
        ]
        assert own in detailed and own not in plain and len(own) > len(criterion["definition"]["en"])
        for anchor in criterion["anchors"].values():
            reasons = anchor["en"]["reason"].splitlines()
            assert len(reasons) in (3, 4), "as many as in the study's figures 4 and 15 to 18"
            assert all(f"  - {reason}\\n" in detailed and reason not in plain for reason in reasons)


@pytest.mark.parametrize("key", STUDY_PRESETS)
def test_every_factor_of_a_study_preset_changes_what_is_sent(key: str) -> None:
    """A preset is not empty: without any one of its factors, other bytes are sent."""
    defaults = PromptVariant().factors
    for factor, level in STUDY_PRESETS[key].variant.items():
        default = getattr(PromptVariant(), factor)
        if factor in defaults and level == defaults[factor]:
            continue
        if factor == "reference_answer":
            continue  # a matter of the item (test_the_reference_answer_is_shown_or_hidden)
        assert study_bytes(key) != study_bytes(key, **{factor: default}), factor


@pytest.mark.parametrize("key", STUDY_PRESETS)
def test_every_criterion_of_a_study_has_a_definition_and_a_text_for_each_point(key: str) -> None:
    criteria = judges.study_criteria(key)
    for criterion in criteria:
        brief = requests.criterion_brief(criterion, "en")
        assert brief.definition and brief.definition != brief.name, brief.key
        texts = [point.text for point in brief.points]
        assert all(texts) and len({*texts}) == len(texts), brief.key
    names = [criterion.says("name", "en") for criterion in criteria]
    assert len({*names}) == len(names)


def test_the_presets_of_s2_have_the_criteria_of_its_tables() -> None:
    """Table 22: 2 critical, 6 general and 5 subjective criteria of every text; 13 by style, 32 by task."""
    of_all = Counter(criterion.group for criterion in judges.study_criteria("s2_all"))
    assert of_all == {"critical": 2, "general": 6, "subjective": 5, "domain": 13, "task": 32}
    of_every_text = judges.study_criteria("s2")
    assert len(of_every_text) == 13
    assert {criterion.group for criterion in of_every_text} == {"critical", "general", "subjective"}


@pytest.mark.django_db(transaction=True)
class TestExamples:
    @pytest.fixture
    def campaign(self, cast: Cast) -> Campaign:
        """Eight Estonian dialogues in four scenarios; fluency 0 or 3 by two of three raters, d8 without majority."""
        rows = [make.item_row(n, scenario=f"s{(n + 1) // 2}") for n in range(1, 9)]
        made = make.campaign(cast.kassa, items=rows)
        first = [0, 3, 0, 3, 0, 3, 0, 1]
        make.rated(made, {"fluency": {"A": first, "B": [*first[:7], 2], "C": [3] * 8}})
        return made

    def declared(self, campaign: Campaign, selection: ItemSelection, **parts: Any) -> Judge:
        drawn = {"selection": selection.pk, "per_class": 1, "seed": 5}
        return judges.declare(
            project=campaign.project,
            name="Few-shot",
            provider="simulated",
            model="sim-steady",
            variant={"grouping": "single", "examples": drawn, **parts},
        )

    def split(self, campaign: Campaign, ids: tuple[str, ...] = ("d1", "d2", "d3", "d4")) -> ItemSelection:
        return selections.select(campaign=campaign, name="Tuning", rule={"kind": "list", "items": list(ids)})

    def test_at_most_so_many_of_every_score_by_majority(self, provider: RunningProvider, campaign: Campaign) -> None:
        judge = self.declared(campaign, self.split(campaign))
        shown = judge.variant["examples"]
        assert sorted((example["criterion"], example["score"]) for example in shown) == [("fluency", 0), ("fluency", 3)]
        assert self.declared(campaign, ItemSelection.objects.get()) == judge
        with pytest.raises(Refused, match="majority of its panel"):
            self.declared(
                campaign, selections.select(campaign=campaign, name="T", rule={"kind": "list", "items": ["d8"]})
            )

    def test_who_answered_without_a_score_counts_in_the_majority(
        self, provider: RunningProvider, campaign: Campaign
    ) -> None:
        """One of three gives d1 a score, and two say that the criterion does not apply to it."""
        split = self.split(campaign, ("d1",))
        self.declared(campaign, split)
        about_first = Rating.objects.filter(annotation__item__external_id="d1", criterion__key="fluency")
        kept = about_first.order_by("pk").first()
        about_first.exclude(pk=kept.pk).update(status="na", score=None)
        with pytest.raises(Refused, match="majority of its panel"):
            self.declared(campaign, split)

    def test_no_item_that_was_shown_is_asked_about(self, provider: RunningProvider, campaign: Campaign) -> None:
        judge = self.declared(campaign, self.split(campaign, ("d1", "d2")))
        shown = Item.objects.filter(digest__in=[example["item"] for example in judge.variant["examples"]])
        assert {item.scenario for item in shown} == {"s1"}
        about: dict[str, Any] = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
        assert runs.forecast(judge=judge, **about).items == 6
        run = runs.start_judge_run(judge=judge, **about)
        assert set(asked(run)) == {"d3", "d4", "d5", "d6", "d7", "d8"}
        assert worked(run).verdicts["ok"] == 12
        sent = [call["messages"][1]["content"] for call in run.calls.values_list("attempts__request", flat=True)]
        assert sum("Score given by people: 0" in content for content in sent) == 6

    def test_a_selection_of_its_own_examples_says_so(self, provider: RunningProvider, campaign: Campaign) -> None:
        own = self.split(campaign, ("d1", "d2"))
        judge = self.declared(campaign, own)
        about: dict[str, Any] = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
        with pytest.raises(Refused, match="one of the judge’s own examples"):
            runs.start_judge_run(judge=judge, selection=own, **about)

    def test_the_preview_shows_the_examples_but_never_the_item_itself(
        self, provider: RunningProvider, campaign: Campaign
    ) -> None:
        judge = self.declared(campaign, self.split(campaign, ("d1", "d2")))
        items = {item.external_id: item for item in campaign.dataset.items.select_related("dataset")}
        about: dict[str, Any] = {"judge": judge, "rubric_version": campaign.rubric_version}
        fluency, coherence = requests.preview_prompts(item=items["d5"], **about)
        assert fluency.messages[1]["content"].count("Score given by people") == 2
        assert "Score given by people" not in coherence.messages[1]["content"]
        own, _coherence = requests.preview_prompts(item=items["d1"], **about)
        assert "Score given by people" not in own.messages[1]["content"]

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"score": 10**400}, "is a number from"),
            ({"score": float("nan")}, "is a number from"),
            ({"score": True}, "is a number from"),
            ({"criterion": "a\ud800"}, "at most 100 characters"),
            ({"criterion": "a\x00"}, "at most 100 characters"),
            ({"criterion": "a" * 101}, "at most 100 characters"),
            ({"item": "0" * 64}, "1 example items of this judge are not in the project"),
            ({"language": "fi"}, "not in the language “fi”"),
            ({"rubric": "0" * 64}, "not published in this project"),
            ({"rubric": 1}, "at most 100 characters"),
            ({"why": "x"}, "An example has: criterion, item, language, score"),
        ],
    )
    def test_an_example_given_by_hand_that_cannot_be_shown_is_refused(
        self, provider: RunningProvider, campaign: Campaign, change: dict[str, Any], sentence: str
    ) -> None:
        item = campaign.dataset.items.first()
        example = {"criterion": "fluency", "item": item.digest, "language": "et", "score": 3}
        kept = self.by_hand(campaign, [example]).variant["examples"]
        assert kept == [{**example, "score": 3.0}], "no rubric is made up for it"
        with pytest.raises(Refused, match=sentence) as refused:
            self.by_hand(campaign, [{**example, **change}])
        assert refused.value.fields.keys() == {"variant"}

    def by_hand(self, campaign: Campaign, examples: list[dict[str, Any]]) -> Judge:
        variant = {"grouping": "single", "examples": examples}
        return judges.declare(
            project=campaign.project, name="By hand", provider="simulated", model="sim-steady", variant=variant
        )

    def test_so_many_examples_by_hand_as_are_drawn(self, provider: RunningProvider, campaign: Campaign) -> None:
        given = [
            {"criterion": "fluency", "item": item.digest, "language": "et", "score": 3}
            for item in campaign.dataset.items.all()
        ]
        assert len(self.by_hand(campaign, given[:2]).variant["examples"]) == 2
        with pytest.raises(Refused, match="“fluency” has 3 examples of the score 3 in “et”; at most 2"):
            self.by_hand(campaign, given[:3])
        with pytest.raises(Refused, match="same criterion twice"):
            self.by_hand(campaign, [given[0], {**given[0], "score": 1}])
        many = [{**given[0], "item": f"{number:064}"} for number in range(1001)]
        with pytest.raises(Refused, match="at most 1000 examples, not 1001"):
            self.by_hand(campaign, many)

    def test_examples_are_shown_with_the_rubric_that_they_were_rated_by(
        self, cast: Cast, provider: RunningProvider, campaign: Campaign
    ) -> None:
        split = self.split(campaign, ("d1", "d2"))
        judge, rubric = self.declared(campaign, split), campaign.rubric_version
        assert {example["rubric"] for example in judge.variant["examples"]} == {rubric.digest}
        later = make.rubric(cast.kassa, make.criterion("fluency", definition={"en": "Another definition."}))
        assert (later.rubric, later.number) == (rubric.rubric, 2)
        about: dict[str, Any] = {"judge": judge, "rubric_version": later}
        with pytest.raises(Refused, match=f"rated by {rubric}, not by {later}"):
            runs.start_judge_run(dataset=campaign.dataset, **about)
        with pytest.raises(Refused, match=f"rated by {rubric}, not by {later}"):
            requests.preview_prompts(item=campaign.dataset.items.last(), **about)
        boris = cast.client("boris")
        assert str(boris.get(f"/p/kassa/judges/{judge.pk}/").context["version"]) == str(rubric)
        plain = {"provider": "simulated", "model": "m", "name": "J", "grouping": "single", "anchor_detail": "anchors"}
        posted = {**plain, "explanation": "yes", "instruction_language": "en", "examples_from": split.pk, "preview": 1}
        shown = boris.post("/p/kassa/judges/new/", posted)
        assert f"by the rubric {rubric}" in shown.content.decode()
        assert "rated by quality v1, not by" in boris.post("/p/kassa/judges/new/?study=s3", posted).content.decode()

    def test_examples_need_one_criterion_per_call(self, provider: RunningProvider, campaign: Campaign) -> None:
        with pytest.raises(Refused, match="the grouping “One criterion per call”"):
            self.declared(campaign, self.split(campaign), grouping="compound")


@pytest.mark.django_db
class TestAsAStudy:
    def test_page_and_api_set_rubric_prompt_temperature_and_repeats(
        self, cast: Cast, provider: RunningProvider
    ) -> None:
        boris = cast.client("boris")
        body = {"study": "s3", "provider": "simulated", "model": "sim-steady"}
        made = boris.post("/api/v1/projects/kassa/judges/studies/", body, content_type="application/json").json()
        assert (made["repeats"], made["judge"]["parameters"]["temperature"]) == (5, 0)
        assert made["judge"]["variant"]["task"] == "s3_detector"
        form = boris.get("/p/kassa/judges/new/?study=s3").context["form"]
        fields = {name: form[name].value() for name in form.fields}
        posted = {name: value for name, value in fields.items() if value not in (None, False)}
        posted |= {"provider": "simulated", "model": "sim-steady", "name": "Mine", "untested": "on"}
        started = boris.post("/p/kassa/judges/new/?study=s3", posted)
        judge = Judge.objects.get()
        assert started["Location"] == (
            f"/p/kassa/judges/{judge.pk}/runs/new/?rubric_version={made['rubric_version']}&repeats=5"
        )
        listed = boris.get("/api/v1/projects/kassa/judges/studies/").json()
        assert [study["key"] for study in listed] == list(STUDY_PRESETS)

    @pytest.mark.parametrize("study", STUDY_PRESETS)
    def test_the_form_and_the_api_declare_the_same_judge(
        self, cast: Cast, provider: RunningProvider, study: str
    ) -> None:
        boris = cast.client("boris")
        body = {"study": study, "provider": "simulated", "model": "sim-steady"}
        made = boris.post("/api/v1/projects/kassa/judges/studies/", body, content_type="application/json").json()
        form = boris.get(f"/p/kassa/judges/new/?study={study}").context["form"]
        fields = {name: form[name].value() for name in form.fields}
        posted = {name: value for name, value in fields.items() if value not in (None, False)}
        posted |= {"provider": "simulated", "model": "sim-steady", "name": "Mine", "untested": "on"}
        boris.post(f"/p/kassa/judges/new/?study={study}", posted)
        assert Judge.objects.get().pk == made["judge"]["id"]

    def test_the_reference_answer_is_shown_or_hidden(self, cast: Cast, provider: RunningProvider) -> None:
        row = make.item_row(1, fields={"answer": "Yes.", "reference": "The expected answer"})
        item = make.dataset(cast.kassa, [row]).items.select_related("dataset").get()
        assert "The expected answer" in str(requests.item_text(item))
        assert "The expected answer" not in str(requests.item_text(item, "hidden"))
        item.dataset.layout = {"fields": ["answer"]}
        assert "The expected answer" not in str(requests.item_text(item))
        assert "The expected answer" in str(requests.item_text(item, "shown"))

    def test_the_form_previews_before_it_declares(self, cast: Cast, provider: RunningProvider) -> None:
        make.dataset(cast.kassa, 2)
        make.rubric(cast.kassa)
        plain = {"provider": "simulated", "model": "m", "name": "J", "grouping": "compound", "anchor_detail": "anchors"}
        posted = {**plain, "explanation": "yes", "instruction_language": "en", "persona": "a teacher", "preview": "1"}
        page = cast.client("boris").post("/p/kassa/judges/new/", posted)
        assert "Judge from this point of view: a teacher" in page.content.decode()
        assert not Judge.objects.exists()


# --- the order of two candidates --------------------------------------------------------------------------------------
def judge_in(campaign: Campaign, **factors: Any) -> Judge:
    variant = judges.variant_of({"grouping": "single", **factors}).factors
    name = f"{factors}"
    return Judge.objects.create(project=campaign.project, name=name, model="m", digest=name, variant=variant)


def run_of(judge: Judge, campaign: Campaign) -> JudgeRun:
    about = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
    return JudgeRun.objects.create(project=campaign.project, judge=judge, **about)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("order", "repeat", "is_swapped"),
    [("given", 2, False), ("swapped", 1, True), ("both", 1, False), ("both", 2, True)],
)
def test_candidates_are_swapped_in_the_request_and_scores_turned_back(
    cast: Cast, order: str, repeat: int, is_swapped: bool
) -> None:
    campaign = duty_of_pairs(cast).campaign
    judge = judge_in(campaign, candidate_order=order)
    run = run_of(judge, campaign)
    criterion = campaign.rubric_version.criteria.get()
    call = Call.objects.create(run=run, item=campaign.dataset.items.get(), criterion=criterion, repeat=repeat)
    asked = CallRequestWriter(run).write(call)
    material = asked.messages[1]["content"]
    assert (material.index(OTHER) < material.index(ONE)) is is_swapped
    assert material.index("passage_a") < material.index("passage_b")
    reply = {"finish_reason": "stop", "refusal": None, "reasoning": "", "tokens_in": 1, "tokens_out": 1, "raw": {}}
    for given, stored in ((1, 2.0), (1.5, 1.5), (2, 1.0)):
        text = f'{{"rationale": "So.", "score": {given}}}'
        answer = ProviderAnswer(text=text, served_model="m", latency=0.1, **reply)
        variant = judges.variant_of(judge.variant)
        outcome = calls.answered_outcome(asked, lease=uuid4(), variant=variant, answer=answer)
        assert outcome.readings[0].score == (stored if is_swapped else given)


@pytest.mark.django_db
def test_an_order_of_candidates_needs_a_criterion_that_compares_them(cast: Cast) -> None:
    campaign = duty_of_pairs(cast).campaign
    ordinary = make.rubric(cast.kassa, key="other")
    with pytest.raises(Refused, match="swaps two candidates"):
        requests.refuse_without_pairs(judge_in(campaign, candidate_order="swapped"), ordinary, 1)
    with pytest.raises(Refused, match="two repeats"):
        requests.refuse_without_pairs(both := judge_in(campaign, candidate_order="both"), campaign.rubric_version, 1)
    requests.refuse_without_pairs(both, campaign.rubric_version, 2)
    requests.refuse_without_pairs(judge_in(campaign), ordinary, 1)


@pytest.mark.django_db
def test_audits_and_alignments_ask_once_and_take_no_judge_that_swaps_by_repeat(cast: Cast, settings: Any) -> None:
    entry = {"name": "simulated", "simulated": True, "base_url": "http://127.0.0.1:9/v1"}
    settings.PROVIDERS = environment.declared_providers({"PANELBENCH_PROVIDERS": json.dumps([entry])})
    campaign = duty_of_pairs(cast).campaign
    both = judge_in(campaign, candidate_order="both")
    both.provider = "simulated"
    both.save()
    allowances.allow(project=cast.kassa, provider="simulated")
    about = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
    with pytest.raises(Refused, match="Audits and alignments ask about each item once") as refused:
        perturbed_runs.refuse_unfit_audit(judge=both, changes=["whitespace"], **about)
    assert not refused.value.fields  # there is no number of repeats to change
    with pytest.raises(Refused, match="Audits and alignments ask about each item once"):
        alignment.create_alignment(campaign=campaign, base=both, name="Order", seed=1)


@pytest.mark.django_db
def test_the_audit_of_position_compares_both_orders_of_each_item(cast: Cast) -> None:
    campaign = duty_of_pairs(cast, items=FEWEST_ITEMS + 1).campaign
    given, swapped = judge_in(campaign), judge_in(campaign, candidate_order="swapped")
    about = {"criterion": campaign.rubric_version.criteria.get(), "status": "ok"}
    items = list(campaign.dataset.items.order_by("pk"))
    assert judge_positions(campaign, given) is None
    for judge, score, rated in ((given, 1, items), (swapped, 2, items[1:])):  # the first shown one, whatever it is
        run = run_of(judge, campaign)
        Verdict.objects.bulk_create(Verdict(run=run, item=item, score=score, repeat=1, **about) for item in rated)
    for judge in (given, swapped):
        found = judge_positions(campaign, judge)
        assert found is not None
        assert (found.items, found.chosen, found.share, found.is_flagged) == (FEWEST_ITEMS, 2 * FEWEST_ITEMS, 1.0, True)
    Verdict.objects.filter(run__judge=swapped).update(score=1)  # now it is the candidate that decides
    steady = judge_positions(campaign, given)
    assert steady is not None and (steady.share, steady.is_flagged) == (0.5, False)
    JudgeRun.objects.filter(judge=swapped).update(is_pilot=True)  # as those of alignments, with their locked items
    assert judge_positions(campaign, given) is None
