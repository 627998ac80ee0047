"""Check the health of an instance: `python -m panelbench.probe URL [PART ...]` exits with 0 if all parts, or the named
parts, are ok.

Uses the standard library only, so that a container's health check does not start Django.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence


def health(url: str, *, timeout: float = 5) -> dict[str, str]:
    """The parts of an instance's /healthz and their state; empty if there is no response."""
    request = urllib.request.Request(url, headers=_host_header())  # noqa: S310 (the operator's own URL)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:  # noqa: S310
            return _parts(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return _parts(error.read())
    except OSError:
        return {}


def run_probe(argv: Sequence[str]) -> int:
    """Print the state. Returns 0 if all parts, or the named parts, are ok."""
    url, *parts = argv
    state = health(url)
    print(json.dumps(state or {"status": f"no answer from {url}"}))
    return 0 if state and all(state.get(part) == "ok" for part in parts or ["status"]) else 1


def _host_header() -> dict[str, str]:
    # From inside a compose network the URL's host ("web") is none of the names the site answers to.
    name = os.environ.get("ALLOWED_HOSTS", "").split(",")[0].strip().lstrip(".")
    return {"Host": name} if name and name != "*" else {}


def _parts(body: bytes) -> dict[str, str]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


if __name__ == "__main__":
    sys.exit(run_probe(sys.argv[1:]))
