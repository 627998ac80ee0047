"""The `panelbench` command: a few commands of its own; all others are Django's (`panelbench help` lists them).

Commands import their modules when they run, so that `panelbench stats` loads neither Django nor Celery.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Callable, Sequence

FAILED = 3  # the exit status of a command that its disk, its database or its reader let down
UNANSWERED = 2  # of a command that asks a question which nobody answers, because there is no terminal
INTERRUPTED = 130  # of a command that Ctrl-C ends, as shells count it
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FULL_DATABASE = ("database or disk is full", "No space left on device", "disk I/O error")
USAGE = """\
panelbench up        start web, worker and beat on this machine
panelbench demo      the same, with a demo project and a simulated judge
panelbench web       only the web server, for a container of its own
panelbench provider  only the simulated, OpenAI-compatible provider
panelbench variables whether a file such as .env, on standard input, names a variable that nobody reads
panelbench stats     the statistics over plain files, no database needed
panelbench COMMAND   any of the commands below
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panelbench.settings")
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads any more; what is still buffered must not fail once again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _failed("The output was closed before its end.")
    except KeyboardInterrupt:
        return _failed("\nInterrupted.", INTERRUPTED)
    except Exception as error:
        if "--traceback" in arguments or not (sentence := _sentence(error)):
            raise
        return _failed(sentence, UNANSWERED if _is_unanswered(error) else FAILED)


def _run(arguments: list[str]) -> int:
    if arguments and arguments[0] in OWN_COMMANDS:
        return OWN_COMMANDS[arguments[0]](arguments[1:])
    if not arguments or arguments[0] in {"help", "--help", "-h"}:
        print(USAGE)
    return _django(arguments)


def _failed(sentence: str, status: int = FAILED) -> int:
    print(sentence, file=sys.stderr)
    return status


def _is_unanswered(error: Exception) -> bool:
    """Whether `input` or `getpass` found no terminal and no further line to read."""
    return isinstance(error, EOFError) or "lost sys.stdin" in str(error)


def _sentence(error: Exception) -> str:
    """The message for an error of the disk, the database or the terminal; "" for an error of the command itself."""
    if _is_unanswered(error):
        return "\nThe command asks a question, and there is no terminal to answer it. Give --yes if the command has it."
    cause = error.__cause__ or error
    sentence = str(error).strip().partition("\n")[0]
    if getattr(error, "errno", None) in FULL or any(words in str(cause) for words in FULL_DATABASE):
        return "The disk is full. Free some space, then run the command again."
    if type(error).__name__ not in ("OperationalError", "ProgrammingError"):
        return ""
    if "no such table" in sentence or ("relation" in sentence and "does not exist" in sentence):
        return "The database has no tables of this version yet. Run `panelbench migrate` first."
    if type(error).__name__ == "ProgrammingError":
        return ""
    if "locked" in sentence:
        return "The database is locked: another process is writing to it. Run the command again when that has ended."
    return f"The database can't be used: {sentence}"


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
    from panelbench import instance

    instance.run_provider(*arguments)


def _variables(_arguments: Sequence[str]) -> int:
    """docker-compose passes only the names in its file, so that no container can notice a misspelt one in .env."""
    from panelbench import environment

    for sentence in (sentences := environment.misspelt_names(environment.variables_in(sys.stdin))):
        print(sentence)
    return int(bool(sentences))


def _stats(arguments: Sequence[str]) -> int:
    from analytics.stats.cli import commandline

    return commandline.run_command(arguments)


def _django(arguments: Sequence[str]) -> int:
    from django.core.management import execute_from_command_line

    gc.set_threshold(50_000, 20, 20)  # 1,400 modules are read and stay: going through them costs a tenth of the start
    execute_from_command_line(["panelbench", *arguments])
    return 0


OWN_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "up": _up,
    "demo": _demo,
    "web": _web,
    "provider": _provider,
    "variables": _variables,
    "stats": _stats,
}

if __name__ == "__main__":
    sys.exit(main())
