"""Do raters mistake simulated users for people? Two datasets are mixed into one for rating, and nothing visible shows
an item's origin.

The origin is an attribute of the items, which annotators never see; figures compare its values (docs/simulation.md).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation import allocation, campaigns, rubrics
from annotation.desk.presentation import ASKING
from annotation.imports import storage
from annotation.models import Campaign, Dataset, Item, Panel, RubricVersion
from annotation.readers import ItemRow, parse_rubric
from annotation.sampling.paired_dialogues import DialoguePair, PooledDialogue, neutral_turns, pair_dialogues, up_to

UNITS_RATED = ("turn", "dialogue")
"""An item is a dialogue up to one turn of the user, which is rated; or the whole dialogue."""
MOST_PER_LANGUAGE = 1_000
LONGEST_COMPARISON_NAME = 120
DIALOGUES_SEARCHED = 200  # dialogues in which speakers are looked for
ORIGIN_ATTRIBUTE, ORIGIN_SIMULATED, ORIGIN_HUMAN = "origin", "simulated", "human"
LONGEST_SCENARIO = 200
RUBRIC_FILE = Path(__file__).with_name("user_rubric.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserComparisonSettings:
    """What is asked for: ``n`` items of each origin per language. The users' speakers are found if they are empty."""

    n: int = 50
    rated: str = "turn"
    simulated_user: str = ""
    human_user: str = ""
    seed: int


@dataclass(frozen=True, slots=True)
class ComparedLanguage:
    """How many dialogues of each origin a language has, and how many pairs were drawn."""

    language: str
    simulated: int
    human: int
    pairs: int


@dataclass(frozen=True, slots=True)
class DrawnComparison:
    """What a comparison would consist of."""

    settings: UserComparisonSettings
    pairs: tuple[DialoguePair, ...]
    languages: tuple[ComparedLanguage, ...]

    @property
    def items(self) -> int:
        return 2 * len(self.pairs)


def speakers_by_use(dataset: Dataset) -> list[str]:
    """The speakers in the first dialogues of a dataset, the usual ones who ask first, then in order of frequency."""
    counted: Counter[str] = Counter()
    for turns in Item.objects.of(dataset).values_list("turns", flat=True)[:DIALOGUES_SEARCHED]:
        counted.update({turn["speaker"] for turn in turns})
    names = [name for name, _count in counted.most_common()]
    return sorted(names, key=lambda name: name.casefold() not in ASKING)


def comparison_rubric(*, project: Project, actor: User | None = None) -> RubricVersion:
    """The published rubric of comparisons; the project gets it with its first one."""
    parsed = parse_rubric(RUBRIC_FILE.name, RUBRIC_FILE.read_bytes())
    if parsed.document is None:
        raise AssertionError(parsed.problems.sentences())
    version = rubrics.draft(project=project, document=parsed.document, actor=actor)
    if version.state == RubricVersion.State.PUBLISHED:
        return version
    return rubrics.publish(version=version, actor=actor)


def draw_comparison(*, simulated: Dataset, human: Dataset, settings: UserComparisonSettings) -> DrawnComparison:
    """The pairs that a comparison would have; nothing is stored. Refused: no language in common, no dialogues."""
    _check(simulated, human, settings)
    found = {
        "simulated_user": settings.simulated_user or _usual_speaker(simulated, "simulated_user"),
        "human_user": settings.human_user or _usual_speaker(human, "human_user"),
    }
    pools = [
        _pooled(simulated, found["simulated_user"], "simulated_user", is_simulated=True),
        _pooled(human, found["human_user"], "human_user", is_simulated=False),
    ]
    pairs = tuple(pair_dialogues(*pools, n=settings.n, whole=settings.rated == "dialogue", seed=settings.seed))
    counts = [Counter(dialogue.language for dialogue in pool) for pool in pools]
    if not pairs:
        sentence = _("The two datasets have no language in common in which the user has a turn.")
        raise Refused(sentence, code="no_items", fields={"human": sentence})
    drawn = Counter(pair.language for pair in pairs)
    languages = tuple(
        ComparedLanguage(tag, counts[0][tag], counts[1][tag], drawn[tag]) for tag in sorted({*counts[0], *counts[1]})
    )
    asked = UserComparisonSettings(n=settings.n, rated=settings.rated, seed=settings.seed, **found)
    return DrawnComparison(asked, pairs, languages)


def start_user_comparison(
    *,
    project: Project,
    simulated: Dataset,
    human: Dataset,
    name: str,
    settings: UserComparisonSettings,
    panels: Sequence[Panel] = (),
    overlap: int = 3,
    keep_names: bool = False,
    actor: User | None = None,
) -> Campaign:
    """Mix both origins into a new dataset, and open a campaign on it with our rubric, both called ``name``.

    Each of the ``panels`` gets a duty with ``overlap`` annotators per item; without panels the lead hands items out
    later. All of it is stored, or nothing.
    """
    access.refuse_archived(project)
    name = name.strip()
    if not 1 <= len(name) <= LONGEST_COMPARISON_NAME:
        sentence = _("Give the campaign a name of at most %d characters.") % LONGEST_COMPARISON_NAME
        raise Refused(sentence, code="invalid", fields={"name": sentence})
    drawn = draw_comparison(simulated=simulated, human=human, settings=settings)
    with transaction.atomic():
        # A second click at the same time waits, then finds that the name is taken.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if Dataset.objects.filter(project=project, name=name).exists():
            raise storage.name_taken(name)
        mixed = storage.store(
            project=project,
            name=name,
            items=_mixed_rows(drawn, simulated, human),
            actor=actor,
            derived_from=simulated,
            simulated=simulated.simulated or human.simulated,
        )
        version = comparison_rubric(project=project, actor=actor)
        campaign = campaigns.open_campaign(
            project=project, name=name, dataset=mixed, rubric_version=version, actor=actor
        )
        audit.record(actor=actor, project=project, verb="start user comparison", subject=campaign)
        if panels:
            shares = [allocation.DutyShare(panel, overlap, list(version.criteria.all())) for panel in panels]
            allocation.allocate_all(campaign=campaign, shares=shares, keep_names=keep_names, actor=actor)
    return campaign


def _check(simulated: Dataset, human: Dataset, settings: UserComparisonSettings) -> None:
    wrong = {}
    if not 1 <= settings.n <= MOST_PER_LANGUAGE:
        wrong["n"] = _("Give a number of items from 1 to %d.") % MOST_PER_LANGUAGE
    if settings.rated not in UNITS_RATED:
        wrong["rated"] = _("Rate single turns of users, or whole dialogues.")
    if simulated.pk == human.pk or simulated.project_id != human.project_id:
        wrong["human"] = _("Choose two different datasets of this project.")
    if wrong:
        raise Refused(" ".join(wrong.values()), code="invalid", fields=wrong)


def _usual_speaker(dataset: Dataset, field: str) -> str:
    """The speaker who is the user, recognised by a usual name. Refused if no speaker has a usual name."""
    named = [name for name in speakers_by_use(dataset) if name.casefold() in ASKING]
    if named:
        return named[0]
    sentence = _("Which speaker of “%(dataset)s” is the user? Available: %(all)s.")
    sentence %= {"dataset": dataset, "all": ", ".join(speakers_by_use(dataset)) or _("none")}
    raise Refused(sentence, code="invalid", fields={field: sentence})


def _pooled(dataset: Dataset, user: str, field: str, *, is_simulated: bool) -> list[PooledDialogue]:
    rows = Item.objects.of(dataset).values_list("pk", "language", "generator", "attributes", "turns")
    pool = [
        PooledDialogue(
            place=pk,
            language=language,
            simulator=str(attributes.get("simulator") or ORIGIN_SIMULATED) if is_simulated else "",
            turns=neutral_turns(turns, user),
        )
        for pk, language, _generator, attributes, turns in rows.iterator(2_000)
        if any(turn.get("speaker") == user for turn in turns) and not attributes.get("set_aside")
    ]
    if not pool:
        sentence = _("No dialogue of “%(dataset)s” has a turn of “%(speaker)s”.")
        sentence %= {"dataset": dataset, "speaker": user}
        raise Refused(sentence, code="no_items", fields={field: sentence})
    return pool


def _mixed_rows(drawn: DrawnComparison, simulated: Dataset, human: Dataset) -> Iterator[ItemRow]:
    """The items of both origins in random order; neither order nor ids reveal the origin."""
    sources = {
        item.pk: item
        for item in Item.objects.filter(
            pk__in=[each.place for pair in drawn.pairs for each in (pair.simulated, pair.human)]
        ).defer("turns", "fields")
    }
    chosen = [
        (origin, dialogue, pair.turn)
        for pair in drawn.pairs
        for origin, dialogue in ((ORIGIN_SIMULATED, pair.simulated), (ORIGIN_HUMAN, pair.human))
    ]
    random.Random(f"{drawn.settings.seed}:order").shuffle(chosen)
    width = len(str(len(chosen)))
    for number, (origin, dialogue, turn) in enumerate(chosen, 1):
        source = sources[dialogue.place]
        dataset = simulated if origin == ORIGIN_SIMULATED else human
        attributes: dict[str, Any] = {
            ORIGIN_ATTRIBUTE: origin,
            "source": str(dataset),
            "source_item": source.external_id,
            "mixed_by": f"{drawn.settings.rated}, seed {drawn.settings.seed}",
        }
        if dialogue.simulator:
            attributes["simulator"] = dialogue.simulator
        if written_as := source.attributes.get("written_as"):
            attributes["written_as"] = written_as
        if source.generator:
            attributes["chatbot"] = source.generator
        if turn is not None:
            attributes["user_turn"] = turn + 1
        yield ItemRow(
            external_id=f"u{number:0{width}}",
            language=dialogue.language,
            generator=dialogue.simulator or ORIGIN_HUMAN,
            scenario=_mixed_scenario(origin, source.cluster),
            title="",
            turns=[dict(each) for each in up_to(dialogue.turns, turn)],
            fields={},
            attributes=attributes,
            content_warning=source.content_warning,
            line=number,
        )


def _mixed_scenario(origin: str, cluster: str) -> str:
    """The scenario of a mixed item: its origin and its cluster. A name that is too long is cut, and a digest is
    added."""
    name = f"{origin}/{cluster}"
    if len(name) <= LONGEST_SCENARIO:
        return name
    digest = sha256(cluster.encode()).hexdigest()[:32]
    return f"{name[: LONGEST_SCENARIO - len(digest) - 1]}~{digest}"
