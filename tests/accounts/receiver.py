"""Somebody's program that is told of events: an HTTP server in a thread, which keeps what it is sent."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from accounts import webhooks
from accounts.models import Webhook


def send_due(webhook: Webhook) -> int:
    """Send what is due at a webhook, as a worker does that was asked to; how many got through."""
    webhooks.ask_to_send(webhook.pk)
    return webhooks.deliver_due(webhook_pk=webhook.pk)


@dataclass
class Receiver:
    """Where it listens, what it answers, and what came: the headers in lower case, and the body."""

    address: str = ""
    status: int = 204
    location: str = ""
    delay: float = 0.0  # seconds before it answers
    came: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def receiver(*, port: int = 0, certificate: Path | None = None) -> Iterator[Receiver]:
    """A running receiver on this machine, by https where it has a certificate for `localhost`."""
    kept = Receiver()

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.came.append(({name.lower(): value for name, value in self.headers.items()}, body))
            time.sleep(kept.delay)
            self.send_response(kept.status)
            if kept.location:
                self.send_header("Location", kept.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Answering)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    place = "http://127.0.0.1" if certificate is None else "https://localhost"
    kept.address = f"{place}:{server.server_port}/hook"
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
