"""What langcodes, Babel alone and standardwebhooks answer to the cases of ``bench/libraries.py``.

``bench/libraries.py`` runs this file with an interpreter that has the packages: the cases as JSON on standard input,
the answers on standard output. An answer is a text, or null where the package refuses.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any


def langcodes_canonical(tag: str, *, macro: bool = False) -> str:
    """The shortest adapter that refuses what is not valid."""
    langcodes = import_module("langcodes")
    standard = str(langcodes.standardize_tag(tag.strip(), macro=macro))
    if not langcodes.Language.get(standard, normalize=False).is_valid():
        raise ValueError(tag)
    return standard


def langcodes_macro(tag: str) -> str:
    return langcodes_canonical(tag, macro=True)


def babel_canonical(tag: str) -> str:
    """What Babel's own parser makes of a tag, without any code of ours."""
    babel = import_module("babel")
    parsed = babel.Locale.parse(tag.strip().replace("_", "-"), sep="-")
    return str(parsed).replace("_", "-")


def langcodes_script(tag: str) -> str:
    return str(import_module("langcodes").Language.get(tag).maximize().script)


def langcodes_names(tag: str) -> str:
    language = import_module("langcodes").Language.get(tag)
    return f"{language.autonym()} / {language.display_name()}"


def standard_received(case: dict[str, Any]) -> str:
    """``ok``, ``forged``, or the name of an exception that the package does not document."""
    webhooks = import_module("standardwebhooks.webhooks")
    try:
        webhooks.Webhook(case["secret"]).verify(base64.b64decode(case["body"]), case["headers"])
    except webhooks.WebhookVerificationError:
        return "forged"
    except ValueError as error:
        return type(error).__name__
    return "ok"


def standard_signed(case: dict[str, Any]) -> str:
    webhook = import_module("standardwebhooks.webhooks").Webhook(case["secret"])
    return str(
        webhook.sign(case["key"], datetime.fromtimestamp(case["now"], UTC), base64.b64decode(case["body"]).decode())
    )


def answers(function: Callable[[Any], str], cases: list[Any]) -> list[str | None]:
    return [_answer(function, case) for case in cases]


def _answer(function: Callable[[Any], str], case: Any) -> str | None:
    try:
        return function(case)
    except ValueError as error:
        return None if type(error) is ValueError or "Tag" in type(error).__name__ else type(error).__name__
    except Exception as error:  # noqa: BLE001 (which exception comes is what is measured)
        return None if "Locale" in type(error).__name__ else type(error).__name__


def measured_cost(function: Callable[[Any], str], cases: list[Any]) -> dict[str, float]:
    """Milliseconds of CPU time and MB of memory until the first answers are there, and microseconds for each later."""
    memory, began = _memory(), time.process_time()
    answers(function, cases)
    first, memory = time.process_time() - began, _memory() - memory
    began = time.process_time()
    for _ in range(20):
        answers(function, cases)
    later = (time.process_time() - began) / 20 / len(cases)
    return {"first_ms": first * 1e3, "memory_mb": memory, "later_us": later * 1e6}


def _memory() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


FUNCTIONS: dict[str, dict[str, Callable[[Any], str]]] = {
    "canonical": {"langcodes": langcodes_canonical, "langcodes, macro": langcodes_macro, "babel": babel_canonical},
    "script": {"langcodes": langcodes_script},
    "names": {"langcodes": langcodes_names},
    "received": {"standardwebhooks": standard_received},
    "signed": {"standardwebhooks": standard_signed},
}


def _main() -> None:
    """``library_answers.py QUESTION PACKAGE``: one package in one process, so that memory is its own."""
    question, package = sys.argv[1:]
    function, cases = FUNCTIONS[question][package], json.load(sys.stdin)
    measured = measured_cost(function, cases)
    name = package.partition(",")[0]
    print(json.dumps({"version": version(name), "answers": answers(function, cases), **measured}))


if __name__ == "__main__":
    _main()
