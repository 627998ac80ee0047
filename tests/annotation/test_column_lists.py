"""Every hand-written list of columns beside its model, and the desk in a project whose name is no slug."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Model

from accounts.models import Project
from annotation.desk import leasing, service
from annotation.desk.column_lists import ColumnList
from annotation.models import Annotator, Campaign, Duty
from tests.annotation import scene
from tests.cast import Cast

ROOT = Path(__file__).parents[2]
PRODUCT = ("accounts", "panelbench", "annotation", "judging", "analytics")
LISTS = [
    pytest.param(one, id=f"{module.__name__}.{name}")
    for module in (leasing, service)
    for name, one in vars(module).items()
    if isinstance(one, ColumnList)
]
NAME = "Kassa “عربي” \"two\" 'words' e\u0301"


def test_only_column_lists_call_from_db() -> None:
    modules = [path for app in PRODUCT for base in (ROOT, ROOT / "platform") for path in (base / app).rglob("*.py")]
    assert len(modules) > 300
    callers = [path.name for path in modules if re.search(r"\bfrom_db\(", path.read_text())]
    assert callers == ["column_lists.py"]
    assert len(LISTS) == 8


@pytest.mark.parametrize("columns", LISTS)
def test_each_list_puts_each_value_into_its_field(columns: ColumnList[Any]) -> None:
    values = [f"{name}!" for name in columns.names]
    loaded: Model = columns.load(values)
    assert {name: loaded.__dict__[name] for name in columns.names} == dict(zip(columns.names, values, strict=True))
    assert loaded.get_deferred_fields() == {one.attname for one in loaded._meta.concrete_fields} - set(columns.names)


def test_any_order_is_right_and_a_wrong_name_is_refused() -> None:
    for names in (("id", "name", "slug"), ("slug", "id", "name"), ("name", "slug", "id")):
        given = {"id": 7, "name": NAME, "slug": "kassa"}
        loaded = ColumnList(Project, names).load([given[name] for name in names])
        assert (loaded.pk, loaded.name, loaded.slug) == (7, NAME, "kassa")
    for wrong in (("id", "nmae"), ("id", "id"), ("name", "slug"), ("id", "project")):
        with pytest.raises(ValueError, match="Campaign"):
            ColumnList(Campaign, wrong)


@pytest.mark.both_databases
@pytest.mark.django_db
def test_the_duty_of_the_desk_is_the_stored_one(cast: Cast) -> None:
    Project.objects.filter(pk=cast.kassa.pk).update(name=NAME)
    work = scene.duty(cast)
    Campaign.objects.update(name=f"{NAME} 2")
    Duty.objects.update(name=f"{NAME} 3", quota=5)
    mine, annotator = leasing.duty_and_annotator(user=cast.maarika, duty=work.pk)
    stored = Duty.objects.select_related("campaign__project", "panel").get(pk=work.pk)
    assert annotator == Annotator.objects.get(user=cast.maarika)
    for read, whole in (
        (mine, stored),
        (mine.campaign, stored.campaign),
        (mine.campaign.project, stored.campaign.project),
        (mine.panel, stored.panel),
    ):
        names = {one.attname for one in whole._meta.concrete_fields} - read.get_deferred_fields()
        assert {name: getattr(read, name) for name in names} == {name: getattr(whole, name) for name in names}
