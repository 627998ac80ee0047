"""Why a verdict has no score on the scale, in sentences: for each code of `replies.NoScore`. Also what a reply was read
as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

SENTENCES: Final = {
    "empty": gettext_lazy("The reply has no text."),
    "nothing": gettext_lazy("The reply names no score: “%(found)s”"),
    "differing": gettext_lazy("The reply gives different scores: “%(found)s”"),
    "not_a_score": gettext_lazy("Where a score is expected, there is none: “%(found)s”"),
    "another_scale": gettext_lazy("The score is on another scale: “%(found)s”"),
    "no_na": gettext_lazy("The reply gives N/A, which the rubric does not allow here: “%(found)s”"),
    "no_member": gettext_lazy("The reply names the criterion, but gives no score."),
    "not_named": gettext_lazy("The reply does not name the criterion. It names: “%(found)s”"),
    "broken": gettext_lazy("The JSON of the reply is broken: “%(found)s”"),
    "quoted": gettext_lazy("The only score seems to be quoted from the rated text: “%(found)s”"),
    "cut_off": gettext_lazy("The reply was cut off before a score: “%(found)s”"),
    "off_scale": gettext_lazy("The score is off the scale: “%(found)s”"),
    "refusal": gettext_lazy("The model refused: “%(found)s”"),
    "content_filter": gettext_lazy("A filter of the provider stopped the reply."),
    "not_answered": gettext_lazy("The provider refused the request: “%(found)s”"),
    "not_stored": gettext_lazy("The reply could not be stored: “%(found)s”"),
}
LABELS: Final = {
    "empty": gettext_lazy("No text"),
    "nothing": gettext_lazy("No score named"),
    "differing": gettext_lazy("Different scores"),
    "not_a_score": gettext_lazy("Not a score"),
    "another_scale": gettext_lazy("Another scale"),
    "no_na": gettext_lazy("N/A not allowed"),
    "no_member": gettext_lazy("Criterion without a score"),
    "not_named": gettext_lazy("Criterion not named"),
    "broken": gettext_lazy("Broken JSON"),
    "quoted": gettext_lazy("Quoted from the text"),
    "cut_off": gettext_lazy("Cut off"),
    "off_scale": gettext_lazy("Off the scale"),
    "refusal": gettext_lazy("Refusal of the model"),
    "content_filter": gettext_lazy("Filter of the provider"),
    "not_answered": gettext_lazy("Refusal of the provider"),
    "not_stored": gettext_lazy("Could not be stored"),
}
READ_AS: Final = {
    "object": gettext_lazy("a JSON object"),
    "mended": gettext_lazy("a JSON object after small corrections"),
    "prose": gettext_lazy("JSON inside other text"),
    "broken": gettext_lazy("parts of broken JSON"),
    "tagged": gettext_lazy("a mark or line such as “Score: 3”"),
    "words": gettext_lazy("a number in words"),
    "text": gettext_lazy("plain text"),
    "provider": gettext_lazy("what the provider said"),
}
"""What the reply was read as, by `rung`: the ways of reading are tried in order, like rungs of a ladder."""


def reason_sentence(reason: Mapping[str, str] | None) -> str:
    """The stored reason as a sentence; empty without a reason, or if this version does not know its code."""
    if not reason or reason.get("code") not in SENTENCES:
        return ""
    return str(SENTENCES[reason["code"]]) % {"found": reason.get("found") or "–"}


def read_as(reason: Mapping[str, str] | None) -> str:
    """What the reply was read as, in a few words."""
    rung = READ_AS.get((reason or {}).get("rung", ""))
    return _("Read as: %s") % rung if rung else ""
