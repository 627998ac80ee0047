"""The command line of the simulated provider."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from panelbench.provider.server import KINDS, SimulatedProvider
from panelbench.provider.writing import BREAKS


def serve_provider() -> None:
    """Serve until SIGINT or SIGTERM. The first line printed is the base URL to give to a client."""
    arguments = _arguments()
    provider = SimulatedProvider(
        seed=arguments.seed,
        latency=arguments.latency,
        rates=dict(arguments.fault_rate),
        written_breaks=dict(arguments.written_break),
    )
    asyncio.run(_serve(provider, arguments.host, arguments.port))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m panelbench.provider", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8901, help="0 takes a free one")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds per reply")
    parser.add_argument(
        "--fault-rate",
        type=_rate,
        action="append",
        default=[],
        metavar="KIND=SHARE",
        help=f"may be repeated, e.g. rate_limit=0.02; kinds: {', '.join(KINDS)}",
    )
    parser.add_argument(
        "--written-break",
        type=_written_rate,
        action="append",
        default=[],
        metavar="RULE=SHARE",
        help=f"may be repeated: the share of written texts that break a rule; rules: {', '.join(BREAKS)}",
    )
    return parser.parse_args()


def _rate(text: str, known: Sequence[str] = KINDS) -> tuple[str, float]:
    kind, _, share = text.partition("=")
    if kind not in known:
        raise argparse.ArgumentTypeError(f"unknown kind {kind!r}")
    return kind, float(share)


def _written_rate(text: str) -> tuple[str, float]:
    return _rate(text, BREAKS)


async def _serve(provider: SimulatedProvider, host: str, port: int) -> None:
    server = await asyncio.start_server(provider.converse, host, port, backlog=1024)
    address = server.sockets[0].getsockname()
    print(f"http://{address[0]}:{address[1]}/v1", flush=True)
    print("Simulated provider: every reply is made up.", file=sys.stderr, flush=True)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()
    server.close()


if __name__ == "__main__":
    serve_provider()
