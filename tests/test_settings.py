"""Variables of the environment: what is not understood stops the start, and what is unsafe is listed."""

from __future__ import annotations

import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from panelbench import environment
from tests.test_cli import panelbench

SERVER = {
    "SECRET_KEY": secrets.token_urlsafe(50),
    "DATABASE_URL": "postgres://nobody@127.0.0.1:9/none",
    "ALLOWED_HOSTS": "bench.example.org",
    "EMAIL_URL": "smtp+tls://me:secret@mail.example.org:587",
}
NONSENSE = {
    "PANELBENCH_SECURE": "ture",
    "DEBUG": "maybe",
    "BEHIND_PROXY": "2",
    "TRUSTED_PROXIES": "10.0.0.300/8",
    "ALLOWED_HOSTS": "*",
    "CSRF_TRUSTED_ORIGINS": "bench.example.org",
    "DATABASE_POOL_MAX": "0",
    "DATABASE_POOL_MIN": "-1",
    "UPLOAD_LIMIT_MB": "-5",
    "API_RATE_ANONYMOUS": "0/min",
    "API_RATE_USER": "many",
    "SHARED_RATE": "-1/min",
    "WEBHOOK_NETWORKS": "10.0.0.0/8,,192.168.0.0/16",
    "LOG_LEVEL": "LOUD",
    "LOG_FORMAT": "xml",
    "REDIS_URL": "localhost:6379",
    "DATABASE_URL": "mysql://here/there",
    "EMAIL_URL": "mail.example.org",
    "PANELBENCH_OIDC": "{",
}


@pytest.mark.parametrize(("name", "value"), NONSENSE.items())
def test_nonsense_in_a_variable_is_refused_with_its_name(tmp_path: Path, name: str, value: str) -> None:
    shown = panelbench("up", "--port", "0", cwd=tmp_path, **{**SERVER, name: value})
    assert shown.returncode == 2, shown.stderr
    assert f"cannot start: {name}" in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize("hosts", ["https://bench.example.org", "bench.example.org:443", "a b", "*.example.org"])
def test_what_is_no_host_name_is_refused(tmp_path: Path, hosts: str) -> None:
    shown = panelbench("up", "--port", "0", cwd=tmp_path, **{**SERVER, "ALLOWED_HOSTS": hosts})
    assert (shown.returncode, "ALLOWED_HOSTS" in shown.stderr) == (2, True)


def test_the_deploy_check_lists_in_words_what_is_unsafe(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    unsafe = {
        "PANELBENCH_SECURE": "off",
        "PANELBENCH_DEMO": "on",
        "ALLOWED_HOSTS": "",
        "EMAIL_URL": "consolemail://",
        "CSRF_TRUSTED_ORIGINS": "http://bench.example.org",
        "WEBHOOK_NETWORKS": "10.0.0.0/8",
        "PANELBENCH_DATA_DIR": str(tmp_path),
        "PANELBENCH_PROVIDERS": '[{"name": "near", "base_url": "http://10.0.0.5/v1", "key_variable": "NEAR_KEY"}]',
    }
    shown = panelbench("check", "--deploy", cwd=tmp_path, **{**SERVER, **unsafe}).stderr
    for number in (1, 3, 4, 5, 6, 7, 9, 10):
        assert f"panelbench.W{number:03d}" in shown, number
    assert str(tmp_path) in shown


def test_the_deploy_check_has_nothing_to_say_of_the_documented_setup(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    documented = {"TRUSTED_PROXIES": "1", "PANELBENCH_DATA_DIR": str(tmp_path)}
    shown = panelbench("check", "--deploy", cwd=tmp_path, **{**SERVER, **documented})
    said = {word.strip("?:()") for word in shown.stderr.split() if ".W" in word}
    assert said <= {"panelbench.W008", "security.W021"}, shown.stderr  # tests may run as root; no preload of HSTS


@pytest.mark.parametrize(
    ("name", "meant"),
    {
        "PANELBENCH_PROVIDRES": "PANELBENCH_PROVIDERS",
        "ALOWED_HOSTS": "ALLOWED_HOSTS",
        "SESSION_HOUR": "SESSION_HOURS",
        "WEBHOOKS_NETWORKS": "WEBHOOK_NETWORKS",
        "panelbench_secure": "PANELBENCH_SECURE",
        "PANELBENCH_LOG_LEVEL": "LOG_LEVEL",
        "PANELBENCH_SECRET_KEY": "SECRET_KEY",
    }.items(),
)
def test_a_misspelt_name_of_a_variable_is_said_with_the_nearest_one(tmp_path: Path, name: str, meant: str) -> None:
    assert [sentence for sentence in environment.misspelt_names({name: "x"}) if name in sentence and meant in sentence]
    if name == "PANELBENCH_PROVIDRES":
        shown = panelbench("check", cwd=tmp_path, **{name: "x"})
        assert name in shown.stderr and meant in shown.stderr
        shown = panelbench("web", "--port", "1", "--host", "203.0.113.1", cwd=tmp_path, **{name: "x"})
        assert f"panelbench: the variable {name} is not known and not read. Did you mean {meant}?" in shown.stderr


def test_a_misspelt_name_in_a_file_is_said_although_docker_compose_passes_it_to_nobody() -> None:
    written = (
        "# SESION_HOURS=1\n\nSECRET_KEY='x y'\nexport SESSION_HOUR=77\nALOWED_HOSTS=\"a,b\"\nPOSTGRES_PASSWORD=p=q\n"
    )
    command = [sys.executable, "-m", "panelbench.cli", "variables"]
    shown = subprocess.run(command, input=written, capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (1, "")
    assert re.findall(r"the variable (\w+) .* Did you mean (\w+)", shown.stdout) == [
        ("ALOWED_HOSTS", "ALLOWED_HOSTS"),
        ("SESSION_HOUR", "SESSION_HOURS"),
    ]
    example = (Path(__file__).parents[1] / ".env.example").read_text(encoding="utf-8")
    right = subprocess.run(command, input=example.replace("# ", ""), capture_output=True, text=True, check=False)
    assert (right.returncode, right.stdout) == (0, ""), "every variable of the example is known"


def test_variables_of_others_are_none_of_ours() -> None:
    declared = '[{"name": "near", "base_url": "https://near.example/v1", "key_variable": "PANELBENCH_NEAR_KEY"}]'
    ordinary = {"PATH": "/bin", "HOME": "/root", "LANG": "C", "LOGNAME": "me", "EMAIL": "me@here", "PYTHONPATH": "."}
    ordinary |= {"POSTGRES_PASSWORD": "x", "WEB_MEMORY": "2g", "DATABASE_NAME": "x", "REDIS_HOST": "x", "LOG_FILE": "x"}
    ours = {"PANELBENCH_PROVIDERS": declared, "PANELBENCH_NEAR_KEY": "sk", "SECRET_KEY": "x" * 50}
    assert environment.misspelt_names({**ordinary, **ours}) == []
