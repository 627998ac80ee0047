from django.apps import AppConfig


class JudgingConfig(AppConfig):
    name = "judging"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts import jobs, people, removal
        from accounts.models import Job
        from judging import batches, proposals
        from judging.imports.studies import clear_failed
        from judging.runs import judging_contents, pause_all

        jobs.KINDS |= {
            Job.Kind.PROPOSAL: proposals.KIND,
            Job.Kind.SEARCH: proposals.SEARCH_KIND,
            Job.Kind.CALLS: batches.KIND,
        }
        if proposals.redact_proposals not in removal.redactions:
            removal.redactions.insert(0, proposals.redact_proposals)  # before the reasons are emptied
        if pause_all not in people.stops:
            people.stops.append(pause_all)
        if clear_failed not in jobs.cleanings:
            jobs.cleanings.append(clear_failed)
        if judging_contents not in removal.contents:
            removal.contents.append(judging_contents)
