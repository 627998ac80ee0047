"""The page of a campaign's numbers: agreement and calibration, and what a reader chose in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import access
from accounts.models import Project, User
from accounts.refusals import Refused
from analytics import figures, item_choices, page_cache, tasks
from analytics.answers import computing, snapshots
from analytics.figures import Figures, listed, spread
from analytics.judges import decisions
from analytics.models import Snapshot
from analytics.numbers import RULE_NAMES, NumbersPage, chosen_option
from analytics.questions.parameters import BLIND_ONLY
from analytics.questions.question import Settings
from analytics.ratings.raters import campaign_annotators
from analytics.stats.core.identifiers import normal_identifier
from annotation.models import Annotator, Campaign

# --- what a reader chose in the address ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Raters:
    """The annotators whose ratings count; `chosen` is empty when all of them do.

    `blind_only`: what they rated while they could see verdicts does not. `reference`: what judges are compared with, a
    key of `RULE_NAMES`.
    """

    everyone: tuple[Annotator, ...]
    chosen: tuple[Annotator, ...] = ()
    blind_only: bool = False
    reference: str = ""

    @property
    def settings(self) -> Settings:
        chosen = tuple(annotator.pseudonym for annotator in self.chosen)
        return Settings(raters=chosen, blind_only=self.blind_only, reference=self.reference)

    @property
    def query(self) -> str:
        """The choice as a query string, empty for everyone."""
        blind = [("blind", BLIND_ONLY)] if self.blind_only else []
        rule = [("reference", self.reference)] if self.reference else []
        return urlencode([*(("raters", annotator.pseudonym) for annotator in self.chosen), *blind, *rule])

    @property
    def items_query(self) -> str:
        """The same for the list of items, as far as it knows the rule."""
        blind = [("blind", BLIND_ONLY)] if self.blind_only else []
        rule = [("reference", self.reference)] if self.reference in item_choices.ASKED_RULES else []
        return urlencode([*(("rater", annotator.pseudonym) for annotator in self.chosen), *blind, *rule])


def chosen_raters(campaign: Campaign, query: QueryDict) -> Raters:
    """The annotators named in `?raters=A,B` or `?raters=A&raters=B`; refused when there is nobody of that name.

    `?blind=only` leaves out ratings by people who could see verdicts; `?reference=median` is one of `RULE_NAMES`.
    """
    named = named_raters(campaign, query.getlist("raters"))
    if (blind := query.get("blind", "")) not in ("", BLIND_ONLY):
        sentence = _("“blind” can only be “%s”, or left out.") % BLIND_ONLY
        raise Refused(sentence, code="unknown_choice", fields={"blind": sentence})
    if (reference := query.get("reference", "")) not in RULE_NAMES:
        known_rules = listed([name for name in RULE_NAMES if name])
        sentence = _("“%(given)s” is not a reference rule. Choose one of %(rules)s.")
        sentence %= {"given": reference, "rules": known_rules}
        raise Refused(sentence, code="unknown_choice", fields={"reference": sentence})
    return replace(named, blind_only=bool(blind), reference=reference)


def named_raters(campaign: Campaign, given: Sequence[str]) -> Raters:
    """The annotators of these pseudonyms or lists of pseudonyms; refused when there is nobody of that name."""
    everyone = tuple(campaign_annotators(campaign))
    known = {normal_identifier(annotator.pseudonym): annotator.pseudonym for annotator in everyone}
    names = {name for text in given for name in _names(normal_identifier(text), set(known))}
    wanted = {known.get(name, name) for name in names}
    if strangers := sorted(names - set(known)):
        sentence = _("Nobody called %s has rated in this campaign.") % ", ".join(strangers)
        raise Refused(sentence, code="unknown_rater", fields={"raters": sentence})
    chosen = tuple(annotator for annotator in everyone if annotator.pseudonym in wanted)
    return Raters(everyone, () if len(chosen) == len(everyone) else chosen)


def _names(given: str, known: set[str]) -> list[str]:
    """A pseudonym may hold a comma itself."""
    return [given] if given in known else [name.strip() for name in given.split(",") if name.strip()]


# --- views -----------------------------------------------------------------------------------------------------------
@require_safe
@login_required
def numbers_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every campaign with its headline figures; the study of the only one where there is only one."""
    current_project = access.require(user=request.user, slug=project)
    campaigns = list(Campaign.objects.visible_to(request.user).filter(project=current_project).select_related(*_SHOWN))
    if len(campaigns) == 1:
        return redirect("study", current_project.slug, campaigns[0].pk)
    newest = snapshots.newest(campaigns)
    entries = [(campaign, _headline(newest.get(campaign.pk))) for campaign in campaigns]
    return render(
        request, "analytics/numbers.html", {"title": _("Study"), "project": current_project, "entries": entries}
    )


@require_safe
@login_required
@page_cache.cached_page
def campaign_numbers(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The page. It asks for itself every few seconds, with the state it has `seen`."""
    found = _campaign(request.user, project, campaign)
    raters, refusal = _raters(found, request)
    snapshot, is_stale = snapshots.current_snapshot(campaign=found, settings=raters.settings)
    number = snapshot.pk if snapshot else 0
    if is_stale:
        tasks.ask_to_compute(campaign=found, settings=raters.settings)
    failed = computing.failed(campaign=found, settings=raters.settings) if is_stale else None
    state = f"{number}-{'stale' if is_stale else 'fresh'}"
    if _seen(request) == state and not is_stale:
        return HttpResponse(status=204)
    page = NumbersPage(campaign=found, snapshot=snapshot, query=request.GET) if snapshot else None
    context = {"project": found.project, "campaign": found, "raters": raters, "refusal": refusal, "page": page}
    context["decided"] = decisions.current_decisions(found) if page and page.judges else None
    shown = {
        "snapshot": snapshot,
        "is_stale": is_stale,
        "state": state,
        "addresses": _addresses(found, raters),
        "failed": failed,
        "figures_key": _figures_key(snapshot, request.GET) if snapshot else "",
    }
    response = render(request, "analytics/campaign_numbers.html", {**context, **shown})
    if _seen(request) and not _seen(request).startswith(f"{number}-"):
        response["HX-Retarget"] = response["HX-Reselect"] = "#main"  # new figures, not only news of them
    return response


@require_safe
@login_required
def bias_chart(request: HttpRequest, project: str, campaign: int, snapshot: int) -> HttpResponse:
    """The chart of one snapshot as SVG; the same address and reader's language always give the same picture."""
    found = _campaign(request.user, project, campaign)
    stored = get_object_or_404(snapshots.of_numbers_page(found), pk=snapshot)
    return drawn_chart(request, NumbersPage(campaign=found, snapshot=stored, query=request.GET))


def drawn_chart(request: HttpRequest, page: NumbersPage) -> HttpResponse:
    """The chart as a file: what was drawn with the snapshot."""
    theme = chosen_option(request.GET.get("theme"), list(figures.THEMES))
    if page.stored_chart is None:
        raise Http404("There is no chart of this judge and criterion.")
    name = f"bias:{page.snapshot.pk}:{page.stored_chart.pk}:{theme}:{get_language()}"
    title = f"{page.criterion_name}. {page.bias_sentence}"
    response = get_conditional_response(request, etag=f'"{name}"') or HttpResponse(
        figures.alone(page.stored_chart.wide, page.chart_words, title=title, theme=theme),
        content_type="image/svg+xml",
    )
    response["ETag"], response["Cache-Control"] = f'"{name}"', "private, no-cache"
    return response


_SHOWN = ("project", "dataset", "rubric_version__rubric")


def _campaign(user: User, project: str, campaign: int) -> Campaign:
    current_project: Project = access.require(user=user, slug=project)
    mine = Campaign.objects.visible_to(user).filter(project=current_project).select_related(*_SHOWN)
    return get_object_or_404(mine.prefetch_related("rubric_version__criteria"), pk=campaign)


def _addresses(campaign: Campaign, raters: Raters) -> dict[str, str]:
    """The addresses that the parts of the page link to; a shared page has fewer."""
    here, query = (campaign.project.slug, campaign.pk), f"?{raters.query}" if raters.query else ""
    return {
        "ratings": reverse("api_ratings_table", args=here) + query,
        "figures": reverse("api_numbers", args=here) + query,
        "judges": reverse("judges", args=here[:1]),
        "campaign": reverse("campaign", args=here),
        "item_list": "?".join(filter(None, (reverse("numbers_items", args=here), raters.items_query))),
    }


def _figures_key(snapshot: Snapshot, query: QueryDict) -> str:
    """Changes with everything that the figures of the page depend on: they are rendered once."""
    asked = sorted((name, value) for name, values in query.lists() if name != "seen" for value in values)
    return f"{snapshot.pk} {snapshot.created_at.timestamp()} {get_language()} {urlencode(asked)}"


def _seen(request: HttpRequest) -> str:
    """The state of the page that asks for itself; nothing for a person's own request."""
    return request.GET.get("seen", "") if "HX-Request" in request.headers else ""


def _raters(campaign: Campaign, request: HttpRequest) -> tuple[Raters, str]:
    """Who counts, and what is wrong with the names given: then everyone counts."""
    try:
        return chosen_raters(campaign, request.GET), ""
    except Refused as refused:
        return Raters(tuple(campaign_annotators(campaign))), refused.sentence


def _headline(snapshot: Snapshot | None) -> dict[str, Any] | None:
    """A campaign's agreement and judges, each as the middle and the outermost of its criteria."""
    if snapshot is None:
        return None
    content = snapshot.content
    figures = Figures(content["estimates"])
    keys = dict.fromkeys(row["criterion"] for row in content["counts"])
    whole = content["languages"][0] if len(content["languages"]) == 1 else None
    listed_judges = [judge for judge in content["judges"] if not judge.get("of_design")] or content["judges"]
    judges = [(judge, spread(figures.among("cohen_kappa", keys, [whole], judge["name"]))) for judge in listed_judges]
    agreement = spread(figures.among("krippendorff_alpha", keys, [whole]))
    return {"snapshot": snapshot, "agreement": agreement, "judges": judges, "rated": content["rated"]}
