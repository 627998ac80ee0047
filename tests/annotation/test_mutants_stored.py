"""Damaged files through the whole import: stored with every row, or refused without a trace. ``bench.mutants --store``
does it by the thousand."""

from __future__ import annotations

from pathlib import Path

from bench.mutant_imports import Rooms
from bench.mutants import mutants
from bench.mutations import thought_up
from tests.cast import Cast

LABELS = "item_id,annotator_id,label\n" + "".join(f"{n // 3},Ann{n % 3},{n * 7 % 5 % 2}\n" for n in range(30))
ITEMS = "item_id,lang,language_variety,level,post,reply\n" + "".join(
    f'{n},et,,1,"Tere, {n}!","Jah, ""{n}"""\n' for n in range(12)
)


def test_damaged_files_are_stored_whole_or_not_at_all(cast: Cast, tmp_path: Path) -> None:
    files = {"labels.csv": LABELS, "items.csv": ITEMS}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    rooms = Rooms(cast.kassa)
    wholes = rooms.wholes([tmp_path / name for name in files], 5_000)
    assert {whole.kind for whole in wholes} == {"csv", "csv.gz", "zip", "jsonl", "xlsx", "parquet"}
    fates = [rooms.examine(whole, whole.raw, turn, whole.records) for whole in wholes for turn in (0, 1)]
    assert all(fate.stored and not fate.fault for fate in fates), fates
    for number, mutant in enumerate(mutants(wholes, 24, seed=2)):
        fate = rooms.examine(mutant.whole, mutant.raw, number)
        assert not fate.fault, (mutant.whole.name, mutant.mutation.name, mutant.raw, fate.fault)
    stored = 0
    for number, file in enumerate(thought_up(wholes, 16, 1)):
        fate = rooms.examine(file.whole, file.raw, number, file.records)
        assert not fate.fault, (file.whole.name, file.raw, fate.fault)
        stored += fate.stored
    assert stored
