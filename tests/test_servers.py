"""What servers are told: the compose file, read by docker-compose itself, and the example of its environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from panelbench import environment
from panelbench.celery import QUEUES

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = shutil.which("docker-compose")
Config = Callable[..., subprocess.CompletedProcess[str]]
GIVEN = {
    "SECRET_KEY": "k" * 50,
    "POSTGRES_PASSWORD": "p" * 20,
    "ALLOWED_HOSTS": "bench.example.org",
    "EMAIL_URL": "smtp://mail.example.org:25",
}

pytestmark = pytest.mark.skipif(COMPOSE is None, reason="no docker-compose")


@pytest.fixture(scope="module")
def compose(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """`docker-compose config` on a copy of the file that has no .env beside it, with these variables only."""
    folder = tmp_path_factory.mktemp("compose")
    shutil.copy(ROOT / "docker-compose.yml", folder)

    def config(**variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
        command = [str(COMPOSE), "config"]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    return config


@pytest.fixture(scope="module")
def services(compose: Config) -> dict[str, Any]:
    shown = compose(**GIVEN)
    assert shown.returncode == 0, shown.stderr
    return dict(yaml.safe_load(shown.stdout)["services"])


def test_every_part_of_an_instance_has_a_service_and_a_health_check(services: dict[str, Any]) -> None:
    assert set(services) == {"postgres", "redis", "migrate", "web", "worker", "imports", "judging", "beat"}
    assert {name for name, service in services.items() if "healthcheck" not in service} == {"migrate"}


def test_our_own_services_cannot_write_outside_their_data(services: dict[str, Any]) -> None:
    for name in ("migrate", "web", "worker", "imports", "judging", "beat"):
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("missing", sorted(GIVEN))
def test_it_refuses_to_start_without_a_secret(compose: Config, missing: str) -> None:
    shown = compose(**{name: value for name, value in GIVEN.items() if name != missing})
    assert shown.returncode != 0
    assert missing in shown.stderr


def test_no_service_has_a_secret_of_its_own() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    assert re.findall(r"(?:SECRET_KEY|PASSWORD|API_KEY): (?!\$\{)\S+", text) == []
    assert re.findall(r"\$\{(?:SECRET_KEY|POSTGRES_PASSWORD):?-[^}]", text) == []


def test_the_example_names_every_variable_that_must_be_given() -> None:
    named = set(re.findall(r"^([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert set(GIVEN) <= named


def test_every_service_is_limited_and_starts_again(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert re.fullmatch(r"[1-9]\d*[mg]?", str(service["mem_limit"])), name
        assert 0 < service["pids_limit"] <= 300, name
        assert float(service["cpus"]) > 0, name
        assert service["restart"] == ("no" if name == "migrate" else "always")


def test_only_the_worker_of_judges_has_the_key_of_a_provider(compose: Config) -> None:
    shown = compose(**GIVEN, OPENAI_API_KEY="sk-very-private", OPENAI_BASE_URL="https://api.example.org/v1")
    assert shown.returncode == 0, shown.stderr
    found = yaml.safe_load(shown.stdout)["services"]
    holders = {name for name, service in found.items() if "sk-very-private" in str(service)}
    assert holders == {"judging"}
    web = found["web"]["environment"]
    assert (
        set(environment.declared_providers(web))
        == set(environment.declared_providers(found["judging"]["environment"]))
        == {"openai"}
    )


def test_each_queue_is_served_by_one_service(services: dict[str, Any]) -> None:
    commands = {name: service.get("command") or [] for name, service in services.items()}
    served = {name: words[words.index("-Q") + 1].split(",") for name, words in commands.items() if "-Q" in words}
    assert served == {"worker": ["analytics", "default"], "imports": ["imports"], "judging": ["judging"]}
    assert sorted(queue for queues in served.values() for queue in queues) == sorted(QUEUES)


def test_images_may_be_named_by_digest(compose: Config) -> None:
    pinned = f"registry.example.org/postgres@sha256:{'0' * 64}"
    shown = compose(**GIVEN, POSTGRES_IMAGE=pinned, REDIS_IMAGE=pinned, PYTHON_IMAGE=pinned)
    found = yaml.safe_load(shown.stdout)["services"]
    assert [found[name]["image"] for name in ("postgres", "redis")] == [pinned, pinned]
    assert found["web"]["build"]["args"] == {"PYTHON_IMAGE": pinned}


# --- variables --------------------------------------------------------------------------------------------------------
IN_IMAGE = {"PANELBENCH_DATA_DIR", "STATIC_ROOT"}
ON_NO_SERVER = {"DEBUG", "PANELBENCH_DEMO"}


def documented() -> set[str]:
    text = (ROOT / "docs" / "operations.md").read_text()
    table = text[text.index("## Variables") : text.index("A variable with an invalid value")]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", cell)}


def test_every_documented_variable_is_read_and_reaches_the_services(services: dict[str, Any]) -> None:
    """12 of 34 did, and nothing said that the others had no effect."""
    settings = (ROOT / "platform" / "panelbench" / "settings.py").read_text()
    read = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', settings))
    assert documented() == set(environment.KNOWN) - {"PANELBENCH_DEMO"}
    assert read | {"PANELBENCH_PROVIDERS", "OPENAI_API_KEY", "OPENAI_BASE_URL"} == set(environment.KNOWN)
    passed = documented() - IN_IMAGE - ON_NO_SERVER
    for name in ("migrate", "web", "worker", "imports", "judging", "beat"):
        wanted = passed if name == "judging" else passed - {"OPENAI_API_KEY"}
        assert set(services[name]["environment"]) == wanted, name


def test_a_value_of_a_variable_reaches_every_service(compose: Config) -> None:
    shown = compose(**GIVEN, SESSION_HOURS="77", WEBHOOK_NETWORKS="10.9.0.0/16", DEBUG="1")
    for name in ("migrate", "web", "worker", "imports", "judging", "beat"):
        passed = yaml.safe_load(shown.stdout)["services"][name]["environment"]
        assert (passed["SESSION_HOURS"], passed["WEBHOOK_NETWORKS"]) == ("77", "10.9.0.0/16")
        assert "DEBUG" not in passed


def test_no_log_grows_for_ever(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["logging"] == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "5"}}, name
