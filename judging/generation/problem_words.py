"""Why replies were discarded, in sentences for pages: for each code of `turn_rules`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext_lazy

PROBLEM_SENTENCES: Final = {
    "unreadable": gettext_lazy("The reply has not the form that was asked for."),
    "refusal": gettext_lazy("The model refused, or a filter of the provider stopped the reply."),
    "cut_off": gettext_lazy("The reply was cut off."),
    "too_long": gettext_lazy("The reply is longer than %(longest)s characters."),
    "reasoning": gettext_lazy("The model’s reasoning is in the text."),
    "hidden_characters": gettext_lazy("The text has control characters or marks that turn its direction."),
    "no_text": gettext_lazy("The reply has no text."),
    "empty_turn": gettext_lazy("Turn %(turn)s is empty."),
    "unknown_role": gettext_lazy("Turn %(turn)s has an unknown speaker: “%(role)s”"),
    "same_role": gettext_lazy("Turns %(before)s and %(turn)s are by the same speaker."),
    "wrong_start": gettext_lazy("The first turn should be by: %(role)s"),
    "wrong_end": gettext_lazy("The last turn should be by: %(role)s"),
    "wrong_count": gettext_lazy("There are %(count)s turns; from %(least)s to %(most)s were asked for."),
    "no_greeting": gettext_lazy("The first turn of this speaker has no greeting: %(role)s"),
    "long_turn": gettext_lazy("Part %(turn)s is longer than %(longest)s characters."),
    "wrong_script": gettext_lazy("The text is in another script than its language."),
    "mixed_script": gettext_lazy("Part %(turn)s is in another script."),
    "wrong_language": gettext_lazy("The text is in another language: %(language)s"),
    "mixed_language": gettext_lazy("Part %(turn)s is in another language: %(language)s"),
    "stand_in": gettext_lazy("Where a name or number belongs, there is: “%(text)s”"),
    "copied_brief": gettext_lazy("A sentence of the request is in the text: “%(text)s”"),
    "repeated_turn": gettext_lazy("Turn %(turn)s is the same as turn %(before)s."),
    "same_texts": gettext_lazy("Both texts are the same."),
    "inverted_role": gettext_lazy("The user’s turn speaks as the chatbot does."),
    "two_speakers": gettext_lazy("The turn has messages of both sides."),
    "role_label": gettext_lazy("The turn begins with the name of a speaker."),
    "fourth_wall": gettext_lazy("The user’s turn says that a program wrote it, or that the scene is made up."),
    "comment": gettext_lazy("The turn has words about the message in it."),
    "quoted": gettext_lazy("The whole turn is in quotation marks."),
    "leaked_rubric": gettext_lazy("The turn repeats what its model was asked or answered about earlier tries."),
    "stop_mark": gettext_lazy("The mark for the end is in the wrong place."),
    "changed_role": gettext_lazy("Turn %(turn)s has another speaker than its source: “%(role)s”"),
    "missing_part": gettext_lazy("Part %(turn)s is empty, and its source is not."),
    "added_part": gettext_lazy("There is a part that the source does not have: %(turn)s"),
    "untranslated": gettext_lazy("Part %(turn)s is a copy of its source."),
    "lost_placeholder": gettext_lazy("This is missing in part %(turn)s: “%(text)s”"),
    "lost_number": gettext_lazy("This number is missing in part %(turn)s: %(text)s"),
    "wrong_length": gettext_lazy("The text has %(percent)s %% of the length of its source."),
    "wrong_length_of": gettext_lazy("Part %(turn)s has %(percent)s %% of the length of its source."),
    "refused_by_judge": gettext_lazy("The judge of user turns refused it: %(feedback)s"),
    "no_verdict": gettext_lazy("The reply of the judge of user turns can’t be read."),
}
PROBLEM_LABELS: Final = {
    "unreadable": gettext_lazy("Not the form asked for"),
    "refusal": gettext_lazy("Refusal"),
    "cut_off": gettext_lazy("Cut off"),
    "too_long": gettext_lazy("Far too long"),
    "reasoning": gettext_lazy("Reasoning in the text"),
    "hidden_characters": gettext_lazy("Control characters"),
    "no_text": gettext_lazy("No text"),
    "empty_turn": gettext_lazy("Empty turn"),
    "unknown_role": gettext_lazy("Unknown speaker"),
    "same_role": gettext_lazy("One speaker twice in a row"),
    "wrong_start": gettext_lazy("Wrong first speaker"),
    "wrong_end": gettext_lazy("Wrong last speaker"),
    "wrong_count": gettext_lazy("Wrong number of turns"),
    "no_greeting": gettext_lazy("No greeting"),
    "long_turn": gettext_lazy("Part too long"),
    "wrong_script": gettext_lazy("Wrong script"),
    "mixed_script": gettext_lazy("Mixed scripts"),
    "wrong_language": gettext_lazy("Wrong language"),
    "mixed_language": gettext_lazy("Mixed languages"),
    "stand_in": gettext_lazy("Placeholder left in"),
    "copied_brief": gettext_lazy("Copy of the request"),
    "repeated_turn": gettext_lazy("Turn repeated"),
    "same_texts": gettext_lazy("Both texts the same"),
    "inverted_role": gettext_lazy("User speaks as the chatbot"),
    "two_speakers": gettext_lazy("Both sides in one turn"),
    "role_label": gettext_lazy("Name of a speaker"),
    "fourth_wall": gettext_lazy("User says it is made up"),
    "comment": gettext_lazy("Comment on the message"),
    "quoted": gettext_lazy("In quotation marks"),
    "leaked_rubric": gettext_lazy("Words of the judge repeated"),
    "stop_mark": gettext_lazy("End mark in the wrong place"),
    "changed_role": gettext_lazy("Speaker changed"),
    "missing_part": gettext_lazy("Part left out"),
    "added_part": gettext_lazy("Part added"),
    "untranslated": gettext_lazy("Not translated"),
    "lost_placeholder": gettext_lazy("Placeholder lost"),
    "lost_number": gettext_lazy("Number lost"),
    "wrong_length": gettext_lazy("Length changed"),
    "wrong_length_of": gettext_lazy("Length of a part changed"),
    "refused_by_judge": gettext_lazy("Refused by the judge"),
    "no_verdict": gettext_lazy("No verdict"),
}


def problem_sentence(stored: Mapping[str, Any]) -> str:
    """The sentence for a stored problem (`{code, values}`); if the code is unknown, the code itself."""
    code = str(stored.get("code", ""))
    if code not in PROBLEM_SENTENCES:
        return code
    try:
        values: Mapping[str, Any] = stored.get("values", {})
        return str(PROBLEM_SENTENCES[code] % values)
    except (KeyError, TypeError, ValueError):  # the values were stored for an earlier wording of the sentence
        return str(PROBLEM_LABELS[code])
