"""Ready configurations of the five studies: rubric, prompt, parameters and repeats, as a run of each had them. Pure.

Structure, fields and scales are those of the studies; every word is ours. S1 has one for each of its five tasks, S4 for
each of its three prompt styles. Where a study names no temperature, none is sent.
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


REFERENCES: Final = {
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

_S2: Final = _rubric(
    "study-s2",
    "Responses to instructions (as S2)",
    [
        _criterion(
            "instruction",
            "Requirements followed",
            "Whether the response does what the instruction asks, in content and in form.",
            {
                0: "Misses the request or most of its requirements",
                1: "Meets some of the requirements",
                2: "Meets all of the requirements",
            },
        ),
        _criterion(
            "literacy",
            "Literacy",
            "Spelling, punctuation and grammar of the response.",
            {0: "Many errors", 1: "One or two errors", 2: "No errors"},
        ),
        _criterion(
            "initiative",
            "Initiative",
            "Whether the response keeps the conversation going.",
            {
                0: "No question, suggestion or clarification",
                1: "One that is general or beside the point",
                2: "One that fits and moves the conversation on",
            },
            not_applicable=True,
        ),
        _criterion(
            "impression",
            "General impression",
            "How useful the response is to the person who asked.",
            {0: "Not useful", 1: "Useful in part", 2: "Useful as it is"},
        ),
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

_S4: Final = _rubric(
    "study-s4",
    "Generated text in many languages (as S4)",
    [
        _criterion(
            "linguistic_acceptability",
            "Linguistic acceptability",
            "Whether the text sounds right to a native speaker.",
            {0: "Not acceptable", 1: "Some errors, but acceptable", 2: "Fully acceptable"},
        ),
        _criterion(
            "content_quality",
            "Output content quality",
            "Whether the content is good in general: right language, no repetition, no copied web page.",
            {0: "Poor content", 1: "Acceptable, but awkward in this language", 2: "Good content"},
        ),
        _criterion(
            "task_quality",
            "Task quality",
            "How well the text follows the instructions of the request.",
            {0: "Not at all", 1: "Approximately", 2: "Fully"},
        ),
        _criterion(
            "problematic_content",
            "Problematic content",
            "Whether the text is offensive or otherwise problematic.",
            {0: "Contains problematic content", 1: "Contains none"},
        ),
        _criterion(
            "hallucinations",
            "Hallucinations",
            "Whether the text invents facts or contradicts what it was given.",
            {0: "Contains hallucinations", 1: "Contains none"},
        ),
    ],
)

_S1_FACTORS: Final = {"grouping": "single", "rubric_text": "general"}
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
    **{
        task: StudyPreset(f"S1: {words}, general rubric", _S1, {**_S1_FACTORS, "task": task})
        for task, words in _S1_TASKS.items()
    },
    "s2": StudyPreset(
        "S2: evaluator with a reference answer, one criterion per call",
        _S2,
        {"task": "s2_evaluator", "grouping": "single", "reference_answer": "shown"},
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
        variant={**_S4_FACTORS, "grouping": "single", "anchor_detail": "reasons"},
        **_S4_SHARED,
    ),
}


def presets_by_study() -> list[tuple[str, list[tuple[str, StudyPreset]]]]:
    """Each study's reference with its presets and their keys."""
    return [
        (reference, [(key, preset) for key, preset in STUDY_PRESETS.items() if key.split("_")[0] == study])
        for study, reference in REFERENCES.items()
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
