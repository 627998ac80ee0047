"""Files and batches of the simulated provider, in OpenAI's form: answered after a while, or misbehaving by name."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import orjson

BATCH_KINDS: Final = ("slow", "expired", "missing", "doubled", "shuffled", "invalid", "unanswered")
"""Slow (ten times as long), expired halfway, a tenth of the lines missing, all lines twice, in another order, refused
as a whole, or made without a reply to who asked for it."""
ENDED: Final = ("completed", "expired", "cancelled", "failed")
_SHARE: Final = 0.1


class UnknownName(Exception):
    """No file or batch of this name."""


@dataclass(slots=True)
class _Batch:
    """One batch: its requests and their results."""

    fields: dict[str, Any]
    lines: list[dict[str, Any]]
    kind: str
    begun: float
    results: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)


class SimulatedBatches:
    """All files and batches. ``answer`` gives the status and body of one line, None where it has no result."""

    def __init__(
        self, *, answer: Callable[[dict[str, Any]], tuple[int, Any] | None], clock: Callable[[], float], seed: int
    ) -> None:
        self.answer, self.clock, self.luck = answer, clock, Random(seed)
        self.seconds = 0.0
        self.kinds: deque[str] = deque()
        self.stored, self.files = 0, dict[str, bytes]()
        self.batches: dict[str, _Batch] = {}

    def store_file(self, content_type: str, body: bytes) -> dict[str, Any]:
        """A file of a multipart form."""
        found = re.search(r'boundary="?([^";]+)"?', content_type)
        parts = body.split(b"--" + found[1].encode()) if found else []
        named = {match[1]: part for part in parts if (match := re.search(rb'name="(\w+)"', part[:400]))}
        content = named[b"file"].partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        return self._file(content, "batch")

    def _file(self, content: bytes, purpose: str) -> dict[str, Any]:
        self.stored += 1
        name = f"file-simulated-{self.stored}"
        self.files[name] = content
        return {"id": name, "object": "file", "bytes": len(content), "purpose": purpose, "status": "processed"}

    def content(self, name: str) -> bytes:
        """The content of a file."""
        if name not in self.files:
            raise UnknownName(name)
        return self.files[name]

    def delete(self, name: str) -> dict[str, Any]:
        """Delete a file."""
        if self.files.pop(name, None) is None:
            raise UnknownName(name)
        return {"id": name, "object": "file", "deleted": True}

    def create(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """A batch of an uploaded file, and how it misbehaves."""
        lines = [orjson.loads(line) for line in self.content(body["input_file_id"]).splitlines() if line.strip()]
        kind = self.kinds.popleft() if self.kinds else ""
        name = f"batch-simulated-{len(self.batches) + 1}"
        fields = {
            "id": name,
            "object": "batch",
            "endpoint": body["endpoint"],
            "input_file_id": body["input_file_id"],
            "completion_window": body["completion_window"],
            "status": "validating",
            "metadata": body.get("metadata"),
            "output_file_id": None,
            "error_file_id": None,
            "errors": None,
        }
        self.batches[name] = _Batch(fields, lines, kind, self.clock())
        return self.shown(name), kind

    def shown(self, name: str) -> dict[str, Any]:
        """A batch in its present state."""
        if name not in self.batches:
            raise UnknownName(name)
        batch = self.batches[name]
        if batch.fields["status"] not in ENDED:
            self._go_on(batch)
        counts = {
            "total": len(batch.lines),
            "completed": len({line["custom_id"] for line in batch.results}),
            "failed": len(batch.errors),
        }
        return {**batch.fields, "request_counts": counts}

    def listed(self) -> dict[str, Any]:
        """All batches, the newest first."""
        return {"object": "list", "data": [self.shown(name) for name in reversed(self.batches)], "has_more": False}

    def cancel(self, name: str) -> dict[str, Any]:
        """End a batch: what was answered by then is kept."""
        self.shown(name)
        batch = self.batches[name]
        if batch.fields["status"] not in ENDED:
            self._answered(batch, batch.lines[: len(batch.lines) // 2])
            self._end(batch, "cancelled")
        return self.shown(name)

    def _go_on(self, batch: _Batch) -> None:
        seconds = self.seconds * (10 if batch.kind == "slow" else 1)
        if self.clock() < batch.begun + seconds:
            batch.fields["status"] = "in_progress"
        elif batch.kind == "invalid":
            batch.fields["errors"] = {"data": [{"code": "invalid_json_line", "message": "Line 1 cannot be read."}]}
            self._end(batch, "failed")
        elif batch.kind == "expired":
            half = len(batch.lines) // 2
            self._answered(batch, batch.lines[:half])
            words = {"code": "batch_expired", "message": "The request was not executed in time."}
            batch.errors += [
                {"custom_id": line["custom_id"], "response": None, "error": words} for line in batch.lines[half:]
            ]
            self._end(batch, "expired")
        else:
            self._answered(batch, batch.lines)
            self._end(batch, "completed")

    def _answered(self, batch: _Batch, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            answered = self.answer(line["body"])
            if answered is None or (batch.kind == "missing" and self.luck.random() < _SHARE):
                continue
            status, body = answered
            response = {"status_code": status, "request_id": "simulated", "body": body}
            shown = {"id": "simulated", "custom_id": line["custom_id"], "response": response, "error": None}
            (batch.results if status == 200 else batch.errors).append(shown)

    def _end(self, batch: _Batch, status: str) -> None:
        results = batch.results * 2 if batch.kind == "doubled" else list(batch.results)
        if batch.kind in ("shuffled", "doubled"):
            self.luck.shuffle(results)
        for name, lines in (("output_file_id", results), ("error_file_id", batch.errors)):
            if lines:
                batch.fields[name] = self._file(b"\n".join(map(orjson.dumps, lines)), "batch_output")["id"]
        batch.fields["status"] = status
