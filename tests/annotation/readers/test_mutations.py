"""Damaged files of every kind: nothing is raised, nothing is lost unsaid. ``bench.mutants`` does it by the thousand."""

import pytest

from bench.mutants import examine, mutants
from bench.mutations import Original, forms, original
from tests.study_data import study_file

pytestmark = pytest.mark.slow

EMBEDDED = {
    "ratings.csv": b'item,rater,criterion,score,rationale\nx,A,fluency,2.0,"so, so"\ny,"B ""b""",fluency,,\r\n'
    b'z,C,"flu\r\nency",N/A,\nx,A,fluency,2.0,\nw,D,fluency,9E+9,"a ""quoted"" word"\n',
    "labels.tsv": "id\tlanguage\tanswer\tnote\n1\tet\tõhtu\t\u200f\n2\tar\tمرحبا\t\n3\ten\tit's 5\tx\n".encode(),
    "items.json": '[\n {"id": "x", "language": "et", "turns": [{"role": "A", "content": "õ\\ud83d\\ude00"}]},\n'
    ' {"id": "y", "language": "en", "answer": "a\\"b", "meta": {"n": [1.5, null, true]}}\n]\n'.encode(),
    "lists.json": b'{"m1": [{"id": 1, "language": "et", "answer": "a"}], '
    b'"m2": [{"id": 2, "language": "en", "answer": ""}]}',
    "verdicts.jsonl": b'{"item": "x", "judge": "j", "criterion": "f", "score": 3}\n{"item": "y", "judge": "j", '
    b'"criterion": "f", "score": null, "reply": "{\\"score\\": null}"}\n',
}
PUBLISHED = (
    *("multipico-dev/items.csv", "mlqe-pe/direct-assessments/test20.eten.df.short.tsv", "hanna/user_study.csv"),
    *(
        "xls-estonian/human_annotated_data_et/combined_et_with_annotations.json",
        "dices-350/dices_350_crowdsourced.json",
    ),
)


def require_no_fault(wholes: list[Original], count: int) -> None:
    for mutant in mutants(wholes, count, seed=1):
        outcome = examine(mutant)
        assert not outcome.crash, (mutant.whole.name, mutant.mutation.name, mutant.raw, outcome.crash)
        assert not outcome.loss, (mutant.whole.name, mutant.mutation.name, mutant.raw, outcome.loss)


def test_damage_to_small_files_of_every_kind() -> None:
    wholes = [form for name, raw in EMBEDDED.items() if (plain := original(name, raw)) for form in forms(plain)]
    assert {whole.kind for whole in wholes} >= {"csv", "tsv", "json", "jsonl", "xlsx", "parquet", "zip", "csv.gz"}
    require_no_fault(wholes, 250)


@pytest.mark.study_data
@pytest.mark.parametrize("path", PUBLISHED)
def test_damage_to_published_files(path: str) -> None:
    plain = original(*study_file(path), most=8_000)
    assert plain
    require_no_fault(forms(plain), 40)
