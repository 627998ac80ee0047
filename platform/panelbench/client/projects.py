"""Who is asking, projects, and who is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from panelbench.client import types
from panelbench.client.wire import Wire, operation


class Projects(Wire):
    @operation("GET", "/me/")
    def me(self) -> types.Me:
        """Who the token belongs to, and their role in each project."""
        return cast(types.Me, self.json("GET", "/me/"))

    @operation("GET", "/projects/")
    def projects(self) -> Iterator[types.Project]:
        """The projects in which I have a role."""
        return self.pages("/projects/")

    @operation("POST", "/projects/")
    def found_project(self, name: str, *, slug: str, description: str = "") -> types.Project:
        """Start a project and lead it; ``slug`` stands in its address."""
        said = {"name": name, "slug": slug, "description": description}
        return cast(types.Project, self.json("POST", "/projects/", json=said))

    @operation("GET", "/projects/{project}/")
    def describe(self) -> types.Project:
        """This client's project."""
        return cast(types.Project, self.json("GET", self.at("")))

    @operation("GET", "/projects/{project}/members/")
    def members(self) -> Iterator[types.Membership]:
        """Who is in the project; for its leads."""
        return self.pages(self.at("members/"))
