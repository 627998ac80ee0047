"""The desk's promises: what issue 26 describes is done again over HTTP, to this code and to the code before its repair.

``python -m bench.desk_promises`` (about five minutes; it ends by itself) checks out the commit ``--before`` in a folder
of its own, starts the web server and a worker of each code on SQLite and on PostgreSQL, and writes
results/desk_promises.md. ``--database`` attacks only this code on one database and prints. Chromium presses the keys;
every other attack is a request to a page or to the API.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any
from uuid import uuid4

import httpx

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "desk_promises.md"
BEFORE = "580eed58"  # the last commit before the first of these faults was mended
DATABASES = ("sqlite", "postgresql")
HOST = "bench.example.org"  # what people type; ALLOWED_HOSTS begins with localhost
CSRF = "x" * 32
ODD = "Two words “دراسة” \"q\" 's' e\u0301"
CONTROLS = {"control_rate": 0.5, "fewest_controls": 3}
KEYS_A_SECOND, KEYED_ITEMS, BURST_ITEMS = 8, 30, 10
NAMES = ("fluency", "coherence", "tone", "grammar")
CHROMIUM = "/usr/bin/chromium"
JSON = {"Accept": "application/json"}
WAIT = 60.0  # seconds that something may take which a worker does
NOT_THERE = "not there"


@dataclass(frozen=True, slots=True)
class AttackOutcome:
    """What one attack brought about; ``holds`` is yes, no or not there."""

    attack: str
    way: str  # page, API or keys
    happened: str
    holds: str


@dataclass(frozen=True, slots=True)
class DeskPerson:
    """Somebody before a browser (a session) and with a program (a token)."""

    user: Any
    session: str
    secret: str
    address: str

    def page(self, method: str, path: str, fields: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        cookies = f"sessionid={self.session}; csrftoken={CSRF}"
        headers = {"Host": HOST, "Cookie": cookies, "X-CSRFToken": CSRF, "Accept-Language": "en", **more}
        return httpx.request(method, f"{self.address}{path}", data=fields, headers=headers, timeout=60)

    def text(self, path: str) -> str:
        return html.unescape(self.page("GET", path).text)

    def api(self, method: str, path: str, body: Any = None) -> httpx.Response:
        headers = {"Host": HOST, "Authorization": f"Bearer {self.secret}", "Accept": "application/json"}
        return httpx.request(method, f"{self.address}/api/v1/projects/{path}", json=body, headers=headers, timeout=60)


@dataclass(slots=True)
class DeskScene:
    """A project of its own with a lead and annotators, and one duty."""

    project: Any
    lead: DeskPerson
    annotators: list[DeskPerson]
    duty: Any = None

    @property
    def campaign(self) -> int:
        return int(self.duty.campaign_id)

    def next(self, number: int = 0) -> str:
        """The address of the annotator's next item, or of the page that says why there is none."""
        taken = self.annotators[number].page("POST", f"/desk/{self.duty.pk}/")
        return taken.headers.get("Location", "") if taken.status_code in (302, 307) else f"status {taken.status_code}"

    def submit(self, page: str, scores: dict[str, str], number: int = 0) -> httpx.Response:
        fields = {f"score-{key}": score for key, score in scores.items()} | {"seconds": "12"}
        return self.annotators[number].page("POST", f"{page}submit/", fields, **JSON)


@dataclass(slots=True)
class DeskBench:
    """The programs that are attacked, and what came of it."""

    address: str
    mails: Path
    outcomes: list[AttackOutcome] = field(default_factory=list)
    browser: Any = None
    number: int = 0

    def note(self, attack: str, way: str, happened: str, holds: bool | str) -> None:
        known = holds if isinstance(holds, str) else ("yes" if holds else "no")
        self.outcomes.append(AttackOutcome(attack, way, happened, known))

    def person(self, project: Any, name: str, role: str, languages: Sequence[str] = ("et",)) -> DeskPerson:
        from accounts import tokens
        from accounts.models import Membership, Scope, User
        from bench import scene

        user = User.objects.create_user(f"{uuid4().hex}@panelbench.test", name=name, ui_language="en")
        User.objects.filter(pk=user.pk).update(languages=list(languages))
        if project is not None:
            Membership.objects.create(project=project, user=user, role=role)
        secret = tokens.issue(user=user, name="bench", scope=Scope.WRITE)[1]
        return DeskPerson(user, scene.session_key(user), secret, self.address)

    def project(self, annotators: int = 1, languages: Sequence[str] = ("et",), *, is_slug: bool = False) -> DeskScene:
        from accounts.models import Membership, Project, Role

        self.number += 1
        slug = f"p{self.number}"
        lead = self.person(None, "Aino «Ä»", Role.LEAD)
        project = Project.objects.create(name=slug if is_slug else f"{ODD} {self.number}", slug=slug)
        Membership.objects.create(project=project, user=lead.user, role=Role.LEAD)
        seated = [self.person(project, f"Maarika {n}", Role.ANNOTATOR, languages) for n in range(annotators)]
        return DeskScene(project, lead, seated)

    def scene(
        self,
        *criteria: dict[str, Any],
        items: Any = 6,
        annotators: int = 1,
        overlap: int = 1,
        language: str = "et",
        marked: Sequence[tuple[str, int]] = (),
        rule: Mapping[str, Any] | None = None,
        is_slug: bool = False,
    ) -> DeskScene:
        """A duty of one panel; ``marked``: the purposes of reference items by number, fluency 2 and coherence 1."""
        from annotation import allocation, campaigns, panels
        from annotation.qualification import references
        from annotation.qualification.references import ReferenceRow
        from tests import make

        made = self.project(annotators, (language,), is_slug=is_slug)
        campaign = campaigns.open_campaign(
            project=made.project,
            name=f"{ODD} round",
            dataset=make.dataset(made.project, items, name=f"{ODD} items"),
            rubric_version=make.rubric(made.project, *criteria),
        )
        rows = [
            ReferenceRow(item=f"d{number}", purpose=purpose, criterion=key, score=score, explanation=f"Why {key}")
            for purpose, number in marked
            for key, score in (("fluency", "2"), ("coherence", "1"))
        ]
        if rows:
            references.mark(campaign=campaign, rows=rows)
        if rule:
            references.set_rule(campaign=campaign, seed=1, **rule)
        panel = panels.create(project=made.project, name=f"{ODD} panel", language=language)
        for one in made.annotators:
            panels.seat(panel=panel, user=one.user)
        made.duty = allocation.allocate(campaign=campaign, panel=panel, overlap=overlap, name=f"{ODD} task", seed=3)
        return made

    def mail(self, words: str) -> str:
        """The first mail with these words that a worker has sent; "" if none came."""
        import email
        from email import policy

        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            for path in self.mails.glob("*"):
                for part in path.read_bytes().split(b"-" * 79):
                    body = email.message_from_bytes(part.strip(), policy=policy.default).get_content()
                    if words in str(body):
                        return str(body)
            time.sleep(0.3)
        return ""

    @contextlib.contextmanager
    def opened(self, person: DeskPerson, path: str, **more: Any) -> Iterator[Any]:
        """The page in Chromium, which shows movements as usual."""
        context = self.browser.new_context(reduced_motion="no-preference", locale="en", **more)
        context.add_cookies([{"name": "sessionid", "value": person.session, "url": self.address}])
        page = context.new_page()
        page.set_default_timeout(15_000)
        try:
            page.goto(f"{self.address}{path}")
            yield page
        finally:
            context.close()


RIGHT, WRONG = {"fluency": "2", "coherence": "1"}, {"fluency": "0", "coherence": "0"}


def _words(answer: httpx.Response) -> str:
    """Every string of an answer in JSON; of anything else its text."""

    def strings(part: Any) -> Iterator[str]:
        if isinstance(part, str):
            yield part
        for below in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            yield from strings(below)

    is_json = "json" in answer.headers.get("Content-Type", "")
    return "\n".join(strings(answer.json())) if is_json else html.unescape(answer.text)


def scores_in_body(scores: dict[str, str]) -> dict[str, Any]:
    return {"answers": [{"criterion": key, "score": float(score)} for key, score in scores.items()], "seconds": 12}


# --- a: a pause by controls, and odd names ----------------------------------------------------------------------------
PAUSE = "a. a pause by controls in a project called “Two words …”"


def pause_on_pages(bench: DeskBench) -> None:
    made = bench.scene(items=60, marked=[("control", n) for n in range(1, 31)], rule=CONTROLS)
    page, done = made.next(), 0
    while page.startswith("/desk/at/") and done < 40:
        made.submit(page, WRONG)
        page, done = made.next(), done + 1
    if not page.endswith("/before/"):
        again = [made.next() for _time in range(3)]
        happened = f"after {done} items {page}, and again at {again.count(page)} of 3 more tries; nobody is paused"
        bench.note(PAUSE, "page", happened, False)
        return
    shown = made.annotators[0].text(page)
    overview = made.lead.text(f"/p/{made.project.slug}/campaigns/{made.campaign}/qualification/")
    mail = bench.mail(made.project.name)
    is_named = all(name in mail for name in (made.duty.name, made.duty.campaign.name))
    is_led = f"http://{HOST}/p/{made.project.slug}/" in mail
    standing = re.search(rf"/p/{made.project.slug}/campaigns/\d+/qualification/\d+/\d+/", overview)
    assert standing, overview[:2000]
    made.lead.page("POST", standing.group(), {"reinstate": "1", "note": ODD})
    after = made.next()
    goes_on = after.startswith("/desk/at/")
    bench.note(
        PAUSE,
        "page",
        f"paused after {done} items; mail {'names' if is_named else 'does not name'} project, campaign and task and "
        f"links {HOST if is_led else 'another host'}; the lead ends it, the next item {'comes' if goes_on else after}",
        "is paused" in shown and "aused" in overview and is_named and is_led and goes_on,
    )


def pause_by_api(bench: DeskBench) -> None:
    made = bench.scene(items=60, marked=[("control", n) for n in range(1, 31)], rule=CONTROLS)
    desk, taken, done = f"{made.project.slug}/desk", None, 0
    maarika = made.annotators[0]
    while done < 40:
        taken = maarika.api("POST", f"{desk}/{made.duty.pk}/take/")
        if taken.status_code != 200:
            break
        maarika.api("POST", f"{desk}/at/{taken.json()['key']}/", scores_in_body(WRONG))
        done += 1
    assert taken is not None
    code = taken.json().get("code", "") if "json" in taken.headers.get("Content-Type", "") else "no JSON"
    standings = f"{made.project.slug}/campaigns/{made.campaign}/standings/"
    rows = made.lead.api("GET", standings).json()
    paused = [row for row in rows if row["paused"]] if isinstance(rows, list) else []
    again = 0
    if paused:
        where = f"{standings}{made.duty.pk}/{paused[0]['annotator']}/reinstate/"
        made.lead.api("POST", where, {"note": ODD})
        again = maarika.api("POST", f"{desk}/{made.duty.pk}/take/").status_code
    bench.note(
        PAUSE,
        "API",
        f"after {done} items {taken.status_code} {code}; {len(paused)} paused in the standings"
        + (f", after the lead's decision {again}" if paused else ""),
        (taken.status_code, code, len(paused), again) == (409, "qualification_paused", 1, 200),
    )


LIFE = "a. a campaign's life under such names"


def life_on_pages(bench: DeskBench) -> None:
    made = bench.scene(items=6)
    maarika, base = made.annotators[0], f"/p/{made.project.slug}/campaigns/{made.campaign}"
    steps: dict[str, httpx.Response] = {}
    page = made.next()
    steps["item"] = maarika.page("GET", page)
    steps["draft"] = maarika.page("POST", f"{page}draft/", {"rationale-fluency": ODD}, **JSON)
    steps["heartbeat"] = maarika.page("POST", f"{page}heartbeat/", {}, **JSON)
    steps["question"] = maarika.page("POST", f"{page}ask/", {"question": ODD}, **JSON)
    steps["skip"] = maarika.page("POST", f"{page}skip/", {"reason": "other", "note": ODD}, **JSON)
    page = made.next()
    steps["submit"] = made.submit(page, RIGHT)
    steps["undo"] = maarika.page("POST", f"{page}undo/", {}, **JSON)
    page = made.next()
    steps["submit again"] = made.submit(page, RIGHT)
    changed = {"score-fluency": "3", "score-coherence": "1", "seconds": "3", "key": str(uuid4())}
    steps["change"] = maarika.page("POST", f"{page}scores/", changed, **JSON)
    for name in ("", f"{made.duty.pk}/scored/", f"{made.duty.pk}/questions/", "work/"):
        steps[f"/desk/{name}"] = maarika.page("GET", f"/desk/{name}")
    for name in ("", "questions/", "qualification/", f"duties/{made.duty.pk}/"):
        steps[f"campaign {name}"] = made.lead.page("GET", f"{base}/{name}")
    steps["work"] = made.lead.page("GET", f"/p/{made.project.slug}/numbers/{made.campaign}/work/")
    export = f"/p/{made.project.slug}/export/file/?what=ratings&format=csv&campaign={made.campaign}"
    steps["export"] = made.lead.page("GET", export)
    steps["close"] = made.lead.page("POST", f"{base}/state/", {"to": "closed", "state": "closed"})
    bad = [f"{name} {step.status_code}" for name, step in steps.items() if step.status_code >= 400]
    named = {"/desk/": made.duty.name, "item": made.duty.name, "campaign ": made.duty.campaign.name}
    lost = [name for name, words in named.items() if words not in html.unescape(steps[name].text)]
    happened = f"{len(steps)} steps; " + (f"refused: {', '.join(bad)}" if bad else "none refused")
    bench.note(
        LIFE, "page", happened + (f"; name not shown: {lost}" if lost else "; names shown"), not bad and not lost
    )


def life_by_api(bench: DeskBench) -> None:
    made = bench.scene(items=3)
    maarika, desk = made.annotators[0], f"{made.project.slug}/desk"
    listed = maarika.api("GET", f"{desk}/").json()
    statuses = []
    for _item in range(3):
        taken = maarika.api("POST", f"{desk}/{made.duty.pk}/take/")
        sent = maarika.api("POST", f"{desk}/at/{taken.json()['key']}/", scores_in_body(RIGHT))
        statuses += [taken.status_code, sent.status_code]
    statuses.append(maarika.api("POST", f"{desk}/{made.duty.pk}/take/").status_code)
    is_named = bool(listed) and listed[0]["name"] == made.duty.name
    happened = f"3 items taken and submitted: {sorted(set(statuses))}; the task's name is as written: {is_named}"
    bench.note(LIFE, "API", happened, is_named and set(statuses) == {200, 204})


# --- b: keys ----------------------------------------------------------------------------------------------------------
def four_criteria() -> list[dict[str, Any]]:
    from tests import make

    return [make.criterion(name, (0, 1, 2, 3, 4), not_applicable=True) for name in NAMES]


def digits(number: int) -> str:
    """Four digits that tell the items apart, and neighbours within an item too."""
    return "".join(str((number * step + place) % 5) for place, step in enumerate((1, 2, 3, 7)))


def stored_digits(made: DeskScene) -> list[str]:
    from annotation.models import Annotation

    found = Annotation.objects.filter(campaign=made.campaign, superseded_at=None).order_by("pk")
    return [
        "".join("n" if score is None else f"{score:g}" for score in scores)
        for scores in (one.ratings.order_by("criterion__position").values_list("score", flat=True) for one in found)
    ]


def _until(is_so: Callable[[], Any], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.2)


def three_digits(bench: DeskBench) -> None:
    made = bench.scene(*four_criteria(), items=1)
    with bench.opened(made.annotators[0], made.next()) as page:
        page.locator("[data-count]").wait_for()
        page.wait_for_timeout(500)
        began = time.monotonic()
        for key in "312":
            page.keyboard.press(key)
        took = time.monotonic() - began
        page.wait_for_timeout(1500)
        given = [page.locator(f"#criterion-{name} [data-given]").inner_text().strip() for name in NAMES[:3]]
    happened = f"3 1 2 within {round(1000 * took, -1):.0f} ms gave {' '.join(one or '–' for one in given)}"
    bench.note("b. three digits within 350 ms", "keys", happened, given == ["3", "1", "2"] and took < 0.35)


def thirty_items(bench: DeskBench) -> None:
    _typed(bench, "b. thirty items at 8 keys a second", KEYED_ITEMS, 1 / KEYS_A_SECOND)


def burst(bench: DeskBench) -> None:
    _typed(bench, "b. ten items as fast as the browser takes keys", BURST_ITEMS, 0)


def _typed(bench: DeskBench, attack: str, items: int, pause: float) -> None:
    made = bench.scene(*four_criteria(), items=items)
    with bench.opened(made.annotators[0], made.next()) as page:
        page.locator("[data-count]").wait_for()
        page.wait_for_timeout(500)
        began = time.monotonic()
        for place, key in enumerate(key for n in range(items) for key in (*digits(n), "Control+Enter")):
            time.sleep(max(0.0, began + place * pause - time.monotonic()))
            page.keyboard.press(key)
        _until(lambda: len(stored_digits(made)) == items, 30)
    found, meant = stored_digits(made), [digits(n) for n in range(items)]
    wrong = sum(one != other for one, other in zip(found, meant, strict=False))
    missing = items - len(found)
    bench.note(attack, "keys", f"{len(found)} of {items} stored, {wrong} wrong", wrong == missing == 0)


# --- c: a critical criterion without direction ------------------------------------------------------------------------
CRITICAL = "c. publish a critical nominal criterion without direction"
SAFE = {
    "key": "safe",
    "name": {"en": "Safe", "ar": "آمن"},
    "scale": {
        "level": "nominal",
        "points": [{"value": 0, "label": {"en": "No"}}, {"value": 1, "label": {"en": "Yes"}}],
    },
    "group": "critical",
}


def _drafted(bench: DeskBench) -> DeskScene:
    made = bench.project()
    document = {"key": "safety", "name": {"en": ODD}, "source_language": "en", "criteria": [SAFE]}
    answer = made.lead.api("POST", f"{made.project.slug}/rubrics/", document)
    assert answer.status_code == 201, answer.text
    return made


def critical_on_the_page(bench: DeskBench) -> None:
    from annotation.models import RubricVersion

    made = _drafted(bench)
    page = f"/p/{made.project.slug}/rubrics/safety/v1/"
    made.lead.page("POST", f"{page}publish/", {})
    state = RubricVersion.objects.get(rubric__project=made.project).state
    shown = made.lead.text(page)
    warns = "have no direction" in shown and "safe" in shown
    happened = f"it is {state}; the page {'says' if warns else 'does not say'} that it has no direction"
    bench.note(CRITICAL, "page", happened, state == "draft" and warns)


def critical_by_api(bench: DeskBench) -> None:
    made = _drafted(bench)
    answer = made.lead.api("POST", f"{made.project.slug}/rubrics/safety/versions/1/publish/")
    happened = f"{answer.status_code} {answer.json().get('code', '')}".strip()
    bench.note(
        CRITICAL, "API", happened, (answer.status_code, answer.json().get("code")) == (409, "critical_direction")
    )


def critical_in_the_docs(bench: DeskBench) -> None:
    """The example `safe` of docs/formats.md as it stands there: published, its critical point stops the rest."""
    import yaml

    from annotation.models import RubricVersion

    made, found = bench.project(), []
    for block in re.findall(r"```yaml[^\n]*\n(.*?)```", Path("docs/formats.md").read_text(encoding="utf-8"), re.DOTALL):
        document = yaml.safe_load(block) if "source_language:" in block and "criteria:" in block else {}
        if any(one.get("group") == "critical" for one in document.get("criteria", [])):
            made.lead.api("POST", f"{made.project.slug}/rubrics/", document)
            where = f"{made.project.slug}/rubrics/{document['key']}/versions/1/publish/"
            found.append(made.lead.api("POST", where).status_code)
    version = RubricVersion.objects.filter(rubric__project=made.project, state="published").first()
    critical = [one for one in version.criteria.all() if one.is_critical] if version else []
    silent = [one.key for one in critical if one.best is None]
    happened = f"published: {set(found) == {200}}; critical criteria that stop nothing: {', '.join(silent) or 'none'}"
    bench.note("c. the example of docs/formats.md", "API", happened, bool(critical) and not silent)


# --- d: skipped controls ----------------------------------------------------------------------------------------------
def skipped_controls(bench: DeskBench) -> None:
    """Everything is skipped at its first time; what comes back is scored."""
    from annotation.models import Assignment

    made = bench.scene(items=24, marked=[("control", n) for n in range(1, 9)], rule={"control_rate": 0.4})
    maarika = made.annotators[0]
    skipped: list[int] = []
    order: list[int] = []
    page = made.next()
    while page.startswith("/desk/at/") and len(order) < 90:
        taken = Assignment.objects.select_related("duty").get(key=page.split("/")[3])
        order.append(taken.item_id)
        if taken.item_id in skipped:
            made.submit(page, RIGHT)
        else:
            skipped.append(taken.item_id)
            maarika.page("POST", f"{page}skip/", {"reason": "other"}, **JSON)
        page = made.next()
    own = Assignment.objects.filter(annotator__user=maarika.user, state="submitted")
    back = set(own.values_list("item", flat=True))
    hidden = set(_control_items(made)) & {*skipped}
    lost = hidden - back
    happened = f"{len(skipped)} skipped, {len(hidden)} of them controls; {len(lost)} controls never came back"
    alike = "; twice the same order" if order == skipped * 2 else "; the second order differs"
    bench.note(
        "d. skip everything once, controls among it", "page", happened + alike, bool(hidden) and order == skipped * 2
    )


def _control_items(made: DeskScene) -> list[int]:
    from annotation.models import ReferenceItem

    return list(ReferenceItem.objects.filter(campaign=made.campaign, purpose="control").values_list("item", flat=True))


# --- e: two tabs, and duties that are removed -------------------------------------------------------------------------
TABS = "e. a second tab submits other scores"


def two_tabs_on_pages(bench: DeskBench) -> None:
    made = bench.scene()
    page = made.next()
    made.submit(page, RIGHT)
    fields = {"score-fluency": "0", "score-coherence": "1", "rationale-fluency": ODD, "seconds": "9"}
    second = made.annotators[0].page("POST", f"{page}submit/", fields, **JSON)
    plain = made.annotators[0].page("POST", f"{page}submit/", fields)
    shown = html.unescape(plain.text)
    code = second.json().get("code", "") if second.status_code != 200 else "as if stored"
    keeps = ODD in _words(second) and ODD in shown
    happened = f"{second.status_code} {code}; both answers {'are' if keeps else 'are not'} shown"
    bench.note(TABS, "page", happened, second.status_code == 409 and keeps and stored_digits(made) == ["21"])


def two_tabs_by_api(bench: DeskBench) -> None:
    made = bench.scene()
    maarika, desk = made.annotators[0], f"{made.project.slug}/desk"
    key = maarika.api("POST", f"{desk}/{made.duty.pk}/take/").json()["key"]
    maarika.api("POST", f"{desk}/at/{key}/", scores_in_body(RIGHT))
    second = maarika.api("POST", f"{desk}/at/{key}/", scores_in_body(WRONG))
    body = second.json()
    code = body.get("code", "") if second.status_code != 200 else "as if stored"
    both = {"stored", "sent"} <= body.keys()
    happened = f"{second.status_code} {code}; both answers {'are' if both else 'are not'} in it"
    bench.note(TABS, "API", happened, second.status_code == 409 and both)


REMOVED = "e. a duty is removed with an item filled in"


def removed_duty_on_pages(bench: DeskBench) -> None:
    made = bench.scene()
    maarika, page = made.annotators[0], made.next()
    maarika.page("POST", f"{page}draft/", {"score-fluency": "2", "rationale-fluency": f"{ODD} draft"}, **JSON)
    take_back = f"/p/{made.project.slug}/campaigns/{made.campaign}/duties/{made.duty.pk}/take-back/"
    made.lead.page("POST", take_back, {})
    before = maarika.page("GET", page)
    fields = {"score-fluency": "2", "score-coherence": "1", "rationale-fluency": f"{ODD} later", "seconds": "9"}
    sent = maarika.page("POST", f"{page}submit/", fields, **JSON)
    after, home = maarika.text(page), maarika.text("/desk/")
    named = made.duty.name in _words(sent)
    kept = f"{ODD} draft" in html.unescape(before.text) and f"{ODD} later" in after and page in home
    happened = (
        f"submitting answers {sent.status_code}{' and names the task' if named else ''}; the draft and what was sent "
        f"later {'are kept and shown' if kept else 'are gone'} (the page of the item: {before.status_code})"
    )
    bench.note(REMOVED, "page", happened, named and kept)


def removed_duty_by_api(bench: DeskBench) -> None:
    made = bench.scene()
    maarika, desk = made.annotators[0], f"{made.project.slug}/desk"
    key = maarika.api("POST", f"{desk}/{made.duty.pk}/take/").json()["key"]
    take_back = f"/p/{made.project.slug}/campaigns/{made.campaign}/duties/{made.duty.pk}/take-back/"
    made.lead.page("POST", take_back, {})
    body = {"answers": [{"criterion": "fluency", "score": 2, "rationale": ODD}]}
    sent = maarika.api("POST", f"{desk}/at/{key}/", body)
    code = sent.json().get("code", "")
    kept = ODD in maarika.text(f"/desk/at/{key}/")
    happened = f"{sent.status_code} {code}; what was sent {'is' if kept else 'is not'} on its page afterwards"
    bench.note(REMOVED, "API", happened, (sent.status_code, code, kept) == (409, "duty_removed", True))


MIDDLE = "e. taken from the panel, or from the project, in the middle"


def removed_person_on_pages(bench: DeskBench) -> None:
    """In Chromium: what is typed must be there after the refusal, and after looking at the duties."""
    from accounts.models import Membership
    from annotation.models import PanelSeat

    found = []
    for removes in ("panel", "project"):
        made = bench.scene()
        maarika = made.annotators[0]
        with bench.opened(maarika, made.next()) as page:
            page.locator("[data-count]").wait_for()
            page.wait_for_timeout(500)
            page.keyboard.type("2")
            page.keyboard.type("1r")
            page.keyboard.type("Minu pohjendus")
            if removes == "panel":
                seat = PanelSeat.objects.get(panel=made.duty.panel_id)
                made.lead.page(
                    "POST", f"/p/{made.project.slug}/panels/{made.duty.panel_id}/seats/{seat.pk}/remove/", {}
                )
            else:
                Membership.objects.filter(user=maarika.user).delete()
            page.keyboard.press("Control+Enter")
            page.wait_for_timeout(3000)
            shown = page.locator("body").inner_text()
            text = page.evaluate("[...document.querySelectorAll('textarea')].map((one) => one.value).join(' ')")
            device = page.evaluate("JSON.stringify({...localStorage})")
            said = "no longer" in shown or "removed" in shown or bool(stored_digits(made))
            keeps = "Minu pohjendus" in text + device + shown or bool(stored_digits(made))
            stored = ", stored" if stored_digits(made) else ""
            found.append((removes, said, keeps, stored))
    happened = "; ".join(
        f"{removes}: {'says why' if said else 'does not say why'}{stored}, the text {'stays' if keeps else 'is gone'}"
        for removes, said, keeps, stored in found
    )
    bench.note(MIDDLE, "page", happened, all(said and keeps for _removes, said, keeps, _stored in found))


def removed_person_by_api(bench: DeskBench) -> None:
    from accounts.models import Membership

    made = bench.scene()
    maarika, desk = made.annotators[0], f"{made.project.slug}/desk"
    page = made.next()
    Membership.objects.filter(user=maarika.user).delete()
    sent = maarika.api("POST", f"{desk}/at/{page.split('/')[3]}/", scores_in_body(RIGHT))
    json_page = maarika.page("POST", f"{page}submit/", {"score-fluency": "2"}, **JSON)
    is_json = "json" in sent.headers.get("Content-Type", "")
    detail = str(json_page.json().get("detail", "")) if "json" in json_page.headers.get("Content-Type", "") else ""
    happened = (
        f"API {sent.status_code}{' in JSON' if is_json else ''} (a project that one is not in does not exist); the "
        f"page's script gets {json_page.status_code}: {detail or 'no sentence'}"
    )
    bench.note(MIDDLE, "API", happened, is_json and "no longer" in detail)


# --- f: what is beside a score ----------------------------------------------------------------------------------------
def _paused(bench: DeskBench) -> tuple[DeskScene, str]:
    from tests import make

    rows = [make.item_row(n, title="Pakk “طرد”") for n in range(1, 61)]
    marked = [("control", n) for n in range(1, 31)]
    made = bench.scene(items=rows, marked=marked, rule=CONTROLS, is_slug=True)  # else nobody could be paused before
    page, done = made.next(), 0
    while page.startswith("/desk/at/") and done < 40:
        made.submit(page, WRONG)
        page, done = made.next(), done + 1
    return made, page


def paused_page(bench: DeskBench) -> None:
    from annotation.models import Assignment

    made, page = _paused(bench)
    if not page.endswith("/before/"):
        for attack in (
            "f. the text of what is contested on the page of a pause",
            "f. titles of several controls there",
        ):
            bench.note(attack, "page", f"{page}: nobody can be paused (a)", NOT_THERE)
        return
    shown = made.annotators[0].text(page)
    had = Assignment.objects.filter(duty__stands_for=made.duty, duty__purpose="control").select_related("item")
    texts = sum(all(turn["text"].strip() in shown for turn in one.item.turns) for one in had)
    happened = f"{texts} of {len(had)} controls with their whole text"
    bench.note("f. the text of what is contested on the page of a pause", "page", happened, texts == len(had) > 0)
    heads = re.findall(r"<h[23][^>]*>(.*?)</h[23]>", shown, re.DOTALL)
    of_items = [re.sub(r"<[^>]+>", "", one).strip() for one in heads if "طرد" in one]
    happened = f"{len(of_items)} headings, {len(set(of_items))} different: {'; '.join(sorted(set(of_items)))}"
    happened = happened if of_items else "no heading names an item"
    bench.note("f. titles of several controls there", "page", happened, len(set(of_items)) == len(had))


def training_feedback(bench: DeskBench) -> None:
    from annotation.models import Assignment

    made = bench.scene(items=10, marked=[("training", 1), ("training", 2)], rule={"exam_items": 0})
    maarika = made.annotators[0]
    page = maarika.page("POST", f"/desk/{made.duty.pk}/training/", {}).headers["Location"]
    told = made.submit(page, WRONG).json()
    shown = maarika.text(told["next"])
    item = Assignment.objects.get(key=page.split("/")[3]).item
    has_text = all(turn["text"].strip() in shown for turn in item.turns)
    bench.note("f. the text in the feedback of the training", "page", "whole" if has_text else "missing", has_text)


def one_hand(bench: DeskBench) -> None:
    from tests import make

    points = tuple(range(10))
    anchors = {str(point): {"en": {"text": f"At {point} " + "a long anchor " * 9}} for point in points}
    long = [make.criterion(key, points, anchors=anchors) for key in ("fluency", "coherence")]
    in_sight = {}
    for hand in ("left", "right"):
        made = bench.scene(*long, items=1)
        with bench.opened(made.annotators[0], made.next(), viewport={"width": 390, "height": 844}) as page:
            page.locator(".desk-switch [data-shows=rubric]").click()
            page.locator("[data-hands]").select_option(hand)
            for key, step in (("coherence", "1"), ("fluency", "-1")):
                page.locator(f"[data-steps='{step}']").click()
                page.wait_for_timeout(700)
                box = page.locator(f"[data-criterion={key}] .criterion-name").bounding_box()
                in_sight[hand, key] = bool(box and box["y"] >= 0 and box["y"] + box["height"] <= 844)
    happened = f"the name of a criterion with ten long points in sight: {sum(in_sight.values())} of {len(in_sight)}"
    bench.note("f. one-hand mode on a phone", "keys", happened, all(in_sight.values()))


SHARE = "f. nothing left after 41 of 47"


def all_scored(bench: DeskBench) -> None:
    made = bench.scene(items=94, annotators=2)
    for number, many in ((0, 41), (1, 53)):
        person, desk = made.annotators[number], f"{made.project.slug}/desk"
        for _item in range(many):
            key = person.api("POST", f"{desk}/{made.duty.pk}/take/").json()["key"]
            person.api("POST", f"{desk}/at/{key}/", scores_in_body(RIGHT))
    page = re.sub("[\u2066-\u2069]", "", made.annotators[0].text(f"/desk/{made.duty.pk}/"))
    home = made.annotators[0].text("/desk/")
    claims = [words for words in ("All scored", "All done") if words in page or words in home]
    (row,) = made.annotators[0].api("GET", f"{made.project.slug}/desk/").json()
    beside = "41 of 47" in page
    happened = f"{'41 of 47' if beside else 'another count'} beside {' and '.join(claims) or '“Nothing left to score”'}"
    bench.note(SHARE, "page", happened, beside and not claims)
    happened = f"done {row['done']} of {row['total']}" + (f", left {row['left']}" if "left" in row else "")
    bench.note(SHARE, "API", happened, (row["done"], row["total"], row.get("left", 0)) == (41, 47, 0))


def fallback_language(bench: DeskBench) -> None:
    """A rubric whose source is English before an Arabic panel."""
    from tests import make

    part = make.criterion("fluency", (0, 1), name={"en": "Fluency", "ar": "الطلاقة"}, question={"en": "Is it fluent?"})
    part["anchors"] = {"0": {"en": {"text": "No native"}}, "1": {"en": {"text": "Native"}, "ar": {"text": "فصيح"}}}
    part["mark_if"] = {"en": ["It reads well"]}
    rows = [make.item_row(n, "ar", turns=[{"speaker": "agent", "text": "مرحبا"}]) for n in (1, 2)]
    made = bench.scene(part, items=rows, language="ar")
    page = made.next()
    wanted = {
        "Fluency's own name": 'lang="ar" dir="rtl">الطلاقة',
        "question": 'lang="en" dir="ltr">Is it fluent?',
        "anchor": 'lang="en" dir="ltr">No native',
        "translated anchor": 'lang="ar" dir="rtl">فصيح',
        "list": 'lang="en" dir="ltr"><li>It reads well',
    }
    shown = " ".join(made.annotators[0].text(page).split())
    wrong = [name for name, marked in wanted.items() if marked not in shown]
    happened = f"{len(wanted) - len(wrong)} of {len(wanted)} texts with their own language and direction"
    bench.note(
        "f. a text that is not translated",
        "page",
        happened + (f"; not: {', '.join(wrong)}" if wrong else ""),
        not wrong,
    )


def flags_of_severity(bench: DeskBench) -> None:
    """Five people who differ by chance, one who gives a point less, one a point more, and a paused one who gives 0."""
    from annotation.desk import leasing, service
    from annotation.desk.answers import Answer
    from annotation.models import Annotator, ControlPause
    from tests import make

    criteria = [make.criterion(name, (0, 1, 2, 3, 4)) for name in (*NAMES, "warmth")]
    keys = [one["key"] for one in criteria]
    made = bench.scene(*criteria, items=31, annotators=8, overlap=8, marked=())
    from annotation.qualification import references
    from annotation.qualification.references import ReferenceRow

    rows = [ReferenceRow(item="d31", purpose="control", criterion=key, score="2") for key in keys]
    references.mark(campaign=made.duty.campaign, rows=rows)
    references.set_rule(campaign=made.duty.campaign, seed=1, control_rate=0.01)
    rng = random.Random(SEVERITY_SEED)
    truth: dict[tuple[int, str], float] = {}
    given: dict[tuple[int, str], dict[int, float]] = {}
    names = {}
    people = [Annotator.objects.get(project=made.project, user=one.user) for one in made.annotators]
    for number, annotator in enumerate(people):
        names[number] = annotator.pseudonym
        while taken := leasing.take(duty=made.duty, annotator=annotator):
            scores = {}
            for key in keys:
                true = truth.setdefault((taken.item_id, key), rng.gauss(2, 0.6))
                score = true + rng.gauss(0, 0.8) - {0: 1, 1: -1}.get(number, 0)
                scores[key] = 0 if number == 7 else min(4, max(0, round(score)))
                if taken.duty_id == made.duty.pk:
                    given.setdefault((taken.item_id, key), {})[number] = scores[key]
            sent = {key: Answer(score=score) for key, score in scores.items()}
            assert taken.key
            service.submit(assignment=taken, key=taken.key, answers=sent, seconds=20)
    ControlPause.objects.create(duty=made.duty, annotator=people[7], controls=9, matched=0.1, upper=0.3)
    address, found = f"/p/{made.project.slug}/numbers/{made.campaign}/work/", ""
    deadline = time.monotonic() + WAIT
    while "than the others on" not in found and time.monotonic() < deadline:
        found = made.lead.page("GET", address).text
        time.sleep(1)
    found = re.sub("[\u2066-\u2069]", "", html.unescape(found))
    flags = _flags_of(found, names)
    by_chance = [(number, key) for number, key, _value in flags if number in range(2, 7)]
    own = {
        (number, key): fmean(
            scores[number] - fmean(score for other, score in scores.items() if other not in (number, 7))
            for (_item, name), scores in given.items()
            if name == key and number in scores
        )
        for number in (0, 1)
        for key in keys
    }
    planted = {(number, key): value for number, key, value in flags if number in (0, 1)}
    far = [which for which, value in planted.items() if abs(value - own[which]) > 0.006]
    happened = (
        f"{len(planted)} of 10 flags of the two planted people, {len(far)} with another number than mine without the "
        f"paused one; {len(by_chance)} flags of five who differ by chance"
    )
    bench.note("f. flags of severity", "page", happened, len(planted) == 10 and not far and not by_chance)


SEVERITY_SEED = 7
FLAG = re.compile(r"Gives (?:lower|higher) scores than the others on (\w+): ([−+\d.]+)")


def _flags_of(page: str, names: dict[int, str]) -> list[tuple[int, str, float]]:
    """The flags on the page: person, criterion, value. A flag stands below the name of its person."""
    found, current = [], -1
    number_of = {name: number for number, name in names.items()}
    pattern = "|".join([*(re.escape(name) for name in names.values()), FLAG.pattern])
    for match in re.finditer(pattern, page):
        if match.group() in number_of:
            current = number_of[match.group()]
        else:
            found.append((current, match.group(1), float(match.group(2).replace("−", "-"))))
    return found


ATTACKS: tuple[Callable[[DeskBench], None], ...] = (
    *(pause_on_pages, pause_by_api, life_on_pages, life_by_api, three_digits, thirty_items, burst),
    *(critical_on_the_page, critical_by_api, critical_in_the_docs, skipped_controls),
    *(two_tabs_on_pages, two_tabs_by_api, removed_duty_on_pages, removed_duty_by_api),
    *(removed_person_on_pages, removed_person_by_api, paused_page, training_feedback, one_hand),
    *(all_scored, fallback_language, flags_of_severity),
)


def attack_desk(kind: str, only: str = "") -> list[AttackOutcome]:
    """Every attack on the code that this process imports; a fault of an attack is what happened."""
    from playwright.sync_api import sync_playwright

    from bench import server
    from panelbench.supervisor import Warden

    with contextlib.ExitStack() as stack:
        mails = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="panelbench-mails-")))
        os.environ |= {
            "ALLOWED_HOSTS": f"localhost,127.0.0.1,{HOST}",
            "EMAIL_URL": f"filemail:///{mails}",
            "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
        }
        stack.enter_context(server.database(kind))
        log = Path(os.environ["PANELBENCH_DATA_DIR"]) / "programs.log"
        programs = stack.enter_context(server.running(kind, stack.enter_context(Warden(grace=3)), log))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        stack.callback(browser.close)
        bench = DeskBench(programs.address, mails, browser=browser)
        for attack in ATTACKS:
            if only and not any(part in attack.__name__ for part in only.split(",")):
                continue
            try:
                attack(bench)
            except Exception as error:  # noqa: BLE001 what an old code does is not known
                traceback.print_exc()
                bench.note(attack.__name__, "", f"{type(error).__name__}: {str(error)[:160]}", "no")
        return bench.outcomes


def compare_codes(before: str) -> str:
    """The table of both codes on both databases, one process for each: Django knows one database in its life."""
    with tempfile.TemporaryDirectory(prefix="panelbench-before-") as folder:
        old = Path(folder) / "code"
        subprocess.run(["git", "worktree", "add", "--detach", str(old), before], cwd=ROOT, check=True)
        try:
            found = {
                (code, kind): _alone(path, kind)
                for code, path in (("before", old), ("now", ROOT))
                for kind in DATABASES
            }
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(old)], cwd=ROOT, check=True)
    return outcome_table(found)


def outcome_table(found: Mapping[tuple[str, str], Sequence[AttackOutcome]]) -> str:
    """A row for each attack on this code; outcomes by code (before, now) and database."""
    rows = []
    for outcome in found["now", "sqlite"]:
        cells = []
        for code in ("before", "now"):
            same = [
                next((one for one in found[code, kind] if (one.attack, one.way) == (outcome.attack, outcome.way)), None)
                for kind in DATABASES
            ]
            happened = list(dict.fromkeys(one.happened if one else NOT_THERE for one in same))
            cells += [" / ".join(happened), *(one.holds if one else NOT_THERE for one in same)]
        rows.append("| " + " | ".join(part.replace("|", "·") for part in (outcome.attack, outcome.way, *cells)) + " |")
    return "\n".join(
        [
            "| attack | by | before: what happened | SQLite | PostgreSQL | now: what happened | SQLite | PostgreSQL |",
            "|---|---|---|---|---|---|---|---|",
            *rows,
        ]
    )


def _alone(path: Path, kind: str) -> list[AttackOutcome]:
    """The attacks on one checkout, whose own modules come first; this file itself is always the newest."""
    code = os.pathsep.join(str(path / part) for part in ("", "platform", "platform/client"))
    command = [sys.executable, "-P", str(Path(__file__).resolve()), "--database", kind, "--json"]
    ran = subprocess.run(
        command, cwd=path, env={**os.environ, "PYTHONPATH": code}, stdout=subprocess.PIPE, text=True, check=True
    )
    return [AttackOutcome(**row) for row in json.loads(ran.stdout.splitlines()[-1])]


def compare_promises() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default=BEFORE, help="the commit to compare with")
    parser.add_argument(
        "--database", choices=DATABASES, help="only this code on this database, printed and not written"
    )
    parser.add_argument(
        "--only", default="", help="with --database: only attacks whose function's name has one of these, by commas"
    )
    parser.add_argument("--json", action="store_true", help="with --database: print rows for a program")
    options = parser.parse_args()
    if options.database:
        outcomes = attack_desk(options.database, options.only)
        if options.json:
            print(json.dumps([asdict(outcome) for outcome in outcomes]))
        else:
            print("\n".join(f"{one.holds:9} | {one.attack} | {one.way} | {one.happened}" for one in outcomes))
        return
    table = compare_codes(options.before)
    title = "# What the desk promises, before and now"
    note = (
        f"`python -m bench.desk_promises`: the attacks of issue 26, part 0, on the commit {options.before} and on this "
        "code. The columns of the databases say whether the promise holds."
    )
    RESULTS.write_text(f"{title}\n\n{note}\n\n{table}\n", encoding="utf-8")
    print(table)


if __name__ == "__main__":
    compare_promises()
