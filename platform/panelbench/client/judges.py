"""Judges, their runs and their verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast
from uuid import uuid4

from panelbench.client import types
from panelbench.client.wire import Wire, operation


class Judges(Wire):
    @operation("GET", "/projects/{project}/judges/")
    def judges(self) -> Iterator[types.DeclaredJudge]:
        """The project's judges, run here or imported."""
        return self.pages(self.at("judges/"))

    @operation("POST", "/projects/{project}/judges/")
    def declare_judge(
        self,
        name: str,
        *,
        provider: str,
        model: str,
        parameters: Mapping[str, Any] | None = None,
        variant: types.Variant | None = None,
        timeout: int | None = None,
        tries: int | None = None,
        concurrency: int | None = None,
    ) -> types.DeclaredJudge:
        """Declare a judge; the same configuration again is the judge there is.

        ``timeout`` (seconds for a reply), ``tries`` of a call and ``concurrency`` (calls in flight) change no verdict:
        given for a judge that there is, they are set anew.
        """
        said: dict[str, Any] = {"name": name, "provider": provider, "model": model}
        paced = {"timeout": timeout, "tries": tries, "concurrency": concurrency}
        said |= {name: number for name, number in paced.items() if number is not None}
        chosen = {"parameters": dict(parameters or {}), "variant": dict(variant or {})}
        return cast(types.DeclaredJudge, self.json("POST", self.at("judges/"), json=said | chosen, repeatable=True))

    @operation("GET", "/projects/{project}/judges/{judge}/")
    def judge(self, judge: int) -> types.DeclaredJudge:
        """One judge."""
        return cast(types.DeclaredJudge, self.json("GET", self.at("judges/{}/", judge)))

    @operation("GET", "/projects/{project}/judges/{judge}/preview/")
    def prompts(self, judge: int, *, item: int, rubric_version: int) -> list[types.Prompt]:
        """The exact messages this judge would send about one item."""
        params = {"item": item, "rubric_version": rubric_version}
        return cast(list[types.Prompt], self.json("GET", self.at("judges/{}/preview/", judge), params=params))

    # --- runs -------------------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/runs/")
    def runs(
        self, *, judge: int | None = None, dataset: int | None = None, state: types.JudgeRunState | None = None
    ) -> Iterator[types.Run]:
        """The project's runs."""
        return self.pages(self.at("runs/"), judge=judge, dataset=dataset, state=state)

    @operation("POST", "/projects/{project}/runs/")
    def start_run(
        self,
        *,
        judge: int,
        dataset: int,
        rubric_version: int,
        repeats: int = 1,
        budget: str | None = None,
        again: bool = False,
        key: str | None = None,
    ) -> types.RunDetail:
        """Start a run. ``budget`` is a cap in USD, written out: ``"2.50"``.

        Asking the judge ``again`` about items that it was asked about has to be meant. Called twice with one ``key``
        (one is made where none is given, for a request that has to be repeated), it starts one run.
        """
        said = _run(judge, dataset, rubric_version, repeats, budget)
        said |= {"again": again, "key": key or uuid4().hex}
        return cast(types.RunDetail, self.json("POST", self.at("runs/"), json=said, repeatable=True))

    @operation("POST", "/projects/{project}/runs/forecast/")
    def forecast_run(
        self, *, judge: int, dataset: int, rubric_version: int, repeats: int = 1, budget: str | None = None
    ) -> types.Forecast:
        """Calls, and roughly tokens and USD, of a run that is not started."""
        said = _run(judge, dataset, rubric_version, repeats, budget)
        return cast(types.Forecast, self.json("POST", self.at("runs/forecast/"), json=said, repeatable=True))

    @operation("GET", "/projects/{project}/runs/{run}/")
    def run(self, run: int) -> types.RunDetail:
        """One run and how far it is."""
        return cast(types.RunDetail, self.json("GET", self.at("runs/{}/", run)))

    def wait_for_run(self, run: int, *, timeout: float = 3600.0) -> types.RunDetail:
        """The run once nothing is left to ask; raises `TimedOut`, also for one that stands still meanwhile."""

        def finished() -> types.RunDetail | None:
            found = self.run(run)
            return found if found["progress"]["finished"] else None

        return cast(types.RunDetail, self.wait(finished, timeout=timeout, what=f"Run {run}"))

    @operation("POST", "/projects/{project}/runs/{run}/pause/")
    def pause_run(self, run: int) -> types.RunDetail:
        """Send nothing more; calls in flight come in."""
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/pause/", run)))

    @operation("POST", "/projects/{project}/runs/{run}/resume/")
    def resume_run(self, run: int) -> types.RunDetail:
        """Go on with a paused run."""
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/resume/", run)))

    @operation("POST", "/projects/{project}/runs/{run}/cancel/")
    def cancel_run(self, run: int) -> types.RunDetail:
        """End a run for good; what was paid for stays."""
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/cancel/", run)))

    @operation("POST", "/projects/{project}/runs/{run}/rerun-failed/")
    def rerun_failed(self, run: int) -> types.RunDetail:
        """Let the failed calls be asked again."""
        return cast(types.RunDetail, self.json("POST", self.at("runs/{}/rerun-failed/", run)))

    @operation("PUT", "/projects/{project}/runs/{run}/budget/")
    def set_budget(self, run: int, budget: str | None) -> types.RunDetail:
        """Raise, lower or lift the cap in USD."""
        there = self.at("runs/{}/budget/", run)
        return cast(types.RunDetail, self.json("PUT", there, json={"budget": budget}))

    @operation("GET", "/projects/{project}/runs/{run}/calls/")
    def calls(
        self, run: int, *, state: types.CallState | None = None, language: str | None = None, item: str | None = None
    ) -> Iterator[types.Call]:
        """A run's calls."""
        return self.pages(self.at("runs/{}/calls/", run), state=state, language=language, item=item)

    @operation("GET", "/projects/{project}/runs/{run}/calls/{call}/")
    def call(self, run: int, call: int) -> types.CallDetail:
        """One call with every attempt at it, as it was sent and as it came back."""
        return cast(types.CallDetail, self.json("GET", self.at("runs/{}/calls/{}/", run, call)))

    @operation("GET", "/projects/{project}/verdicts/")
    def verdicts(
        self,
        *,
        run: int | None = None,
        judge: int | None = None,
        status: types.VerdictStatusEnum | None = None,
        criterion: str | None = None,
        language: str | None = None,
        item: str | None = None,
    ) -> Iterator[types.Verdict]:
        """Verdicts: scores, or the reasons there are none."""
        wanted = {"run": run, "judge": judge, "status": status, "criterion": criterion}
        return self.pages(self.at("verdicts/"), language=language, item=item, **wanted)


def _run(judge: int, dataset: int, rubric_version: int, repeats: int, budget: str | None) -> dict[str, Any]:
    about = {"judge": judge, "dataset": dataset, "rubric_version": rubric_version}
    return {**about, "repeats": repeats, "budget": budget}
