"""Curated datasets through pages, API, client addresses and command: chosen by verdicts, certified, stored whole."""

from __future__ import annotations

import json
import random
from collections import Counter
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts import people
from accounts.refusals import Refused
from analytics.exporting.hugging_face import study_limits
from annotation import campaigns, exports, selections
from annotation.models import Campaign, CuratedItem, Curation, Dataset, Import, Item, ItemSelection, RubricVersion
from annotation.readers.ratings import VerdictRow
from judging.generation import curating
from judging.generation.curating import CurationSettings
from judging.imports import verdicts
from judging.models import Alignment, AlignmentCandidate, Judge, JudgeRun
from tests import make
from tests.analytics.test_bundles import loaded, rewritten, taken_out
from tests.cast import Cast

pytestmark = pytest.mark.django_db

LANGUAGES = ("ar", "et")
GENERATORS = ("atlas", "Bábel “2”")  # the second in NFD
SCENARIOS = 60


def flag(key: str) -> dict[str, Any]:
    return make.criterion(key, (0, 1), direction="lower_is_better")


def rubric(cast: Cast) -> RubricVersion:
    parts = [flag("empathy"), flag("repetitive"), flag("uninterpretable"), make.criterion("overall", (1, 2, 3, 4, 5))]
    return make.rubric(cast.kassa, *parts, key="medal")


def source(cast: Cast, scenarios: int = SCENARIOS) -> Dataset:
    """Every scenario in two languages by two generators, by one of two simulated users."""
    cells = [(s, tag, by) for s in range(scenarios) for tag in LANGUAGES for by in GENERATORS]
    rows = [
        make.item_row(
            number,
            language=tag,
            generator=by,
            external_id=f"{s}-{tag}-{GENERATORS.index(by)}",
            scenario=f"s{s}",
            attributes={"user model": f"user {s % 2}"},
        )
        for number, (s, tag, by) in enumerate(cells)
    ]
    return make.dataset(cast.kassa, rows, name="Pool, all")


def planted(dataset: Dataset) -> list[VerdictRow]:
    """Issues in a tenth of the items, mostly the best score, four items without a readable verdict, six with mixing."""
    chance, rows = random.Random(4), []
    for number, item in enumerate(dataset.items.order_by("ordinal")):
        scores: dict[str, float | None] = {key: float(chance.random() < 0.1) for key in ("empathy", "repetitive")}
        scores["overall"] = 5.0 if chance.random() < 0.6 else float(chance.randint(1, 4))
        scores["uninterpretable"] = float(number % 40 == 7)
        if number in (3, 4, 5, 6):
            scores["empathy"] = None
        for key, score in scores.items():
            text = "Mixes in Chinese words" if key == "uninterpretable" and number % 80 == 7 else "Says so"
            rows.append(
                VerdictRow(
                    item=item.external_id,
                    judge="judge-x",
                    criterion=key,
                    score=score,
                    applicable=True,
                    missing=score is None,
                    rationale=text,
                    repeat=0,
                    reply="",
                    generator=None,
                    file="verdicts.jsonl",
                    line=number + 1,
                )
            )
    return rows


def stored_run(cast: Cast) -> JudgeRun:
    """The imported run of a judge over the pool, with planted issues."""
    dataset, version = source(cast), rubric(cast)
    file_import = Import.objects.create(project=cast.kassa, kind=Import.Kind.VERDICTS)
    verdicts.store_verdict_rows(
        project=cast.kassa, dataset=dataset, rubric_version=version, rows=planted(dataset), file_import=file_import
    )
    return JudgeRun.objects.select_related("judge", "dataset__project", "rubric_version__rubric").get()


def make_scene(cast: Cast) -> JudgeRun:
    return stored_run(cast)


@pytest.fixture
def run(module_scene: tuple[Cast, JudgeRun]) -> JudgeRun:
    return module_scene[1]


def form(run: JudgeRun | None, **changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"name": "Set “20”", "n": 20, "method": "balanced", "seed": 11}
    given |= {"balance": ["generator", "length"]}
    if run is not None:
        given |= {"run": run.pk, "issues": ["empathy", "repetitive"], "overall": "overall"}
        given |= {"unreadable": "uninterpretable", "words": "", "clean_first": "on", "user": "user model"}
        given["balance"] = ["issue", "score", "generator", "length"]
    return {**given, **changes}


class TestPages:
    @pytest.mark.both_databases
    def test_from_the_dataset_to_the_certificate(self, cast: Cast, run: JudgeRun) -> None:
        boris, pool = cast.client("boris"), run.dataset
        at = f"/p/kassa/datasets/{pool.pk}/"
        assert f"{at}curate/" in boris.get(at).content.decode()
        blank = boris.get(f"{at}curate/?run={run.pk}").content.decode()
        assert 'value="uninterpretable" selected' in blank
        preview = boris.post(f"{at}curate/", form(run, preview="1")).content.decode()
        assert "40 items would be chosen" in preview
        assert "4 items without a readable verdict on each criterion" in preview
        assert "6 items flagged as not interpretable" in preview
        assert "no panel has labelled items" in preview
        assert not Curation.objects.exists()

        answer = boris.post(f"{at}curate/", form(run))
        assert answer.status_code == 302, answer.content.decode()
        curation = Curation.objects.get()
        assert answer["Location"] == f"/p/kassa/curations/{curation.pk}/"
        page = boris.get(answer["Location"]).content.decode()
        assert "have no inclusion probability" in page
        assert str(run) in page
        assert (
            f"/p/kassa/curations/{curation.pk}/"
            in boris.get(f"/p/kassa/datasets/{curation.dataset_id}/").content.decode()
        )

        stored = Item.objects.of(curation.dataset)
        assert (stored.count(), curation.dataset.derived_from) == (40, pool)
        assert Counter(stored.values_list("language", flat=True)) == dict.fromkeys(LANGUAGES, 20)
        digests = set(Item.objects.of(pool).values_list("external_id", "digest"))
        assert set(stored.values_list("external_id", "digest")) <= digests
        assert list(stored.values_list("external_id", flat=True)) == [
            name
            for name in Item.objects.of(pool).values_list("external_id", flat=True)
            if stored.filter(external_id=name)
        ]
        chosen = CuratedItem.objects.filter(curation=curation)
        assert set(chosen.values_list("item", "probability")) == {
            (pk, None) for pk in stored.values_list("pk", flat=True)
        }
        table = boris.get(f"/p/kassa/curations/{curation.pk}/items.csv").content.decode()
        assert table.count("\n") == 41

        again = boris.post(f"{at}curate/", form(run))
        assert "already has a dataset called" in again.content.decode()
        assert Curation.objects.count() == 1

    def test_balance_and_clean_pairs(self, run: JudgeRun) -> None:
        settings = CurationSettings(n=20, run=run, user="user model", seed=5, issues=["empathy", "repetitive"])
        drawn = curating.draw_curation(dataset=run.dataset, settings=settings)
        for table in drawn.certificate["tables"]:
            before, after = table["uneven"]
            assert after <= before + 0.05, table
            if table["facet"] == "issue":
                assert after < before / 2
        once = curating.draw_curation(dataset=run.dataset, settings=settings)
        assert once.chosen == drawn.chosen

    def test_random_items_have_probabilities_and_families_are_whole(self, cast: Cast, run: JudgeRun) -> None:
        boris, at = cast.client("boris"), f"/p/kassa/datasets/{run.dataset_id}/curate/"
        asked = form(None, method="random", by=["generator"], balance=[], name="Drawn")
        assert boris.post(at, asked).status_code == 302
        rows = CuratedItem.objects.select_related("item").filter(curation__dataset__name="Drawn")
        assert {(row.probability, row.stratum) for row in rows} == {(10 / 60, generator) for generator in GENERATORS}
        assert Counter((row.item.language, row.item.generator) for row in rows) == {
            (tag, by): 10 for tag in LANGUAGES for by in GENERATORS
        }
        page = boris.get(f"/p/kassa/curations/{Curation.objects.get().pk}/").content.decode()
        assert "drawn at random" in page

        assert boris.post(at, form(None, method="random", by_family="on", name="Whole")).status_code == 302
        whole = Curation.objects.get(dataset__name="Whole")
        families = Counter(Item.objects.of(whole.dataset).values_list("scenario", flat=True))
        assert (len(families), set(families.values())) == (10, {4})
        assert {row.probability for row in whole.chosen.all()} == {10 / SCENARIOS}
        refused = boris.post(
            at, form(None, method="random", by_family="on", by=["generator"], name="Mixed", preview="1")
        )
        assert "in several strata" in refused.content.decode()

    def test_a_family_with_an_excluded_item_is_dropped(self, run: JudgeRun) -> None:
        settings = CurationSettings(n=20, run=run, by_family=True, seed=5)
        drawn = curating.draw_curation(dataset=run.dataset, settings=settings)
        assert drawn.certificate["left_out"] == {"unread": 4, "unreadable": 6, "not_whole": 18}
        families = Counter(Item.objects.filter(pk__in=dict(drawn.chosen)).values_list("scenario", flat=True))
        assert set(families.values()) == {4}
        assert sum(families.values()) == 40

    def test_words_limit_what_is_excluded(self, run: JudgeRun) -> None:
        settings = CurationSettings(n=20, run=run, words=["CHINESE"], seed=5)
        drawn = curating.draw_curation(dataset=run.dataset, settings=settings)
        assert drawn.certificate["left_out"] == {"unread": 4, "unreadable": 3}

    def test_a_language_with_fewer_says_so(self, cast: Cast, run: JudgeRun) -> None:
        page = cast.client("boris").post(f"/p/kassa/datasets/{run.dataset_id}/curate/", form(run, n=500, preview="1"))
        assert "Nothing was added in their place" in page.content.decode()

    def test_labels_of_a_panel_bound_the_errors(self, cast: Cast, run: JudgeRun) -> None:
        """The panel flags what the judge flags and a tenth of the rest; where two annotators differ is left out."""
        campaign = campaigns.open_campaign(
            project=cast.kassa, name="Round 1", dataset=run.dataset, rubric_version=run.rubric_version
        )
        flags = {
            row.item: row.score for row in planted(run.dataset) if row.criterion == "empathy" and row.score is not None
        }
        names = list(run.dataset.items.order_by("ordinal").values_list("external_id", flat=True))
        given = [1.0 if flags.get(name) or place % 10 == 0 else 0.0 for place, name in enumerate(names)]
        second = [1 - score if place % 7 == 0 else score for place, score in enumerate(given)]
        make.rated(campaign, {"empathy": {"A1": given[:160] + [None] * 80, "A2": second[:160] + [None] * 80}})
        settings = CurationSettings(n=20, run=run, seed=5)
        errors = curating.draw_curation(dataset=run.dataset, settings=settings).certificate["errors"]
        row = next(one for one in errors if (one["language"], one["issue"]) == ("et", "empathy"))
        unlabelled = next(one for one in errors if one["issue"] == "repetitive")
        assert unlabelled["bounds"] is None
        assert row["specificity"]["value"] == 1
        assert 0 < row["sensitivity"]["value"] < 1
        could_be_chosen = [
            place
            for place in range(160)
            if place // 2 % 2 == 1 and place % 7 and place not in (3, 4, 5, 6) and place % 40 != 7
        ]
        assert row["labelled"] == len(could_be_chosen) < 68, "no verdict, or not interpretable: not in the pool"
        assert row["bounds"][0] <= row["flagged"] <= row["bounds"][1]
        page = cast.client("boris").post(f"/p/kassa/datasets/{run.dataset_id}/curate/", form(run, preview="1"))
        assert f"{row['sensitivity']['hits']} of {row['sensitivity']['items']}" in page.content.decode()

    def test_bounds_are_of_the_scores_and_generators_of_the_set(self, cast: Cast, run: JudgeRun) -> None:
        """Only items by one generator are labelled: of the others nothing is known, so the interval has them all."""
        campaign = campaigns.open_campaign(
            project=cast.kassa, name="Round 1", dataset=run.dataset, rubric_version=run.rubric_version
        )
        by = list(run.dataset.items.order_by("ordinal").values_list("generator", flat=True))
        scores = [0.0 if generator == GENERATORS[0] else None for generator in by]
        make.rated(campaign, {"empathy": {"A1": scores, "A2": scores}})
        settings = CurationSettings(n=20, run=run, seed=5)
        draw = curating.draw_curation(dataset=run.dataset, settings=settings)
        of_other = Item.objects.filter(pk__in=dict(draw.chosen), language="et", generator=GENERATORS[1]).count()
        row = next(one for one in draw.certificate["errors"] if (one["language"], one["issue"]) == ("et", "empathy"))
        assert 0 < of_other <= row["uncovered"] < 20
        assert row["bounds"][0] == 0
        assert row["bounds"][1] >= of_other
        page = cast.client("boris").post(f"/p/kassa/datasets/{run.dataset_id}/curate/", form(run, preview="1"))
        assert "labelled items with the same flag, score and generator" in page.content.decode()

    def test_labels_that_shaped_the_judge_do_not_count(self, cast: Cast, run: JudgeRun) -> None:
        """An alignment has tuned a version of the judge on the first 80 items; the base judge saw none of them."""
        campaign = campaigns.open_campaign(
            project=cast.kassa, name="Round 1", dataset=run.dataset, rubric_version=run.rubric_version
        )
        scores = [0.0] * 160 + [None] * 80
        make.rated(campaign, {"empathy": {"A1": scores, "A2": scores}})
        settings = CurationSettings(n=20, run=run, seed=5)

        def labelled() -> int:
            errors = curating.draw_curation(dataset=run.dataset, settings=settings).certificate["errors"]
            return sum(int(row["labelled"]) for row in errors if row["issue"] == "empathy")

        items = list(run.dataset.items.order_by("ordinal").values_list("pk", flat=True))
        base = Judge.objects.create(project=cast.kassa, name="Base", model="other", digest="1" * 64)
        sides = {side: _side(campaign, side, part) for side, part in (("tuning", items[:80]), ("test", items[200:]))}
        plan: dict[str, Any] = {"seed": 1, "share": 0.5, "looks_allowed": 1}
        current = Alignment.objects.create(
            project=cast.kassa, name="Closer", campaign=campaign, base=base, **plan, **sides
        )
        as_it_was = labelled()
        candidate = AlignmentCandidate.objects.create(alignment=current, judge=run.judge, origin="base")
        assert labelled() == as_it_was
        for origin in ("edit", "proposal", "search"):
            AlignmentCandidate.objects.filter(pk=candidate.pk).update(origin=origin)
            assert labelled() == as_it_was - (80 - 4 - 2)
        AlignmentCandidate.objects.filter(pk=candidate.pk).delete()
        AlignmentCandidate.objects.create(alignment=current, judge=base, origin="edit")
        Judge.objects.filter(pk=run.judge_id).update(parent=base)
        run.judge.refresh_from_db()
        assert labelled() == as_it_was - (80 - 4 - 2), "made from a version"

    def test_nobody_else_reads_or_makes_one(self, cast: Cast, run: JudgeRun) -> None:
        curation = curating.curate(dataset=run.dataset, name="Set", settings=CurationSettings(n=5, run=run))
        at = (f"/p/kassa/datasets/{run.dataset_id}/curate/", f"/p/kassa/curations/{curation.pk}/")
        for name, status in (("zoltan", 404), ("maarika", 403)):
            for address in (*at, f"{at[1]}items.csv"):
                assert cast.client(name).get(address).status_code == status
        other = make.dataset(cast.teine, 3, name="Theirs")
        assert cast.client("zoltan").post(f"/p/teine/datasets/{other.pk}/curate/", form(run)).status_code == 404


class TestHostile:
    def test_no_verdicts_one_item_and_all_flagged(self, cast: Cast) -> None:
        pool, version = make.dataset(cast.kassa, 1, name="One"), rubric(cast)
        judged = JudgeRun.objects.create(
            project=cast.kassa, judge=_judge(cast), dataset=pool, rubric_version=version, repeats=1
        )
        nothing = curating.draw_curation(dataset=pool, settings=CurationSettings(n=5, run=judged))
        assert (nothing.chosen, nothing.certificate["left_out"]) == ([], {"unread": 1})
        with pytest.raises(Refused, match="No item can be chosen"):
            curating.curate(dataset=pool, name="Set", settings=CurationSettings(n=5, run=judged))
        assert Dataset.objects.filter(name="Set").count() == 0
        alone = curating.curate(dataset=pool, name="Set", settings=CurationSettings(n=5, method="random"))
        assert [row.probability for row in alone.chosen.all()] == [1.0]

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"n": 0}, "1 or more"),
            ({"method": "best"}, "one of these ways"),
            ({"languages": ["xx"]}, "No item is in"),
            ({"issues": ["Ångström"]}, "no criterion"),
            ({"issues": [], "overall": ""}, "at least one issue"),
            ({"by": ["attribute:nothing"]}, "have no"),
            ({"user": "nobody"}, "have no"),
            ({"balance": ["colour"]}, "balanced over"),
            ({"n": 1, "by_family": True}, "up to 2 items"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, run: JudgeRun, changes: dict[str, Any], sentence: str) -> None:
        with pytest.raises(Refused, match=sentence):
            curating.draw_curation(dataset=run.dataset, settings=CurationSettings(**{"n": 5, "run": run, **changes}))

    def test_more_than_can_be_stored_is_refused_before_anything_is_chosen(
        self, cast: Cast, run: JudgeRun, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("annotation.sampling.storing.MOST_ITEMS", 50)
        settings = CurationSettings(n=1_000_000, run=run)
        with pytest.raises(Refused, match="at most 50 items; these are 230") as refused:
            curating.draw_curation(dataset=run.dataset, settings=settings)
        assert refused.value.code == "too_many"
        answer = cast.client("boris").post(
            f"/p/kassa/datasets/{run.dataset_id}/curate/", form(run, n=1_000_000, preview="1")
        )
        assert "at most 50 items" in answer.content.decode()

    @pytest.mark.both_databases
    def test_nothing_is_left_of_a_set_that_could_not_be_stored(
        self, run: JudgeRun, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As when the process dies between the dataset and its certificate."""
        before = Dataset.objects.count(), Item.objects.count()

        def fail(**_about: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(Curation.objects, "create", fail)
            with pytest.raises(KeyboardInterrupt):
                curating.curate(dataset=run.dataset, name="Set", settings=CurationSettings(n=5, run=run))
        assert (Dataset.objects.count(), Item.objects.count()) == before
        assert curating.curate(dataset=run.dataset, name="Set", settings=CurationSettings(n=5, run=run)).pk


def _side(campaign: Campaign, name: str, items: list[int]) -> ItemSelection:
    rows = [(item, 1.0, "") for item in items]
    return selections.store_selection(campaign=campaign, name=name, rule={"kind": "list"}, seed=1, rows=rows)


def _judge(cast: Cast) -> Judge:
    return Judge.objects.create(project=cast.kassa, name="J", model="elsewhere", digest="0" * 64)


class TestApi:
    def test_preview_store_list_and_items(self, cast: Cast, run: JudgeRun) -> None:
        boris = cast.client("boris")
        asked = {"dataset": run.dataset_id, "run": run.pk, "n": 20, "seed": 3, "user": "user model"}
        preview = boris.post("/api/v1/projects/kassa/curations/preview/", asked, "application/json").json()
        assert (preview["items"], preview["seed"]) == (40, 3)
        made = boris.post("/api/v1/projects/kassa/curations/", {**asked, "name": "Set"}, "application/json")
        assert made.status_code == 201
        curation = made.json()
        assert curation["certificate"] == preview["certificate"]
        assert curation["limits"] == preview["limits"]
        assert boris.get("/api/v1/projects/kassa/curations/").json()["results"] == [curation]
        assert boris.get(f"/api/v1/projects/kassa/curations/{curation['id']}/").json() == curation
        items = boris.get(f"/api/v1/projects/kassa/curations/{curation['id']}/items/").json()["results"]
        assert {row["probability"] for row in items} == {None}
        taken = boris.post("/api/v1/projects/kassa/curations/", {**asked, "name": "Set"}, "application/json")
        assert (taken.status_code, taken.json()["code"]) == (422, "name_taken")
        assert cast.client("maarika").get("/api/v1/projects/kassa/curations/").status_code == 403

    def test_an_export_says_what_may_not_be_concluded(self, cast: Cast, run: JudgeRun) -> None:
        curation = curating.curate(dataset=run.dataset, name="Set", settings=CurationSettings(n=5, run=run, seed=9))
        campaign = campaigns.open_campaign(
            project=cast.kassa, name="Round 2", dataset=curation.dataset, rubric_version=run.rubric_version
        )
        limits = list(study_limits(campaign, []))
        assert "The items were chosen out of a larger dataset, seed 9." in limits
        assert any("no inclusion probability" in sentence for sentence in limits)


class TestBundle:
    @pytest.mark.both_databases
    def test_a_certificate_moves_with_its_project(self, cast: Cast, run: JudgeRun) -> None:
        settings = CurationSettings(n=6, run=run, method="random", seed=2)
        curating.curate(dataset=run.dataset, name="Set “6”", settings=settings)
        content = taken_out(cast.kassa)
        loaded(cast.teine, content)
        ours, theirs = (Curation.objects.get(dataset__project=project) for project in (cast.kassa, cast.teine))
        assert (theirs.rule, theirs.certificate, theirs.seed) == (ours.rule, ours.certificate, ours.seed)
        columns = ("item__external_id", "probability", "stratum")
        assert list(theirs.chosen.values_list(*columns)) == list(ours.chosen.values_list(*columns))
        page = cast.client("zoltan").get(f"/p/teine/curations/{theirs.pk}/").content.decode()
        assert f"/runs/{run.pk}/" not in page
        broken = rewritten(content, lambda members: members.update({"curations.jsonl": _without(members, "tables")}))
        with pytest.raises(Refused, match="a rule and a certificate"):
            loaded(people.create_project(name="Third", slug="third", founder=cast.zoltan), broken)


def _without(members: dict[str, bytes], part: str) -> bytes:
    row = json.loads(members["curations.jsonl"])
    del row["certificate"][part]
    return json.dumps(row).encode() + b"\n"


class TestCommand:
    def test_preview_store_and_a_gap(self, cast: Cast, run: JudgeRun) -> None:
        out = StringIO()
        about = ("curate", "kassa", "--dataset", "Pool, all", "--run", str(run.pk), "--seed", "3")
        call_command(*about, "--n", "20", "--preview", "--json", stdout=out)
        assert json.loads(out.getvalue())["certificate"]["languages"][0]["chosen"] == 20
        assert not Curation.objects.exists()
        call_command(*about, "--n", "20", "--name", "By command", stdout=out)
        assert "et: 20 of 20 asked for" in out.getvalue()
        with pytest.raises(CommandError, match="Fewer items than asked for in: ar, et"):
            call_command(*about, "--n", "400", "--name", "Short", stdout=out)
        with pytest.raises(CommandError, match="no run 999999"):
            call_command("curate", "kassa", "--dataset", "Pool, all", "--run", "999999", "--n", "5", "--name", "X")


def test_an_export_keeps_attributes_that_are_named_as_those_of_a_sample(cast: Cast) -> None:
    rows = [make.item_row(number, attributes={"stratum": "north" if number else ""}) for number in range(2)]
    dataset, plain = make.dataset(cast.kassa, rows), make.dataset(cast.kassa, 2, name="Plain")
    for curated, strata in ((dataset, ("Õ · 1", "")), (plain, ("", ""))):
        curation = Curation.objects.create(dataset=curated, source=curated, seed=1)
        for item, stratum in zip(Item.objects.of(curated).order_by("ordinal"), strata, strict=True):
            CuratedItem.objects.create(curation=curation, item=item, probability=0.5, stratum=stratum)

    def exported(of: Dataset) -> list[dict[str, object]]:
        return [row[-1] for row in exports.items(of).rows]

    assert exported(dataset) == [
        {"stratum": "", "sample_inclusion_probability": 0.5, "sample_stratum": "Õ · 1"},
        {"stratum": "north", "sample_inclusion_probability": 0.5},
    ]
    assert [(row["inclusion_probability"], "stratum" in row, "sample_stratum" in row) for row in exported(plain)] == [
        (0.5, False, False)
    ] * 2, "no empty stratum"
