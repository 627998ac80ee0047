"""A plugin of pytest: a test for every decision of Panelbench about a judge. It fails where the judge may not be used.

    pytest --panelbench-gate 3 --panelbench-judge "GPT-5 mini"

or, for single tests, `@pytest.mark.panelbench_gate(campaign=3, judge="GPT-5 mini", language="et")`.
Address, token and project come from PANELBENCH_URL, PANELBENCH_TOKEN and PANELBENCH_PROJECT. Without the option and the
mark it does nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from panelbench_client import types

DECISIONS = (
    *("judge_alone", "judge_with_correction", "ranking_only", "humans_only"),
    *("insufficient", "rubric_problem", "stale"),
)
FAIL_ON = "humans_only,insufficient,rubric_problem,stale"
VARIABLES = {"url": "PANELBENCH_URL", "token": "PANELBENCH_TOKEN", "project": "PANELBENCH_PROJECT"}
NARROWING = ("judge", "criterion", "language")
DECIDED = pytest.StashKey[dict[int, "list[types.Decision]"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("panelbench", "decisions about judges (panelbench-client)")
    group.addoption(
        "--panelbench-gate", metavar="CAMPAIGN", type=int, help="a test for every decision of this campaign"
    )
    for name, metavar in (("judge", "NAME"), ("criterion", "KEY"), ("language", "TAG")):
        more = f"only this {name}, may be repeated (default: all)"
        group.addoption(f"--panelbench-{name}", metavar=metavar, action="append", default=[], help=more)
    known = f"decisions that fail, with commas (default: {FAIL_ON})"
    group.addoption("--panelbench-fail-on", metavar="DECISIONS", default=FAIL_ON, help=known)
    more = "how long to wait for a worker to compute decisions (default: 600)"
    group.addoption("--panelbench-timeout", metavar="SECONDS", type=float, default=600.0, help=more)


def pytest_configure(config: pytest.Config) -> None:
    words = "panelbench_gate(campaign, judge=, criterion=, language=, fail_on=): fail where the judge may not be used"
    config.addinivalue_line("markers", words)
    config.stash[DECIDED] = {}
    if config.getoption("panelbench_gate") is not None:
        failing_decisions(config.getoption("panelbench_fail_on"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    campaign = config.getoption("panelbench_gate")
    if campaign is None:
        return
    wanted = {name: config.getoption(f"panelbench_{name}") for name in NARROWING}
    failing = failing_decisions(config.getoption("panelbench_fail_on"))
    chosen = chosen_decisions(decided_in(config, campaign), wanted)
    if missing := nothing_decided(campaign, chosen, wanted):
        raise pytest.UsageError(missing)
    items += [
        GateItem.from_parent(session, name=name_of(campaign, decision), decision=decision, failing=failing)
        for decision in chosen
    ]


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("panelbench_gate"):
        asked = {**dict(zip(("campaign", *NARROWING), mark.args, strict=False)), **mark.kwargs}
        if "campaign" not in asked or set(asked) - {"campaign", "fail_on", *NARROWING}:
            raise pytest.UsageError("panelbench_gate takes campaign, judge, criterion, language and fail_on.")
        wanted = {
            name: [asked[name]] if isinstance(asked.get(name), str) else asked.get(name, []) for name in NARROWING
        }
        failing = failing_decisions(asked.get("fail_on", item.config.getoption("panelbench_fail_on")))
        chosen = chosen_decisions(decided_in(item.config, int(asked["campaign"])), wanted)
        if missing := nothing_decided(asked["campaign"], chosen, wanted):
            pytest.fail(missing, pytrace=False)
        if failed := [decision for decision in chosen if decision["decision"] in failing]:
            pytest.fail("\n".join(map(in_words, failed)), pytrace=False)


class DecisionFailed(Exception):
    """A decision that fails; its text says why."""


class GateItem(pytest.Item):
    """One decision as a test."""

    def __init__(self, *, decision: types.Decision, failing: frozenset[str], **more: Any) -> None:
        super().__init__(**more)
        self.decision, self.failing = decision, failing

    def runtest(self) -> None:
        if self.decision["decision"] in self.failing:
            raise DecisionFailed(in_words(self.decision))

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, DecisionFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, int | None, str]:
        return "panelbench", None, self.name


def failing_decisions(asked: str | Sequence[str]) -> frozenset[str]:
    """The decisions that fail, by name in any case; refused where there is no such decision."""
    names = asked.split(",") if isinstance(asked, str) else list(asked)
    found = frozenset(name.strip().lower() for name in names if name.strip())
    if unknown := sorted(found - set(DECISIONS)):
        raise pytest.UsageError(f"There is no decision {unknown[0]}. There are: {', '.join(DECISIONS)}.")
    if not found:
        raise pytest.UsageError("No decision fails: name at least one.")
    return found


def decided_in(config: pytest.Config, campaign: int) -> list[types.Decision]:
    """The decisions of a campaign, asked for once in a run; refused where the server has none or can't be reached."""
    from panelbench_client import Client, PanelbenchError

    known = config.stash[DECIDED]
    if campaign not in known:
        given = {name: os.environ.get(variable, "") for name, variable in VARIABLES.items()}
        if missing := [VARIABLES[name] for name, text in given.items() if not text]:
            raise pytest.UsageError(f"Set {', '.join(missing)} for Panelbench’s decisions.")
        try:
            with Client(given["url"], given["token"], project=given["project"]) as bench:
                known[campaign] = bench.wait_for_decisions(campaign, timeout=config.getoption("panelbench_timeout"))
        except (PanelbenchError, ValueError) as error:
            raise pytest.UsageError(f"Panelbench gives no decisions of campaign {campaign}: {error}") from None
    return known[campaign]


def chosen_decisions(decided: Sequence[types.Decision], wanted: Mapping[str, Sequence[str]]) -> list[types.Decision]:
    """Those of the wanted judges, criteria and languages; none means all."""
    return [
        decision
        for decision in decided
        if all(not texts or dict(decision)[name] in texts for name, texts in wanted.items())
    ]


def nothing_decided(campaign: int, chosen: Sequence[types.Decision], wanted: Mapping[str, Sequence[str]]) -> str:
    """That there is no decision to pass, about all that was asked for or about one name of it; "" where there is."""
    asked = " ".join(f"{name} {', '.join(texts)}" for name, texts in wanted.items() if texts)
    if chosen:
        known = {name: {dict(decision)[name] for decision in chosen} for name in wanted}
        missing = (f"{name} {text}" for name, texts in wanted.items() for text in texts if text not in known[name])
        asked = ", ".join(missing)
        if not asked:
            return ""
    return f"Nothing is decided in campaign {campaign}{f' about {asked}' if asked else ''}."


def name_of(campaign: int, decision: types.Decision) -> str:
    """The name of its test."""
    about = "-".join(filter(None, (decision["judge"], decision["criterion"], decision["language"])))
    return f"panelbench[{campaign}-{about}]"


def in_words(decision: types.Decision) -> str:
    """The decision, its reasons and what would change it."""
    about = " · ".join(filter(None, (decision["judge"], decision["criterion"], decision["language"])))
    lines = [f"{decision['decision'].upper()}  {about}", *(f"    {reason}" for reason in decision["reasons"])]
    lines += [f"    → {remedy['sentence']}" for remedy in decision["would_change_it"]]
    return "\n".join(lines)
