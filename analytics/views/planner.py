"""The Planner page: the labels, items and raters that a study needs, from the campaign as its pilot (METHODS 8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST, require_safe

from accounts.inputs import whole_number
from accounts.refusals import Refused, refusals_as_messages
from analytics import further_ratings, planning
from analytics.answer_pages import criterion_names
from analytics.figure_words import translated_message
from analytics.figures import SMALL, Figure
from analytics.grids import NOTHING, CellRows, EstimateRow, GridCell
from analytics.questions.asked import QuestionChoices, question_choices
from analytics.questions.goals import NUMBERS, USUAL, goals_of_form, prices_text
from analytics.questions.question import NumbersQuestion
from analytics.views.items import shown_campaign
from analytics.views.parts import PartsPage, chosen_judge, judge_question, parameter_pairs
from analytics.views.sections import Section, ShownSection, figure_cell
from annotation.models import Campaign, Item

OF_DRAW = ("draw_duty", "draw_criterion", "draw_judge", "draw_wanted")
"""The fields of the form for the next items, in an address: what a refused draw had."""


def _count(value: float) -> str:
    return f"{round(value):,}"


def _cell(shown: ShownSection, row: EstimateRow | None, *lines: str) -> GridCell:
    """A count with its basis, linked to the items it is computed from; or the reason why there is no count."""
    if row is None:
        return NOTHING
    figure = Figure.of(row)
    pilot = _("pilot: %s") % figure.basis
    if row["value"] is None:
        return GridCell(lines=(_("no plan"), figure.reason, pilot), url=shown.page.items_address(row))
    below, url = tuple(line for line in (*lines, pilot) if line), shown.page.items_address(row)
    return GridCell(_count(row["value"]), below, url=url, title=figure.note)


def _further(shown: ShownSection, row: EstimateRow | None, *lines: str, left: int | None = None) -> GridCell:
    """How many more than the pilot has; below it, the total, and whether the `left` items are fewer."""
    cell = _cell(shown, row, *lines)
    if row is None or row["value"] is None:
        return cell
    now, needed = row["n_items"], round(row["value"])
    below = [_("%(now)s of %(all)s so far") % {"now": f"{now:,}", "all": f"{needed:,}"}]
    if left is not None and needed - now > left:
        text = ngettext("%d item is left: new ones are needed", "%d items are left: new ones are needed", left)
        below.append(text % left)
    return replace(cell, number=_more(needed - now), lines=(*below, *cell.lines))


def _unrated(shown: ShownSection, row: EstimateRow | None) -> int | None:
    """How many items of a row's language have no rating yet; None if the row has no language."""
    if row is None or not (tag := row.get("language")):
        return None
    whole = Item.objects.of(shown.page.campaign.dataset).filter(language=tag).count()
    return max(0, whole - int(row["n_items"]))


def _more(further: float) -> str:
    return _("%s more") % _count(further) if further > 0 else _("enough")


# --- sections --------------------------------------------------------------------------------------------------------
def _items(shown: ShownSection) -> None:
    def build(found: CellRows) -> GridCell:
        row = found.get("plan.items_needed")
        return _further(shown, row, left=_unrated(shown, row))

    shown.cells_of(build)
    shown.note(
        _("A decision about a judge needs at least %d items all the same.") % SMALL,
        _("An estimate from the ratings so far, without an interval."),
    )


def _raters(shown: ShownSection) -> None:
    shown.cells_of(lambda found: _cell(shown, found.get("plan.raters_needed")))
    shown.note(_("An estimate from the ratings so far, without an interval."))


def _labels(shown: ShownSection) -> None:
    rows = [row for row in shown.rows if row["asked"] == "plan.labels_needed"]
    question = shown.question
    places = {(row.get(question.rows), row.get(question.columns), row["variant"]): row for row in rows}

    def build(found: CellRows) -> GridCell:
        row = found["plan.labels_needed"]
        key = row.get(question.rows), row.get(question.columns)
        with_judge = places.get((*key, "judge"))
        humans = places.get((*key, "humans"))
        return _further(shown, humans, _with_judge(with_judge), left=_unrated(shown, humans))

    shown.cells_of(build)
    shown.note(_("An estimate from the ratings so far, without an interval. Items of one cluster count together."))


def _with_judge(row: EstimateRow | None) -> str:
    """How many more labels with a judge beside them; a correction takes `FEWEST_FOR_CORRECTION` at least."""
    if row is None or row["value"] is None:
        return ""
    return _("with the judge: %s") % _more(max(row["value"], planning.FEWEST_FOR_CORRECTION) - row["n_items"])


def _difference(shown: ShownSection) -> None:
    def build(found: CellRows) -> GridCell:
        row = found.get("plan.items_for_difference")
        is_paired = row is not None and row["variant"] == "paired"
        return _further(shown, row, _("scenarios with items of both") if is_paired else "")

    shown.cells_of(build)
    shown.note(
        _("Items of each generator, or scenarios. With as many, 80% of studies would show a difference of this size."),
        _("An estimate from the ratings so far, without an interval."),
    )


def _stop(shown: ShownSection) -> None:
    from analytics.stats.planning.pilot import TOO_EARLY

    rows = [row for row in shown.rows if row["asked"] == "plan.sequence_mean"]
    nothing = _("too early: every mean of the scale is still possible")
    is_early_everywhere = len(rows) > 1 and all(row["note"] == TOO_EARLY for row in rows)
    goal = float(dict(shown.question.goals).get("half_width", USUAL["half_width"]))

    def build(found: CellRows) -> GridCell:
        row = found["plan.sequence_mean"]
        if row["value"] is None:
            return figure_cell(shown.page, row, inked=False)
        half = (row["high"] - row["low"]) / 2
        if row["note"] == TOO_EARLY:
            cell = figure_cell(shown.page, row, inked=False)
            lines = () if is_early_everywhere else (nothing, *cell.lines[1:])
            return GridCell(_("Not yet"), lines, url=cell.url, title=cell.title)
        words = _("you may stop: ± %(half).2f") if half <= goal else _("continue: ± %(half).2f so far")
        cell = figure_cell(shown.page, row, inked=False)
        mean = f"{cell.number} {cell.lines[0]}"
        answer = _("Yes") if half <= goal else _("Not yet")
        return replace(cell, number=answer, lines=(words % {"half": half}, mean, *cell.lines[1:]), few="")

    shown.cells_of(build)
    if is_early_everywhere:
        shown.note(f"{nothing[:1].upper()}{nothing[1:]}.")
    shown.note(
        _("Items must have been rated in random order, as tasks give them. One value counts for each cluster."),
        _("It is wider than an interval that you look at only once."),
    )


def _budget(shown: ShownSection) -> None:
    asked = [row for row in shown.rows if row["asked"] == "plan.labels_affordable"]
    rows = [row for row in asked if row["value"] is not None or row.get("language")]

    def build(found: CellRows) -> GridCell:
        row = next(iter(found.values()))
        if row["value"] is None:
            return GridCell(lines=(_("no plan"), translated_message(row["reason"])))
        note = translated_message(row["note"])
        return GridCell(_count(row["value"]), (note,), url=shown.page.items_address(row))

    shown.table(
        rows,
        build,
        down="language",
        across="",
        downs=shown.axis("language", rows),
        column_name=lambda _column: _("Labels"),
    )
    total = sum(round(row["value"]) for row in rows)
    shown.note(ngettext("%d label in all.", "%d labels in all.", total) % total)


def _test(shown: ShownSection) -> None:
    rows = [row for row in shown.rows if row["asked"] == "plan.alt_test_power" and row["variant"]]
    column = shown.question.columns

    def build(found: CellRows) -> GridCell:
        row = next(iter(found.values()))
        cell = _cell(shown, row)
        return cell if row["value"] is None else replace(cell, number=f"{100 * row['value']:.0f}%")

    shown.table(
        rows, build, down="variant", across=column, corner=_("Study of"), row_name=str,
        downs=sorted({row["variant"] for row in rows}, key=lambda size: int(size.split(" ")[0])),
        acrosses=shown.axis(column, rows),
    )  # fmt: skip
    shown.note(_("An estimate from these items, without an interval."))


# --- the page --------------------------------------------------------------------------------------------------------
def _asked(campaign: Campaign, part: Section, question: NumbersQuestion, choices: QuestionChoices) -> NumbersQuestion:
    """The question of a section; a budget is split over languages."""
    asked = judge_question(campaign, part, question, choices)
    return replace(asked, columns="language") if part.name == "budget" else asked


def _pairs(fields: QueryDict) -> list[tuple[str, str]]:
    """The parameters of an address, the form's own fields as goals."""
    own = (*NUMBERS, "split", "prices")
    plain = [pair for pair in parameter_pairs(fields) if pair[0] not in (*own, *OF_DRAW)]
    return plain + goals_of_form({name: fields.get(name, "") for name in own})


def _offered(campaign: Campaign, question: NumbersQuestion, choices: QuestionChoices) -> dict[str, Any]:
    """The judges to choose from and the goals; or what is missing."""
    if not choices.raters:
        more = _("A plan takes ratings as its pilot: let a panel rate a few items, or import ratings.")
        return {"nothing": _("Nobody has rated these items"), "nothing_more": more}
    found = dict(question.goals)
    goals = {name: found.get(name, USUAL.get(name, "")) for name in (*NUMBERS, "split")}
    example = ", ".join(f"{tag} {price}" for tag, price in zip(choices.languages, ("1.5", "2"), strict=False))
    return {
        "next_items": next_items_offered(campaign, choices),
        "further_tasks": further_ratings.rating_tasks(campaign),
        "units": further_ratings.UNITS.items(),
        "judges": choices.judges,
        "judge": chosen_judge(question, choices),
        "goals": {**goals, "prices": prices_text(question.goals)},
        "goals_example": example,
        "form_note": _("The ratings of this campaign are the pilot. All figures are for items and raters like these."),
    }


def next_items_offered(campaign: Campaign, choices: QuestionChoices) -> dict[str, Any] | None:
    """The choices of the form for the next items; None if no item can be drawn."""
    waves = planning.open_waves(campaign)
    is_open = choices.judges and campaign.state != Campaign.State.CLOSED
    waiting = {wave.duty.pk for wave in waves}  # their items are rated before more are drawn
    duties = [duty for duty in planning.drawable_duties(campaign) if duty.pk not in waiting] if is_open else []
    if not duties and not waves:
        return None
    names, keys = criterion_names(campaign), planning.ordered_criteria(campaign)
    return {"duties": duties, "waves": waves, "criteria": [(key, names[key]) for key in keys], "wanted": 50}


@require_POST
@login_required
def draw_next_items_view(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """Show what a draw of the next items would give out; draw them with `create`, exactly as they were shown."""
    current = shown_campaign(request.user, project, campaign)
    duty = current.duties.filter(pk=whole_number(request.POST.get("duty", "")) or 0).first()
    wanted = whole_number(request.POST.get("wanted", "")) or 0
    about = {name: request.POST.get(name, "") for name in ("judge", "criterion")}
    try:
        if duty is None:
            raise Refused(_("Choose a task of this campaign."), fields={"duty": _("Choose a task of this campaign.")})
        seed, digest = whole_number(request.POST.get("seed", "")), request.POST.get("digest", "")
        if "create" not in request.POST or seed is None or not digest:
            preview = planning.preview_draw(duty=duty, wanted=wanted, **about)
            shown = {"preview": preview, "criterion": criterion_names(current)[about["criterion"]]}
            title = {"title": _("The next items to label")}
            shown |= {"project": current.project, "campaign": current, **title}
            return render(request, "analytics/draw_preview.html", shown)
        drawn = planning.draw_next_items(
            duty=duty, wanted=wanted, seed=seed, digest=digest, actor=request.user, **about
        )
    except Refused as refused:
        messages.error(request, refused.sentence)
        kept = {name: request.POST.get(name.removeprefix("draw_"), "") for name in OF_DRAW}
        here = reverse("numbers_planner", args=[current.project.slug, current.pk])
        return redirect(f"{here}?{urlencode(kept)}#next-items")
    sentence = ngettext("%(n)d item was drawn into “%(duty)s”.", "%(n)d items were drawn into “%(duty)s”.", drawn)
    messages.success(request, sentence % {"n": drawn, "duty": duty.name})
    return redirect(f"{reverse('numbers_planner', args=[current.project.slug, current.pk])}#next-items")


@require_safe
@login_required
def further_ratings_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """What so many more ratings buy, task by task: items, hours, price, and widths before and after."""
    current = shown_campaign(request.user, project, campaign)
    choices, asked = question_choices(current), request.GET
    wanted, unit = whole_number(asked.get("more", "")) or 0, asked.get("unit", "")
    judges = choices.listed_judges(NumbersQuestion())
    judge = asked.get("judge", "") if asked.get("judge", "") in judges else next(iter(judges), "")
    tasks = further_ratings.rating_tasks(current)
    task = whole_number(asked.get("task", ""))
    context: dict[str, Any] = {
        "title": _("What more ratings buy"),
        "project": current.project,
        "campaign": current,
        "further_tasks": tasks,
        "units": further_ratings.UNITS.items(),
        "judges": judges,
        "judge": judge,
        "criteria": criterion_names(current),
    }
    if not {"more", "unit"} & asked.keys():
        return render(request, "analytics/further_ratings.html", context)
    if not 1 <= wanted <= further_ratings.MOST_FURTHER or unit not in further_ratings.UNITS:
        sentence = _("Give a number from 1 to %s.") % f"{further_ratings.MOST_FURTHER:,}"
        if unit not in further_ratings.UNITS:
            sentence = _("Choose what is counted: items, assignments or ratings.")
        return render(request, "analytics/further_ratings.html", {**context, "refusal": sentence}, status=422)
    known = task if task in {each.pk for each in tasks} else None
    context["plan"] = further_ratings.further_ratings(current, wanted=wanted, unit=unit, judge=judge, duty=known)
    return render(request, "analytics/further_ratings.html", context)


@require_POST
@login_required
def take_back_next_items_view(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """Take back the items that were drawn last into a duty."""
    current = shown_campaign(request.user, project, campaign)
    duty = current.duties.filter(pk=whole_number(request.POST.get("duty", "")) or 0).first()
    with refusals_as_messages(request):
        if duty is None:
            raise Refused(_("Choose a task of this campaign."), fields={"duty": _("Choose a task of this campaign.")})
        taken = planning.take_back_draw(duty=duty, actor=request.user)
        sentence = ngettext("%(n)d item was withdrawn.", "%(n)d items were withdrawn.", taken)
        messages.success(request, sentence % {"n": taken})
    if request.POST.get("back") == "waves":
        return redirect("numbers_waves", current.project.slug, current.pk)
    return redirect(f"{reverse('numbers_planner', args=[current.project.slug, current.pk])}#next-items")


PLANNER = PartsPage(
    name="planner",
    title=gettext_lazy("Planner"),
    sections=(
        Section(
            "labels",
            title=gettext_lazy("Labels for a mean"),
            about=gettext_lazy(
                "How many more labelled items give the panel’s mean a 95% interval of this half width; also with the "
                "judge’s scores of all items (PPI++). No plan where the raters agree too little."
            ),
            empty=gettext_lazy("A plan needs labelled items on an ordered scale, with scores that are not all equal."),
            terms=("label", "interval", "overlap"),
            build=_labels,
            statistics=("plan.labels_needed",),
            columns="language",
            needs_order=True,
        ),
        Section(
            "difference",
            title=gettext_lazy("Telling two generators apart"),
            about=gettext_lazy("How many more items of each generator show a difference of the size above."),
            empty=gettext_lazy("This needs rated items of two generators or more, with scores in order."),
            build=_difference,
            statistics=("plan.items_for_difference",),
            columns="language",
            needs_order=True,
        ),
        Section(
            "stop",
            title=gettext_lazy("May labelling stop?"),
            about=gettext_lazy(
                "The mean of the labels so far with an interval of a confidence sequence. It stays valid however often "
                "you look. You may stop as soon as it is as narrow as the half width above."
            ),
            empty=gettext_lazy("This needs labels with scores in order, and the order in which items were rated."),
            build=_stop,
            statistics=("plan.sequence_mean",),
            columns="language",
            needs_order=True,
        ),
        Section(
            "budget",
            title=gettext_lazy("What the budget pays for"),
            about=gettext_lazy(
                "Labels in each language, by its most varied criterion and its price; at least 30 each."
            ),
            empty=gettext_lazy(
                "Give a budget above. A plan needs labelled items on an ordered scale, with scores that are not all "
                "equal."
            ),
            build=_budget,
            statistics=("plan.labels_affordable",),
            columns="language",
            needs_order=True,
        ),
        Section(
            "items",
            title=gettext_lazy("Items for agreement"),
            about=gettext_lazy("How many more items with which Krippendorff’s α is known to the half width at 95%."),
            empty=gettext_lazy("A plan for α needs items with two ratings or more."),
            build=_items,
            statistics=("plan.items_needed",),
            columns="language",
        ),
        Section(
            "raters",
            title=gettext_lazy("Raters per item"),
            about=gettext_lazy("The number of annotators per item that gives their mean this reliability."),
            empty=gettext_lazy("A plan for raters needs items with two ratings or more, in order."),
            terms=("reliability",),
            build=_raters,
            statistics=("plan.raters_needed",),
            columns="language",
            needs_order=True,
        ),
        Section(
            "test",
            title=gettext_lazy("Power of the alternative annotator test"),
            about=gettext_lazy(
                "The share of 200 simulated studies, drawn from these items, in which the judge passes."
            ),
            empty=gettext_lazy("The power needs a judge, and two annotators, known as persons."),
            terms=("omega",),
            build=_test,
            statistics=("plan.alt_test_power",),
            columns="language",
            one_criterion=True,
            is_catalogue=True,
        ),
    ),
    offered=_offered,
    asked=_asked,
    pairs=_pairs,
)
