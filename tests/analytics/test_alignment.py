"""Alignment of a judge: tuned on some of the panel's labels, tested on locked ones, by looks that are counted."""

from __future__ import annotations

import html
import json
import re
from decimal import Decimal
from io import StringIO
from random import Random
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from scipy import stats

from accounts import jobs, removal
from accounts.models import AuditEntry, Job
from accounts.refusals import Refused
from analytics import tasks
from analytics.judges import alignments
from analytics.stats.judge import alignment as kernels
from annotation import selections
from annotation.models import Annotator, Campaign, Item, Rating, SelectedItem
from annotation.readers.items import ItemRow
from judging import judges, perturbed_runs, runs, spending, trials
from judging import tasks as judging_tasks
from judging.models import (
    Alignment,
    AlignmentCandidate,
    AlignmentLook,
    AlignmentProposal,
    AlignmentSearch,
    Attempt,
    Judge,
    JudgeRun,
    JudgeTrial,
    Verdict,
)
from judging.prompts import ItemText, PromptVariant, Turn, render
from judging.requests import criterion_brief
from judging.versions import alignment, examples, proposals
from judging.versions.seen_labels import seen_labels
from panelbench import environment
from panelbench.provider.answers import compose_reply, read_score_request
from tests import make
from tests.cast import Cast
from tests.judging.test_designs import worked
from tests.judging.test_money import priced
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["priced"]


@pytest.fixture
def charged(priced: RunningProvider, settings: Any) -> RunningProvider:
    """The simulated provider, with a price for the flawed judge."""
    entry = {"name": "simulated", "simulated": True, "base_url": priced.base_url, "prices": {"sim-flawed": ["2", "80"]}}
    settings.PROVIDERS = environment.declared_providers({"PANELBENCH_PROVIDERS": json.dumps([entry])})
    return priced


MENDING = "The length of a text says nothing about its quality.\nIn Estonian, too, give the top point where it fits."
WORDS = ("pakk", "kuller", "aadress", "arve", "makse", "klient", "leping", "täna", "vaatan", "ootan", "number", "teade")
NOISE = 0.15
ROOT = "/p/kassa/alignments/"


# --- a study whose truth is known -------------------------------------------------------------------------------------
def dialogue(number: int, language: str) -> list[dict[str, str]]:
    """Two turns, short or long, tidy or not."""
    draw = Random(f"{language} {number}")
    turns = []
    for speaker in ("customer", "agent"):
        words = draw.choices(WORDS, k=draw.choice((6, 10, 30, 60)))
        text = " ".join(words)
        text = f"{text.capitalize()}." if draw.random() < 0.6 else text
        text = f"{text} !!" if draw.random() < 0.3 else text
        turns.append({"speaker": speaker, "text": f"{text} {number}."})
    return turns


def judged(brief: Any, number: int, language: str, instructions: str = "") -> float:
    """What `sim-flawed` says of a dialogue under these instructions, asked without a server."""
    text = ItemText(turns=tuple(Turn(**turn) for turn in dialogue(number, language)), language=language)
    messages = render(item=text, criteria=[brief], variant=PromptVariant(grouping="single", instructions=instructions))
    reply = compose_reply(read_score_request({"messages": messages}), model="sim-flawed", rng=Random(1))
    return float(json.loads(reply.content)["score"])


def label(brief: Any, number: int, language: str) -> float:
    """What the panel says: what the mended judge would say, and in some dialogues a point off."""
    score, draw = judged(brief, number, language, MENDING), Random(f"panel {language} {number}")
    return score if draw.random() > NOISE else score + (1 if score == 0 else -1)


def true_gain(brief: Any, *, population: int = 1500) -> float:
    """By how much the mended judge agrees better with such a panel, over dialogues that no test has."""
    gains = []
    for number in range(10_000, 10_000 + population):
        for language in ("en", "et"):
            reference = label(brief, number, language)
            mended, flawed = (judged(brief, number, language, text) for text in (MENDING, ""))
            gains.append((mended == reference) - (flawed == reference))
    return float(np.mean(gains))


def rows(scenarios: int, first: int = 0) -> list[ItemRow]:
    return [
        make.item_row(
            number,
            language=language,
            turns=dialogue(number, language),
            title="",
            scenario=f"s{number}",
            external_id=f"{language}{number}",
        )
        for number in range(first, first + scenarios)
        for language in ("en", "et")
    ]


def study(cast: Cast, *, scenarios: int = 60, name: str = "Round 1") -> tuple[Campaign, Any]:
    """A campaign whose panel has labelled parallel dialogues in two languages, and its criterion as judges read it."""
    version = make.rubric(cast.kassa, make.criterion("fluency"))
    dataset = make.dataset(cast.kassa, rows(scenarios), name=name)
    campaign = make.campaigns.open_campaign(project=cast.kassa, name=name, dataset=dataset, rubric_version=version)
    brief = criterion_brief(version.criteria.get(), "en")
    items = [(int(item.scenario[1:]), item.language) for item in dataset.items.order_by("ordinal")]
    scores = [label(brief, *item) for item in items]
    make.rated(campaign, {"fluency": dict.fromkeys(("a", "b"), scores)})
    return campaign, brief


def flawed(cast: Cast, **variant: Any) -> Judge:
    named = {"name": "Flawed", "provider": "simulated", "model": "sim-flawed", "parameters": {"max_tokens": 400}}
    return judges.declare(project=cast.kassa, variant={"grouping": "single", **variant}, **named)


def words_of(client: Client, address: str, *, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split()))


def aligned(cast: Cast, campaign: Campaign, *, name: str = "Closer", **options: Any) -> Alignment:
    base = options.pop("base", None) or flawed(cast)
    plan = {"looks": 2, "seed": 3, **options}
    return alignment.create_alignment(campaign=campaign, base=base, name=name, actor=cast.boris, **plan)


def version_of(current: Alignment, name: str, instructions: str) -> AlignmentCandidate:
    parent = current.base
    variant = alignment.edited_variant(current, parent, instructions=instructions, own_texts=[])
    return alignment.add_candidate(alignment=current, parent=parent, variant=variant, name=name)


def scored(candidate: AlignmentCandidate) -> JudgeRun:
    run = alignment.start_tuning(candidate=candidate)
    worked([run])
    return run


# --- the whole of it, through pages -----------------------------------------------------------------------------------
def test_a_flawed_judge_is_mended_on_tuning_and_the_locked_test_shows_its_true_gain(
    cast: Cast, priced: RunningProvider
) -> None:
    campaign, brief = study(cast)
    judge = flawed(cast)
    client = cast.client("boris")
    assert "No alignment yet" in words_of(client, ROOT)
    plan = {"name": "Closer", "campaign": campaign.pk, "base": judge.pk, "share": 0.5, "looks": 2, "seed": 3}
    answer = client.post(f"{ROOT}new/", {**plan, "measure": "accuracy", "budget": ""})
    current = Alignment.objects.get()
    page = f"{ROOT}{current.pk}/"
    assert answer.headers["Location"] == page
    assert priced.control()["requests"] == 0

    client.post(f"{page}versions/{judge.pk}/run/")
    worked(list(current.runs.all()))
    locked = set(SelectedItem.objects.filter(selection=current.test).values_list("item", flat=True))
    assert not locked & set(Verdict.objects.values_list("item", flat=True))
    confusions = words_of(client, f"{page}versions/{judge.pk}/?language=et")
    assert "Simulated: good, with small slips." in confusions
    names = dict(Item.objects.filter(pk__in=locked).values_list("pk", "external_id"))
    assert not {name for name in names.values() if f" {name} " in confusions}

    made = client.post(f"{page}versions/{judge.pk}/", {"name": "Mended", "instructions": MENDING})
    assert made.headers["Location"] == page
    mended = Judge.objects.get(name="Mended")
    assert (mended.parent, mended.variant["instructions"]) == (judge, MENDING)
    worked(list(current.runs.all()))
    base_score, mended_score = (row.score for row in alignments.tuned_versions(current))
    assert base_score and mended_score and base_score.value and mended_score.value
    assert mended_score.value > base_score.value + 0.2
    assert mended_score.number in words_of(client, page)

    assert "look 1 of 2" in words_of(client, f"{page}versions/{mended.pk}/look/")
    assert client.post(f"{page}versions/{mended.pk}/look/").status_code == 400
    assert not current.looks.exists()
    client.post(f"{page}versions/{mended.pk}/look/", {"confirm": "yes"})
    assert "figures are stored within a minute" in words_of(client, page)
    worked(list(current.runs.all()))
    tasks.settle_looks()
    result = current.looks.get().result
    gain = result["gain"]
    assert 0 < gain["low"] <= true_gain(brief) <= gain["high"]
    assert gain["confidence"] == pytest.approx(0.975)
    assert result["languages"]["et"]["overfit"]["confidence"] == pytest.approx(1 - 0.05 / 4)
    assert gain["n_clusters"] == len({name[2:] for name in names.values()})
    text = words_of(client, page)
    assert "agrees with the panel better than the judge as it was" in text and "1 of 2 looks taken" in text
    assert " Tested " in text and "calls. No price is known." in text
    assert "look 2 of 2" not in client.get(f"{page}versions/{mended.pk}/look/", follow=True).content.decode()
    assert AuditEntry.objects.filter(verb="look at locked split", actor=cast.boris).count() == 1
    assert "Closer" in words_of(client, ROOT)
    assert judge.name in words_of(client, f"/p/kassa/judges/{mended.pk}/")


def test_the_forecast_of_a_version_is_what_a_version_costs(cast: Cast, charged: RunningProvider) -> None:
    """That the judge as it was has been asked makes no version cheaper: the page said $0.00 then."""
    campaign, _brief = study(cast, scenarios=20)
    current = aligned(cast, campaign)
    client, page = cast.client("boris"), f"{ROOT}{current.pk}/"

    def forecast() -> Decimal:
        return Decimal(re.findall(r"A version takes \d+ calls, about \$(\d+\.\d+)", words_of(client, page))[0])

    before = forecast()
    scored(current.candidates.get(judge=current.base))
    assert forecast() == before > 0
    spent = runs.run_progress(scored(version_of(current, "Mended", MENDING))).cost
    assert spent and spent / 3 < before < spent * 3


# --- looks ------------------------------------------------------------------------------------------------------------
def test_looks_are_counted_and_after_the_last_one_new_labels_are_needed(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    with pytest.raises(Refused, match="Choose a locked share nearer to a half"):
        aligned(cast, campaign, share=0.1)
    current = aligned(cast, campaign, looks=1)
    first, second = (version_of(current, name, f"Mind the length. {name}") for name in ("One", "Two"))
    with pytest.raises(Refused, match="not been asked about all tuning items"):
        alignment.take_look(candidate=first)
    for candidate in current.candidates.all():
        scored(candidate)
    with pytest.raises(Refused, match="tested beside every version"):
        alignment.take_look(candidate=current.candidates.get(judge=current.base))
    whole: dict[str, Any] = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
    with pytest.raises(Refused, match="may not be asked about its locked items"):
        runs.start_judge_run(judge=first.judge, **whole)
    look = alignment.take_look(candidate=first, actor=cast.boris)
    assert alignment.take_look(candidate=first) == look
    worked(alignment.look_runs(look))
    tasks.settle_looks()
    with pytest.raises(Refused, match="has been tested"):
        alignment.take_look(candidate=first)
    with pytest.raises(Refused, match="Have the panel label new items") as refused:
        alignment.take_look(candidate=second)
    assert refused.value.code == "no_looks_left"
    assert current.looks.count() == 1
    assert AuditEntry.objects.filter(verb="look at locked split").count() == 1
    runs.start_judge_run(judge=first.judge, **whole)  # its test is known: nothing is left to find out
    with pytest.raises(Refused, match="too few labelled scenarios that no alignment has used"):
        aligned(cast, campaign, name="Again", seed=99, base=current.base)


def hand_typed(cast: Cast, name: str, instructions: str, **parameters: Any) -> Judge:
    """A judge that somebody declared with these instructions, outside of any alignment."""
    named = {"name": name, "provider": "simulated", "model": "sim-flawed"}
    variant = {"grouping": "single", "instructions": instructions}
    return judges.declare(project=cast.kassa, variant=variant, parameters={"max_tokens": 400, **parameters}, **named)


@pytest.mark.parametrize(
    "instructions",
    [
        f"{MENDING} ",
        MENDING.replace(" ", "  ", 1),
        MENDING.replace("top", "t\u200bop"),
        MENDING.upper(),
        f"\n{MENDING}",
    ],
)
def test_a_hand_typed_copy_of_a_version_is_not_asked_about_the_locked_items(
    cast: Cast, priced: RunningProvider, instructions: str
) -> None:
    campaign, _brief = study(cast, scenarios=30)
    current = aligned(cast, campaign)
    version_of(current, "Mended", MENDING)
    copy = hand_typed(cast, "Typed by hand “1”", instructions)
    about = {"dataset": campaign.dataset.pk, "rubric_version": campaign.rubric_version_id}
    boris = cast.client("boris")
    for selection in (current.test_id, None):
        sent = {"judge": copy.pk, **about, **({"selection": selection} if selection else {})}
        answer = boris.post("/api/v1/projects/kassa/runs/", sent, content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (409, "locked"), answer.json()
        assert "except in a look" in answer.json()["detail"]
    assert not JudgeRun.objects.filter(judge=copy).exists()
    other = hand_typed(cast, "Another prompt", "Judge the grammar alone.")
    runs.start_judge_run(
        judge=other, dataset=campaign.dataset, rubric_version=campaign.rubric_version, selection=current.test
    )


def test_what_changes_no_prompt_makes_no_other_judge_on_locked_items_nor_does_a_test_before_it_is_saved(
    cast: Cast, priced: RunningProvider
) -> None:
    campaign, _brief = study(cast, scenarios=30)
    current = aligned(cast, campaign)
    version_of(current, "Mended", MENDING)
    about = {"provider": "simulated", "model": "sim-flawed", "parameters": {"max_tokens": 400}}
    variant = {"grouping": "single", "instructions": f"{MENDING} "}
    repaired = judges.declare(project=cast.kassa, name="“R” إصلاح", variant={**variant, "repair": True}, **about)
    whole = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
    with pytest.raises(Refused, match="except in a look"):
        runs.start_judge_run(judge=repaired, selection=current.test, **whole)
    locked, free = (getattr(current, side).selected.earliest("pk").item for side in ("test", "tuning"))
    tested = {"project": cast.kassa, "variant": variant, "rubric_version": campaign.rubric_version, **about}
    with pytest.raises(Refused, match="except in a look"):
        trials.begin_trials(items=[free, locked], **tested)
    assert not JudgeTrial.objects.exists()
    trials.begin_trials(items=[free], **tested)
    assert JudgeTrial.objects.count() == 1


def test_a_run_on_locked_items_before_its_judge_became_a_version_counts_as_a_look(
    cast: Cast, priced: RunningProvider
) -> None:
    campaign, _brief = study(cast, scenarios=30)
    current = aligned(cast, campaign, looks=2)
    early = hand_typed(cast, "قبل البداية", f"{MENDING} ")
    run = runs.start_judge_run(
        judge=early, dataset=campaign.dataset, rubric_version=campaign.rubric_version, selection=current.test
    )
    assert alignment.looks_left(current) == 2
    mended = version_of(current, "Mended", MENDING)
    assert alignment.looks_left(current) == 1
    page = words_of(cast.client("boris"), f"{ROOT}{current.pk}/")
    assert f"Run {run.pk} of “قبل البداية” asked about locked items outside of a look: it counts as a look." in page
    other = version_of(current, "Other", "Judge the grammar alone.")
    scored(current.candidates.get(origin="base"))
    for version in (other, mended):
        scored(version)
    alignment.take_look(candidate=other, actor=cast.boris)
    assert alignment.looks_left(current) == 0
    alignment.take_look(candidate=mended, actor=cast.boris)  # its own look was counted before
    assert alignment.looks_left(current) == 0


def test_the_page_lists_who_took_files_with_labels(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=30)
    current = aligned(cast, campaign)
    aino, boris = cast.client("aino"), cast.client("boris")
    before = words_of(aino, f"{ROOT}{current.pk}/")
    assert "Boris · exported" not in before
    exported = boris.get(f"/p/kassa/export/file/?what=ratings&campaign={campaign.pk}")
    assert exported.status_code == 200
    assert b"".join(exported.streaming_content)
    table = boris.get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/ratings.csv")
    assert table.status_code == 200
    assert b"".join(table.streaming_content) if table.streaming else table.content
    entries = seen_labels(current)
    assert [entry.actor for entry in entries] == [cast.boris, cast.boris]
    assert words_of(aino, f"{ROOT}{current.pk}/").count("Boris · exported") == 2


def test_a_result_is_stored_once_and_labels_given_later_do_not_change_it(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    current = aligned(cast, campaign)
    chosen = version_of(current, "One", "Mind the length.")
    for candidate in current.candidates.all():
        scored(candidate)
    look = alignment.take_look(candidate=chosen)
    assert not alignments.settle_look(look)
    worked(list(current.runs.all()))
    assert alignments.settle_open_looks() == 1
    assert alignments.settle_open_looks() == 0
    assert not alignment.store_result(look=look, result={})


def test_runs_of_an_alignment_enter_no_other_figure(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    current = aligned(cast, campaign)
    scored(current.candidates.get())
    assert not JudgeRun.objects.ordinary().exists()


# --- the split --------------------------------------------------------------------------------------------------------
def test_scenarios_stay_whole_and_every_one_has_the_stated_probability() -> None:
    items = [
        alignment.LabelledItem(10 * unit + place, language, f"s{unit}")
        for unit in range(21)
        for place, language in enumerate(("en", "et") if unit % 3 else ("et",))
    ]
    locked: dict[str, int] = dict.fromkeys((item.unit for item in items), 0)
    for seed in range(2000):
        tuning, test = alignment.split_items(items, used={"s0"}, share=0.35, seed=seed)
        sides = [{item.unit for item in items if item.pk in side} for side in (tuning, test)]
        assert not sides[0] & sides[1]
        assert len(tuning) + len(test) == len(items)
        for unit in sides[1]:
            locked[unit] += 1
    assert locked.pop("s0") == 0
    expected = 0.35 * 2000
    assert max(abs(count - expected) for count in locked.values()) < 5 * np.sqrt(2000 * 0.35 * 0.65)
    assert alignment.split_items(items, used=(), share=0.35, seed=1) == alignment.split_items(
        items, used=(), share=0.35, seed=1
    )


def test_examples_are_never_locked_and_locked_items_are_no_examples(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=30)
    few = selections.select(campaign=campaign, name="Few", rule={"kind": "list", "items": ["en1", "et2", "en3"]})
    drawn = {"selection": few.pk, "per_class": 1, "seed": 1}
    base = flawed(cast, examples=drawn)
    current = aligned(cast, campaign, base=base)
    shown = {example["item"] for example in base.variant["examples"]}
    split = SelectedItem.objects.filter(selection__in=[current.tuning, current.test])
    scenarios = set(Item.objects.filter(digest__in=shown).values_list("scenario", flat=True))
    assert scenarios
    assert not scenarios & set(split.values_list("item__scenario", flat=True))

    everything = selections.select(campaign=campaign, name="All", rule={"kind": "filter"})
    possible = examples.draw_examples(selection=everything, per_class=2, seed=1)
    locked = set(SelectedItem.objects.filter(selection=current.test).values_list("item__digest", flat=True))
    assert possible
    assert not locked & {example["item"] for example in possible}
    with pytest.raises(Refused, match="has a score from a majority"):
        examples.draw_examples(selection=current.test, per_class=2, seed=1)
    about = {"criterion": "fluency", "language": "et", "score": 1.0, "item": next(iter(locked))}
    variant = {**base.variant, "examples": [about]}
    with pytest.raises(Refused, match="in the locked split"):
        alignment.add_candidate(alignment=current, parent=base, variant=variant, name="Peeks")


def test_an_audit_of_an_untested_version_has_no_locked_items(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    current = aligned(cast, campaign)
    version = version_of(current, "Mended", MENDING)
    locked = set(selections.selected_items(current.test))
    about = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version, "per_language": 500, "seed": 1}
    judges_asked = (version.judge, current.base)
    before, all_items = (set(perturbed_runs.drawn_items(judge=judge, **about)) for judge in judges_asked)
    assert before == all_items - locked != all_items
    AlignmentLook.objects.create(alignment=current, number=1, candidate=version)
    assert set(perturbed_runs.drawn_items(judge=version.judge, **about)) == all_items


# --- versions ---------------------------------------------------------------------------------------------------------
def test_own_texts_change_the_prompt_of_the_judge_and_not_the_rubric(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    current = aligned(cast, campaign)
    client = cast.client("boris")
    page = f"{ROOT}{current.pk}/versions/{current.base_id}/"
    form = client.get(page).context["form"]
    posted = {name: form[name].value() or "" for name in form.fields}
    same = client.post(page, posted)
    assert "Nothing was changed" in html.unescape(same.content.decode())
    client.post(page, {**posted, "name": "Worded", "text-0-4": "No fault at all."})
    worded = Judge.objects.get(name="Worded")
    assert worded.variant["own_texts"] == [{"criterion": "fluency", "point": 3.0, "text": "No fault at all."}]
    prompt = client.get(f"/p/kassa/judges/{worded.pk}/").content.decode()
    assert "3: No fault at all." in prompt
    assert "fluency at 3" not in prompt
    assert "fluency at 3" in client.get(f"/p/kassa/judges/{current.base_id}/").content.decode()
    texts = [{"criterion": "fluency", "point": 7, "text": "x"}]
    with pytest.raises(Refused, match="has no “fluency” with the point 7"):
        alignment.edited_variant(current, current.base, instructions="", own_texts=texts)


# --- versions that a model writes -------------------------------------------------------------------------------------
def proposed(cast: Cast, current: Alignment, model: str, **options: Any) -> AlignmentProposal:
    """What came of asking a model for the next version of the judge as it was."""
    base = current.candidates.get(judge=current.base)
    cases = alignments.proposal_cases(current, alignment.run_of(current, current.base, current.tuning))
    about = {"provider": "simulated", "model": model, "name": f"By {model}", **options}
    proposal = proposals.begin_proposal(candidate=base, cases=cases, actor=cast.boris, **about)
    judging_tasks.propose_version(proposal.pk)
    proposal.refresh_from_db()
    return proposal


def test_a_model_proposes_what_its_cases_show(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=40)
    current = aligned(cast, campaign)
    client, base = cast.client("boris"), current.candidates.get()
    scored(base)
    page = f"{ROOT}{current.pk}/versions/{current.base_id}/"
    chosen = {"proposal-name": "Proposed", "proposal-provider": "simulated", "proposal-model": "sim-steady"}
    client.post(f"{page}propose/", {**chosen, "proposal-tokens": 500})
    proposal = AlignmentProposal.objects.get()
    judging_tasks.propose_version(proposal.pk)
    judging_tasks.propose_version(proposal.pk)  # a message that comes twice
    proposal.refresh_from_db()
    assert proposal.candidate is not None, proposal.reason
    assert proposal.candidate.origin == "proposal"
    assert "Estonian" in proposal.candidate.judge.variant["instructions"]
    worked(list(current.runs.all()))
    before, after = (row.score for row in alignments.tuned_versions(current))
    assert before and after and before.value and after.value and after.value > before.value + 0.2
    sent = proposal.request["messages"][1]["content"]
    locked = selections.selected_items(current.test)
    assert not [item for item in locked if item.turns[0]["text"] in sent]
    assert [item for item in selections.selected_items(current.tuning) if item.turns[0]["text"] in sent]
    assert proposal.cost
    attempts = sum(attempt.cost or 0 for attempt in Attempt.objects.all())
    assert spending.committed_of_alignment(current).paid == attempts + proposal.cost
    shown = words_of(client, f"{ROOT}{current.pk}/proposals/{proposal.pk}/")
    assert "In Estonian, too, give the top point" in shown
    assert "Proposed" in words_of(client, f"{ROOT}{current.pk}/")


def test_an_erased_rater_leaves_no_words_in_proposals(cast: Cast, priced: RunningProvider) -> None:
    """One proposal has its reply, one still waits; in the campaign of a third the person rated without a reason."""
    campaign, _brief = study(cast, scenarios=20)
    about = {"dataset": make.dataset(cast.kassa, rows(20, 100), name="B"), "rubric_version": campaign.rubric_version}
    other = make.campaigns.open_campaign(project=cast.kassa, name="Round 2", **about)
    make.rated(other, {"fluency": dict.fromkeys(("a", "b"), [0.0] * 40)})
    given = Rating.objects.filter(annotation__campaign=campaign).select_related("annotation__annotator")
    rater, reason = given[0].annotation.annotator, "as my grandmother says"
    Annotator.objects.filter(pk=rater.pk).update(user=cast.maarika)
    given.filter(annotation__annotator=rater).update(rationale=reason)
    current = aligned(cast, campaign)
    second = aligned(cast, other, name="Second", base=current.base)
    scored(current.candidates.get())
    done = proposed(cast, current, "sim-steady")
    cases = alignments.proposal_cases(current, alignment.run_of(current, current.base, current.tuning))
    asked = {"provider": "simulated", "model": "sim-steady", "name": "Waits", "cases": cases}
    waiting = proposals.begin_proposal(candidate=done.parent, **asked)
    stored = {"request": done.request, "reply": done.reply, "parent": second.candidates.get(), "name": "Kept"}
    kept = AlignmentProposal.objects.create(alignment=second, **stored)
    assert all(reason in json.dumps(each.request) for each in (done, waiting))

    removal.erase_user(user=cast.maarika, actor=None)
    before = priced.control()["requests"]
    judging_tasks.propose_version(waiting.pk)
    for each in (done, waiting, kept):
        each.refresh_from_db()
    assert not any((done.request, done.reply, done.answer, waiting.request, waiting.reply, waiting.answer))
    assert kept.request and kept.reply and done.candidate is not None and done.cost
    assert "was erased" in waiting.reason
    assert priced.control()["requests"] == before
    assert "was erased" in words_of(cast.client("boris"), f"{ROOT}{current.pk}/proposals/{done.pk}/")


def test_an_unreadable_proposal_is_an_error_and_no_version(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    current = aligned(cast, campaign)
    scored(current.candidates.get())
    for model in ("sim-steady:unparsable", "sim-steady:truncated", "sim-steady:server_error"):
        proposal = proposed(cast, current, model)
        assert proposal.candidate is None
        assert proposal.reason
        assert proposal.job.state == "failed"
    assert current.candidates.count() == 1


def test_a_proposal_that_the_cap_does_not_cover_is_not_sent(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    current = aligned(cast, campaign)
    scored(current.candidates.get())
    before = priced.control()["requests"]
    Alignment.objects.filter(pk=current.pk).update(budget=spending.committed_of_alignment(current).paid)
    current.refresh_from_db()
    proposal = proposed(cast, current, "sim-steady")
    assert "budget of the alignment is spent" in proposal.reason
    assert priced.control()["requests"] == before
    with pytest.raises(Refused, match="No price is declared"):
        proposed(cast, current, "sim-harsh")


# --- searches ---------------------------------------------------------------------------------------------------------
def stepped(begun: AlignmentSearch, *, rounds: int = 30) -> AlignmentSearch:
    """What workers and the sweep do until the search has ended."""
    for _round in range(rounds):
        Job.objects.filter(pk=begun.job_id).update(due_at=timezone.now())
        tasks.step_search(begun.pk)
        worked([run for run in begun.alignment.runs.all() if run.state == JudgeRun.State.RUNNING])
        begun = AlignmentSearch.objects.select_related("job", "alignment").get(pk=begun.pk)
        if not begun.job.is_open:
            return begun
    raise AssertionError("it never ended")


@pytest.mark.parametrize("method", ["random", "greedy"])
def test_a_search_scores_versions_with_tuning_examples_alone(cast: Cast, charged: RunningProvider, method: str) -> None:
    campaign, _brief = study(cast, scenarios=24)
    current = aligned(cast, campaign, budget=Decimal(5))
    with pytest.raises(Refused, match="Ask the judge as it was"):
        proposals.begin_search(alignment_searched=current, method=method, steps=2)
    scored(current.candidates.get())
    client = cast.client("boris")
    client.post(f"{ROOT}{current.pk}/search/", {"search-method": method, "search-steps": 3})
    begun = AlignmentSearch.objects.get()
    with pytest.raises(Refused, match="under way"):
        proposals.begin_search(alignment_searched=current, method=method, steps=2)
    ended = stepped(begun)
    assert (ended.job.state, ended.job.done, ended.reason) == ("finished", 3, "")
    versions = list(current.candidates.filter(origin="search").select_related("judge"))
    assert len(versions) == 3
    shown = {example["item"] for version in versions for example in version.judge.variant["examples"]}
    assert shown
    assert shown <= set(SelectedItem.objects.filter(selection=current.tuning).values_list("item__digest", flat=True))
    assert all(row.score for row in alignments.tuned_versions(current))
    locked = SelectedItem.objects.filter(selection=current.test).values("item")
    assert not Verdict.objects.filter(item__in=locked).exists()
    assert "3 of 3 steps" in words_of(client, f"{ROOT}{current.pk}/")


def test_a_search_ends_where_the_budget_does_and_when_it_is_cancelled(cast: Cast, charged: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=24)
    current = aligned(cast, campaign)
    scored(current.candidates.get())
    with pytest.raises(Refused, match="A search needs a cap"):
        proposals.begin_search(alignment_searched=current, method="random", steps=2)
    spent = spending.committed_of_alignment(current).paid
    alignment.rebudget_alignment(alignment=current, budget=spent + Decimal("0.05"))
    ended = stepped(proposals.begin_search(alignment_searched=current, method="random", steps=9))
    assert ended.job.state == "failed"
    assert "budget of the alignment is spent" in ended.reason
    assert spending.committed_of_alignment(current).all <= spent + Decimal("0.05")

    address = f"/api/v1/projects/kassa/alignments/{current.pk}/budget/"
    answer = cast.client("boris").put(address, {"budget": "9"}, content_type="application/json")
    assert (answer.status_code, answer.json()["budget"]) == (200, "9.000000")
    current.refresh_from_db()
    begun = proposals.begin_search(alignment_searched=current, method="random", steps=9, actor=cast.boris)
    tasks.step_search(begun.pk)
    jobs.cancel(job=Job.objects.get(pk=begun.job_id), actor=cast.boris)
    tasks.step_search(begun.pk)
    begun.refresh_from_db()
    assert begun.job.state == "cancelled"
    assert begun.candidates.count() == 1
    run = proposals.last_run(begun)
    assert run is not None
    assert run.state == JudgeRun.State.PAUSED


# --- the command and the API ------------------------------------------------------------------------------------------
def test_the_command_splits_scores_and_looks(cast: Cast, priced: RunningProvider, tmp_path: Any) -> None:
    study(cast, scenarios=20)
    judge = flawed(cast)

    def ran(*words: str) -> str:
        out = StringIO()
        call_command("align_judge", "--project", "kassa", "--name", "Closer", *words, stdout=out)
        worked(list(JudgeRun.objects.all()))
        return out.getvalue()

    with pytest.raises(CommandError, match="needs --campaign and --judge"):
        ran()
    first = ran("--campaign", "Round 1", "--judge", judge.name, "--looks", "1", "--seed", "3")
    assert "0 of 1 looks taken" in first
    (tmp_path / "more.txt").write_text(MENDING, "utf-8")
    ran("--version-name", "Mended", "--instructions", str(tmp_path / "more.txt"))
    ran("--look", "Mended")
    tasks.settle_looks()
    shown = json.loads(ran("--json"))
    assert shown["looks_taken"][0]["figures"]["gain"]["value"] > 0
    assert {row["name"]: row["made_from"] for row in shown["versions"]} == {judge.name: None, "Mended": judge.pk}
    with pytest.raises(CommandError, match="has been tested"):
        ran("--look", "Mended")


def test_the_api_takes_a_look_only_when_it_is_confirmed(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    judge = flawed(cast)
    client, root = cast.client("boris"), "/api/v1/projects/kassa/alignments/"

    def post(address: str, body: dict[str, Any]) -> Any:
        return client.post(address, json.dumps(body), content_type="application/json")

    made = post(root, {"name": "Closer", "campaign": campaign.pk, "base": judge.pk, "seed": 3})
    assert made.status_code == 201, made.content
    there = f"{root}{made.json()['id']}/"
    post(f"{there}versions/{judge.pk}/run/", {})
    texts = [{"criterion": "fluency", "point": None, "text": "Reads well."}]
    body = {"name": "New", "made_from": judge.pk, "instructions": MENDING, "own_texts": texts}
    version = post(f"{there}versions/", body).json()["versions"][1]["judge"]
    worked(list(JudgeRun.objects.all()))
    differing = client.get(f"{there}versions/{judge.pk}/confusions/?language=et").json()
    assert {row["language"] for row in differing} == {"et"}
    assert post(f"{there}versions/{version}/look/", {"confirm": False}).status_code == 400
    assert client.get(there).json()["looks_taken"] == []
    assert post(f"{there}versions/{version}/look/", {"confirm": True}).status_code == 201
    assert post(root, {"name": "Other", "campaign": campaign.pk, "base": judge.pk}).json()["code"] == "too_few_labels"
    assert client.get(root).json()["results"][0]["looks"] == 3


# --- statistics -------------------------------------------------------------------------------------------------------
def test_the_gain_of_items_that_stand_alone_is_the_paired_t_interval() -> None:
    rng = np.random.default_rng(4)
    candidate, base = rng.random(40), rng.random(40)
    found = kernels.paired_gain(candidate, base, np.arange(40), items=40, confidence=0.975)
    expected = stats.ttest_rel(candidate, base).confidence_interval(0.975)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_the_overfit_of_items_that_stand_alone_is_the_welch_interval() -> None:
    rng = np.random.default_rng(5)
    tuning, test = rng.random(30), 0.9 * rng.random(50)
    found = kernels.overfit(tuning, np.arange(30), test, np.arange(50), items=80, confidence=0.9)
    expected = stats.ttest_ind(tuning, test, equal_var=False).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.n_clusters == 80


def test_closeness_is_one_less_the_share_of_the_width_and_equality_on_nominal_scales() -> None:
    scores, labels = np.array([0.0, 3.0, 2.0]), np.array([1.0, 3.0, 4.0])
    widths = np.array([4.0, 4.0, np.nan])
    assert list(kernels.agreement_of_pairs(scores, labels, widths, measure="closeness")) == [0.75, 1.0, 0.0]
    assert list(kernels.agreement_of_pairs(scores, labels, widths, measure="accuracy")) == [0.0, 1.0, 0.0]
    assert kernels.corrected_confidence(0.95, looks=5, parts=2) == pytest.approx(0.995)
