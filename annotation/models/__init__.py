"""The models of datasets, rubrics, panels, campaigns and imports."""

from annotation.models.campaign import (
    Annotation,
    Assignment,
    Campaign,
    Draft,
    Duty,
    ItemSelection,
    PrivateNote,
    Rating,
    SelectedItem,
    Selection,
    Skip,
)
from annotation.models.corpus import Dataset, Item
from annotation.models.imports import DryRun, Import, ImportFile, KeptFile, SavedMapping, Upload, opened_files
from annotation.models.panel import Annotator, InvitedSeat, Panel, PanelSeat
from annotation.models.rubric import Criterion, Rubric, RubricVersion

__all__ = [
    "Annotation",
    "Annotator",
    "Assignment",
    "Campaign",
    "Criterion",
    "Dataset",
    "Draft",
    "DryRun",
    "Duty",
    "Import",
    "ImportFile",
    "InvitedSeat",
    "Item",
    "ItemSelection",
    "KeptFile",
    "Panel",
    "PanelSeat",
    "PrivateNote",
    "Rating",
    "Rubric",
    "RubricVersion",
    "SavedMapping",
    "SelectedItem",
    "Selection",
    "Skip",
    "Upload",
    "opened_files",
]
