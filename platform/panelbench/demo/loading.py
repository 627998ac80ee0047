"""The demo project, created once through the functions that the pages use."""

from __future__ import annotations

import csv
import io
import json
import logging
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.utils import timezone

from accounts import people
from accounts.models import Membership, Project, Role, User
from analytics.answers import snapshots
from analytics.judges import thresholds
from analytics.questions.question import DEFAULT_SETTINGS
from analytics.study import preparing
from annotation import allocation, campaigns, panels, rubrics, selections
from annotation.desk import leasing, service
from annotation.desk.answers import Answer
from annotation.imports import opening, storage
from annotation.models import (
    Annotator,
    Campaign,
    Dataset,
    Duty,
    Import,
    ItemSelection,
    Panel,
    RubricVersion,
    Skip,
)
from annotation.readers import ItemRow, VerdictRow, guess_mapping, parse_items, parse_rubric, peek
from judging import judges, runs, tasks
from judging.asking import allowances, prices
from judging.generation import plans
from judging.generation.specs import preset
from judging.imports import verdicts
from judging.models import Attempt, GenerationPlan, Judge, JudgeRun, ProviderAllowance

CONTENT = Path(__file__).parent / "content"
SLUG = "demo"
PASSWORD = "panelbench demo"  # noqa: S105 (printed to whoever starts the demo; the instance listens on this machine)
DEFAULT_MODEL = "gpt-5-mini"
REAL_BUDGET = Decimal(1)  # USD, of each run at a provider that costs money
REAL_TOKENS = 4000  # of a reply there, reasoning included
GENERATED_FAMILIES = 6
EARLIER_MODEL = "sim-steady-2025-07"  # what the endpoint answered with when the stored run of its judge was made
EARLIER = timedelta(days=120)
logger = logging.getLogger(__name__)
Answers = dict[str, Answer]


@dataclass(frozen=True, slots=True)
class Login:
    """An account of the demo; ``to_score``: the number of dialogues that it has still to score."""

    role: str
    email: str
    name: str
    to_score: int = 0


def load_demo() -> list[Login]:
    """Create the missing parts of the demo. Returns its accounts."""
    project = Project.objects.filter(slug=SLUG).first()
    if project is None:
        with transaction.atomic():
            project = _create_project(_document("panel.yaml"))
    _judge(project)
    return logins()


def compute_first_figures() -> None:
    """Compute what the pages of a new demo show, so that nobody waits for it.

    Its judges are being run: what they answer changes the figures later, as it does in any project. What can't be
    computed is left to its page, which says why.
    """
    for campaign in Campaign.objects.filter(project__slug=SLUG).select_related("project"):
        try:
            _compute_first(campaign)
        except Exception:
            logger.exception("the first figures of campaign %s", campaign.pk)


def _compute_first(campaign: Campaign) -> None:
    """Compute each answer once that was never stored; the first ones say which others there are."""
    tried: set[str] = set()
    while missing := [
        question
        for question in (DEFAULT_SETTINGS, *preparing.stale_questions(campaign))
        if question.digest not in tried and snapshots.current_snapshot(campaign=campaign, settings=question)[0] is None
    ]:
        for question in missing:
            tried.add(question.digest)
            try:
                snapshots.snapshot(campaign=campaign, settings=question)
            except Exception:
                logger.exception("the first figures of campaign %s: %s", campaign.pk, question)


def logins() -> list[Login]:
    """The lead, the researcher and the first annotator of every panel, with the number of dialogues left to score."""
    memberships = list(Membership.objects.filter(project__slug=SLUG).select_related("user").order_by("pk"))
    first = {panel["seats"][0]["email"] for panel in _document("panel.yaml")["panels"]}
    return [
        Login(
            role=membership.get_role_display(),
            email=membership.user.email,
            name=membership.user.name,
            to_score=sum(duty.total - duty.done for duty in leasing.duties(membership.user)),
        )
        for membership in memberships
        if membership.role != Role.ANNOTATOR or membership.user.email in first
    ]


def _document(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((CONTENT / name).read_text("utf-8")))


def _create_project(cast: dict[str, Any]) -> Project:
    lead, researcher = _person(cast["lead"], may_found_projects=True), _person(cast["researcher"])
    project = people.create_project(
        name="Customer support in five languages",
        slug=SLUG,
        founder=lead,
        description="Demo: 300 short dialogues in five languages. Panels of three rate half of them, five judges all.",
    )
    Membership.objects.create(project=project, user=researcher, role=Role.RESEARCHER)
    # 60 replies are certain of neither 99 % readable nor 8 % flips.
    changes = {"readable": 0.9, "flip_rate": 0.17}
    thresholds.declare_thresholds(project=project, preset="skilled", changes=changes, actor=lead)
    campaign = _campaign(project, researcher)
    # The panels' answers by annotator and item.
    answers_by_item: dict[tuple[str, str], Answers] = defaultdict(dict)
    with (CONTENT / "ratings.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            answers_by_item[row["rater"], row["item"]][row["criterion"]] = _answer(row)
    # The scenarios that panels rate; the judges also score the others.
    scenarios = sorted({item.partition("/")[0] for _annotator, item in answers_by_item})
    rule = {"kind": "filter", "filter": {"scenario": scenarios}}
    labelled = selections.select(campaign=campaign, name="Scenarios for the panels", rule=rule, seed=1, actor=lead)
    for panel in cast["panels"]:
        _rate(_duty(campaign, panel, labelled, lead), answers_by_item)
    _import_verdicts(campaign, researcher)
    return project


def _person(entry: dict[str, Any], **permissions: bool) -> User:
    fields = {key: entry[key] for key in ("email", "name", "languages", "ui_language")}
    return User.objects.create(password=_hashed(), **fields, **permissions)


@cache
def _hashed() -> str:
    """One hash for all accounts, because hashing is slow and the password is public."""
    return make_password(PASSWORD)


def _campaign(project: Project, researcher: User) -> Campaign:
    dataset = storage.store(
        project=project, name="Support dialogues", items=_items(), actor=researcher, licence="Apache-2.0"
    )
    return campaigns.open_campaign(
        project=project, name="Round 1", dataset=dataset, rubric_version=_rubric(project, researcher), actor=researcher
    )


def _items() -> Iterator[ItemRow]:
    files = [(path.name, path.read_bytes()) for path in sorted(CONTENT.glob("dialogues.*.jsonl"))]
    parsed = parse_items(files, guess_mapping("dataset", peek(*files[0]).columns))
    if parsed.problems:
        raise storage.FileRefused(parsed.problems)
    yield from parsed.items


def _rubric(project: Project, researcher: User) -> RubricVersion:
    parsed = parse_rubric("rubric.yaml", (CONTENT / "rubric.yaml").read_bytes())
    if parsed.document is None:
        raise storage.FileRefused(parsed.problems)
    draft = rubrics.draft(project=project, document=parsed.document, actor=researcher)
    return rubrics.publish(version=draft, actor=researcher)


def _duty(campaign: Campaign, entry: dict[str, Any], labelled: ItemSelection, lead: User) -> Duty:
    panel = panels.create(project=campaign.project, name=entry["name"], language=entry["language"], actor=lead)
    for seat in entry["seats"]:
        _seat(panel, seat, lead)
    how: dict[str, Any] = {"overlap": len(entry["seats"]), "seed": 1, "selection": labelled, "actor": lead}
    return allocation.allocate(campaign=campaign, panel=panel, **how)


def _seat(panel: Panel, entry: dict[str, Any], lead: User) -> None:
    user = _person(entry)
    Membership.objects.create(project=panel.project, user=user, role=Role.ANNOTATOR)
    annotator = Annotator.objects.create(project=panel.project, user=user, pseudonym=entry["pseudonym"])
    panels.seat(panel=panel, annotator=annotator, actor=lead)


def _answer(row: dict[str, str]) -> Answer:
    if row["score"] == "N/A":
        return Answer(status="na", rationale=row["rationale"])
    return Answer(score=float(row["score"]), rationale=row["rationale"])


def _rate(duty: Duty, answers_by_item: dict[tuple[str, str], Answers]) -> None:
    """Let every annotator rate, until only the items remain that the demo leaves to its user."""
    for annotator in duty.panel.annotators.order_by("pseudonym"):
        while (assignment := leasing.take(duty=duty, annotator=annotator)) is not None:
            seen = Skip.objects.filter(duty=duty, annotator=annotator, item=assignment.item).exists()
            answers = answers_by_item.get((annotator.pseudonym, assignment.item.external_id))
            if answers is None or assignment.key is None:
                service.skip(assignment=assignment, reason=Skip.Reason.OTHER)
            else:
                service.submit(assignment=assignment, key=assignment.key, answers=answers, seconds=60)
            if seen:
                break
        Skip.objects.filter(duty=duty, annotator=annotator).delete()


# --- judges ---------------------------------------------------------------------------------------------------------
def _verdicts(judge: str | None = None) -> list[VerdictRow]:
    """The stored scores of one judge, or of those that no provider answers for."""
    live = {entry["name"] for entry in _document("judges.yaml")["judges"]}
    found = []
    with (CONTENT / "verdicts.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name, repeat, item = row.pop("judge"), int(row.pop("repeat")), row.pop("item")
            reply = json.dumps(row)
            if name == judge or (judge is None and name not in live):
                found += [
                    VerdictRow(item, name, key, float(score), True, False, "", repeat, reply, None, "verdicts.csv", 0)
                    for key, score in row.items()
                ]
    return found


def _import_verdicts(campaign: Campaign, researcher: User) -> None:
    """Import the judges that were run elsewhere, as a researcher would, from a file."""
    text = io.StringIO()
    columns = ("judge", "item", "criterion", "repeat", "score")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([getattr(row, name) for name in columns] for row in _verdicts())
    file_import = opening.open_import(
        project=campaign.project,
        kind=Import.Kind.VERDICTS,
        files=[("verdicts.csv", text.getvalue().encode())],
        target={"dataset": campaign.dataset_id, "rubric_version": campaign.rubric_version_id},
        actor=researcher,
    )
    verdicts.carry_out_verdicts(file_import=file_import, actor=researcher)
    Judge.objects.filter(project=campaign.project, provider="").update(simulated=True)


def _judge(project: Project) -> None:
    """Declare the demo's judges on the available provider, and start the missing runs."""
    campaign = Campaign.objects.filter(project=project).order_by("pk").first()
    if campaign is None:
        return
    if not GenerationPlan.objects.filter(project=project).exists():
        _generate(project, campaign.created_by)
    for entry in _judges():
        # Allow the demo to use a provider, with a small cap if it costs money. An existing permission does not change.
        provider = entry["provider"]
        allowed = ProviderAllowance.objects.filter(project=project, provider=provider)
        if allowances.needs_allowance(provider) and not allowed.exists():
            allowances.allow(project=project, provider=provider, cap_total=2 * REAL_BUDGET)
        judge = judges.declare(project=project, **entry)
        dataset = _spot_check(campaign) if _store_earlier_run(judge, campaign) else campaign.dataset
        if JudgeRun.objects.filter(judge=judge, dataset=dataset).exists():
            continue
        about: dict[str, Any] = {"judge": judge, "dataset": dataset, "rubric_version": campaign.rubric_version}
        if judge.simulated:
            tasks.enqueue_run(runs.start_judge_run(**about).pk)
        elif prices.price(judge):
            tasks.enqueue_run(runs.start_judge_run(**about, budget=REAL_BUDGET).pk)
        else:
            logger.warning(
                "The demo's judge %s is declared and not started: no price is known for %s at %s, so what it costs "
                "can't be capped. Add its price to PANELBENCH_PROVIDERS and load the demo again, or start it yourself.",
                judge.name,
                judge.model,
                judge.provider,
            )


def _generate(project: Project, researcher: User | None) -> None:
    """Have the simulated provider write a few dialogues in three languages; a worker asks for them later."""
    provider = settings.PROVIDERS.get("simulated")
    if provider is None:
        return
    plan = plans.create_plan(
        project=project,
        name="Support dialogues, first draft",
        spec=preset("support-dialogues"),
        languages=["en", "et", "ar"],
        families=GENERATED_FAMILIES,
        generators=[
            plans.GeneratorChoice(provider=provider.name, model=model) for model in ("sim-steady", "sim-flawed")
        ],
        seed=1,
        actor=researcher,
    )
    plans.start_plan(plan=plan, actor=researcher)
    tasks.enqueue_plan(plan)


def _store_earlier_run(judge: Judge, campaign: Campaign) -> bool:
    """Store the run that a judge had before its endpoint replaced the model; False where the demo has none."""
    about: dict[str, Any] = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
    if not (rows := _verdicts(judge.name)) or not judge.simulated:
        return False
    if JudgeRun.objects.filter(judge=judge, **about).exists():
        return True
    fit = verdicts.fit_verdicts(project=judge.project, rows=rows, **about)
    then = timezone.now() - EARLIER
    with transaction.atomic():
        run = JudgeRun.objects.create(project=judge.project, judge=judge, created_at=then, **about)
        verdicts.write_verdicts(runs={(judge.name, ""): run.pk}, rows=fit.rows)
        Attempt.objects.filter(call__run=run).update(served_model=EARLIER_MODEL, at=then)
    return True


def _spot_check(campaign: Campaign) -> Dataset:
    """Three dialogues that a judge is asked about again, to see whether the endpoint still answers as it did."""
    name = "Spot check"
    stored = Dataset.objects.filter(project=campaign.project, name=name).first()
    few = islice(_items(), 3)
    return stored or storage.store(project=campaign.project, name=name, items=few, actor=campaign.created_by)


def _judges() -> list[dict[str, Any]]:
    """The simulated judges that can be run; or the same two prompts with the first real provider that is declared."""
    entries = _document("judges.yaml")["judges"]
    real = next((provider for provider in settings.PROVIDERS.values() if not provider.simulated), None)
    if real is None:
        return entries if "simulated" in settings.PROVIDERS else []
    model = real.models[0] if real.models else DEFAULT_MODEL
    return [
        {
            "name": f"{model}, {entry['variant']['grouping']} prompt",
            "provider": real.name,
            "model": model,
            "parameters": {"max_completion_tokens": REAL_TOKENS},
            "variant": entry["variant"],
        }
        for entry in entries
    ]
