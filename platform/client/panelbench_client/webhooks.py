"""For receivers of webhooks: check that a request was signed by Panelbench, is recent and was not changed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any, TypedDict

from panelbench_client.connection import Forged

PREFIX = "whsec_"
TOLERANCE = 300.0  # seconds by which the two clocks, and a request on its way, may differ


# A class would need a field by the name that Standard Webhooks gives the body's third key.
Event = TypedDict("Event", {"type": str, "timestamp": str, "data": dict[str, Any]})  # noqa: UP013  # see above
"""What is told: keys and counts; docs/webhooks.md lists them by type."""


def received(
    secret: str, headers: Mapping[str, str], body: bytes, *, tolerance: float = TOLERANCE, now: float | None = None
) -> Event:
    """The event of a signed request; ``body`` must be the unchanged bytes. Raises `Forged` for any other request.

    The same event can come more than once: store the header `webhook-id` of processed events, and ignore repetitions.
    """
    lower_headers = {name.lower(): value for name, value in headers.items()}
    key, stamp = lower_headers.get("webhook-id", ""), lower_headers.get("webhook-timestamp", "")
    if not (stamp.isascii() and stamp.isdecimal()):
        raise Forged("The request has no timestamp of Panelbench.")
    if abs((time.time() if now is None else now) - int(stamp)) > tolerance:
        raise Forged(f"It was signed more than {tolerance:g} seconds ago, or a clock is wrong.")
    mine = _signature(secret, key, stamp, body)
    if not any(hmac.compare_digest(mine, text.encode()) for text in lower_headers.get("webhook-signature", "").split()):
        raise Forged("Its signature is wrong. Was the secret renewed, or was the body changed before the check?")
    event: Event = json.loads(body)
    return event


def _signature(secret: str, key: str, stamp: str, body: bytes) -> bytes:
    signing_key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.new(signing_key, f"{key}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return b"v1," + base64.b64encode(digest)
