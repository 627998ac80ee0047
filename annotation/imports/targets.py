"""The target of imported ratings and verdicts: their items, their rubric and their campaign."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _

from accounts.models import Project, User
from accounts.refusals import Refused
from annotation import campaigns
from annotation.models import Campaign, Dataset, Import, RubricVersion
from annotation.readers import case_folded

Found = TypeVar("Found", bound=Model)


@dataclass(frozen=True, slots=True)
class Target:
    """A campaign, or a dataset and a rubric version for a new campaign, which gets the ``name`` if it is given."""

    dataset: Dataset
    rubric_version: RubricVersion
    campaign: Campaign | None = None
    name: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The target as plain values, as an import stores it."""
        if self.campaign is not None:
            return {"campaign": self.campaign.pk}
        return {"dataset": self.dataset.pk, "rubric_version": self.rubric_version.pk, "name": self.name}


def resolve(*, project: Project, target_fields: Mapping[str, Any]) -> Target | None:
    """The target from the values of an import, as objects of its project; None if the values are not enough."""
    if pk := target_fields.get("campaign"):
        campaign = _campaigns(project).filter(pk=pk).first()
        return _of(campaign) if campaign else None
    dataset = _datasets(project).filter(pk=target_fields.get("dataset") or 0).first()
    version = _versions(project).filter(pk=target_fields.get("rubric_version") or 0).first()
    return _on(project, dataset, version, target_fields.get("name") or "") if dataset and version else None


def extended(*, project: Project, target_fields: Mapping[str, Any]) -> Dataset | None:
    """The dataset to which an import adds items, if it names one: the newest version that extends the named one."""
    chosen = _datasets(project).filter(pk=target_fields.get("extends") or 0).first()
    return Dataset.objects.holding(chosen).select_related("project").first() if chosen else None


def dataset_of(*, project: Project, name: str) -> Dataset:
    """The newest version of the dataset with this name, or one version (``Dialogues v2``); a refusal names them all."""
    return _by_name(_datasets(project), name, _("dataset"))


def find_target(*, project: Project, campaign: str = "", dataset: str = "", rubric: str = "") -> Target:
    """The target with these names; without names the only possible one, or a refusal that lists the choices."""
    existing = list(_campaigns(project))
    says_what = bool(dataset or rubric)
    fitting = [
        existing_campaign
        for existing_campaign in existing
        if existing_campaign.name == campaign or not (campaign or says_what)
    ]
    if len(fitting) == 1:
        return _of(fitting[0])
    if says_what or not existing:
        return only(project=project, dataset=dataset, rubric=rubric, name=campaign)
    raise _not_named(existing, _("campaign"), campaign)


def only(*, project: Project, dataset: str = "", rubric: str = "", name: str = "") -> Target:
    """The newest versions of the dataset and the published rubric with these names; without a name, of the only one."""
    items = dataset_of(project=project, name=dataset)
    return _on(project, items, _published(project, rubric), name)


def _published(project: Project, name: str) -> RubricVersion:
    """The published version of the rubric with this name, or of the only one; a refusal names unpublished drafts."""
    try:
        return _by_name(_versions(project), name, _("published rubric"))
    except Refused as refused:
        drafts = RubricVersion.objects.filter(rubric__project=project, state=RubricVersion.State.DRAFT)
        named = [str(draft) for draft in drafts.select_related("rubric") if name in ("", str(draft), _base(draft))]
        if not named:
            raise
        sentence = _("%(refusal)s Publish the draft first, on its page: %(drafts)s.")
        texts = {"refusal": refused.sentence, "drafts": "; ".join(named)}
        raise Refused(sentence % texts, code=refused.code) from None


def campaign_of(*, target: Target, actor: User | None = None) -> Campaign:
    """The target's campaign; if it has none, a new one is opened, named after its dataset and rubric."""
    if target.campaign is not None:
        return target.campaign
    name = target.name or f"{target.dataset} × {target.rubric_version}"[:120]
    return campaigns.open_campaign(
        project=target.dataset.project,
        name=name,
        dataset=target.dataset,
        rubric_version=target.rubric_version,
        actor=actor,
    )


def _of(campaign: Campaign) -> Target:
    return Target(campaign.dataset, campaign.rubric_version, campaign)


def _on(project: Project, dataset: Dataset, version: RubricVersion, name: str) -> Target:
    here = _campaigns(project).filter(dataset=dataset, rubric_version=version)
    return Target(dataset, version, (here.filter(name=name) if name else here).first(), name)


def _campaigns(project: Project) -> QuerySet[Campaign]:
    return Campaign.objects.filter(project=project).select_related("dataset__project", "rubric_version__rubric")


def _datasets(project: Project) -> QuerySet[Dataset]:
    return Dataset.objects.ready().filter(project=project).select_related("project")


def _versions(project: Project) -> QuerySet[RubricVersion]:
    return RubricVersion.objects.published().filter(rubric__project=project).select_related("rubric")


def _by_name(rows: QuerySet[Found], name: str, what: str) -> Found:
    """The newest version with this name, or an exact version (``support v2``); without a name, of the only one."""
    ordered = list(rows)  # by name, then newest first
    if name:
        named = [row for row in ordered if str(row) == name] or [row for row in ordered if _base(row) == name]
        named = named or [row for row in ordered if isinstance(row, RubricVersion) and is_called(row, name)]
    else:
        named = ordered if len({_base(row) for row in ordered}) == 1 else []
    if not named:
        raise _not_named(ordered, what, name)
    return named[0]


def is_called(version: RubricVersion, name: str) -> bool:
    """Whether ``name`` is the rubric's name in any language, alone or with the number of the version."""
    names = {case_folded(text) for text in version.document["name"].values()}
    return not names.isdisjoint({case_folded(name), case_folded(name.removesuffix(f" v{version.number}"))})


def _base(row: Model) -> str:
    return str(row).rpartition(" v")[0]


def _not_named(rows: Iterable[Model], what: str, name: str) -> Refused:
    there_is = "; ".join(str(row) for row in rows) or _("none")
    sentence = _("Name the %(what)s. Available: %(there_is)s.")
    if name:
        sentence = _("There is no %(what)s “%(name)s” in this project. Available: %(there_is)s.")
    return Refused(sentence % {"what": what, "name": name, "there_is": there_is}, code="which_target")


def about(file_import: Import) -> dict[str, Any]:
    """The dataset that an import stored, and the newest rubric version if the project has only one rubric."""
    versions = RubricVersion.objects.published().filter(rubric__project=file_import.project_id)
    keys_of_target = {
        "dataset": Dataset.objects.filter(file_import=file_import).order_by("-pk").values_list("pk", flat=True).first()
    }
    keys = set(versions.values_list("rubric", flat=True))
    if len(keys) == 1:
        keys_of_target["rubric_version"] = versions.order_by("-number").values_list("pk", flat=True).first()
    return {name: pk for name, pk in keys_of_target.items() if pk}
