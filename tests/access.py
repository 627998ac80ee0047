"""Every address of the product, who may reach it, and a project full of things that must not be seen by others.

A new route needs nothing here as long as it lies under a project and is for leads and researchers. Any other is named
in ALLOWED below, or the matrix fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import unwrap
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from accounts import jobs, people, tokens
from accounts.models import Delivery, Job, Membership, Role, Scope, Webhook
from analytics.answers import revisions
from analytics.exporting import exports, shares, transfers
from analytics.models import Chart, Snapshot
from annotation import selections, taxonomies
from annotation.collection import prompt_collections, prompt_writing, texts
from annotation.collection.prompt_collections import WantedPrompts
from annotation.desk import leasing, service
from annotation.desk.answers import Answer
from annotation.imports import opening, saved_mappings, uploads
from annotation.models import ControlPause, Import, ItemQuestion, RubricChange, Skip
from annotation.qualification import guidelines, references
from annotation.qualification.references import ReferenceRow
from annotation.readers.mapping import Mapping
from judging.generation import curating
from judging.generation.curating import CurationSettings
from judging.generation.drawing import draw_parameters
from judging.generation.specs import parse_spec, preset
from judging.models import (
    Alignment,
    AlignmentCandidate,
    AlignmentProposal,
    Attempt,
    Call,
    DesignCell,
    ErrorTag,
    GenerationAttempt,
    GenerationFamily,
    GenerationPlan,
    Judge,
    JudgeDesign,
    JudgeRun,
    JudgeTrial,
    PlanGenerator,
    Realisation,
    Verdict,
)
from tests.annotation import scene
from tests.cast import Cast, person

SIGHTED = {"aino", "boris"}
LEAD = {"aino"}
MEMBERS = {"aino", "boris", "maarika", "layla"}
PEOPLE = {"aino", "boris", "maarika", "layla", "zoltan"}
EVERYONE = PEOPLE | {"nobody"}
HOLDER = {"maarika"}
OWNER = {"boris"}

# Routes that are not simply "below a project, for its leads and researchers".
ALLOWED: dict[str, set[str]] = {
    **dict.fromkeys(("healthz", "join", "set_language", "schema", "api_docs"), EVERYONE),
    **dict.fromkeys(("home", "me", "erase_me", "profile", "tokens", "desk", "desk_work", "desk_leave"), PEOPLE),
    **dict.fromkeys(("api_me", "api_projects"), PEOPLE),
    "project_new": {"aino"},  # the first account of an instance
    "all_jobs": set(),  # staff only
    "any_job_cancel": set(),
    "providers": set(),  # superusers only
    "provider": set(),
    "provider_test": set(),
    "provider_remove": set(),
    "api_provider": set(),
    "api_provider_tests": set(),
    "api_providers": SIGHTED | {"zoltan"},
    **dict.fromkeys(("people_invite", "api_invitations"), LEAD),
    **dict.fromkeys(("people", "member_role", "member_remove", "invitation_revoke", "audit", "api_members"), LEAD),
    **dict.fromkeys(("api_project", "api_desk"), MEMBERS),
    **dict.fromkeys(("person_removals", "person_removal", "api_people", "api_person_removal"), LEAD),
    **dict.fromkeys(("panel_seat", "panel_unseat", "api_seat"), LEAD),
    "token_revoke": HOLDER,
    **dict.fromkeys(("desk_duty", "api_desk_take"), HOLDER),
    **dict.fromkeys(("desk_item", "desk_submit", "desk_draft", "desk_heartbeat", "desk_skip", "desk_undo"), HOLDER),
    **dict.fromkeys(("api_desk_submit", "desk_scored", "desk_revise"), HOLDER),
    **dict.fromkeys(("desk_before", "desk_guidelines", "desk_training", "desk_exam"), HOLDER),
    **dict.fromkeys(("prompt_collections", "api_prompt_collections"), MEMBERS),
    **dict.fromkeys(("prompt_collection", "prompt", "api_prompt_collection", "api_prompts"), SIGHTED | HOLDER),
    "prompt_release": SIGHTED,
    **dict.fromkeys(("api_prompt_check", "api_prompt_review"), HOLDER),
    **dict.fromkeys(
        ("prompt_write", "prompt_draft", "prompt_revision_draft", "prompt_review", "prompt_decide"), HOLDER
    ),
    **dict.fromkeys(("desk_writing", "desk_writing_text", "desk_writing_submit", "desk_writing_draft"), HOLDER),
    **dict.fromkeys(("desk_writing_skip", "api_desk_writing_take", "api_desk_writing_submit"), HOLDER),
    "api_desk_writing": MEMBERS,
    "desk_closing": set(),  # nobody before the lead switches it on and a duty is done
    **dict.fromkeys(("questionnaire", "questionnaire_csv", "api_questionnaire"), LEAD),
    **dict.fromkeys(("desk_feedback", "desk_contest", "desk_ask", "desk_questions"), HOLDER),
    **dict.fromkeys(("annotator_questions", "answer_question"), LEAD),
    "api_reinstate": LEAD,
    **dict.fromkeys(("rubric_change", "rubric_change_undo", "api_rubric_changes", "api_rubric_change_undo"), LEAD),
    "api_upload": OWNER,
    **dict.fromkeys(("transfer_file", "transfer_remove", "api_transfer", "api_transfer_content"), OWNER),
    **dict.fromkeys(("import_bundle", "api_bundles"), LEAD),
    **dict.fromkeys(("project_rename", "project_delete"), LEAD),
    "project_restore": set(),  # there is nothing to restore
    "api_project_restore": set(),
    **dict.fromkeys(("settings", "project_rules", "shares", "share_revoke", "api_shares", "api_share"), LEAD),
    **dict.fromkeys(("thresholds", "workload", "pay_sheet", "set_pay_rate"), LEAD),
    **dict.fromkeys(("alignment_close", "api_alignment_close"), LEAD),
    **dict.fromkeys(("webhooks", "webhook", "webhook_turn", "webhook_renew", "webhook_test", "webhook_remove"), LEAD),
    **dict.fromkeys(("delivery_again", "api_webhooks", "api_webhook", "api_webhook_secret", "api_webhook_test"), LEAD),
    **dict.fromkeys(("api_deliveries", "api_delivery_again"), LEAD),
    # Whoever holds the link, but for the study's own annotators.
    **dict.fromkeys(
        ("shared", "shared_rubric", "shared_chart", "shared_table", "shared_digest", "shared_figures"),
        EVERYONE - {"maarika", "layla"},
    ),
}
# Django's and allauth's own account pages show their reader's own account and nothing else.
OTHERS_ROUTES = ("account/",)

GENERATOR = "generator-nobody-may-see"
JUDGE = "Judge Nobody May See"
REMARK = "what another annotator wrote"
# Which of the imports an address below `verdict-imports` or `study-imports` means.
VERDICTS, STUDY = "import of verdicts", "import of a study"
TRAINED = "key of a training item"
DIALOGUE = f'{{"id": "1", "language": "et", "generator": "{GENERATOR}", "question": "?"}}'.encode()
VERDICT = f"item,judge,criterion,score\n1,{JUDGE},fluency,1\n".encode()
REFERENCE = "reference nobody may see"
HIDDEN = (REFERENCE, GENERATOR, JUDGE, REMARK, "scenario-nobody-may-see", "attribute-nobody-may-see")


@dataclass(frozen=True, slots=True)
class Route:
    """One address with the names of its parts."""

    pattern: str
    name: str
    parts: tuple[str, ...]

    @property
    def allowed(self) -> set[str]:
        """Who may reach it."""
        if self.name not in ALLOWED:
            assert "<slug:project>" in self.pattern, f"say in tests/access.py who may reach {self.pattern}"
        return ALLOWED.get(self.name, SIGHTED)


def routes() -> list[Route]:
    """Every route of our own."""
    found = [Route(pattern, str(each.name), tuple(each.pattern.converters)) for pattern, each in _walk(get_resolver())]
    return [route for route in found if not route.pattern.startswith(OTHERS_ROUTES)]


def named_views() -> Iterator[tuple[str, Any]]:
    """Every view of our own by the name of its route, without what decorates it."""
    for pattern, each in _walk(get_resolver()):
        if not pattern.startswith(OTHERS_ROUTES):
            yield str(each.name), unwrap(each.callback)


def _walk(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for each in resolver.url_patterns:
        pattern = prefix + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from _walk(each, pattern)
        else:
            yield pattern, each


def furnish(cast: Cast) -> dict[str, Any]:
    """Fill Kassa with one of everything; returns what stands for each part of an address."""
    items = [
        scene.make.item_row(
            number,
            generator=GENERATOR,
            scenario="scenario-nobody-may-see",
            attributes={"x": "attribute-nobody-may-see"},
            external_id=f"{GENERATOR}/{number}",
        )
        for number in (1, 2, 3, 4)
    ]
    other = person("Other")
    Membership.objects.create(project=cast.kassa, user=other, role=Role.ANNOTATOR)
    duty = scene.duty(cast, items=items, overlap=2, seated=[other])
    theirs = scene.taken(cast, duty, other)
    answers = {"fluency": Answer(score=1, rationale=REMARK), "coherence": Answer(score=0, rationale=REMARK)}
    service.submit(assignment=theirs, key=theirs.key, answers=answers, seconds=5)
    mine = scene.taken(cast, duty)
    qualified = _qualified(cast, duty, taken={theirs.item_id, mine.item_id}, paused=theirs.annotator)
    owner = {"duty": duty, "item": theirs.item, "annotator": theirs.annotator}
    question = ItemQuestion.objects.create(**owner, text=REMARK)
    skip = Skip.objects.create(**owner, reason=Skip.Reason.OTHER, note=REMARK)
    invitation, secret = people.invite(project=cast.kassa, role=Role.ANNOTATOR, created_by=cast.aino)
    token, _secret = tokens.issue(user=cast.maarika, name="mine", scope=Scope.READ)
    campaign = duty.campaign
    version = campaign.rubric_version
    return {
        "project": cast.kassa.slug,
        "secret": secret,
        "member": Membership.objects.get(project=cast.kassa, user=cast.layla).pk,
        "invitation": invitation.pk,
        "token": token.pk,
        "duty": duty.pk,
        "skip": skip.pk,
        "change": RubricChange.objects.create(campaign=campaign, from_version=version, to_version=version).pk,
        "question": question.pk,
        "key": mine.key,
        "provider": "stored",
        "campaign": campaign.pk,
        "panel": duty.panel_id,
        "seat": duty.panel.seats.order_by("pk").first().pk,
        "taxonomy": taxonomies.store_example(project=cast.kassa)[0].pk,
        "selection": selections.select(campaign=campaign, name="Part", rule={"kind": "draw", "n": 1}).pk,
        "dataset": campaign.dataset_id,
        "item": theirs.item_id,
        **qualified,
        **_imported(cast),
        "mapping": saved_mappings.store_mapping(
            project=cast.kassa, kind=Import.Kind.DATASET, name="Theirs", mapping=Mapping(columns={"x": "id"})
        ).pk,
        "upload": uploads.begin_upload(project=cast.kassa, name="u.csv", size=9, actor=cast.boris).key,
        "rubric": version.rubric.key,
        "number": version.number,
        "what": "ratings",
        "part": "pairs",
        "kind": "csv",
        "picture": "decisions",
        "transfer": _transfer(cast, campaign),
        "job": Job.objects.latest("pk").pk,
        "snapshot": _snapshot(campaign).pk,
        **_judged(cast, campaign),
        **_generated(cast),
        "curation": curating.curate(dataset=campaign.dataset, name="Few", settings=CurationSettings(n=1)).pk,
        **_told(cast, campaign),
        **_prompted(cast),
        **_writing(cast, duty),
    }


def _writing(cast: Cast, duty: Any) -> dict[str, Any]:
    """A duty of the panel to write, and Maarika's draft of a text."""
    about = {"dataset": duty.campaign.dataset, "panel": duty.panel, "kind": "turns", "part": "agent"}
    writing = texts.open_writing_duty(project=cast.kassa, name="Pakk 2", **about)
    text = texts.take_prompt(duty=writing, annotator=scene.annotator(cast, cast.maarika))
    assert text is not None
    return {"writing": writing.pk, "human_text": text.pk, "writing_key": text.key}


def _prompted(cast: Cast) -> dict[str, Any]:
    """A collection for which Maarika writes and reviews, and a prompt of hers that was sent back."""
    slots = [WantedPrompts("Story", "fiction", "easy", "et", 2)]
    collection = prompt_collections.create_collection(project=cast.kassa, name="Pakk 3", slots=slots)
    maarika = prompt_collections.set_member(collection=collection, user=cast.maarika, writes=True, reviews=True)
    boris = prompt_collections.set_member(collection=collection, user=cast.boris, writes=False, reviews=True)
    prompt_collections.set_member(collection=collection, user=cast.boris, writes=False, reviews=False)
    slot = collection.slots.get()
    sent = prompt_writing.submit_prompt(member=maarika, slot=slot, text="Kirjuta jutt kassist.", key=uuid4())
    boris.reviews = True
    prompt_writing.review_prompt(version=sent, reviewer=boris, decision="send_back", comment="Pikemalt.")
    return {"collection": collection.pk, "slot": slot.pk, "prompt": sent.prompt_id}


def _qualified(cast: Cast, duty: Any, taken: set[int], paused: Any) -> dict[str, Any]:
    """Guidelines that Maarika has confirmed, reference items, her training, and somebody's pause."""
    campaign, annotator = duty.campaign, scene.annotator(cast, cast.maarika)
    guideline = guidelines.publish_guideline(campaign=campaign, language="et", text="Loe.", actor=cast.aino)
    guidelines.acknowledge(guideline=guideline, annotator=annotator)
    trained, control = campaign.dataset.items.exclude(pk__in=taken)[:2]
    told = {"criterion": "fluency", "score": "2"}
    rows = [
        ReferenceRow(item=trained.external_id, purpose="training", explanation="So.", **told),
        ReferenceRow(item=control.external_id, purpose="control", explanation=REFERENCE, **told),
    ]
    references.mark(campaign=campaign, rows=rows, actor=cast.aino)
    references.set_rule(campaign=campaign, seed=1, training=True)
    lesson = leasing.take_training_item(duty=duty, annotator=annotator, again=False)
    assert lesson is not None
    lesson = service.on_desk(user=cast.maarika, key=lesson.key)
    service.submit(assignment=lesson, key=lesson.key, answers=scene.ANSWERS, seconds=5)
    ControlPause.objects.create(duty=duty, annotator=paused, controls=5, matched=0.2, upper=0.6)
    marked = campaign.reference_items.get(item=control)
    parts = {"guideline": guideline.pk, "reference": marked.pk, "annotator": paused.pk}
    return {**parts, TRAINED: lesson.key}


def _imported(cast: Cast) -> dict[str, int]:
    uploads = {
        "file_import": opening.open_import(project=cast.kassa, kind=Import.Kind.DATASET, files=[("d.jsonl", DIALOGUE)]),
        STUDY: opening.open_import(project=cast.kassa, kind=Import.Kind.STUDY, files=[("s.csv", VERDICT)]),
        VERDICTS: opening.open_import(project=cast.kassa, kind=Import.Kind.VERDICTS, files=[("v.csv", VERDICT)]),
    }
    return {name: file_import.pk for name, file_import in uploads.items()} | {
        "file": uploads["file_import"].files.get().pk
    }


def _snapshot(campaign: Any) -> Snapshot:
    snapshot = Snapshot.objects.create(
        campaign=campaign,
        revision="1",
        settings_digest="s",
        inputs_digest="i",
        code_version=revisions.code_version(),
        seed=0,
        content={"languages": [], "judges": [], "counts": [], "estimates": []},
        seconds=0,
    )
    Chart.objects.create(snapshot=snapshot, wide="<svg></svg>", narrow="<svg></svg>")
    return snapshot


def _transfer(cast: Cast, campaign: Any) -> UUID:
    """A file that was written for Boris."""
    export = exports.checked_export(project=cast.kassa, what="ratings", subject=campaign)
    begun = transfers.prepare(export=export, actor=cast.boris)
    transfers.carry_out_transfer(transfer_pk=begun.pk)
    return begun.key


def _judged(cast: Cast, campaign: Any) -> dict[str, int]:
    judge = Judge.objects.create(
        project=cast.kassa, name=JUDGE, provider="gone", model="m", digest="d", variant={"grouping": "compound"}
    )
    run = JudgeRun.objects.create(
        project=cast.kassa, judge=judge, dataset=campaign.dataset, rubric_version=campaign.rubric_version
    )
    about = {"project": cast.kassa, "dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
    design = JudgeDesign.objects.create(name="Styles", **about)
    DesignCell.objects.create(design=design, judge=judge, position=0)
    item, criterion = campaign.dataset.items.first(), campaign.rubric_version.criteria.first()
    call = Call.objects.create(run=run, item=item, state=Call.State.SETTLED)
    attempt = Attempt.objects.create(call=call, number=1, outcome="replied", request={"messages": []}, reply={})
    verdict = Verdict.objects.create(run=run, item=item, criterion=criterion, status="ok", score=1, attempt=attempt)
    plan = {"seed": 1, "share": 0.4, "looks_allowed": 3}
    sides = {side: selections.select(campaign=campaign, name=side, rule={"kind": "draw", "n": 1}) for side in SIDES}
    aligned = Alignment.objects.create(
        project=cast.kassa, campaign=campaign, name="Closer", base=judge, **plan, **sides
    )
    version = AlignmentCandidate.objects.create(alignment=aligned, judge=judge, origin="base")
    proposal = AlignmentProposal.objects.create(alignment=aligned, parent=version, name="Next", model="m")
    jobs.begin(kind=Job.Kind.PROPOSAL, subject=proposal, project=cast.kassa, owner=None)
    rated: dict[str, Any] = {
        "judge": judge.pk,
        "design": design.pk,
        "alignment_pk": aligned.pk,
        "proposal": proposal.pk,
    }
    trial = JudgeTrial.objects.create(
        project=cast.kassa, series=uuid4(), model=JUDGE, request={"messages": []}, material={}
    )
    rated["series"] = trial.series
    tag = ErrorTag.objects.create(verdict=verdict, text="too strict")
    return {**rated, "tag": tag.pk, "run": run.pk, "call": call.pk, "verdict": verdict.pk, "attempt": attempt.pk}


def _generated(cast: Cast) -> dict[str, Any]:
    """A plan with one text, which says what no annotator may see."""
    spec = parse_spec({**preset("stories").stored, "title": GENERATOR})
    plan = GenerationPlan.objects.create(
        project=cast.kassa, name="Plan", spec=spec.stored, spec_digest=spec.digest, languages=["et"],
        families_planned=1, seed=1, only_examples=False, state="running",
    )  # fmt: skip
    writer = PlanGenerator.objects.create(plan=plan, position=0, name=GENERATOR, provider="gone", model="m")
    drawn = draw_parameters(spec, seed=1, number=1)
    family = GenerationFamily.objects.create(plan=plan, number=1, parameters=drawn)
    text = Realisation.objects.create(
        plan=plan, family=family, language="et", generator=writer, state="written", fields={"answer": GENERATOR}
    )
    GenerationAttempt.objects.create(realisation=text, number=1, outcome="replied", request={"messages": []}, reply={})
    return {"plan": plan.pk, "text": text.pk, "spec": f"plan-{plan.pk}"}


def _told(cast: Cast, campaign: Any) -> dict[str, Any]:
    """What leads let others know: a share link, and a webhook with something sent."""
    link, share = shares.make(campaign=campaign, label="reviewers", actor=cast.aino)
    webhook = Webhook.objects.create(project=cast.kassa, address="https://hooks.test/", events=[], nonce="n")
    sent = {"event": "test", "payload": {}, "state": Delivery.State.DELIVERED}
    delivery = Delivery.objects.create(webhook=webhook, key=uuid4(), **sent)
    return {"link": link.pk, "share": share, "table": "scores", "webhook": webhook.pk, "delivery": delivery.pk}


@dataclass(frozen=True, slots=True)
class Answered:
    """What a request came to, and all of its text."""

    method: str
    status: int
    text: str
    location: str

    @property
    def is_denied(self) -> bool:
        """Refused, not there, or sent to sign in."""
        return self.status in (401, 403, 404, 405) or self.location.startswith("/account/login/")


SIDES = ("tuning", "test")
METHODS = ("get", "post", "put", "patch", "delete")


def answers_to_every_method(client: Client, address: str, methods: Sequence[str] = METHODS) -> list[Answered]:
    """The address by every method, each in a transaction that is rolled back."""
    return [_ask(client, method, address) for method in methods]


def _ask(client: Client, method: str, address: str) -> Answered:
    with transaction.atomic():
        is_form = method == "get" or (method == "post" and not address.startswith("/api/"))
        options = {} if is_form else {"content_type": "application/json", "data": "{}"}
        answer = getattr(client, method)(address, **options)
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        transaction.set_rollback(True)
    return Answered(method, answer.status_code, content.decode("utf-8", "replace"), answer.headers.get("Location", ""))


def anonymous() -> Client:
    """A browser in which nobody is signed in."""
    return Client()
