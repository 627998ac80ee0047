"""`make audit`: risky code, secrets in the repository, and dependencies with known vulnerabilities.

Ends with 1 if any of the three finds something. Where the database of vulnerabilities (api.osv.dev) can't be reached
the last one says that it was not checked, and does not fail: a machine without the internet can't do better.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

DATABASE = "https://api.osv.dev/"
REQUIREMENTS = ("requirements/base.txt", "requirements/dev.txt")
PATIENCE = 10.0  # seconds
LARGEST = 2_000_000  # bytes; what is larger is data
HARMLESS = "not a secret"  # a line that says so is passed over
SECRETS = {
    "private key": re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s*\n?[A-Za-z0-9+/=\s]{40,}"),
    "token of this product": re.compile(r"\bpb_[A-Za-z0-9_-]{43}\b"),
    "key of a model provider": re.compile(r"\b(?:sk-(?:proj-|ant-)?|gsk_|hf_|xai-)[A-Za-z0-9_-]{24,}\b"),
    "key of a cloud": re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{35}\b"),
    "token of a forge or chat": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|glpat-[\w-]{20}|xox[abprs]-[\w-]{12,})\b"),
    "signed token": re.compile(r"\beyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    "password in an address": re.compile(
        r"\b(?:postgres(?:ql)?|redis|amqp|smtp\+?\w*|https?)://[^\s:/@]+:(?P<value>[^\s@/{}$<>]{6,})@"
    ),
    "secret that is assigned": re.compile(
        r"""(?i)\b(?:secret_key|api_?key|passwo?r?d|token)["']?\s*[:=]\s*["'](?P<value>[A-Za-z0-9+/_=-]{24,})["']"""
    ),
}
PLACEHOLDERS = re.compile(r"(?i)pass|secret|change|example|xxx|\.\.\.|user|key$")


def secrets_in(text: str) -> list[tuple[int, str]]:
    """Line numbers and kinds of what looks like a secret."""
    lines = text.splitlines()
    found = []
    for kind, pattern in SECRETS.items():
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            value = match.groupdict().get("value")
            if not (value and PLACEHOLDERS.search(value)) and HARMLESS not in lines[line - 1]:
                found.append((line, kind))
    return sorted(found)


def in_files(paths: Iterable[Path]) -> list[str]:
    """One sentence for every secret in these files."""
    found = []
    for path in paths:
        if path.is_file() and path.stat().st_size <= LARGEST:
            text = path.read_bytes().decode("utf-8", "replace")
            found += [f"{path}:{line}: {kind}" for line, kind in secrets_in(text)]
    return found


def vulnerabilities(report: str) -> list[str]:
    """One sentence for every finding in pip-audit's JSON; raises ``ValueError`` when it is none."""
    packages: list[dict[str, Any]] = json.loads(report)["dependencies"]
    return [
        f"{package['name']} {package['version']}: {found['id']}, mended in {', '.join(found['fix_versions']) or 'none'}"
        for package in packages
        for found in package.get("vulns", ())
    ]


def is_reachable(address: str = DATABASE) -> bool:
    """Whether the database answers at all."""
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE):
            return True
    except urllib.error.HTTPError as error:  # it answered; a proxy that lets nothing through answers 403 or 407
        return error.code not in (403, 407, 502, 503, 504)
    except OSError:
        return False


def _code() -> list[str]:
    # S311 is off everywhere: pyproject.toml says why.
    command = [sys.executable, "-m", "ruff", "check", "--select", "S", "--ignore", "S311", "."]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return [ran.stdout.strip() or ran.stderr.strip()] if ran.returncode else []


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True)
    return [Path(name) for name in listed.stdout.split("\0") if name]


def _dependencies() -> list[str]:
    command = [sys.executable, "-m", "pip_audit", "--vulnerability-service", "osv", "--disable-pip", "--require-hashes"]
    command += ["--format", "json", "--progress-spinner", "off"]
    found: list[str] = []
    for file in REQUIREMENTS:
        ran = subprocess.run([*command, "--requirement", file], capture_output=True, text=True, check=False)
        try:
            found += vulnerabilities(ran.stdout)
        except (ValueError, KeyError):
            found.append(f"pip-audit could not check {file}: {ran.stderr.strip()[-500:]}")
    return found


def report_findings(name: str, found: Sequence[str]) -> bool:
    """Print one part's outcome; whether it found nothing."""
    print(f"{name}: {len(found) or 'no'} finding{'s' if len(found) != 1 else ''}")
    for sentence in found:
        print(f"  {sentence}")
    return not found


def _main() -> int:
    """All three parts; returns the exit code."""
    clean = [report_findings("code (ruff's S rules)", _code()), report_findings("secrets", in_files(_tracked()))]
    if is_reachable():
        clean.append(report_findings("dependencies", _dependencies()))
    else:
        print(f"dependencies: not checked: the database can't be reached ({DATABASE})")
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(_main())
