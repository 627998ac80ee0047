"""Snapshots: a campaign's numbers at one time, the digest of their inputs, and whether they are still current."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

from django import conf
from django.core.cache import caches
from django.db import OperationalError, transaction
from django.db.models import CharField, Count, Expression, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Cast, Coalesce, Concat

from analytics.answers.measured import measured_answer, report_cells
from analytics.answers.stored_cells import ALL_JUDGES, READ, CellReport, CellStore, CodedTable, CutTable
from analytics.judges import thresholds
from analytics.models import Chart, GateThresholds, Snapshot, StoredCell
from analytics.questions.plan import chosen_runs, planned
from analytics.questions.question import DEFAULT_SETTINGS, NumbersQuestion, Settings
from analytics.questions.reference_rules import ADJUDICATED, NEEDS_ORDER, RULES
from analytics.ratings import ratings_tables
from analytics.ratings.additions import question_table
from analytics.ratings.counts import counted_table
from analytics.ratings.dialogue_faults import dialogue_faults
from analytics.ratings.exclusion_counts import exclusion_counts
from analytics.ratings.exclusions import below_controls, marked_counts
from analytics.ratings.item_attributes import KEPT_SECONDS
from analytics.ratings.raters import audit_runs, names_of_designs, newest_runs, rater_names
from analytics.ratings.scales import campaign_scales
from analytics.stats.declared.register import HEAT_MAPS, OVER_REPEATS, REPORTS, is_usual
from annotation import adjudication, campaigns
from annotation.models import Annotation, Campaign, Item, Rating, RubricVersion
from annotation.writers import formats
from annotation.writers.tables import Table
from judging import runs
from judging.models import Call, JudgeRun, Verdict
from judging.runs import served_models, whole_run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.scales import Scale
    from analytics.stats.core.tables import RatingsTable

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
LAYOUT = 18
"""Raise it whenever the shape of `Snapshot.content`, its charts, the choice of statistics, the columns of the ratings
table or the way a figure is computed change: stored figures are then computed again."""
KEPT = 50
"""Snapshots kept per campaign and settings; older ones can be computed again from their revision's rows."""
KEPT_ANSWERS = 200
"""Answers to questions kept per campaign."""
PAUSES = (1, 5)
"""Seconds between tries to store figures in a busy database; each try also waits for the other writer."""


def _no_progress(_done: int, _total: int) -> None:
    """Progress that is not reported."""


def snapshot(
    *,
    campaign: Campaign,
    settings: Settings = DEFAULT_SETTINGS,
    progress: Progress = _no_progress,
    must_store: bool = True,
) -> Snapshot:
    """The snapshot of the campaign as it stands: the stored one, or else computed and stored now.

    ``progress(done, total)`` is called before and after each report, and may raise to stop. The revision is read before
    the rows: what arrives in between makes the snapshot stale, never falsely fresh. Without ``must_store`` a snapshot
    is returned even if a busy database could not store it.
    """
    key = {"campaign": campaign, "revision": snapshot_revision(campaign, settings), **_identity(settings)}
    stored = Snapshot.objects.filter(**key).first()
    if stored is not None:
        return stored
    compute_fields = next((each for kind, each in _FIELDS.items() if isinstance(settings, kind)), _numbers_fields)
    fields, drawn = compute_fields(campaign, settings, progress)
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
    stored = Snapshot.objects.filter(campaign=campaign, **_identity(settings))
    current = stored.filter(revision=snapshot_revision(campaign, settings)).first()
    return current or stored.first(), current is None


def delete_figures(campaigns: list[int]) -> None:
    """Delete every stored figure of these campaigns: ratings were deleted, and older figures may name their rater."""
    for model in (Snapshot, StoredCell):
        model.objects.filter(campaign__in=campaigns).delete()


def is_stale(campaign: Campaign) -> bool:
    """Whether there is no snapshot over all raters of the campaign as it stands; no content is read."""
    stored = Snapshot.objects.filter(campaign=campaign, **_identity(DEFAULT_SETTINGS))
    return not stored.filter(revision=snapshot_revision(campaign)).exists()


def to_be_polled() -> list[Campaign]:
    """The open campaigns of projects in use that have changed since `mark_as_current` was called; one SQL statement.

    A closed campaign is never polled. If a judge was run since, opening its page of numbers has them computed again.
    """
    found = Campaign.objects.filter(project__archived_at=None).exclude(state=Campaign.State.CLOSED)
    open_ones = list(found.select_related("dataset").annotate(mark=Concat(*_marks()), **_gate_marks()))
    for campaign in open_ones:
        campaign.mark += f"{campaign.newest_rubric} {campaign.newest_thresholds}"  # type: ignore[attr-defined]
    noted = caches["content"].get_many([_current_key(campaign) for campaign in open_ones])
    return [campaign for campaign in open_ones if noted.get(_current_key(campaign)) != campaign.mark]


def mark_as_current(campaign: Campaign) -> None:
    """Remember that the numbers of a campaign from `to_be_polled` are current, in the state in which it was read."""
    caches["content"].set(_current_key(campaign), campaign.mark, None)  # type: ignore[attr-defined]


def _marks() -> Iterator[Expression]:
    """Counts that change whenever `snapshot_revision` may: of annotations, verdicts, judge runs and open calls."""
    of_rubric = {"project": OuterRef("project"), "rubric_version": OuterRef("rubric_version")}
    of_runs = {f"run__{name}": value for name, value in of_rubric.items()}
    is_open = Q(state__in=[Call.State.WAITING, Call.State.LEASED])
    cancelled = Count("pk", filter=Q(state=JudgeRun.State.CANCELLED))
    for rows, by, counts in (
        (Annotation.objects.filter(campaign=OuterRef("pk")), "campaign", (Count("superseded_at"),)),
        (Verdict.objects.filter(**of_runs), "run__rubric_version", ()),
        (JudgeRun.objects.filter(**of_rubric), "rubric_version", (cancelled,)),
        (Call.objects.filter(is_open, **of_runs), "run__rubric_version", ()),
    ):
        texts = (Cast(each, CharField()) for each in (Count("pk"), Max("pk"), *counts))
        spaced = [part for text in texts for part in (text, Value(":"))]
        marked = rows.order_by().values(by).annotate(mark=Concat(*spaced)).values("mark")
        yield Coalesce(Subquery(marked), Value("0"), output_field=CharField())
        yield Value(" ")


def _gate_marks() -> dict[str, Any]:
    """What else makes decisions about judges stale: the newest published version of the rubric, and the thresholds."""
    rubrics = RubricVersion.objects.published().filter(rubric=OuterRef("rubric_version__rubric"))
    declared = GateThresholds.objects.filter(project=OuterRef("project"))
    return {
        "newest_rubric": Subquery(rubrics.order_by("-number").values("number")[:1]),
        "newest_thresholds": Subquery(declared.order_by("-number").values("number")[:1]),
    }


def _current_key(campaign: Campaign) -> str:
    return f"numbers-current:{campaign.pk}:{code_version()}"


def newest(campaigns_wanted: Iterable[Campaign]) -> dict[int, Snapshot]:
    """By campaign, its snapshot over all raters: the current one, or else the newest.

    Three queries, and some for each campaign that has several snapshots and has changed since somebody asked.
    """
    stored: dict[int, list[tuple[int, str]]] = {}
    ours = Snapshot.objects.filter(campaign__in=campaigns_wanted, **_identity(DEFAULT_SETTINGS))
    for campaign, pk, revision in ours.values_list("campaign", "pk", "revision"):
        stored.setdefault(campaign, []).append((pk, revision))
    current = _revisions([campaign for campaign, rows in stored.items() if len(rows) > 1])
    chosen = [
        next((pk for pk, revision in rows if revision == current.get(campaign)), rows[0][0])
        for campaign, rows in stored.items()
    ]
    return {each.campaign_id: each for each in Snapshot.objects.filter(pk__in=chosen)}


def _revisions(campaign_pks: Collection[int]) -> dict[int, str]:
    """The revision of each campaign; kept until what it is made of changes."""
    if not campaign_pks:
        return {}
    found = Campaign.objects.filter(pk__in=campaign_pks).select_related("dataset").annotate(mark=Concat(*_marks()))
    marks = {each: f"{each.dataset_id} {each.mark} {code_version()}" for each in found}
    names = {f"numbers-revision:{each.pk}:{_digest([mark.encode()])}": each for each, mark in marks.items()}
    kept = caches["content"].get_many(list(names))
    new = {name: snapshot_revision(campaign) for name, campaign in names.items() if name not in kept}
    if new:
        caches["content"].set_many(new, KEPT_SECONDS)
    return {campaign.pk: (kept | new)[name] for name, campaign in names.items()}


def of_numbers_page(campaign: Campaign) -> QuerySet[Snapshot]:
    """The snapshots of the page of numbers that this version of the code has computed, without answers to questions."""
    return Snapshot.objects.filter(campaign=campaign, code_version=code_version(), content__has_key="languages")


def snapshot_revision(campaign: Campaign, settings: Settings = DEFAULT_SETTINGS) -> str:
    """Changes with every annotation and verdict that enters or leaves the ratings table, and with the dataset."""
    question = settings if isinstance(settings, NumbersQuestion) else None
    statistics = set(question.statistics) if question else set()
    found = whole_run(chosen_runs(campaign, question) if question else newest_runs(campaign))
    chosen = f"{campaign.dataset_id}:{','.join(map(str, sorted(run.pk for run in found)))}"
    digest = hashlib.sha256(chosen.encode()).hexdigest()[:12]
    revision = f"{campaigns.revision(campaign)} {runs.run_revision(found)} {digest}"
    if question and question.reference in ADJUDICATED:
        revision += f" {adjudication.adjudication_revision(campaign)}"
    if isinstance(settings, thresholds.GateSettings) or any(name.startswith("perturbation.") for name in statistics):
        revision += f" {runs.run_revision(audit_runs(campaign))}"
    if statistics & {"rationale_share", "rationale_length"}:  # rationales may be erased
        here = Rating.objects.filter(annotation__campaign=campaign, annotation__superseded_at=None)
        revision += f" {here.exclude(rationale='').count()}"
    if any(name.startswith("survival.") for name in statistics):
        revision += f" {_digest([json.dumps(sorted(dialogue_faults(campaign).items())).encode()])[:12]}"
    if question and "controls" in question.exclude:
        below = json.dumps(sorted(below_controls(campaign)))  # a column has no room for all names
        revision += f" {_digest([below.encode()])[:12]}"
    if isinstance(settings, thresholds.GateSettings):  # a decision depends on what changed since the judge was run, too
        return f"{revision} {thresholds.changes_digest(campaign, list(newest_runs(campaign)))}"
    return revision


def code_version() -> str:
    """The release and the layout of what it stores."""
    return f"{conf.settings.VERSION}/{LAYOUT}"


def _identity(settings: Settings) -> dict[str, str]:
    return {"settings_digest": settings.digest, "code_version": code_version()}


def _numbers_fields(
    campaign: Campaign, settings: Settings, progress: Progress
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """The fields of a new snapshot, and its charts.

    `inputs_digest` is the SHA-256 of the CSV of the ratings table, byte for byte.
    """
    from analytics import charts  # pandas and the renderer, for workers only

    started = perf_counter()
    chosen = list(newest_runs(campaign))
    found = ratings_tables.table(campaign=campaign, runs=chosen, raters=settings.raters, blind_only=settings.blind_only)
    table = found.settled()
    store = CellStore(campaign, settings.digest, code_version())
    with _digest_in_thread(table) as digest:
        content = measured_content(table, settings, scales=campaign_scales(campaign), store=store, progress=progress)
        content |= {"settings": asdict(settings), **_described(campaign, chosen, settings)}
        drawn = charts.bias(content, drawn=partial(_drawn, store))
        store.forget_others()
    fields = {
        "content": content,
        "inputs_digest": digest(),
        "seed": settings.seed,
        "seconds": perf_counter() - started,
    }
    return fields, drawn


def _question_fields(
    campaign: Campaign, question: NumbersQuestion, progress: Progress
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """The fields of a snapshot that answers a question."""
    started = perf_counter()
    plan, left_out = planned(campaign, question), Counter[str]()
    table = question_table(campaign, plan, left_out).settled()
    store = CellStore(campaign, question.digest, code_version())
    with _digest_in_thread(table) as digest:
        content = measured_answer(table, plan, store=store, progress=progress)
    content |= {
        **plan.about,
        "counts": counted_table(table),
        **exclusion_counts(table, campaign, plan, left_out),
        "judges": _judges(campaign, plan.runs),
    }
    fields = {
        "content": content,
        "inputs_digest": digest(),
        "seed": question.seed,
        "seconds": perf_counter() - started,
    }
    return fields, []


def _drawn(store: CellStore, specs: Sequence[dict[str, Any]]) -> list[str]:
    """The charts as SVG; one that was drawn before is taken from the store."""
    from analytics import charts

    digests = [store.digest(b"chart", json.dumps(spec).encode()) for spec in specs]
    return store.contents(digests, lambda place: charts.svg(specs[place]))


def _decision_fields(
    campaign: Campaign, settings: thresholds.GateSettings, progress: Progress
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """The fields of a snapshot of decisions about judges."""
    started = perf_counter()
    chosen = list(newest_runs(campaign))
    found = ratings_tables.table(campaign=campaign, runs=chosen, blind_only=settings.blind_only)
    table = found.settled()
    content = thresholds.decided_cells(campaign, table, chosen, settings, progress)
    content |= {"counts": counted_table(table), "judges": _judges(campaign, chosen)}
    fields = {
        "content": content | marked_counts(campaign),
        "inputs_digest": _digest(formats.pieces(table, "csv")),
        "seed": settings.seed,
        "seconds": perf_counter() - started,
    }
    return fields, []


_FIELDS: dict[type[Settings], Callable[..., tuple[dict[str, Any], list[dict[str, str]]]]] = {
    NumbersQuestion: _question_fields,
    thresholds.GateSettings: _decision_fields,
}
"""By the kind of settings, the function that computes a snapshot's fields; `_numbers_fields` for all others."""


def _judges(campaign: Campaign, chosen: Sequence[JudgeRun]) -> list[dict[str, Any]]:
    names = rater_names(campaign, chosen)
    of_designs = names_of_designs(chosen, names)
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


def _described(campaign: Campaign, chosen: list[JudgeRun], settings: Settings) -> dict[str, Any]:
    return marked_counts(campaign, settings.raters) | {
        "items": Item.objects.of(campaign.dataset).count(),
        "judges": _judges(campaign, chosen),
    }


@contextmanager
def _digest_in_thread(table: Table) -> Iterator[Callable[[], str]]:
    """The SHA-256 of a table's CSV, computed by a second thread while the first computes figures from the table:
    hashing, charts and the database release Python's lock."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield pool.submit(_digest, formats.pieces(table, "csv")).result


def _digest(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


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


# --- from a ratings table to estimates as plain values; pandas and scipy are loaded by these functions ---------------
CALIBRATION = ("mae", "bias", "cohen_kappa", "spearman")
LABELS = ("cohen_kappa", "accuracy", "f1", "precision", "recall")
"""Statistics of a judge on a nominal criterion; the last three for each point of the scale."""

MOST_CELLS = 600
"""With at most so many cells (criteria × languages), shares of scores in each class of agreement are also computed by
language. With more they would be half of what is stored; Explore computes them on request."""
ALL_LANGUAGES = ("criterion",)
EACH_LANGUAGE = ("language", "criterion")
EACH_GENERATOR = ("generator", "language", "criterion")


def measured_content(
    found: Table,
    settings: Settings,
    *,
    scales: Mapping[str, Scale],
    store: CellStore | None = None,
    progress: Progress = _no_progress,
) -> dict[str, Any]:
    """Languages, counts and estimates of a ratings table: by criterion and language, and over all languages together.

    Criteria are never pooled. An estimate is a row without the fields that are None. Cells in the `store` are not
    computed again.
    """
    table = CodedTable(found, scales, READ)
    cut, reports = CutTable(table, store or CellStore(None, "", code_version())), []
    groupings = _groupings(table.values("language"))
    for by in groupings:
        reports += list(_reports(table, settings, by))
    reports.append(_means(settings))
    if flags := [key for key in table.criteria if is_flag(table.scale(key))]:
        by = EACH_GENERATOR
        reports.append(
            CellReport(name="prevalence", compute=_prevalence, options={}, by=by, judge=ALL_JUDGES, criteria=flags)
        )
    counts = [
        CellReport(name="counts", compute=partial(counts_of, by=by), options={}, by=by, judge=ALL_JUDGES)
        for by in groupings
    ]
    cut.prepare([*reports, *counts])
    rows: list[dict[str, Any]] = []
    for done, report in enumerate(reports):
        progress(done, len(reports))
        rows += cut.rows(report, _plain)
    progress(len(reports), len(reports))
    return {
        "languages": table.values("language"),
        "rated": rated_counts(table),
        "counts": [row for report in counts for row in cut.rows(report, dict)],
        "estimates": rows,
    }


def is_flag(scale: Scale) -> bool:
    """Whether a criterion is nominal with two labels."""
    return scale.level == "nominal" and scale.q == 2


def rated_counts(table: CodedTable) -> dict[str, int]:
    """Counts of the panels' items, raters and ratings, and of the judges' verdicts and items."""
    import numpy as np

    def rows(name: str, is_one: Callable[[Any], bool]) -> NDArray[np.bool_]:
        column = table.columns[name]
        return np.array([is_one(value) for value in column.values], dtype=bool)[column.codes]

    people, judges = (table.where("rater_kind", (kind,)) for kind in ("annotator", "judge"))
    is_scored = rows("score", lambda score: score is not None and score == score)  # NaN is no score
    applicable = rows("applicable", bool)
    scored = people & applicable & is_scored
    return {
        "items": int(np.count_nonzero(np.bincount(table.item_keys[scored]))),
        "raters": int(np.count_nonzero(np.bincount(table.columns["rater"].codes[scored]))),
        "ratings": int(scored.sum()),
        "not_applicable": int((people & ~applicable).sum()),
        "stopped": int((people & rows("missing_reason", lambda reason: reason == "stopped")).sum()),
        "verdicts": int(judges.sum()),
        "judged_items": int(np.count_nonzero(np.bincount(table.item_keys[judges]))),
    }


def _groupings(languages: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Each language, and all of them together where there are several."""
    return (EACH_LANGUAGE, ALL_LANGUAGES) if len(languages) > 1 else (EACH_LANGUAGE,)


def _reports(table: CodedTable, settings: Settings, by: tuple[str, ...]) -> Iterator[CellReport]:
    """What is computed for every cell: agreement, each judge against the panel, shares of scores, and repeats."""
    from analytics.stats.judge import agreement_classes, calibration, soundness

    judges = table.judges
    yield report_cells(REPORTS["agreement"], settings, by, HEAT_MAPS, arguments={})
    nominal = [key for key in table.criteria if table.scale(key).level == "nominal"]
    ordered = [key for key in table.criteria if key not in nominal]
    for judge in judges:
        for criteria, statistics in ((nominal, LABELS), (ordered, CALIBRATION)):
            name = "mode" if statistics is LABELS and settings.reference in NEEDS_ORDER else settings.reference
            rule, ties = RULES[name]
            names, compared = (*statistics, *calibration.COUNTS), {"judge": judge, "reference": rule, "ties": ties}
            yield report_cells(REPORTS["calibration"], settings, by, names, criteria=criteria, arguments=compared)
    shares = partial(agreement_classes.score_share_report, by=by)
    yield CellReport(name="score_share", compute=shares, options={}, by=by, judge=ALL_JUDGES)
    is_large = "language" in by and len(table.criteria) * len(table.values("language")) > MOST_CELLS
    classes = partial(_class_shares, by=by, with_scores=not is_large)
    options = {"with_scores": False} if is_large else {}
    yield CellReport(name="class_share", compute=classes, options=options, by=by, judge=ALL_JUDGES)
    for judge in judges:
        if table.has_repeats(judge):
            audits = partial(_repeats, soundness.audit_report, by=by, judge=judge)
            yield CellReport(name="repeats", compute=audits, options={}, by=by, judge=judge)


def _class_shares(table: RatingsTable, by: Sequence[str], *, with_scores: bool) -> Iterator[CellEstimate]:
    """Shares of the classes of agreement, and in each class the shares of the points, as `class_score_share`."""
    from analytics.stats.judge import agreement_classes

    for row in agreement_classes.agreement_class_report(table, by=by):
        if row.estimate.statistic == "class_share" and row.estimate.is_defined:
            yield row
        elif (
            with_scores
            and row.estimate.is_defined
            and table.scales[str(row.cell["criterion"])].q <= agreement_classes.MOST_SHOWN
        ):
            yield replace(row, estimate=row.estimate.with_(statistic="class_score_share"))


def _prevalence(table: RatingsTable) -> Iterator[CellEstimate]:
    """For flags: the share of the higher label in the scores of the panel and of each judge, by generator."""
    from analytics.stats.judge import agreement_classes

    for row in agreement_classes.score_share_report(table, by=EACH_GENERATOR):
        if row.estimate.variant == table.scales[str(row.cell["criterion"])].label(1):
            yield replace(row, estimate=row.estimate.with_(statistic="prevalence"))


def _repeats(report: Any, table: RatingsTable, *, judge: str, by: Sequence[str]) -> Iterator[CellEstimate]:
    """The statistics of the judge's repeats, from a report of all its audits."""
    audits = report(table.only(rater=[judge]), judge=judge, by=by)
    return (row for row in audits if row.estimate.statistic in OVER_REPEATS)


def _means(settings: Settings) -> CellReport:
    """Mean scores of each generator."""
    from analytics.stats.judge import corrected_means

    by, confidence = ("generator", "criterion"), settings.confidence
    compute = partial(corrected_means.means_report, by=by, confidence=confidence)
    return CellReport(name="means", compute=compute, options={"confidence": confidence}, by=by, judge=ALL_JUDGES)


def _plain(row: CellEstimate) -> dict[str, Any] | None:
    """The row without the fields that are None; None if the page does not show it."""
    estimate = row.estimate
    if not is_usual(estimate.statistic, estimate.variant, estimate.level or ""):
        return None
    return {name: value for name, value in row.as_row().items() if value is not None}


def counts_of(table: RatingsTable, by: Sequence[str]) -> list[dict[str, Any]]:
    """What a cell holds: items, raters, ratings, missing, N/A, off the scale; for the panel and for each judge."""
    import numpy as np
    import pandas as pd

    is_first = (table.frame["repeat"] == table.frame["first_repeat"]).to_numpy()
    frame = table.frame if is_first.all() else table.frame[is_first]
    judge = np.where((frame["rater_kind"] == "judge").to_numpy(), frame["rater"].to_numpy(), "")
    group, keys = np.zeros(len(frame), dtype=np.intp), []
    for column in (*(frame[name] for name in by), pd.Series(judge, dtype=object)):
        codes, names = pd.factorize(column, sort=True)
        group = np.where((group < 0) | (codes < 0), -1, group * len(names) + codes)
        keys.append(list(map(str, names)))
    has_key = group >= 0
    frame = frame if has_key.all() else frame[has_key]
    numbers, group = np.unique(group[has_key], return_inverse=True)
    applicable, missing = frame["applicable"].to_numpy(), frame["missing"].to_numpy()
    given = applicable & ~missing & ~frame["out_of_range"].to_numpy()

    def sums(rows: NDArray[np.bool_]) -> list[int]:
        return _tallied(group[rows], len(numbers))

    def distinct(name: str) -> list[int]:
        codes, names = pd.factorize(frame[name].to_numpy()[given])
        return _tallied(np.unique(group[given] * max(len(names), 1) + codes) // max(len(names), 1), len(numbers))

    counts = zip(distinct("item_key"), distinct("rater"), sums(given), sums(missing), sums(~applicable), strict=True)
    counted = ("items", "raters", "ratings", "missing", "not_applicable")
    places = np.unravel_index(numbers, [max(len(each), 1) for each in keys])
    found = zip(*([each[at] for at in place.tolist()] for each, place in zip(keys, places, strict=True)), strict=True)
    reasons = _reasons(frame["missing_reason"].to_numpy(), group, len(numbers))
    return [
        dict(zip((*by, "judge"), key, strict=True)) | dict(zip(counted, row, strict=True)) | {"reasons": why}
        for key, row, why in zip(found, counts, reasons, strict=True)
    ]


def _tallied(places: NDArray[np.intp], size: int) -> list[int]:
    """How often each number below `size` occurs."""
    import numpy as np

    counted: list[int] = np.bincount(places, minlength=size).tolist()
    return counted


def _reasons(reasons: NDArray[Any], group: NDArray[np.intp], size: int) -> list[dict[str, int]]:
    """By group, how often each reason for a missing score occurs, in the order of the reasons."""
    import pandas as pd

    codes, names = pd.factorize(reasons, sort=True)
    every: list[dict[str, int]] = [{} for _group in range(size)]
    for place, name in enumerate(names):
        for number, count in enumerate(_tallied(group[codes == place], size)):
            if count:
                every[number][str(name)] = count
    return every
