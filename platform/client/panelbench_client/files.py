"""Files in and out: imports from upload to undo, exports, and whole projects.

Large files are sent in pieces, each of which can be sent again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
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
    ServerConnection,
    TransferFailed,
    Unreachable,
    operation,
)

AT_ONCE = 16 * 2**20  # bytes; files that are larger together are sent in pieces
PIECE = 8 * 2**20
TUS = {"Tus-Resumable": "1.0.0"}
UNDER_WAY = ("checking", "storing", "undoing")


class ImportMethods(ServerConnection):
    @operation("GET", "/projects/{project}/imports/")
    def imports(self) -> Iterator[types.Import]:
        """The project's imports."""
        return self.pages(self.at("imports/"))

    @operation("POST", "/projects/{project}/imports/", uploads="", name="")
    def open_import(
        self,
        *files: str | os.PathLike[str],
        kind: types.ImportKind | None = None,
        mapping: Mapping[str, Any] | None = None,
        target: types.Target | None = None,
    ) -> types.Import:
        """Upload the files of one import; nothing is stored yet. ``mapping`` is put over the one that is guessed."""
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

    @operation("GET", "/projects/{project}/imports/{file_import}/")
    def get_import(self, file_import: int) -> types.Import:
        """State and report of an import."""
        return cast(types.Import, self.json("GET", self.at("imports/{}/", file_import)))

    @operation("GET", "/projects/{project}/imports/{file_import}/files/{file}/")
    def save_import_file(self, file_import: int, file: int, to: str | os.PathLike[str]) -> Path:
        """Write one of an import's files, byte for byte as it came; ``file`` is its ``id`` among the ``files``."""
        return self.save(self.at("imports/{}/files/{}/", file_import, file), to)

    @operation("PATCH", "/projects/{project}/imports/{file_import}/")
    def revise_import(
        self,
        file_import: int,
        *,
        kind: types.ImportKind | None = None,
        mapping: Mapping[str, Any] | None = None,
        target: types.Target | None = None,
    ) -> types.Import:
        """Correct what is not stored yet: what the files hold, how they are read, where the rows go."""
        fields = {"kind": kind, "mapping": mapping, "target": target}
        body = {name: value for name, value in fields.items() if value is not None}
        return cast(types.Import, self.json("PATCH", self.at("imports/{}/", file_import), json=body))

    @operation("DELETE", "/projects/{project}/imports/{file_import}/")
    def discard_import(self, file_import: int) -> None:
        """Delete an import that stored nothing, with its files."""
        self.send("DELETE", self.at("imports/{}/", file_import))

    @operation("POST", "/projects/{project}/imports/{file_import}/also/")
    def import_also(self, file_import: int, kind: types.ImportKind) -> types.Import:
        """Open another import of the same files, as another kind."""
        return cast(types.Import, self.json("POST", self.at("imports/{}/also/", file_import), json={"kind": kind}))

    @operation("POST", "/projects/{project}/imports/{file_import}/check/")
    def check_import(self, file_import: int) -> types.Import:
        """Let a worker look at a large import again."""
        return cast(types.Import, self.json("POST", self.at("imports/{}/check/", file_import)))

    @operation("POST", "/projects/{project}/imports/{file_import}/apart/")
    def take_apart(self, file_import: int) -> types.Import:
        """Import the files of a study kind by kind after all; the first of the imports that take its place."""
        return cast(types.Import, self.json("POST", self.at("imports/{}/apart/", file_import)))

    @operation("GET", "/projects/{project}/imports/{file_import}/preview/")
    @operation("GET", "/projects/{project}/verdict-imports/{file_import}/preview/")
    def preview_import(self, file_import: int, *, timeout: float = 600.0) -> types.Outlook:
        """What would be stored, after a worker has read large files."""
        return cast(types.Outlook, self._seen(file_import, timeout))

    @operation("GET", "/projects/{project}/study-imports/{file_import}/preview/")
    def preview_study(self, file_import: int, *, timeout: float = 3600.0) -> types.StudyOutlook:
        """What would be stored for a whole study, part by part, after a worker has tried it."""
        return cast(types.StudyOutlook, self._seen(file_import, timeout))

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
        """Store it, all or nothing; a large one goes on in the background: see `wait_for_import`."""
        return cast(types.Import, self.json("POST", self._place(file_import, "store")))

    def wait_for_import(self, file_import: int, *, timeout: float = 3600.0) -> types.Import:
        """The import once it is stored; raises `ImportFailed` with its report when it was refused, or `TimedOut`."""

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
        """Delete what was stored, unless something depends on it; the files stay.

        A large import is `undoing` for a while, then `uploaded`, or `stored` again when the undo failed.
        """
        return cast(types.Import, self.json("POST", self._place(file_import, "undo")))

    def _place(self, file_import: int, step: str) -> str:
        """Verdicts, and whole studies, are looked at, stored and taken back at addresses of their own."""
        kind = self.get_import(file_import)["kind"]
        folder = {"verdicts": "verdict-imports", "study": "study-imports"}.get(kind, "imports")
        return self.at(f"{folder}/{{}}/{step}/", file_import)

    @operation("GET", "/projects/{project}/studies/")
    def studies(self) -> list[types.Study]:
        """The studies and tools whose files are known, and how they are read."""
        return cast(list[types.Study], self.json("GET", self.at("studies/")))

    # --- mappings ---------------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/mappings/")
    def mappings(self) -> Iterator[types.SavedMapping]:
        """The mappings that the project keeps under names."""
        return self.pages(self.at("mappings/"))

    @operation("POST", "/projects/{project}/mappings/")
    def save_mapping(
        self, name: str, kind: types.SavedMappingKindEnum, mapping: Mapping[str, Any]
    ) -> types.SavedMapping:
        """Keep a mapping under a name."""
        body = {"name": name, "kind": kind, "mapping": dict(mapping)}
        return cast(types.SavedMapping, self.json("POST", self.at("mappings/"), json=body))

    @operation("GET", "/projects/{project}/mappings/{mapping}/")
    def mapping(self, mapping: int) -> types.SavedMapping:
        """One of them."""
        return cast(types.SavedMapping, self.json("GET", self.at("mappings/{}/", mapping)))

    @operation("PUT", "/projects/{project}/mappings/{mapping}/")
    def change_mapping(
        self, mapping: int, name: str, kind: types.SavedMappingKindEnum, content: Mapping[str, Any]
    ) -> types.SavedMapping:
        """Change a mapping: its name, its kind and its content."""
        body = {"name": name, "kind": kind, "mapping": dict(content)}
        return cast(types.SavedMapping, self.json("PUT", self.at("mappings/{}/", mapping), json=body))

    @operation("DELETE", "/projects/{project}/mappings/{mapping}/")
    def delete_mapping(self, mapping: int) -> None:
        """Forget one."""
        self.send("DELETE", self.at("mappings/{}/", mapping))

    # --- resumable uploads ------------------------------------------------------------------------------------------
    @operation("POST", "/projects/{project}/uploads/")
    def begin_upload(self, file: str | os.PathLike[str]) -> types.UploadState:
        """Say that a file is to come; `upload` goes on with it, now or another day."""
        path = Path(file)
        name = base64.b64encode(path.name.encode()).decode()
        headers = {"Upload-Length": str(path.stat().st_size), "Upload-Metadata": f"filename {name}"}
        return cast(types.UploadState, self.json("POST", self.at("uploads/"), headers=TUS | headers))

    @operation("GET", "/projects/{project}/uploads/{upload}/")
    def upload_state(self, upload: str) -> types.UploadState:
        """How much of a file is there."""
        return cast(types.UploadState, self.json("GET", self.at("uploads/{}/", upload)))

    @operation("DELETE", "/projects/{project}/uploads/{upload}/")
    def give_up_upload(self, upload: str) -> None:
        """Delete what has come of it."""
        self.send("DELETE", self.at("uploads/{}/", upload), headers=TUS)

    @operation("PATCH", "/projects/{project}/uploads/{upload}/", upload="key")
    def upload(self, file: str | os.PathLike[str], *, key: str = "") -> types.UploadState:
        """Send a file in pieces, each checked by its digest; with the ``key`` of an upload that broke off, the rest."""
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
    """Whether to go on from where the file ends now: a piece was cut off, changed on its way, or came twice."""
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
        """Write ``what`` (items, ratings, verdicts, scores, rubric, campaign) to a file; docs/exporting.md names all.

        Raters have pseudonyms. Where the project has only one campaign, dataset or rubric it need not be named.
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
        """How many rows the export has, and about how many bytes."""
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
        """Have a worker write a large export; `wait_for_transfer`, then `save_transfer`. The token has to be one that
        may write.
        """
        parameters = {"format": format, "campaign": campaign, "dataset": dataset, "rubric": rubric, **options}
        given = {name: value for name, value in parameters.items() if value is not None}
        named = {name: str(value) if name in SUBJECTS else value for name, value in given.items()}
        return cast(types.Transfer, self.json("POST", self.at("transfers/"), json={"what": what, **named}))

    @operation("GET", "/projects/{project}/transfers/")
    def transfers(self) -> Iterator[types.Transfer]:
        """One's own, the newest first."""
        return self.pages(self.at("transfers/"))

    @operation("GET", "/projects/{project}/transfers/{transfer}/")
    def transfer(self, transfer: Key) -> types.Transfer:
        """How far it is, and what came of it."""
        return cast(types.Transfer, self.json("GET", self.at("transfers/{}/", transfer)))

    def wait_for_transfer(self, transfer: Key, *, timeout: float = 3600.0) -> types.Transfer:
        """The transfer once it is done; raises `TransferFailed` with what stood in the way, or `TimedOut`."""

        def ended() -> types.Transfer | None:
            current_transfer = self.transfer(transfer)
            if current_transfer["state"] == "failed":
                raise TransferFailed(current_transfer["sentence"])
            return current_transfer if current_transfer["state"] == "done" else None

        return cast(types.Transfer, self.wait(ended, timeout=timeout, what=f"Transfer {transfer}"))

    @operation("GET", "/projects/{project}/transfers/{transfer}/content/")
    def save_transfer(self, transfer: Key, to: str | os.PathLike[str]) -> Path:
        """Write the file that a worker wrote, to a file here."""
        return self.save(self.at("transfers/{}/content/", transfer), to)

    @operation("DELETE", "/projects/{project}/transfers/{transfer}/")
    def remove_transfer(self, transfer: Key) -> None:
        """Forget a transfer, and delete its file there."""
        self.send("DELETE", self.at("transfers/{}/", transfer))

    @operation("POST", "/projects/{project}/bundles/", upload="")
    def load_bundle(self, file: str | os.PathLike[str]) -> types.Transfer:
        """Upload a bundle and have it loaded into this empty project; `wait_for_transfer` says when it is there."""
        key = self.upload(Path(file))["key"]
        return cast(types.Transfer, self.json("POST", self.at("bundles/"), json={"upload": key}))
