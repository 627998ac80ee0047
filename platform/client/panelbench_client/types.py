"""Types of the API's requests and replies, written by `manage.py client_types` from the schema."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Json: TypeAlias = Any
Moment: TypeAlias = str
"""Date and time of day by ISO 8601, in UTC."""
Decimal: TypeAlias = str
"""An exact number, written out."""

AnchorDetailEnum: TypeAlias = Literal["name", "anchors", "reasons"]
AnswerStatusEnum: TypeAlias = Literal["scored", "na", "stopped"]
ApiEnum: TypeAlias = Literal["openai", "anthropic", "gemini"]
AttemptOutcomeEnum: TypeAlias = Literal[
    "pending",
    "sent",
    "lost",
    "replied",
    "unavailable",
    "refused",
    "reused",
]
BlankEnum: TypeAlias = Literal[""]
CallState: TypeAlias = Literal["waiting", "leased", "settled", "failed"]
CampaignState: TypeAlias = Literal["open", "paused", "closed"]
CandidateOrderEnum: TypeAlias = Literal["given", "swapped", "both"]
CauseEnum: TypeAlias = Literal[
    "misread_rubric",
    "misread_dialogue",
    "slip",
    "ambiguous_rubric",
    "ambiguous_dialogue",
    "standards",
    "language",
    "other",
]
CertaintyEnum: TypeAlias = Literal["none", "optional", "required"]
CollectedPromptState: TypeAlias = Literal["draft", "in_review", "returned", "accepted", "rejected", "released"]
ConditionStateEnum: TypeAlias = Literal["holds", "fails", "not_certain", "not_run"]
CurationFacet: TypeAlias = Literal["issue", "score", "generator", "length"]
CurationMethod: TypeAlias = Literal["balanced", "random"]
DailySpendingKindEnum: TypeAlias = Literal["runs", "imported", "tests", "proposals", "texts"]
DecidedWritingDecisionEnum: TypeAlias = Literal["accepted", "returned"]
DecisionEnum: TypeAlias = Literal[
    "stale",
    "insufficient",
    "rubric_problem",
    "judge_alone",
    "judge_with_correction",
    "ranking_only",
    "humans_only",
]
DecisionStateEnum: TypeAlias = Literal["certain", "not_certain"]
DeclaredByEnum: TypeAlias = Literal["environment", "operator"]
DeliveryStateEnum: TypeAlias = Literal["waiting", "delivered", "given_up"]
DoubtEnum: TypeAlias = Literal[
    "uncounted",
    "too_few",
    "too_many",
    "other_model",
    "dearer_model",
    "failed",
]
EndedEnum: TypeAlias = Literal["stopped", "user_turns", "too_many_refusals", "set_aside"]
EventsEnum: TypeAlias = Literal[
    "ratings.submitted",
    "run.finished",
    "plan.finished",
    "plan.paused",
    "import.finished",
    "decision.changed",
]
FormatEnum: TypeAlias = Literal[
    "csv",
    "html",
    "json",
    "jsonl",
    "parquet",
    "pdf",
    "xlsx",
    "xml",
    "yaml",
    "zip",
]
GenerationPlanState: TypeAlias = Literal["draft", "running", "paused", "cancelled"]
GeneratorNamesEnum: TypeAlias = Literal["mask", "keep"]
GroupingEnum: TypeAlias = Literal["single", "compound"]
ImportKind: TypeAlias = Literal["dataset", "rubric", "ratings", "verdicts", "study"]
ImportState: TypeAlias = Literal["uploaded", "checking", "storing", "stored", "undoing", "failed"]
InstructionLanguageEnum: TypeAlias = Literal["en", "et"]
InvitedRowOutcomeEnum: TypeAlias = Literal["invited", "member", "open", "duplicate"]
JobKindEnum: TypeAlias = Literal[
    "check",
    "store",
    "undo",
    "export",
    "bundle",
    "deliveries",
    "numbers",
    "proposal",
    "search",
    "calls",
    "rubric",
    "checkup",
    "texts",
]
JobStateEnum: TypeAlias = Literal["waiting", "running", "finished", "failed", "cancelled"]
JudgeRunState: TypeAlias = Literal["running", "paused", "finished", "cancelled", "imported"]
JuryEnum: TypeAlias = Literal["majority", "median", "mean", "minimum"]
LayoutEnum: TypeAlias = Literal["S0", "S1", "S2", "S3", "S4"]
MatchingEnum: TypeAlias = Literal["exact", "tolerance"]
MeasureEnum: TypeAlias = Literal["accuracy", "closeness"]
MethodEnum: TypeAlias = Literal["random", "greedy"]
NameEnum: TypeAlias = Literal["surface", "panel", "judge", "languages"]
OffEnum: TypeAlias = Literal["by_hand", "gone", "failing"]
OnlyEnum: TypeAlias = Literal["whole", "all", "every"]
OrderEnum: TypeAlias = Literal["range", "entropy", "na", "critical", "judge"]
PresetEnum: TypeAlias = Literal["experts", "skilled", "crowd"]
PromptCollectionState: TypeAlias = Literal["open", "closed"]
PromptOrder: TypeAlias = Literal["rubric", "reversed"]
PromptReviewDecisionEnum: TypeAlias = Literal["accept", "send_back", "reject"]
PromptVersionDecisionEnum: TypeAlias = Literal["accept", "send_back", "reject"]
PurposeEnum: TypeAlias = Literal["training", "exam", "control"]
QueuedItemStateEnum: TypeAlias = Literal["open", "stale", "decided"]
RatedEnum: TypeAlias = Literal["turn", "dialogue"]
RealisationDecision: TypeAlias = Literal["keep", "set_aside"]
RealisationState: TypeAlias = Literal["waiting", "leased", "written", "given_up"]
ReferenceAnswerEnum: TypeAlias = Literal["layout", "shown", "hidden"]
RoleEnum: TypeAlias = Literal["lead", "researcher", "annotator"]
RubricState: TypeAlias = Literal["draft", "published"]
RubricTextEnum: TypeAlias = Literal["specific", "general"]
SavedMappingKindEnum: TypeAlias = Literal["dataset", "ratings", "verdicts"]
SettingsReferenceEnum: TypeAlias = Literal["mode", "mode_split", "median", "mean", "minimum", "each"]
StatusesEnum: TypeAlias = Literal["failed", "unparsed", "out_of_range", "refused", "truncated", "error"]
StepState: TypeAlias = Literal["failed", "not_run", "insufficient", "passed"]
StudyChoiceReferenceEnum: TypeAlias = Literal["mean", "median", "mode", "mode_split", "each"]
StudyEnum: TypeAlias = Literal[
    "s0",
    "s0_labels",
    "s1_question",
    "s1_mathematics",
    "s1_translation",
    "s1_summary",
    "s1_dialogue",
    "s2",
    "s2_all",
    "s3",
    "s4_single",
    "s4_compound",
    "s4_detailed",
]
TaskEnum: TypeAlias = Literal[
    "general",
    "s0_annotator",
    "s0_classifier",
    "s1_dialogue",
    "s1_mathematics",
    "s1_question",
    "s1_summary",
    "s1_translation",
    "s2_evaluator",
    "s3_detector",
    "s4_assistant",
    "own",
]
TopicEnum: TypeAlias = Literal["people", "judges", "generators", "certainty"]
TransferKindEnum: TypeAlias = Literal["export", "bundle"]
TransferStateEnum: TypeAlias = Literal["waiting", "working", "done", "failed"]
UnitEnum: TypeAlias = Literal["bytes", "rows", "deliveries"]
VerdictStatusEnum: TypeAlias = Literal["ok", "unparsed", "out_of_range", "refused", "truncated", "error"]
WhatEnum: TypeAlias = Literal[
    "items",
    "ratings",
    "verdicts",
    "dataset-verdicts",
    "scores",
    "adjudications",
    "training-set",
    "rubric",
    "campaign",
    "label-studio",
    "hugging-face",
    "croissant",
    "report",
    "recomputation",
    "bundle",
]
WritingDecisionDecisionEnum: TypeAlias = Literal["accepted", "returned", "released"]
WritingDutyKind: TypeAlias = Literal["answer", "turns"]
WritingTextState: TypeAlias = Literal["writing", "submitted", "returned", "accepted", "skipped", "released"]


class AdjudicationDecision(TypedDict):
    """A decision on one criterion: `score` null is N/A. `cause` may be empty where the raters agree."""

    criterion: str
    score: float | None
    cause: NotRequired[CauseEnum | BlankEnum]
    cause_note: NotRequired[str]
    rationale: str
    seen: str


class Alignment(TypedDict):
    """What is stated before the first version of a judge is scored."""

    id: int
    name: str
    campaign: int
    base: int
    share: NotRequired[float]
    looks: NotRequired[int]
    measure: NotRequired[MeasureEnum]
    confidence: NotRequired[float]
    seed: NotRequired[int]
    budget: NotRequired[Decimal | None]
    closed_at: Moment | None
    created_at: Moment


class AlignmentDetail(TypedDict):
    """What is stated before the first version of a judge is scored."""

    id: int
    name: str
    campaign: int
    base: int
    share: NotRequired[float]
    looks: NotRequired[int]
    measure: NotRequired[MeasureEnum]
    confidence: NotRequired[float]
    seed: NotRequired[int]
    budget: NotRequired[Decimal | None]
    closed_at: Moment | None
    created_at: Moment
    tuning: int
    split: Json
    versions: Json
    looks_left: int
    looks_taken: Json
    proposals: Json
    searches: list[VersionSearch]


class Also(TypedDict):
    kind: ImportKind


class Annotation(TypedDict):
    key: str
    revision: int
    submitted_at: Moment


class AnnotatorProgress(TypedDict):
    pseudonym: str
    submitted: int
    on_desk: int
    last_at: Moment | None


class Answer(TypedDict):
    criterion: str
    score: NotRequired[float | None]
    status: NotRequired[AnswerStatusEnum]
    rationale: NotRequired[str]
    evidence: NotRequired[list[Span]]


class AnswersPlan(TypedDict):
    """Which models answer, how often and for how much. `spec`: without one, our own for answers to prompts."""

    name: str
    generators: list[PlanGenerator]
    repeats: NotRequired[int]
    seed: NotRequired[int]
    budget: NotRequired[Decimal | None]
    spec: NotRequired[Json]


class Arrived(TypedDict):
    """The keys of complete uploads (`uploads/`), and the other fields of `UploadSerializer`."""

    uploads: list[str]
    kind: NotRequired[ImportKind]
    mapping: NotRequired[dict[str, Json]]
    target: NotRequired[dict[str, Json]]


class Assignment(TypedDict):
    key: str
    expires_at: Moment
    item: Item
    criteria: list[Criterion]
    certainty: CertaintyEnum


class Attempt(TypedDict):
    number: int
    outcome: AttemptOutcomeEnum
    request: NotRequired[Json]
    reply: NotRequired[Json]
    reason: NotRequired[str]
    served_model: NotRequired[str]
    tokens_in: NotRequired[int | None]
    tokens_out: NotRequired[int | None]
    reserved: NotRequired[Decimal | None]
    cost: NotRequired[Decimal | None]
    estimated: NotRequired[bool]
    doubt: NotRequired[DoubtEnum | BlankEnum]
    latency: NotRequired[float | None]
    at: NotRequired[Moment]


class Budget(TypedDict):
    """Refuses a field that it does not know: dropped without a word, it would be taken for heard."""

    budget: Decimal | None


class Bundle(TypedDict):
    """A bundle that came in as an upload."""

    upload: str


class Call(TypedDict):
    id: int
    item: str
    language: str
    criterion: NotRequired[str | None]
    repeat: int
    change: str
    state: CallState
    tries: int


class CallBatch(TypedDict):
    """A batch of a run's calls; `status` is what the provider says of it."""

    id: int
    provider_batch: NotRequired[str]
    status: NotRequired[str]
    calls: NotRequired[int]
    answered: NotRequired[int]
    reason: NotRequired[str]
    sent_at: NotRequired[Moment | None]
    ended_at: NotRequired[Moment | None]


class CallDetail(TypedDict):
    id: int
    item: str
    language: str
    criterion: NotRequired[str | None]
    repeat: int
    change: str
    state: CallState
    tries: int
    attempts: list[Attempt]


class Campaign(TypedDict):
    id: int
    name: str
    dataset: int
    rubric_version: int
    state: CampaignState
    created_at: Moment


class CellEstimate(TypedDict):
    """One figure of one cell. A cell that is cut by an attribute has its value under the attribute's column too."""

    statistic: str
    variant: NotRequired[str | None]
    level: NotRequired[str | None]
    criterion: NotRequired[str | None]
    language: NotRequired[str | None]
    judge: NotRequired[str | None]
    generator: NotRequired[str | None]
    agreement_class: NotRequired[str | None]
    reference: NotRequired[str | None]
    value: NotRequired[float | None]
    se: NotRequired[float | None]
    p: NotRequired[float | None]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    confidence: NotRequired[float | None]
    method: NotRequired[str | None]
    n_items: int
    n_raters: int
    n_ratings: int
    n_missing: int
    seed: NotRequired[int | None]
    undefined_share: NotRequired[float | None]
    reason: NotRequired[str | None]
    interval_reason: NotRequired[str | None]
    note: NotRequired[str | None]
    n_clusters: NotRequired[int | None]
    speaks_for: NotRequired[str | None]
    p_corrected: NotRequired[float | None]
    family: NotRequired[int | None]
    asked: str
    languages: NotRequired[list[str] | None]
    raters: NotRequired[list[str] | None]
    annotator: NotRequired[str | None]
    weights: NotRequired[str | None]


class ChangedCriterion(TypedDict):
    """A criterion of either version. `decisions` that are possible; none where there is nothing to decide."""

    criterion: str
    kind: str
    scale_differs: bool
    parts: list[PartChange]
    ratings: int
    items: int
    annotators: int
    not_applicable: int
    imported: int
    scores: list[RatedScore]
    decisions: list[str]


class CheckFinding(TypedDict):
    """One check: either it ran, or `reason` says why it does not apply."""

    check: str
    subject: str
    severity: str
    title: str
    reason: str
    items: int
    ordinals: str
    examples: list[FoundItem]


class CheckedPrompt(TypedDict):
    """The notices of a text, and what `confirmed` is then, so that this very text is submitted in spite of them."""

    similar: list[SimilarPrompt]
    language: str
    is_striking: bool
    confirm: str


class ChosenAudit(TypedDict):
    """What an audit run is about."""

    changes: NotRequired[list[str]]
    per_language: NotRequired[int]
    seed: NotRequired[int]
    judge: int
    dataset: int
    rubric_version: int
    budget: NotRequired[Decimal | None]


class ChosenRun(TypedDict):
    """What a run is about."""

    judge: int
    dataset: int
    rubric_version: int
    selection: NotRequired[int | None]
    repeats: NotRequired[int]
    budget: NotRequired[Decimal | None]
    by_batch: NotRequired[bool]


class ChosenStudy(TypedDict):
    """Refuses a field that it does not know: dropped without a word, it would be taken for heard."""

    study: StudyEnum
    provider: str
    model: str
    name: NotRequired[str]


class ClosingResults(TypedDict):
    """`answered` of `people` have answered; `waiting` answers are not shown yet, because their group is too small."""

    asked: bool
    people: int
    answered: int
    waiting: int
    criteria: list[CriterionDifficulty]
    comments: list[str]


class ClosingSwitch(TypedDict):
    asked: bool


class CollectedPrompt(TypedDict):
    """A prompt with its versions, oldest first. `author`: the pseudonym; empty for whoever may review it."""

    id: int
    slot: int
    task: str
    style: str
    difficulty: str
    language: str
    state: NotRequired[CollectedPromptState]
    author: str
    versions: list[PromptVersion]


class CollectionMember(TypedDict):
    annotator: str
    writes: NotRequired[bool]
    reviews: NotRequired[bool]


class CollectionProgress(TypedDict):
    """How far a collection is."""

    wanted: int
    accepted: int
    in_review: int
    returned: int
    left: int
    late_reviews: int
    is_overdue: bool
    people: list[MemberProgress]


class CollectionState(TypedDict):
    state: PromptCollectionState


class Column(TypedDict):
    name: str
    target: str
    filled: int
    blank: int
    distinct: int
    is_many: bool
    examples: list[str]
    most: list[Frequent]
    off_scale: int | None


class ComparedJudge(TypedDict):
    """A judge or jury: what it costs, its agreement with the panel on the mean of the cells, and its repeats."""

    name: str
    run: NotRequired[int | None]
    levels: dict[str, str]
    calls: int
    sent: int
    reused: int
    paid: Decimal | None
    verdicts: int
    unreadable: int
    cost_per_item: NotRequired[float | None]
    cost_per_point: NotRequired[float | None]
    agreement: NotRequired[float | None]
    repeat_sd: NotRequired[float | None]
    repeat_sd_unit: str
    is_efficient: bool


class ComparedLanguage(TypedDict):
    language: str
    simulated: int
    human: int
    pairs: int


class Comparison(TypedDict):
    """The newest answer, null until there is one; costs are those of this moment."""

    stale: bool
    answer: QuestionAnswer | None
    judges: list[ComparedJudge]
    disagreements: list[Disagreement]


class Condition(TypedDict):
    """One condition of the gate. `state`: holds or fails, where the whole interval lies on one side of the
    threshold; not_certain, where the interval contains the threshold: neither met nor failed; not_run, where
    there is no figure. Two hold by their value: `tau_b` (its lower bound has a threshold of its own) and
    `alt_test`.
    """

    name: str
    state: ConditionStateEnum
    sentence: str
    figures: list[GateFigure]


class ConfirmedClosing(TypedDict):
    """Refuses a field that it does not know: dropped without a word, it would be taken for heard."""

    confirm: bool


class ConfirmedLook(TypedDict):
    """Refuses a field that it does not know: dropped without a word, it would be taken for heard."""

    confirm: bool


class Confusion(TypedDict):
    """A tuning item and criterion on which a version differs from the panel."""

    item: str
    language: str
    criterion: str
    reference: float
    score: float
    rationale: str
    panel_rationales: list[str]


class Count(TypedDict):
    """What one cell holds, of the panel (`judge` is empty) or of one judge; `reasons`: why scores are missing."""

    criterion: str
    language: NotRequired[str | None]
    judge: str
    items: int
    raters: int
    ratings: int
    missing: int
    not_applicable: int
    reasons: dict[str, int]


class Criterion(TypedDict):
    key: str
    name: str
    question: str
    definition: str
    allows_na: bool
    points: list[Point]
    numeric: Range | None
    rationale: str
    rationale_words: int
    evidence: str
    critical: bool


class CriterionDifficulty(TypedDict):
    """`language`: "" where languages with few people are put together; null: too few people answered."""

    criterion: str
    language: str
    difficulty: PointCounts | None
    confidence: PointCounts | None


class CriterionScores(TypedDict):
    """Everything given to an item on one criterion; `superseded` are ratings that later ones replaced."""

    criterion: str
    level: str
    n_scores: int
    n_not_applicable: int
    n_stopped: int
    scores: list[ScoreCount]
    disagreement: float | None
    measure: str
    reference: float | None
    reference_rule: str
    adjudications: list[ItemAdjudication]
    ratings: list[ItemRating]
    superseded: list[ItemRating]
    verdicts: list[ItemVerdict]


class CuratedItem(TypedDict):
    item: str
    probability: float | None
    stratum: str


class Curation(TypedDict):
    id: int
    dataset: int
    source_dataset: int
    name: str
    rule: Json
    seed: int
    certificate: Json
    limits: list[str]
    created_at: Moment


class CurationPreview(TypedDict):
    items: int
    rule: Json
    seed: int
    certificate: Json
    limits: list[str]


class CurationSettings(TypedDict):
    """What is asked for; docs/curation.md says what each part does."""

    dataset: int
    run: NotRequired[int | None]
    n: int
    method: NotRequired[CurationMethod]
    languages: NotRequired[list[str]]
    issues: NotRequired[list[str] | None]
    overall: NotRequired[str | None]
    unreadable: NotRequired[str | None]
    words: NotRequired[list[str]]
    user: NotRequired[str]
    clean_first: NotRequired[bool]
    balance: NotRequired[list[CurationFacet]]
    by: NotRequired[list[str]]
    by_family: NotRequired[bool]
    seed: NotRequired[int]


class DailySpending(TypedDict):
    day: str
    person: str
    kind: DailySpendingKindEnum
    requests: int
    requests_without_cost: int
    usd: Decimal | None


class Dataset(TypedDict):
    id: int
    name: str
    version: int
    licence: str
    layout: Json
    simulated: bool
    allocatable: bool
    derived_from: int | None
    extends: int | None
    import_id: int | None
    intake: int | None
    items: int
    added: int
    created_at: Moment


class DatasetCheckup(TypedDict):
    """The newest check-up of a dataset. Without one, `checked_at` is null and there are no findings."""

    dataset: int
    job: int | None
    is_under_way: bool
    is_outdated: bool
    checked_at: Moment | None
    items: int
    findings: list[CheckFinding]
    lengths: list[LanguageLengths]
    families: dict[str, int]
    natives: list[FlagComparison]
    made_from: Json


class DatasetItem(TypedDict):
    id: int
    external_id: str
    ordinal: int
    language: str
    generator: str
    scenario: str
    title: str
    turns: list[DatasetTurn]
    fields: Json
    attributes: Json
    content_warning: str
    digest: str


class DatasetTurn(TypedDict):
    speaker: str
    name: NotRequired[str]
    text: str


class DecidedWriting(TypedDict):
    decision: DecidedWritingDecisionEnum
    comment: str
    decided_at: Moment


class Decision(TypedDict):
    """One decision with its strongest reasons and what would change it. `otherwise`: what a stale one would be.
    `state`: not_certain, where the interval of a condition of this use, of a wider use that nothing else
    stands against, or of the raters' agreement contains its threshold: narrower intervals could lead to
    another decision.
    """

    judge: str
    judge_id: int
    run: int
    criterion: str
    language: str
    decision: DecisionEnum
    state: DecisionStateEnum
    otherwise: NotRequired[str | None]
    n_items: int
    n_clusters: int
    n_raters: int
    reasons: list[str]
    would_change_it: list[Remedy]
    conditions: list[Condition]


class DecisionChange(TypedDict):
    """When a decision became what it is, from what, and why."""

    at: Moment
    judge: str
    criterion: str
    language: str
    decision: DecisionEnum
    former: str
    thresholds: int
    why: str


class Decisions(TypedDict):
    """The newest decisions, none until thresholds are declared; stale ones are being computed anew."""

    stale: bool
    thresholds: Thresholds | None
    computed_at: Moment | None
    decisions: list[Decision]


class DeclaredJudge(TypedDict):
    """Refuses a field that it does not know: dropped without a word, it would be taken for heard."""

    id: int
    name: str
    provider: str
    model: str
    parameters: NotRequired[dict[str, Json]]
    variant: NotRequired[Variant]
    timeout: NotRequired[int | None]
    tries: NotRequired[int | None]
    concurrency: NotRequired[int | None]
    refused: list[str]
    simulated: bool
    digest: str
    version_of: int | None
    created_at: Moment


class Delivery(TypedDict):
    """One event for one webhook. `status` is the status of the newest response, null if there was none."""

    id: int
    key: str
    event: str
    payload: dict[str, Json]
    state: DeliveryStateEnum
    tries: int
    status: int | None
    reason: str
    made_at: Moment
    tried_at: Moment | None
    due_at: Moment


class DerivedDataset(TypedDict):
    dataset: int | None
    job: int | None


class Design(TypedDict):
    """A factorial of judges, prompt factors and parameters over the same items."""

    id: int
    name: str
    factors: NotRequired[dict[str, list[Json]]]
    dataset: int
    rubric_version: int
    selection: NotRequired[int | None]
    repeats: NotRequired[int]
    budget: NotRequired[Decimal | None]
    jury: NotRequired[JuryEnum | BlankEnum]
    started_at: Moment | None
    created_at: Moment


class DesignDetail(TypedDict):
    """A factorial of judges, prompt factors and parameters over the same items."""

    id: int
    name: str
    factors: NotRequired[dict[str, list[Json]]]
    dataset: int
    rubric_version: int
    selection: NotRequired[int | None]
    repeats: NotRequired[int]
    budget: NotRequired[Decimal | None]
    jury: NotRequired[JuryEnum | BlankEnum]
    started_at: Moment | None
    created_at: Moment
    phase: str
    reasons: list[str]
    spent: str
    progress: Json
    cells: Json


class DesignForecast(TypedDict):
    calls: int
    answered: int
    shared: int
    verdicts: int
    items: int
    tokens_in: int
    tokens_out: int
    cost: Decimal | None
    spent: Decimal | None
    pilot: PilotForecast | None


class DeskDuty(TypedDict):
    id: int
    name: str
    campaign: str
    language: str
    paused: bool
    due_at: Moment | None
    done: int
    total: int
    left: int


class Disagreement(TypedDict):
    item: str
    language: str
    criterion: str
    first_score: float
    second_score: float
    first_rationale: str
    second_rationale: str


class DisputedCriterion(TypedDict):
    """One criterion of an item. `seen` is the digest of its ratings; a client sends it back with a decision."""

    criterion: str
    disputed: bool
    seen: str
    ratings: list[SeenRating]
    adjudications: list[ItemAdjudication]


class Draw(TypedDict):
    """From which judge's errors, on which criterion, how many items on average."""

    judge: str
    criterion: str
    wanted: int
    seed: NotRequired[int]
    digest: NotRequired[str]


class DrawPreview(TypedDict):
    """What a draw with this `seed` gives out, and the panel's mean half an interval wide before and about after it.
    `hours`, `price_usd` and the widths are null where they are not known. Post the same with this `seed` and
    `digest` to draw exactly these items. `is_approximate`: the widths are of few scenarios.
    """

    seed: int
    items: int
    assignments: int
    hours: float | None
    price_usd: Decimal | None
    half_width_before: float | None
    half_width_after: float | None
    is_approximate: bool
    digest: str


class Drawn(TypedDict):
    """How many items were drawn into the duty."""

    items: int


class DrawnComparison(TypedDict):
    items: int
    seed: int
    rated: str
    simulated_user: str
    human_user: str
    languages: list[ComparedLanguage]


class Duty(TypedDict):
    """A panel's share. Without `criteria` the panel rates on the whole rubric; with none of `languages`, its own."""

    id: int
    name: NotRequired[str]
    panel: int
    overlap: int
    criteria: NotRequired[list[str]]
    seed: NotRequired[int]
    selection: NotRequired[int | None]


class DutyProgress(TypedDict):
    duty: int
    name: str
    overlap: int
    items: int
    complete: int
    slots: int
    submitted: int
    on_desk: int
    annotators: list[AnnotatorProgress]


class DutySettings(TypedDict):
    priority: NotRequired[int]
    due_at: NotRequired[Moment | None]
    quota: NotRequired[int | None]
    paused: NotRequired[bool]


class ErrorTag(TypedDict):
    id: int
    text: str
    verdict: int
    judge: int
    run: int
    item: str
    language: str
    criterion: str
    created_by: str | None
    created_at: Moment


class Estimate(TypedDict):
    """One figure. `language` is null over all languages, `judge` is null for the panel alone."""

    statistic: str
    variant: NotRequired[str | None]
    level: NotRequired[str | None]
    criterion: str
    language: NotRequired[str | None]
    judge: NotRequired[str | None]
    generator: NotRequired[str | None]
    agreement_class: NotRequired[str | None]
    reference: NotRequired[str | None]
    value: NotRequired[float | None]
    se: NotRequired[float | None]
    p: NotRequired[float | None]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    confidence: NotRequired[float | None]
    method: NotRequired[str | None]
    n_items: int
    n_raters: int
    n_ratings: int
    n_missing: int
    seed: NotRequired[int | None]
    undefined_share: NotRequired[float | None]
    reason: NotRequired[str | None]
    interval_reason: NotRequired[str | None]
    note: NotRequired[str | None]
    n_clusters: NotRequired[int | None]
    speaks_for: NotRequired[str | None]
    p_corrected: NotRequired[float | None]
    family: NotRequired[int | None]


class Estimates(TypedDict):
    """The newest answer, null until there is one; a stale one is being computed anew."""

    stale: bool
    answer: QuestionAnswer | None


class Extension(TypedDict):
    dataset: int


class Extent(TypedDict):
    """`size` in bytes is an estimate; null if it can't be estimated. `large`: have a worker write the export instead
    of waiting.
    """

    rows: int
    size: int | None
    large: bool


class Field(TypedDict):
    name: str
    text: str


class FirstVerdict(TypedDict):
    """The judge's first repeat. There is a score or N/A only if `status` is "ok"; `repeats`: how many verdicts there
    are.
    """

    judge: str
    status: str
    score: float | None
    applicable: bool
    repeats: int


class FlagComparison(TypedDict):
    """The program that tells languages beside the annotators who read the items, in one language."""

    language: str
    read: int
    flagged: int
    found: int
    false_alarms: int
    missed: int
    threshold: float
    reason: str
    corrected_false_alarms: int | None
    corrected_missed: int | None


class Forecast(TypedDict):
    calls: int
    answered: int
    verdicts: int
    tokens_in: int
    tokens_out: int
    cost: Decimal | None
    tokens_in_again: int
    tokens_out_again: int
    cost_again: Decimal | None
    items: int
    continues: NotRequired[int | None]
    unused: list[UnusedReplies]


class ForecastRange(TypedDict):
    """A total with the bounds of its 95 % interval."""

    value: Decimal
    low: Decimal | None
    high: Decimal | None


class FoundItem(TypedDict):
    """An item in which a check found something. `place`: the index of the turn, or the name of the field."""

    item: int
    external_id: str
    place: str | None
    values: dict[str, Json]


class Frequent(TypedDict):
    value: str
    count: int


class GateFigure(TypedDict):
    """One figure of a condition, with its interval and counts; `approximate`: its interval may cover less.
    `conservative`: it covers more than it says.
    """

    statistic: str
    variant: str | None
    value: float | None
    low: float | None
    high: float | None
    method: NotRequired[str]
    approximate: bool
    conservative: bool
    n_items: int
    n_clusters: int | None
    n_raters: int
    reason: NotRequired[str]


class GenerationForecast(TypedDict):
    texts: int
    requests: int
    tokens: int
    cost: Decimal | None
    worst: Decimal | None
    is_measured: bool
    generators: list[GeneratorForecast]


class GenerationPlan(TypedDict):
    """What is to be written: a spec, for a number of families, in these languages, by these generators."""

    id: int
    name: str
    spec: Json
    spec_digest: str
    languages: list[str]
    families: int
    generators: list[PlanGenerator]
    user_models: NotRequired[list[PlanGenerator]]
    utterance_judge: NotRequired[int | None]
    utterance_rubric: NotRequired[int | None]
    source_dataset: NotRequired[int | None]
    source_language: NotRequired[str]
    repeats: NotRequired[int]
    seed: NotRequired[int]
    budget: NotRequired[Decimal | None]
    created_at: Moment
    started_at: Moment | None


class GenerationPlanDetail(TypedDict):
    """What is to be written: a spec, for a number of families, in these languages, by these generators."""

    id: int
    name: str
    spec: Json
    spec_digest: str
    languages: list[str]
    families: int
    generators: list[PlanGenerator]
    user_models: NotRequired[list[PlanGenerator]]
    utterance_judge: NotRequired[int | None]
    utterance_rubric: NotRequired[int | None]
    source_dataset: NotRequired[int | None]
    source_language: NotRequired[str]
    repeats: NotRequired[int]
    seed: NotRequired[int]
    budget: NotRequired[Decimal | None]
    created_at: Moment
    started_at: Moment | None
    state: GenerationPlanState
    reason: str
    only_examples: bool
    progress: Json
    cells: Json


class GeneratorForecast(TypedDict):
    name: str
    role: str
    texts: int
    requests: int
    tokens_in: int
    tokens_out: int
    cost: Decimal | None
    worst: Decimal | None


class Guideline(TypedDict):
    """One version in one language; posting publishes the next one."""

    id: int
    language: str
    number: int
    text: str
    examples: NotRequired[list[WorkedExample]]
    acknowledged: int
    created_at: Moment


class HandedOut(TypedDict):
    assignments: int


class HumanText(TypedDict):
    """A text of one person for one prompt, as leads see it."""

    id: int
    item: str
    language: str
    annotator: str
    state: WritingTextState
    skip_reason: str
    submissions: list[WritingSubmission]
    stored_in: int | None


class Import(TypedDict):
    id: int
    kind: ImportKind
    state: ImportState
    files: list[ImportFile]
    target: Json
    mapping: Json
    report: Json
    batch: str | None
    done: int
    total: int
    created_at: Moment


class ImportFile(TypedDict):
    id: int
    name: str
    size: int
    sha256: str


class ImportPreview(TypedDict):
    """What storing would do: the mapping that was used, the first rows, the report and the problems."""

    kind: ImportKind
    mapping: dict[str, Json]
    columns: list[Column]
    rows: list[dict[str, Json]]
    report: dict[str, Json]
    criteria: dict[str, str]
    scales: dict[str, str]
    problems: list[Problem]
    more_problems: int
    kinds_of_problems: list[dict[str, Json]]
    documents: list[str]
    first_lines: list[dict[str, Json]]
    sheets: list[str]


class InvitePeople(TypedDict):
    """`panels` and `languages` are for people without their own. `send`: mail the links, where the server sends
    mail.
    """

    people: list[InvitedPerson]
    role: NotRequired[RoleEnum]
    panels: NotRequired[list[int]]
    languages: NotRequired[list[str]]
    days: NotRequired[int]
    send: NotRequired[bool]


class InvitedPeople(TypedDict):
    rows: list[InvitedRow]
    is_mailed: bool


class InvitedPerson(TypedDict):
    email: str
    name: NotRequired[str]
    panels: NotRequired[list[int]]
    languages: NotRequired[list[str]]


class InvitedRow(TypedDict):
    """`link` is answered once. `seated`: the panels that a member has joined; `note`: why a member has not, or why
    an invitation was not mailed.
    """

    email: str
    outcome: InvitedRowOutcomeEnum
    link: str
    seated: list[str]
    note: str


class Item(TypedDict):
    title: str
    language: str
    brief: str
    content_warning: str
    turns: list[Turn]
    fields: list[Field]


class ItemAdjudication(TypedDict):
    """One adjudication, the newest first. `counts`: no later one replaced it; `stale`: a rating has changed since.
    `seen`: the ratings that the adjudicator saw, with their `digest`; `order`: what the queue was ordered by.
    """

    criterion: str
    status: str
    score: float | None
    cause: str
    cause_note: str
    rationale: str
    adjudicator: str
    order: str
    seen: list[dict[str, Json]]
    digest: str
    at: Moment
    counts: bool
    stale: bool


class ItemDecisions(TypedDict):
    """Decisions on criteria of one item. The same `key` again stores nothing."""

    decisions: list[AdjudicationDecision]
    order: NotRequired[OrderEnum]
    key: NotRequired[str]


class ItemDetail(TypedDict):
    """An item with its text, and what it was given in this campaign, the chosen criterion first."""

    item: DatasetItem
    criteria: list[CriterionScores]


class ItemRating(TypedDict):
    """One person's rating, by pseudonym. Imported ratings have no `panel`, `seconds` or `certainty`; `certainty` is
    about the whole item.
    """

    rater: str
    panel: str
    status: str
    score: float | None
    rationale: str
    evidence: list[Span]
    critical_mark: bool
    seconds: float | None
    blind: bool | None
    revision: int
    submitted_at: Moment
    superseded_at: Moment | None
    certainty: int | None


class ItemVerdict(TypedDict):
    """One verdict. `counts`: whether the numbers read its run; `call` is null where it was imported."""

    id: int
    judge: str
    run: int
    repeat: int
    status: str
    score: float | None
    applicable: bool
    rationale: str
    error: float | None
    signed_error: float | None
    counts: bool
    call: int | None


class Job(TypedDict):
    """`done` of `total` in `unit`; the total is 0 as long as it is unknown. `sentence` says why it failed. A job
    that waits with `is_sent` false has not reached the queue; it is sent as soon as the queue is back.
    """

    id: int
    kind: JobKindEnum
    state: JobStateEnum
    title: str
    owner: str
    done: int
    total: int
    unit: UnitEnum | BlankEnum
    tries: int
    sentence: str
    is_sent: bool
    may_cancel: bool
    created_at: Moment
    started_at: Moment | None
    beat_at: Moment | None
    ended_at: Moment | None


class Judge(TypedDict):
    name: str
    judge: int
    run: int
    simulated: bool
    served: NotRequired[list[str]]


class LanguageLengths(TypedDict):
    """Least, lower quartile, median, upper quartile and most, of the items in one language."""

    language: str
    items: int
    turns: list[float]
    characters: list[float]


class LeaveOut(TypedDict):
    checks: list[str]
    families: NotRequired[bool]
    name: NotRequired[str]


class ListedItem(TypedDict):
    """An item with what it was given on the chosen criterion. `signed_error`: the judge's score minus the reference,
    in points; `judge_error` is its size; nominal: 0 or 1.
    """

    criterion: str
    level: str
    n_scores: int
    n_not_applicable: int
    n_stopped: int
    scores: list[ScoreCount]
    disagreement: float | None
    measure: str
    reference: float | None
    reference_rule: str
    id: int
    item: str
    language: str
    generator: str
    scenario: str
    title: str
    verdict: FirstVerdict | None
    judge_error: float | None
    signed_error: float | None


class ListedProvider(TypedDict):
    name: str
    models: list[str]
    simulated: bool
    batches: bool


class Marked(TypedDict):
    marked: int


class Me(TypedDict):
    email: str
    name: NotRequired[str]
    languages: list[str]
    ui_language: NotRequired[str]
    may_found_projects: NotRequired[bool]
    memberships: list[Role]


class MeetingDecision(TypedDict):
    """A decision of a calibration meeting. `item` is the item's external id."""

    id: int
    held_on: str
    criterion: str | None
    item: str | None
    decision: str
    guideline_change: str
    recorded_at: Moment


class MemberProgress(TypedDict):
    """A person by pseudonym, and what they have written and reviewed."""

    annotator: str
    writes: bool
    reviews: bool
    written: int
    accepted: int
    waiting: int
    rejected: int
    reviewed: int


class Membership(TypedDict):
    user: int
    name: str
    email: str
    role: RoleEnum
    since: Moment


class Message(TypedDict):
    role: str
    content: str


class Mismatch(TypedDict):
    assignment: int
    purpose: str
    item: str
    criterion: str
    score: float | None
    status: str
    rationale: str
    reference: float | None
    decision: NotRequired[str | None]
    objection: NotRequired[str]


class MismatchDecision(TypedDict):
    assignment: int
    criterion: str
    accept: bool
    note: NotRequired[str]


class MoreAnnotators(TypedDict):
    overlap: int
    more: int


class NewCuration(TypedDict):
    """What is asked for; docs/curation.md says what each part does."""

    dataset: int
    run: NotRequired[int | None]
    n: int
    method: NotRequired[CurationMethod]
    languages: NotRequired[list[str]]
    issues: NotRequired[list[str] | None]
    overall: NotRequired[str | None]
    unreadable: NotRequired[str | None]
    words: NotRequired[list[str]]
    user: NotRequired[str]
    clean_first: NotRequired[bool]
    balance: NotRequired[list[CurationFacet]]
    by: NotRequired[list[str]]
    by_family: NotRequired[bool]
    seed: NotRequired[int]
    name: str


class NewErrorTag(TypedDict):
    """Refuses a field that it does not know: dropped without a word, it would be taken for heard."""

    verdict: int
    text: str


class NewMeetingDecision(TypedDict):
    """What a meeting decided, on a criterion (its key) and an item (its external id) or in general."""

    held_on: str
    decision: str
    guideline_change: NotRequired[str]
    criterion: NotRequired[str]
    item: NotRequired[str]


class NewSearch(TypedDict):
    """How versions with examples are searched for."""

    method: MethodEnum
    steps: int
    seed: NotRequired[int]


class NewTest(TypedDict):
    """Refuses a field that it does not know: dropped without a word, it would be taken for heard."""

    model: NotRequired[str]


class NewUserComparison(TypedDict):
    """Two datasets and how they are mixed; docs/simulation.md says what each part does."""

    simulated: int
    human: int
    n: NotRequired[int]
    rated: NotRequired[RatedEnum]
    simulated_user: NotRequired[str]
    human_user: NotRequired[str]
    seed: NotRequired[int]
    name: str
    panels: NotRequired[list[int]]
    overlap: NotRequired[int]
    keep_names: NotRequired[bool]


class NewVersion(TypedDict):
    """The next version of a judge in an alignment: its own instructions, and texts in the place of the rubric's."""

    made_from: int
    name: str
    instructions: NotRequired[str]
    own_texts: NotRequired[list[OwnText]]


class NoScore(TypedDict):
    """Why a verdict has no score on the scale."""

    code: str
    rung: str
    found: str
    sentence: str


class Numbers(TypedDict):
    """The newest snapshot, null until there is one; a stale one is being computed anew."""

    stale: bool
    snapshot: Snapshot | None


class OpenInvitation(TypedDict):
    """An invitation that was not used yet; its link was shown once and is not stored."""

    id: int
    role: RoleEnum
    email: str
    name: NotRequired[str]
    note: NotRequired[str]
    languages: list[str]
    created_at: Moment
    expires_at: Moment


class OpenMatter(TypedDict):
    """Something that waits for a person, and the address of the page on which it is dealt with."""

    sentence: str
    address: str


class OwnText(TypedDict):
    """What a judge reads in the place of a rubric's definition (`point` null) or of the anchor of a point."""

    criterion: str
    point: float | None
    text: str


class OwnWritingDuty(TypedDict):
    id: int
    name: str
    instructions: str
    shortest: int
    longest: int
    paused: bool


class Panel(TypedDict):
    id: int
    name: str
    language: NotRequired[str]


class PartChange(TypedDict):
    part: str
    point: float | None
    language: str
    before: str
    after: str


class Person(TypedDict):
    id: int
    pseudonym: str


class Perturbation(TypedDict):
    """What an audit run changes."""

    changes: NotRequired[list[str]]
    per_language: NotRequired[int]
    seed: NotRequired[int]


class PerturbationForecast(TypedDict):
    calls: int
    answered: int
    verdicts: int
    tokens_in: int
    tokens_out: int
    cost: Decimal | None
    tokens_in_again: int
    tokens_out_again: int
    cost_again: Decimal | None
    items: int
    continues: NotRequired[int | None]
    unused: list[UnusedReplies]
    perturbed: dict[str, int]


class PilotForecast(TypedDict):
    """What the replies of the pilot say of the calls that are new."""

    calls: int
    tokens: ForecastRange
    cost: ForecastRange | None
    unanswered: list[str]


class PlanGenerator(TypedDict):
    """A model that writes: its name is the generator of the items."""

    provider: str
    model: str
    name: NotRequired[str]
    parameters: NotRequired[dict[str, Json]]


class PlannedDuty(TypedDict):
    panel: int
    name: str
    duty: NotRequired[int | None]
    items: int
    assignments: int
    ratings: int
    hours: float
    seats: int
    lacking: int
    overlaps: dict[str, int]


class Point(TypedDict):
    value: float
    label: str
    text: str
    reason: str


class PointCounts(TypedDict):
    """How many people chose each point from 1 to 5."""

    people: int
    mean: float | None
    counts: list[int]


class Prepare(TypedDict):
    """An export that a worker is to write."""

    format: NotRequired[FormatEnum]
    campaign: NotRequired[str]
    dataset: NotRequired[str]
    rubric: NotRequired[str]
    renumbered: NotRequired[int]
    rationales: NotRequired[bool]
    replies: NotRequired[bool]
    revisions: NotRequired[bool]
    every_run: NotRequired[bool]
    split_seed: NotRequired[int]
    test_share: NotRequired[float]
    question: NotRequired[str]
    layout: NotRequired[LayoutEnum]
    without_attributes: NotRequired[list[str]]
    names: NotRequired[bool]
    what: WhatEnum


class Preset(TypedDict):
    key: str
    title: str
    variant: Variant
    parameters: dict[str, Json]
    repeats: int


class Problem(TypedDict):
    file: str
    line: int | None
    column: str | None
    found: str
    expected: str
    code: str


class Project(TypedDict):
    slug: str
    name: str
    description: NotRequired[str]
    created_at: Moment
    archived_at: Moment | None
    requires_second_factor: bool


class ProjectDeletion(TypedDict):
    slug: str
    deleted_at: Moment
    restorable_until: Moment


class Prompt(TypedDict):
    criteria: list[str]
    messages: list[Message]
    schema: dict[str, Json]
    tokens: int


class PromptCollection(TypedDict):
    """A collection of prompts. `guidelines`: Markdown by language."""

    id: int
    name: str
    guidelines: NotRequired[Json]
    due_on: NotRequired[str | None]
    state: PromptCollectionState
    created_at: Moment


class PromptCollectionChange(TypedDict):
    """What is to be different in a collection; what is not named stays."""

    name: NotRequired[str]
    guidelines: NotRequired[Json]
    due_on: NotRequired[str | None]


class PromptCollectionDetail(TypedDict):
    """A collection with its kinds of prompts; `people`, `late_reviews` and `is_overdue` for leads and researchers."""

    id: int
    name: str
    guidelines: NotRequired[Json]
    due_on: NotRequired[str | None]
    state: PromptCollectionState
    created_at: Moment
    progress: Json


class PromptReview(TypedDict):
    version: int
    decision: PromptReviewDecisionEnum
    comment: NotRequired[str]


class PromptVersion(TypedDict):
    number: int
    text: str
    submitted_at: Moment
    decision: NotRequired[PromptVersionDecisionEnum | BlankEnum]
    comment: NotRequired[str]
    reviewed_at: NotRequired[Moment | None]


class Proposal(TypedDict):
    """A version that a model was asked to write."""

    id: int
    name: str
    provider: str
    model: str
    state: str
    reason: str
    judge: NotRequired[int | None]
    cost: Decimal | None
    request: dict[str, Json]
    reply: dict[str, Json]


class ProposedVersion(TypedDict):
    """Which model writes the next version."""

    name: str
    provider: str
    model: str
    tokens: NotRequired[int]


class Provider(TypedDict):
    """The settings of a provider; `key_variable` names the environment variable that has the key."""

    base_url: str
    api: NotRequired[ApiEnum]
    key_variable: NotRequired[str]
    models: NotRequired[list[str]]
    prices: NotRequired[dict[str, list[Decimal]]]
    batch_prices: NotRequired[dict[str, list[Decimal]]]
    batches: NotRequired[bool]
    requests_per_minute: NotRequired[int | None]
    tokens_per_minute: NotRequired[int | None]
    timeout: NotRequired[int | None]
    tries: NotRequired[int | None]
    concurrency: NotRequired[int | None]
    name: str
    simulated: bool
    declared_by: DeclaredByEnum


class ProviderTest(TypedDict):
    """A test of one call. `result` is empty until it has ended; it has a `reason` where there was no reply."""

    id: int
    model: str
    result: dict[str, Json]
    created_at: Moment
    ended_at: Moment | None


class QualificationRule(TypedDict):
    """What a campaign asks of its annotators."""

    training: NotRequired[bool]
    exam_items: NotRequired[int]
    matching: NotRequired[MatchingEnum]
    tolerance: NotRequired[float]
    threshold: NotRequired[float]
    attempts: NotRequired[int]
    wait_hours: NotRequired[int]
    valid_days: NotRequired[int | None]
    control_rate: NotRequired[float]
    repeat_rate: NotRequired[float]
    control_threshold: NotRequired[float]
    fewest_controls: NotRequired[int]
    seed: NotRequired[int]


class QuestionAnswer(TypedDict):
    """The answer to a question: `query` is the question's canonical query string, `counts` what its table holds.
    `inputs_digest` is the SHA-256 of `ratings.csv` under the same query string.
    """

    created_at: Moment
    revision: str
    inputs_digest: str
    code_version: str
    seed: int
    seconds: float
    query: str
    question: dict[str, Json]
    counts: dict[str, int]
    left_out: dict[str, int]
    ties: NotRequired[dict[str, int]]
    adjudicated: NotRequired[dict[str, int]]
    judges: list[Judge]
    notes: list[str]
    estimates: list[CellEstimate]


class QueuedItem(TypedDict):
    """One item of the queue. `value`: the largest value among its undecided criteria; `criteria`: the criteria that
    have this value.
    """

    id: int
    item: str
    language: str
    n_ratings: int
    value: float
    criteria: list[str]
    state: QueuedItemStateEnum


class Range(TypedDict):
    min: float
    max: float
    step: float | None


class RatedScore(TypedDict):
    score: float
    ratings: int


class RatingDecision(TypedDict):
    """`keep`, `requeue` or `map`; `scores` of a map: by old score the new one, null for what is rated again."""

    decision: str
    scores: NotRequired[dict[str, float | None]]


class ReferenceItem(TypedDict):
    id: int
    item: str
    purpose: PurposeEnum
    scores: list[ReferenceScore]


class ReferenceScore(TypedDict):
    criterion: str
    score: float | None
    lowest: NotRequired[float | None]
    highest: NotRequired[float | None]
    explanation: NotRequired[str]


class References(TypedDict):
    references: list[ReferenceItem]


class Reinstatement(TypedDict):
    note: NotRequired[str]


class Remedy(TypedDict):
    """What would change a decision: `group` is labels, people, rubric or judge."""

    group: str
    sentence: str
    more_items: int | None


class Removal(TypedDict):
    typed: str
    with_ratings: NotRequired[bool]
    with_account: NotRequired[bool]


class Removed(TypedDict):
    ratings: int


class Rerun(TypedDict):
    """Refuses a field that it does not know: dropped without a word, it would be taken for heard."""

    statuses: NotRequired[list[StatusesEnum]]


class Return(TypedDict):
    annotators: list[str]


class Returned(TypedDict):
    items: int


class Role(TypedDict):
    project: str
    role: RoleEnum


class Rubric(TypedDict):
    id: int
    key: str


class RubricChange(TypedDict):
    """Counts of ratings: `kept`, `mapped`, `requeued`, `removed`, `left` (imported); `assignments` rated again. A
    large campaign is changed, or changed back, by a worker: `job` is its newest one. `finished_at` is null
    until the change is carried out.
    """

    id: int
    from_version: int
    version: int
    decisions: NotRequired[dict[str, RatingDecision]]
    qualify_again: NotRequired[bool]
    counts: dict[str, int]
    at: Moment
    finished_at: Moment | None
    undone_at: Moment | None
    job: int | None


class RubricDocument(TypedDict):
    id: int
    rubric: str
    number: int
    state: RubricState
    digest: str
    created_at: Moment
    published_at: Moment | None
    document: Json


class RubricVersion(TypedDict):
    id: int
    rubric: str
    number: int
    state: RubricState
    digest: str
    created_at: Moment
    published_at: Moment | None


class RuleSample(TypedDict):
    """What the sample of a rule draws of the items that fit it. `selection`: null until it is stored."""

    rule: str
    fitting: int
    drawn: int
    seed: int | None
    selection: NotRequired[int | None]
    strata: list[Stratum]


class Rules(TypedDict):
    """What is applied to what. Without `panels`, each name in the rules means the panels that are called so."""

    taxonomy: int
    panels: NotRequired[dict[str, list[int]]]
    selection: NotRequired[int | None]
    seed: NotRequired[int | None]
    keep_names: NotRequired[bool]
    preview: NotRequired[bool]


class Run(TypedDict):
    """What a run is about."""

    judge: int
    dataset: int
    rubric_version: int
    selection: NotRequired[int | None]
    repeats: NotRequired[int]
    budget: NotRequired[Decimal | None]
    by_batch: NotRequired[bool]
    id: int
    key: NotRequired[str | None]
    again: NotRequired[bool]
    continues: int | None
    perturbation: Perturbation | None
    state: JudgeRunState
    reason: str
    created_at: Moment


class RunDetail(TypedDict):
    """What a run is about."""

    judge: int
    dataset: int
    rubric_version: int
    selection: NotRequired[int | None]
    repeats: NotRequired[int]
    budget: NotRequired[Decimal | None]
    by_batch: NotRequired[bool]
    id: int
    key: NotRequired[str | None]
    again: NotRequired[bool]
    continues: int | None
    perturbation: Perturbation | None
    state: JudgeRunState
    reason: str
    created_at: Moment
    progress: Json
    served_models: list[ServedModel]
    batches: list[CallBatch]


class SavedMapping(TypedDict):
    id: int
    name: str
    kind: SavedMappingKindEnum
    mapping: dict[str, Json]
    created_at: Moment


class ScoreCount(TypedDict):
    """How many ratings gave a score."""

    score: float
    count: int


class Seat(TypedDict):
    id: int
    pseudonym: str
    sees_verdicts: bool


class Secret(TypedDict):
    """A webhook with its signing secret, which is shown only once."""

    id: int
    address: str
    events: list[EventsEnum]
    off: OffEnum | BlankEnum
    failing_since: Moment | None
    created_at: Moment
    secret: str


class SeenRating(TypedDict):
    """One rating. `rater` is a code that identifies the rater on this item only."""

    rater: str
    status: str
    score: float | None
    rationale: str
    evidence: list[Span]


class SelectedItem(TypedDict):
    item: str
    probability: float
    stratum: str


class Selection(TypedDict):
    id: int
    campaign: int
    name: str
    rule: Json
    seed: NotRequired[int]
    items: int
    created_at: Moment


class SelectionDetail(TypedDict):
    id: int
    campaign: int
    name: str
    rule: Json
    seed: NotRequired[int]
    items: int
    created_at: Moment
    strata: Json


class ServedModel(TypedDict):
    model: str
    replies: int
    is_other: bool


class Settings(TypedDict):
    raters: list[str]
    blind_only: bool
    reference: SettingsReferenceEnum | BlankEnum
    bootstrap: int
    confidence: float
    seed: int


class Share(TypedDict):
    """`days` is how long the link is to be good; without, until it is revoked."""

    id: int
    campaign: int
    label: str
    shows_generators: NotRequired[bool]
    created_at: Moment
    expires_at: Moment | None
    last_used_at: Moment | None


class ShareAddress(TypedDict):
    """A link with its address, which is shown only once."""

    id: int
    campaign: int
    label: str
    shows_generators: NotRequired[bool]
    created_at: Moment
    expires_at: Moment | None
    last_used_at: Moment | None
    address: str


class SimilarPrompt(TypedDict):
    share: int
    text: str
    prompt: int | None


class Slots(TypedDict):
    slots: list[WantedPrompts]


class Snapshot(TypedDict):
    """Estimates with what they were computed from. `inputs_digest` is the SHA-256 of the CSV of the ratings table."""

    id: int
    created_at: Moment
    revision: str
    inputs_digest: str
    code_version: str
    seconds: float
    settings: Settings
    languages: list[str]
    judges: list[Judge]
    not_blind: int
    counts: list[Count]
    estimates: list[Estimate]


class Span(TypedDict):
    turn: NotRequired[int | None]
    field: NotRequired[str]
    start: int
    end: int
    quote: str
    label: str
    severity: str


class Spec(TypedDict):
    key: str
    title: str
    description: str
    version: int
    kind: str
    digest: str
    spec: Json


class Standing(TypedDict):
    """An annotator in a duty. `match`: the share of criteria that match the reference, averaged over control items,
    with a Wilson interval.
    """

    duty: int
    annotator: int
    pseudonym: str
    acknowledged: bool | None
    training_done: NotRequired[int | None]
    training_total: NotRequired[int | None]
    exam: NotRequired[str | None]
    controls: int
    match: float | None
    match_low: float | None
    match_high: float | None
    repeats_same: int
    repeats: int
    paused: bool
    contested: int


class StartedAudit(TypedDict):
    """What an audit run is about."""

    changes: NotRequired[list[str]]
    per_language: NotRequired[int]
    seed: NotRequired[int]
    judge: int
    dataset: int
    rubric_version: int
    budget: NotRequired[Decimal | None]
    key: NotRequired[str | None]


class State(TypedDict):
    state: CampaignState


class StepFigure(TypedDict):
    """One figure of a step: on a criterion or a measure of texts, in one language or between two. `decision`: of the
    gate, in place of a value.
    """

    criterion: str
    languages: list[str]
    state: StepState
    decision: str
    statistic: NotRequired[str]
    value: NotRequired[float | None]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    approximate: NotRequired[bool]
    conservative: NotRequired[bool]
    n_items: NotRequired[int | None]
    n_clusters: NotRequired[int | None]
    n_raters: NotRequired[int | None]
    words: str


class StorePlan(TypedDict):
    """Refuses a field that it does not know: dropped without a word, it would be taken for heard."""

    name: str
    only: NotRequired[OnlyEnum]
    with_natives: NotRequired[bool]


class StorePrompts(TypedDict):
    dataset: int


class StoreWriting(TypedDict):
    name: NotRequired[str]


class StoredPlan(TypedDict):
    """`job`: the one that stores the dataset, where it has many texts; `dataset` is null then."""

    dataset: int | None
    job: int | None


class StoredUtterances(TypedDict):
    dataset: int


class StoredWriting(TypedDict):
    dataset: int


class Stratum(TypedDict):
    name: str
    available: int
    chosen: int
    items: int


class Study(TypedDict):
    """A study that Panelbench knows, or the format of a tool."""

    name: str
    title: str
    about: str
    source: str
    tool: bool
    imports: list[StudyImport]


class StudyChoice(TypedDict):
    """What the findings are about; an empty language means all of them."""

    judge: str
    criterion: str
    language: str
    reference: StudyChoiceReferenceEnum


class StudyFinding(TypedDict):
    """What was found about one topic, in sentences of the reader's language."""

    topic: TopicEnum
    sentences: list[str]
    is_preliminary: bool


class StudyFindings(TypedDict):
    """The findings; `is_computed`: false while figures are computed, so that topics may be missing or out of date."""

    choice: StudyChoice
    is_computed: bool
    findings: list[StudyFinding]
    open: list[OpenMatter]


class StudyImport(TypedDict):
    """One import of a study: how its files are read. A rubric has no mapping."""

    kind: ImportKind
    name: str
    dataset: str
    rubric: str
    files: list[str]
    columns: list[str]
    mapping: dict[str, Json]


class StudyJudge(TypedDict):
    judge: DeclaredJudge
    rubric_version: int
    repeats: int


class StudyPart(TypedDict):
    kind: ImportKind
    made: str
    report: dict[str, Json]
    import_id: int | None
    intake: int | None
    files: list[str]


class StudyPreview(TypedDict):
    """What storing a study would come to: its parts up to the first that would be refused, and why it would be."""

    kind: ImportKind
    name: str
    title: str
    about: str
    source: str
    parts: list[StudyPart]
    left_alone: list[str]
    report: dict[str, Json]
    sentence: str
    problems: list[Problem]
    more_problems: int


class Submission(TypedDict):
    answers: list[Answer]
    seconds: NotRequired[float]
    certainty: NotRequired[int | None]


class SubmitWriting(TypedDict):
    texts: list[str]
    seconds: NotRequired[float]
    pasted: NotRequired[int]
    confirmed: NotRequired[str]


class TagCount(TypedDict):
    text: str
    verdicts: int
    items: int
    criteria: dict[str, int]
    languages: dict[str, int]


class Target(TypedDict):
    """Where the rows are stored. For items: `name` and `licence` of a dataset, or the dataset that it `extends`. For
    ratings: the `campaign`. For ratings and verdicts: the `dataset` and `rubric_version`. For a known study:
    its name (`study`) and values that are the same in all of its files (`constants`).
    """

    name: NotRequired[str]
    licence: NotRequired[str]
    extends: NotRequired[int]
    campaign: NotRequired[int]
    dataset: NotRequired[int]
    rubric_version: NotRequired[int]
    study: NotRequired[str]
    constants: NotRequired[dict[str, str]]
    generator_names: NotRequired[GeneratorNamesEnum]


class Taxonomy(TypedDict):
    id: int
    key: str
    number: int
    created_at: Moment


class TaxonomyDetail(TypedDict):
    id: int
    key: str
    number: int
    yaml: str
    created_at: Moment


class TaxonomyPlan(TypedDict):
    duties: list[PlannedDuty]
    items: int
    assignments: int
    ratings: int
    hours: float
    unmatched: int
    already: int
    beyond: int
    rules_without_items: list[str]
    rules_without_panel: list[str]
    missing_panels: list[str]
    unknown_criteria: list[str]
    ungiven_criteria: list[str]
    samples: list[RuleSample]
    twice: list[dict[str, Json]]


class TextDecision(TypedDict):
    """Refuses a field that it does not know: dropped without a word, it would be taken for heard."""

    decision: RealisationDecision | BlankEnum
    reason: NotRequired[str]


class Thresholds(TypedDict):
    """One version of the thresholds. `figures_since`: since when a judge's figures could be read when it was
    declared; null where they were declared before any figure.
    """

    number: int
    preset: PresetEnum
    epsilon: NotRequired[float]
    bias_margin: NotRequired[float]
    flip_rate: NotRequired[float]
    fewest_items: NotRequired[int]
    alpha_ceiling: NotRequired[float]
    ac_ceiling: NotRequired[float]
    omega: NotRequired[float]
    readable: NotRequired[float]
    tau_b: NotRequired[float]
    tau_b_low: NotRequired[float]
    audits: NotRequired[list[str]]
    figures_since: Moment | None
    declared_by: str | None
    declared_at: Moment


class Transfer(TypedDict):
    """`done` of `total` rows; `sentence` gives the result, or why it failed. A file that was written is kept until
    `expires_at`.
    """

    key: str
    kind: TransferKindEnum
    state: TransferStateEnum
    name: str
    size: int | None
    done: int
    total: int
    sentence: str
    created_at: Moment
    expires_at: Moment


class Turn(TypedDict):
    number: int
    speaker: str
    rated: bool
    text: str


class UnusedReplies(TypedDict):
    judge: int
    rubric_version: int
    calls: int
    why: str


class Upload(TypedDict):
    """A form with files. `mapping` and `target` are JSON objects as text."""

    files: list[str]
    kind: NotRequired[ImportKind]
    mapping: NotRequired[str]
    target: NotRequired[str]


class UploadState(TypedDict):
    """How many bytes of a file were received; `sha256` when the file is complete."""

    key: str
    name: str
    size: int
    received: int
    sha256: str


class UserComparison(TypedDict):
    """Two datasets and how they are mixed; docs/simulation.md says what each part does."""

    simulated: int
    human: int
    n: NotRequired[int]
    rated: NotRequired[RatedEnum]
    simulated_user: NotRequired[str]
    human_user: NotRequired[str]
    seed: NotRequired[int]


class Utterances(TypedDict):
    """Refuses a field that it does not know: dropped without a word, it would be taken for heard."""

    name: str
    most: NotRequired[int | None]
    seed: NotRequired[int]


class Variant(TypedDict):
    """The factors of a prompt; docs/judges.md says what each changes."""

    grouping: NotRequired[GroupingEnum]
    anchor_detail: NotRequired[AnchorDetailEnum]
    explanation: NotRequired[bool]
    instruction_language: NotRequired[InstructionLanguageEnum]
    repair: NotRequired[bool]
    task: NotRequired[TaskEnum]
    role_text: NotRequired[str]
    persona: NotRequired[str]
    rubric_text: NotRequired[RubricTextEnum]
    reference_answer: NotRequired[ReferenceAnswerEnum]
    criteria_order: NotRequired[PromptOrder]
    points_order: NotRequired[PromptOrder]
    candidate_order: NotRequired[CandidateOrderEnum]
    examples: NotRequired[Json]
    instructions: NotRequired[str]
    own_texts: NotRequired[list[OwnText]]


class Verdict(TypedDict):
    id: int
    run: int
    judge: str
    item: str
    language: str
    criterion: str
    repeat: int
    change: str
    status: VerdictStatusEnum
    score: float | None
    applicable: bool
    fractional: bool
    coerced: str
    expected: float | None
    confidence: float | None
    rationale: str
    reason: NoScore | None


class VersionSearch(TypedDict):
    """A search for versions: `done` of `steps`; its job can be cancelled."""

    id: int
    method: MethodEnum
    steps: int
    seed: int
    state: str
    job: int
    done: int
    reason: str


class WantedPrompts(TypedDict):
    task: str
    style: NotRequired[str]
    difficulty: NotRequired[str]
    language: str
    wanted: int


class Webhook(TypedDict):
    """`off` is the reason why nothing is sent; empty while the webhook is on."""

    id: int
    address: str
    events: list[EventsEnum]
    off: OffEnum | BlankEnum
    failing_since: Moment | None
    created_at: Moment


class WorkedExample(TypedDict):
    text: str
    criterion: NotRequired[str]
    score: NotRequired[float | None]
    explanation: NotRequired[str]


class Workflow(TypedDict):
    """The four steps for one judge, and the state of all of them; `stale`: figures are being computed anew."""

    state: StepState
    stale: bool
    judge: str
    language: str
    thresholds: NotRequired[int | None]
    steps: list[WorkflowStep]


class WorkflowStep(TypedDict):
    """One step. `action`: what has to be done where it did not pass: thresholds, items, label, run, decisions or
    calibrate.
    """

    name: NameEnum
    title: str
    state: StepState
    sentence: str
    threshold: str
    action: str
    figures: list[StepFigure]


class WritingDecision(TypedDict):
    decision: WritingDecisionDecisionEnum
    number: NotRequired[int]
    comment: NotRequired[str]


class WritingDuty(TypedDict):
    """A panel's duty to write. `part`: the field that is written, or the role whose turns are."""

    id: int
    name: str
    dataset: int
    panel: int
    kind: NotRequired[WritingDutyKind]
    part: NotRequired[str]
    most_turns: NotRequired[int]
    shortest: NotRequired[int]
    longest: NotRequired[int]
    per_prompt: NotRequired[int]
    generator: NotRequired[str]
    instructions: NotRequired[str]
    seed: NotRequired[int]
    state: CampaignState


class WritingDutyDetail(TypedDict):
    """A panel's duty to write. `part`: the field that is written, or the role whose turns are."""

    id: int
    name: str
    dataset: int
    panel: int
    kind: NotRequired[WritingDutyKind]
    part: NotRequired[str]
    most_turns: NotRequired[int]
    shortest: NotRequired[int]
    longest: NotRequired[int]
    per_prompt: NotRequired[int]
    generator: NotRequired[str]
    instructions: NotRequired[str]
    seed: NotRequired[int]
    state: CampaignState
    progress: Json


class WritingPrompt(TypedDict):
    """A prompt as its author sees it. A turn that is to be written is null."""

    key: str
    state: str
    language: str
    fields: Json
    turns: Json
    places: int
    least: int
    draft: list[str]
    comment: str


class WritingState(TypedDict):
    state: CampaignState


class WritingSubmission(TypedDict):
    number: int
    texts: list[str]
    warnings: Json
    seconds: float
    pasted: int
    submitted_at: Moment
    decisions: list[DecidedWriting]


class WrittenPrompt(TypedDict):
    """A text for a slot, or the next version of a `prompt` that was sent back. `key`: the same again stores nothing."""

    slot: NotRequired[int]
    prompt: NotRequired[int]
    text: str
    key: NotRequired[str]
    confirmed: NotRequired[str]


class WrittenText(TypedDict):
    """A family in one language by one generator."""

    id: int
    family: int
    language: str
    generator: str
    simulator: NotRequired[str | None]
    repeat: int
    source_item: NotRequired[str | None]
    parameters: Json
    state: RealisationState
    reason: str
    discarded: int
    ended: EndedEnum | BlankEnum
    problems: Json
    turns: Json
    fields: Json
    decision: RealisationDecision | BlankEnum
    decision_reason: str


class WrittenTextDetail(TypedDict):
    """A family in one language by one generator."""

    id: int
    family: int
    language: str
    generator: str
    simulator: NotRequired[str | None]
    repeat: int
    source_item: NotRequired[str | None]
    parameters: Json
    state: RealisationState
    reason: str
    discarded: int
    ended: EndedEnum | BlankEnum
    problems: Json
    turns: Json
    fields: Json
    decision: RealisationDecision | BlankEnum
    decision_reason: str
    attempts: Json
    opening_attempts: Json
