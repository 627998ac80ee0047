"""The named cast: the people and projects that tests are about, made by the product's own verbs.

Aino leads the project `kassa`; Boris does research in it; Maarika (Estonian) and Layla (Arabic) annotate. Zoltan leads
another project, `teine`, and must never see anything of the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.test import Client

from accounts import people
from accounts.models import Membership, Project, Role, User

PASSWORD = "correct horse battery"


@dataclass(frozen=True, slots=True)
class Cast:
    """The people and their projects."""

    aino: User
    boris: User
    maarika: User
    layla: User
    zoltan: User
    kassa: Project
    teine: Project

    def client(self, name: str) -> Client:
        """A browser signed in as the person of that name."""
        client = Client()
        client.force_login(getattr(self, name))
        return client


def person(name: str, *, languages: tuple[str, ...] = ("en",)) -> User:
    """A user called `name`, whose password is PASSWORD."""
    return User.objects.create_user(
        f"{name.lower()}@panelbench.test", PASSWORD, name=name, languages=list(languages), ui_language="en"
    )


def make_cast() -> Cast:
    """The whole cast in a fresh database."""
    aino, zoltan = person("Aino"), person("Zoltan", languages=("hu",))
    kassa = people.create_project(name="Kassa", slug="kassa", founder=aino)
    teine = people.create_project(name="Teine", slug="teine", founder=zoltan)
    boris = _join(kassa, person("Boris"), Role.RESEARCHER)
    maarika = _join(kassa, person("Maarika", languages=("et", "en")), Role.ANNOTATOR)
    layla = _join(kassa, person("Layla", languages=("ar", "en")), Role.ANNOTATOR)
    return Cast(aino=aino, boris=boris, maarika=maarika, layla=layla, zoltan=zoltan, kassa=kassa, teine=teine)


def _join(project: Project, user: User, role: Role) -> User:
    Membership.objects.create(project=project, user=user, role=role)
    return user


@pytest.fixture
def cast(request: pytest.FixtureRequest, db: None) -> Cast:
    """The cast: one fresh set per test, or that of its module's scene where the test uses it (tests/conftest.py)."""
    if "module_scene" in request.fixturenames:
        found: Cast = request.getfixturevalue("module_scene")[0]
        return found
    return make_cast()
