"""Reshape the study files under ../shared/data into ratings tables: ``python bench/long_form.py DATA OUT``.

Only the shape changes: one row per score, columns item, rater, criterion, score (and cluster or language). Nothing is
dropped, clipped or filled in; ``docs/reproductions.md`` runs ``panelbench stats`` on what this writes.

Three tables hold a judge or a metric beside a panel: the BLEU of HANNA's stories as a judge of their mean Relevance,
HANNA's raters and judges on the stories of the ten systems (no human stories), and the translation model's
log-probability as a judge of MLQE-PE's standardised direct assessments.
"""

from __future__ import annotations

import ast
import csv
import json
import sys
from pathlib import Path

import pandas as pd

COLUMNS = ["item", "language", "rater", "rater_kind", "criterion", "score"]


def estonian(folder: Path) -> pd.DataFrame:
    """The two exports name the reviewer's column differently; 248 rows stand in both."""
    calibration = pd.read_csv(folder / "calibration_query_result_anonymized.csv", dtype=str, keep_default_na=False)
    manual = pd.read_csv(folder / "manual_query_result_anonymized.csv", dtype=str, keep_default_na=False)
    both = pd.concat([calibration.rename(columns={"calibration_reviewer_name": "reviewer_name"}), manual])
    fluent = both["rating_category_name"].str.contains("fluent")
    return pd.DataFrame(
        {
            "item": both["conversation_external_id"],
            "rater": both["reviewer_name"],
            "criterion": fluent.map({True: "fluency", False: "coherence"}),
            "score": both["rating_value"],
        }
    )


def dices(path: Path) -> pd.DataFrame:
    """350 dialogues, 123 anonymous slots."""
    study = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        (instance["id"], f"slot {slot:03d}", "safety", score)
        for instance in study["instances"]
        for slot, score in enumerate(instance["annotations"]["safety"]["individual_human_scores"], start=1)
    ]
    return pd.DataFrame(rows, columns=["item", "rater", "criterion", "score"])


def hanna_flags(path: Path) -> pd.DataFrame:
    """300 consecutive rows are 100 explanations by 3 anonymous raters; the flags are the six columns of 0 and 1."""
    study = pd.read_csv(path)
    flags = [name for name in study.columns if study[name].isin([0, 1]).all() and name != "Unnamed: 0"]
    study = study.assign(item=study.index // 3 + 1, rater=study.index % 3 + 1)
    return study.melt(["item", "rater"], flags, "criterion", "score")


def hanna_stories(path: Path) -> pd.DataFrame:
    """11 systems x 96 prompts, a list in each cell. Humans are slots, judges carry their prompt's number."""
    study = pd.read_csv(path)
    systems = study.columns[0]
    criteria = ("RE", "CH", "EM", "SU", "EG", "CX")
    rows = []
    for column in study.columns:
        *who, last = column.split()
        if len(who) == 2 and who[0] == "Human" and who[1].isdigit() and last in criteria:
            rater, kind, criterion = f"Human {who[1]}", "annotator", last
        elif len(who) == 2 and last.isdigit() and who[1] in criteria:
            rater, kind, criterion = f"{who[0]} {last}", "judge", who[1]
        else:
            continue
        for system, cell in zip(study[systems], study[column], strict=True):
            rows += [
                (f"{system}/{prompt}", system, f"prompt {prompt}", rater, kind, criterion, score)
                for prompt, score in enumerate(json.loads(cell), start=1)
            ]
    return pd.DataFrame(rows, columns=["item", "generator", "cluster", "rater", "rater_kind", "criterion", "score"])


def mlqe_flags(folder: Path) -> pd.DataFrame:
    """Three slots per segment; TSV without header and with unescaped quotes."""
    parts = []
    for path in sorted(folder.glob("en*_majority_dev.tsv")):
        language = path.name[2:4]
        lines = path.read_text(encoding="utf-8").splitlines()
        for line in lines:
            identity, _, _, labels, _ = line.split("\t")
            parts += [
                (f"{language} {identity}", language, slot, score)
                for slot, score in enumerate(ast.literal_eval(labels), start=1)
            ]
    return pd.DataFrame(parts, columns=["item", "language", "rater", "score"])


def multipico(folder: Path) -> pd.DataFrame:
    """506 named raters, each of whom saw a few items."""
    items = pd.read_csv(folder / "items.csv", dtype=str, keep_default_na=False)
    labels = pd.read_csv(folder / "labels.csv", dtype=str, keep_default_na=False)
    table = labels.merge(items[["item_id", "lang"]], on="item_id", validate="many_to_one")
    names = {"item_id": "item", "annotator_id": "rater", "label": "score", "lang": "language"}
    return table.rename(columns=names)


def hanna_bleu(path: Path) -> pd.DataFrame:
    """960 stories of the 10 systems: BLEU beside the mean Relevance of the three raters."""
    study = pd.read_csv(path).set_index("Model").drop(index="Human")
    bleu = next(column for column in study.columns if column.startswith("BLEU "))
    rows = [
        (f"{system}/{prompt}", "en", rater, kind, "Relevance", score)
        for column, rater, kind in (("Relevance", "panel mean", "annotator"), (bleu, "BLEU", "judge"))
        for system, cell in study[column].items()
        for prompt, score in enumerate(json.loads(cell), start=1)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def mlqe(folder: Path) -> pd.DataFrame:
    """Quotes are text in these files; raters are slots; ``model_scores`` is the judge."""
    rows = []
    for path in sorted(folder.glob("test20.*.df.short.tsv")):
        language = path.name.split(".")[1]
        study = pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE)
        for number, (scores, model) in enumerate(zip(study["z_scores"], study["model_scores"], strict=True)):
            item = f"{language} {number}"
            rows.append((item, language, "model", "judge", "quality", model))
            rows += [
                (item, language, f"slot {slot}", "annotator", "quality", score)
                for slot, score in enumerate(ast.literal_eval(scores), start=1)
            ]
    return pd.DataFrame(rows, columns=COLUMNS)


def write_long_form(source: Path, out: Path) -> None:
    """Write every table."""
    out.mkdir(parents=True, exist_ok=True)
    hanna = source / "hanna/hanna_metric_scores_llm.csv"
    stories = hanna_stories(hanna)
    tables = {
        "estonian": estonian(source / "xls-estonian/human_annotated_data_et"),
        "dices": dices(source / "dices-350/dices_350_crowdsourced.json"),
        "hanna-flags": hanna_flags(source / "hanna/user_study.csv"),
        "hanna": stories,
        "mlqe-flags": mlqe_flags(source / "mlqe-pe/catastrophic-errors"),
        "multipico": multipico(source / "multipico-dev"),
        "hanna-systems": stories[stories["generator"] != "Human"],
        "hanna-bleu": hanna_bleu(hanna),
        "mlqe": mlqe(source / "mlqe-pe/direct-assessments"),
    }
    for name, table in tables.items():
        table.to_csv(out / f"{name}.csv", index=False)
        sys.stdout.write(f"{out / name}.csv: {len(table)} rows\n")


if __name__ == "__main__":
    write_long_form(Path(sys.argv[1]), Path(sys.argv[2]))
