"""The ladder of a reply's forms, each rung against the provider: what is asked for, what is read, what is learnt."""

from __future__ import annotations

import math
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse

from judging import error_tags, judges, runs
from judging.asking import endpoints
from judging.asking.refused_parts import SentParts, refused_part
from judging.asking.wire import complaint_in, wire_of
from judging.models import Attempt, Call, ErrorTag, JudgeRun, ModelCapability
from judging.probabilities import weighed
from judging.prompts import CriterionBrief
from judging.replies import Reading
from tests.cast import Cast
from tests.judging.briefs import EMPATHY, GRAMMAR, LENGTH, point_briefs
from tests.judging.test_runs import declared, started, worked
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)

TO_TEN = replace(EMPATHY, points=point_briefs(*range(1, 11)))
TENS = replace(EMPATHY, points=point_briefs(5, 10))
HALVES = replace(EMPATHY, points=point_briefs(3, 3.5, 4))
SIGNED = replace(EMPATHY, points=point_briefs(-1, 0, 1))


def finished(run: JudgeRun) -> runs.RunProgress:
    for _round in range(6):
        Call.objects.update(not_before=None)
        worked(run)
    done = runs.run_progress(run)
    assert done.finished
    return done


class TestForms:
    @pytest.mark.parametrize(
        ("kind", "refused", "form"),
        [
            ("", [], "JSON by a schema"),
            ("no_schema", ["json_schema"], "a JSON object"),
            ("no_format", ["json_schema", "json_object"], "a tool call"),
            ("no_structure", ["json_schema", "json_object", "tool_call"], "text"),
        ],
    )
    def test_each_form_is_read_and_what_a_model_refuses_is_learnt_once(
        self, cast: Cast, provider: RunningProvider, kind: str, refused: list[str], form: str
    ) -> None:
        judge = declared(cast, f"sim-steady:{kind}".rstrip(":"))
        provider.control(latency=0.05)
        run = started(cast, judge, items=2)
        assert finished(run).verdicts == {"ok": 4}
        attempt = Attempt.objects.filter(outcome="replied").latest("pk")
        assert attempt.request["dropped"] == refused
        assert bool(attempt.reply["choices"][0]["message"].get("tool_calls")) == (form == "a tool call")
        refusals = provider.control()["statuses"].get("400", 0)
        assert refusals >= len(refused)

        runs_again = runs.start_judge_run(
            judge=judge, dataset=run.dataset, rubric_version=run.rubric_version, again=True
        )
        assert finished(runs_again).verdicts == {"ok": 4}
        assert provider.control()["statuses"].get("400", 0) == refusals, "learnt once for the model"
        boris = cast.client("boris")
        assert boris.get(f"/api/v1/projects/kassa/judges/{judge.pk}/").json()["refused"] == refused
        page = boris.get(reverse("judge", args=["kassa", judge.pk])).content.decode()
        assert form in page and ("the model refuses: " in page) == bool(refused)
        shown = boris.get(reverse("call", args=["kassa", run.pk, run.calls.first().pk])).content.decode()
        assert "Simulated:" in shown

    def test_what_was_learnt_long_ago_is_tried_again(self, cast: Cast, provider: RunningProvider) -> None:
        judge = declared(cast)
        endpoints.learn(judge.provider, judge.model, ["json_schema"])
        assert judges.refused_by_model(judge) == ["json_schema"]
        long_ago = ModelCapability.objects.get().learnt_at - endpoints.LEARNT_FOR
        ModelCapability.objects.update(learnt_at=long_ago)
        finished(started(cast, judge, items=1))
        assert Attempt.objects.get().request["dropped"] == []


SENT = SentParts(
    form="json_schema",
    has_system=True,
    names={"temperature": "temperature", "max_tokens": "max_tokens", "top_p": "top_p"},
    form_words=("response_format", "json_schema"),
)
OTHER_ERRORS = (
    (422, {"detail": [{"loc": ["body", "response_format", "json_schema", "strict"], "msg": "No."}]}, "json_schema"),
    (422, {"detail": [{"loc": ["body", "temperature"], "msg": "Input should be at most 1"}]}, "temperature"),
    (400, {"error": "Unsupported parameter: top_p"}, "top_p"),
    (400, {"error": "Only user, assistant and tool roles are supported, got system."}, "system_role"),
    (500, {"error": {"message": "Only user and assistant roles are supported!", "code": 500}}, "system_role"),
    (
        500,
        {"error": {"message": "Jinja: Conversation roles must alternate user/assistant", "code": 500}},
        "system_role",
    ),
    (500, {"error": {"message": "llguidance: the schema can't be compiled."}}, "json_schema"),
    (500, {"error": {"message": "The file system has no message for this."}}, None),
    (503, {"error": {"message": "Only user and assistant roles are supported!"}}, None),
)


@pytest.mark.parametrize(("status", "stated", "part"), OTHER_ERRORS)
def test_the_part_that_an_error_names(status: int, stated: dict[str, Any], part: str | None) -> None:
    assert refused_part(status=status, stated=stated, message=complaint_in(stated), sent=SENT) == part


WORDINGS = {
    "loc_response_format": ["json_schema", "json_object"],
    "loc_temperature": ["temperature"],
    "bare_temperature": ["temperature"],
    "two_roles": ["system_role"],
    "unnamed_schema": ["json_schema"],
    "unnamed_format": ["json_schema", "json_object"],
    "unnamed_structure": ["json_schema", "json_object", "tool_call"],
    "unnamed_temperature": ["json_schema", "json_object", "tool_call", "system_role", "temperature"],
    "guided_decoding": ["json_schema"],
}


class TestOtherWords:
    @pytest.mark.parametrize("kind", WORDINGS)
    @pytest.mark.both_databases
    def test_no_call_is_lost_before_one_has_found_out_what_a_model_takes(
        self, cast: Cast, provider: RunningProvider, kind: str
    ) -> None:
        """Before: 24 of 24 verdicts refused, or after eight tries none at all. All 12 calls are sent at once."""
        judge = declared(cast, f"sim-steady:{kind}", parameters={"temperature": 0})
        provider.control(latency=0.1)
        run = started(cast, judge, items=12)
        assert finished(run).verdicts == {"ok": 24}
        assert judges.refused_by_model(judge) == WORDINGS[kind]
        assert {*Attempt.objects.values_list("outcome", flat=True)} == {"replied"}
        statuses = provider.control()["statuses"]
        refusals = sum(count for status, count in statuses.items() if status != "200")
        # Those that were under way together, and the steps of the one call that found out.
        assert refusals <= 12 + len(WORDINGS[kind])
        left_out = Attempt.objects.latest("pk").request["dropped"]
        assert {*left_out} == {*WORDINGS[kind]}

    def test_where_no_form_is_taken_little_is_sent_and_nothing_is_learnt(
        self, cast: Cast, provider: RunningProvider
    ) -> None:
        judge = declared(cast, "sim-steady:unnamed", parameters={"temperature": 0})
        provider.control(latency=0.05)
        run = started(cast, judge, items=6)
        worked(run)
        run.refresh_from_db()
        assert (run.state, run.reason.startswith("The provider refused 5 calls in a row")) == ("paused", True)
        assert judges.refused_by_model(judge) == []
        assert provider.control()["requests"] <= 6 + 2 * 5

    def test_one_item_that_is_refused_does_not_change_how_the_others_are_asked(
        self, cast: Cast, provider: RunningProvider
    ) -> None:
        judge = declared(cast)
        first = started(cast, judge, items=2)
        provider.control(next=["none", "unnamed"])
        JudgeRun.objects.update(width=1)
        assert finished(first).verdicts == {"ok": 2, "refused": 2}
        assert judges.refused_by_model(judge) == []


class TestRepair:
    def repairing(self, cast: Cast, items: int = 1) -> JudgeRun:
        return started(cast, declared(cast, repair=True), items=items)

    def test_an_unreadable_reply_is_shown_and_asked_once_more(self, cast: Cast, provider: RunningProvider) -> None:
        provider.control(next=["unparsable"])
        run = self.repairing(cast)
        assert finished(run).verdicts == {"ok": 2}
        first, second = Attempt.objects.order_by("pk")
        roles = [message["role"] for message in second.request["messages"]]
        assert roles == ["system", "user", "assistant", "user"]
        assert "depends on whom you ask" in second.request["messages"][2]["content"]
        assert first.request["messages"] == second.request["messages"][:2]
        assert set(run.verdicts.values_list("coerced", "attempt")) == {("repaired", second.pk)}
        again = runs.start_judge_run(judge=run.judge, dataset=run.dataset, rubric_version=run.rubric_version)
        done = finished(again)
        assert (done.reused, done.verdicts, provider.control()["requests"]) == (2, {"ok": 2}, 2)

    @pytest.mark.parametrize(
        ("kinds", "requests"),
        [
            (["unparsable", "wrong_keys", "none"], 2),
            (["unparsable", "forbidden", "none"], 2),
            (["unparsable", *["server_error"] * 7, "none"], 8),
        ],
    )
    def test_once_only_and_then_it_stays_unparsed(
        self, cast: Cast, provider: RunningProvider, kinds: list[str], requests: int
    ) -> None:
        provider.control(next=kinds)
        run = self.repairing(cast)
        for _round in range(12):
            Call.objects.update(not_before=None)
            worked(run)
        done = runs.run_progress(run)
        assert (done.verdicts, done.settled, done.failed) == ({"unparsed": 2}, 1, 0)
        assert provider.control()["requests"] == requests
        provider.control(reset=True)
        assert runs.rerun_failed(run=run, statuses=["unparsed"]) == 1
        assert finished(run).verdicts == {"ok": 2}
        assert len(Attempt.objects.latest("pk").request["messages"]) == 2, "asked from the start"

    def test_a_verdict_that_somebody_tagged_is_replaced_with_its_tags(
        self, cast: Cast, provider: RunningProvider
    ) -> None:
        provider.control(next=["unparsable", "wrong_keys"])
        run = self.repairing(cast)
        assert finished(run).verdicts == {"unparsed": 2}
        for verdict in run.verdicts.all():
            error_tags.tag_verdict(verdict=verdict, text="keine “Antwort” مرحبا", actor=cast.boris)
        provider.control(reset=True)
        assert runs.rerun_failed(run=run, statuses=["unparsed"]) == 1
        assert finished(run).verdicts == {"ok": 2}
        assert provider.control()["requests"] == 1, "the reply is stored, and not asked for again"
        assert not ErrorTag.objects.exists()

    def test_a_repeated_call_is_sent_also_where_an_earlier_run_had_the_same_repair(
        self, cast: Cast, provider: RunningProvider
    ) -> None:
        provider.control(next=["unparsable", "wrong_keys"])
        first = self.repairing(cast)
        finished(first)
        options = {"judge": first.judge, "dataset": first.dataset, "rubric_version": first.rubric_version}
        run = runs.start_judge_run(**options)
        assert finished(run).reused == 2
        assert runs.rerun_failed(run=run, statuses=["unparsed"]) == 1
        provider.control(next=["unparsable"])
        assert finished(run).verdicts == {"ok": 2}
        outcomes = Attempt.objects.filter(call__run=run).order_by("number").values_list("number", "outcome")
        assert list(outcomes) == [(1, "reused"), (2, "reused"), (3, "replied"), (4, "replied")]
        assert provider.control()["requests"] == 4

    def test_what_is_no_slip_of_form_is_not_asked_again(self, cast: Cast, provider: RunningProvider) -> None:
        provider.control(next=["refusal", "truncated", "content_filter", "out_of_range"])
        run = self.repairing(cast, items=4)
        finished(run)
        assert provider.control()["requests"] == 4

    def test_repair_is_a_factor_of_a_judge_by_form_api_and_command(self, cast: Cast, provider: RunningProvider) -> None:
        plain = declared(cast)
        assert "repair" not in plain.variant, "judges from before the factor stay what they are"
        boris = cast.client("boris")
        form = {"provider": "simulated", "model": "sim-steady", "name": "R", "grouping": "compound"}
        form |= {"anchor_detail": "anchors", "explanation": "yes", "instruction_language": "en", "parameters": "{}"}
        page = boris.post(reverse("judge_new", args=["kassa"]), {**form, "repair": "on", "untested": "on"}, follow=True)
        assert "Asks once more" in page.content.decode()
        asked = {"name": "S", "provider": "simulated", "model": "sim-steady", "variant": {"repair": True}}
        judge = boris.post("/api/v1/projects/kassa/judges/", asked, content_type="application/json").json()
        assert (judge["name"], judge["variant"]["repair"]) == ("R", True)
        assert judge["digest"] != plain.digest
        run = started(cast, plain, items=1)
        named = {"dataset": run.dataset.name, "rubric": run.rubric_version.rubric.key, "project": "kassa"}
        new = {"judge": "T", "provider": "simulated", "model": "sim-steady", "repair": True}
        out = StringIO()
        call_command("run_judge", **named, **new, here=True, stdout=out)
        assert ": R on" in out.getvalue()


class TestProbabilities:
    @pytest.mark.parametrize("grouping", ["single", "compound"])
    def test_the_expected_score_and_the_confidence_are_stored(
        self, cast: Cast, provider: RunningProvider, grouping: str
    ) -> None:
        """The provider gives a score n with .6, n - 1 with .3 and n + 1 with .1; the scale of the test has 0 to 2."""
        parameters = {"logprobs": True, "top_logprobs": 5}
        run = started(cast, declared(cast, parameters=parameters, grouping=grouping), items=8)
        finished(run)
        seen = set()
        for verdict in run.verdicts.select_related("criterion"):
            points = verdict.criterion.values
            shares = {verdict.score: 0.6, verdict.score - 1: 0.3, verdict.score + 1: 0.1}
            shares = {point: share for point, share in shares.items() if point in points}
            total = sum(shares.values())
            assert verdict.confidence == pytest.approx(0.6 / total)
            assert verdict.expected == pytest.approx(sum(point * share for point, share in shares.items()) / total)
            seen.add(verdict.score)
        assert len(seen) > 1
        rows = cast.client("boris").get("/api/v1/projects/kassa/verdicts/").json()["results"]
        assert all(row["confidence"] >= 0.6 for row in rows)

    @pytest.mark.parametrize(
        "tokens",
        [
            None,
            [],
            "x",
            [1, 2],
            [{"token": None}],
            [{"token": '{"grammar": {"score": '}, {"token": "2"}, {"token": "1"}, {"token": "}}"}],
            [{"token": '{"grammar": {"score": 2}}'}],
            [{"token": '{"grammar": {"score": '}, {"token": "2", "logprob": -3.0}, {"token": "}}"}],
            [{"token": '{"grammar": {"score": '}, {"token": "2", "logprob": "NaN"}, {"token": "}}"}],
            [{"token": '{"grammar": {"score": '}, {"token": "1", "logprob": -0.1}, {"token": "}}"}],
            [{"token": '{"grammar": {"score": 1}} {"grammar": {"score": '}, {"token": "2", "logprob": -0.1}],
        ],
    )
    def test_probabilities_in_doubt_give_no_expected_score(self, tokens: Any) -> None:
        readings = [Reading("grammar", "ok", 2.0), Reading("empathy", "unparsed")]
        reply = {"choices": [{"logprobs": {"content": tokens}}]}
        assert weighed(readings, tokens=wire_of("openai").read(reply).tokens, criteria=[GRAMMAR, EMPATHY]) == readings

    def test_alternatives_off_the_scale_do_not_count(self) -> None:
        others = [{"token": str(n), "logprob": math.log(p)} for n, p in ((2, 0.6), (1, 0.2), (7, 0.1), (0, 0.1))]
        token = {"token": " 2", "logprob": math.log(0.6), "top_logprobs": [{**others[0], "token": " 2"}, *others[1:]]}
        content = [{"token": '{"score":'}, token, {"token": "}"}]
        tokens = wire_of("openai").read({"choices": [{"logprobs": {"content": content}}]}).tokens
        (reading,) = weighed([Reading("grammar", "ok", 2.0)], tokens=tokens, criteria=[GRAMMAR])
        assert reading.confidence == pytest.approx(0.6 / 0.9)
        assert reading.expected == pytest.approx((2 * 0.6 + 1 * 0.2) / 0.9)

    @pytest.mark.parametrize(
        ("criterion", "score", "shares", "expected"),
        [
            (TO_TEN, 9, {"9": 0.55, "1": 0.45}, None),  # one digit a token: "1" may be the start of "10"
            (TO_TEN, 1, {"1": 0.9, "2": 0.1}, None),
            (TO_TEN, 9, {"9": 0.6, "10": 0.3, "1": 0.1}, 0.6 * 9 + 0.3 * 10 + 0.1 * 1),  # "10" is a token
            (TO_TEN, 9, {"9": 0.75, "8": 0.245, "1": 0.005}, (0.75 * 9 + 0.245 * 8) / 0.995),
            (TENS, 5, {"5": 0.55, "1": 0.45}, None),
            (HALVES, 3, {"3": 0.8, "4": 0.2}, None),  # "3" may be the start of "3.5"
            (SIGNED, 1, {"1": 0.6, "-": 0.4}, None),
            (replace(LENGTH, is_range=True), 50, {"50": 0.8, "60": 0.2}, None),
            (replace(LENGTH, is_range=True, step=10), 50, {"50": 0.8, "60": 0.2}, 52.0),
        ],
    )
    def test_the_beginning_of_a_longer_score_is_not_taken_for_a_score(
        self, criterion: CriterionBrief, score: float, shares: dict[str, float], expected: float | None
    ) -> None:
        others = [{"token": token, "logprob": math.log(share)} for token, share in shares.items()]
        content = [{"token": '{"score": '}, {**others[0], "top_logprobs": others}, {"token": "}"}]
        reply = {"choices": [{"logprobs": {"content": content}}]}
        (reading,) = weighed(
            [Reading(criterion.key, "ok", score)], tokens=wire_of("openai").read(reply).tokens, criteria=[criterion]
        )
        assert reading.expected == (None if expected is None else pytest.approx(expected))
        assert (reading.confidence is None) == (expected is None)
