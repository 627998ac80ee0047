"""A small rubric and dialogue for the tests of judging's pure modules."""

from __future__ import annotations

from judging.prompts import CriterionBrief, ItemText, PointBrief, PromptVariant, Turn


def point_briefs(*values: float) -> tuple[PointBrief, ...]:
    return tuple(PointBrief(value) for value in values)


GRAMMAR = CriterionBrief(
    key="grammar",
    name="Grammar",
    question="How correct is the language?",
    definition="Looks at the forms of words and sentences only.",
    points=(
        PointBrief(0, "broken", "Errors in nearly every sentence.", "Endings are missing.\nWord order is foreign."),
        PointBrief(1, "faulty", "Errors that slow reading down."),
        PointBrief(2, "correct", "No errors."),
    ),
)
EMPATHY = CriterionBrief(
    key="empathy",
    name="Empathy",
    points=point_briefs(0, 1, 2, 3),
    allows_na=True,
    mark_if="the customer is upset and the agent ignores it",
    dont_mark_if="the tone is neutral and fitting",
    speaker="AGENT",
)
LENGTH = CriterionBrief(key="length", name="Length fit", points=point_briefs(0, 100), level="interval")
CHANNEL = CriterionBrief(
    key="channel", name="Channel", level="nominal", points=(PointBrief(0, "email"), PointBrief(1, "chat"))
)

DIALOGUE = ItemText(
    turns=(Turn("CUSTOMER", "Where is my parcel?"), Turn("AGENT", "It left today.\nAnything else?", name="Mari")),
    fields=(("context", "A web shop."),),
    language="en-GB",
    title="Parcel",
)
SINGLE = PromptVariant(grouping="single")
COMPOUND = PromptVariant(grouping="compound")
