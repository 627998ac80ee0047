"""Write the parts of the documentation that come from the code: the codes of refusals, and values of constants.

docs/refusals.md is a table of all codes. In the other pages the number after the full name of a constant,
`annotation.imports.storage.STAGE` (20,000), is its value. For a checkout; a test fails where a page is not up to date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from accounts.refusal_codes import CODES

CONSTANT = re.compile(r"\b((?:[a-z_]+\.)+)([A-Z][A-Z_]*)(`?) \([\d,.]+\)")
REFUSALS = """# Codes of refusals

An error of the API is `{"code", "detail", "fields"}`: `detail` says in the language of the request what to do, `code`
is for programs and never changes its meaning. What the API refuses in the present state is answered with 409, what it
refuses because of inputs with 422 (`fields` names them), what a disk or a database prevents with 503 or 507. Besides
these there are the codes of requests that reach nothing: `not_authenticated`, `authentication_failed`,
`second_factor_required`, `permission_denied`, `not_found`, `method_not_allowed`, `not_acceptable`,
`unsupported_media_type`, `parse_error`, `throttled`.

`manage.py reference` writes this page from `accounts/refusal_codes.py`.

| code | meaning |
|---|---|
"""


def reference_pages(docs: Path) -> Iterator[tuple[Path, str]]:
    """The pages with parts that come from the code, with their up-to-date text."""
    yield docs / "refusals.md", REFUSALS + "".join(f"| `{code}` | {CODES[code]} |\n" for code in sorted(CODES))
    for path in sorted(docs.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if CONSTANT.search(text):
            yield path, CONSTANT.sub(_with_value, text)


def _with_value(found: re.Match[str]) -> str:
    module, name, quote = found.groups()
    return f"{module}{name}{quote} ({getattr(import_module(module.rstrip('.')), name):,})"


class Command(BaseCommand):
    help = "Write what docs/ takes from the code: codes of refusals and values of constants."

    def handle(self, *args: Any, **options: Any) -> None:
        for path, text in reference_pages(settings.CHECKOUT_DIR / "docs"):
            path.write_text(text, encoding="utf-8")
            self.stdout.write(str(path))
