"""Files as people write them: a row for each rater, scores in words, ratings inside items, and messages that help."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.refusals import Refused
from annotation.imports import opening, targets, uploads
from annotation.imports.check_reports import PreviewReport, preview_report
from annotation.imports.opening import open_import
from annotation.imports.previews import preview_import
from annotation.imports.rating_rows import scale_words
from annotation.models import Criterion, Import, Item, Rating, RubricVersion
from annotation.readers import guess_kind, parse_items, propose_mapping
from annotation.readers.columns import TableFacts
from annotation.readers.mapping import Mapping
from annotation.readers.problems import FormatError
from annotation.readers.score_words import AGREEMENT, DATE, FRACTION, LIKERT, PERCENT, kind_of_answer, likely_score
from annotation.readers.studies import ScaleFacts, _refuse_unclear, recognise
from tests import make
from tests.cast import Cast

RATERS = ("Ülle “Ü”", "سارة", "A 3")


def previewed(file_import: Import) -> PreviewReport:
    preview = preview_import(file_import)
    is_rated = file_import.kind == Import.Kind.RATINGS
    target = targets.resolve(project=file_import.project, target_fields=file_import.target) if is_rated else None
    return preview_report(preview, target)


def table(columns: list[str], rows: list[list[Any]], name: str = "file.csv") -> tuple[str, bytes]:
    written = io.StringIO()
    csv.writer(written).writerows([columns, *rows])
    return name, written.getvalue().encode()


class TestRowsByRater:
    """1,869 texts, each rated by three, all rows of one rater before those of the next: once 5,607 items."""

    @pytest.mark.parametrize("has_row_id", [False, True])
    def test_they_are_ratings_and_each_text_is_one_item(self, has_row_id: bool) -> None:
        rows = [[f"Tekst number {n}, “nagu” on", rater, n % 3] for rater in RATERS for n in range(1_869)]
        if has_row_id:
            rows = [[number, *row] for number, row in enumerate(rows)]
        file = table([*(["id"] if has_row_id else []), "text", "annotator", "label"], rows)
        assert guess_kind([file]) == "ratings"
        parsed = parse_items([file], propose_mapping("dataset", [file], Mapping(constants={"language": "et"})))
        assert not parsed.problems
        assert (len(list(parsed.items)), parsed.report.read, parsed.report.collapsed) == (1_869, 5_607, 3_738)

    @pytest.mark.django_db
    @pytest.mark.both_databases
    def test_the_same_file_brings_the_items_and_then_their_ratings(self, cast: Cast, tmp_path: Path) -> None:
        rows = [[f"Tekst {n}", rater, n % 3, "kena"] for rater in RATERS for n in range(60)]
        name, raw = table(["text", "annotator", "fluency", "comment"], rows)
        (tmp_path / name).write_bytes(raw)
        make.rubric(cast.kassa)
        about = ["--project", "kassa", str(tmp_path / name)]
        call_command("import_dataset", *about, "--name", "Tekstid", "--set", "language=et")
        assert Item.objects.count() == 60
        rubric = RubricVersion.objects.get()
        call_command("import_ratings", *about, "--dataset", "Tekstid", "--rubric", rubric.rubric.key)
        assert Rating.objects.count() == 180

    def test_an_item_that_each_rater_saw_once_keeps_its_id(self) -> None:
        file = table(["item_id", "text", "annotator", "label"], [["a", "one", "x", 1], ["b", "two", "y", 2]])
        mapping = propose_mapping("dataset", [file], Mapping())
        assert (mapping.columns["item_id"], mapping.shape) == ("id", ())


class TestOutputsOfJudges:
    def test_a_file_with_the_outputs_of_judges_is_no_second_dataset(self) -> None:
        pair = {"input": "Name a tree.", "output_1": "Oak.", "output_2": "Tea.", "label": 1}
        judged = {**pair, "winner": 2, "completion": "Output (b)"}
        files = [
            ("LLMBar/Natural/dataset.json", json.dumps([pair, {**pair, "input": "Another."}]).encode()),
            ("LLMBar/evaluators/gpt-4/Natural/result.json", json.dumps([judged] * 2).encode()),
        ]
        study = recognise(files)
        assert study is not None
        assert study.name == "llmbar"
        assert [name for _part, taken in study.parts(files) for name, _raw in taken] == [files[0][0]]
        assert study.unclaimed(files) == [files[1][0]]

    @pytest.mark.django_db
    @pytest.mark.both_databases
    def test_a_folder_of_the_shape_of_llmbar_is_imported_by_command(
        self, cast: Cast, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A folder a set, with `dataset.json`, and below it what each judge said and its sums."""
        folder = tmp_path / "LLMBar “L” كتاب"
        for name in ("Natural", "Adversarial/Neighbor"):
            pairs = [
                {
                    "input": f"{name}: nimeta puu {n}.",
                    "output_1": f"Tamm {n}",
                    "output_2": f"شاي {n}",
                    "label": 1 + n % 2,
                }
                for n in range(30)
            ]
            at = folder / name
            (at / "evaluators" / "GPT-4" / "CoT").mkdir(parents=True)
            (at / "dataset.json").write_text(json.dumps(pairs))
            said = {"swap = False": {"completion": ["Output (a) is better.", "stop"], "winner": "1"}}
            judged = [{**pair, "results": [{**said, "swap = True": said["swap = False"]}]} for pair in pairs]
            (at / "evaluators" / "GPT-4" / "CoT" / "result.json").write_text(json.dumps(judged))
            sums = {"correct_False": "20 / 30 = 66.7%", "kappa_agreement": 0.5}
            (at / "evaluators" / "GPT-4" / "CoT" / "statistics.json").write_text(json.dumps(sums))
        call_command("import_study", "kassa", str(folder))
        assert Item.objects.count() == 60
        told = capsys.readouterr()
        assert "refused" not in told.err
        assert set(Item.objects.values_list("attributes__label", flat=True)) == {1, 2}


def test_ratings_inside_items_are_shown_as_they_are() -> None:
    facts = TableFacts()
    ratings = [{"annotator": "Ülle", "value": 3}, {"annotator": "سارة", "value": 2.0}]
    facts._see("fluency", [ratings])
    (column,) = facts.columns(Mapping())
    assert column.examples == ["annotator: Ülle, value: 3; annotator: سارة, value: 2"]


@pytest.mark.parametrize(("cells", "is_offered"), [(["Mari", "Jüri"], False), (["1", "0"], True)])
@pytest.mark.django_db
@pytest.mark.both_databases
def test_numbered_columns_of_annotators_are_offered_as_ratings_where_they_have_scores(
    cast: Cast, cells: list[str], is_offered: bool
) -> None:
    file = table(["id", "answer", "annotator1"], [[n, f"Vastus {n}", cell] for n, cell in enumerate(cells)])
    opened = open_import(
        project=cast.kassa, kind="dataset", files=[file], mapping=Mapping(constants={"language": "et"})
    )
    notes = " ".join(previewed(opened)["report"]["notes"])
    assert ("look like ratings" in notes) == is_offered


class TestWordsForScores:
    @pytest.fixture
    def opened(self, cast: Cast) -> Any:
        target = make.campaign(cast.kassa)
        document = make_yes_no(target.rubric_version)
        assert document

        def opened(words: list[str]) -> Import:
            names = list(target.dataset.items.values_list("external_id", flat=True))
            rows = [[names[n % 4], f"r{n // 4}", "fluency", word] for n, word in enumerate(words)]
            file = table(["item", "rater", "criterion", "score"], rows)
            where = {"campaign": target.pk, "dataset": target.dataset_id, "rubric_version": target.rubric_version_id}
            return open_import(project=cast.kassa, kind="ratings", files=[file], target=where)

        return opened

    @pytest.mark.django_db
    @pytest.mark.both_databases
    def test_the_labels_of_the_rubric_are_scores(self, opened: Any) -> None:
        report = previewed(opened(["no", "Yes", "YES", " yes ", "No"]))
        assert (report["report"]["refused"], report["report"]["stored"]) == (0, 5)

    @pytest.mark.django_db
    @pytest.mark.both_databases
    def test_every_distinct_word_that_is_refused_stands_in_one_list(self, opened: Any) -> None:
        words = [f"sõna {n}" for n in range(30)] * 2
        report = previewed(opened(["yes", *words]))["report"]
        (note,) = (note for note in report["notes"] if note.startswith("Answers that are no scores"))
        assert all(f"“{word}” (2)" in note for word in words)

    @pytest.mark.parametrize(
        ("word", "kind", "score"),
        [
            ("85 %", PERCENT, "85"),
            ("85,5%", PERCENT, "85.5"),
            ("4/5", FRACTION, "4"),
            ("4 out of 5", FRACTION, "4"),
            ("٨٥٫٥ ٪", PERCENT, "85.5"),
            ("85 percent", PERCENT, "85"),
            ("４／５", FRACTION, "4"),
            ("٤/٥", FRACTION, "4"),
            ("4 of 5", FRACTION, "4"),
            ("Täiesti nõus", LIKERT, "5"),
            ("Somewhat  agree", LIKERT, ""),
            ("2024-03-01", DATE, ""),
            ("٢٠٢٤/٠٣/٠١", DATE, ""),
            ("3-May", DATE, ""),
            ("1/2/2024", DATE, ""),
            ("Strongly Agree", LIKERT, "5"),
            ("Nõustun", LIKERT, "4"),
            ("yes", "", ""),
            ("good", "", ""),
        ],
    )
    def test_what_an_answer_may_stand_for_is_offered(self, word: str, kind: str, score: str) -> None:
        assert (kind_of_answer(word), likely_score(word)) == (kind, score)

    @pytest.mark.parametrize("language", sorted(AGREEMENT))
    def test_the_words_of_agreement_have_five_places_in_every_language(self, language: str) -> None:
        words = AGREEMENT[language].split(" | ")
        assert [likely_score(word.upper()) for word in words] == ["1", "2", "3", "4", "5"]

    @pytest.mark.django_db
    @pytest.mark.both_databases
    def test_the_preview_asks_about_them(self, opened: Any) -> None:
        report = previewed(opened(["85 %", "4/5", "disagree", "2024-03-01"]))
        (column,) = (column for column in report["columns"] if column["target"] == "score")
        assert {value["value"]: value["likely"] for value in column["unread"]} == {
            "85 %": "85",
            "4/5": "4",
            "disagree": "2",
            "2024-03-01": "",
        }


def make_yes_no(version: RubricVersion) -> bool:
    """Give the first points of `fluency` the labels no and yes."""
    criterion = version.criteria.get(key="fluency")
    points = [
        {**point, "label": {"en": label}}
        for point, label in zip(criterion.points, ("No", "Yes", "x", "y"), strict=False)
    ]
    return bool(Criterion.objects.filter(pk=criterion.pk).update(points=points))


class TestMessages:
    @pytest.mark.django_db
    @pytest.mark.both_databases
    def test_a_request_that_is_too_large_names_its_file(self, cast: Cast) -> None:
        length = {"CONTENT_LENGTH": str(uploads.AT_ONCE + 2 * uploads.MEGABYTE)}
        answer = cast.client("boris").post(
            "/api/v1/projects/kassa/imports/?name=huge “h” كبير.csv", b"id,text", content_type="text/csv", **length
        )
        assert answer.status_code in (409, 413, 422), answer.json()
        assert answer.json()["code"] == "too_large"
        assert "“huge “h” كبير.csv”: 102 MB are too much for one request." in answer.json()["detail"]

    def test_of_several_files_that_are_too_large_together_the_largest_is_named(self) -> None:
        with pytest.raises(Refused, match=r"“huge\.csv”: 101 MB are too much for one request"):
            opening.check_sizes({"a.csv": 10, "huge.csv": uploads.AT_ONCE, "b.csv": 20})

    def test_a_scale_with_steps_says_so(self) -> None:
        assert scale_words(Criterion(minimum=0, maximum=25, step=1, points=[])) == "0 to 25 in steps of 1"

    @pytest.mark.django_db
    @pytest.mark.both_databases
    def test_a_rubric_is_found_by_its_name(self, cast: Cast) -> None:
        version = make.rubric(cast.kassa)
        make.dataset(cast.kassa)
        name = version.name("en")
        assert name != version.rubric.key
        for called in (name, name.upper(), f"{name} v{version.number}"):
            assert targets.find_target(project=cast.kassa, rubric=called).rubric_version == version

    @pytest.mark.django_db
    @pytest.mark.both_databases
    def test_an_export_has_the_format_that_its_name_says(self, cast: Cast, tmp_path: Path) -> None:
        make.campaign(cast.kassa)
        out = tmp_path / "hinded teine.jsonl"
        call_command("export", "kassa", "items", out=out)
        assert [json.loads(row)["language"] for row in out.read_text().splitlines()] == ["et"] * 4
        with pytest.raises(CommandError, match="choose two that go together"):
            call_command("export", "kassa", "items", out=tmp_path / "x.csv", format="jsonl")
        with pytest.raises(CommandError, match="choose two that go together"):
            call_command("export", "kassa", "rubric", out=tmp_path / "x.csv")
        assert [path.name for path in tmp_path.iterdir()] == [out.name]

    def test_answers_that_are_percentages_make_no_nominal_rubric(self) -> None:
        with pytest.raises(FormatError, match="percentages"):
            _refused(["85 %", "90 %"])
        with pytest.raises(FormatError, match="words of agreement"):
            _refused(["agree", "strongly agree", "N/A"])
        _refused(["Yes", "No", "Unsure"])


def _refused(words: list[str]) -> None:
    facts = ScaleFacts("Toxicity")
    for word in words:
        facts.see(word)
    _refuse_unclear({"Toxicity": facts}, "file.csv")
