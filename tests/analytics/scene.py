"""A campaign with ratings and verdicts: what the tests of the numbers begin with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.test import Client

from analytics import tasks
from analytics.models import Computation
from analytics.questions.question import Settings
from annotation.models import Campaign
from judging.models import Judge, JudgeRun, Verdict
from tests import make
from tests.cast import Cast

LANGUAGES = ("ar", "et")
FLUENCY = {
    "mari": [0, 1, 2, 3, 3, 1, None, None, None, None, None, None],
    "jaan": [0, 1, 2, 3, 2, 1, None, None, None, None, None, None],
    "noor": [None, None, None, None, None, None, 3, 2, 1, 0, 1, 2],
    "hala": [None, None, None, None, None, None, 3, 2, 1, 1, 1, 2],
}
COHERENCE = {"mari": [1, 0, 1, 1, 0, 1] + 6 * [None], "jaan": [1, 0, 1, 0, 0, 1] + 6 * [None]}
VERDICTS = {"fluency": [1, 1, 2, 3, 2, 0, 2, 2, 1, 0, 2, 1], "coherence": 12 * [1]}


def rated_campaign(cast: Cast, *, name: str = "Round 1") -> Campaign:
    """Six scenarios in Estonian and in Arabic; two people each rate fluency, and coherence in Estonian only."""
    made = campaign_without_ratings(cast, name=name)
    make.rated(made, {"fluency": FLUENCY, "coherence": COHERENCE})
    return made


def campaign_without_ratings(cast: Cast, *, name: str = "Round 1") -> Campaign:
    """The same items, which nobody has rated."""
    items = [
        make.item_row(6 * number + scenario, language, scenario=f"s{scenario}", external_id=f"{language}-{scenario}")
        for number, language in enumerate(("et", "ar"))
        for scenario in range(6)
    ]
    return make.campaign(cast.kassa, items=items, name=name)


def with_verdicts(
    target: Campaign,
    scores: Mapping[str, Sequence[float | str | None]] = VERDICTS,
    *,
    name: str = "Kohtunik",
    simulated: bool = True,
) -> JudgeRun:
    """A finished run of the judge of that name: by criterion a score per item, a status for a verdict without one, or
    None for no verdict.
    """
    judge, _is_new = Judge.objects.get_or_create(
        project=target.project, name=name, defaults={"digest": name, "model": "m", "simulated": simulated}
    )
    run = JudgeRun.objects.create(
        project=target.project, judge=judge, dataset=target.dataset, rubric_version=target.rubric_version
    )
    criteria = {criterion.key: criterion for criterion in target.rubric_version.criteria.all()}
    Verdict.objects.bulk_create(
        Verdict(run=run, item=item, criterion=criteria[key], **_verdict(score, criteria[key].maximum))
        for key, given in scores.items()
        for item, score in zip(target.dataset.items.order_by("ordinal"), given, strict=True)
        if score is not None
    )
    return run


def _verdict(score: float | str, maximum: float) -> dict[str, Any]:
    if isinstance(score, str):
        return {"status": score, "score": None}
    return {"status": "out_of_range" if score > maximum else "ok", "score": score}


def answered(client: Client, target: Campaign, address: str) -> Any:
    """The response to an address when no worker is left with anything to do. A campaign has one computation at a time,
    so an address may have to wait for the one before it.
    """
    for _try in range(4):
        response = client.get(address)
        if not (waiting := list(Computation.objects.filter(campaign=target, job__state="waiting"))):
            break
        for computation in waiting:
            tasks.compute_numbers(computation.pk)
    return response


def compute(target: Campaign, settings: Settings | None = None) -> None:
    """Its numbers asked for, and computed as a worker does."""
    tasks.ask_to_compute(campaign=target, settings=settings)
    for computation in Computation.objects.filter(campaign=target, job__state="waiting"):
        tasks.compute_numbers(computation.pk)
