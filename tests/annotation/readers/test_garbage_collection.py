from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from annotation.readers.spool import RARE_THRESHOLD, rare_garbage_collection


def test_cycles_are_looked_for_as_often_as_before_once_the_last_has_left() -> None:
    before, both = gc.get_threshold(), Barrier(2)

    def work() -> int:
        with rare_garbage_collection():
            both.wait()
            return gc.get_threshold()[0]

    with ThreadPoolExecutor(2) as threads:
        assert [each.result() for each in [threads.submit(work), threads.submit(work)]] == [
            RARE_THRESHOLD,
            RARE_THRESHOLD,
        ]
    assert gc.get_threshold() == before
