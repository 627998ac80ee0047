"""Names in NFC and NFD are one name, in files and in imports alike (issue 26, C16)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal
from unicodedata import normalize

import pandas as pd
import pytest

from analytics.stats.agreement.rater_agreement import agreement_report
from analytics.stats.cli.commandline import run_command
from analytics.stats.core.identifiers import near_identifiers, normal_identifier, spellings_of
from analytics.stats.core.validation import ratings_table

Form = Literal["NFC", "NFD"]
FORMS: tuple[Form, Form] = ("NFD", "NFC")
NAMES = ["café-1", "Jüri 2", "naïve-3", "Ângela 4", "señor-5", "مُعَلِّم 6", "ちいさなが 7", "plain-8"]
FIRST, SECOND = [0, 1, 2, 3, 1, 2, 0, 3], [0, 1, 2, 3, 1, 1, 0, 2]


def rows(form: Form) -> list[tuple[str, str, int, str, str]]:
    """Two raters; the second file's names of items, raters, criteria and clusters are in the other form."""
    one = [(normalize("NFC", name), "Zoë", score) for name, score in zip(NAMES, FIRST, strict=True)]
    other = [(normalize(form, name), "Élise", score) for name, score in zip(NAMES, SECOND, strict=True)]
    # Half of the second rater's rows have the rater's own name in the other form, too.
    other = [(item, normalize(form, who) if place % 2 else who, s) for place, (item, who, s) in enumerate(other)]
    named = [(*row, "fluidité", f"scène {row[0]}") for row in one]
    return named + [(*row, normalize(form, "fluidité"), normalize(form, f"scène {row[0]}")) for row in other]


def frame(form: Form) -> pd.DataFrame:
    return pd.DataFrame(rows(form), columns=["item", "rater", "score", "criterion", "cluster"])


def alpha(table: Any) -> Any:
    found = agreement_report(table, by=["criterion"], statistics=["krippendorff_alpha"], bootstrap=0)
    assert len(found) == 1
    return found[0].estimate


def test_a_file_in_two_forms_gives_the_figures_of_one_form() -> None:
    """Before: two criteria of eight items with one rating each."""
    mixed, plain = (ratings_table(frame(form)) for form in FORMS)
    ours, right = alpha(mixed), alpha(plain)
    assert (ours.value, ours.n_items, ours.n_raters) == (right.value, 8, 2) and 0 < ours.value < 1
    assert not plain.notes
    noted = "\n".join(mixed.notes)
    assert "Items named in another Unicode form than NFC, or with outer spaces: 6" in noted
    assert "Raters named in another Unicode form than NFC, or with outer spaces: 1" in noted
    assert "Criteria" in noted and "Clusters" in noted


def test_the_command_line_finds_a_judge_named_in_the_other_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ratings.csv"
    frame("NFD").assign(groupe=[normalize("NFD" if i % 2 else "NFC", "été") for i in range(16)]).to_csv(
        path, index=False
    )
    options = ["--judge", normalize("NFD", "Élise"), "--by", "groupe", "--statistic", "mae", "--format", "json"]
    assert run_command(["calibration", str(path), *options]) == 0
    (row,) = json.loads(capsys.readouterr().out)["estimates"]
    assert (row["n_items"], row["groupe"]) == (8, "été")
    assert run_command(["agreement", str(path), "--raters", normalize("NFD", "Zoë,Élise"), "--bootstrap", "0"]) == 0


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("form", FORMS)
def test_a_column_is_found_in_either_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, form: Form
) -> None:
    other: Form = "NFC" if form == "NFD" else "NFD"
    names = {"item": "énoncé", "rater": "évaluateur", "score": "qualité", "criterion": "critère"}
    named = frame("NFD").rename(columns={ours: normalize(form, name) for ours, name in names.items()})
    named = named.assign(**{normalize(form, "tâche"): ["é", "b"] * 8})
    path = tmp_path / f"ratings.{kind}"
    if kind == "jsonl":  # the names of each second record are in the other form
        records = [
            {normalize(other if place % 2 else form, name): value for name, value in record.items()}
            for place, record in enumerate(named.to_dict("records"))
        ]
        path.write_text("\n".join(json.dumps(record) for record in records), encoding="utf-8")
    elif kind == "parquet":
        pytest.importorskip("pyarrow")
        named.to_parquet(path)
    else:
        named.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    columns = [part for ours, name in names.items() for part in (f"--{ours}", normalize(other, name))]
    options = [*columns, "--by", normalize(other, "tâche"), "--bootstrap", "0", "--format", "json"]
    assert run_command(["agreement", str(path), *options]) == 0
    cells = json.loads(capsys.readouterr().out)["estimates"]
    assert {cell["tâche"] for cell in cells} == {"é", "b"}


def test_declared_scales_belong_to_a_criterion_in_either_form() -> None:
    from analytics.stats.core.scales import scale_of

    scale = scale_of(range(6))
    table = ratings_table(frame("NFD"), scales={normalize("NFD", "fluidité"): scale})
    assert table.scales == {"fluidité": scale}


def test_names_that_may_be_one_are_named_and_stay_apart() -> None:
    given = [("Item 07", "A"), ("Item 7", "A"), ("item 7", "A"), ("x\u200b1", "A"), ("x1", "A"), ("0.5", "A")]
    columns = ["item", "rater"]
    table = ratings_table(pd.DataFrame(given, columns=columns).assign(score=[1, 2, 3, 1, 2, 3]))
    assert table.frame["item"].nunique() == 6
    (note,) = table.notes
    assert "groups of names: 2" in note and "'Item 07' and 'Item 7' and 'item 7'" in note and "'x\\u200b1'" in note
    assert near_identifiers(["v0.05", "v0.5", "10", "1", "100"]) == []


def test_one_spelling() -> None:
    assert normal_identifier("  e\u0301 \u00a0") == "é" == normal_identifier("é")
    assert spellings_of(["é", "a"]) == {"é", "e\u0301", "a"}
