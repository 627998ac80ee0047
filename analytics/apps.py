from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from analytics.questions.question import Settings
    from annotation.models import Campaign


class AnalyticsConfig(AppConfig):
    """Registers what lower apps call. The modules that do it are imported when it is called: commands start sooner."""

    name = "analytics"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts import jobs, removal
        from analytics.models import BY_WORKER
        from analytics.study import usual_questions

        jobs.kinds_of_apps.append(_job_kinds)
        jobs.cleanings.append(_clear_transfers)
        removal.computed.append(_delete_figures)
        usual_questions.USUAL_QUESTIONS.append(_usual_questions)
        BY_WORKER.update(report=_report_pieces, recomputation=_recomputation_pieces)


def _job_kinds() -> dict[str, Any]:
    from analytics.answers import computing
    from analytics.exporting import transfers

    return transfers.KINDS | computing.KINDS


def _clear_transfers() -> None:
    from analytics.exporting import transfers

    transfers.clear()


def _delete_figures(campaigns: list[int]) -> None:
    from analytics.answers import snapshots

    snapshots.delete_figures(campaigns)


def _usual_questions(campaign: Campaign) -> list[Settings]:
    from analytics.questions.asked import question_choices
    from analytics.views.agreement import AGREEMENT
    from analytics.views.calibration import CALIBRATION
    from analytics.views.planner import PLANNER
    from analytics.workflow import campaign_workflow

    choices = question_choices(campaign)
    of_pages = [each for page in (AGREEMENT, CALIBRATION, PLANNER) for each in page.usual_questions(campaign, choices)]
    return [*campaign_workflow(campaign, choices=choices).stale, *of_pages]


def _report_pieces(export: Any, tell: Callable[[int, int], None]) -> Iterator[bytes]:
    from analytics import reports

    return reports.report_pieces(export, tell)


def _recomputation_pieces(export: Any, tell: Callable[[int, int], None]) -> Iterator[bytes]:
    from analytics import reports

    return reports.recomputation_pieces(export, tell)
