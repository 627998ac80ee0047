"""Datasets, their items, and rubrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from panelbench.client import types
from panelbench.client.wire import Wire, operation


class Corpus(Wire):
    @operation("GET", "/projects/{project}/datasets/")
    def datasets(self) -> Iterator[types.Dataset]:
        """Every version of every dataset."""
        return self.pages(self.at("datasets/"))

    @operation("GET", "/projects/{project}/datasets/{dataset}/")
    def dataset(self, dataset: int) -> types.Dataset:
        """One version of a dataset."""
        return cast(types.Dataset, self.json("GET", self.at("datasets/{}/", dataset)))

    @operation("GET", "/projects/{project}/datasets/{dataset}/items/")
    def items(
        self,
        dataset: int,
        *,
        language: str | None = None,
        generator: str | None = None,
        scenario: str | None = None,
        q: str | None = None,
    ) -> Iterator[types.DatasetItem]:
        """The items in their order, byte for byte as they came; ``q`` is a text that they hold."""
        wanted = {"language": language, "generator": generator, "scenario": scenario, "q": q}
        return self.pages(self.at("datasets/{}/items/", dataset), **wanted)

    @operation("GET", "/projects/{project}/rubrics/")
    def rubrics(self) -> Iterator[types.Rubric]:
        """The rubrics by key."""
        return self.pages(self.at("rubrics/"))

    @operation("POST", "/projects/{project}/rubrics/", body="document")
    def draft_rubric(self, document: Mapping[str, Any]) -> types.RubricDocument:
        """Draft the next version of the rubric with the document's key; the same document again is the same version."""
        return cast(types.RubricDocument, self.json("POST", self.at("rubrics/"), json=dict(document), repeatable=True))

    @operation("GET", "/projects/{project}/rubrics/{rubric}/versions/")
    def rubric_versions(self, rubric: str) -> Iterator[types.RubricVersion]:
        """The versions of one rubric."""
        return self.pages(self.at("rubrics/{}/versions/", rubric))

    @operation("GET", "/projects/{project}/rubrics/{rubric}/versions/{number}/")
    def rubric_version(self, rubric: str, number: int) -> types.RubricDocument:
        """One version with its document."""
        there = self.at("rubrics/{}/versions/{}/", rubric, number)
        return cast(types.RubricDocument, self.json("GET", there))

    @operation("POST", "/projects/{project}/rubrics/{rubric}/versions/{number}/publish/")
    def publish_rubric(self, rubric: str, number: int) -> types.RubricDocument:
        """Publish a draft: it never changes again."""
        there = self.at("rubrics/{}/versions/{}/publish/", rubric, number)
        return cast(types.RubricDocument, self.json("POST", there))
