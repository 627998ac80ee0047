"""Snapshots: what a campaign's numbers were, from what they were computed, and whether they still hold."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from django import conf
from django.core.cache import caches
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, Subquery

from analytics import cells, ratings
from analytics.models import Chart, Snapshot
from analytics.questions import DEFAULT_SETTINGS, NEEDS_ORDER, RULES, NumbersQuestion, Settings, chosen_runs
from annotation import campaigns
from annotation.models import Campaign, Item
from annotation.writers import files
from judging import runs
from judging.models import Call, JudgeRun
from judging.runs import whole_run

if TYPE_CHECKING:
    import pandas as pd

    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.scales import Scale
    from analytics.stats.core.tables import RatingsTable


Progress = Callable[[int, int], None]
LAYOUT = 9
"""Goes up whenever the shape of `Snapshot.content`, its charts, the choice of statistics or the ratings table's columns
change.
"""
KEPT = 50
"""Snapshots kept of a campaign and settings; older ones can be computed again from their revision's rows."""

KEPT_ANSWERS = 200
"""Answers to questions kept of a campaign."""


def _unheard(_done: int, _total: int) -> None:
    """Progress that nobody asked for."""


def snapshot(*, campaign: Campaign, settings: Settings = DEFAULT_SETTINGS, progress: Progress = _unheard) -> Snapshot:
    """The snapshot of the campaign as it stands: the stored one, or else computed and stored now.

    ``progress(done, total)`` is called after each report (one of the raters and one of each judge, by language and over
    all), and may raise to stop. The revision is read before the rows: what arrives in between makes the snapshot stale,
    never falsely fresh.
    """
    key = {"campaign": campaign, "revision": snapshot_revision(campaign, settings), **_identity(settings)}
    stored = Snapshot.objects.filter(**key).first()
    computed = _answered if isinstance(settings, NumbersQuestion) else _computed
    return stored or _store(key, *computed(campaign, settings, progress))  # type: ignore[arg-type]


def current_snapshot(*, campaign: Campaign, settings: Settings = DEFAULT_SETTINGS) -> tuple[Snapshot | None, bool]:
    """The newest snapshot this version of the code has computed, and whether something has changed since."""
    newest = Snapshot.objects.filter(campaign=campaign, **_identity(settings)).first()
    return newest, newest is None or newest.revision != snapshot_revision(campaign, settings)


def to_be_polled() -> list[Campaign]:
    """Campaigns whose numbers may have gone stale: all but those of archived projects, and the closed ones that
    `settle_computation` has noted."""
    campaigns = list(Campaign.objects.filter(project__archived_at=None).annotate(**_judged()))
    open_ones = [campaign for campaign in campaigns if campaign.state != Campaign.State.CLOSED]
    caches["content"].delete_many([_newest_run_cache_key(campaign) for campaign in open_ones])
    polled_runs = caches["content"].get_many([_newest_run_cache_key(campaign) for campaign in campaigns])

    def may_be_stale(campaign: Campaign) -> bool:
        newest_polled = polled_runs.get(_newest_run_cache_key(campaign), "")
        return campaign.is_judged or newest_polled != campaign.newest_run  # type: ignore[attr-defined,no-any-return]

    return [campaign for campaign in campaigns if may_be_stale(campaign)]


def settle_computation(campaign: Campaign) -> None:
    """Note that a campaign from `to_be_polled` has fresh numbers: once it is closed, it is polled again only when a
    judge is run on its rubric.
    """
    if campaign.state == Campaign.State.CLOSED and not campaign.is_judged:  # type: ignore[attr-defined]
        caches["content"].set(_newest_run_cache_key(campaign), campaign.newest_run, None)  # type: ignore[attr-defined]


def _judged() -> dict[str, Any]:
    """The newest judge run on the rubric of a campaign, and whether any still has calls to make."""
    here = JudgeRun.objects.filter(project=OuterRef("project"), rubric_version=OuterRef("rubric_version"))
    asking = Call.objects.filter(
        run__project=OuterRef("project"),
        run__rubric_version=OuterRef("rubric_version"),
        state__in=[Call.State.WAITING, Call.State.LEASED],
    )
    return {"newest_run": Subquery(here.order_by("-pk").values("pk")[:1]), "is_judged": Exists(asking)}


def _newest_run_cache_key(campaign: Campaign) -> str:
    return f"numbers-settled:{campaign.pk}:{code_version()}"


def newest(campaigns_wanted: Iterable[Campaign]) -> dict[int, Snapshot]:
    """By campaign, its newest snapshot over all raters; one query."""
    ours = Snapshot.objects.filter(campaign=OuterRef("campaign"), **_identity(DEFAULT_SETTINGS))
    snapshots = Snapshot.objects.filter(campaign__in=campaigns_wanted, pk=Subquery(ours.values("pk")[:1]))
    return {each.campaign_id: each for each in snapshots}


def of_numbers_page(campaign: Campaign) -> QuerySet[Snapshot]:
    """What this version of the code has computed for the page of numbers; answers to questions are not among it."""
    return Snapshot.objects.filter(campaign=campaign, code_version=code_version(), content__has_key="languages")


def snapshot_revision(campaign: Campaign, settings: Settings = DEFAULT_SETTINGS) -> str:
    """Changes with every annotation and verdict that enters or leaves the ratings table, and with the dataset."""
    asks = isinstance(settings, NumbersQuestion)
    found = whole_run(chosen_runs(campaign, settings) if asks else ratings.newest_runs(campaign))  # type: ignore[arg-type]
    chosen = f"{campaign.dataset_id}:{','.join(map(str, sorted(run.pk for run in found)))}"
    return (
        f"{campaigns.revision(campaign)} {runs.run_revision(found)} {hashlib.sha256(chosen.encode()).hexdigest()[:12]}"
    )


def code_version() -> str:
    """The release and the layout of what it stores."""
    return f"{conf.settings.VERSION}/{LAYOUT}"


def _identity(settings: Settings) -> dict[str, str]:
    return {"settings_digest": settings.digest, "code_version": code_version()}


def _computed(
    campaign: Campaign, settings: Settings, progress: Progress
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """The fields of a new snapshot, and its charts.

    `inputs_digest` is the SHA-256 of the CSV of the ratings table, byte for byte.
    """
    from analytics import charts  # pandas and the renderer, for workers only

    started = perf_counter()
    chosen = list(ratings.newest_runs(campaign))
    found = ratings.table(campaign=campaign, runs=chosen, raters=settings.raters, blind_only=settings.blind_only)
    table = replace(found, rows=list(found.rows))
    content = measured_content(
        ratings.frame(table),
        scales=ratings.scales(campaign),
        bootstrap=settings.bootstrap,
        confidence=settings.confidence,
        seed=settings.seed,
        reference=settings.reference,
        progress=progress,
    )
    content |= {"settings": asdict(settings), **_described(campaign, chosen, settings)}
    drawn = charts.bias(content)
    fields = {
        "content": content,
        "inputs_digest": _digest(files.pieces(table, "csv")),
        "seed": settings.seed,
        "seconds": perf_counter() - started,
    }
    return fields, drawn


def _answered(
    campaign: Campaign, question: NumbersQuestion, progress: Progress
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """The fields of a snapshot that answers a question."""
    started = perf_counter()
    chosen = chosen_runs(campaign, question)
    found = cells.question_table(campaign, question, chosen)
    table = replace(found, rows=list(found.rows))
    content = cells.measured_cells(table, question, scales=ratings.scales(campaign), progress=progress)
    content |= {
        "question": question.as_json,
        "query": question.query,
        "counts": cells.counted_table(table),
        "left_out": cells.excluded_scores(campaign, question),
        "judges": _judges(campaign, chosen),
    }
    fields = {
        "content": content,
        "inputs_digest": _digest(files.pieces(table, "csv")),
        "seed": question.seed,
        "seconds": perf_counter() - started,
    }
    return fields, []


def _judges(campaign: Campaign, chosen: list[JudgeRun]) -> list[dict[str, Any]]:
    names = ratings.rater_names(campaign, chosen)
    return [
        {"name": names[run.pk], "judge": run.judge_id, "run": run.pk, "simulated": run.judge.simulated}
        for run in chosen
    ]


def _described(campaign: Campaign, chosen: list[JudgeRun], settings: Settings) -> dict[str, Any]:
    return {
        "items": Item.objects.of(campaign.dataset).count(),
        "not_blind": ratings.not_blind(campaign, settings.raters),
        "judges": _judges(campaign, chosen),
    }


def _digest(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _store(key: dict[str, Any], fields: dict[str, Any], drawn: list[dict[str, str]]) -> Snapshot:
    """Two workers may have computed the same: one of them is stored."""
    with transaction.atomic():
        stored, is_new = Snapshot.objects.get_or_create(**key, defaults=fields)
        if is_new:
            Chart.objects.bulk_create(Chart(snapshot=stored, **each) for each in drawn)
    same = Snapshot.objects.filter(campaign=stored.campaign_id, settings_digest=stored.settings_digest)
    surplus = list(same.values_list("pk", flat=True)[KEPT:])
    if "question" in stored.content:
        answers = Snapshot.objects.filter(campaign=stored.campaign_id, content__has_key="question")
        surplus += answers.values_list("pk", flat=True)[KEPT_ANSWERS:]
    Snapshot.objects.filter(pk__in=surplus).delete()
    return stored


# --- from a ratings table to estimates as plain values; pandas and scipy are loaded by these functions ---------------
AGREEMENT = ("percent_agreement", "fleiss_kappa", "krippendorff_alpha", "gwet_ac")
CALIBRATION = ("mae", "bias", "cohen_kappa", "spearman")
LABELS = ("cohen_kappa", "accuracy", "f1", "precision", "recall")
"""A judge against the panel on a nominal criterion; the last three for each point of the scale."""

# The one variant of a statistic that is kept, by the criterion's level of measurement.
VARIANTS = {
    "fleiss_kappa": {"nominal": "unequal", "ordinal": "unequal", "interval": "unequal"},
    "gwet_ac": {"nominal": "identity", "ordinal": "ordinal", "interval": "quadratic"},
    "cohen_kappa": {"nominal": "unweighted", "ordinal": "quadratic", "interval": "quadratic"},
}
REPEATS = ("repeat_sd", "flip_rate")
ALL_LANGUAGES = ("criterion",)
EACH_LANGUAGE = ("language", "criterion")


def measured_content(
    frame: pd.DataFrame,
    *,
    scales: Mapping[str, Scale],
    bootstrap: int,
    confidence: float,
    seed: int,
    reference: str = "",
    progress: Progress = _unheard,
) -> dict[str, Any]:
    """Languages, counts and estimates of a ratings table: by criterion and language, and over all languages together.

    Criteria are never pooled. `reference`: one of `RULES`. An estimate is its row without what is None.
    """
    from analytics.stats.core.validation import ratings_table

    table = ratings_table(frame, scales=scales)
    how = {"bootstrap": bootstrap, "confidence": confidence, "seed": seed}
    languages = sorted(table.frame["language"].dropna().unique())
    estimates = list(_estimates(table, languages, how, reference, progress))
    return {
        "languages": languages,
        "rated": rated_counts(table),
        "counts": [row for by in _groupings(languages) for row in counts_of(table, by)],
        "estimates": [_plain(each) for each in estimates if _is_kept(each)],
    }


def rated_counts(table: RatingsTable) -> dict[str, int]:
    """How many items the panels scored, by how many people, how often."""
    scored = table.annotators().frame
    scored = scored[scored["applicable"] & ~scored["missing"]]
    return {
        "items": int(scored["item_key"].nunique()),
        "raters": int(scored["rater"].nunique()),
        "ratings": len(scored),
        "verdicts": int((table.frame["rater_kind"] == "judge").sum()),
    }


def _groupings(languages: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Each language, and all of them together where there are several."""
    return (EACH_LANGUAGE, ALL_LANGUAGES) if len(languages) > 1 else (EACH_LANGUAGE,)


def _estimates(
    table: RatingsTable, languages: Sequence[str], how: dict[str, Any], reference: str, progress: Progress
) -> Iterator[CellEstimate]:
    from analytics.stats.agreement import among_raters
    from analytics.stats.judge import corrected_means

    judges = sorted(table.frame.loc[table.frame["rater_kind"] == "judge", "rater"].unique())
    groupings = _groupings(languages)
    done, total = 0, len(groupings) * (1 + len(judges))
    for by in groupings:
        yield from among_raters.agreement_report(table, by=by, statistics=AGREEMENT, **how)
        progress(done := done + 1, total)
        for judge in judges:
            yield from _calibration(table, judge, reference, {"by": by, **how})
            progress(done := done + 1, total)
        yield from _descriptions(table, judges, by)
    yield from corrected_means.means_report(table, confidence=how["confidence"])


def _descriptions(table: RatingsTable, judges: Sequence[str], by: Sequence[str]) -> Iterator[CellEstimate]:
    """What needs no comparison: the share of each point, classes of agreement, and how far a judge's repeats differ."""
    from analytics.stats.judge import panel, soundness

    yield from panel.score_share_report(table, by=by)
    classes = panel.agreement_class_report(table.annotators(), by=by)
    yield from (row for row in classes if row.estimate.statistic == "class_share" and row.estimate.is_defined)
    frame = table.frame
    for judge in judges:
        if (frame["repeat"] != frame["first_repeat"])[(frame["rater"] == judge).to_numpy()].any():
            audits = soundness.audit_report(table.only(rater=[judge]), judge=judge, by=by)
            yield from (row for row in audits if row.estimate.statistic in REPEATS)


def _calibration(table: RatingsTable, judge: str, reference: str, how: dict[str, Any]) -> Iterator[CellEstimate]:
    """One judge against the panel: labels where a criterion is nominal, else distances and ranks."""
    from analytics.stats.judge import calibration

    nominal = [key for key in table.frame["criterion"].unique() if table.scales[key].level == "nominal"]
    for part, statistics in (
        (table.only(criterion=nominal), LABELS),
        (table.only(criterion=[key for key in table.scales if key not in nominal]), CALIBRATION),
    ):
        rule, ties = RULES["mode" if statistics is LABELS and reference in NEEDS_ORDER else reference]
        yield from calibration.calibration_report(
            part, judge=judge, reference=rule, ties=ties, statistics=(*statistics, *calibration.COUNTS), **how
        )


def _is_kept(each: CellEstimate) -> bool:
    estimate = each.estimate
    variants = VARIANTS.get(estimate.statistic)
    return variants is None or estimate.variant == variants.get(estimate.level or "")


def _plain(each: CellEstimate) -> dict[str, Any]:
    return {name: value for name, value in each.as_row().items() if value is not None}


def counts_of(table: RatingsTable, by: Sequence[str]) -> list[dict[str, Any]]:
    """What a cell holds: items, raters, ratings, missing, N/A, off the scale; for the panel and for each judge."""
    frame = table.frame.assign(judge=table.frame["rater"].where(table.frame["rater_kind"] == "judge", ""))
    first = frame[frame["repeat"] == frame["first_repeat"]]
    keys = [*by, "judge"]
    return [
        dict(zip(keys, (str(part) for part in key), strict=True)) | _counted(cell)
        for key, cell in first.groupby(keys, sort=True, observed=True)
    ]


def _counted(cell: pd.DataFrame) -> dict[str, Any]:
    reasons = cell["missing_reason"].dropna()
    given = cell["applicable"] & ~cell["missing"] & ~cell["out_of_range"]
    return {
        "items": int(cell.loc[given, "item_key"].nunique()),
        "raters": int(cell.loc[given, "rater"].nunique()),
        "ratings": int(given.sum()),
        "missing": int(cell["missing"].sum()),
        "not_applicable": int((~cell["applicable"]).sum()),
        "reasons": {str(reason): int(number) for reason, number in reasons.value_counts().sort_index().items()},
    }
