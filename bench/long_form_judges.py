"""Reshape what a judge or a metric gave beside a panel: ``python -m bench.long_form_judges DATA OUT``.

One row per score, as ``long_form.py`` does for the panels alone: the BLEU of HANNA's stories as a judge of their mean
Relevance, HANNA's raters and judges on the stories of the ten systems (no human stories), and the translation model's
log-probability as a judge of MLQE-PE's standardised direct assessments.
``docs/reproductions.md`` runs ``panelbench stats calibration`` on what this writes.
"""

from __future__ import annotations

import ast
import csv
import json
import sys
from pathlib import Path

import pandas as pd

from bench.long_form import hanna_stories

COLUMNS = ["item", "language", "rater", "rater_kind", "criterion", "score"]


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


def main(source: Path, out: Path) -> None:
    """Write every table."""
    out.mkdir(parents=True, exist_ok=True)
    hanna = source / "hanna/hanna_metric_scores_llm.csv"
    stories = hanna_stories(hanna)
    tables = {
        "hanna-systems": stories[stories["generator"] != "Human"],
        "hanna-bleu": hanna_bleu(hanna),
        "mlqe": mlqe(source / "mlqe-pe/direct-assessments"),
    }
    for name, table in tables.items():
        table.to_csv(out / f"{name}.csv", index=False)
        sys.stdout.write(f"{out / name}.csv: {len(table)} rows\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
