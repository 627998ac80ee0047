"""What leaves a collection: its prompts as CSV, and the accepted ones as a dataset."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.models import User
from accounts.refusals import Refused
from annotation.collection.prompt_collections import QUOTED_FORMULA, SLOT_COLUMNS
from annotation.imports import storage
from annotation.models import CollectedPrompt, CollectionDataset, Dataset, PromptCollection, PromptVersion
from annotation.readers import ItemRow
from annotation.writers.csv import csv_lines
from annotation.writers.tables import moment

HEADER = (
    *("prompt", "task", "style", "difficulty", "language", "state", "author", "version", "text", "submitted_at"),
    *("decision", "reviewer", "comment", "reviewed_at"),
)


def prompt_key(prompt: CollectedPrompt) -> str:
    """The id of the item that a prompt becomes, and its scenario."""
    return f"prompt-{prompt.code}"


def prompts_csv(collection: PromptCollection, *, reader: User | None = None) -> Iterator[str]:
    """A row for every version that was submitted, with its review; people by pseudonym, but without the author of what
    the ``reader`` may review."""
    reviews = collection.members.filter(reviews=True, annotator__user=reader).exists() if reader else False
    versions = PromptVersion.objects.filter(prompt__collection=collection).order_by("prompt", "number")
    versions = versions.select_related("prompt__slot", "author__annotator", "reviewer__annotator")
    rows = (
        (
            prompt_key(version.prompt),
            *(version.prompt.slot.task, version.prompt.slot.style, version.prompt.slot.difficulty),
            *(version.prompt.slot.language, version.prompt.state),
            "" if reviews and version.prompt.state == CollectedPrompt.State.IN_REVIEW else str(version.author),
            *(version.number, version.text),
            *(moment(version.submitted_at), version.decision, str(version.reviewer or ""), version.comment),
            moment(version.reviewed_at),
        )
        for version in versions.iterator(1_000)
    )
    return csv_lines(HEADER, rows, ending="\r\n")


def slots_csv(collection: PromptCollection) -> Iterator[str]:
    """The slots, as `slots_from_csv` reads them: a name gets one quote more if it begins as a quoted formula does."""
    rows = (
        [f"'{cell}" if QUOTED_FORMULA.match(str(cell)) else cell for cell in row]
        for row in collection.slots.values_list(*SLOT_COLUMNS).iterator()
    )
    return csv_lines(SLOT_COLUMNS, rows, ending="\r\n")


def store_prompts(*, collection: PromptCollection, name: str, actor: User | None = None) -> Dataset:
    """Store the accepted prompts as a dataset: items that have only a question, each its own scenario.

    Refused: codes ``invalid``, ``name_taken``, ``empty``, ``archived``.
    """
    project = collection.project
    access.refuse_archived(project)
    name = name.strip()
    if not 1 <= len(name) <= 120:
        sentence = _("A name has from 1 to %d characters.") % 120
        raise Refused(sentence, code="invalid", fields={"name": sentence})
    accepted = collection.prompts.filter(state=CollectedPrompt.State.ACCEPTED)
    if not accepted.exists():
        raise Refused(_("No prompt is accepted yet."), code="empty")
    with transaction.atomic():
        PromptCollection.objects.select_for_update(no_key=True).get(pk=collection.pk)  # of two at the same moment
        if Dataset.objects.filter(project=project, name=name).exists():
            raise storage.name_taken(name)
        # No annotator rates prompts without an answer.
        dataset = storage.store(
            project=project, name=name, items=_prompt_rows(collection), actor=actor, allocatable=False
        )
        CollectionDataset.objects.create(collection=collection, dataset=dataset)
        audit.record(actor=actor, project=project, verb="store prompts", subject=dataset)
    return dataset


def _prompt_rows(collection: PromptCollection) -> Iterator[ItemRow]:
    versions = PromptVersion.objects.filter(
        prompt__collection=collection,
        prompt__state=CollectedPrompt.State.ACCEPTED,
        decision=PromptVersion.Decision.ACCEPT,
    )
    versions = versions.select_related("prompt__slot", "author__annotator").order_by("prompt")
    for line, version in enumerate(versions.iterator(1_000), 1):
        slot = version.prompt.slot
        yield ItemRow(
            external_id=prompt_key(version.prompt),
            language=slot.language,
            generator=None,
            scenario=prompt_key(version.prompt),
            title="",
            turns=[],
            fields={"question": version.text},
            attributes={
                "task": slot.task,
                "style": slot.style,
                "difficulty": slot.difficulty,
                "author": str(version.author),
                "version": version.number,
                "collection": collection.name,
            },
            content_warning="",
            line=line,
        )
