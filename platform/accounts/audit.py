"""The audit trail, append-only: every change that other people rely on adds one entry; pages read them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any, NamedTuple

from django.apps import apps
from django.db import models, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import AuditEntry, Project, User


def label(model: type[models.Model]) -> str:
    """The name of a table in the trail."""
    return str(model._meta.label)


def record(
    *, actor: User | None, project: Project | None, verb: str, subject: models.Model, fields: Iterable[str] = ()
) -> AuditEntry:
    """Append one entry. Call it in the transaction of the change."""
    return AuditEntry.objects.create(
        actor=actor,
        project=project,
        verb=verb,
        subject=subject._meta.label,
        subject_pk=subject.pk,
        fields=sorted(fields),
    )


def record_once_a_day(
    *, actor: User | None, project: Project, verb: str, subject: models.Model, fields: Iterable[str] = ()
) -> None:
    """Append an entry about something that people do again and again, unless the day has this one already."""
    about = {
        "actor": actor,
        "project": project,
        "verb": verb,
        "subject": label(type(subject)),
        "subject_pk": subject.pk,
    }
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    today = AuditEntry.objects.filter(**about, at__gte=midnight)
    if today.exists():
        return
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)  # of two at the same moment one is recorded
        if not today.exists():
            record(actor=actor, project=project, verb=verb, subject=subject, fields=fields)


# --- what happened to one account, for its owner ---------------------------------------------------------------------
SIGN_IN, SIGN_IN_FAILED, CODE_FAILED = "sign in", "sign-in failed", "code failed"
REVOKE_TOKENS, END_SESSIONS = "revoke tokens", "end sessions"
ACTIVITIES = {
    SIGN_IN: gettext_lazy("Signed in"),
    SIGN_IN_FAILED: gettext_lazy("A sign-in with a wrong password"),
    CODE_FAILED: gettext_lazy("A sign-in with a wrong code"),
    "password changed": gettext_lazy("Password changed"),
    "password set": gettext_lazy("Password changed"),
    "password reset": gettext_lazy("Password changed through a link in an e-mail"),
    "email changed": gettext_lazy("E-mail address changed"),
    "email deleted": gettext_lazy("E-mail address removed"),
    "email confirm": gettext_lazy("E-mail address confirmed"),
    "totp activated": gettext_lazy("Authenticator app added"),
    "totp deactivated": gettext_lazy("Authenticator app removed"),
    "webauthn added": gettext_lazy("Passkey added"),
    "webauthn removed": gettext_lazy("Passkey removed"),
    "recovery codes generated": gettext_lazy("Recovery codes created"),
    "issue token": gettext_lazy("API token created"),
    "revoke token": gettext_lazy("API token revoked"),
    REVOKE_TOKENS: gettext_lazy("All API tokens revoked"),
}
ACTIVITIES_SHOWN = 20


class Activity(NamedTuple):
    """One line of the list that an account's owner sees."""

    at: datetime
    sentence: str


def record_activity(*, verb: str, user_pk: int | None, by: User | None = None) -> None:
    """Append an entry about an account. `user_pk` None: there is no such account; stored so that both cases take
    equally long."""
    AuditEntry.objects.create(actor=by, verb=verb, subject=label(User), subject_pk=user_pk)


def record_failure(*, email: str) -> None:
    """Record a failed sign-in with this e-mail address. The address itself is not stored."""
    user_pk = User.objects.filter(email=email.strip().lower()).values_list("pk", flat=True).first()
    record_activity(verb=SIGN_IN_FAILED, user_pk=user_pk)


def recent_activity(*, user: User) -> list[Activity]:
    """The newest entries about a user's account and tokens."""
    own = Q(subject=label(User), subject_pk=user.pk) | Q(actor=user, verb__in=("issue token", "revoke token"))
    entries = AuditEntry.objects.filter(own).order_by("-pk")[:ACTIVITIES_SHOWN]
    return [Activity(entry.at, str(ACTIVITIES.get(entry.verb, entry.verb))) for entry in entries]


# --- the trail of a project, for its leads ---------------------------------------------------------------------------
NOBODY = "-"  # the value in addresses for entries without a person
PAGE = 200

READ_IMPORT = "read import"

# By verb, the words on the page; the name of the subject follows them.
ACTIONS = {
    "accept mismatch": gettext_lazy("accepted a score that differs from its reference"),
    "reject mismatch": gettext_lazy("did not accept a score that differs from its reference"),
    "contest control": gettext_lazy("contested the reference of a control item"),
    "mark reference items": gettext_lazy("marked reference items of a campaign"),
    "unmark reference item": gettext_lazy("unmarked a reference item of a campaign"),
    "pause annotator": gettext_lazy("paused an annotator because their controls matched too seldom"),
    "reinstate annotator": gettext_lazy("let a paused annotator work again"),
    "publish guidelines": gettext_lazy("published guidelines"),
    "test judge": gettext_lazy("tested a judge before it was saved"),
    "set qualification rule": gettext_lazy("changed what a campaign asks of its annotators"),
    "export ratings": gettext_lazy("exported the ratings of a campaign"),
    "download item scores": gettext_lazy("downloaded the scores of locked items of an alignment"),
    "deliver shared scores": gettext_lazy("gave the scores of locked items to somebody with a share link"),
    "export questionnaire": gettext_lazy("exported the answers to a closing questionnaire"),
    "export pay-sheet": gettext_lazy("exported a pay sheet"),
    "accept invitation": gettext_lazy("joined by an invitation"),
    "add version": gettext_lazy("added a version of a judge to an alignment"),
    "add provider": gettext_lazy("added a provider"),
    "change provider": gettext_lazy("changed a provider"),
    "remove provider": gettext_lazy("removed a provider"),
    "test provider": gettext_lazy("tested a provider"),
    "add webhook": gettext_lazy("added a webhook"),
    "adjudicate": gettext_lazy("adjudicated an item"),
    "allocate": gettext_lazy("gave a task to a panel"),
    "allow provider": gettext_lazy("allowed a provider"),
    "apply taxonomy": gettext_lazy("gave a panel items by the rules of a taxonomy"),
    "archive project": gettext_lazy("archived the project"),
    "ask for version": gettext_lazy("asked a model for a version of a judge"),
    "change mapping": gettext_lazy("changed a mapping"),
    "add annotators": gettext_lazy("gave each item of a task more annotators"),
    "change duty": gettext_lazy("changed deadline, priority, quota or pause of a task"),
    "change project": gettext_lazy("changed a setting of the project"),
    "change rubric version": gettext_lazy("changed the version of a campaign's rubric"),
    "undo rubric version": gettext_lazy("went back to the former version of a campaign's rubric"),
    "change role": gettext_lazy("changed a role"),
    "change webhook": gettext_lazy("changed a webhook"),
    "switch questionnaire": gettext_lazy("switched the closing questionnaire of a campaign on or off"),
    "close alignment": gettext_lazy("closed the alignment of a judge"),
    "create alignment": gettext_lazy("started the alignment of a judge"),
    "curate dataset": gettext_lazy("curated a dataset"),
    "start user comparison": gettext_lazy("started a comparison of simulated users with people"),
    "create design": gettext_lazy("created a design"),
    "create panel": gettext_lazy("created a panel"),
    "declare judge": gettext_lazy("added a judge"),
    "declare thresholds": gettext_lazy("declared thresholds for judges"),
    "delete mapping": gettext_lazy("deleted a mapping"),
    "delete project": gettext_lazy("deleted the project"),
    "purge project": gettext_lazy("deleted the project permanently, after its 30 days"),
    "restore project": gettext_lazy("restored the deleted project"),
    "design cancelled": gettext_lazy("cancelled a design"),
    "design paused": gettext_lazy("paused a design"),
    "design running": gettext_lazy("resumed a design"),
    "discard import": gettext_lazy("discarded an import"),
    "draft rubric": gettext_lazy("drafted a rubric"),
    "edit draft": gettext_lazy("changed the draft of a rubric"),
    "draw next items": gettext_lazy("drew the next items of a task"),
    "answer question": gettext_lazy("answered a question of an annotator"),
    "set text format": gettext_lazy("changed how the texts of a dataset are shown"),
    "extend campaign": gettext_lazy("moved a campaign to a newer version of its dataset"),
    "found project": gettext_lazy("created the project"),
    "hand out items": gettext_lazy("assigned new items to a panel"),
    "import bundle": gettext_lazy("imported a bundle"),
    "import ratings": gettext_lazy("imported ratings"),
    "import verdicts": gettext_lazy("imported verdicts"),
    "invite": gettext_lazy("invited somebody"),
    "issue token": gettext_lazy("created an API token"),
    "set pay rate": gettext_lazy("set the pay of a task"),
    "set alignment budget": gettext_lazy("set the budget of an alignment"),
    "set design budget": gettext_lazy("set the budget of a design"),
    "start design": gettext_lazy("started a design"),
    "judge run cancelled": gettext_lazy("cancelled a judge run"),
    "judge run paused": gettext_lazy("paused a judge run"),
    "judge run running": gettext_lazy("resumed a judge run"),
    "keep generator names": gettext_lazy("let annotators see generators' names"),
    "look at locked split": gettext_lazy("looked at the locked labels of an alignment"),
    "map import": gettext_lazy("changed the mapping of an import"),
    "move campaign to closed": gettext_lazy("closed a campaign"),
    "move campaign to open": gettext_lazy("opened a campaign again"),
    "move campaign to paused": gettext_lazy("paused a campaign"),
    "open campaign": gettext_lazy("opened a campaign"),
    "pace judge": gettext_lazy("changed the limits of a judge"),
    "publish rubric": gettext_lazy("published a rubric"),
    READ_IMPORT: gettext_lazy("read a file of an import"),
    "read locked labels": gettext_lazy("saw labels of locked items of an alignment"),
    "record decision": gettext_lazy("recorded a decision of a calibration meeting"),
    "remove error tag": gettext_lazy("removed the reason of an error of a judge"),
    "remove member": gettext_lazy("removed a member"),
    "remove person": gettext_lazy("removed the data of a person who asked for it"),
    "remove selection": gettext_lazy("removed a selection"),
    "remove taxonomy": gettext_lazy("removed a taxonomy"),
    "remove webhook": gettext_lazy("removed a webhook"),
    "rename project": gettext_lazy("changed the name or the description of the project"),
    "renew webhook secret": gettext_lazy("renewed the secret of a webhook"),
    "rerun failed calls": gettext_lazy("repeated failed calls"),
    "rerun calls": gettext_lazy("repeated calls"),
    "reopen skip": gettext_lazy("marked a skipped item as unresolved"),
    "resolve skip": gettext_lazy("marked a skipped item as resolved"),
    "return items": gettext_lazy("returned items in progress to the queue of a task"),
    "revoke invitation": gettext_lazy("withdrew an invitation"),
    "revoke provider": gettext_lazy("revoked a provider"),
    "revoke share": gettext_lazy("revoked a share link"),
    "revoke token": gettext_lazy("revoked an API token"),
    "save mapping": gettext_lazy("saved a mapping"),
    "seat annotator": gettext_lazy("added an annotator to a panel"),
    "search for version": gettext_lazy("started a search for a version of a judge"),
    "select items": gettext_lazy("selected items"),
    "send again": gettext_lazy("sent a delivery again"),
    "set budget": gettext_lazy("set the budget of a judge run"),
    "share campaign": gettext_lazy("shared a campaign by a link"),
    "start import": gettext_lazy("started an import"),
    "start judge run": gettext_lazy("started a judge run"),
    "start pilot": gettext_lazy("started the pilot of a design"),
    "ask for texts again": gettext_lazy("asked again for texts of a generation plan"),
    "create generation plan": gettext_lazy("created a generation plan"),
    "decide on texts": gettext_lazy("decided on written texts"),
    "generation plan cancelled": gettext_lazy("cancelled a generation plan"),
    "generation plan paused": gettext_lazy("paused a generation plan"),
    "generation plan running": gettext_lazy("resumed a generation plan"),
    "set budget of plan": gettext_lazy("set the budget of a generation plan"),
    "start examples": gettext_lazy("started the examples of a generation plan"),
    "start generation plan": gettext_lazy("started a generation plan"),
    "store texts": gettext_lazy("stored written texts as a dataset"),
    "store taxonomy": gettext_lazy("stored a taxonomy"),
    "store dataset": gettext_lazy("stored a dataset"),
    "tag error": gettext_lazy("wrote the reason of an error of a judge"),
    "take back duty": gettext_lazy("removed a task"),
    "take back next items": gettext_lazy("withdrew drawn items that nobody had rated"),
    "test webhook": gettext_lazy("tested a webhook"),
    "turn webhook off": gettext_lazy("turned a webhook off"),
    "turn webhook on": gettext_lazy("turned a webhook on"),
    "leave out items": gettext_lazy("made a dataset without the items of some findings"),
    "unarchive project": gettext_lazy("restored the project"),
    "undo import": gettext_lazy("undid an import"),
    "unseat annotator": gettext_lazy("removed an annotator from a panel"),
    "upload files": gettext_lazy("uploaded files"),
    "accept text": gettext_lazy("accepted a text of a person"),
    "change duty to write": gettext_lazy("changed a writing task"),
    "open duty to write": gettext_lazy("opened a writing task"),
    "release text": gettext_lazy("gave the prompt of a text to somebody else"),
    "send text back": gettext_lazy("sent a text back to its author"),
    "store written texts": gettext_lazy("stored texts of people as items"),
    "accept prompt": gettext_lazy("accepted a prompt"),
    "change prompt collection": gettext_lazy("changed a prompt collection"),
    "change slots": gettext_lazy("changed which prompts are wanted"),
    "close prompt collection": gettext_lazy("closed a prompt collection"),
    "create prompt collection": gettext_lazy("created a prompt collection"),
    "open prompt collection": gettext_lazy("opened a prompt collection again"),
    "reject prompt": gettext_lazy("rejected a prompt"),
    "release prompt": gettext_lazy("gave the place of a prompt to somebody else"),
    "send back prompt": gettext_lazy("sent a prompt back"),
    "set prompt writers": gettext_lazy("changed who writes and reviews prompts"),
    "store prompts": gettext_lazy("stored accepted prompts as a dataset"),
    "submit prompt": gettext_lazy("submitted a prompt"),
    "withdraw draft": gettext_lazy("withdrew the draft of a rubric"),
}
EXPORTED = gettext_lazy("exported %(what)s")

# By table, the word for one of its rows on the page.
THINGS = {
    "accounts.Profile": gettext_lazy("profile"),
    "analytics.GateThresholds": gettext_lazy("thresholds of decisions"),
    "analytics.Transfer": gettext_lazy("export"),
    "annotation.Adjudication": gettext_lazy("adjudication"),
    "annotation.ItemQuestion": gettext_lazy("question"),
    "annotation.PayRate": gettext_lazy("pay rate"),
    "annotation.QualificationRule": gettext_lazy("qualification rule"),
    "annotation.ReferenceItem": gettext_lazy("reference item"),
    "annotation.Rubric": gettext_lazy("rubric"),
    "judging.AlignmentProposal": gettext_lazy("proposed version"),
    "judging.AlignmentSearch": gettext_lazy("search for a version"),
    "accounts.Delivery": gettext_lazy("webhook delivery"),
    "accounts.Invitation": gettext_lazy("invitation"),
    "accounts.Membership": gettext_lazy("membership"),
    "accounts.Project": gettext_lazy("project"),
    "accounts.Token": gettext_lazy("API token"),
    "accounts.User": gettext_lazy("account"),
    "accounts.Webhook": gettext_lazy("webhook"),
    "analytics.Share": gettext_lazy("share link"),
    "annotation.Campaign": gettext_lazy("campaign"),
    "annotation.ControlPause": gettext_lazy("pause"),
    "annotation.Guideline": gettext_lazy("guidelines"),
    "annotation.MismatchReview": gettext_lazy("decision about a score"),
    "annotation.Dataset": gettext_lazy("dataset"),
    "annotation.Duty": gettext_lazy("rating task"),
    "annotation.Item": gettext_lazy("item"),
    "annotation.ItemSelection": gettext_lazy("selection"),
    "annotation.Import": gettext_lazy("import"),
    "annotation.CollectionMember": gettext_lazy("writer of prompts"),
    "annotation.CollectedPrompt": gettext_lazy("prompt"),
    "annotation.PromptCollection": gettext_lazy("prompt collection"),
    "annotation.Panel": gettext_lazy("panel"),
    "annotation.PanelSeat": gettext_lazy("membership of a panel"),
    "annotation.RubricVersion": gettext_lazy("rubric version"),
    "annotation.SavedMapping": gettext_lazy("mapping"),
    "annotation.Taxonomy": gettext_lazy("taxonomy"),
    "annotation.Skip": gettext_lazy("skipped item"),
    "annotation.WritingDuty": gettext_lazy("writing task"),
    "annotation.WritingText": gettext_lazy("text of a person"),
    "judging.Alignment": gettext_lazy("alignment"),
    "judging.GenerationPlan": gettext_lazy("generation plan"),
    "judging.Judge": gettext_lazy("judge"),
    "judging.JudgeDesign": gettext_lazy("design"),
    "judging.JudgeRun": gettext_lazy("judge run"),
    "judging.ProviderAllowance": gettext_lazy("provider"),
    "judging.ProviderTest": gettext_lazy("test of a provider"),
    "judging.JudgeTrial": gettext_lazy("test of a judge"),
    "judging.ErrorTag": gettext_lazy("reason of an error"),
    "judging.StoredProvider": gettext_lazy("provider"),
}


class TrailEntry(NamedTuple):
    """One entry in words: person, action, subject, and the names of the changed fields."""

    at: datetime
    person: str
    action: str
    thing: str
    name: str
    fields: list[str]


class TrailPage(NamedTuple):
    """A page of entries, newest first; ``older`` is the primary key for `before` of the next page, None if there is
    none."""

    lines: list[TrailEntry]
    older: int | None


class TrailChoices(NamedTuple):
    """The choices of the filters: (value, label) of every person, action and kind of subject in a trail."""

    person: list[tuple[str, str]]
    action: list[tuple[str, str]]
    thing: list[tuple[str, str]]


def nobody() -> str:
    """The label for actions without a signed-in person: by the server itself, or by a command of the operator."""
    return _("Server")


def action_in_words(verb: str) -> str:
    """A verb of the trail in the page's words."""
    if verb.startswith("export "):
        return EXPORTED % {"what": verb.removeprefix("export ").replace("-", " ")}
    return str(ACTIONS.get(verb, verb))


def thing_in_words(label: str) -> str:
    """The word for a row of a table."""
    return str(THINGS.get(label, label.rpartition(".")[2]))


def trail_choices(entries: QuerySet[AuditEntry]) -> TrailChoices:
    """The people, actions and kinds of subjects in these entries, sorted by label."""
    plain = entries.order_by()
    actors = set(plain.values_list("actor", flat=True).distinct())
    people = [(str(user.pk), str(user)) for user in User.objects.filter(pk__in=actors - {None})]
    verbs = plain.values_list("verb", flat=True).distinct()
    labels = plain.values_list("subject", flat=True).distinct()
    return TrailChoices(
        person=[*([(NOBODY, nobody())] if None in actors else []), *_sorted(people)],
        action=_sorted((verb, action_in_words(verb)) for verb in verbs),
        thing=_sorted((label, thing_in_words(label)) for label in labels),
    )


def _sorted(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(pairs, key=lambda pair: pair[1].casefold())


def trail_page(
    entries: QuerySet[AuditEntry],
    *,
    before: int | None = None,
    person: str = "",
    action: str = "",
    thing: str = "",
    first: date | None = None,
    last: date | None = None,
) -> TrailPage:
    """The newest entries that match all filters; days (`first`, `last`) in the server's time zone, both included."""
    filters: dict[str, Any] = {
        "verb": action,
        "subject": thing,
        "pk__lt": before,
        "at__date__gte": first,
        "at__date__lte": last,
    }
    matching = entries.filter(**{field: value for field, value in filters.items() if value})
    if person:
        matching = matching.filter(actor__isnull=True) if person == NOBODY else matching.filter(actor=int(person))
    read = list(matching.select_related("actor")[: PAGE + 1])
    return TrailPage(_lines(read[:PAGE]), read[PAGE - 1].pk if len(read) > PAGE else None)


def _lines(entries: list[AuditEntry]) -> list[TrailEntry]:
    names = _names(entries)
    return [
        TrailEntry(
            at=entry.at,
            person=str(entry.actor) if entry.actor else nobody(),
            action=action_in_words(entry.verb),
            thing=thing_in_words(entry.subject),
            name=names.get((entry.subject, entry.subject_pk or 0), f"#{entry.subject_pk}" if entry.subject_pk else ""),
            fields=[field.replace("_", " ") for field in entry.fields],
        )
        for entry in entries
    ]


def _names(entries: list[AuditEntry]) -> dict[tuple[str, int], str]:
    """The present names of the rows; rows that are deleted or have no name are left out."""
    keys_by_label: dict[str, set[int]] = defaultdict(set)
    for entry in entries:
        if entry.subject_pk is not None:
            keys_by_label[entry.subject].add(entry.subject_pk)
    names = {}
    for label, keys in keys_by_label.items():
        model = _model(label)
        if model is not None and model.__str__ is not models.Model.__str__:
            rows = model._base_manager.select_related().filter(pk__in=keys)
            names.update({(label, row.pk): str(row) for row in rows})
    return names


def _model(label: str) -> type[models.Model] | None:
    try:
        return apps.get_model(label)
    except LookupError:
        return None
