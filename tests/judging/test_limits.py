from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from judging.asking import holders
from judging.asking.client import Endpoint, ProviderRefused, ProviderUnavailable
from judging.asking.limit_headers import Quota
from judging.asking.limits import BURST, ConcurrencyLimiter, budget


@pytest.fixture
def redis_url() -> str:
    """The Redis of the tests, where there is one."""
    return os.environ.get("REDIS_URL") or pytest.skip("no Redis")


def paced(**limits: int) -> Endpoint:
    """An endpoint that shares its budget with no other test."""
    return Endpoint(f"paced-{uuid4()}", "http://127.0.0.1:1/v1", **limits)


async def seconds_for(work: list[Callable[[], Awaitable[None]]]) -> float:
    started = time.perf_counter()
    await asyncio.gather(*(each() for each in work))
    return time.perf_counter() - started


async def acquire_all(endpoint: Endpoint, url: str | None, *, workers: int, times: int, tokens: int = 1) -> float:
    """Several workers, each with a budget of its own making, ask so many times between them."""
    async with AsyncExitStack() as stack:
        budgets = [await stack.enter_async_context(budget(endpoint, url)) for _ in range(workers)]
        return await seconds_for([lambda i=i: budgets[i % workers].acquire(tokens=tokens) for i in range(times)])


# --- Budget -------------------------------------------------------------------------------------------------------

TEN_A_SECOND = 600
AT_ONCE = int(BURST * 10)
PACED_WELL = 4.0  # seconds, of which a busy machine may take most; paced without the burst it would be more than 5


def test_workers_share_one_pace(redis_url: str) -> None:
    endpoint = paced(requests_per_minute=TEN_A_SECOND)
    # Fifty at once; of six more, whoever asks, the first is due at once or 0.1 s on, the last 0.5 s after it.
    assert 0.45 < asyncio.run(acquire_all(endpoint, redis_url, workers=2, times=AT_ONCE + 6)) < PACED_WELL


def test_a_worker_alone_paces_what_comes_after_the_burst() -> None:
    endpoint = paced(requests_per_minute=TEN_A_SECOND)
    assert 0.45 < asyncio.run(acquire_all(endpoint, None, workers=1, times=AT_ONCE + 6)) < PACED_WELL


@pytest.mark.parametrize("shared", [True, False])
def test_tokens_are_paced_like_requests(shared: bool, redis_url: str) -> None:
    endpoint = paced(tokens_per_minute=60_000)
    # 1,000 a second and 5,000 at once: the third batch of 2,700 waits for 400, the fourth would wait longer.
    waited = asyncio.run(acquire_all(endpoint, redis_url if shared else None, workers=1, times=3, tokens=2_700))
    assert 0.3 < waited < 2.5


def test_an_endpoint_without_limits_never_waits(redis_url: str) -> None:
    assert asyncio.run(acquire_all(paced(), redis_url, workers=2, times=500, tokens=10**6)) < 20


def test_without_its_redis_a_shared_budget_paces_alone(caplog: pytest.LogCaptureFixture) -> None:
    endpoint = paced(requests_per_minute=TEN_A_SECOND)
    gone = "redis://127.0.0.1:1/0"
    assert 0.45 < asyncio.run(acquire_all(endpoint, gone, workers=1, times=AT_ONCE + 6)) < PACED_WELL
    assert "not shared for now" in caplog.text


# --- ConcurrencyLimiter -----------------------------------------------------------------------------------------------


async def drive(limiter: ConcurrencyLimiter, outcomes: list[Exception | None], *, pause: float = 0.002) -> int:
    """Send one request per outcome through the limiter; the most that were in flight together."""
    peak = 0

    async def send(outcome: Exception | None) -> None:
        nonlocal peak
        async with limiter.slot():
            peak = max(peak, limiter.in_flight)
            await asyncio.sleep(pause)
            if outcome:
                raise outcome

    results = await asyncio.gather(*(send(outcome) for outcome in outcomes), return_exceptions=True)
    assert [result for result in results if result] == [outcome for outcome in outcomes if outcome]
    assert limiter.in_flight == 0
    return peak


def overrun(retry_after: float | None = None) -> ProviderUnavailable:
    return ProviderUnavailable("429", retry_after=retry_after)


def test_a_clean_lane_doubles_up_to_its_ceiling_and_never_beyond() -> None:
    limiter = ConcurrencyLimiter(width=4, ceiling=32)
    assert asyncio.run(drive(limiter, [None] * 200)) == 32
    assert limiter.width == 32


def test_an_overrun_halves_the_lane_once_for_all_that_was_in_flight() -> None:
    limiter = ConcurrencyLimiter(width=32, ceiling=64)
    asyncio.run(drive(limiter, [overrun() for _ in range(32)]))
    assert limiter.width == 16


def test_after_a_cut_the_lane_grows_by_one_a_round() -> None:
    limiter = ConcurrencyLimiter(width=32, ceiling=64)
    asyncio.run(drive(limiter, [overrun() for _ in range(32)]))
    asyncio.run(drive(limiter, [None] * (16 + 17)))
    assert limiter.width == 18


def test_a_lane_keeps_one_place_open_however_bad_it_gets() -> None:
    limiter = ConcurrencyLimiter(width=2)
    asyncio.run(drive(limiter, [overrun() for _ in range(40)]))
    assert limiter.width == 1


def test_stray_failures_do_not_close_the_lane() -> None:
    limiter = ConcurrencyLimiter(width=8, ceiling=64)
    asyncio.run(drive(limiter, [overrun(30.0) if n % 33 == 32 else None for n in range(2_000)]))
    assert limiter.width >= 32


def test_a_refusal_says_nothing_about_the_load() -> None:
    limiter = ConcurrencyLimiter(width=8)
    asyncio.run(drive(limiter, [ProviderRefused("404") for _ in range(40)]))
    assert limiter.width == 8


def test_nothing_starts_before_the_time_the_endpoint_named() -> None:
    limiter = ConcurrencyLimiter(width=10)
    started = time.perf_counter()
    asyncio.run(drive(limiter, [overrun(0.4) for _ in range(10)]))
    asyncio.run(drive(limiter, [None]))
    assert 0.4 < time.perf_counter() - started < 10


@pytest.mark.parametrize("resting", [True, False])
def test_a_cancelled_request_gives_its_place_back(resting: bool) -> None:
    async def scenario() -> None:
        limiter = ConcurrencyLimiter(width=1)
        if resting:
            await drive(limiter, [overrun(60.0) for _ in range(2)])
        leaving = asyncio.gather(drive(limiter, [None] * 5, pause=60.0))
        await asyncio.sleep(0.05)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        assert limiter.in_flight == 0

    asyncio.run(scenario())


# --- What is booked and not used --------------------------------------------------------------------------------------


def test_what_is_too_far_away_is_not_booked_and_processes_share_a_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        endpoint = paced(tokens_per_minute=60_000)
        async with budget(endpoint, None, tmp_path) as mine, budget(endpoint, None, tmp_path) as theirs:
            assert await mine.acquire(tokens=5_000, patience=0.5)
            assert await theirs.acquire(tokens=60_000, patience=0.5), "the next slot is free now"
            assert not await mine.acquire(tokens=1_000, patience=0.5), "they booked a minute"
            await theirs.correct(booked=60_000, used=100)
            assert await mine.acquire(tokens=1_000, patience=0.5), "and used a moment of it"
            await mine.heed({"tokens": Quota(0, 30.0)}, tokens=500)
            assert not await theirs.acquire(tokens=1, patience=1.0), "the endpoint has nothing left"

    asyncio.run(scenario())


def test_a_booking_that_is_given_up_is_given_back() -> None:
    async def scenario() -> None:
        async with budget(paced(requests_per_minute=60), None) as one:
            for _at_once in range(6):
                assert await one.acquire(tokens=1)
            waiting = asyncio.create_task(one.acquire(tokens=1))
            await asyncio.sleep(0.05)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert await one.acquire(tokens=1, patience=1.5) is True

    asyncio.run(scenario())


def test_the_death_of_a_work_session_is_known_at_once(tmp_path: Path) -> None:
    lease = uuid4()
    dead: list[UUID] = []
    code = f"""
import pathlib, time, uuid
from judging.asking import holders
with holders.holding(pathlib.Path({str(tmp_path)!r}), uuid.UUID({str(lease)!r})):
    print("held", flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as session:
        assert session.stdout and session.stdout.readline() == b"held\n"
        with holders.holding(tmp_path, uuid4()):
            assert holders.with_dead_leases(tmp_path, lambda lease, _sent: dead.append(lease)) == 0, "both live"
            session.kill()
            session.wait()
            assert holders.with_dead_leases(tmp_path, lambda lease, _sent: dead.append(lease)) == 1
    assert dead == [lease]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("damage", "is_known"),
    [
        (lambda record: record, True),
        (lambda record: record.replace(record[:4], b"0000", 1), False),  # another boot: what was written may be lost
        (lambda record: record[:-1], False),
        (lambda _record: b"", False),
        (lambda _record: b"\n", False),
    ],
)
def test_what_a_dead_session_sent_is_known_in_the_same_boot_only(
    tmp_path: Path, damage: Callable[[bytes], bytes], is_known: bool
) -> None:
    code = f"""
import pathlib, time, uuid
from judging.asking import holders
with holders.holding(pathlib.Path({str(tmp_path)!r}), uuid.uuid4()) as record:
    record.note(7)
    record.note(12)
    print("noted", flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as session:
        assert session.stdout and session.stdout.readline() == b"noted\n"
        session.kill()
    [file] = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    known: list[set[int] | None] = []
    assert holders.with_dead_leases(tmp_path, lambda _lease, sent: known.append(sent)) == 1
    assert known == [{7, 12} if is_known else None]


def test_a_record_that_takes_no_more_is_not_believed(tmp_path: Path) -> None:
    code = f"""
import pathlib, resource, uuid
from judging.asking import holders
resource.setrlimit(resource.RLIMIT_FSIZE, (42, 42))
with holders.holding(pathlib.Path({str(tmp_path)!r}), uuid.uuid4()) as record:
    for number in range(100, 110):
        record.note(number)
    assert len(record.noted) == 10, "it sends on"
    assert record.file is None
    print("noted", flush=True)
    input()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
        assert session.stdout and session.stdout.readline() == b"noted\n"
        session.kill()
    known: list[set[int] | None] = []
    assert holders.with_dead_leases(tmp_path, lambda _lease, sent: known.append(sent)) == 1
    assert known == [None]


def test_a_lease_file_that_can_not_be_opened_keeps_no_other_from_being_looked_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unreadable, lease = uuid4(), uuid4()
    (tmp_path / str(unreadable)).mkdir()  # root, too, can't open it as a file
    dead: list[UUID] = []
    for _look in range(2):
        (tmp_path / str(lease)).touch()
        assert holders.with_dead_leases(tmp_path, lambda lease, _sent: dead.append(lease)) == 1
    assert dead == [lease, lease]
    assert [str(unreadable) in said for said in caplog.messages] == [True], "said once, not at each look"


def test_what_goes_wrong_while_a_lease_is_given_back_is_not_hidden(tmp_path: Path) -> None:
    (tmp_path / str(uuid4())).touch()

    def failing(lease: UUID, _sent: set[int] | None) -> None:
        raise ConnectionResetError(lease)

    with pytest.raises(ConnectionResetError):
        holders.with_dead_leases(tmp_path, failing)
    assert list(tmp_path.iterdir()), "the next look tries again"


def test_a_folder_without_locks_costs_the_early_notice_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_file: object, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    (tmp_path / str(uuid4())).touch()
    monkeypatch.setattr("fcntl.flock", no_locks)
    dead: list[UUID] = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ResourceWarning)
        with holders.holding(tmp_path, uuid4()):
            assert holders.with_dead_leases(tmp_path, lambda lease, _sent: dead.append(lease)) == 0
    assert (dead, [each for each in said if each.category is ResourceWarning]) == ([], [])
