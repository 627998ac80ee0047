"""Search over examples and versions of a judge: each step makes one more version and scores it on the tuning items.

``random``: a version of the alignment (as it was, edited or proposed), drawn at random, with examples drawn at random.
``greedy``: the best version so far with one more example. Examples come from the panel's labels of tuning items alone.
The alignment's budget caps it. A job does one step at a time and waits in between until the version is answered.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts import access, audit, jobs
from accounts.jobs import JobKind
from accounts.models import Job, User
from accounts.refusals import Refused
from annotation.selections import new_seed, selected_items
from judging import alignment, examples, runs, spending
from judging.models import Alignment, AlignmentCandidate, AlignmentSearch, JudgeRun

MOST_STEPS = 50
MOST_DRAWS = 30
"""Draws after which a search that finds no version that is new has ended."""
MOST_SHOWN = 1 / 3
"""Share of the tuning scenarios that the examples of a version may show: it is not asked about these."""


def begin_search(
    *, alignment_searched: Alignment, method: str, steps: int, seed: int | None = None, actor: User | None = None
) -> AlignmentSearch:
    """Store a search with its waiting job, which the caller enqueues.

    Refused: while another is under way, before the judge as it was is scored, for judges that ask about several
    criteria in one call (they can't have examples), and without a budget where replies cost something.
    """
    current = alignment_searched
    access.refuse_archived(current.project)
    alignment.refuse_closed(current)
    if method not in AlignmentSearch.Method.values or not 1 <= steps <= MOST_STEPS:
        sentence = _("A search is random or greedy and has from 1 to %d steps.") % MOST_STEPS
        raise Refused(sentence, code="search")
    if current.base.variant.get("grouping") != "single":
        sentence = _("Examples need a judge that asks about one criterion per call: the grouping “single”.")
        raise Refused(sentence, code="grouping")
    price = spending.price(current.base)
    if current.budget is None and (price is None or any(price)):
        raise Refused(_("A search needs a cap: set the budget of the alignment first."), code="budget")
    if not alignment.is_answered(alignment.run_of(current, current.base, current.tuning)):
        raise Refused(_("Ask the judge as it was about the tuning items first."), code="not_tuned")
    with transaction.atomic():
        Alignment.objects.select_for_update(no_key=True).get(pk=current.pk)
        if current.searches.filter(job__state__in=Job.OPEN).exists():
            raise Refused(_("A search of this alignment is under way. Wait for its end, or cancel it."), code="busy")
        stored_seed = new_seed() if seed is None else seed
        plan: dict[str, Any] = {"alignment": current, "method": method, "steps": steps, "seed": stored_seed}
        search = AlignmentSearch.objects.create(**plan, created_by=actor)
        jobs.begin(kind=Job.Kind.SEARCH, subject=search, project=current.project, owner=actor, total=steps)
        audit.record(actor=actor, project=current.project, verb="search for version", subject=current)
    return search


def last_run(search: AlignmentSearch) -> JudgeRun | None:
    """The run of the newest version that a search has made."""
    newest = search.candidates.select_related("judge").order_by("-pk").first()
    return alignment.run_of(search.alignment, newest.judge, search.alignment.tuning) if newest else None


def next_version(search: AlignmentSearch, gains: Mapping[int, float]) -> JudgeRun | None:
    """Make the next version and start its run; None when none is left to be made. ``gains``: by judge, on tuning."""
    made = search.candidates.count()
    if made >= search.steps:
        return None
    for draw in range(MOST_DRAWS):
        generator = random.Random(f"{search.seed}:{made}:{draw}")
        chosen = _greedy(search, gains, generator) if search.method == "greedy" else _random(search, generator)
        if chosen is None:
            continue
        try:
            if run := _started(search, *chosen, number=made + 1):
                return run
        except Refused as refused:
            if refused.code != "nothing_to_ask":  # its examples left nothing to ask about: another draw
                raise
    return None


def _started(
    search: AlignmentSearch, parent: AlignmentCandidate, shown: list[dict[str, Any]], *, number: int
) -> JudgeRun | None:
    """The run of a new version with these examples; None when there is this version already."""
    current = search.alignment
    with transaction.atomic():
        candidate = alignment.add_candidate(
            alignment=current,
            parent=parent.judge,
            variant={**parent.judge.variant, "examples": shown},
            name=f"{current.base.name[:80]}, search {search.pk}.{number}",
            origin=AlignmentCandidate.Origin.SEARCH,
            actor=search.created_by,
        )
        if candidate.search_id is None and candidate.origin == AlignmentCandidate.Origin.SEARCH:
            AlignmentCandidate.objects.filter(pk=candidate.pk).update(search=search)
            return alignment.start_tuning(candidate=candidate, actor=search.created_by)
        transaction.set_rollback(True)
    return None


def _few_shown(search: AlignmentSearch, drawn: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The examples in turn that show at most ``MOST_SHOWN`` of the tuning scenarios, or one: the others are asked."""
    units: dict[str, set[str]] = defaultdict(set)
    columns = ("digest", "scenario")
    for digest, scenario in selected_items(search.alignment.tuning).values_list(*columns):
        units[digest].add(scenario or digest)
    most = max(1, int(MOST_SHOWN * len(set().union(*units.values()))))
    kept, seen = [], set[str]()
    for example in drawn:
        more = seen | units.get(example["item"], set())
        if len(more) <= most:
            kept.append(example)
            seen = more
    return kept


def _random(search: AlignmentSearch, generator: random.Random) -> tuple[AlignmentCandidate, list[dict[str, Any]]]:
    """A version that no search has made, and examples."""
    own = search.alignment.candidates.exclude(origin=AlignmentCandidate.Origin.SEARCH).select_related("judge")
    parent = generator.choice(list(own.order_by("pk")))
    per_class, seed = generator.choice((1, examples.MOST_PER_CLASS)), generator.randrange(2**31)
    drawn = examples.draw_examples(selection=search.alignment.tuning, per_class=per_class, seed=seed)
    return parent, _few_shown(search, generator.sample(drawn, generator.randint(1, len(drawn))))


def _greedy(
    search: AlignmentSearch, gains: Mapping[int, float], generator: random.Random
) -> tuple[AlignmentCandidate, list[dict[str, Any]]] | None:
    """The best version so far, and its examples with one more; None where that class, or all, is full."""
    known = list(search.alignment.candidates.select_related("judge").order_by("pk"))
    best = max(known, key=lambda candidate: (gains.get(candidate.judge_id, 0.0), -candidate.pk))
    before = list(best.judge.variant.get("examples", ()))
    seed = generator.randrange(2**31)
    pool = examples.draw_examples(selection=search.alignment.tuning, per_class=examples.MOST_PER_CLASS, seed=seed)
    more = generator.choice(pool)
    classes = Counter((shown["criterion"], shown["language"], shown["score"]) for shown in before)
    is_full = classes[more["criterion"], more["language"], more["score"]] >= examples.MOST_PER_CLASS
    shown = [*before, more]
    return None if is_full or more in before or len(_few_shown(search, shown)) < len(shown) else (best, shown)


def end_search(search: AlignmentSearch, sentence: str) -> bool:
    """Leave a search ended, with the reason; its newest run sends nothing more."""
    if (run := last_run(search)) is not None and not alignment.is_answered(run):
        runs.pause_run(run=run, reason=sentence)
    return bool(AlignmentSearch.objects.filter(pk=search.pk).update(reason=sentence))


KIND = JobKind(
    model=AlignmentSearch,
    task=lambda _search: "analytics.tasks.step_search",
    fail=end_search,
    title=lambda search: str(search.alignment.name),
    address=lambda search: reverse("alignment", args=[search.alignment.project.slug, search.alignment_id]),
    related=("alignment__project",),
    most_tries=None,
)
