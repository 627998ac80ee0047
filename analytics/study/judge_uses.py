"""What one judge may be used for, campaign by campaign, from the decisions that are stored: nothing is computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import get_language

from accounts import languages
from accounts.models import User
from analytics.answer_pages import criterion_names
from analytics.answers import snapshots
from analytics.judges import decisions
from analytics.judges.reasons import CellDecision
from analytics.judges.thresholds import current_thresholds
from analytics.models import GateDecision, GateThresholds
from analytics.study import pictures
from analytics.study.choice import StudyChoice
from analytics.study.findings import Names
from analytics.study.pictures import Square
from annotation.models import Campaign
from judging.models import Judge, JudgeRun


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignUses:
    """A campaign with what a judge may be used for in it, since `decided_at`; no squares if that is not decided.

    `name`: that of the judge in this campaign. `is_stale`: whether they must be decided again. `letters` and names of
    the criteria; `languages`: their tags, names and squares.
    """

    campaign: Campaign
    name: str
    decided_at: datetime | None
    is_stale: bool
    letters: Sequence[tuple[str, str]]
    languages: Sequence[tuple[str, str, list[Square]]]

    def page(self, name: str) -> str:
        """The address of a page of the campaign with this judge chosen in its bar."""
        here = reverse(name, args=[self.campaign.project.slug, self.campaign.pk])
        return f"{here}?{urlencode({'judge': self.name})}"

    @property
    def pages(self) -> dict[str, str]:
        """The pages about the judge, by what links are called in the template."""
        named = {"study": "study", "decisions": "judge_decisions", "calibration": "numbers_calibration",
                 "audits": "judge_audits", "comparison": "numbers_comparison"}  # fmt: skip
        return {link: self.page(name) for link, name in named.items()}


@dataclass(frozen=True, slots=True)
class JudgeUses:
    """The campaigns of a judge, the newest first, and the uses that occur in them, from the widest: value and name."""

    thresholds: GateThresholds | None
    campaigns: Sequence[CampaignUses]
    uses: Sequence[tuple[str, str]]
    is_uncertain_somewhere: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecisions:
    """The decisions on a judge in a campaign that are stored, if there are any, and since when.

    `is_stale`: whether it was decided, and must be decided again.
    """

    cells: Sequence[CellDecision]
    decided_at: datetime | None
    is_stale: bool


def judge_uses(judge: Judge, user: User) -> JudgeUses:
    """Every campaign in which the judge has a run or a decision. However many there are, the queries are as many."""
    thresholds = current_thresholds(judge.project)
    about = {"rubric_version": OuterRef("rubric_version"), "dataset__wholes": OuterRef("dataset")}
    asked = Exists(JudgeRun.objects.ordinary().filter(judge=judge, **about))
    recorded = Exists(GateDecision.objects.filter(judge=judge, campaign=OuterRef("pk")))
    visible = Campaign.objects.visible_to(user).filter(project=judge.project_id)
    whole = visible.select_related("project", "rubric_version__rubric").prefetch_related("rubric_version__criteria")
    listed = list(whole.annotate(asked=asked, recorded=recorded).order_by("-pk"))
    decided = {campaign.pk: own for campaign, own in _stored_decisions(judge, listed, thresholds)}
    found = [
        _campaign_uses(campaign, judge, decided[campaign.pk])
        for campaign in listed
        if decided[campaign.pk].cells or campaign.asked or campaign.recorded
    ]
    cells = [cell for own in decided.values() for cell in own.cells]
    occurring = {cell.use for cell in cells}
    uses = [(use.value, str(GateDecision.Use(use).label)) for use in decisions.ORDER if use in occurring]
    return JudgeUses(thresholds, found, uses, any(cell.state == "not_certain" for cell in cells))


def _stored_decisions(
    judge: Judge, campaigns: Sequence[Any], thresholds: GateThresholds | None
) -> Iterator[tuple[Campaign, StoredDecisions]]:
    """By campaign, the decisions on the judge as the page Decisions has them: the current ones, or else the newest.

    Those on criteria that the campaign's version of the rubric does not have are left out: a version was changed.
    """
    settings = decisions.settings_of(thresholds) if thresholds else None
    stored = snapshots.current_snapshots(campaigns, settings) if settings else {}
    for campaign in campaigns:
        snapshot, is_stale = stored.get(campaign.pk, (None, True))
        rows = [row for row in snapshot.content["decisions"] if row["judge_id"] == judge.pk] if snapshot else []
        keys = {criterion.key for criterion in campaign.rubric_version.criteria.all()}
        cells = [CellDecision(row, thresholds) for row in rows if row["criterion"] in keys] if thresholds else []
        yield (
            campaign,
            StoredDecisions(
                cells=cells,
                decided_at=snapshot.created_at if snapshot and cells else None,
                is_stale=is_stale and bool(rows or campaign.recorded),
            ),
        )


def _campaign_uses(campaign: Campaign, judge: Judge, decided: StoredDecisions) -> CampaignUses:
    spoken, criteria = get_language(), criterion_names(campaign)
    names = Names(lambda key: criteria.get(key, key), lambda tag: languages.name_for(tag, spoken))
    letters, by_language = pictures.initials(criteria), defaultdict[str, list[Square]](list)
    order = list(criteria)
    for cell in sorted(decided.cells, key=lambda cell: order.index(cell.row["criterion"])):
        key, tag = cell.row["criterion"], cell.row["language"]
        choice = StudyChoice(judge=cell.row["judge"], criterion=key, cell=tag)
        square = pictures.decision_square(cell, letters=letters[key], name=names.cell(key, tag), query=choice.query)
        by_language[tag].append(square)
    known = {cell.row["criterion"] for cell in decided.cells}
    return CampaignUses(
        campaign=campaign,
        name=decided.cells[0].row["judge"] if decided.cells else judge.name.strip(),
        decided_at=decided.decided_at,
        is_stale=decided.is_stale,
        letters=[(letters[key], name) for key, name in criteria.items() if key in known],
        languages=[
            (tag, languages.name_for(tag, spoken), by_language[tag])
            for tag in languages.in_name_order(by_language, spoken)
        ],
    )
