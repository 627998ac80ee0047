"""The questions of a report, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from analytics import answer_pages
from analytics.answer_pages import AnswerPage, Matrix
from analytics.models import Snapshot
from analytics.questions.question import NumbersQuestion
from analytics.questions.question_names import question_in_words
from annotation.models import Campaign

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ReportPart:
    """One question of a report; `name`: of its files; `about`: how its tables are read."""

    name: str
    title: str
    about: str
    question: NumbersQuestion


class AnsweredPart:
    """A part with its answer."""

    def __init__(self, part: ReportPart, page: AnswerPage, snapshot: Snapshot) -> None:
        self.part, self.page, self.snapshot = part, page, snapshot

    @property
    def counts(self) -> dict[str, int]:
        """Items, clusters, raters, scores, N/A, judges and verdicts that its figures use."""
        found: dict[str, int] = self.page.content["counts"]
        return found

    @cached_property
    def tables(self) -> list[Matrix]:
        """The tables with a value in at least one cell."""
        return [table for table in self.page.shown if any(cell.exact for cell in table.cells)]

    @property
    def reasons(self) -> list[str]:
        """The reasons why no cell has a value."""
        return sorted({cell.figure.reason for table in self.page.shown for cell in table.cells if cell.figure})[:3]

    @property
    def question_words(self) -> list[tuple[str, str]]:
        """The question in words."""
        return question_in_words(self.part.question)


def answered_parts(campaign: Campaign, parts: Sequence[ReportPart], tell: Progress) -> Iterator[AnsweredPart]:
    """Every part with its answer, stored or computed now."""
    for done, part in enumerate(parts):
        tell(done, len(parts))
        snapshot = answer_pages.answer_now(campaign, part.question)
        yield AnsweredPart(part, AnswerPage(campaign, snapshot, part.question), snapshot)
    tell(len(parts), len(parts))
