"""The console script: a few commands of its own, every other one is Django's (`panelbench help` lists those).

Each command is imported when it is called, so that `panelbench stats` pays for neither Django nor Celery.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

USAGE = """\
panelbench up        start web, worker and beat on this machine
panelbench demo      the same, with a demo project and a simulated judge
panelbench web       only the web server, for a container of its own
panelbench provider  only the simulated, OpenAI-compatible provider
panelbench stats     the statistics over plain files, no database needed
panelbench COMMAND   any of the commands below
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panelbench.settings")
    if arguments and arguments[0] in OWN_COMMANDS:
        return OWN_COMMANDS[arguments[0]](arguments[1:])
    if not arguments or arguments[0] in {"help", "--help", "-h"}:
        print(USAGE)
    return _django(arguments)


def _up(arguments: Sequence[str]) -> int:
    from panelbench import instance

    return instance.up(arguments)


def _demo(arguments: Sequence[str]) -> int:
    from panelbench import instance

    return instance.demo(arguments)


def _web(arguments: Sequence[str]) -> int:
    from panelbench import instance

    return instance.web(arguments)


def _provider(arguments: Sequence[str]) -> int:
    from panelbench import programs

    programs.provider(*arguments)


def _stats(arguments: Sequence[str]) -> int:
    from analytics.stats import commandline

    return commandline.main(arguments)


def _django(arguments: Sequence[str]) -> int:
    from django.core.management import execute_from_command_line

    execute_from_command_line(["panelbench", *arguments])
    return 0


OWN_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "up": _up,
    "demo": _demo,
    "web": _web,
    "provider": _provider,
    "stats": _stats,
}

if __name__ == "__main__":
    sys.exit(main())
