"""The closing questionnaire: how hard annotators found each criterion, and how sure they were of their scores.

Answers are voluntary and sent once. A lead reads them by criterion and language, for five people or more together.
They are added five people at a time, so that two looks never differ by the answers of one person.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from accounts.refusals import Refused
from annotation.desk import leasing, presentation
from annotation.desk.leasing import DeskDuty
from annotation.models import Annotation, Annotator, Campaign, ClosingAnswer, Criterion, Duty, PanelSeat, Rating

T = TypeVar("T")
FEWEST_PEOPLE = 5
"""The smallest group whose answers are shown, and how many are added at a time."""
SCALE = range(1, 6)
LONGEST_COMMENT = 2000
SHEET = (
    "criterion", "language", "people", *(f"difficulty_{point}" for point in SCALE), "mean_difficulty",
    *(f"confidence_{point}" for point in SCALE), "mean_confidence",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PointCounts:
    """How many people chose each point from 1 to 5."""

    counts: tuple[int, ...]

    @property
    def people(self) -> int:
        return sum(self.counts)

    @property
    def mean(self) -> float | None:
        chosen = sum(point * count for point, count in zip(SCALE, self.counts, strict=True))
        return chosen / self.people if self.people else None


@dataclass(frozen=True, slots=True)
class CriterionDifficulty:
    """What a group answered about one criterion; None where fewer than `FEWEST_PEOPLE` answered.

    `language`: "" where languages with few people are put together.
    """

    criterion: Criterion
    language: str
    difficulty: PointCounts | None
    confidence: PointCounts | None


@dataclass(frozen=True, slots=True)
class ClosingResults:
    """`answered` of `people` who scored have answered; `waiting` of the answers are not shown yet."""

    is_asked: bool
    people: int
    answered: int
    waiting: int
    rows: tuple[CriterionDifficulty, ...]
    comments: tuple[str, ...]

    @property
    def hardest(self) -> list[CriterionDifficulty]:
        """The rows with a difficulty, the hardest first."""
        known = [row for row in self.rows if row.difficulty]
        return sorted(known, key=lambda row: -(row.difficulty.mean or 0.0) if row.difficulty else 0.0)


def switch_questionnaire(*, campaign: Campaign, asked: bool, actor: User | None = None) -> bool:
    """Switch the closing questionnaire of a campaign on or off; answers are kept. False if nothing changed."""
    with transaction.atomic():
        changed = Campaign.objects.filter(pk=campaign.pk, asks_at_close=not asked).update(asks_at_close=asked)
        if changed:
            audit.record(actor=actor, project=campaign.project, verb="switch questionnaire", subject=campaign)
    campaign.asks_at_close = asked
    return bool(changed)


# --- for annotators --------------------------------------------------------------------------------------------------
def questionnaires_due(user: User, listed: Sequence[DeskDuty]) -> list[Duty]:
    """One duty of each campaign whose closing questions the user may answer now. ``listed``: `leasing.duties`."""
    own = Annotation.objects.filter(campaign=OuterRef("campaign"), annotator__user=user, superseded_at=None)
    answered = ClosingAnswer.objects.filter(campaign=OuterRef("campaign"), annotator__user=user)
    asked = leasing.seated_duties(user).filter(Exists(own), ~Exists(answered), campaign__asks_at_close=True)
    unfinished = {one.pk for one in listed if one.left or one.has_open_item}
    now = timezone.now()
    waiting: set[int] = set()
    due: dict[int, Duty] = {}
    for duty in asked.select_related("campaign").order_by("pk"):
        is_over = duty.due_at is not None and duty.due_at < now
        if duty.pk in unfinished and not is_over:
            waiting.add(duty.campaign_id)
        due.setdefault(duty.campaign_id, duty)
    return [duty for campaign, duty in due.items() if campaign not in waiting]


def is_due(user: User, campaign: Campaign) -> bool:
    """Whether the user may answer the closing questions of a campaign now."""
    due = questionnaires_due(user, leasing.duties(user))
    return campaign.pk in {one.campaign_id for one in due}


def criteria_scored(*, campaign: Campaign, annotator: Annotator) -> list[Criterion]:
    """The criteria that the annotator has rated in the campaign, in the rubric's order."""
    own = Annotation.objects.filter(campaign=campaign, annotator=annotator, superseded_at=None)
    rated = Rating.objects.filter(annotation__in=own, criterion=OuterRef("pk"))
    found = Criterion.objects.filter(Exists(rated), rubric_version=campaign.rubric_version_id)
    return list(found.order_by("position"))


def has_answered(*, campaign: Campaign, annotator: Annotator) -> bool:
    return ClosingAnswer.objects.filter(campaign=campaign, annotator=annotator).exists()


def store_closing_answer(
    *, duty: Duty, annotator: Annotator, user: User, answers: Mapping[str, Mapping[str, int | None]], comment: str
) -> ClosingAnswer:
    """Store what the user answered, once. ``duty`` and ``annotator``: of `leasing.duty_and_annotator`.

    Raises ``Refused``: too early, answered before, nothing answered.
    """
    if has_answered(campaign=duty.campaign, annotator=annotator):
        raise Refused(_("You have answered these questions. Thank you!"), code="answered")
    if not is_due(user, duty.campaign):
        raise Refused(_("These questions open when you have finished your tasks here."), code="not_finished")
    known = {criterion.key for criterion in criteria_scored(campaign=duty.campaign, annotator=annotator)}
    kept = {
        key: {name: given.get(name) if given.get(name) in SCALE else None for name in ("difficulty", "confidence")}
        for key, given in answers.items()
        if key in known and any(point in SCALE for point in given.values())
    }
    written = comment.strip()[:LONGEST_COMMENT]
    if not kept and not written:
        raise Refused(_("Answer at least one question, or write a comment."), code="empty")
    language = _language_of(duty.campaign, annotator)
    try:
        with transaction.atomic():
            return ClosingAnswer.objects.create(
                campaign=duty.campaign, annotator=annotator, language=language, answers=kept, comment=written
            )
    except IntegrityError:  # a second click
        raise Refused(_("You have answered these questions. Thank you!"), code="answered") from None


def _language_of(campaign: Campaign, annotator: Annotator) -> str:
    seats = PanelSeat.objects.filter(annotator=annotator, panel__in=campaign.duties.values("panel"))
    languages = set(seats.values_list("panel__language", flat=True))
    return languages.pop() if len(languages) == 1 else ""


# --- for leads -------------------------------------------------------------------------------------------------------
def closing_results(campaign: Campaign) -> ClosingResults:
    """What may be shown of the answers to a campaign's questionnaire."""
    answers = list(ClosingAnswer.objects.filter(campaign=campaign).order_by("pk"))
    current = Annotation.objects.filter(campaign=campaign, superseded_at=None, assignment__isnull=False)
    criteria = list(Criterion.objects.filter(rubric_version=campaign.rubric_version_id).order_by("position"))
    groups = shown_groups(answers)
    shown = [answer for group in groups.values() for answer in group]
    rows = (
        CriterionDifficulty(
            criterion,
            language,
            counted_points(group, criterion, "difficulty"),
            counted_points(group, criterion, "confidence"),
        )
        for criterion in criteria
        for language, group in groups.items()
    )
    return ClosingResults(
        is_asked=campaign.asks_at_close,
        people=current.order_by().values("annotator").distinct().count(),
        answered=len(answers),
        waiting=len(answers) - len(shown),
        rows=tuple(row for row in rows if any(row.criterion.key in answer.answers for answer in groups[row.language])),
        comments=tuple(sorted(answer.comment for answer in shown if answer.comment)),
    )


def shown_groups(answers: Iterable[ClosingAnswer]) -> dict[str, list[ClosingAnswer]]:
    """The answers that are shown, by language: the first ones, whole fives of them; "" for the other languages."""
    by_language: dict[str, list[ClosingAnswer]] = defaultdict(list)
    for answer in answers:
        by_language[answer.language].append(answer)
    rest = [answer for language, group in by_language.items() if not _is_large(language, group) for answer in group]
    groups = {language: group for language, group in sorted(by_language.items()) if _is_large(language, group)}
    groups[""] = sorted(rest, key=lambda answer: answer.pk)
    return {name: [*whole] for name, group in groups.items() if (whole := _whole_fives(group))}


def _is_large(language: str, group: Sequence[ClosingAnswer]) -> bool:
    return bool(language) and len(group) >= FEWEST_PEOPLE


def counted_points(group: Iterable[ClosingAnswer], criterion: Criterion, name: str) -> PointCounts | None:
    """The first answers, whole fives of them: some people leave questions out. None where there are none."""
    answered = (answer.answers.get(criterion.key, {}).get(name) for answer in group)
    given = _whole_fives([point for point in answered if point in SCALE])
    return PointCounts(tuple(given.count(point) for point in SCALE)) if given else None


def _whole_fives(group: Sequence[T]) -> Sequence[T]:
    return group[: len(group) // FEWEST_PEOPLE * FEWEST_PEOPLE]


def closing_rows(results: ClosingResults) -> Iterator[tuple[Any, ...]]:
    """The rows of the CSV file under `SHEET`; empty where too few people answered."""
    for row in results.rows:
        yield (row.criterion.key, row.language, *_cells(row.difficulty, with_people=True), *_cells(row.confidence))


def _cells(counts: PointCounts | None, *, with_people: bool = False) -> tuple[Any, ...]:
    people = (counts.people if counts else "",) if with_people else ()
    if counts is None or counts.mean is None:
        return (*people, *("" for _point in SCALE), "")
    return (*people, *counts.counts, f"{counts.mean:.3f}")


def closing_statement(campaign: Campaign, most: int = 5) -> str:
    """A sentence for a data statement: the criteria that annotators found hardest; "" where nothing may be shown."""
    results = closing_results(campaign)
    hardest = [
        f"{row.criterion.key}{f' ({row.language})' if row.language else ''} {row.difficulty.mean:.1f} "
        f"from {row.difficulty.people} people"
        for row in results.hardest[:most]
        if row.difficulty
    ]
    if not hardest:
        return ""
    return (
        f"In a closing questionnaire {results.answered} annotators answered how hard criteria were to score "
        f"(1: very easy, 5: very hard). The hardest: {'; '.join(hardest)}. Groups of fewer than {FEWEST_PEOPLE} "
        "are left out."
    )


def name_of_criterion(criterion: Criterion, language: str) -> str:
    """The criterion's name in a language, or in its rubric's."""
    return criterion.says("name", presentation.text_language([criterion], language)) or criterion.key
