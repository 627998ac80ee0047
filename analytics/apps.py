from collections.abc import Callable, Iterator
from typing import Any

from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    """Registers what lower apps call. The modules that do it are imported when it is called: commands start sooner."""

    name = "analytics"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts import jobs, removal
        from analytics.models import BY_WORKER

        jobs.kinds_of_apps.append(_job_kinds)
        jobs.cleanings.append(_clear_transfers)
        removal.computed.append(_delete_figures)
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


def _report_pieces(export: Any, tell: Callable[[int, int], None]) -> Iterator[bytes]:
    from analytics import reports

    return reports.report_pieces(export, tell)


def _recomputation_pieces(export: Any, tell: Callable[[int, int], None]) -> Iterator[bytes]:
    from analytics import reports

    return reports.recomputation_pieces(export, tell)
