"""What a reader chose in the bar of a study: judge, criterion, language, and what the judge is compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.http import QueryDict

from accounts.inputs import without_nul

COMPARED_WITH = ("mean", "median", "mode", "mode_split", "each")
"""The rules of reference that a study may be compared with: those that every campaign has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyChoice:
    """What a reader chose in the bar of a study; empty: the first judge or criterion, all languages, the mean."""

    judge: str = ""
    criterion: str = ""
    language: str = ""
    reference: str = "mean"
    cell: str = ""
    """The language of the decision that is shown in full."""

    @property
    def query(self) -> str:
        """The choice as the parameters of an address, without what is not chosen."""
        chosen = {"judge": self.judge, "criterion": self.criterion, "language": self.language, "cell": self.cell}
        chosen["reference"] = "" if self.reference == "mean" else self.reference
        return urlencode({name: value for name, value in chosen.items() if value})

    def with_(self, **changes: str) -> str:
        """The parameters of an address with some of them changed."""
        return replace(self, **changes).query


# --- the bar, which all pages of a campaign have -----------------------------------------------------------------
BAR = ("judge", "criterion", "language", "reference")
FILTERS_OF_BAR = ("criterion", "language")
"""On pages of questions these are filters, `where=criterion=…`."""


def chosen_in_bar(query: QueryDict) -> dict[str, str]:
    """By name what an address has chosen in the bar; of several values of one name none is."""
    found = {name: without_nul(query.get(name, "")) for name in BAR if len(query.getlist(name)) == 1}
    for name in FILTERS_OF_BAR:
        own = [text.partition("=")[2] for text in query.getlist("where") if text.startswith(f"{name}=")]
        if len(own) == 1 and not found.get(name):
            found[name] = without_nul(own[0])
    if found.get("reference") not in COMPARED_WITH:
        found.pop("reference", None)
    return {name: found[name] for name in BAR if found.get(name)}


def as_filter(name: str, text: str) -> tuple[str, str]:
    """A parameter of a question; criterion and language of the bar as the filters that they are there."""
    return ("where", f"{name}={text}" if text else "") if name in FILTERS_OF_BAR else (name, text)
