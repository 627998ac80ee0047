"""Known replies: replies to earlier runs, to other judges that send the same requests, and to the judges of user turns
in simulations.

Two variants of a prompt can give the same text for a rubric ("anchors" and "reasons" if no point has a reason): they
are two judges with the same requests. A request is paid once in a project, even if two runs of a design need it at the
same time: the second run waits for the reply to the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import combinations, product

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from annotation.models import Item, RubricVersion
from judging import judges
from judging.models import (
    Attempt,
    Call,
    DesignCell,
    GenerationAttempt,
    GenerationPlan,
    Judge,
    JudgeDesign,
    JudgeRun,
    Realisation,
)
from judging.models.generation import READ_VERDICT
from judging.prompts import CriterionBrief, response_schema, system_message, user_message
from judging.requests import REFERENCE, CallRequest, ShownExamples, criterion_brief, in_shown_order, item_text

WAIT = timedelta(seconds=1)  # pause before checking again for a reply that another run of the design waits for
PlannedCall = tuple[int, int | None, int]
"""Item, criterion (None: all in one call) and repeat."""


# --- while a run asks -------------------------------------------------------------------------------------------------


def may_be_known(run: JudgeRun) -> bool:
    """Whether another run of the project has replies that this run may use, or may get such replies during it."""
    if run.pays_again:
        return False
    alike = [judge.pk for judge in _alike(run.judge)]
    simulations = GenerationPlan.objects.filter(project=run.project_id, utterance_judge__in=alike)
    if simulations.exclude(state=GenerationPlan.State.DRAFT).exists():
        return True
    in_design = DesignCell.objects.filter(design=run.design_id, judge__in=alike).exclude(judge=run.judge_id)
    if run.design_id and in_design.exists():
        return True
    others = JudgeRun.objects.filter(judge__in=alike).exclude(pk=run.pk)
    replies = Attempt.objects.filter(call__run=OuterRef("pk"), outcome=Attempt.Outcome.REPLIED)
    return others.filter(Exists(replies.exclude(reply_key=""))).exists()


def untried(call_requests: Sequence[CallRequest]) -> list[CallRequest]:
    """The requests that may use a known reply. A call that already had an answer (besides the answer that it repairs)
    is not among them: its request is sent."""
    repaired = {call_request.call.repairs_id for call_request in call_requests}
    answers = Attempt.objects.filter(call__in=[call_request.call.pk for call_request in call_requests])
    answers = answers.exclude(outcome__in=(*Attempt.OPEN, Attempt.Outcome.LOST, Attempt.Outcome.UNAVAILABLE))
    answered = {call for call, attempt in answers.values_list("call", "pk") if attempt not in repaired}
    return [call_request for call_request in call_requests if call_request.call.pk not in answered]


def _verdicts_in_simulations(project: int) -> QuerySet[GenerationAttempt]:
    """The replies of judges of user turns in the simulations of a project that could be read there."""
    replied = GenerationAttempt.objects.filter(READ_VERDICT, outcome=GenerationAttempt.Outcome.REPLIED)
    replied = replied.exclude(reply_key="").exclude(text="")
    return replied.filter(realisation__plan__project=project).exclude(reply={})


def replies_to(run: JudgeRun, call_requests: Sequence[CallRequest]) -> dict[int, Attempt | GenerationAttempt]:
    """By call, a reply to its request in the project; a reply about the same item is preferred to one about another
    item with equal text, and that to one in a simulation."""
    keys = {call_request.reply_key for call_request in call_requests}
    replied = Attempt.objects.filter(reply_key__in=keys, outcome=Attempt.Outcome.REPLIED).exclude(reply={})
    known = replied.filter(call__state=Call.State.SETTLED, call__run__project=run.project_id)
    known = known.select_related("call").defer("request").order_by("pk")
    in_simulations = _verdicts_in_simulations(run.project_id).filter(reply_key__in=keys).defer("request").order_by("pk")
    any_item: dict[str, Attempt | GenerationAttempt] = {source.reply_key: source for source in in_simulations}
    any_item |= {source.reply_key: source for source in known}
    own = {(source.reply_key, source.call.item_id): source for source in known}
    return {
        call_request.call.pk: own.get((key, call_request.call.item_id), any_item[key])
        for call_request in call_requests
        if (key := call_request.reply_key) in any_item
    }


def in_flight(run: JudgeRun, call_requests: Sequence[CallRequest], now: datetime) -> frozenset[str]:
    """The keys of the requests that another run of the design, or a simulation of the project, has in flight, under a
    lease that has not expired.

    Call this before `replies_to`, which then finds a reply that arrives between the two; so nothing is sent twice.
    """
    if not call_requests:
        return frozenset()
    keys = {call_request.reply_key for call_request in call_requests}
    judged = GenerationAttempt.objects.filter(outcome__in=GenerationAttempt.OPEN, reply_key__in=keys)
    judged = judged.exclude(reply_key="").filter(realisation__plan__project=run.project_id)
    judged = judged.filter(realisation__state=Realisation.State.LEASED, realisation__leased_until__gt=now)
    asked = frozenset(judged.values_list("reply_key", flat=True))
    if run.design_id is None:
        return asked
    held = Attempt.objects.filter(outcome__in=Attempt.OPEN, call__run__design=run.design_id, reply_key__in=keys)
    held = held.filter(call__state=Call.State.LEASED, call__leased_until__gt=now)
    return asked.union(held.exclude(call__run=run.pk).values_list("reply_key", flat=True))


def let_wait(call_requests: Sequence[CallRequest], asked: Collection[str], now: datetime) -> frozenset[int]:
    """Let calls wait if their request is in flight already (``asked``). Returns the keys of these calls."""
    waiting = [call_request.call.pk for call_request in call_requests if call_request.reply_key in asked]
    if waiting:
        Call.objects.filter(pk__in=waiting).update(not_before=now + WAIT)
    return frozenset(waiting)


def lock_design(run: JudgeRun) -> None:
    """Lock the run's design until the end of the transaction, so that no other run of it reads what is in flight."""
    if run.design_id is not None:
        list(JudgeDesign.objects.select_for_update(no_key=True).filter(pk=run.design_id))


def common_replies(runs: Collection[JudgeRun]) -> dict[tuple[int, int], int]:
    """For every pair of these runs, how many of their calls share a reply, which was paid once.

    For a run paired with itself: its calls about items of equal text, beyond the first call of each text.
    """
    reused = Attempt.objects.filter(call__run__in=runs, outcome=Attempt.Outcome.REUSED).order_by()
    pairs = list(reused.values_list("reused_from", "call__run"))
    sources = Attempt.objects.filter(pk__in={source for source, _run in pairs}, call__run__in=runs)
    pairs += list(sources.order_by().values_list("pk", "call__run"))
    runs_of: dict[int | None, list[int]] = {}
    for source, run in pairs:
        runs_of.setdefault(source, []).append(run)
    counts: Counter[tuple[int, int]] = Counter()
    for users in runs_of.values():
        times = Counter(users)
        counts.update({(run, run): n - 1 for run, n in times.items() if n > 1})
        counts.update(dict.fromkeys(combinations(sorted(times), 2), 1))
    return dict(counts)


# --- before a run is started ------------------------------------------------------------------------------------------


def _alike(judge: Judge) -> list[Judge]:
    """The judges of the project that send the same parameters to the same model, this one among them."""
    others = Judge.objects.filter(project=judge.project_id, provider=judge.provider, model=judge.model)
    sent = judges.canonical(judge.parameters)
    return [other for other in others if judges.canonical(other.parameters) == sent]


class JudgeRequests:
    """What a judge sends about the items of a rubric version, to be compared with what others send."""

    def __init__(self, judge: Judge, rubric_version: RubricVersion) -> None:
        self.judge, self.rubric_version = judge, rubric_version
        self.variant = judges.variant_of(judge.variant)

    @cached_property
    def instructions(self) -> dict[int | None, str]:
        """By criterion (None: all in one call), a digest of all but the text of the item."""
        briefs = self._briefs_by_key
        single = self.variant.grouping == "single"
        groups = {pk: [brief] for pk, brief in briefs.items()} if single else {None: [*briefs.values()]}
        judge = self.judge
        to = {"provider": judge.provider, "model": judge.model, "parameters": judge.parameters}
        return {
            pk: judges.digest([to, system_message(group, self.variant), response_schema(group, self.variant)])
            for pk, group in groups.items()
        }

    @cached_property
    def _examples(self) -> ShownExamples:
        return ShownExamples(self.variant, self.judge.project_id)

    @cached_property
    def _briefs_by_key(self) -> dict[int, CriterionBrief]:
        criteria = sorted(self.rubric_version.criteria.all(), key=lambda criterion: criterion.position)
        return {each.pk: criterion_brief(each, self.variant.instruction_language) for each in criteria}

    @property
    def _briefs(self) -> list[CriterionBrief]:
        return [*self._briefs_by_key.values()]

    def about(self, item: Item, criterion: int | None) -> str:
        """The text of the item as it is sent, after the examples."""
        briefs = self._briefs if criterion is None else [self._briefs_by_key[criterion]]
        shown = self._examples.about(briefs, item) if criterion and self.variant.examples else ()
        text = in_shown_order(item_text(item, self.variant.reference_answer), briefs, self.variant)
        return user_message(text, self.variant, shown)["content"]

    def reply_key(self, item: Item) -> str:
        """The key of the reply to the first request about all criteria of an item."""
        briefs = self._briefs
        return judges.reply_key(
            self.judge,
            schema=response_schema(briefs, self.variant),
            parameters=self.judge.parameters,
            messages=[system_message(briefs, self.variant), {"role": "user", "content": self.about(item, None)}],
        )

    def same_as(self, other: JudgeRequests, items: Iterable[Item]) -> set[tuple[int, int | None]]:
        """The pairs of item and criterion about which both send the same."""
        equal = [pk for pk, digest in self.instructions.items() if other.instructions.get(pk) == digest]
        if not equal:
            return set()
        orders = {self.variant.candidate_order, other.variant.candidate_order}
        if len(orders) > 1 and "both" in orders:  # that depends on the repeat; what is sent is compared when it is sent
            return set()
        texts_differ = self.variant.examples != other.variant.examples or len(orders) > 1
        answers_differ = self.variant.reference_answer != other.variant.reference_answer
        return {
            (item.pk, pk)
            for item, pk in product(items, equal)
            if not (texts_differ or (answers_differ and REFERENCE in item.fields))
            or self.about(item, pk) == other.about(item, pk)
        }


class AskedTogether:
    """The judges that are asked about the same items at the same time, on one rubric version."""

    def __init__(self, rubric_version: RubricVersion) -> None:
        self.judges: list[Judge] = []
        self._rubric_version = rubric_version
        self._sent: dict[int, JudgeRequests] = {}

    def sent_by(self, judge: Judge) -> JudgeRequests:
        """What any judge, one of these or not, sends on this rubric version."""
        return self._sent.setdefault(judge.pk, JudgeRequests(judge, self._rubric_version))


@dataclass(frozen=True, slots=True)
class KnownCalls:
    """How many calls of a plan have had a reply, and how many more another run of the same design sends."""

    answered: int
    shared: int


def known_calls(
    *,
    judge: Judge,
    rubric_version: RubricVersion,
    asked: QuerySet[Item],
    repeats: int,
    together: AskedTogether | None = None,
) -> KnownCalls:
    """Count the calls of a planned run that have a reply in an earlier run of the project on this rubric version, or in
    a simulation, and the other calls with the same request as a call of the judges that are asked ``together`` with
    it."""
    together = together or AskedTogether(rubric_version)
    others = _senders_of_the_same(judge, together)
    earlier = _answered(rubric_version, asked, repeats)
    by_judge = earlier.filter(run__judge=judge).values_list("item", "criterion", "repeat").distinct()
    in_simulations = _verdicts_in_simulations(judge.project_id)
    in_simulations = in_simulations.filter(realisation__plan__utterance_judge__in=_alike(judge))
    verdicts = set(in_simulations.values_list("reply_key", flat=True))
    if not (others or verdicts):
        return KnownCalls(by_judge.count(), 0)
    answered: set[PlannedCall] = set(by_judge)
    shared: set[PlannedCall] = set()
    items = list(asked.select_related("dataset"))
    if verdicts and together.sent_by(judge).variant.grouping != "single":  # the judge of user turns asks about all
        answered |= {(item.pk, None, 1) for item in items if together.sent_by(judge).reply_key(item) in verdicts}
    for other in others:
        same = together.sent_by(judge).same_as(together.sent_by(other), items)
        if _is_current(other):
            theirs = earlier.filter(run__judge=other).values_list("item", "criterion", "repeat")
            answered |= {call for call in theirs.distinct() if call[:2] in same}
        if other in together.judges:
            shared |= {(*pair, repeat) for pair in same for repeat in range(1, repeats + 1)}
    return KnownCalls(len(answered), len(shared - answered))


def _senders_of_the_same(judge: Judge, together: AskedTogether) -> list[Judge]:
    """Other judges of the project whose requests about some criterion differ in the item's text at most."""
    own = together.sent_by(judge).instructions.items()
    others = (other for other in _alike(judge) if other.pk != judge.pk)
    return [other for other in others if own & together.sent_by(other).instructions.items()]


def _is_current(judge: Judge) -> bool:
    """Whether its requests are worded today as they were when it was declared."""
    variant = judges.variant_of(judge.variant)
    about = {"endpoint": judge.provider, "model": judge.model, "parameters": judge.parameters}
    return judges.judge_digest(variant=variant, **about) == judge.digest


def _answered(rubric_version: RubricVersion, asked: QuerySet[Item], repeats: int) -> QuerySet[Call]:
    """The settled calls about these items, unchanged, whose reply can be used again."""
    replies = Attempt.objects.filter(call=OuterRef("pk"), outcome=Attempt.Outcome.REPLIED).exclude(reply_key="")
    settled = Call.objects.filter(run__rubric_version=rubric_version, state=Call.State.SETTLED, change="")
    return settled.filter(Exists(replies), item__in=asked, repeat__lte=repeats).order_by()


MOST_UNUSED = 5


@dataclass(frozen=True, slots=True)
class UnusedReplies:
    """Replies about the same items that a run does not use: whose, by which rubric version, how many, and why."""

    judge: Judge
    rubric_version: RubricVersion
    calls: int
    why: str


def unused_replies(
    *, judge: Judge, rubric_version: RubricVersion, asked: QuerySet[Item], repeats: int
) -> list[UnusedReplies]:
    """The replies of earlier runs about the ``asked`` items that a run of this judge can't use, most first."""
    used = [judge, *_senders_of_the_same(judge, AskedTogether(rubric_version))]
    earlier = Call.objects.filter(
        run__project=judge.project_id, state=Call.State.SETTLED, change="", item__in=asked, repeat__lte=repeats
    )
    replied = Attempt.objects.filter(call=OuterRef("pk"), outcome=Attempt.Outcome.REPLIED)
    usable = Q(run__judge__in=used, run__rubric_version=rubric_version) & Exists(replied.exclude(reply_key=""))
    counted = (
        earlier.filter(Exists(replied)).exclude(usable).order_by().values_list("run__judge", "run__rubric_version")
    )
    counts = counted.annotate(count=Count("pk")).order_by("-count", "run__judge", "run__rubric_version")[:MOST_UNUSED]
    others = Judge.objects.in_bulk([pk for pk, _version, _count in counts])
    versions = RubricVersion.objects.select_related("rubric").in_bulk([pk for _judge, pk, _count in counts])
    unknown = _("what was sent is not known: imported, moved in a bundle, or stored by an earlier version")
    found = []
    for other, version, count in counts:
        why = judges.differs_in(judge, others[other]) if other != judge.pk else []
        why += [_("another rubric")] if version != rubric_version.pk else []
        found.append(UnusedReplies(others[other], versions[version], count, "; ".join(why) or unknown))
    return found
