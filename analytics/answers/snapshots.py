"""Snapshots: a campaign's numbers at one time, the digest of their inputs, and whether they are still current."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from time import perf_counter, sleep
from typing import Any

from django.db import OperationalError, transaction
from django.db.models import QuerySet

from analytics.answers.measured import measured_answer
from analytics.answers.numbers_content import Progress, measured_content, no_progress
from analytics.answers.revisions import (
    campaign_revisions,
    code_version,
    joint_digest,
    settings_identity,
    snapshot_revision,
)
from analytics.answers.stored_cells import CellStore
from analytics.judges import thresholds
from analytics.models import Chart, Snapshot, StoredCell
from analytics.questions.plan import chosen_runs, planned
from analytics.questions.question import DEFAULT_SETTINGS, NumbersQuestion, Settings
from analytics.ratings import ratings_tables
from analytics.ratings.additions import question_table
from analytics.ratings.counts import answer_counts, counted_table
from analytics.ratings.exclusions import marked_counts
from analytics.ratings.raters import names_of_designs, rater_names
from annotation.models import Campaign, Item
from annotation.writers import formats
from annotation.writers.tables import Table
from judging.models import JudgeRun
from judging.runs import served_models, whole_run

logger = logging.getLogger(__name__)

KEPT = 50
"""Snapshots kept per campaign and settings; older ones can be computed again from their revision's rows."""
KEPT_ANSWERS = 200
"""Answers to questions kept per campaign."""
PAUSES = (1, 5)
"""Seconds between tries to store figures in a busy database; each try also waits for the other writer."""


def snapshot(
    *,
    campaign: Campaign,
    settings: Settings = DEFAULT_SETTINGS,
    progress: Progress = no_progress,
    must_store: bool = True,
) -> Snapshot:
    """The snapshot of the campaign as it stands: the stored one, or else computed and stored now.

    ``progress(done, total)`` is called before and after each report, and may raise to stop. The revision is read before
    the rows: what arrives in between makes the snapshot stale, never falsely fresh. Without ``must_store`` a snapshot
    is returned even if a busy database could not store it.
    """
    chosen = chosen_runs(campaign, settings)
    revision, identity = snapshot_revision(campaign, settings, chosen), settings_identity(settings)
    key = {"campaign": campaign, "revision": revision, **identity}
    stored = Snapshot.objects.filter(**key).first()
    if stored is not None:
        return stored
    compute_fields = next((each for kind, each in _FIELDS.items() if isinstance(settings, kind)), _numbers_fields)
    fields, drawn = compute_fields(campaign, settings, chosen, CellStore(campaign, **identity), progress)
    fields["content"] |= settings.described
    for pause in PAUSES if must_store else ():
        try:
            return _store(key, fields, drawn)
        except OperationalError:  # SQLite has one writer
            logger.warning("the database is busy: figures of campaign %s are stored later", campaign.pk)
            sleep(pause)
    try:
        return _store(key, fields, drawn)
    except OperationalError:
        if must_store:
            raise
        logger.warning("the database is busy: figures of campaign %s are not stored", campaign.pk)
        return Snapshot(**key, **fields)


def current_snapshot(*, campaign: Campaign, settings: Settings = DEFAULT_SETTINGS) -> tuple[Snapshot | None, bool]:
    """The snapshot of the campaign as it stands, or else the newest, which is stale: (it or None, whether it is stale).

    The newest need not be the current one: a slow worker may store what it began before others, and a run that is
    cancelled brings an earlier revision back.
    """
    stored = Snapshot.objects.filter(campaign=campaign, **settings_identity(settings))
    current = stored.filter(revision=snapshot_revision(campaign, settings)).first()
    return current or stored.first(), current is None


def delete_figures(campaigns: list[int]) -> None:
    """Delete every stored figure of these campaigns: ratings were deleted, and older figures may name their rater."""
    for model in (Snapshot, StoredCell):
        model.objects.filter(campaign__in=campaigns).delete()


def is_stale(campaign: Campaign) -> bool:
    """Whether there is no snapshot over all raters of the campaign as it stands; no content is read."""
    stored = Snapshot.objects.filter(campaign=campaign, **settings_identity(DEFAULT_SETTINGS))
    return not stored.filter(revision=snapshot_revision(campaign)).exists()


def newest(campaigns_wanted: Iterable[Campaign]) -> dict[int, Snapshot]:
    """By campaign, its snapshot over all raters: the current one, or else the newest.

    Three queries, and some for each campaign that has several snapshots and has changed since somebody asked.
    """
    stored: dict[int, list[tuple[int, str]]] = {}
    ours = Snapshot.objects.filter(campaign__in=campaigns_wanted, **settings_identity(DEFAULT_SETTINGS))
    for campaign, pk, revision in ours.values_list("campaign", "pk", "revision"):
        stored.setdefault(campaign, []).append((pk, revision))
    current = campaign_revisions([campaign for campaign, rows in stored.items() if len(rows) > 1])
    chosen = [
        next((pk for pk, revision in rows if revision == current.get(campaign)), rows[0][0])
        for campaign, rows in stored.items()
    ]
    return {each.campaign_id: each for each in Snapshot.objects.filter(pk__in=chosen)}


def current_snapshots(wanted: Iterable[Campaign], settings: Settings) -> dict[int, tuple[Snapshot, bool]]:
    """By campaign, what `current_snapshot` gives, under the default settings or those of decisions, if there is one.

    Four queries, and some for each campaign that has changed since somebody asked.
    """
    stored = Snapshot.objects.filter(campaign__in=wanted, **settings_identity(settings))
    rows = list(stored.values_list("campaign", "pk", "revision"))  # the newest first
    current = campaign_revisions({campaign for campaign, _pk, _revision in rows}, settings)
    chosen: dict[int, tuple[int, bool]] = {}
    for campaign, pk, revision in sorted(rows, key=lambda row: row[2] != current.get(row[0])):
        chosen.setdefault(campaign, (pk, revision != current.get(campaign)))
    found = Snapshot.objects.filter(pk__in=[pk for pk, _is_stale in chosen.values()])
    return {each.campaign_id: (each, chosen[each.campaign_id][1]) for each in found}


def of_numbers_page(campaign: Campaign) -> QuerySet[Snapshot]:
    """The snapshots of the page of numbers that this version of the code has computed, without answers to questions."""
    return Snapshot.objects.filter(campaign=campaign, code_version=code_version(), content__has_key="languages")


Fields = tuple[dict[str, Any], list[dict[str, str]]]
"""The fields of a new snapshot, and its charts. `inputs_digest`: the SHA-256 of the CSV of the ratings table."""


def _numbers_fields(
    campaign: Campaign, settings: Settings, chosen: Sequence[JudgeRun], store: CellStore, progress: Progress
) -> Fields:
    """What the page of numbers shows."""
    from analytics import charts  # pandas and the renderer, for workers only

    started = perf_counter()
    names = rater_names(campaign, chosen)
    found = ratings_tables.table(
        campaign=campaign, runs=chosen, raters=settings.raters, blind_only=settings.blind_only, names=names
    )
    table = found.settled()
    with _digest_in_thread(table) as digest:
        content = measured_content(
            table, settings, scales=campaign.rubric_version.scales, store=store, progress=progress
        )
        content |= {
            **marked_counts(campaign, settings.raters),
            "items": Item.objects.of(campaign.dataset).count(),
            "judges": _judges(chosen, names, names_of_designs(chosen, names)),
        }
        drawn = charts.bias(content, drawn=partial(_drawn, store))
        store.forget_others()
    return _fields(settings, content, digest(), started), drawn


def _question_fields(
    campaign: Campaign, question: NumbersQuestion, chosen: Sequence[JudgeRun], store: CellStore, progress: Progress
) -> Fields:
    """The answer to a question."""
    started = perf_counter()
    plan, left_out = planned(campaign, question, chosen), Counter[str]()
    table = question_table(campaign, plan, left_out).settled()
    with _digest_in_thread(table) as digest:
        content = measured_answer(table, plan, store=store, progress=progress)
    content |= answer_counts(table, campaign, plan, left_out)
    content["judges"] = _judges(plan.runs, plan.names, plan.of_designs)
    return _fields(question, content, digest(), started), []


def _decision_fields(
    campaign: Campaign,
    settings: thresholds.GateSettings,
    chosen: Sequence[JudgeRun],
    _cells: CellStore,
    progress: Progress,
) -> Fields:
    """Decisions about judges, which are computed as a whole."""
    started = perf_counter()
    names = rater_names(campaign, chosen)
    found = ratings_tables.table(campaign=campaign, runs=chosen, blind_only=settings.blind_only, names=names)
    table = found.settled()
    content = thresholds.decided_cells(campaign, table, chosen, names, settings, progress)
    content |= {
        "counts": counted_table(table),
        "judges": _judges(chosen, names, names_of_designs(chosen, names)),
        **marked_counts(campaign),
    }
    return _fields(settings, content, joint_digest(formats.pieces(table, "csv")), started), []


_FIELDS: dict[type[Settings], Callable[..., Fields]] = {
    NumbersQuestion: _question_fields,
    thresholds.GateSettings: _decision_fields,
}
"""By the kind of settings, the function that computes a snapshot's fields; `_numbers_fields` for all others."""


def _fields(settings: Settings, content: dict[str, Any], inputs_digest: str, started: float) -> dict[str, Any]:
    seconds = perf_counter() - started
    return {"content": content, "inputs_digest": inputs_digest, "seed": settings.seed, "seconds": seconds}


def _drawn(store: CellStore, specs: Sequence[dict[str, Any]]) -> list[str]:
    """The charts as SVG; one that was drawn before is taken from the store."""
    from analytics import charts

    digests = [store.digest(b"chart", json.dumps(spec).encode()) for spec in specs]
    return store.contents(digests, lambda place: charts.svg(specs[place]))


def _judges(chosen: Sequence[JudgeRun], names: Mapping[int, str], of_designs: Collection[str]) -> list[dict[str, Any]]:
    return [
        {
            "name": names[run.pk],
            "judge": run.judge_id,
            "run": run.pk,
            "simulated": run.judge.simulated,
            "served": [served.model for served in served_models(whole_run([run])) if served.is_other],
            "of_design": names[run.pk] in of_designs,
        }
        for run in chosen
    ]


@contextmanager
def _digest_in_thread(table: Table) -> Iterator[Callable[[], str]]:
    """The SHA-256 of a table's CSV, computed by a second thread while the first computes figures from the table:
    hashing, charts and the database release Python's lock."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield pool.submit(joint_digest, formats.pieces(table, "csv")).result


def _store(key: dict[str, Any], fields: dict[str, Any], drawn: list[dict[str, str]]) -> Snapshot:
    """Store a snapshot and delete surplus old ones. If another worker stored the same one first, return that."""
    with transaction.atomic():
        stored, is_new = Snapshot.objects.get_or_create(**key, defaults=fields)
        if is_new:
            Chart.objects.bulk_create(Chart(snapshot=stored, **each) for each in drawn)
    same = Snapshot.objects.filter(campaign=stored.campaign_id, settings_digest=stored.settings_digest)
    surplus = list(same.values_list("pk", flat=True)[KEPT:])
    if "question" in stored.content:
        answers = Snapshot.objects.filter(campaign=stored.campaign_id, content__has_key="question")
        surplus += answers.values_list("pk", flat=True)[KEPT_ANSWERS:]
    if surplus:
        Snapshot.objects.filter(pk__in=surplus).delete()
        known = Snapshot.objects.filter(campaign=stored.campaign_id).values("settings_digest")
        StoredCell.objects.filter(campaign=stored.campaign_id).exclude(settings_digest__in=known).delete()
    return stored
