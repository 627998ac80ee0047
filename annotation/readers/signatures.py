"""What a file is by its first bytes, whatever it is called."""

from __future__ import annotations

from annotation.readers.problems import FormatError, Problem

OLD_EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # also what a workbook with a password is wrapped in

_KINDS = {
    b"PK\x03\x04": ("a zip archive or an Excel workbook", "the ending .zip or .xlsx, or text saved as UTF-8"),
    b"\x1f\x8b": ("a gzip file", "the ending .gz, or the file unpacked"),
    b"PAR1": ("a Parquet file", "the ending .parquet, or text saved as UTF-8"),
    OLD_EXCEL: ("an old Excel file (.xls)", "it saved as .xlsx, or as text in UTF-8"),
    b"BZh": ("a bzip2 file", "the file unpacked, or compressed with gzip"),
    b"\xfd7zXZ\x00": ("an xz file", "the file unpacked, or compressed with gzip"),
    b"\x28\xb5\x2f\xfd": ("a zstd file", "the file unpacked, or compressed with gzip"),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", "the files unpacked, or in one .zip"),
    b"%PDF-": ("a PDF document", "a file of data"),
    b"SQLite format 3\x00": ("an SQLite database", "its table exported as CSV"),
}


def require_text(name: str, head: bytes) -> None:
    """Raises ``FormatError`` where the first bytes of a file say that it is no text."""
    for signature, (found, expected) in _KINDS.items():
        if head.startswith(signature):
            raise FormatError(Problem(name, None, None, found, expected, "format"))
