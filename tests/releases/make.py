"""Makes the fixture of a release: its demo, with work under way, as a power cut leaves it.

For the release that is about to be left behind, from a checkout of it:

    git clone --branch v0.1.0 . /tmp/release      # or: git -C /tmp/release checkout 2a323fe
    .venv/bin/python -m tests.releases.make /tmp/release tests/releases/0.1.0.tar.xz

The archive is the data directory of an embedded instance: the SQLite file and the uploads. In it: the demo's project
with its annotations; an annotator's submission and another's draft; two judges' runs half done, with calls in flight; a
dataset's import that was being stored, and one that waits to be; a file half uploaded; a webhook, a link for reviewers,
an invitation. All texts are the demo's own or made up here. Then add the archive's name and the changes that later
versions make on purpose to tests/releases/test_migrating.py. An archive, once in, is never made anew.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path

import httpx

from tests.releases.running import Person, environment, running_release, wait_for

LEAD = "lead@demo.panelbench.test"
DIALOGUES = 18_000  # lines of the large import: about 5 MB, which a worker stores
LARGEST = 500_000  # bytes of the archive


def many_dialogues(count: int, name: str) -> bytes:
    """So many short dialogues, much alike, so that they pack well."""
    turns = [
        {"speaker": "customer", "text": "Hello, my parcel has not arrived, and the tracking page shows nothing new."},
        {"speaker": "agent", "text": "I am sorry to hear that. May I have the number of your order, please?"},
    ]
    row = {"language": "en", "generator": "atlas", "turns": turns}
    return b"".join(json.dumps({"id": f"{name}{number}", **row}).encode() + b"\n" for number in range(count))


def fill(address: str, provider: str) -> None:
    """Use the instance as its people do, until everything named above is under way."""
    with Person(address, LEAD) as lead:
        (campaign,) = lead.api("GET", "projects/demo/campaigns/")["results"]
        said = {"address": "https://127.0.0.1:9/in", "events": ["run.finished"]}
        webhook = lead.api("POST", "projects/demo/webhooks/", said)["id"]
        lead.api("PATCH", f"projects/demo/webhooks/{webhook}/", {"on": False})  # nobody is there to receive
        lead.api("POST", "projects/demo/shares/", {"campaign": campaign["id"], "label": "Reviewers"})
        lead.post("/p/demo/people/", role="annotator", note="A reader to come", languages="et", days="14")
        _annotate(address)

        wait_for(lambda: sum(run["settled"] for run in lead.progress("demo")) >= 40, "a part of the judges' calls")
        httpx.post(f"{provider}/control", json={"latency": 60}).raise_for_status()
        lead.upload("demo", "half.jsonl", many_dialogues(200, "h"), only=9_000)
        waits = lead.upload("demo", "waits.jsonl", many_dialogues(20, "w"))
        said = {"uploads": [waits], "kind": "dataset", "target": {"name": "Waiting to be stored"}}
        lead.api("POST", "projects/demo/intakes/", said)
        large = lead.upload("demo", "large.jsonl", many_dialogues(DIALOGUES, "l"))
        said = {"uploads": [large], "kind": "dataset", "target": {"name": "Being stored"}}
        intake = lead.api("POST", "projects/demo/intakes/", said)["id"]
        there = f"projects/demo/intakes/{intake}/"
        wait_for(lambda: lead.api("GET", there)["state"] == "uploaded", "the check of the large file")
        lead.api("POST", f"{there}store/")
        wait_for(lambda: lead.api("GET", there)["state"] == "storing", "the import to be stored")


def _annotate(address: str) -> None:
    """One annotator submits an item, another leaves a draft."""
    content = Path(__file__).parents[2] / "platform" / "panelbench" / "demo" / "content" / "panel.yaml"
    import yaml

    panels = yaml.safe_load(content.read_text("utf-8"))["panels"]
    first, second = (panel["seats"][0]["email"] for panel in panels[:2])
    with Person(address, first) as person:
        key, scores = person.take()
        answer = person.post(f"/desk/at/{key}/submit/", key=key, seconds="21", **scores)
        assert answer.status_code == 302, answer.text[-800:]
    with Person(address, second) as person:
        key, scores = person.take()
        name, score = next(iter(scores.items()))
        assert person.post(f"/desk/at/{key}/draft/", seconds="7", **{name: score}).status_code == 302


def pack(folder: Path, to: Path) -> None:
    """The database, whole in one file, and the uploads."""
    database = folder / "panelbench.sqlite3"
    whole = folder / "whole.sqlite3"
    with closing(sqlite3.connect(database, isolation_level=None, timeout=30)) as connection:
        assert connection.execute("SELECT 1 FROM annotation_intake WHERE state = 'storing'").fetchall()
        connection.execute("VACUUM INTO ?", [str(whole)])
    with tarfile.open(to, "w:xz", preset=9) as archive:
        archive.add(whole, database.name)
        archive.add(folder / "uploads", "uploads")
    size = to.stat().st_size
    print(f"{to}: {size:,} bytes")
    if size > LARGEST:
        raise SystemExit(f"larger than {LARGEST:,} bytes: make the demo or the import smaller")


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("code", type=Path, help="a checkout of the release")
    parser.add_argument("archive", type=Path, help="where the fixture goes")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="panelbench-release-"))
    serve = [sys.executable, "-m", "panelbench.provider", "--port", "0", "--latency", "0.3"]
    variables = environment(
        folder / "instance", providers="", code=asked.code.resolve(), WEBHOOK_NETWORKS="127.0.0.0/8"
    )
    provider = subprocess.Popen(serve, env=variables, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert provider.stdout
        base_url = provider.stdout.readline().strip()
        declared = json.dumps([{"name": "simulated", "base_url": base_url, "simulated": True}])
        variables["PANELBENCH_PROVIDERS"] = declared
        with running_release(variables, "--concurrency", "4", command="demo", log=folder / "log") as address:
            fill(address, base_url.removesuffix("/v1"))
        pack(folder / "instance", asked.archive)
    finally:
        provider.terminate()
        provider.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    _main()
