"""What a reader chose in the address: coefficient, judge, criterion, raters, and whether only blind ratings count."""

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

BLIND_ONLY = "only"


@dataclass(frozen=True, slots=True)
class Raters:
    """The annotators whose ratings count; `chosen` is empty when all of them do.

    `blind_only`: what they rated while they could see verdicts does not.
    """

    everyone: tuple[Annotator, ...]
    chosen: tuple[Annotator, ...] = ()
    blind_only: bool = False

    @property
    def settings(self) -> Settings:
        return Settings(raters=tuple(annotator.pseudonym for annotator in self.chosen), blind_only=self.blind_only)

    @property
    def query(self) -> str:
        """The choice as a query string, empty for everyone."""
        blind = [("blind", BLIND_ONLY)] if self.blind_only else []
        return urlencode([*(("raters", annotator.pseudonym) for annotator in self.chosen), *blind])

    @property
    def pks(self) -> list[int]:
        return [annotator.pk for annotator in self.chosen]


def raters(campaign: Campaign, query: QueryDict) -> Raters:
    """The annotators named in `?raters=A,B` or `?raters=A&raters=B`; refused when there is nobody of that name.

    `?blind=only` leaves out ratings by people who could see verdicts.
    """
    everyone = tuple(ratings.annotators(campaign))
    known = {annotator.pseudonym for annotator in everyone}
    wanted = {name for given in query.getlist("raters") for name in _names(given, known)}
    if strangers := sorted(wanted - known):
        sentence = _("Nobody called %s has rated in this campaign.") % ", ".join(strangers)
        raise Refused(sentence, code="unknown_rater", fields={"raters": sentence})
    if (blind := query.get("blind", "")) not in ("", BLIND_ONLY):
        sentence = _("“blind” can only be “%s”, or left out.") % BLIND_ONLY
        raise Refused(sentence, code="unknown_choice", fields={"blind": sentence})
    chosen = tuple(annotator for annotator in everyone if annotator.pseudonym in wanted)
    return Raters(everyone, chosen if len(chosen) < len(everyone) else (), blind_only=bool(blind))


def one_of(given: str | None, choices: Sequence[str]) -> str:
    """What was given if it is a choice, else the first choice, else nothing."""
    return given if given and given in choices else next(iter(choices), "")


def _names(given: str, known: set[str]) -> list[str]:
    """A pseudonym may hold a comma itself."""
    return [given] if given in known else [name.strip() for name in given.split(",") if name.strip()]
