"""What is open in a campaign, whom it waits for, and on which page it is dealt with.

The page Study and the first page of a project both show this list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.urls import reverse
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from accounts import languages
from accounts.models import Project
from analytics import answer_pages, disagreements, workload
from analytics.answer_pages import criterion_names
from analytics.figures import listed
from analytics.judges.reasons import CellDecision
from analytics.models import GateDecision, Snapshot
from analytics.questions.asked import question_of
from annotation import campaigns, rubrics
from annotation.desk import threads
from annotation.models import Annotator, Assignment, Campaign, ControlPause, ItemQuestion, Skip
from annotation.readers import rubric_from_dict
from judging import runs
from judging.models import JudgeRun

NAMED = 6
"""People and cells that a sentence names; the others are counted."""
Use = GateDecision.Use


@dataclass(frozen=True, slots=True)
class Attention:
    """Something that waits for a person, and the page on which it is dealt with."""

    sentence: str
    address: str


@dataclass(frozen=True, slots=True)
class DecidedCell:
    """What one judge may be used for, as far as it makes work: from a stored answer or from the history."""

    judge: str
    criterion: str
    language: str
    use: str

    @classmethod
    def of(cls, cell: CellDecision) -> DecidedCell:
        """From the current decisions."""
        return cls(cell.row["judge"], cell.row["criterion"], cell.row["language"], cell.use)

    @classmethod
    def of_history(cls, row: GateDecision) -> DecidedCell:
        """From the decision that was recorded last."""
        return cls(row.judge.name, row.criterion, row.language, row.decision)


def open_work(
    campaign: Campaign,
    decided: Sequence[DecidedCell],
    *,
    is_lead: bool,
    with_names: bool = True,
    with_runs: bool = True,
) -> list[Attention]:
    """Everything open, what blocks the others first.

    `with_names`: for leads, also the names of people. `with_runs`: also the runs of judges on its items that are
    paused; the first page of the project counts those of all datasets itself.
    """
    own_runs = JudgeRun.objects.filter(dataset=campaign.dataset, rubric_version=campaign.rubric_version)
    return [
        *_stale(campaign, decided),
        *_paused(campaign),
        *_assignments(campaign, is_lead=is_lead, with_names=is_lead and with_names),
        *(paused_runs(campaign.project, own_runs) if with_runs else ()),
        *_notes(campaign),
        *_disputed(campaign),
        *_rubric(campaign, decided),
        *(_severe(campaign) if is_lead else ()),
    ]


def waits_for_a_lead() -> Q:
    """Campaigns with annotators whom controls paused, notes of skipped items, or questions without an answer."""
    here = {"duty__campaign": OuterRef("pk")}
    noted = Q(**here) | Q(duty__campaign__qualification_of=OuterRef("pk"))
    return (
        Q(Exists(ControlPause.objects.filter(**here, reinstated_at=None)))
        | Q(Exists(Skip.objects.filter(noted, resolved_at=None).exclude(note="")))
        | Q(Exists(ItemQuestion.objects.filter(**here, answered_at=None)))
    )


def work_of_leads(campaign: Campaign) -> list[Attention]:
    """What `waits_for_a_lead` finds, of one campaign."""
    return [*_paused(campaign), *_notes(campaign)]


def named(names: Sequence[str]) -> str:
    """Up to `NAMED` names, and how many more there are."""
    more = len(names) - NAMED
    return listed([*names[:NAMED], ngettext("%d more", "%d more", more) % more] if more > 0 else list(names))


def _stale(campaign: Campaign, decided: Sequence[DecidedCell]) -> Iterator[Attention]:
    """Judges that must be measured again, each with its own page of decisions."""
    for judge in sorted({cell.judge for cell in decided if cell.use == Use.STALE}):
        here = reverse("judge_decisions", args=[campaign.project.slug, campaign.pk])
        text = _("Measure %(judge)s again.")
        yield Attention(text % {"judge": judge}, f"{here}?{urlencode({'judge': judge})}")


def _assignments(campaign: Campaign, *, is_lead: bool, with_names: bool) -> Iterator[Attention]:
    """Assignments that nobody has submitted yet, and whom they wait for."""
    waiting = Assignment.objects.filter(duty__campaign=campaign, duty__stands_for=None)
    waiting = waiting.exclude(state=Assignment.State.SUBMITTED)
    by_duty = dict(waiting.order_by().values_list("duty__name").annotate(n=Count("pk")))
    if not (count := sum(by_duty.values())):
        return
    address = reverse("workload" if is_lead else "campaign", args=[campaign.project.slug, campaign.pk])
    text = ngettext("%(n)d open assignment: %(whom)s.", "%(n)d open assignments: %(whom)s.", count)
    whom = named([f"{name} {n}" for name, n in open_by_person(campaign, with_names=with_names)])
    yield Attention(text % {"n": count, "whom": whom or named(sorted(by_duty))}, address)


def open_by_person(campaign: Campaign, *, with_names: bool) -> list[tuple[str, int]]:
    """By pseudonym, for leads with the name behind it, how many of the open assignments the person may rate."""
    totals = Counter[int]()
    for by_annotator in workload.open_items(campaign).values():
        totals.update(by_annotator)
    people = {person.pk: person for person in Annotator.objects.filter(pk__in=totals).select_related("user")}
    return [(person_name(people[pk], with_name=with_names), n) for pk, n in totals.most_common()]


def person_name(annotator: Annotator, *, with_name: bool) -> str:
    """The pseudonym; for leads, who give people their seats, the name behind it, too."""
    if not with_name or annotator.user is None:
        return annotator.pseudonym
    return f"{annotator.pseudonym} ({annotator.user.name})"


def _paused(campaign: Campaign) -> Iterator[Attention]:
    stopped = ControlPause.objects.filter(duty__campaign=campaign, reinstated_at=None).count()
    if stopped:
        text = ngettext("Controls paused %d annotator.", "Controls paused %d annotators.", stopped)
        yield Attention(text % stopped, reverse("campaign", args=[campaign.project.slug, campaign.pk]))


def paused_runs(project: Project, judge_runs: QuerySet[JudgeRun]) -> Iterator[Attention]:
    """How many of these runs are paused."""
    if paused := runs.in_phase(judge_runs, runs.Phase.PAUSED).count():
        text = ngettext("%d judge run is paused.", "%d judge runs are paused.", paused)
        yield Attention(text % paused, reverse("judges", args=[project.slug]))


def _notes(campaign: Campaign) -> Iterator[Attention]:
    """Items that were skipped with a note, and questions without an answer."""
    slug = campaign.project.slug
    skipped = campaigns.skips(campaign).filter(resolved_at=None).exclude(note="")
    if count := skipped.order_by().values("item").distinct().count():
        text = ngettext("%d item was skipped with a note.", "%d items were skipped with a note.", count)
        yield Attention(text % count, reverse("campaign", args=[slug, campaign.pk]))
    asked = threads.open_questions(campaign.project).filter(duty__campaign=campaign).count()
    if asked:
        text = ngettext("%d question of an annotator is open.", "%d questions of annotators are open.", asked)
        yield Attention(text % asked, reverse("annotator_questions", args=[slug, campaign.pk]))


def _disputed(campaign: Campaign) -> Iterator[Attention]:
    """Items on which raters differ and nobody has decided; not in a campaign whose items take long to compare."""
    options = disagreements.queue_options(campaign)
    if options.is_large or not options.criteria:
        return
    if count := disagreements.count_open(campaign, disagreements.chosen_queue(options, {})):
        text = ngettext("%d disputed item.", "%d disputed items.", count)
        yield Attention(text % count, reverse("adjudication", args=[campaign.project.slug, campaign.pk]))


def _rubric(campaign: Campaign, decided: Sequence[DecidedCell]) -> Iterator[Attention]:
    """Criteria on which people agree hardly more than by chance, and translations that nobody has reviewed."""
    version = campaign.rubric_version
    address = reverse("rubric_version", args=[campaign.project.slug, version.rubric.key, version.number])
    names = criterion_names(campaign)
    problems = sorted({(cell.criterion, cell.language) for cell in decided if cell.use == Use.RUBRIC_PROBLEM})
    if problems:
        cells = [
            _("%(criterion)s in %(language)s")
            % {"criterion": names.get(key, key), "language": languages.name_for(tag, get_language())}
            for key, tag in problems
        ]
        yield Attention(_("Repair the rubric: %s.") % named(cells), address)
    counts = rubrics.translation_counts(rubric_from_dict(version.document))
    if drafts := sum(count.draft + count.stale for count in counts):
        text = ngettext("%d unreviewed rubric translation.", "%d unreviewed rubric translations.", drafts)
        yield Attention(text % drafts, address)


def _severe(campaign: Campaign) -> Iterator[Attention]:
    """Raters whose scores clearly differ from the others', from the stored answer."""
    question = question_of(workload.severity_question(campaign))
    snapshot, _is_stale = answer_pages.current_answer(campaign, question)
    flags: dict[str, Any] = (
        workload.severity_flags(snapshot.content["estimates"]) if isinstance(snapshot, Snapshot) else {}
    )
    if flags:
        text = _("Severity differs: %s.")
        yield Attention(text % named(sorted(flags)), reverse("workload", args=[campaign.project.slug, campaign.pk]))
