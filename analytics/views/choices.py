"""What a reader chose in the address: coefficient, judge, criterion, raters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext as _

from accounts.refusals import Refused
from analytics import ratings
from analytics.dashboards import Settings
from annotation.models import Annotator, Campaign


@dataclass(frozen=True, slots=True)
class Raters:
    """The annotators whose ratings count; `chosen` is empty when all of them do."""

    everyone: tuple[Annotator, ...]
    chosen: tuple[Annotator, ...] = ()

    @property
    def settings(self) -> Settings:
        return Settings(raters=tuple(annotator.pseudonym for annotator in self.chosen))

    @property
    def query(self) -> str:
        """The choice as a query string, empty for everyone."""
        return urlencode([("raters", annotator.pseudonym) for annotator in self.chosen])

    @property
    def pks(self) -> list[int]:
        return [annotator.pk for annotator in self.chosen]


def raters(campaign: Campaign, query: QueryDict) -> Raters:
    """The annotators named in `?raters=A,B` or `?raters=A&raters=B`; refused when there is nobody of that name."""
    everyone = tuple(ratings.annotators(campaign))
    known = {annotator.pseudonym for annotator in everyone}
    wanted = {name for given in query.getlist("raters") for name in _names(given, known)}
    if strangers := sorted(wanted - known):
        sentence = _("Nobody called %s has rated in this campaign.") % ", ".join(strangers)
        raise Refused(sentence, code="unknown_rater", fields={"raters": sentence})
    chosen = tuple(annotator for annotator in everyone if annotator.pseudonym in wanted)
    return Raters(everyone, chosen if len(chosen) < len(everyone) else ())


def one_of(given: str | None, choices: Sequence[str]) -> str:
    """What was given if it is a choice, else the first choice, else nothing."""
    return given if given and given in choices else next(iter(choices), "")


def _names(given: str, known: set[str]) -> list[str]:
    """A pseudonym may hold a comma itself."""
    return [given] if given in known else [name.strip() for name in given.split(",") if name.strip()]
