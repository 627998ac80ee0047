from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    name = "analytics"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts import jobs
        from analytics import computing, exports, reports, snapshots, transfers
        from annotation import panels

        jobs.KINDS.update(transfers.KINDS)
        jobs.KINDS.update(computing.KINDS)
        exports.BY_WORKER["report"] = reports.report_pieces
        exports.BY_WORKER["recomputation"] = reports.recomputation_pieces
        if transfers.clear not in jobs.cleanings:
            jobs.cleanings.append(transfers.clear)
        if snapshots.delete_figures not in panels.computed:
            panels.computed.append(snapshots.delete_figures)
