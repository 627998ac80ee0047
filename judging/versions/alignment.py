"""Align a judge with its panel: versions of it are scored on tuning items, and tested on locked ones a few times.

The items with labels are split once, by whole scenarios within the languages that a scenario has. Versions are edited,
proposed and searched on the tuning items alone. A look at the locked ones is counted before anything is asked, and
written to the audit trail. Items that an earlier alignment of the project has used are never locked again: when the
looks are spent, only new labels make a new test (docs/alignment.md).
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, prefetch_related_objects
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import access, audit, jobs
from accounts.models import Job, Project, User
from accounts.refusals import Refused
from annotation import selections
from annotation.models import Campaign, Criterion, Item, ItemSelection, Rating, SelectedItem
from judging import judges, runs, spending
from judging.models import Alignment, AlignmentCandidate, AlignmentLook, Call, Judge, JudgeRun
from judging.versions import examples

LEAST_SHARE, MOST_SHARE = 0.1, 0.9
MOST_LOOKS = 20
_MOST_CANDIDATES = 200
FEWEST_SCENARIOS = 5
"""An alignment is refused if it would have fewer locked scenarios than this."""
_MOST_NAME = 120


# --- the split --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """An item with labels: its key, its language, and its unit (the scenario, or the content if it has no scenario)."""

    pk: int
    language: str
    unit: str


def split_items(
    items: Iterable[LabelledItem], *, used: Collection[str], share: float, seed: int
) -> tuple[dict[int, float], dict[int, float]]:
    """Split the items into tuning and test. Each side maps its items to the probability of being on this side.

    Whole units are drawn without replacement, among the units that have the same languages; ``used`` units are always
    on the tuning side. Of n units, share * n are tested, rounded up or down at random, so that every unit has the
    probability ``share``. The same items and seed give the same split.
    """
    of_unit: dict[str, list[LabelledItem]] = defaultdict(list)
    for item in items:
        of_unit[item.unit].append(item)
    strata: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for unit in sorted(of_unit.keys() - set(used)):
        strata[tuple(sorted({item.language for item in of_unit[unit]}))].append(unit)
    locked: set[str] = set()
    for languages, units in sorted(strata.items()):
        generator = random.Random(f"{seed}:{':'.join(languages)}")
        whole = int(share * len(units))
        more = generator.random() < share * len(units) - whole
        locked |= set(generator.sample(units, whole + more))
    tuning, test = {}, {}
    for unit, own in of_unit.items():
        for item in own:
            if unit in locked:
                test[item.pk] = share
            else:
                tuning[item.pk] = 1.0 if unit in used else 1 - share
    return tuning, test


def labelled_items(campaign: Campaign, base: Judge) -> list[LabelledItem]:
    """The campaign's items that its panel has given a score, in their order.

    Left out are the judge's examples, and items locked by alignments of the project that have a look left: tuning on
    these items would reveal their test.
    """
    items = examples.without_examples(Item.objects.of(campaign.dataset), base)
    of_project = Alignment.objects.filter(project=campaign.project_id)
    items = examples.without_locked(items, examples.with_looks_left(of_project))
    scored = Rating.objects.filter(
        annotation__campaign=campaign, annotation__superseded_at=None, status=Rating.Status.SCORED
    )
    items = items.filter(pk__in=scored.values("annotation__item"))
    columns = items.order_by("ordinal", "pk").values_list("pk", "language", "scenario", "digest")
    return [LabelledItem(pk, language, scenario or digest) for pk, language, scenario, digest in columns]


def used_units(campaign: Campaign) -> set[str]:
    """The units (scenarios, or contents of items without a scenario) that alignments of the project have tuned on or
    locked, with all copies of them in the project. Units that were locked by an alignment that was closed before its
    first look are not included."""
    of_project = Alignment.objects.filter(project=campaign.project_id)
    locked = examples.with_test(of_project).values("test")
    chosen = SelectedItem.objects.filter(Q(selection__in=of_project.values("tuning")) | Q(selection__in=locked))
    return set(examples.linked_units(chosen, campaign.project_id))


def create_alignment(
    *,
    campaign: Campaign,
    base: Judge,
    name: str,
    share: float = 0.4,
    looks: int = 3,
    measure: str = Alignment.Measure.ACCURACY,
    confidence: float = 0.95,
    seed: int | None = None,
    budget: Decimal | None = None,
    actor: User | None = None,
) -> Alignment:
    """State what is aligned and how it will be tested, and split the labels; nothing is asked yet.

    Refused: a judge that can't be run on the campaign's rubric, and too few scenarios that no alignment has used.
    """
    access.refuse_archived(campaign.project)
    _check_plan(name=name, share=share, looks=looks, measure=measure, confidence=confidence)
    material: dict[str, Any] = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
    runs.refuse_unready(judge=base, **material, budget=budget, repeats=None)
    stored_seed = selections.new_seed() if seed is None else seed
    with transaction.atomic():
        # of two splits in the project the second sees the first
        Project.objects.select_for_update(no_key=True).get(pk=campaign.project_id)
        items, used = labelled_items(campaign, base), used_units(campaign)
        tuning, test = split_items(items, used=used, share=share, seed=stored_seed)
        _refuse_few(items, tuning, test, used)
        rule = {"kind": selections.ALIGNMENT, "alignment": name, "share": share}
        sides = {
            side: selections.store_selection(
                campaign=campaign,
                name=f"alignment {name} · {side}",
                rule={**rule, "side": side},
                seed=stored_seed,
                rows=[(item, probability, "") for item, probability in chosen.items()],
                actor=actor,
            )
            for side, chosen in (("tuning", tuning), ("test", test))
        }
        plan = {"share": share, "looks_allowed": looks, "measure": measure, "confidence": confidence, "budget": budget}
        about = {"project": campaign.project, "campaign": campaign, "base": base, "seed": stored_seed}
        alignment = _stored(Alignment(name=name, created_by=actor, **about, **plan, **sides))
        AlignmentCandidate.objects.create(
            alignment=alignment, judge=base, origin=AlignmentCandidate.Origin.BASE, created_by=actor
        )
        audit.record(actor=actor, project=campaign.project, verb="create alignment", subject=alignment)
    return alignment


def _stored(alignment: Alignment) -> Alignment:
    """Store a new alignment; refused if the project has one of this name."""
    try:
        with transaction.atomic():
            alignment.save(force_insert=True)
    except IntegrityError:
        taken = _("This project already has an alignment called “%(name)s”. Choose another name.")
        sentence = taken % {"name": alignment.name}
        raise Refused(sentence, code="name_taken", fields={"name": sentence}) from None
    return alignment


def _check_plan(*, name: str, share: float, looks: int, measure: str, confidence: float) -> None:
    wrong = {}
    if not 1 <= len(name.strip()) <= _MOST_NAME - len("alignment · tuning "):
        wrong["name"] = _("Give the alignment a name of at most %d characters.") % (
            _MOST_NAME - len("alignment · tuning ")
        )
    if not LEAST_SHARE <= share <= MOST_SHARE:
        wrong["share"] = _("The locked share must be from %(least)g to %(most)g.") % {
            "least": LEAST_SHARE,
            "most": MOST_SHARE,
        }
    if not 1 <= looks <= MOST_LOOKS:
        wrong["looks"] = _("The number of looks must be from 1 to %d.") % MOST_LOOKS
    if measure not in Alignment.Measure.values:
        wrong["measure"] = _("“%(measure)s” is not a measure. Use one of: %(measures)s.") % {
            "measure": measure,
            "measures": ", ".join(Alignment.Measure.values),
        }
    if not 0.5 <= confidence <= 0.99:
        wrong["confidence"] = _("The confidence must be from 0.5 to 0.99.")
    if wrong:
        raise Refused(next(iter(wrong.values())), code="alignment", fields=wrong)


def tested_sentence() -> str:
    """Why a version is not tested a second time."""
    return _("This version has been tested: its result is on the page.")


def _refuse_few(
    items: Sequence[LabelledItem], tuning: Collection[int], test: Collection[int], used: Collection[str]
) -> None:
    units = {item.pk: item.unit for item in items}
    sides = [{units[pk] for pk in side} for side in (tuning, test)]
    if min(map(len, sides)) >= FEWEST_SCENARIOS:
        return
    unused = [len(side.difference(used)) for side in sides]
    sentence = _(
        "There are too few labelled scenarios that no alignment has used: %(tuning)d to tune on and %(test)d to lock, "
        "and each side needs %(least)d."
    )
    if sum(unused) >= 2 * FEWEST_SCENARIOS:
        sentence = f"{sentence} {_('Choose a locked share nearer to a half, or another seed.')}"
    else:
        sentence = f"{sentence} {_('Have the panel label new items first.')}"
    raise Refused(sentence % {"tuning": unused[0], "test": unused[1], "least": FEWEST_SCENARIOS}, code="too_few_labels")


@dataclass(frozen=True, slots=True)
class LanguageSplit:
    """How many items and scenarios of a language are on each side."""

    language: str
    tuning_items: int
    tuning_scenarios: int
    test_items: int
    test_scenarios: int

    @property
    def is_short(self) -> bool:
        """Whether a side has too few scenarios to say much about the language."""
        return min(self.tuning_scenarios, self.test_scenarios) < FEWEST_SCENARIOS


def split_by_language(alignment: Alignment) -> list[LanguageSplit]:
    """What is on each side, by language; two queries."""
    items: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    units: dict[str, list[set[str]]] = defaultdict(lambda: [set(), set()])
    for place, side in enumerate((alignment.tuning_id, alignment.test_id)):
        chosen = SelectedItem.objects.filter(selection=side)
        for language, scenario, digest in chosen.values_list("item__language", "item__scenario", "item__digest"):
            items[language][place] += 1
            units[language][place].add(scenario or digest)
    return [
        LanguageSplit(
            language, items[language][0], len(units[language][0]), items[language][1], len(units[language][1])
        )
        for language in sorted(items)
    ]


# --- candidates -------------------------------------------------------------------------------------------------------


def edited_variant(
    alignment: Alignment, parent: Judge, *, instructions: str, own_texts: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The parent's prompt variant with these instructions and own texts instead of its own.

    Refused if a text is for a criterion or point that the rubric does not have.
    """
    scales = {criterion.key: criterion for criterion in alignment.campaign.rubric_version.criteria.all()}
    for text in own_texts:
        criterion, point = scales.get(text.get("criterion", "")), text.get("point")
        if criterion is None or not (point is None or _is_point(criterion, point)):
            sentence = _("The rubric has no “%(criterion)s” with the point %(point)s.")
            sentence %= {"criterion": text.get("criterion"), "point": "–" if point is None else point}
            raise Refused(sentence, code="own_texts", fields={"own_texts": sentence})
    return {**parent.variant, "instructions": instructions.strip(), "own_texts": [dict(text) for text in own_texts]}


def _is_point(criterion: Criterion, point: Any) -> bool:
    return type(point) in (int, float) and point in criterion.values


def add_candidate(
    *,
    alignment: Alignment,
    parent: Judge,
    variant: Mapping[str, Any],
    name: str,
    origin: str = AlignmentCandidate.Origin.EDIT,
    actor: User | None = None,
) -> AlignmentCandidate:
    """Add a version of a candidate's judge with this prompt variant, or return the candidate that has this variant.

    Refused if the parent is not a candidate, or if an example is a locked item or shares a scenario with one.
    """
    access.refuse_archived(alignment.project)
    refuse_closed(alignment)
    if not alignment.candidates.filter(judge=parent).exists():
        raise Refused(_("“%s” is not a version in this alignment.") % parent, code="not_a_candidate")
    if alignment.candidates.count() >= _MOST_CANDIDATES:
        raise Refused(_("An alignment has at most %d versions.") % _MOST_CANDIDATES, code="candidates")
    refuse_locked_examples(alignment, variant)
    with transaction.atomic():
        judge = judges.declare(
            project=alignment.project,
            name=name,
            provider=parent.provider,
            model=parent.model,
            parameters=parent.parameters,
            variant=variant,
            timeout=parent.timeout,
            tries=parent.tries,
            concurrency=parent.concurrency,
            parent=parent,
            actor=actor,
        )
        candidate, is_new = AlignmentCandidate.objects.get_or_create(
            alignment=alignment, judge=judge, defaults={"origin": origin, "created_by": actor}
        )
        if is_new:
            audit.record(actor=actor, project=alignment.project, verb="add version", subject=alignment)
    return candidate


def refuse_locked_examples(alignment: Alignment, variant: Mapping[str, Any]) -> None:
    """Refuse examples that are locked items, or share a scenario with a locked item."""
    shown = {example["item"] for example in variant.get("examples") or ()}
    locked = selections.selected_items(alignment.test)
    if shown and locked.exclude(pk__in=examples.without_items(locked, shown, alignment.project_id)).exists():
        sentence = _("An example of this version is in the locked split, or in a scenario of it.")
        raise Refused(sentence, code="locked", fields={"examples": sentence})


def start_tuning(*, candidate: AlignmentCandidate, actor: User | None = None) -> JudgeRun:
    """Start the run of a candidate over the tuning items, or resume it if it exists. The caller enqueues the run."""
    refuse_closed(candidate.alignment)
    return _start(candidate.alignment, candidate.judge, candidate.alignment.tuning, actor)


def _start(alignment: Alignment, judge: Judge, selection: ItemSelection, actor: User | None) -> JudgeRun:
    before = alignment.runs.filter(judge=judge, selection=selection).order_by("-pk").select_related("project", "judge")
    if (newest := before.first()) is not None and newest.state != JudgeRun.State.CANCELLED:
        runs.resume_run(run=newest, actor=actor)
        return newest
    prefetch_related_objects([alignment], "campaign__rubric_version__criteria")
    return runs.start_judge_run(
        judge=judge,
        dataset=alignment.campaign.dataset,
        rubric_version=alignment.campaign.rubric_version,
        selection=selection,
        key=f"alignment {alignment.pk} {judge.pk} {selection.pk} {before.count()}",
        alignment=alignment,
        actor=actor,
    )


def run_of(alignment: Alignment, judge: Judge, selection: ItemSelection) -> JudgeRun | None:
    """The run in which an alignment asks a judge about one of its sides; the newest one, if a former was cancelled."""
    own = alignment.runs.filter(judge=judge, selection=selection).order_by("-pk")
    return own.select_related("judge", "project").first()


def is_answered(run: JudgeRun | None) -> bool:
    """Whether a run has no call left to ask, and was not cancelled."""
    if run is None or run.state == JudgeRun.State.CANCELLED:
        return False
    return not run.calls.exclude(state__in=runs.DONE).exists()


def tuning_runs(alignment: Alignment) -> dict[int, JudgeRun]:
    """By judge, its run over the tuning items, with the counts `planned` and `done` of its calls."""
    counted = alignment.runs.filter(selection=alignment.tuning_id).annotate(
        planned=Count("calls"), done=Count("calls", filter=Q(calls__state__in=runs.DONE))
    )
    return {run.judge_id: run for run in counted.select_related("judge", "project").order_by("pk")}


# --- looks at the locked split ----------------------------------------------------------------------------------------


def take_look(*, candidate: AlignmentCandidate, actor: User | None = None) -> AlignmentLook:
    """Take a look: test a candidate and the base judge on the locked items. The caller enqueues `look_runs`.

    The look counts from now on, even if its runs fail; there is one look for a candidate. If it is taken again before
    its result is stored, it is the same look, and its runs are resumed. Refused if no look is left, or if the candidate
    or the base judge has no scores on the tuning items yet.
    """
    alignment = candidate.alignment
    access.refuse_archived(alignment.project)
    if candidate.judge_id == alignment.base_id:
        raise Refused(_("The judge as it was is tested beside every version. Choose a version."), code="base")
    for judge in (alignment.base, candidate.judge):
        if not is_answered(run_of(alignment, judge, alignment.tuning)):
            sentence = _("“%s” has not been asked about all tuning items yet. Wait for its score there.") % judge
            raise Refused(sentence, code="not_tuned")
    with transaction.atomic():
        locked = Alignment.objects.select_for_update(no_key=True).get(pk=alignment.pk)
        taken = alignment.looks.count()
        look = AlignmentLook.objects.filter(candidate=candidate).first()
        if look is not None and look.result is None:
            return _with_runs(look, candidate, actor)
        if look is not None:
            raise Refused(tested_sentence(), code="looked")
        refuse_closed(locked)
        uncounted = uncounted_runs(alignment).keys() - {candidate.pk}
        if taken + len(uncounted) >= alignment.looks_allowed:
            raise Refused(no_looks_left(alignment), code="no_looks_left")
        try:
            with transaction.atomic():
                look = AlignmentLook.objects.create(
                    alignment=alignment, number=taken + 1, candidate=candidate, taken_by=actor
                )
        except IntegrityError:  # the same look came at the same time and was first
            raise Refused(_("Another look was taken at the same moment. Reload the page."), code="looked") from None
        audit.record(actor=actor, project=alignment.project, verb="look at locked split", subject=alignment)
        return _with_runs(look, candidate, actor)


def _with_runs(look: AlignmentLook, candidate: AlignmentCandidate, actor: User | None) -> AlignmentLook:
    alignment = look.alignment = candidate.alignment
    for judge in (alignment.base, candidate.judge):
        _start(alignment, judge, alignment.test, actor)
    return look


def uncounted_runs(alignment: Alignment) -> dict[int, JudgeRun]:
    """By version without a look, a run outside the alignment that asked a judge of its family about locked items.

    The run was not counted as a look, because its judge became a version later; it counts as a look from then on.
    """
    open_versions = [
        version
        for version in alignment.candidates.select_related("judge", "look")
        if version.origin != AlignmentCandidate.Origin.BASE and not hasattr(version, "look")
    ]
    if not open_versions:
        return {}
    as_it_was = examples.family_key(alignment.base)
    models = Q()
    for judge in {version.judge for version in open_versions}:
        models |= Q(judge__provider=judge.provider, judge__model=judge.model)
    locked = SelectedItem.objects.filter(selection=alignment.test_id).values("item__digest")
    asked = Call.objects.filter(run=OuterRef("pk"), item__digest__in=locked)
    others = JudgeRun.objects.filter(models, Exists(asked), project=alignment.project_id)
    others = others.filter(Q(alignment=None) | ~Q(alignment=alignment.pk), created_at__gte=alignment.created_at)
    by_family: dict[tuple[str, str, str], JudgeRun] = {}
    for run in others.select_related("judge").order_by("pk"):
        by_family.setdefault(examples.family_key(run.judge), run)
    keys = {version.pk: examples.family_key(version.judge) for version in open_versions}
    return {pk: by_family[key] for pk, key in keys.items() if key in by_family and key != as_it_was}


def no_looks_left(alignment: Alignment) -> str:
    """What to do when the looks are spent, or the alignment is closed."""
    if alignment.closed_at is not None:
        return _closed_words(alignment)
    sentence = _(
        "All %(looks)d looks at the locked split are spent: its items can't test another version. Have the panel label "
        "new items, and start a new alignment with them."
    )
    return sentence % {"looks": alignment.looks_allowed}


def _closed_words(alignment: Alignment) -> str:
    taken = alignment.looks.count()
    unused = ngettext(
        "%d unused look was cancelled.", "%d unused looks were cancelled.", alignment.looks_allowed - taken
    )
    fate = (
        _("Its locked scenarios have been looked at: another alignment can only tune on them.")
        if taken
        else _("Its locked scenarios were never looked at: another alignment can lock them.")
    )
    closed = _("This alignment is closed.")
    return f"{closed} {unused % (alignment.looks_allowed - taken)} {fate}"


def look_runs(look: AlignmentLook) -> list[JudgeRun]:
    """The runs over the locked items that a look uses: the run of the base judge, and the run of the candidate."""
    alignment = look.alignment
    found = [run_of(alignment, judge, alignment.test) for judge in (alignment.base, look.candidate.judge)]
    return [run for run in found if run is not None]


def open_looks() -> QuerySet[AlignmentLook]:
    """The looks without a result."""
    related = ("alignment__campaign__rubric_version", "alignment__base", "candidate__judge")
    return AlignmentLook.objects.filter(result__isnull=True).select_related(*related).order_by("pk")


def store_result(*, look: AlignmentLook, result: Mapping[str, Any]) -> bool:
    """Store the result of a look. False if it has a result already, because a result is never replaced."""
    return bool(AlignmentLook.objects.filter(pk=look.pk, result__isnull=True).update(result=dict(result)))


# --- closing ----------------------------------------------------------------------------------------------------------


def close_alignment(*, alignment: Alignment, actor: User | None = None) -> None:
    """Close an alignment permanently, without its remaining looks. Searches and runs over tuning items end; runs of
    looks continue.

    If no look was taken, other alignments may lock the items again; after a look, they may only tune on them. Refused
    if the alignment is closed already, or if no look is left.
    """
    access.refuse_archived(alignment.project)
    with transaction.atomic():
        locked = Alignment.objects.select_for_update(no_key=True).get(pk=alignment.pk)
        refuse_closed(locked)
        if not looks_left(locked):
            raise Refused(no_looks_left(locked), code="no_looks_left")
        Alignment.objects.filter(pk=alignment.pk).update(closed_at=timezone.now(), closed_by=actor)
        audit.record(actor=actor, project=alignment.project, verb="close alignment", subject=alignment)
    alignment.refresh_from_db(fields=["closed_at", "closed_by"])
    asking = Q(pk__in=alignment.searches.values("job")) | Q(pk__in=alignment.proposals.values("job"))
    jobs.cancel_open(Job.objects.filter(asking), sentence=no_looks_left(alignment))
    for run in alignment.runs.filter(selection=alignment.tuning_id).exclude(state=JudgeRun.State.CANCELLED):
        if not is_answered(run):
            runs.cancel_run(run=run, actor=actor)


def refuse_closed(alignment: Alignment) -> None:
    """Raise ``Refused`` if the alignment is closed."""
    if alignment.closed_at is not None:
        raise Refused(no_looks_left(alignment), code="closed")


def looks_left(alignment: Alignment) -> int:
    """How many looks may still be taken; 0 if the alignment is closed."""
    if alignment.closed_at:
        return 0
    return max(0, alignment.looks_allowed - alignment.looks.count() - len(uncounted_runs(alignment)))


# --- money ------------------------------------------------------------------------------------------------------------


def rebudget_alignment(*, alignment: Alignment, budget: Decimal | None, actor: User | None = None) -> None:
    """Raise, lower or lift the cap over everything that an alignment asks."""
    spending.refuse_cap(alignment.base, budget=budget)
    with transaction.atomic():
        Alignment.objects.filter(pk=alignment.pk).update(budget=budget)
        audit.record(
            actor=actor, project=alignment.project, verb="set alignment budget", subject=alignment, fields=["budget"]
        )
    alignment.refresh_from_db(fields=["budget"])
