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
    from contextlib import suppress

    from django.http import QueryDict

    from accounts.refusals import Refused
    from analytics.questions.asked import question_choices
    from analytics.questions.plan import chosen_runs
    from analytics.questions.question import NumbersQuestion
    from analytics.views import audits
    from analytics.views.agreement import AGREEMENT
    from analytics.views.calibration import CALIBRATION
    from analytics.views.comparison import chosen_comparison
    from analytics.views.planner import PLANNER
    from analytics.views.rater_models import RATER_MODELS
    from analytics.views.workload import ANNOTATORS
    from analytics.workflow import campaign_workflow

    choices = question_choices(campaign)
    pages = (AGREEMENT, CALIBRATION, PLANNER, ANNOTATORS, RATER_MODELS)
    of_pages: list[Settings] = [each for page in pages for each in page.usual_questions(campaign, choices)]
    if chosen_runs(campaign, NumbersQuestion()):
        of_pages.append(audits.QUESTION)
        with suppress(Refused):  # the page says why
            of_pages.append(chosen_comparison(campaign, QueryDict()).question)
    return [*campaign_workflow(campaign, choices=choices).stale, *of_pages, NumbersQuestion()]


def _report_pieces(export: Any, tell: Callable[[int, int], None]) -> Iterator[bytes]:
    from analytics import reports

    return reports.report_pieces(export, tell)


def _recomputation_pieces(export: Any, tell: Callable[[int, int], None]) -> Iterator[bytes]:
    from analytics import reports

    return reports.recomputation_pieces(export, tell)
