from typing import Any

from django.apps import AppConfig


class JudgingConfig(AppConfig):
    """Registers what lower apps call. The modules that do it are imported when it is called: commands start sooner."""

    name = "judging"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts import deletion, jobs, people, removal
        from judging.asking import budgets, sharing

        jobs.kinds_of_apps.append(_job_kinds)
        removal.redactions.insert(0, _redact_proposals)  # must run before the rationales are emptied: it looks for them
        removal.redactions.append(_redact_decisions)
        people.stops.extend((_pause_all, _pause_plans))
        jobs.cleanings.append(_clear_failed)
        deletion.contents.append(_contents)
        budgets.register("calls", _paid_calls)
        budgets.register("trials", _paid_trials)
        budgets.register("proposals", _paid_proposals)
        budgets.register("texts", _paid_texts)
        sharing.register_rows("calls", _call_rows)
        sharing.register_rows("texts", _text_rows)
        sharing.register_rows("conversations", _conversation_rows)


def _job_kinds() -> dict[str, Any]:
    from accounts.models import Job
    from judging import batches
    from judging.generation import storing
    from judging.versions import proposals

    return {
        Job.Kind.TEXTS: storing.KIND,
        Job.Kind.PROPOSAL: proposals.KIND,
        Job.Kind.SEARCH: proposals.SEARCH_KIND,
        Job.Kind.CALLS: batches.KIND,
    }


def _redact_proposals(user: Any, project: Any) -> None:
    from judging.versions import proposals

    proposals.redact_proposals(user, project)


def _redact_decisions(user: Any, project: Any) -> None:
    from judging.generation import decisions

    decisions.redact_decisions(user, project)


def _pause_plans(project: Any, reason: str) -> None:
    from judging.generation import plans

    plans.pause_plans(project, reason)


def _pause_all(project: Any, reason: str) -> None:
    from judging import runs

    runs.pause_all(project, reason)


def _clear_failed() -> None:
    from judging.imports import studies

    studies.clear_failed()


def _contents(project: Any) -> Any:
    from judging import runs

    return runs.judging_contents(project)


def _paid_calls() -> Any:
    from judging import runs

    return runs.PaidCalls()


def _paid_proposals() -> Any:
    from judging.versions import proposals

    return proposals.PaidProposals()


def _paid_trials() -> Any:
    from judging import trials

    return trials.PaidTrials()


def _paid_texts() -> Any:
    from judging.generation import writing

    return writing.PaidTexts()


def _call_rows() -> Any:
    from judging.calls import CALLS

    return CALLS


def _text_rows() -> Any:
    from judging.generation.writing import TEXTS

    return TEXTS


def _conversation_rows() -> Any:
    from judging.generation.conversing import CONVERSATIONS

    return CONVERSATIONS
