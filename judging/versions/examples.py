"""Few-shot examples: drawn once from panel labels, kept with the judge, and never among the items it is asked about.

They come from a split of their own, a selection of a campaign's items: by criterion, language and score, at most two
items whose score the panel gave by majority (S4 3.5). A judge stores what was drawn, as digests of the items' content
and scores. Its runs leave out these items, and all items of their scenarios: nothing that it is tested on was shown to
it, in whatever language.
"""

from __future__ import annotations

import random
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import Count, F, Q, QuerySet
from django.utils.translation import gettext as _

from accounts.inputs import is_storable
from accounts.models import Project
from accounts.refusals import Refused
from annotation.models import Item, ItemSelection, Rating, RubricVersion, SelectedItem
from judging.models import Alignment, AlignmentCandidate, Judge
from judging.prompts import Example, PromptVariant

MOST_PER_CLASS = 2
MOST_EXAMPLES = 1_000
LARGEST_SCORE = 1_000_000
LONGEST_TEXT = 100  # of a criterion's key, an item's digest or a language
PARTS = frozenset({"criterion", "item", "language", "score"})
SOURCE = {"selection", "per_class", "seed"}


def resolve_examples(project: Project, given: Any) -> list[dict[str, Any]]:
    """The examples of a prompt variant as it stores them.

    ``given`` is such a list already, or says where to draw: ``{"selection": id, "per_class": 1 or 2, "seed": 1}``.
    """
    if isinstance(given, Mapping):
        pk, per_class, seed = given.get("selection", 0), given.get("per_class", MOST_PER_CLASS), given.get("seed", 1)
        whole = all(type(number) is int and abs(number) < 2**63 for number in (pk, per_class, seed))
        if given.keys() - SOURCE or not whole or not 1 <= per_class <= MOST_PER_CLASS:
            raise _not_drawn()
        selection = ItemSelection.objects.filter(campaign__project=project, pk=pk).first()
        if selection is None:
            raise _wrong(_("Choose a selection of this project to draw the examples from."))
        return draw_examples(selection=selection, per_class=per_class, seed=seed)
    checked = checked_examples(given)
    by_digest = example_items([Example(**example) for example in checked], project.pk)
    for example in checked:
        if by_digest[example["item"]].language != example["language"]:
            raise _wrong(_("The item of an example is not in the language “%s”.") % example["language"])
    rubrics = {example["rubric"] for example in checked if "rubric" in example}
    known = RubricVersion.objects.published().filter(rubric__project=project, digest__in=rubrics)
    if rubrics - set(known.values_list("digest", flat=True)):
        raise _wrong(_("The rubric of an example is not published in this project."))
    return checked


def checked_examples(given: Any) -> list[dict[str, Any]]:
    """Check examples in the form in which a variant stores them; refused if a prompt could not show them.

    Each has `criterion`, `item` (the digest of its content), `language`, `score`, and may have `rubric` (the digest of
    the version that it was rated by). Whether a project has such an item is not looked at.
    """
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise _not_drawn()
    if len(given) > MOST_EXAMPLES:
        raise _wrong(
            _("A judge has at most %(most)d examples, not %(given)d.") % {"most": MOST_EXAMPLES, "given": len(given)}
        )
    for example in given:
        texts = isinstance(example, Mapping) and all(isinstance(example.get(key), str) for key in PARTS - {"score"})
        if not texts or not PARTS <= example.keys() <= {*PARTS, "rubric"}:
            raise _wrong(_("An example has: %s.") % ", ".join(sorted(PARTS)))
        score, text = example["score"], [part for name, part in example.items() if name != "score"]
        if type(score) not in (int, float) or not abs(score) <= LARGEST_SCORE:
            raise _wrong(_("The score of an example is a number from -%(most)d to %(most)d.") % {"most": LARGEST_SCORE})
        if not all(isinstance(part, str) and len(part) <= LONGEST_TEXT and is_storable(part) for part in text):
            raise _wrong(_("A text of an example has at most %d characters, all of them printable.") % LONGEST_TEXT)
    checked = [{**example, "score": float(example["score"])} for example in given]
    _refuse_too_many(checked)
    return checked


def _refuse_too_many(checked: Sequence[Mapping[str, Any]]) -> None:
    """Refuse an item that is used twice for one criterion, and more than ``MOST_PER_CLASS`` examples of one criterion,
    language and score."""
    if len({(example["criterion"], example["item"], example["language"]) for example in checked}) < len(checked):
        raise _wrong(_("An item is an example of the same criterion twice."))
    classes = Counter((example["criterion"], example["language"], example["score"]) for example in checked)
    for (criterion, language, score), count in classes.most_common(1):
        if count > MOST_PER_CLASS:
            sentence = _(
                "“%(criterion)s” has %(count)d examples of the score %(score)g in “%(language)s”; at most %(most)d."
            )
            about = {"criterion": criterion, "count": count, "score": score, "language": language}
            raise _wrong(sentence % {**about, "most": MOST_PER_CLASS})


def refuse_other_rubric(variant: PromptVariant, rubric_version: RubricVersion) -> None:
    """Refuse to show examples that were rated by another rubric version than this one, or are not on its scales."""
    others = {example.rubric for example in variant.examples} - {"", rubric_version.digest}
    if others:
        rated_by = RubricVersion.objects.filter(rubric__project=rubric_version.rubric.project_id, digest__in=others)
        sentence = _(
            "The examples of this judge were rated by %(rated_by)s, not by %(chosen)s. Choose the rubric that they "
            "were rated by, or add a judge with examples that were rated by this one."
        )
        names = ", ".join(map(str, rated_by.select_related("rubric"))) or _("another rubric")
        raise _of_rubric(sentence % {"rated_by": names, "chosen": rubric_version})
    criteria = {criterion.key: criterion for criterion in rubric_version.criteria.all()} if variant.examples else {}
    for example in variant.examples:
        if example.criterion in criteria and not criteria[example.criterion].is_on_scale(example.score):
            sentence = _("The score %(score)g of an example is not on the scale of “%(criterion)s” in %(chosen)s.")
            about = {"score": example.score, "criterion": example.criterion, "chosen": rubric_version}
            raise _of_rubric(sentence % about)


def draw_examples(*, selection: ItemSelection, per_class: int, seed: int) -> list[dict[str, Any]]:
    """At most ``per_class`` items for every criterion, language and score that most of the panel gave.

    The majority is of all who answered: N/A and stopped answers count, and an item on which no score has more than half
    of the answers is left out, and so is what an alignment has locked. The same labels, seed and selection give the
    same examples. Refused when nothing in the selection has such a label.
    """
    pools: dict[tuple[str, str, float], list[str]] = defaultdict(list)
    for (criterion, item, language), scores in sorted(_panel_answers(selection).items()):
        (score, votes), *_others = Counter(scores).most_common(1)
        if score is not None and 2 * votes > len(scores):
            pools[criterion, language, score].append(item)
    if not pools:
        raise _wrong(_("No item of “%s” has a score from a majority of its panel yet.") % selection)
    rated_by = selection.campaign.rubric_version.digest
    drawn: list[dict[str, Any]] = []
    for (criterion, language, score), items in sorted(pools.items()):
        generator = random.Random(f"{seed}:{criterion}:{language}:{score}")
        about = {"criterion": criterion, "language": language, "score": score, "rubric": rated_by}
        drawn += [{**about, "item": item} for item in generator.sample(items, min(per_class, len(items)))]
    if len(drawn) > MOST_EXAMPLES:
        sentence = _(
            "“%(selection)s” gives %(count)d examples; a judge has at most %(most)d. Choose a smaller selection."
        )
        raise _wrong(sentence % {"selection": selection, "count": len(drawn), "most": MOST_EXAMPLES})
    return drawn


def _panel_answers(selection: ItemSelection) -> dict[tuple[str, str, str], list[float | None]]:
    """By criterion, digest and language of an item of the selection, the answers of its annotators: a score, or None
    for N/A and stopped."""
    drawn = Item.objects.filter(pk__in=SelectedItem.objects.filter(selection=selection).values("item"))
    chosen = without_locked(drawn, with_test(Alignment.objects.filter(project=selection.campaign.project_id)))
    given = Rating.objects.filter(
        annotation__campaign=selection.campaign_id,
        annotation__superseded_at=None,
        annotation__item__in=chosen,
    )
    answers: dict[tuple[str, str, str], list[float | None]] = defaultdict(list)
    columns = ("criterion__key", "annotation__item__digest", "annotation__item__language", "score")
    for criterion, item, language, score in given.values_list(*columns):
        answers[criterion, item, language].append(score)
    return answers


def without_examples(items: QuerySet[Item], judge: Judge) -> QuerySet[Item]:
    """The items without those that the judge was shown as examples, and without their scenarios."""
    return without_items(items, {example["item"] for example in judge.variant.get("examples", ())}, judge.project_id)


def without_items(items: QuerySet[Item], digests: Collection[str], project: int) -> QuerySet[Item]:
    """The items without those of these digests, and without the scenarios of these in the project."""
    if not digests:
        return items
    shown = Item.objects.filter(dataset__project=project, digest__in=digests).exclude(scenario="")
    return items.exclude(Q(digest__in=digests) | Q(scenario__in=list(shown.values_list("scenario", flat=True))))


# --- items that an alignment has locked -------------------------------------------------------------------------------


def locked_items(alignments: QuerySet[Alignment]) -> QuerySet[SelectedItem]:
    """The locked sides of alignments."""
    return SelectedItem.objects.filter(selection__in=alignments.values("test"))


def linked_units(chosen: QuerySet[SelectedItem], project: int) -> frozenset[str]:
    """The scenarios of the chosen items, and the contents of those without one; with all that is linked to them.

    Two items of the project are linked when they have the same scenario or the same content, and so are all items
    along a chain of such pairs: a copy in another dataset, under another scenario or none, is the same test.
    """
    items = Item.objects.filter(dataset__project=project)
    found: set[tuple[str, str]] = set()
    new = set(chosen.values_list("item__scenario", "item__digest"))
    while new:
        found |= new
        alike = Q(scenario__in={scenario for scenario, _digest in new if scenario})
        alike |= Q(digest__in={digest for _scenario, digest in new})
        new = set(items.filter(alike).order_by().values_list("scenario", "digest").distinct()) - found
    return frozenset(scenario or digest for scenario, digest in found)


def without_locked(items: QuerySet[Item], alignments: QuerySet[Alignment]) -> QuerySet[Item]:
    """The items without those that the alignments have locked, without copies of these, and without their scenarios."""
    return items.exclude(is_locked(alignments))


def is_locked(alignments: QuerySet[Alignment]) -> Q:
    """A filter for items: the alignments have locked the item, a copy of it, or an item of its scenario."""
    return _is_in(locked_items(alignments))


def _is_in(chosen: QuerySet[SelectedItem]) -> Q:
    scenarios = chosen.exclude(item__scenario="").values("item__scenario")
    return Q(digest__in=chosen.values("item__digest")) | Q(scenario__in=scenarios)


def is_tuned_on(judge: Judge) -> Q:
    """A filter for items: an alignment has tuned the judge on the item, a copy of it, or an item of its scenario.

    That is, the judge is a version there but for the base, is made from one, or asks the same model with the same
    prompt as one.
    """
    lineage = [judge.pk, *(ancestor.pk for ancestor in judge.ancestry())]
    versions = [
        *AlignmentCandidate.objects.filter(judge__in=lineage),
        *family_versions(judge, Alignment.objects.filter(project=judge.project_id)),
    ]
    base = AlignmentCandidate.Origin.BASE
    alignments = Alignment.objects.filter(pk__in={each.alignment_id for each in versions if each.origin != base})
    return _is_in(SelectedItem.objects.filter(selection__in=alignments.values("tuning")))


def with_looks_left(alignments: QuerySet[Alignment]) -> QuerySet[Alignment]:
    """The alignments that are open and have a look left: their locked items are still needed for a test."""
    counted = alignments.filter(closed_at=None).annotate(taken=Count("looks", distinct=True))
    return counted.filter(taken__lt=F("looks_allowed"))


def with_test(alignments: QuerySet[Alignment]) -> QuerySet[Alignment]:
    """The alignments without those that were closed before the first look: what these had locked is free again."""
    unseen = Alignment.objects.filter(closed_at__isnull=False, looks=None)
    return alignments.exclude(pk__in=unseen.values("pk"))


def open_tests(judge: Judge) -> QuerySet[Alignment]:
    """The alignments with a look left in which the judge is a version without a look, or is made from such a version.

    If the judge was made from several versions, one after another, the nearest counts; the base judge does not count. A
    judge that asks the same model with the same prompt counts as that version, whatever the spaces and spelling of its
    texts.
    """
    still_open = with_looks_left(Alignment.objects.filter(project=judge.project_id))
    if not still_open.exists():
        return still_open
    lineage = [judge.pk, *(ancestor.pk for ancestor in judge.ancestry())]
    nearest: dict[int, AlignmentCandidate] = {}
    versions = AlignmentCandidate.objects.filter(judge__in=lineage).select_related("look")
    for version in sorted(versions, key=lambda version: lineage.index(version.judge_id)):
        nearest.setdefault(version.alignment_id, version)
    for version in family_versions(judge, still_open):
        nearest.setdefault(version.alignment_id, version)
    untested = [
        alignment
        for alignment, version in nearest.items()
        if version.origin != AlignmentCandidate.Origin.BASE and not hasattr(version, "look")
    ]
    return still_open.filter(pk__in=untested)


def family_key(judge: Judge) -> tuple[str, str, str]:
    """A key that is equal for judges of one family: they ask the same model with the same prompt; spaces, invisible
    characters, capitals, Unicode form, the order of own texts and `repair` make no difference."""
    prompt = {name: level for name, level in judge.variant.items() if name != "repair"}
    if own_texts := prompt.get("own_texts"):
        prompt["own_texts"] = sorted(map(_plain, own_texts))
    return judge.provider, judge.model, _plain(prompt)


def _plain(part: Any) -> str:
    if isinstance(part, Mapping):
        return "{" + ",".join(f"{_plain(name)}:{_plain(part[name])}" for name in sorted(part)) + "}"
    if isinstance(part, list | tuple):
        return "[" + ",".join(map(_plain, part)) + "]"
    text = unicodedata.normalize("NFKC", str(part)).casefold()
    return "".join(char for char in text if unicodedata.category(char)[0] not in "ZC")


def family_versions(judge: Judge, alignments: QuerySet[Alignment]) -> list[AlignmentCandidate]:
    """The versions in some alignments that are of the judge's family: the judges as they were first, then those that
    have not been looked at."""
    same_model = {"judge__provider": judge.provider, "judge__model": judge.model}
    versions = AlignmentCandidate.objects.filter(alignment__in=alignments, **same_model).select_related("judge", "look")
    own = family_key(judge)
    alike = [version for version in versions if family_key(version.judge) == own]
    base = AlignmentCandidate.Origin.BASE
    return sorted(alike, key=lambda version: (version.origin != base, hasattr(version, "look"), version.pk))


def without_open_tests(items: QuerySet[Item], judge: Judge) -> QuerySet[Item]:
    """The items without those that the judge may be asked about in a look only."""
    return without_locked(items, open_tests(judge))


def refuse_locked(judge: Judge, asked: QuerySet[Item], *, within: Alignment | None = None) -> None:
    """Refuse to ask a version of an alignment about locked items outside of a look: this would be an uncounted look.

    A run ``within`` an alignment is checked only against other alignments, because an alignment asks about its own
    locked items only in looks. A version that had its look may be asked about all items, and every version may when no
    look is left. A judge that a design made from a version counts as that version.
    """
    still_open = open_tests(judge).exclude(pk__in=[within.pk] if within else [])
    if still_open and asked.filter(is_locked(still_open)).exists():
        sentence = _(
            "“%(judge)s” is a version in the alignment “%(alignment)s”, made from one, or asks the same model with the "
            "same prompt. It may not be asked about its locked items except in a look there. Run it over a selection "
            "without them, or take the look first."
        )
        raise Refused(sentence % {"judge": judge, "alignment": still_open[0]}, code="locked")


def example_items(examples: Sequence[Example], project: int) -> dict[str, Item]:
    """By digest, the items of a project that are shown as examples."""
    digests = {example.item for example in examples}
    items = Item.objects.filter(dataset__project=project, digest__in=digests).select_related("dataset").order_by("-pk")
    found = {item.digest: item for item in items} if digests else {}
    if missing := digests - found.keys():
        raise _wrong(_("%d example items of this judge are not in the project.") % len(missing))
    return found


def _of_rubric(sentence: str) -> Refused:
    return Refused(sentence, code="examples", fields={"rubric_version": sentence})


def _not_drawn() -> Refused:
    sentence = _("Examples are drawn from a selection, with per_class from 1 to %d, and a seed.")
    return _wrong(sentence % MOST_PER_CLASS)


def _wrong(sentence: str) -> Refused:
    return Refused(sentence, code="examples", fields={"variant": sentence})
