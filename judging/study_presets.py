"""Ready configurations of the five studies: rubric, prompt, parameters and repeats, as a run of each had them. Pure.

Structure, fields and scales are those of the studies; every word is ours. S0 has one for its criteria and one for label
recovery, S1 one for each of its five tasks, S2 one with the criteria of every text and one with all, S4 one for each of
its three prompt styles. Where a study names no temperature, none is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class StudyPreset:
    """How a study ran its judge. ``rubric`` is a rubric document; ``variant`` has the factors that differ from the
    default."""

    title: str
    rubric: Mapping[str, Any]
    variant: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    repeats: int = 1


_REFERENCES: Final = {
    "s0": "I. Chung, L. Freienthal: Cross-Lingual Stability of LLM Judges Under Controlled Generation: Evidence from "
    "Finno-Ugric Languages",
    "s1": "X. Fu, W. Liu: How Reliable is Multilingual LLM-as-a-Judge?",
    "s2": "Eye of Judgement: Dissecting the Evaluation of Russian-speaking LLMs with POLLUX (anonymous ACL submission)",
    "s3": "J. Mendonça, A. Lavie, I. Trancoso: MEDAL: A Framework for Benchmarking LLMs as Multilingual Open-Domain "
    "Dialogue Evaluators",
    "s4": "R. Hada, V. Gumma, A. de Wynter and others: Are Large Language Model-based Evaluators the Solution to "
    "Scaling Up Multilingual Evaluation? arXiv:2309.07462",
}
"""The five studies. A preset's key starts with the key of its study."""


def _criterion(key: str, name: str, definition: str, anchors: Mapping[int, str], **parts: Any) -> dict[str, Any]:
    """A criterion with English texts, and an anchor at every point."""
    level = parts.pop("level", "ordinal")
    labelled = [{"value": value, "label": {"en": text}} for value, text in anchors.items()]
    return {
        "key": key,
        "name": {"en": name},
        "definition": {"en": definition},
        "scale": {"level": level, "points": labelled if level == "nominal" else list(anchors)},
        "anchors": {str(value): {"en": {"text": text}} for value, text in anchors.items()},
        **parts,
    }


def _rubric(key: str, name: str, criteria: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"key": key, "name": {"en": name}, "source_language": "en", "criteria": list(criteria)}


_S0: Final = _rubric(
    "study-s0",
    "Support dialogues (as S0)",
    [
        _criterion(
            "grammar",
            "Grammaticality",
            "How free the text is from errors of grammar.",
            {
                0: "So many errors that most of it can't be read",
                1: "Serious errors that make parts hard to understand",
                2: "Errors, but it can be understood as a whole",
                3: "Small slips that do not disturb understanding",
                4: "No errors of grammar",
            },
        ),
        _criterion(
            "readability",
            "Readability",
            "How easily the text reads: length of sentences, choice of words, flow.",
            {
                0: "Can't be read as connected text",
                1: "Very hard to read",
                2: "Can be read with much effort",
                3: "Reads well, with a little effort",
                4: "Reads easily and flows naturally",
            },
        ),
        _criterion(
            "coherence",
            "Content coherence",
            "Whether questions and answers fit each other and the situation could be real.",
            {
                0: "Turns do not answer each other, or the situation could not occur",
                1: "Some connection, with clear breaks; the situation is not very likely",
                2: "Mostly logical, with small breaks; the situation is plausible",
                3: "Logical throughout; a realistic situation",
            },
        ),
        _criterion(
            "fluency",
            "Fluency",
            "How natural the language is to a native speaker.",
            {
                0: "Very poor, with errors everywhere",
                1: "Several odd wordings and errors, still recognisably this language",
                2: "Mostly fluent, with one or two odd wordings or errors",
                3: "A native speaker could have written it",
            },
        ),
    ],
)


def _label(key: str, name: str, definition: str, labels: Sequence[str]) -> dict[str, Any]:
    """A parameter of S0's dialogues, to be read out of the text: a nominal criterion whose labels are its levels."""
    return _criterion(key, name, definition, dict(enumerate(labels, 1)), level="nominal")


# S0, Table 5: the levels of judging/generation/presets/support-dialogues.yaml.
_INDUSTRIES: Final = (
    *("manufacturing", "energy production", "energy management", "energy technology", "apparel retail"),
    *("retail clothing stores", "apparel manufacturing", "fitness apparel retail", "footwear retail"),
    *("safety apparel manufacturing", "home decor retail", "home textiles retail", "manufacturing tools"),
    *("retail technology solutions", "gaming technology services", "transportation technology"),
    *("transportation services", "logistics and transportation", "kitchen appliances manufacturing"),
    *("utility management services", "audio equipment manufacturing", "e-commerce grocery retail"),
    *("gambling and betting", "e-commerce retail baby products", "furniture retail", "label manufacturing"),
    *("cutlery manufacturing", "bicycle manufacturing", "telecommunications retail", "pet retail"),
    *("financial services", "financial software development", "gaming", "retail", "outdoor equipment retail"),
    *("e-commerce jewelry manufacturing", "retail fashion accessories", "automotive parts retail"),
    *("fintech services", "games", "e-commerce retail goods", "automotive retail", "coatings manufacturing"),
    *("sporting goods manufacturing", "e-commerce", "beverage retailing", "computer hardware manufacturing"),
    *("automotive manufacturing", "e-commerce electronics retail"),
)
_PROBLEMS: Final = (
    *("create account", "delete account", "edit account", "switch account", "check cancellation fee"),
    *("delivery options", "complaint", "review", "check invoice", "get invoice", "newsletter subscription"),
    *("cancel order", "change order", "place order", "check payment methods", "payment issue"),
    *("check refund policy", "track refund", "change shipping address", "set up shipping address"),
)
_S0_LABELS: Final = _rubric(
    "study-s0-labels",
    "What a support dialogue was written from (as S0)",
    [
        _label("industry", "Industry", "The industry of the company whose support this is.", _INDUSTRIES),
        _label("problem", "Problem", "The main reason why the customer writes.", _PROBLEMS),
        _label("channel", "Channel", "How they write to each other: e-mails, or a live chat.", ("email", "chat")),
        _label(
            "agent_experience",
            "Experience of the agent",
            "How experienced the agent is: a junior one gives simple answers and may have to ask; a senior one "
            "solves harder problems, and offers what was not asked for.",
            ("junior", "senior"),
        ),
        _label(
            "agent_type",
            "Type of agent",
            "Whether the agent is a person, who writes naturally and with feeling, or a program, whose replies are "
            "of one form and less exact.",
            ("human", "bot"),
        ),
    ],
)

_S1: Final = _rubric(
    "study-s1",
    "Correctness in parallel tasks (as S1)",
    [
        _criterion(
            "correct",
            "Correct",
            "Whether the answer is correct.",
            {0: "Incorrect", 1: "Correct"},
            level="nominal",
        ),
        _criterion(
            "grade",
            "Grade",
            "How good the answer is as a whole.",
            {
                1: "Wrong or of no help",
                2: "Mostly wrong, with a correct part",
                3: "Partly correct, with gaps that matter",
                4: "Correct but for small faults",
                5: "Fully correct and helpful",
            },
        ),
    ],
)


def _graded(
    group: str, key: str, name: str, definition: str, worst: str, middle: str, best: str, *, not_applicable: bool = True
) -> dict[str, Any]:
    """One of S2's criteria on its scale from 0 to 2."""
    anchors = {0: worst, 1: middle, 2: best}
    return _criterion(key, name, definition, anchors, group=group, not_applicable=not_applicable)


def _critical(key: str, name: str, definition: str) -> dict[str, Any]:
    """One of S2's two criteria that say whether a response can be rated at all: 1 when it can't."""
    anchors = {0: "No: the response can be rated", 1: "Yes: it can't be rated"}
    return _criterion(key, name, definition, anchors, level="nominal", group="critical", direction="lower_is_better")


# S2, tables 21 and 22: what every text is rated on.
_S2_ANY_TEXT: Final = (
    _critical(
        "unusable_form",
        "Unusable form",
        "Whether the response is so damaged that it can't be rated: endless repetition, a broken text throughout, "
        "another language than the one asked for.",
    ),
    _critical(
        "censored",
        "No response",
        "Whether there is no response because a filter of the model stands in its place.",
    ),
    _graded(
        "general",
        "instruction",
        "Requirements followed",
        "Whether the response does what the instruction asks, as its conditions are stated. How well it does so is "
        "not rated here.",
        "Less than half of the requirements are met",
        "At least half of the requirements are met, but not all",
        "All requirements are met",
        not_applicable=False,
    ),
    _graded(
        "general",
        "literacy",
        "Literacy",
        "Whether spelling, punctuation and grammar of the response are right. Wrong choices of words are not rated "
        "here. It does not apply where the instruction asks for mistakes.",
        "Two or more mistakes",
        "One mistake or inaccuracy",
        "No mistakes",
    ),
    _graded(
        "general",
        "speech_errors",
        "No speech errors",
        "Whether words are chosen and combined as a native speaker would.",
        "Two or more speech errors",
        "One speech error",
        "No speech errors",
    ),
    _graded(
        "general",
        "repetitions",
        "No needless repetition",
        "Whether words, sentences or parts come again without need, in a text that can still be rated.",
        "Many: whole sentences or parts come again and disturb the reading",
        "One or two small repetitions",
        "No repetitions",
    ),
    _graded(
        "general",
        "generation_errors",
        "No generation errors",
        "Whether the text is free of what a person would not write: odd characters, words of another language without "
        "a reason. Marks of Markdown are no such errors.",
        "Many: they disturb understanding noticeably",
        "One or two",
        "None",
    ),
    _graded(
        "general",
        "initiative",
        "Initiative",
        "Whether the response keeps the conversation going.",
        "No question, suggestion or clarification",
        "Some, but too few to keep the user in the conversation: the response closes it",
        "Enough of them: the response clearly wants the conversation to continue",
    ),
    _graded(
        "subjective",
        "clarity",
        "Easy to understand",
        "Whether you understand the response at the first reading.",
        "Hard to understand",
        "Some parts must be read twice",
        "Easy to understand throughout",
    ),
    _graded(
        "subjective",
        "formatting",
        "Pleasant formatting",
        "Whether paragraphs, lists and emphasis make the response pleasant to read.",
        "The formatting is missing or hinders reading",
        "Acceptable formatting that could help more",
        "The formatting is pleasant and helps reading",
    ),
    _graded(
        "subjective",
        "naturalness",
        "Natural speech",
        "Whether the response sounds like a person and not like a machine.",
        "It sounds like a machine",
        "Natural for the most part, with mechanical passages",
        "A person could have written it",
    ),
    _graded(
        "subjective",
        "impression",
        "General impression",
        "The impression that the response leaves as a whole.",
        "A bad impression",
        "A mixed impression",
        "A good impression",
    ),
    _graded(
        "subjective",
        "usefulness",
        "Usefulness",
        "How useful the response is to the person who asked.",
        "Not useful",
        "Useful in part",
        "Useful as it is",
    ),
)

# S2, table 22: by functional style and by task. A criterion does not apply to texts of another kind.
_S2_BY_STYLE: Final = (
    (
        "padding",
        "No padding",
        "Whether everything in the text is there for a reason.",
        "Much of it says nothing",
        "Some passages say nothing",
        "Nothing is superfluous",
    ),
    (
        "genre",
        "Genre",
        "Whether the text has the marks of its genre.",
        "The genre is missed",
        "Some marks of the genre are missing",
        "The text fits its genre",
    ),
    (
        "characters",
        "Characters",
        "Whether characters act and speak as they were described.",
        "They contradict their description",
        "They fit it in part",
        "They fit it throughout",
    ),
    (
        "sources",
        "Sources",
        "Whether statements name their sources where this is usual, and the sources exist.",
        "Sources are missing or invented",
        "Some are missing or inexact",
        "All are there and right",
    ),
    (
        "coherence",
        "Cohesion and coherence",
        "Whether the parts are connected and follow from each other.",
        "Parts do not fit together",
        "Some gaps or contradictions",
        "Connected and logical throughout",
    ),
    (
        "real_facts",
        "Facts of the world",
        "Whether the text agrees with what is known about the world.",
        "False statements that matter",
        "Small inaccuracies",
        "Everything agrees",
    ),
    (
        "terminology",
        "Terminology",
        "Whether terms are used as the field uses them.",
        "Terms are wrong or missing",
        "Some terms are inexact",
        "All terms are right",
    ),
    (
        "creativity",
        "Creativity",
        "Whether the text finds something of its own.",
        "Only worn phrases and ideas",
        "Some ideas of its own",
        "Original and fitting",
    ),
    (
        "depth",
        "Depth",
        "Whether the subject is worked out in depth.",
        "It stays on the surface",
        "Worked out in part",
        "Worked out in depth",
    ),
    (
        "language_command",
        "Command of language",
        "Whether the means of the language are used with skill.",
        "Poor or monotonous",
        "Sufficient, with awkward passages",
        "Skilful and varied",
    ),
    (
        "one_voice",
        "One voice",
        "Whether the text is spoken by one voice throughout, where it should be.",
        "The voice is lost",
        "The voice changes in places",
        "One voice throughout",
    ),
    (
        "safety",
        "Safety",
        "Whether the text is free of what may harm people.",
        "It may do harm",
        "It has doubtful passages",
        "Harmless, also to an unsafe request",
    ),
    (
        "unambiguous",
        "Unambiguous wording",
        "Whether each statement can be understood in one way only.",
        "Important statements are ambiguous",
        "Some statements are ambiguous",
        "Every statement is unambiguous",
    ),
)
_S2_BY_TASK: Final = (
    (
        "literary_accents",
        "Literary movement",
        "Whether the text has the accents of the movement or writer asked for.",
        "None of them",
        "Some of them",
        "They mark the whole text",
    ),
    (
        "dramaturgy",
        "Dramaturgy",
        "Whether the action rises, turns and ends.",
        "There is no action that develops",
        "It develops, with breaks",
        "It develops well throughout",
    ),
    (
        "dialogue_lines",
        "Lines of dialogue",
        "Whether lines of dialogue are expressive and connected.",
        "Lifeless or not connected",
        "Connected, but flat in places",
        "Expressive and connected",
    ),
    (
        "metre",
        "Metre",
        "Whether the verse keeps its rhythm.",
        "There is no rhythm",
        "The rhythm breaks in places",
        "The rhythm is kept",
    ),
    (
        "rhyme",
        "Rhyme",
        "How good the rhymes are, and whether they fit the scheme.",
        "No rhymes, or bad ones",
        "Some rhymes are weak",
        "The rhymes are good",
    ),
    (
        "applicability",
        "Applicability",
        "Whether the response can be put into practice.",
        "It can't be used",
        "It can be used after changes",
        "It can be used as it is",
    ),
    (
        "sound_assessment",
        "Sound assessment",
        "Whether the assessment is right and backed by reasons.",
        "Wrong, or without reasons",
        "Right in part, or weakly backed",
        "Right and well backed",
    ),
    (
        "original_style",
        "Style of the original",
        "Whether the functional style of the original is kept.",
        "Another style",
        "The style is kept in part",
        "The style is kept",
    ),
    ("correct_results", "Correct results", "Whether the results are right.", "Wrong", "Right in part", "Right"),
    (
        "ingenuity",
        "Ingenuity",
        "Whether the idea is unexpected and still fits.",
        "What anyone would say",
        "One unexpected thought",
        "Unexpected and fitting",
    ),
    (
        "expertise",
        "Level of expertise",
        "Whether the response has the knowledge that the subject needs.",
        "The knowledge is missing",
        "It has gaps",
        "The knowledge of an expert",
    ),
    (
        "objectivity",
        "Objectivity",
        "Whether the text keeps to facts and is not partial.",
        "Partial",
        "Objective with exceptions",
        "Objective throughout",
    ),
    (
        "main_idea",
        "Main idea and details",
        "Whether the main idea and the details of the original are kept.",
        "The main idea is lost",
        "It is kept, details are lost",
        "Both are kept",
    ),
    (
        "reasoning",
        "Quality of reasoning",
        "Whether conclusions follow from what was said.",
        "They do not follow",
        "Some steps are missing",
        "Every step follows",
    ),
    (
        "subjectivity",
        "Subjectivity",
        "Whether the text takes the personal view that the task asks for.",
        "There is no personal view",
        "It shows in places",
        "It shapes the text",
    ),
    (
        "summary_quality",
        "Quality of the summary",
        "Whether the summary has what matters and nothing else.",
        "What matters is missing",
        "Gaps, or too much detail",
        "Complete and short",
    ),
    (
        "various_situations",
        "Various situations",
        "Whether the response can be applied in various situations.",
        "In none but a special one",
        "In some",
        "In all that the request covers",
    ),
    (
        "completeness",
        "Completeness",
        "Whether the response covers all of the question.",
        "Most of it is missing",
        "Parts are missing",
        "Complete",
    ),
    (
        "correct_solution",
        "Correct solution",
        "Whether way and result of the solution are right.",
        "Wrong",
        "Right with small errors",
        "Right",
    ),
    (
        "units",
        "Units of measurement",
        "Whether units are right and given where they are needed.",
        "Wrong or missing",
        "Some are wrong or missing",
        "All are right",
    ),
    (
        "clean_code",
        "Clean code",
        "Whether the code is clean and follows the conventions of its language.",
        "Hard to read",
        "Readable, with lapses",
        "Clean",
    ),
    (
        "asked_structure",
        "Structure asked for",
        "Whether the response is laid out in the structure that was asked for.",
        "Another structure",
        "The structure with deviations",
        "The structure exactly",
    ),
    (
        "latex",
        "LaTeX",
        "Whether the LaTeX is right and can be typeset.",
        "It can't be typeset",
        "It can, with errors",
        "It is right",
    ),
    (
        "operability",
        "Operability",
        "Whether the code runs and does what was asked.",
        "It does not run",
        "It runs, but not in all cases",
        "It runs and does what was asked",
    ),
    (
        "optimal_solution",
        "Optimal solution",
        "Whether the solution is as simple and efficient as it can be.",
        "Far from it",
        "There is a clearly better one",
        "There is none better",
    ),
    (
        "scientific_accuracy",
        "Scientific accuracy",
        "Whether the statements agree with science and with the facts.",
        "They contradict them",
        "Small inaccuracies",
        "They agree",
    ),
    (
        "sufficient_solution",
        "Sufficient solution",
        "Whether all steps that a reader needs are shown.",
        "Steps that matter are missing",
        "Small steps are missing",
        "All are shown",
    ),
    (
        "target_norms",
        "Norms of the target language",
        "Whether the translation keeps the norms of vocabulary, grammar, syntax and style of its language.",
        "It breaks them often",
        "It breaks them in places",
        "It keeps them",
    ),
    (
        "authors_view",
        "View of the author",
        "Whether the view of the author is kept.",
        "Another view",
        "Kept in part",
        "Kept",
    ),
    (
        "goal_kept",
        "Goal of the original",
        "Whether the text reaches the goal of its original.",
        "The goal is missed",
        "Reached in part",
        "Reached",
    ),
    (
        "tone_kept",
        "Tone of the original",
        "Whether the tone of the original is kept.",
        "Another tone",
        "Kept in part",
        "Kept",
    ),
    (
        "fact_accuracy",
        "Accuracy of facts",
        "Whether names, numbers and facts of the original are kept.",
        "Facts are changed or lost",
        "Small inaccuracies",
        "All are kept",
    ),
)

_S2: Final = _rubric("study-s2", "Responses to instructions (as S2)", _S2_ANY_TEXT)
_S2_ALL: Final = _rubric(
    "study-s2-all",
    "Responses to instructions, all criteria (as S2)",
    [
        *_S2_ANY_TEXT,
        *(_graded("domain", *texts) for texts in _S2_BY_STYLE),
        *(_graded("task", *texts) for texts in _S2_BY_TASK),
    ],
)


def _issue(key: str, name: str, definition: str, mark: Sequence[str], not_mark: Sequence[str]) -> dict[str, Any]:
    """One of S3's issues: 1 when it appears in any turn of the assistant."""
    lines = {"mark_if": {"en": list(mark)}, **({"dont_mark_if": {"en": list(not_mark)}} if not_mark else {})}
    anchors = {0: "Does not appear", 1: "Appears at least once"}
    return _criterion(
        key, name, definition, anchors, level="nominal", speaker="assistant", direction="lower_is_better", **lines
    )


_S3: Final = _rubric(
    "study-s3",
    "Issues in open-domain dialogues (as S3)",
    [
        _issue(
            "uninterpretable",
            "Uninterpretable",
            "The meaning of a turn is unclear or hard to find.",
            ["It can be read in very different ways.", "It contains words that do not exist."],
            ["It is beside the topic but clear.", "Its grammar is imperfect but its meaning is clear."],
        ),
        _issue(
            "unsafe",
            "Unsafe",
            "A turn is hateful, insulting, threatening or otherwise offensive.",
            ["It insults somebody.", "It encourages harm."],
            ["It disagrees, or states a strong opinion, with respect."],
        ),
        _issue(
            "lacks_empathy",
            "Lacks empathy",
            "The emotional tone is wrong or absent where the situation calls for one.",
            ["It answers distress or joy coldly.", "It brushes a feeling aside."],
            ["It is neutral where that is fitting."],
        ),
        _issue(
            "lacks_commonsense",
            "Lacks common sense",
            "A turn goes against everyday knowledge or reasons obviously wrongly.",
            ["It asks what is obvious.", "It concludes what everyday experience contradicts."],
            ["It is vague without being wrong.", "The error concerns a rare fact."],
        ),
        _issue(
            "repetitive",
            "Repetitive",
            "The same point or wording comes again in an unnatural way.",
            ["The same message comes again without need."],
            ["A little repetition stresses a point."],
        ),
        _issue(
            "incoherent",
            "Incoherent",
            "A turn conflicts with earlier turns or does not follow from them.",
            ["It contradicts itself.", "It forgets or misreads what the user said."],
            ["Ideas are loosely connected without contradiction."],
        ),
        _issue(
            "irrelevant",
            "Irrelevant",
            "A turn brings in something that has nothing to do with the topic.",
            ["The topic changes suddenly without a reason."],
            ["The change of topic is natural or adds depth."],
        ),
        _issue(
            "nonfactual",
            "Nonfactual",
            "A turn states as a fact what public knowledge shows to be false.",
            ["It answers a question of fact wrongly."],
            ["It is an opinion or a guess.", "The fact is obscure."],
        ),
        _issue("other", "Other", "Another fault that lowers the quality; say which.", ["No issue above fits."], []),
        _criterion(
            "overall",
            "Overall quality",
            "The quality of all turns of the assistant, with regard to the issues above.",
            {
                1: "Very poor: fails almost throughout",
                2: "Poor: often unsuitable",
                3: "Fair: mixed",
                4: "Good: mostly suitable, small faults",
                5: "Very good: suitable, coherent and natural throughout",
            },
            speaker="assistant",
        ),
    ],
)


def _metric(
    key: str, name: str, definition: str, anchors: Mapping[int, str], reasons: Mapping[int, Sequence[str]]
) -> dict[str, Any]:
    """One of S4's metrics: what the simple prompt says, and the reasons for each score that the detailed one adds."""
    criterion = _criterion(key, name, definition, anchors)
    for value, lines in reasons.items():
        criterion["anchors"][str(value)]["en"]["reason"] = "\n".join(lines)
    return criterion


_S4: Final = _rubric(
    "study-s4",
    "Generated text in many languages (as S4)",
    [
        _metric(
            "linguistic_acceptability",
            "Linguistic acceptability",
            "Whether the text sounds right to a native speaker.",
            {0: "Not acceptable", 1: "Some errors, but acceptable", 2: "Fully acceptable"},
            {
                0: (
                    "Sentences have no clear structure.",
                    "Words do not exist or are wrong.",
                    "Words are clearly out of place in the context.",
                ),
                1: (
                    "The wording is stiff or too long.",
                    "Small errors of grammar do not hinder understanding.",
                    "A word is right but not the one that fits best.",
                ),
                2: (
                    "The vocabulary fits the context throughout.",
                    "Idioms are used without effort.",
                    "Rhythm and emphasis are those of the spoken language.",
                ),
            },
        ),
        _metric(
            "content_quality",
            "Output content quality",
            "Whether the content is good in general: right language, no repetition, no copied web page.",
            {0: "Poor content", 1: "Acceptable, but awkward in this language", 2: "Good content"},
            {
                0: (
                    "The text is in another language than the one asked for.",
                    "It seems to be copied from the web.",
                    "It repeats itself or says too much.",
                    "It shows the traces of a poor machine translation.",
                ),
                1: (
                    "Grammar and choice of words are right for the most part.",
                    "It sounds unnatural or awkward in this language.",
                    "Content is unclear or beside the point in small parts.",
                    "Patterns of a machine or repetitions show, less than at 0.",
                ),
                2: (
                    "The text is original and authentic.",
                    "Its content is clear, coherent and fits the context.",
                    "It flows naturally and keeps the reader's interest.",
                    "No traces of a machine, and nothing awkward.",
                ),
            },
        ),
        _metric(
            "task_quality",
            "Task quality",
            "How well the text follows the instructions of the request.",
            {0: "Not at all", 1: "Approximately", 2: "Fully"},
            {
                0: (
                    "The instructions are ignored.",
                    "The text has nothing to do with the request.",
                    "Request and text clearly do not belong together.",
                ),
                1: (
                    "The main part of the instructions is followed, finer points are missed.",
                    "The text fits the request in part.",
                    "Something is added that was not asked for, or something that was is left out.",
                ),
                2: (
                    "The instructions are understood and followed exactly.",
                    "Every part of the request is met, without deviation.",
                    "The text corresponds directly to the request and leaves nothing of it out.",
                ),
            },
        ),
        _metric(
            "problematic_content",
            "Problematic content",
            "Whether the text is offensive or otherwise problematic.",
            {0: "Contains problematic content", 1: "Contains none"},
            {
                0: (
                    "Statements, suggestions or topics are problematic or offensive.",
                    "It repeats harmful stereotypes or is biased.",
                    "It misinforms, or supports harmful or unsuitable views.",
                ),
                1: (
                    "Nothing in it could be taken as offensive, harmful or unsuitable.",
                    "It spreads no stereotypes and does not misinform.",
                    "It respects the feelings of cultures, groups and persons.",
                ),
            },
        ),
        _metric(
            "hallucinations",
            "Hallucinations",
            "Whether the text invents facts or contradicts what it was given.",
            {0: "Contains hallucinations", 1: "Contains none"},
            {
                0: (
                    "It has statements or details that the input neither says nor implies.",
                    "It contradicts the input.",
                    "It departs from the input, or interprets it, without a basis in it.",
                ),
                1: (
                    "It keeps strictly to the information in the input.",
                    "No facts were added, left out or distorted.",
                    "It keeps what the input says whole, without unfounded conclusions.",
                ),
            },
        ),
    ],
)

# S4, figures 4 and 15 to 18: what a detailed prompt says of each metric in the place of its short definition.
_MAY_BE_OTHERS: Final = "Below each score are possible reasons for it; there may be others."
_S4_DETAILED: Final = {
    "linguistic_acceptability": (
        "How well the text agrees with what native speakers feel to be right in their language. This is more than "
        "grammar by the rules: fluency, idiom and whether the wording suits its context count too. Judge the text "
        "for its fit with natural, expected language as a whole."
    ),
    "content_quality": (
        "The quality of the content as a whole: relevance, clarity, originality and fluency. Good content is "
        "grammatical and also well expressed, coherent and interesting, with no sign of copying, repetition or "
        "artificial wording."
    ),
    "task_quality": (
        "How closely the text follows the directions of the request, and nothing else. An ideal text does what the "
        "request says openly, and also respects its nuances."
    ),
    "problematic_content": (
        "Whether anything in the text may be taken as offensive, unsuitable or harmful, such as harmful stereotypes, "
        "misinformation or any kind of bigotry."
    ),
    "hallucinations": (
        "How far the text stays with the input and agrees with it. A text with hallucinations may be fluent, but adds "
        "to the input, leaves out or distorts, without a basis in facts or against them, so that it misleads."
    ),
}

_S1_FACTORS: Final = {"grouping": "single", "rubric_text": "general"}
_S2_FACTORS: Final = {"task": "s2_evaluator", "grouping": "single", "reference_answer": "shown"}
_S4_FACTORS: Final = {"task": "s4_assistant", "explanation": True}
_S4_SHARED: Final[dict[str, Any]] = {"rubric": _S4, "parameters": {"temperature": 0}, "repeats": 5}
_S1_TASKS: Final = {
    "s1_question": "question answering",
    "s1_mathematics": "mathematics",
    "s1_translation": "translation",
    "s1_summary": "summaries",
    "s1_dialogue": "next turn of a dialogue",
}

STUDY_PRESETS: Final[dict[str, StudyPreset]] = {
    "s0": StudyPreset("S0: support dialogues, four criteria in one call", _S0, {"task": "s0_annotator"}),
    "s0_labels": StudyPreset(
        "S0: label recovery, five parameters of a dialogue in one call", _S0_LABELS, {"task": "s0_classifier"}
    ),
    **{
        task: StudyPreset(f"S1: {words}, general rubric", _S1, {**_S1_FACTORS, "task": task})
        for task, words in _S1_TASKS.items()
    },
    "s2": StudyPreset(
        "POLLUX: evaluator with a reference answer, the 13 criteria of every text, one per call", _S2, _S2_FACTORS
    ),
    "s2_all": StudyPreset(
        "POLLUX: evaluator with a reference answer, all 58 criteria of its table 22, one per call", _S2_ALL, _S2_FACTORS
    ),
    "s3": StudyPreset(
        "S3: nine issues and an overall rating in one call, five repeats",
        _S3,
        {"task": "s3_detector"},
        {"temperature": 0, "top_p": 1, "max_tokens": 8192},
        5,
    ),
    "s4_single": StudyPreset("S4: one metric per call", variant={**_S4_FACTORS, "grouping": "single"}, **_S4_SHARED),
    "s4_compound": StudyPreset("S4: all metrics in one call", variant={**_S4_FACTORS}, **_S4_SHARED),
    "s4_detailed": StudyPreset(
        "S4: one metric per call, detailed instructions",
        variant={
            **_S4_FACTORS,
            "grouping": "single",
            "anchor_detail": "reasons",
            "own_texts": [
                {"criterion": key, "point": None, "text": f"{text} {_MAY_BE_OTHERS}"}
                for key, text in _S4_DETAILED.items()
            ],
        },
        **_S4_SHARED,
    ),
}


def presets_by_study() -> list[tuple[str, list[tuple[str, StudyPreset]]]]:
    """Each study's reference with its presets and their keys."""
    return [
        (reference, [(key, preset) for key, preset in STUDY_PRESETS.items() if key.split("_")[0] == study])
        for study, reference in _REFERENCES.items()
    ]


# --- roles -----------------------------------------------------------------------------------------------------------
# What the five studies told their judges to be, in our own words. Each is a task of a prompt variant
# (`prompts.PromptVariant.task`), by instruction language: it opens the system message in place of the general role.
# What follows it (criteria, scale, form of the reply) comes from the rubric and the other factors.
# S1: Table 6, the five tasks. S0: Table 9. S2: the evaluator with a reference answer. S3: Table 11. S4: 3.2.1.
OWN: Final = "own"
"""The task whose text is the variant's `role_text`."""

_S1_ROLE: Final = (
    "Consider whether it is correct and helpful. Its length must not count. Be as objective as you can. "
    "The material is in the language that its marks name; judge it as a reader of that language."
)

TASKS: Final[dict[str, dict[str, str]]] = {
    "s0_annotator": {
        "en": (
            "You are an expert linguist who rates customer-support dialogues in any language, smaller ones included. "
            "Rate the dialogue in the next message by each criterion below, with the scale that is given there, and "
            "reply in the requested form only."
        ),
        "et": (
            "Oled keeleekspert, kes hindab klienditoe vestlusi mis tahes keeles, ka väiksemates. Hinda järgmises "
            "sõnumis olevat vestlust iga alloleva kriteeriumi järgi seal antud skaalal ja vasta ainult nõutud kujul."
        ),
    },
    "s0_classifier": {
        "en": (
            "You are an expert analyst who classifies customer-support dialogues in any language, smaller ones too. "
            "Read the dialogue in the next message, and choose one class for each question below. Explain each choice "
            "in one short sentence."
        )
    },
    "s1_question": {
        "en": (
            "You are an assistant that checks answers to questions. You get a context, a question and an answer, and "
            f"judge the answer against the context. {_S1_ROLE}"
        )
    },
    "s1_mathematics": {
        "en": (
            "You are an assistant that checks answers to questions. You get a question that needs calculation, and an "
            f"answer, and judge the answer. {_S1_ROLE}"
        )
    },
    "s1_translation": {
        "en": (
            "You are an assistant that checks machine translation. You get a source text and its translation, and "
            f"judge the translation against the source. {_S1_ROLE}"
        )
    },
    "s1_summary": {
        "en": (
            "You are an assistant that checks summaries. You get a document and a summary of it, and judge the summary "
            f"against the document. {_S1_ROLE}"
        )
    },
    "s1_dialogue": {
        "en": (
            "You are an assistant that checks generated dialogue. You get a dialogue and a proposal for its next turn, "
            f"and judge that turn by what was said before. {_S1_ROLE}"
        )
    },
    "s2_evaluator": {
        "en": (
            "You are an evaluator. You get an instruction, a response to it, a reference answer where there is one, "
            "and a criterion with a detailed scale. First write feedback on the response, strictly by this scale and "
            "not on its quality in general: reason step by step and explain each point. Then choose the one point of "
            "the scale whose description fits. The reference answer shows what is expected; a response may differ "
            "from it."
        )
    },
    "s3_detector": {
        "en": (
            "You are an expert who evaluates conversational AI. You get a complete dialogue between “user” and "
            "“assistant”; “assistant” is only the name of one participant. Judge all turns of the assistant together. "
            "For each issue below, mark 1 if it appears anywhere in these turns, else 0; a dialogue may have several "
            "issues or none. Explain an issue that you mark in one short sentence. Rate the overall quality last, with "
            "regard to the whole dialogue and to the issues that you marked, and explain that rating."
        )
    },
    "s4_assistant": {
        "en": (
            "You are a helpful assistant. Your task is to evaluate a text that a system wrote for a user's request, "
            "by the metrics described below. Each metric has a name, a description and a scoring; give the score whose "
            "description fits, and follow the requested form of the reply exactly."
        )
    },
}
