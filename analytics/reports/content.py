"""The content of a campaign's report: the answers to its questions, and the facts that a reader needs with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from django.utils import translation
from django.utils.translation import gettext as _

from accounts import languages
from accounts.models import Project
from accounts.refusals import Refused
from analytics.answer_pages import Matrix, answer_now
from analytics.exporting import hugging_face
from analytics.exporting.exports import Export
from analytics.figures import Figure, shortened
from analytics.judges import decisions
from analytics.judges.thresholds import LIMITS
from analytics.models import GateThresholds, Snapshot
from analytics.questions.asked import QuestionChoices, question_choices, question_of
from analytics.questions.plan import chosen_runs
from analytics.questions.presets import study_questions
from analytics.questions.question import NumbersQuestion
from analytics.questions.question_names import statistic_name
from analytics.questions.reference_rules import OF_LEVELS
from analytics.reports import methods
from analytics.reports.parts import AnsweredPart, ReportPart, answered_parts
from analytics.stats.declared.agreement import GWET_AC, PERCENT_AGREEMENT
from analytics.stats.declared.register import COEFFICIENTS
from analytics.study.campaign_pictures import CampaignPictures
from analytics.study.choice import StudyChoice
from analytics.study.preparing import study_lacks
from analytics.study.study import CampaignStudy
from annotation import questionnaires
from annotation.models import Campaign

LEADERBOARD = tuple(
    f"leaderboard.{name}" for name in ("panel_mean", "judge_mean", "corrected_mean", "effective_labels")
)
Progress = Callable[[int, int], None]
_CARRIED = (
    *("where", "judges", "runs", "panels", "raters", "juries", "jury_rule", "against", "cluster", "reference", "ties"),
    *("pool", "exclude", "min_seconds", "level", "blind_only", "designs", "confidence", "bootstrap", "seed"),
)
"""The settings that every table of a report copies from the question; rows, columns and statistics are not copied."""


@dataclass(frozen=True, slots=True)
class ReportLayout:
    """The question with the settings of the whole report, and the study (S0 ... S4) that gives its layout."""

    question: NumbersQuestion
    study: str = ""


@dataclass(frozen=True, slots=True)
class ThresholdsVersion:
    """One version of a project's thresholds: the values that it set or changed, and whether figures could be read
    before it.
    """

    declared: GateThresholds
    changes: tuple[tuple[str, str], ...]

    @property
    def is_late(self) -> bool:
        """Whether figures of a judge beside the panel could be read before they were declared."""
        return self.declared.figures_since is not None


@dataclass(frozen=True, slots=True)
class CampaignReport:
    """A report: its parts with their answers, and the sections around them."""

    campaign: Campaign
    layout: ReportLayout
    parts: tuple[AnsweredPart, ...]
    decided: decisions.CampaignDecisions | None
    thresholds: tuple[ThresholdsVersion, ...]
    methods: tuple[str, ...]
    references: tuple[str, ...]
    statement: tuple[str, ...]
    limits: tuple[str, ...]
    study: CampaignStudy

    @property
    def pictures(self) -> CampaignPictures:
        """The squares of the first page, and their letters."""
        return CampaignPictures(self.study)

    @property
    def title(self) -> str:
        return f"{self.campaign.project.name}: {self.campaign.name}"

    @property
    def newest(self) -> Snapshot:
        """The answer that was computed last."""
        return max((part.snapshot for part in self.parts), key=lambda each: each.created_at)

    @property
    def decision_rows(self) -> list[tuple[str, str, str, str, str, str, list[str]]]:
        """Judge, criterion, language, decision, what is not certain of it, counts and reasons of every decision."""
        names = self.parts[0].page.criteria
        return [
            (
                cell.row["judge"],
                names.get(cell.row["criterion"], cell.row["criterion"]),
                languages.english_name(cell.row["language"]) if cell.row["language"] else _("all"),
                str(cell.use.label),
                cell.why_not_certain,
                cell.basis,
                cell.reasons,
            )
            for cell in (self.decided.cells if self.decided else ())
        ]


# --- its questions ---------------------------------------------------------------------------------------------------
def asked_layout(export: Export) -> ReportLayout:
    """The layout of an export's options."""
    return ReportLayout(question_of(export.options.question), export.options.layout)


def report_parts(campaign: Campaign, layout: ReportLayout) -> list[ReportPart]:
    """The questions of a report: the questions of the study that gives its layout, or the usual questions.

    At least one.
    """
    choices = question_choices(campaign)
    if layout.study:
        parts = list(_parts_of_study(layout, choices))
        if not parts:
            sentence = _("%s asks about judges, and no judge has been run on these items. Choose another layout.")
            raise Refused(sentence % layout.study, code="unknown_choice", fields={"layout": sentence % layout.study})
        return parts
    return [*_own(layout.question), *_usual(layout.question, choices)]


def _parts_of_study(layout: ReportLayout, choices: QuestionChoices) -> Iterator[ReportPart]:
    usual = NumbersQuestion()
    for number, (study, about, question) in enumerate(study_questions(choices), start=1):
        if study == layout.study:
            settings = {name: getattr(layout.question, name) for name in _CARRIED}
            own = {name: value for name in _CARRIED if (value := getattr(question, name)) != getattr(usual, name)}
            asked = replace(question, **{**settings, **own})
            yield ReportPart(f"{study.lower()}-{number}", f"{about} ({study})", _how(asked), asked)


def _own(question: NumbersQuestion) -> Iterator[ReportPart]:
    """The question itself, if it asks for something that the usual questions do not."""
    usual = NumbersQuestion()
    if any(getattr(question, name) != getattr(usual, name) for name in ("rows", "columns", "statistics", "variants")):
        yield ReportPart("question", _("The question asked"), _how(question), question)


def _usual(question: NumbersQuestion, choices: QuestionChoices) -> Iterator[ReportPart]:
    """Agreement, judges beside the panel, human ceiling, rankings and corrected results, if the campaign has data for
    them.

    Without a reference of the question, figures of how high scores are have the panel's mean, as on pages of a judge.
    """

    def part(name: str, title: str, rows: str, columns: str, *statistics: str) -> ReportPart:
        asked = replace(question, rows=rows, columns=columns, statistics=statistics, variants=(), measures=(), goals=())
        if not question.reference and OF_LEVELS.issuperset(statistics):
            asked = replace(asked, reference="mean")
        return ReportPart(name, title, _how(asked), asked)

    coefficient = next((name for name in question.statistics if name in COEFFICIENTS), COEFFICIENTS[0])
    beside = [name for name in (GWET_AC, PERCENT_AGREEMENT) if name != coefficient]
    if choices.raters or not choices.judges:
        yield part("agreement", _("Agreement among annotators"), "criterion", "language", coefficient, *beside)
    if choices.judges and choices.raters:
        yield part("judges", _("Judges beside the panel"), "judge", "criterion", "cohen_kappa", "mae")
        yield part("order", _("Judges beside the panel: order of items"), "judge", "criterion", "spearman")
        yield part("bias", _("Bias of judges: judge minus panel"), "criterion", "language", "bias")
        tests = ("ceiling_accuracy", "alt_test.alt_test_omega", "alt_test.alt_test_rho")
        yield part("ceiling", _("Judges beside the human ceiling"), "judge", "criterion", *tests)
    if len(choices.generators) > 1 and len(choices.languages) > 1:
        rankings = ("stability.kendall_tau_b", "stability.confirmed_inversions")
        yield part("rankings", _("Rankings of generators across languages"), "criterion", "languages", *rankings)
    if len(choices.generators) > 1 and choices.judges and choices.raters:
        yield part("results", _("Generators, corrected by a judge"), "generator", "criterion", *LEADERBOARD)


def _how(question: NumbersQuestion) -> str:
    names = ", ".join(statistic_name(name) for name in question.statistics)
    return _("%(names)s. Each cell: the value, its interval, and its counts.") % {"names": names}


# --- its content -----------------------------------------------------------------------------------------------------
def composed_report(campaign: Campaign, layout: ReportLayout, tell: Progress) -> CampaignReport:
    """The current report, in English; answers that are not stored are computed now."""
    with translation.override("en"):
        answered = tuple(answered_parts(campaign, report_parts(campaign, layout), tell))
        decided = decisions.decide_now(campaign) if decisions.current_decisions(campaign) else None
        runs = chosen_runs(campaign, layout.question)
        paragraphs, references = methods.methods_paragraphs(campaign, answered, runs)
        return CampaignReport(
            campaign, layout, answered, decided, tuple(thresholds_versions(campaign.project)),
            methods=tuple(paragraphs), references=tuple(references), statement=tuple(_statement(campaign)),
            limits=tuple(hugging_face.study_limits(campaign, runs)),
            study=_computed_study(campaign),
        )  # fmt: skip


def _computed_study(campaign: Campaign) -> CampaignStudy:
    """What Study says without a choice; the answers that it lacks are computed now."""
    for question in study_lacks(campaign):
        if isinstance(question, NumbersQuestion):
            with suppress(Refused):  # ratings of which nothing can be computed: its sentence is left out
                answer_now(campaign, question)
    return CampaignStudy(campaign, StudyChoice(), is_lead=False)


def _statement(campaign: Campaign) -> Iterator[str]:
    """The raters, described only as far as they agreed; the difficulties that they reported; and the licence of the
    items.
    """
    for panel in hugging_face.described_panels(campaign):
        named = replace(panel, panel=panel.panel or hugging_face.IMPORTED)
        yield f"{hugging_face.statement(named)} Annotations, each by one person of one item: {panel.annotations:,}."
    if closing := questionnaires.closing_statement(campaign):
        yield closing
    yield f"Licence of the items: {campaign.dataset.licence or 'not stated'}."


def thresholds_versions(project: Project) -> Iterator[ThresholdsVersion]:
    """Every version that a project declared, the first one first, with what each set or changed."""
    former: GateThresholds | None = None
    for declared in GateThresholds.objects.filter(project=project).order_by("number"):
        names = ["preset", *LIMITS, "audits"]
        changed = [name for name in names if former is None or getattr(former, name) != getattr(declared, name)]
        yield ThresholdsVersion(declared, tuple((name, _spelt_threshold(declared, name)) for name in changed))
        former = declared


def _spelt_threshold(declared: GateThresholds, name: str) -> str:
    value: Any = getattr(declared, name)
    return ", ".join(value) or "none" if isinstance(value, list) else f"{value:g}" if name in LIMITS else str(value)


def figures_of(table: Matrix) -> list[tuple[str, Figure]]:
    """The figures of a table that have a value, each under the names of its row and column."""
    return [
        (" · ".join(shortened(name) for name in (cell.row, cell.column) if name and name != _("all")), cell.figure)
        for cell in table.cells
        if cell.figure is not None and cell.figure.is_defined
    ]
