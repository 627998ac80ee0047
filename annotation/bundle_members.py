"""The tables of the annotation app in a bundle: items, rubrics, panels without their people, campaigns, ratings."""

from __future__ import annotations

from django.db.models import F, QuerySet

from accounts import languages
from accounts.models import Project
from annotation.adjudication import digest_of
from annotation.bundle import Incoming, Member, Outgoing, Row, reader_of
from annotation.models import (
    Adjudication,
    Annotation,
    Annotator,
    Assignment,
    Campaign,
    CollectedPrompt,
    CollectionDataset,
    CollectionMember,
    Criterion,
    CuratedItem,
    Curation,
    Dataset,
    DatasetCheckup,
    Duty,
    EvidenceSpan,
    Guideline,
    Import,
    Item,
    ItemSelection,
    MeetingDecision,
    Panel,
    PanelSeat,
    PromptCollection,
    PromptSlot,
    PromptVersion,
    QualificationRule,
    Rating,
    ReferenceItem,
    ReferenceScore,
    Rubric,
    RubricVersion,
    SelectedItem,
    Selection,
    Skip,
    Taxonomy,
    WritingDecision,
    WritingDuty,
    WritingSubmission,
    WritingText,
)
from annotation.readers import FormatError, Problem, excerpt, rubric_from_dict, taxonomy_from_dict
from annotation.sampling.certificates import require_shown
from annotation.selections import rule_in_words

_SINCE_5 = ("taxonomy", "criteria_sets", "priority", "due_at", "quota", "paused")
_OURS = ("project", "created_by")
# The mapping of an import is left out: it may contain the names behind the pseudonyms.
_OF_IMPORTS = ("kind", "created_at")


def _datasets(project: Project) -> QuerySet[Dataset]:
    return Dataset.objects.ready().filter(project=project)


def _campaigns(project: Project) -> QuerySet[Campaign]:
    return Campaign.objects.filter(project=project)


def _duties(project: Project) -> QuerySet[Duty]:
    return Duty.objects.filter(campaign__project=project)


def _stored(row: Row, incoming: Incoming) -> None:
    row["state"] = Import.State.STORED.value


def _shown(row: Row, incoming: Incoming) -> None:
    """Refuse turns that the desk could not show."""
    if not all(isinstance(turn, dict) and {"speaker", "text"} <= turn.keys() for turn in row["turns"]):
        raise ValueError("turns with a speaker and a text")


def _readable(row: Row, incoming: Incoming) -> None:
    try:
        rubric_from_dict(row["document"])
    except FormatError as error:
        raise ValueError(f"a rubric ({error.problem})") from None


def _applicable(row: Row, incoming: Incoming) -> None:
    try:
        taxonomy_from_dict(row["document"])
    except FormatError as error:
        raise ValueError(f"a taxonomy ({error.problem})") from None


def _with_sets(row: Row, incoming: Incoming) -> None:
    """Refuse sets of criteria that the desk could not show, such as one that names no criterion of the rubric."""
    sets = row.get("criteria_sets", [])
    if not isinstance(sets, list) or not all(
        isinstance(keys, list) and keys and all(isinstance(key, str) for key in keys) for keys in sets
    ):
        raise ValueError("lists of the keys of criteria")
    known = incoming.criteria.get(incoming.versions.get(row["campaign"], -1), set())
    if nothing := [keys for keys in sets if known.isdisjoint(keys)]:
        raise ValueError(f"sets with a criterion of the rubric, not {', '.join(nothing[0])}")
    incoming.sets[row["id"]] = len(sets)


def _described(row: Row, incoming: Incoming) -> None:
    """Refuse a selection with a rule that no page could describe."""
    try:
        rule_in_words(row["rule"])
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ValueError('a rule of a selection, such as {"kind": "list", "items": ["d1"]}') from None


def _likely(row: Row, incoming: Incoming) -> None:
    """Refuse a probability that no draw has, and a wave before the first."""
    if not 0 < row["probability"] <= 1:
        raise ValueError("a probability above 0 and at most 1")
    if row.get("wave", 1) < 1:
        raise ValueError("a wave of 1 or more")


def _perhaps_likely(row: Row, incoming: Incoming) -> None:
    if row["probability"] is not None:
        _likely(row, incoming)


def _made_from(row: Row, incoming: Incoming) -> None:
    """Refuse a note of how a dataset was made that no page could show."""
    making = row["made_from"]
    is_shown = isinstance(making, dict) and {"dataset", "items", "families"} <= making.keys()
    if not is_shown or not isinstance(making.get("findings"), dict) or type(making["items"]) is not int:
        raise ValueError("how a dataset was made, with dataset, findings, families and items")


def _guided(row: Row, incoming: Incoming) -> None:
    """Refuse guidelines that no page could show."""
    guidelines = row["guidelines"]
    if not isinstance(guidelines, dict) or not all(isinstance(text, str) for text in guidelines.values()):
        raise ValueError("guidelines by language")


def _with_new_key(row: Row, incoming: Incoming) -> None:
    row["key"] = incoming.lease_key(row["prompt"], row["number"])


def _with_text_key(row: Row, incoming: Incoming) -> None:
    row["key"] = incoming.lease_key(row["id"], 0)


def _with_sent_key(row: Row, incoming: Incoming) -> None:
    """A new key, and texts that a page could show."""
    if not isinstance(row["texts"], list) or not all(isinstance(text, str) for text in row["texts"]):
        raise ValueError("texts, one for each field or turn")
    row["key"] = incoming.lease_key(row["text"], row["number"])
    if row.get("decision"):  # the one decision that a submission had in a bundle of version 10
        made = WritingDecision(submission_id=row["id"])
        for name in ("decision", "comment", "decided_at"):
            read = reader_of(WritingDecision._meta.get_field(name))  # type: ignore[arg-type]
            setattr(made, name, read(row[name]))
        incoming.further.append(made)


def _human_texts(project: Project) -> QuerySet[WritingText]:
    """The texts that were submitted. What is only a draft stays where it was written."""
    submitted = WritingText.objects.filter(duty__project=project, submissions__isnull=False)
    return submitted.filter(item__dataset__in=_datasets(project)).distinct()


def _certified(row: Row, incoming: Incoming) -> None:
    """Refuse a certificate that no page could show."""
    require_shown(row["rule"], row["certificate"])


def require_own_items(project: Project) -> None:
    """Refuse selections of items that their campaign does not have, and duties with another campaign's selection.

    For a project that was just loaded, before its transaction ends: raises ``FormatError``.
    """
    for selection in ItemSelection.objects.filter(campaign__project=project).select_related("campaign__dataset"):
        own = Item.objects.of(selection.campaign.dataset).values("pk")
        foreign = SelectedItem.objects.filter(selection=selection).exclude(item__in=own).select_related("item").first()
        if foreign is not None:
            text = f"{excerpt(foreign.item.external_id)} in “{excerpt(selection.name)}”"
            expected = "items of the dataset of the selection’s campaign"
            raise FormatError(Problem("selected_items.jsonl", None, "item", text, expected, "foreign_item"))
    chosen = _duties(project).exclude(chosen=None).exclude(chosen__campaign=F("campaign")).first()
    if chosen is not None:
        expected = "a selection of the duty’s campaign"
        raise FormatError(Problem("duties.jsonl", None, "chosen", excerpt(chosen.name), expected, "foreign_selection"))


def _criterion(row: Row, incoming: Incoming) -> None:
    incoming.criteria.setdefault(row["rubric_version"], set()).add(row["key"])


def _campaign(row: Row, incoming: Incoming) -> None:
    incoming.versions[row["id"]] = row["rubric_version"]


def _with_examples(row: Row, incoming: Incoming) -> None:
    """Refuse worked examples that the desk could not show, and a language that is none."""
    texts = ("text", "criterion", "explanation")
    for example in row["examples"]:
        is_shown = isinstance(example, dict) and all(isinstance(example.get(name) or "", str) for name in texts)
        if not is_shown or not isinstance(example.get("score"), int | float | None):
            raise ValueError("worked examples, each with text, criterion, score and explanation")
    languages.canonical_language(row["language"])


def _unleased(row: Row, outgoing: Outgoing) -> None:
    """A leased assignment becomes open in the bundle."""
    if row["state"] == Assignment.State.LEASED:
        row["state"], row["annotator"] = Assignment.State.OPEN.value, None


def _keyed(row: Row, incoming: Incoming) -> None:
    most = incoming.sets.get(row["duty"], 0)
    if not 0 <= row.get("criteria_set", 0) <= most:
        raise ValueError(f"a criteria_set from 0 to {most}, as its duty has sets")
    if row["state"] == Assignment.State.SUBMITTED:
        row["key"] = incoming.lease_key(row["id"], row["revision"])


def _submitted(row: Row, incoming: Incoming) -> None:
    if row["assignment"] is not None:
        row["key"] = incoming.lease_key(row["assignment"], row["revision"])


def _anonymous(row: Row, outgoing: Outgoing) -> None:
    """The ratings that an adjudicator saw, under the pseudonyms of the bundle, with their digest."""
    names = outgoing.pseudonyms
    row["seen"] = [{**each, "rater": names.get(each["rater"], each["rater"])} for each in row["seen"]]
    row["digest"] = digest_of(row["seen"])


def _sent(row: Row, incoming: Incoming) -> None:
    row["key"] = incoming.lease_key(row["id"], 0)
    if not all(
        isinstance(each, dict) and {"rater", "revision", "status", "score"} == each.keys() for each in row["seen"]
    ):
        raise ValueError("the ratings that were seen, each with rater, revision, status and score")


def _pseudonym(row: Row, outgoing: Outgoing) -> None:
    row["pseudonym"] = outgoing.pseudonyms.get(row["pseudonym"], row["pseudonym"])


MEMBERS = (
    Member(
        name="intakes",
        model=Import,
        rows=lambda project: Import.objects.filter(
            project=project, state__in=(Import.State.STORED, Import.State.UNDOING)
        ),
        leaves=tuple(field.name for field in Import._meta.concrete_fields if field.name not in _OF_IMPORTS),
        on_read=_stored,
    ),
    Member(
        name="datasets",
        model=Dataset,
        rows=_datasets,
        refers={"derived_from": "datasets", "extends": "datasets", "file_import": "intakes"},
        written={"file_import": "intake"},
        leaves=(*_OURS, "names_shown"),
    ),
    Member(
        name="dataset_parts",
        model=Dataset.parts.through,
        rows=lambda project: Dataset.parts.through._default_manager.filter(from_dataset__in=_datasets(project)),
        refers={"from_dataset": "datasets", "to_dataset": "datasets"},
    ),
    Member(
        name="items",
        model=Item,
        rows=lambda project: Item.objects.filter(dataset__in=_datasets(project)),
        refers={"dataset": "datasets"},
        on_read=_shown,
    ),
    Member(
        name="dataset_checkups",
        model=DatasetCheckup,
        rows=lambda project: DatasetCheckup.objects.filter(dataset__in=_datasets(project)).exclude(made_from={}),
        refers={"dataset": "datasets"},
        # What was found is left out: the target can check again.
        leaves=("job", "result", "rules", "digest", "checked_at", "asked"),
        first=8,
        on_read=_made_from,
    ),
    Member(
        name="curations",
        model=Curation,
        rows=lambda project: Curation.objects.filter(dataset__in=_datasets(project)),
        refers={"dataset": "datasets", "source": "datasets"},
        leaves=("created_by",),
        first=8,
        on_read=_certified,
    ),
    Member(
        name="curated_items",
        model=CuratedItem,
        rows=lambda project: CuratedItem.objects.filter(curation__dataset__in=_datasets(project)),
        refers={"curation": "curations", "item": "items"},
        first=8,
        on_read=_perhaps_likely,
    ),
    Member(name="rubrics", model=Rubric, rows=lambda project: Rubric.objects.filter(project=project), leaves=_OURS),
    Member(
        name="rubric_versions",
        model=RubricVersion,
        rows=lambda project: RubricVersion.objects.filter(rubric__project=project),
        refers={"rubric": "rubrics"},
        leaves=_OURS,
        on_read=_readable,
    ),
    Member(
        name="criteria",
        model=Criterion,
        rows=lambda project: Criterion.objects.filter(rubric_version__rubric__project=project),
        refers={"rubric_version": "rubric_versions"},
        since={"evidence_rule": 5},
        on_read=_criterion,
    ),
    Member(
        name="annotators",
        model=Annotator,
        rows=lambda project: Annotator.objects.filter(project=project),
        leaves=("project", "user", "removed_at"),
        on_write=_pseudonym,
    ),
    Member(name="panels", model=Panel, rows=lambda project: Panel.objects.filter(project=project), leaves=_OURS),
    Member(
        name="seats",
        model=PanelSeat,
        rows=lambda project: PanelSeat.objects.filter(panel__project=project),
        refers={"panel": "panels", "annotator": "annotators"},
    ),
    Member(
        name="campaigns",
        model=Campaign,
        rows=_campaigns,
        refers={"dataset": "datasets", "rubric_version": "rubric_versions"},
        leaves=(*_OURS, "qualification_of"),
        since={"asks_at_close": 6},
        on_read=_campaign,
    ),
    Member(
        name="guidelines",
        model=Guideline,
        rows=lambda project: Guideline.objects.filter(campaign__in=_campaigns(project)),
        refers={"campaign": "campaigns"},
        leaves=("created_by",),
        first=6,
        on_read=_with_examples,
    ),
    Member(
        name="qualification_rules",
        model=QualificationRule,
        rows=lambda project: QualificationRule.objects.filter(campaign__in=_campaigns(project)),
        refers={"campaign": "campaigns"},
        first=6,
    ),
    Member(
        name="reference_items",
        model=ReferenceItem,
        rows=lambda project: ReferenceItem.objects.filter(campaign__in=_campaigns(project)),
        refers={"campaign": "campaigns", "item": "items"},
        leaves=("created_by",),
        first=6,
    ),
    Member(
        name="reference_scores",
        model=ReferenceScore,
        rows=lambda project: ReferenceScore.objects.filter(reference__campaign__in=_campaigns(project)),
        refers={"reference": "reference_items", "criterion": "criteria"},
        first=6,
    ),
    Member(
        name="meeting_decisions",
        model=MeetingDecision,
        rows=lambda project: MeetingDecision.objects.filter(campaign__in=_campaigns(project)),
        refers={"campaign": "campaigns", "criterion": "criteria", "item": "items"},
        leaves=("recorded_by",),
        first=6,
    ),
    Member(
        name="item_selections",
        model=ItemSelection,
        rows=lambda project: ItemSelection.objects.filter(campaign__project=project),
        refers={"campaign": "campaigns"},
        leaves=("created_by",),
        first=3,
        on_read=_described,
    ),
    Member(
        name="selected_items",
        model=SelectedItem,
        rows=lambda project: SelectedItem.objects.filter(selection__campaign__project=project),
        refers={"selection": "item_selections", "item": "items"},
        first=3,
        on_read=_likely,
    ),
    Member(
        name="taxonomies",
        model=Taxonomy,
        rows=lambda project: Taxonomy.objects.filter(project=project),
        leaves=_OURS,
        first=5,
        on_read=_applicable,
    ),
    Member(
        name="prompt_collections",
        model=PromptCollection,
        rows=lambda project: PromptCollection.objects.filter(project=project),
        leaves=_OURS,
        first=9,
        on_read=_guided,
    ),
    Member(
        name="prompt_slots",
        model=PromptSlot,
        rows=lambda project: PromptSlot.objects.filter(collection__project=project),
        refers={"collection": "prompt_collections"},
        first=9,
    ),
    Member(
        name="prompt_writers",
        model=CollectionMember,
        rows=lambda project: CollectionMember.objects.filter(collection__project=project),
        refers={"collection": "prompt_collections", "annotator": "annotators"},
        first=9,
    ),
    Member(
        name="prompts",
        model=CollectedPrompt,
        rows=lambda project: CollectedPrompt.objects.filter(collection__project=project).exclude(
            state=CollectedPrompt.State.DRAFT
        ),
        refers={"collection": "prompt_collections", "slot": "prompt_slots", "author": "prompt_writers"},
        leaves=("draft",),
        first=9,
    ),
    Member(
        name="prompt_versions",
        model=PromptVersion,
        rows=lambda project: PromptVersion.objects.filter(prompt__collection__project=project),
        refers={"prompt": "prompts", "author": "prompt_writers", "reviewer": "prompt_writers"},
        # What was shown of similar texts names rows of this database.
        leaves=("key", "notices", "signature"),
        first=9,
        on_read=_with_new_key,
    ),
    Member(
        name="prompt_datasets",
        model=CollectionDataset,
        rows=lambda project: CollectionDataset.objects.filter(
            collection__project=project, dataset__in=_datasets(project)
        ),
        refers={"collection": "prompt_collections", "dataset": "datasets"},
        first=9,
    ),
    Member(
        name="writing_duties",
        model=WritingDuty,
        rows=lambda project: WritingDuty.objects.filter(project=project, dataset__in=_datasets(project)),
        refers={"dataset": "datasets", "panel": "panels"},
        leaves=_OURS,
        first=10,
    ),
    Member(
        name="human_texts",
        model=WritingText,
        rows=_human_texts,
        refers={"duty": "writing_duties", "item": "items", "annotator": "annotators", "stored_in": "datasets"},
        leaves=("key", "draft", "skip_reason", "note"),
        first=10,
        on_read=_with_text_key,
    ),
    Member(
        name="text_submissions",
        model=WritingSubmission,
        rows=lambda project: WritingSubmission.objects.filter(text__in=_human_texts(project)),
        refers={"text": "human_texts"},
        leaves=("key",),
        until={"decision": 10, "comment": 10, "decided_at": 10},
        first=10,
        on_read=_with_sent_key,
    ),
    Member(
        name="text_decisions",
        model=WritingDecision,
        rows=lambda project: WritingDecision.objects.filter(submission__text__in=_human_texts(project)),
        refers={"submission": "text_submissions"},
        leaves=("decided_by",),
        first=11,
    ),
    Member(
        name="duties",
        model=Duty,
        rows=_duties,
        refers={
            "campaign": "campaigns",
            "panel": "panels",
            "chosen": "item_selections",
            "taxonomy": "taxonomies",
        },
        leaves=("purpose", "stands_for"),
        since={"chosen": 3, **dict.fromkeys(_SINCE_5, 5)},
        on_read=_with_sets,
    ),
    Member(
        name="duty_criteria",
        model=Duty.criteria.through,
        rows=lambda project: Duty.criteria.through._default_manager.filter(duty__in=_duties(project)),
        refers={"duty": "duties", "criterion": "criteria"},
    ),
    Member(
        name="selections",
        model=Selection,
        rows=lambda project: Selection.objects.filter(duty__campaign__project=project),
        refers={"duty": "duties", "item": "items"},
        on_read=_likely,
    ),
    Member(
        name="assignments",
        model=Assignment,
        rows=lambda project: Assignment.objects.filter(duty__in=_duties(project)),
        refers={"duty": "duties", "item": "items", "annotator": "annotators"},
        leaves=("key", "leased_at", "leased_until"),
        since={"criteria_set": 5},
        on_write=_unleased,
        on_read=_keyed,
    ),
    Member(
        name="skips",
        model=Skip,
        rows=lambda project: Skip.objects.filter(duty__in=_duties(project)),
        refers={"duty": "duties", "item": "items", "annotator": "annotators"},
        since={"resolved_at": 3},
    ),
    Member(
        name="annotations",
        model=Annotation,
        rows=lambda project: Annotation.objects.filter(campaign__in=_campaigns(project)),
        refers={
            "campaign": "campaigns",
            "item": "items",
            "annotator": "annotators",
            "assignment": "assignments",
            "file_import": "intakes",
        },
        written={"file_import": "intake"},
        leaves=("key", "rubric_change"),
        since={"blind": 2, "certainty": 7, "swapped": 5},
        on_read=_submitted,
    ),
    Member(
        name="ratings",
        model=Rating,
        rows=lambda project: Rating.objects.filter(annotation__campaign__in=_campaigns(project)),
        refers={"annotation": "annotations", "criterion": "criteria", "given_version": "rubric_versions"},
        since={"rule_kept": 3, "given_version": 6, "given_score": 6},
    ),
    Member(
        name="evidence",
        model=EvidenceSpan,
        rows=lambda project: EvidenceSpan.objects.filter(rating__annotation__campaign__in=_campaigns(project)),
        refers={"rating": "ratings"},
        first=5,
    ),
    Member(
        name="adjudications",
        model=Adjudication,
        rows=lambda project: Adjudication.objects.filter(campaign__project=project),
        refers={
            "campaign": "campaigns",
            "item": "items",
            "criterion": "criteria",
            "rubric_version": "rubric_versions",
        },
        leaves=("adjudicator", "key"),
        first=4,
        on_write=_anonymous,
        on_read=_sent,
    ),
)
