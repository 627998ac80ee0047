"""What a reader chose in the bar of a study: judge, criterion, language, and what the judge is compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlencode

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
