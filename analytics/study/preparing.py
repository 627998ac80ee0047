"""Which campaigns have settled, and which answers their pages lack: a worker computes them before somebody asks."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.core.cache import caches
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from analytics.answers import revisions, snapshots
from analytics.models import Snapshot
from analytics.questions.question import DEFAULT_SETTINGS, Settings
from analytics.study.campaign_pictures import CampaignPictures
from analytics.study.choice import StudyChoice
from analytics.study.study import CampaignStudy
from analytics.study.usual_questions import USUAL_QUESTIONS
from annotation.models import Annotation, Campaign
from judging import runs
from judging.models import JudgeRun

SETTLED, RECENTLY = timedelta(minutes=2), timedelta(days=2)
"""How old the last rating of the desk is, and at most the numbers over all raters, when the answers are prepared."""


def settled_campaigns(now: datetime | None = None) -> list[Campaign]:
    """The open campaigns whose numbers over all raters are current and at most `RECENTLY` old.

    People who rate at the desk and judges that are being run send more soon: then the numbers must be `SETTLED` old.
    After an import they need not.
    Those that `mark_as_prepared` was called for in this state are left out.
    """
    now = now or timezone.now()
    rated = Annotation.objects.filter(campaign=OuterRef("campaign"), file_import=None, submitted_at__gt=now - SETTLED)
    judged = JudgeRun.objects.filter(
        dataset=OuterRef("campaign__dataset"), rubric_version=OuterRef("campaign__rubric_version")
    )
    stored = Snapshot.objects.filter(
        Q(created_at__lte=now - SETTLED) | ~Exists(rated) & ~Exists(runs.in_phase(judged, runs.Phase.RUNNING)),
        **revisions.settings_identity(DEFAULT_SETTINGS),
        created_at__gt=now - RECENTLY,
        campaign__project__archived_at=None,
    ).exclude(campaign__state=Campaign.State.CLOSED)
    newest = dict(stored.order_by("pk").values_list("campaign", "revision"))
    current = revisions.campaign_revisions(newest.keys())
    prepared = caches["content"].get_many([_prepared_key(pk) for pk in newest])
    wanted = [pk for pk, found in newest.items() if found == current.get(pk) != prepared.get(_prepared_key(pk))]
    return list(Campaign.objects.filter(pk__in=wanted).select_related("project", "dataset", "rubric_version__rubric"))


def _prepared_key(campaign: int) -> str:
    return f"study-prepared:{campaign}"


def mark_as_prepared(campaign: Campaign) -> None:
    """Remember that the study of a campaign needs nothing more in its current state."""
    revision = revisions.campaign_revisions([campaign.pk])[campaign.pk]
    caches["content"].set(_prepared_key(campaign.pk), revision, RECENTLY.total_seconds())


def study_lacks(campaign: Campaign) -> list[Settings]:
    """The answers that the study without a choice needs and that are not stored."""
    study = CampaignStudy(campaign, StudyChoice(), is_lead=False)
    pictures = CampaignPictures(study)
    _needed = study.findings, pictures.dots, pictures.forest
    return list(study.stale)


def stale_questions(campaign: Campaign) -> list[Settings]:
    """The answers that a worker has to compute: those of the study without a choice, then those of other pages."""
    further = [question for ask in USUAL_QUESTIONS for question in ask(campaign)]
    return [
        *study_lacks(campaign),
        *(each for each in further if snapshots.current_snapshot(campaign=campaign, settings=each)[1]),
    ]
