"""The check-up of a dataset in the API, for leads and researchers."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access, jobs
from accounts.models import User
from accounts.refusals import Refused
from annotation import tasks
from annotation.checkup import checkups
from annotation.checkup.checking import CHECKS, CheckedDataset
from annotation.checkup.checkups import LeftOut
from annotation.checkup.declared import REASONS
from annotation.models import Dataset, DatasetCheckup


class FoundItemSerializer(serializers.Serializer[Any]):
    """An item in which a check found something. `place`: the index of the turn, or the name of the field."""

    item = serializers.IntegerField(help_text="The item's `id`.")
    external_id = serializers.CharField()
    place = serializers.CharField(allow_null=True)
    values = serializers.DictField(child=serializers.JSONField())


class CheckFindingSerializer(serializers.Serializer[Any]):
    """One check: either it ran, or `reason` says why it does not apply."""

    check = serializers.CharField()
    subject = serializers.CharField()
    severity = serializers.CharField(help_text="error, warning or notice")
    title = serializers.CharField()
    reason = serializers.CharField(allow_blank=True, help_text="Empty if the check ran.")
    items = serializers.IntegerField(help_text="In how many items it found something.")
    ordinals = serializers.CharField(allow_blank=True, help_text="The `ordinal` of every one, as ranges: 0-3,7")
    examples = FoundItemSerializer(many=True)


class LanguageLengthsSerializer(serializers.Serializer[Any]):
    """Least, lower quartile, median, upper quartile and most, of the items in one language."""

    language = serializers.CharField()
    items = serializers.IntegerField()
    turns = serializers.ListField(child=serializers.FloatField())
    characters = serializers.ListField(child=serializers.FloatField())


class FlagComparisonSerializer(serializers.Serializer[Any]):
    """The program that tells languages beside the annotators who read the items, in one language."""

    language = serializers.CharField()
    read = serializers.IntegerField(help_text="Items that annotators have read.")
    flagged = serializers.IntegerField(help_text="Of these, skipped as not in their language by at least half.")
    found = serializers.IntegerField(help_text="Flagged items that the usual threshold finds, too.")
    false_alarms = serializers.IntegerField(help_text="Findings by the usual threshold that are not flagged.")
    missed = serializers.IntegerField(help_text="Flagged items that the usual threshold does not find.")
    threshold = serializers.FloatField(
        help_text="An item is a finding if its declared language is at most so probable; the one in use."
    )
    reason = serializers.CharField(
        allow_blank=True, help_text="Why the threshold is the usual one: few_flags, few_others or not_better."
    )
    corrected_false_alarms = serializers.IntegerField(allow_null=True, help_text="With the corrected threshold.")
    corrected_missed = serializers.IntegerField(allow_null=True, help_text="With the corrected threshold.")


class DatasetCheckupSerializer(serializers.Serializer[Any]):
    """The newest check-up of a dataset. Without one, `checked_at` is null and there are no findings."""

    dataset = serializers.IntegerField()
    job = serializers.IntegerField(allow_null=True, help_text="The job that carries it out, or did.")
    is_under_way = serializers.BooleanField()
    is_outdated = serializers.BooleanField(help_text="There are newer checks: check again.")
    checked_at = serializers.DateTimeField(allow_null=True)
    items = serializers.IntegerField()
    findings = CheckFindingSerializer(many=True)
    lengths = LanguageLengthsSerializer(many=True)
    families = serializers.DictField(child=serializers.IntegerField())
    natives = FlagComparisonSerializer(many=True)
    made_from = serializers.JSONField(help_text="How the dataset was made from another one; else empty.")


class LeaveOutSerializer(serializers.Serializer[Any]):
    checks = serializers.ListField(child=serializers.CharField(max_length=40), max_length=100)
    families = serializers.BooleanField(default=False, help_text="Leave out the other items of their scenarios, too.")
    name = serializers.CharField(default="", allow_blank=True, max_length=120)


class DerivedDatasetSerializer(serializers.Serializer[Any]):
    dataset = serializers.IntegerField(allow_null=True, help_text="Null while a worker makes a large one: see `job`.")
    job = serializers.IntegerField(allow_null=True)


def _dataset(user: User, project: str, dataset: int) -> Dataset:
    current_project = access.require(user=user, slug=project)
    datasets = Dataset.objects.visible_to(user).filter(project=current_project)
    return get_object_or_404(datasets.select_related("project"), pk=dataset)


class DatasetCheckups(APIView):
    @extend_schema(responses=DatasetCheckupSerializer)
    def get(self, request: Request, project: str, dataset: int) -> Response:
        """What the newest check-up of a dataset found."""
        checked = _dataset(request.user, project, dataset)
        return Response(DatasetCheckupSerializer(_document(checked, checkups.checkup_of(checked))).data)

    @extend_schema(request=None, responses={202: DatasetCheckupSerializer})
    def post(self, request: Request, project: str, dataset: int) -> Response:
        """Let a worker check a dataset. The former result stays until then."""
        checked = _dataset(request.user, project, dataset)
        tasks.check_later(checked, request.user)
        document = _document(checked, checkups.checkup_of(checked))
        return Response(DatasetCheckupSerializer(document).data, status=status.HTTP_202_ACCEPTED)


class LeftOutDatasets(APIView):
    @extend_schema(request=LeaveOutSerializer, responses={201: DerivedDatasetSerializer})
    def post(self, request: Request, project: str, dataset: int) -> Response:
        """Make a dataset without the items in which these checks found something."""
        checked = _dataset(request.user, project, dataset)
        serializer = LeaveOutSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        chosen = serializer.validated_data
        if (checkup := checkups.checkup_of(checked)) is None:
            raise Refused(_("Check this dataset first."), code="not_checked")
        left_out = LeftOut(tuple(sorted(set(chosen["checks"]))), chosen["families"], chosen["name"])
        made = checkups.leave_out(checkup=checkup, left_out=left_out, actor=request.user)
        if made is None:
            jobs.enqueue(checkup)
        else:
            tasks.check_later(made, request.user)
        document = {"dataset": made.pk if made else None, "job": None if made else checkup.job_id}
        return Response(DerivedDatasetSerializer(document).data, status=status.HTTP_201_CREATED)


def _document(dataset: Dataset, checkup: DatasetCheckup | None) -> dict[str, Any]:
    result = CheckedDataset.from_json(checkup.result) if checkup and checkup.result else CheckedDataset()
    listed = sorted({example["ordinal"] for finding in result.findings for example in finding.examples})
    keys = checkups.item_keys(dataset, listed)
    findings = []
    for finding in result.findings:
        if (check := CHECKS.get(finding.check)) is None:
            continue
        examples = [
            {
                "item": keys[example["ordinal"]][0],
                "external_id": keys[example["ordinal"]][1],
                "place": None if example["place"] is None else str(example["place"]),
                "values": example["values"],
            }
            for example in finding.examples
            if example["ordinal"] in keys
        ]
        findings.append(
            {
                "check": finding.check,
                "subject": check.subject,
                "severity": finding.severity,
                "title": _(check.title),
                "reason": _(REASONS[finding.reason]) if finding.reason in REASONS else "",
                "items": finding.items,
                "ordinals": finding.ordinals,
                "examples": examples,
            }
        )
    return {
        "dataset": dataset.pk,
        "job": checkup.job_id if checkup else None,
        "is_under_way": bool(checkup and checkup.job and checkup.job.is_open),
        "is_outdated": checkup is not None and checkups.is_outdated(checkup),
        "checked_at": checkup.checked_at if checkup else None,
        "items": result.items,
        "findings": findings,
        "lengths": result.lengths,
        "families": result.families,
        "natives": result.natives,
        "made_from": checkup.made_from if checkup else {},
    }
