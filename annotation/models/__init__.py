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
from annotation.models.qualification import (
    Acknowledgement,
    ControlPause,
    ExamAttempt,
    ExamItem,
    Guideline,
    MismatchReview,
    QualificationRule,
    ReferenceItem,
    ReferenceScore,
)
from annotation.models.rubric import Criterion, Rubric, RubricVersion

__all__ = [
    "Acknowledgement",
    "Annotation",
    "Annotator",
    "Assignment",
    "Campaign",
    "ControlPause",
    "Criterion",
    "Dataset",
    "Draft",
    "DryRun",
    "Duty",
    "ExamAttempt",
    "ExamItem",
    "Guideline",
    "Import",
    "ImportFile",
    "InvitedSeat",
    "Item",
    "ItemSelection",
    "KeptFile",
    "MismatchReview",
    "Panel",
    "PanelSeat",
    "PrivateNote",
    "QualificationRule",
    "Rating",
    "ReferenceItem",
    "ReferenceScore",
    "Rubric",
    "RubricVersion",
    "SavedMapping",
    "SelectedItem",
    "Selection",
    "Skip",
    "Upload",
    "opened_files",
]
