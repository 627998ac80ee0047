"""Sentence embeddings for the similarity of dialogues: an OpenAI-compatible endpoint, or sentence-transformers.

Vectors are cached by model and text, so that a repeated run asks for nothing and pays nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Embed = Callable[[Sequence[str]], Floats]
BATCH = 64


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible ``/embeddings`` endpoint; the key is read from the environment when it is asked."""

    url: str
    model: str
    key_variable: str = ""
    timeout: float = 60.0

    def __call__(self, texts: Sequence[str]) -> Floats:
        """(D, k) vectors of D texts, in order."""
        if not self.url.startswith(("http://", "https://")):
            raise ValueError("the embeddings address should start with http:// or https://")
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(self.key_variable, ""):
            headers["Authorization"] = f"Bearer {key}"
        body = json.dumps({"model": self.model, "input": list(texts)}).encode()
        request = Request(f"{self.url.rstrip('/')}/embeddings", data=body, headers=headers)  # noqa: S310 - checked above
        try:
            with urlopen(request, timeout=self.timeout) as reply:  # noqa: S310
                return _vectors(reply.read(), len(texts))
        except (OSError, HTTPException) as error:
            raise ValueError(f"{request.full_url} gave no embeddings: {str(error).strip('<>')}") from error


def _vectors(reply: bytes, n: int) -> Floats:
    """(n, k) vectors of a reply, in the order of the texts."""
    try:
        rows = sorted(json.loads(reply)["data"], key=lambda row: row["index"])
        vectors = np.array([row["embedding"] for row in rows], dtype=np.float64)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("the reply of the embeddings address is no list of embeddings") from error
    if len(vectors) != n:
        raise ValueError(f"the embeddings address gave {len(vectors)} vectors for {n} texts")
    return vectors


def local(model: str) -> Embed:
    """A sentence-transformers model on this machine; the package is optional."""
    try:
        package = import_module("sentence_transformers")
    except ImportError as error:
        advice = "pip install 'panelbench[sentence-transformers]'"
        raise ValueError(f"local embeddings need sentence-transformers: {advice}") from error
    encoder = package.SentenceTransformer(model)
    return lambda texts: np.asarray(encoder.encode(list(texts)), dtype=np.float64)


def cached(embed: Embed, *, model: str, directory: Path) -> Embed:
    """The same embeddings, asked for once per text and kept in a directory."""

    def look_up(texts: Sequence[str]) -> Floats:
        places = [directory / f"{_digest(model, text)}.npy" for text in texts]
        missing = [i for i, place in enumerate(places) if not place.exists()]
        directory.mkdir(parents=True, exist_ok=True)
        for start in range(0, len(missing), BATCH):
            chunk = missing[start : start + BATCH]
            for i, vector in zip(chunk, embed([texts[i] for i in chunk]), strict=True):
                _write(places[i], vector)
        return np.array([np.load(place) for place in places])

    return look_up


def _digest(model: str, text: str) -> str:
    return hashlib.sha256(f"{model}\0{text}".encode()).hexdigest()


def _write(place: Path, vector: Floats) -> None:
    """Whole or not at all: a run that is cut off leaves no half vector behind."""
    staged = place.with_suffix(f".{os.getpid()}.tmp")
    with staged.open("wb") as file:
        np.save(file, vector)
    staged.replace(place)
