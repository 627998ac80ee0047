"""Which dialogues of a campaign are known to be faulty, and who says so: their maker, the panel or the check-up."""

from __future__ import annotations

from analytics.ratings.exclusions import marked_pairs
from annotation.checkup import checkups
from annotation.checkup.checking import CHECKS, CheckedDataset
from annotation.models import Campaign, Item, Skip

SET_ASIDE = "set_aside"
"""The attribute with the reason why a dialogue was set aside when it was made; sound dialogues have none."""
BY_MAKER, BY_PANEL, BY_CHECKUP = "set aside", "panel", "check-up"
FAULTY_SUBJECTS = frozenset({"turns", "languages"})
"""Subjects of checks of which a warning is a fault of the dialogue; an error is one in every subject."""
FAULTY_SKIPS = (Skip.Reason.LANGUAGE, Skip.Reason.DAMAGED)


def dialogue_faults(campaign: Campaign) -> dict[str, str]:
    """By id, why an item is known to be faulty; the first of the three reasons counts, sound items are left out.

    It was set aside when it was made (attribute `set_aside`); a critical mark of the panel, or an item that an
    annotator skipped as damaged or as another language, and nobody has resolved; a finding of the newest check-up that
    is an error, or a warning about turns or languages.
    """
    items = Item.objects.of(campaign.dataset)
    made = items.filter(attributes__has_key=SET_ASIDE).values_list("external_id", f"attributes__{SET_ASIDE}")
    faults = {item: BY_MAKER for item, reason in made if reason}
    skipped = Skip.objects.filter(duty__campaign=campaign, reason__in=FAULTY_SKIPS, resolved_at=None)
    marked = {item for item, _criterion in marked_pairs(campaign)}
    for item in sorted({*marked, *skipped.values_list("item__external_id", flat=True)}):
        faults.setdefault(item, BY_PANEL)
    checkup = checkups.checkup_of(campaign.dataset)
    if checkup is None or checkup.result is None:
        return faults
    ordinals = {
        ordinal
        for finding in CheckedDataset.from_json(checkup.result).findings
        if (check := CHECKS.get(finding.check))
        and (finding.severity == "error" or (check.subject in FAULTY_SUBJECTS and finding.severity == "warning"))
        for ordinal in finding.held()
    }
    for _pk, item in checkups.item_keys(campaign.dataset, sorted(ordinals)).values():
        faults.setdefault(item, BY_CHECKUP)
    return faults
