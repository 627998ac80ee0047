"""Just enough HTTP/1.1 for JSON in and JSON out over kept-alive connections."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import orjson

_LARGEST_BODY: Final = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """One JSON response."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request on the connection, or ``None`` when the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    length = int(headers.get("content-length", 0))
    if length > _LARGEST_BODY or "chunked" in headers.get("transfer-encoding", ""):
        return None
    return Request(method, path.partition("?")[0], headers, await reader.readexactly(length))


async def write_response(writer: asyncio.StreamWriter, response: Response) -> None:
    """Send the response and keep the connection open."""
    body = orjson.dumps(response.body)
    headers = {"content-type": "application/json", "content-length": str(len(body)), **response.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}\r\n{head}\r\n".encode() + body)
    await writer.drain()
