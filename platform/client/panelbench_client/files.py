"""Methods for files: imports, uploads, exports, and bundles of whole projects.

Large files are sent in pieces, and every piece can be sent again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from panelbench_client import types
from panelbench_client.connection import (
    TRIES,
    ApiError,
    ImportFailed,
    PanelbenchError,
    TransferFailed,
    Unreachable,
    operation,
)
from panelbench_client.methods import PlainMethods

AT_ONCE = 16 * 2**20  # bytes; files that are larger together are sent in pieces
PIECE = 8 * 2**20
TUS = {"Tus-Resumable": "1.0.0"}
UNDER_WAY = ("checking", "storing", "undoing")


class ImportMethods(PlainMethods):
    @operation("POST", "/projects/{project}/imports/", uploads="", name="")
    def open_import(
        self,
        *files: str | os.PathLike[str],
        kind: types.ImportKind | None = None,
        mapping: Mapping[str, Any] | None = None,
        target: types.Target | None = None,
    ) -> types.Import:
        """Upload the files of one import; nothing is stored yet. ``mapping`` is laid over the detected mapping."""
        paths, there = [Path(file) for file in files], self.at("imports/")
        fields = {"kind": kind, "mapping": mapping, "target": target}
        body: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        if sum(path.stat().st_size for path in paths) > AT_ONCE:
            keys = [self.upload(path)["key"] for path in paths]
            return cast(types.Import, self.json("POST", there, json={"uploads": keys, **body}))
        form = {name: value if isinstance(value, str) else json.dumps(value) for name, value in body.items()}
        with ExitStack() as opened:
            parts = [("files", (path.name, opened.enter_context(path.open("rb")))) for path in paths]
            return cast(types.Import, self.json("POST", there, data=form, files=parts))

    @operation("GET", "/projects/{project}/imports/{file_import}/files/{file}/")
    def save_import_file(self, file_import: int, file: int, to: str | os.PathLike[str]) -> Path:
        """Download one file of an import, unchanged. ``file`` is its ``id`` in the import's ``files``."""
        return self.save(self.at("imports/{}/files/{}/", file_import, file), to)

    @operation("GET", "/projects/{project}/imports/{file_import}/preview/")
    @operation("GET", "/projects/{project}/verdict-imports/{file_import}/preview/")
    def preview_import(self, file_import: int, *, timeout: float = 600.0) -> types.ImportPreview:
        """What storing would do. Waits until a worker has read large files."""
        return cast(types.ImportPreview, self._seen(file_import, timeout))

    @operation("GET", "/projects/{project}/study-imports/{file_import}/preview/")
    def preview_study(self, file_import: int, *, timeout: float = 3600.0) -> types.StudyPreview:
        """What storing a whole study would do, part by part. Waits until a worker has checked it."""
        return cast(types.StudyPreview, self._seen(file_import, timeout))

    def _seen(self, file_import: int, timeout: float) -> Any:
        there = self._place(file_import, "preview")

        def seen() -> Any:
            answer = self.send("GET", there)
            return answer.json() if answer.status_code == 200 else None

        return self.wait(seen, timeout=timeout, what=f"Reading import {file_import}")

    @operation("POST", "/projects/{project}/imports/{file_import}/store/")
    @operation("POST", "/projects/{project}/verdict-imports/{file_import}/store/")
    @operation("POST", "/projects/{project}/study-imports/{file_import}/store/")
    def store_import(self, file_import: int) -> types.Import:
        """Store the import completely or not at all. A large one is stored in the background: see `wait_for_import`."""
        return cast(types.Import, self.json("POST", self._place(file_import, "store")))

    def wait_for_import(self, file_import: int, *, timeout: float = 3600.0) -> types.Import:
        """Wait until the import is stored, and return it. Raises `ImportFailed` with its report if it was refused,
        or `TimedOut`."""

        def ended() -> types.Import | None:
            current_import = self.get_import(file_import)
            return None if current_import["state"] in UNDER_WAY else current_import

        current_import = cast(types.Import, self.wait(ended, timeout=timeout, what=f"Import {file_import}"))
        if current_import["state"] != "stored":
            raise ImportFailed(file_import, current_import["report"])
        return current_import

    @operation("POST", "/projects/{project}/imports/{file_import}/undo/")
    @operation("POST", "/projects/{project}/verdict-imports/{file_import}/undo/")
    @operation("POST", "/projects/{project}/study-imports/{file_import}/undo/")
    def undo_import(self, file_import: int) -> types.Import:
        """Delete what was stored, unless something depends on it. The files are kept."""
        return cast(types.Import, self.json("POST", self._place(file_import, "undo")))

    def _place(self, file_import: int, step: str) -> str:
        """The address of a step; verdicts and studies have their own addresses for preview, store and undo."""
        kind = self.get_import(file_import)["kind"]
        folder = {"verdicts": "verdict-imports", "study": "study-imports"}.get(kind, "imports")
        return self.at(f"{folder}/{{}}/{step}/", file_import)

    # --- mappings ---------------------------------------------------------------------------------------------------

    @operation("PUT", "/projects/{project}/mappings/{mapping}/")
    def change_mapping(
        self, mapping: int, name: str, kind: types.SavedMappingKindEnum, content: Mapping[str, Any]
    ) -> types.SavedMapping:
        """Change the name, the kind and the content of a saved mapping."""
        body = {"name": name, "kind": kind, "mapping": dict(content)}
        return cast(types.SavedMapping, self.json("PUT", self.at("mappings/{}/", mapping), json=body))

    # --- resumable uploads ------------------------------------------------------------------------------------------
    @operation("POST", "/projects/{project}/uploads/")
    def begin_upload(self, file: str | os.PathLike[str]) -> types.UploadState:
        """Announce a file; `upload` sends it, now or later."""
        path = Path(file)
        name = base64.b64encode(path.name.encode()).decode()
        headers = {"Upload-Length": str(path.stat().st_size), "Upload-Metadata": f"filename {name}"}
        return cast(types.UploadState, self.json("POST", self.at("uploads/"), headers=TUS | headers))

    @operation("DELETE", "/projects/{project}/uploads/{upload}/")
    def give_up_upload(self, upload: str) -> None:
        """Cancel an upload and delete the bytes received."""
        self.send("DELETE", self.at("uploads/{}/", upload), headers=TUS)

    @operation("PATCH", "/projects/{project}/uploads/{upload}/", upload="key")
    def upload(self, file: str | os.PathLike[str], *, key: str = "") -> types.UploadState:
        """Send a file in pieces, each checked by its digest. With the ``key`` of an interrupted upload, send the
        rest."""
        state = self.upload_state(key) if key else self.begin_upload(file)
        failures = 0
        with Path(file).open("rb") as source:
            while state["received"] < state["size"]:
                before = source.seek(state["received"])
                try:
                    self._send_piece(state["key"], before, source.read(PIECE))
                except (Unreachable, ApiError) as error:
                    failures += 1
                    if failures == TRIES or not _passes(error):
                        raise
                state = self.upload_state(state["key"])
                failures = 0 if state["received"] > before else failures
        return state

    def _send_piece(self, key: str, offset: int, piece: bytes) -> None:
        digest = base64.b64encode(hashlib.sha256(piece).digest()).decode()
        headers = {"Upload-Offset": str(offset), "Upload-Checksum": f"sha256 {digest}"}
        kind = {"Content-Type": "application/offset+octet-stream"}
        self.send("PATCH", self.at("uploads/{}/", key), headers=TUS | headers | kind, content=piece)


def _passes(error: PanelbenchError) -> bool:
    """Whether the upload can continue where the server's file ends: a piece was cut off, changed in transit, or
    sent twice."""
    return isinstance(error, Unreachable) or getattr(error, "code", "") in ("wrong_offset", "checksum")


Key = UUID | str
SUBJECTS = ("campaign", "dataset", "rubric")


class ExportMethods(ImportMethods):
    @operation("GET", "/projects/{project}/exports/{what}/")
    def export(
        self,
        what: str,
        to: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002  # as the API calls it
        campaign: str | int | None = None,
        dataset: str | int | None = None,
        rubric: str | int | None = None,
        **options: Any,
    ) -> Path:
        """Write ``what`` (items, ratings, verdicts, scores, rubric, campaign) to a file; docs/exporting.md lists all.

        Raters have pseudonyms. If the project has only one campaign, dataset or rubric, it need not be named.
        """
        params = {"format": format, "campaign": campaign, "dataset": dataset, "rubric": rubric, **options}
        return self.save(self.at("exports/{}/", what), to, params=params)

    @operation("GET", "/projects/{project}/exports/{what}/size/")
    def export_size(
        self,
        what: str,
        *,
        format: str | None = None,  # noqa: A002  # as the API calls it
        campaign: str | int | None = None,
        dataset: str | int | None = None,
        rubric: str | int | None = None,
        **options: Any,
    ) -> types.Extent:
        """The number of rows of the export, and about how many bytes it has."""
        params = {"format": format, "campaign": campaign, "dataset": dataset, "rubric": rubric, **options}
        return cast(types.Extent, self.json("GET", self.at("exports/{}/size/", what), params=params))

    # --- in the background ------------------------------------------------------------------------------------------
    @operation("POST", "/projects/{project}/transfers/")
    def prepare_export(
        self,
        what: str,
        *,
        format: str | None = None,  # noqa: A002  # as the API calls it
        campaign: str | int | None = None,
        dataset: str | int | None = None,
        rubric: str | int | None = None,
        **options: Any,
    ) -> types.Transfer:
        """Let a worker write a large export; then `wait_for_transfer` and `save_transfer`. Needs a token that can
        write."""
        parameters = {"format": format, "campaign": campaign, "dataset": dataset, "rubric": rubric, **options}
        filled = {name: value for name, value in parameters.items() if value is not None}
        named = {name: str(value) if name in SUBJECTS else value for name, value in filled.items()}
        return cast(types.Transfer, self.json("POST", self.at("transfers/"), json={"what": what, **named}))

    def save_report(
        self,
        to: str | os.PathLike[str],
        *,
        format: str = "html",  # noqa: A002  # as the API calls it
        campaign: str | int | None = None,
        question: str | None = None,
        layout: str | None = None,
        timeout: float = 3600.0,
    ) -> Path:
        """Have a report (html, pdf or zip) written, wait for it, and save it. ``layout``: S0 to S4."""
        options = {name: text for name, text in (("question", question), ("layout", layout)) if text}
        key = self.prepare_export("report", format=format, campaign=campaign, **options)["key"]
        self.wait_for_transfer(key, timeout=timeout)
        return self.save_transfer(key, to)

    def wait_for_transfer(self, transfer: Key, *, timeout: float = 3600.0) -> types.Transfer:
        """Wait until the transfer is done, and return it. Raises `TransferFailed` with the reason, or `TimedOut`."""

        def ended() -> types.Transfer | None:
            current_transfer = self.transfer(str(transfer))
            if current_transfer["state"] == "failed":
                raise TransferFailed(current_transfer["sentence"])
            return current_transfer if current_transfer["state"] == "done" else None

        return cast(types.Transfer, self.wait(ended, timeout=timeout, what=f"Transfer {transfer}"))

    @operation("GET", "/projects/{project}/transfers/{transfer}/content/")
    def save_transfer(self, transfer: Key, to: str | os.PathLike[str]) -> Path:
        """Download the file of a finished transfer."""
        return self.save(self.at("transfers/{}/content/", transfer), to)

    @operation("POST", "/projects/{project}/bundles/", upload="")
    def load_bundle(self, file: str | os.PathLike[str]) -> types.Transfer:
        """Upload a bundle and load it into this empty project; then `wait_for_transfer`."""
        key = self.upload(Path(file))["key"]
        return cast(types.Transfer, self.json("POST", self.at("bundles/"), json={"upload": key}))
