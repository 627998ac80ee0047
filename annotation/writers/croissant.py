"""Croissant 1.0: one JSON-LD document that tells machines what the files and columns of a folder of tables are.

The specification: https://docs.mlcommons.org/croissant/docs/croissant-spec.html, and its part on responsible AI:
https://docs.mlcommons.org/croissant/docs/croissant-rai-spec.html
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import IO, Any

import orjson

from annotation.writers.archives import MemberContent
from annotation.writers.tables import Column

CROISSANT_NAME = "croissant.json"
CROISSANT_TYPES = {
    "parquet": "application/x-parquet",
    "jsonl": "application/jsonlines",
    "md": "text/markdown",
    "yaml": "application/yaml",
}
"""Media types by the ending of a file, as readers of Croissant know them."""
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context of the specification, word for word: readers warn of any other."""
_DATA_TYPES = {"number": "sc:Float", "integer": "sc:Integer", "switch": "sc:Boolean", "moment": "sc:DateTime"}
_PARTS_OF_TURNS = ("speaker", "name", "text")
_CREATIVE_COMMONS = re.compile(r"cc(0|-by(-nc)?(-sa|-nd)?)-[1-4]\.[05]")
_SPDX = {
    "mit": "MIT",
    "apache-2.0": "Apache-2.0",
    "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "odbl": "ODbL-1.0",
    "odc-by": "ODC-By-1.0",
    "pddl": "PDDL-1.0",
    "cdla-permissive-1.0": "CDLA-Permissive-1.0",
    "cdla-permissive-2.0": "CDLA-Permissive-2.0",
    "cdla-sharing-1.0": "CDLA-Sharing-1.0",
}


class Digested:
    """A file that notes the size and the SHA-256 of what is written through it."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out, self._digest, self._size = out, hashlib.sha256(), 0
        self.closed = False

    def write(self, piece: bytes) -> int:
        view = memoryview(piece)
        self._out.write(view)
        self._digest.update(view)
        self._size += view.nbytes
        return view.nbytes

    def writelines(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self.write(piece)

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        self._out.flush()

    def close(self) -> None:
        """Nothing more is written; the file itself stays open."""
        self.closed = True

    @property
    def content(self) -> MemberContent:
        return MemberContent(self._size, self._digest.hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedFile:
    """A file of the folder. ``columns`` are those of a table, which ``name`` names; other files have none."""

    name: str
    path: str
    about: str
    content: MemberContent
    columns: Sequence[Column] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CroissantDataset:
    """What the document says of the whole. ``responsible``: properties of the part on responsible AI, without prefix;
    those without a value are left out. ``licence``: its name as people wrote it."""

    name: str
    description: str
    creator: str
    licence: str
    version: int
    published: date
    languages: Sequence[str]
    cite_as: str
    keywords: Sequence[str]
    files: Sequence[DescribedFile]
    responsible: Mapping[str, str | Sequence[str]] = field(default_factory=dict)

    def as_json(self) -> bytes:
        """The file `croissant.json`."""
        said = {f"rai:{name}": value for name, value in self.responsible.items() if value}
        document = {
            "@context": _CONTEXT,
            "@type": "sc:Dataset",
            "conformsTo": [
                "http://mlcommons.org/croissant/1.0",
                *(["http://mlcommons.org/croissant/RAI/1.0"] if said else []),
            ],
            "name": self.name,
            "description": self.description,
            "creator": {"@type": "sc:Organization", "name": self.creator},
            "license": licence_address(self.licence),
            "version": f"{self.version}.0.0",
            "datePublished": self.published.isoformat(),
            "inLanguage": list(self.languages),
            "citeAs": self.cite_as,
            "keywords": list(self.keywords),
            "isLiveDataset": False,
            **said,
            "distribution": [_file_object(file) for file in self.files],
            "recordSet": [_record_set(file, self.files) for file in self.files if file.columns],
        }
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def licence_address(name: str) -> str:
    """The address of a licence that SPDX lists, else its name, else that there is none."""
    word = re.sub(r"[\s_]+", "-", name.strip().lower())
    identifier = word.upper() if _CREATIVE_COMMONS.fullmatch(word) else _SPDX.get(word)
    if identifier:
        return f"https://spdx.org/licenses/{identifier}.html"
    return name.strip() or "No licence was given: ask before you use the texts."


def _file_object(file: DescribedFile) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path,
        "description": file.about,
        "contentUrl": file.path,
        "contentSize": f"{file.content.bytes} B",
        "encodingFormat": CROISSANT_TYPES[file.path.rpartition(".")[2]],
        "sha256": file.content.sha256,
    }


def _record_set(file: DescribedFile, files: Sequence[DescribedFile]) -> dict[str, Any]:
    has_items = any(each.name == "items" for each in files)
    is_items = file.name == "items"
    return {
        "@type": "cr:RecordSet",
        "@id": file.name,
        "name": file.name,
        "description": file.about,
        **({"key": {"@id": "items/id"}} if is_items else {}),
        "field": list(_fields(file, refers_to_items=has_items and not is_items)),
    }


def _fields(file: DescribedFile, *, refers_to_items: bool) -> Iterator[dict[str, Any]]:
    for column in file.columns:
        identifier = f"{file.name}/{column.name}"
        source = {"fileObject": {"@id": file.path}, "extract": {"column": column.name}}
        described: dict[str, Any] = {"@type": "cr:Field", "@id": identifier, "name": column.name}
        if column.kind == "turns":
            described["repeated"] = True
            described["subField"] = [
                {
                    "@type": "cr:Field",
                    "@id": f"{identifier}/{part}",
                    "name": part,
                    "dataType": "sc:Text",
                    "source": {**source, "transform": {"jsonPath": part}},
                }
                for part in _PARTS_OF_TURNS
            ]
            yield described
            continue
        if column.kind == "object":
            described["description"] = "JSON text"
        described["dataType"] = _DATA_TYPES.get(column.kind, "sc:Text")
        if column.kind == "texts":
            described["repeated"] = True
        described["source"] = source
        if refers_to_items and column.name == "item":
            described["references"] = {"field": {"@id": "items/id"}}
        yield described
