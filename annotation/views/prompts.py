"""Collections of prompts: the lead's page, and those on which people write and review."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.safestring import mark_safe
from django.utils.translation import get_language, gettext_lazy, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from uuid_utils.compat import uuid7

from accounts import access, languages
from accounts.inputs import whole_number, without_nul
from accounts.models import SIGHTED, Role, User
from accounts.refusals import Refused, refusals_as_messages
from annotation.collection import prompt_collections, prompt_exports, prompt_originality, prompt_writing
from annotation.collection.prompt_collections import SlotProgress, WantedPrompts, named_lines
from annotation.collection.prompt_originality import PromptNotices, text_identity
from annotation.collection.prompt_writing import PromptWarned
from annotation.models import CollectedPrompt, CollectionMember, PromptCollection, PromptSlot
from annotation.qualification import guidelines
from annotation.views.checkup import finding_words

PAGE = 50
LONGEST_FORM = 2**20
MOST_VERSIONS = 2**31 - 1
MEMBERS = tuple(Role)
pages_and_forms = require_http_methods(["GET", "HEAD", "POST"])


def _collection(request: HttpRequest, project: str, collection: int, *, sighted: bool = False) -> PromptCollection:
    """A collection that the user sees; ``sighted``: as a lead or researcher."""
    current_project = access.require(user=request.user, slug=project, roles=SIGHTED if sighted else MEMBERS)
    visible = PromptCollection.objects.visible_to(request.user).filter(project=current_project)
    return get_object_or_404(visible.select_related("project"), pk=collection)


def _member(request: HttpRequest, project: str, collection: int) -> CollectionMember:
    """The user as a writer or reviewer of a collection; 403 for those who only see it."""
    member = prompt_collections.member_of_collection(_collection(request, project, collection), request.user)
    if member is None:
        raise PermissionDenied("This is for the writers and reviewers of the collection.")
    return member


# --- collections ------------------------------------------------------------------------------------------------------
class CollectionForm(forms.Form):
    """A collection: its name and deadline, and the prompts that are wanted, as lists or as CSV."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    due_on = forms.DateField(
        label=gettext_lazy("Due on"), required=False, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    tasks = forms.CharField(
        label=gettext_lazy("Task types"), required=False, help_text=gettext_lazy("One on each line."),
        widget=forms.Textarea(attrs={"rows": 4, "dir": "auto"}),
    )  # fmt: skip
    styles = forms.CharField(
        label=gettext_lazy("Functional styles"), required=False, help_text=gettext_lazy("One on each line."),
        widget=forms.Textarea(attrs={"rows": 3, "dir": "auto"}),
    )  # fmt: skip
    difficulties = forms.CharField(
        label=gettext_lazy("Difficulties"), required=False, help_text=gettext_lazy("One on each line."),
        widget=forms.Textarea(attrs={"rows": 3, "dir": "auto"}),
    )  # fmt: skip
    languages = forms.CharField(
        label=gettext_lazy("Languages"), required=False,
        help_text=gettext_lazy("Tags such as et, ar or pt-BR, separated by spaces or commas."),
    )  # fmt: skip
    wanted = forms.IntegerField(
        label=gettext_lazy("Prompts of each kind"), required=False, min_value=1,
        max_value=prompt_collections.MOST_WANTED, initial=10,
    )  # fmt: skip
    file = forms.FileField(
        label=gettext_lazy("Or a CSV file"), required=False,
        help_text=gettext_lazy("With the columns task, style, difficulty, language and wanted. 0 removes a kind."),
    )  # fmt: skip

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        try:
            given["slots"] = self._slots(given)
        except Refused as refused:
            self.add_error("file" if given.get("file") else "tasks", refused.sentence)
        return given

    def _slots(self, given: dict[str, Any]) -> list[WantedPrompts]:
        if file := given.get("file"):
            raw = file.read(LONGEST_FORM + 1)
            if len(raw) > LONGEST_FORM:
                raise Refused(_("The file is too large."), code="invalid")
            try:
                return prompt_collections.slots_from_csv(without_nul(raw.decode("utf-8-sig")))
            except UnicodeDecodeError:
                raise Refused(_("The file is not in UTF-8. Save it as CSV in UTF-8."), code="invalid") from None
        tasks = named_lines(without_nul(given.get("tasks") or ""))
        tags = (given.get("languages") or "").replace(",", " ").split()
        if tasks and not tags:
            raise Refused(_("Name at least one language."), code="invalid")
        return prompt_collections.crossed_slots(
            tasks=tasks,
            styles=named_lines(without_nul(given.get("styles") or "")),
            difficulties=named_lines(without_nul(given.get("difficulties") or "")),
            languages=tags,
            wanted=given.get("wanted") or 1,
        )


@require_safe
@login_required
def prompt_collections_page(request: HttpRequest, project: str) -> HttpResponse:
    """The collections of a project that the user sees."""
    held = access.membership(user=request.user, slug=project)
    visible = PromptCollection.objects.visible_to(request.user).filter(project=held.project)
    page = Paginator(visible, PAGE).get_page(request.GET.get("page"))
    rows = [(collection, prompt_collections.slot_progress(collection)) for collection in page]
    context = {
        "title": _("Prompts"),
        "project": held.project,
        "is_sighted": held.role in SIGHTED,
        "page_obj": page,
        "rows": [
            {
                "collection": collection,
                "languages": _named(prompt_collections.languages_of(one.slot for one in slots)),
                "accepted": sum(one.accepted for one in slots),
                "wanted": sum(one.slot.wanted for one in slots),
            }
            for collection, slots in rows
        ],
    }
    return render(request, "annotation/prompts/collections.html", context)


def _named(tags: Iterable[str]) -> list[str]:
    spoken = get_language()
    return [languages.name_for(tag, spoken) for tag in languages.in_name_order(tags, spoken)]


@pages_and_forms
@login_required
def new_prompt_collection(request: HttpRequest, project: str) -> HttpResponse:
    """Create a collection; its page then asks for guidelines and people."""
    current_project = access.require(user=request.user, slug=project)
    posted = request.method == "POST"
    form = CollectionForm(request.POST if posted else None, request.FILES if posted else None)
    if form.is_valid():
        given = form.cleaned_data
        if not given["slots"]:
            form.add_error("tasks", _("Name the prompts that you want: task types, or a CSV file."))
        else:
            try:
                made = prompt_collections.create_collection(
                    project=current_project,
                    name=without_nul(given["name"]),
                    slots=given["slots"],
                    due_on=given["due_on"],
                    actor=request.user,
                )
                return redirect("prompt_collection", current_project.slug, made.pk)
            except Refused as refused:
                form.add_error("name" if "name" in refused.fields else "tasks", refused.sentence)
    context = {"title": _("New prompt collection"), "project": current_project, "form": form}
    return render(request, "annotation/prompts/new.html", context)


@pages_and_forms
@login_required
def edit_prompt_collection(request: HttpRequest, project: str, collection: int) -> HttpResponse:
    """Change name, deadline, guidelines by language, and which prompts are wanted."""
    current = _collection(request, project, collection, sighted=True)
    posted = request.method == "POST"
    initial = {"name": current.name, "due_on": current.due_on}
    read = request.POST.get("read") if posted else prompt_collections.collection_digest(current)
    form = CollectionForm(request.POST if posted else None, request.FILES if posted else None, initial=initial)
    tags = {*prompt_collections.languages_of(current.slots.all()), *current.guidelines}
    texts = {tag: request.POST.get(f"guidelines-{tag}", current.guidelines.get(tag, "")) for tag in tags}
    if form.is_valid():
        given = form.cleaned_data
        try:
            kept = {tag: without_nul(text) for tag, text in texts.items()}
            name = without_nul(given["name"])
            prompt_collections.change_collection(
                collection=current,
                name=name,
                guidelines=kept,
                due_on=given["due_on"],
                slots=given["slots"],
                read=read,
                actor=request.user,
            )
            messages.success(request, _("The collection is changed."))
            return redirect("prompt_collection", project, current.pk)
        except Refused as refused:
            form.add_error("name" if "name" in refused.fields else None, refused.sentence)
            current.refresh_from_db()
    spoken = get_language()
    context = {
        "title": _("Edit %s") % current,
        "project": current.project,
        "collection": current,
        "form": form,
        "read": read or "",
        "guidelines": [
            (tag, languages.name_for(tag, spoken), texts[tag]) for tag in languages.in_name_order(tags, spoken)
        ],
    }
    return render(request, "annotation/prompts/edit.html", context)


@require_safe
@login_required
def prompt_collection_page(request: HttpRequest, project: str, collection: int) -> HttpResponse:
    """For leads: how far it is. For its people: what they can write and review, and what became of their prompts."""
    current = _collection(request, project, collection)
    member = prompt_collections.member_of_collection(current, request.user)
    is_sighted = access.holds(user=request.user, project=current.project)
    context = {
        "title": current.name,
        "project": current.project,
        "collection": current,
        "member": member,
        "is_sighted": is_sighted,
        "guidelines": _guidelines(current, prompt_collections.languages_of(current.slots.all())),
        **(_own_part(request, member) if member else {}),
        **(_lead_part(current) if is_sighted else {}),
    }
    return render(request, "annotation/prompts/collection.html", context)


def _own_part(request: HttpRequest, member: CollectionMember) -> dict[str, Any]:
    """What a writer or reviewer does next."""
    slots = prompt_collections.slot_progress(member.collection)
    own = CollectedPrompt.objects.filter(author=member).select_related("slot").order_by("-changed_at")
    drafts = set(own.filter(state=CollectedPrompt.State.DRAFT).values_list("slot", flat=True))
    offered = [one for one in slots if one.left or one.slot.pk in drafts] if member.writes else []
    tags = prompt_collections.languages_of(one.slot for one in offered)
    chosen = request.GET.get("language", "")
    if chosen not in tags:
        spoken = [tag for tag in tags if tag in cast(User, request.user).languages]
        chosen = spoken[0] if len(tags) > 1 and spoken and "language" not in request.GET else ""
    spoken_now = get_language()
    page = [one for one in offered if not chosen or one.slot.language == chosen]
    return {
        "offered": Paginator(page, PAGE).get_page(request.GET.get("page")),
        "drafts": drafts,
        "languages": [(tag, languages.name_for(tag, spoken_now)) for tag in languages.in_name_order(tags, spoken_now)],
        "chosen_language": chosen,
        "returned": own.filter(state=CollectedPrompt.State.RETURNED),
        "own": own.exclude(state=CollectedPrompt.State.DRAFT)[:PAGE],
        "waiting": prompt_writing.waiting_for(member).count(),
    }


def _lead_part(collection: PromptCollection) -> dict[str, Any]:
    progress = prompt_collections.collection_progress(collection)
    tags = prompt_collections.languages_of(one.slot for one in progress.slots)
    rows: dict[tuple[str, str, str], dict[str, SlotProgress]] = {}
    for one in progress.slots:
        rows.setdefault((one.slot.task, one.slot.style, one.slot.difficulty), {})[one.slot.language] = one
    members = {one.member.annotator.user_id for one in progress.members if one.member.writes or one.member.reviews}
    people = User.objects.filter(memberships__project=collection.project_id).order_by("name", "email")
    spoken = get_language()
    return {
        "progress": progress,
        "matrix_languages": [languages.name_for(tag, spoken) for tag in tags],
        "matrix": [(kind, [cells.get(tag) for tag in tags]) for kind, cells in rows.items()],
        "people": [person for person in people if person.pk not in members],
        "sent_back": CollectedPrompt.objects.filter(collection=collection, state=CollectedPrompt.State.RETURNED)
        .select_related("slot", "author__annotator")
        .order_by("changed_at")[:PAGE],
        "prompts": CollectedPrompt.objects.filter(collection=collection)
        .exclude(state=CollectedPrompt.State.DRAFT)
        .exists(),
        "stored": collection.stored.select_related("dataset").order_by("-pk"),
    }


def _guidelines(collection: PromptCollection, tags: Iterable[str]) -> list[dict[str, Any]]:
    """The guidelines in these languages, or in those that there are."""
    wanted = [tag for tag in tags if tag in collection.guidelines] or list(collection.guidelines)
    spoken = get_language()
    return [
        {
            "language": tag,
            "name": languages.name_for(tag, spoken),
            # Markdown without HTML, made safe by the renderer.
            "html": mark_safe(guidelines.rendered(collection.guidelines[tag])),  # noqa: S308
        }
        for tag in wanted
    ]


@require_POST
@login_required
def set_prompt_member(request: HttpRequest, project: str, collection: int) -> HttpResponse:
    """Let a member of the project write, review, or both."""
    current = _collection(request, project, collection, sighted=True)
    people = User.objects.filter(memberships__project=current.project_id)
    user = people.filter(pk=whole_number(request.POST.get("user"))).first()
    with refusals_as_messages(request, done=_("Saved.")):
        if user is None:
            raise Refused(_("Choose a member of the project."), code="invalid")
        prompt_collections.set_member(
            collection=current,
            user=user,
            writes="writes" in request.POST,
            reviews="reviews" in request.POST,
            actor=request.user,
        )
    return redirect("prompt_collection", project, current.pk)


@require_POST
@login_required
def set_collection_state(request: HttpRequest, project: str, collection: int) -> HttpResponse:
    """Close a collection, or open it again."""
    current = _collection(request, project, collection, sighted=True)
    with refusals_as_messages(request):
        state = "closed" if "close" in request.POST else "open"
        prompt_collections.set_state(collection=current, state=state, actor=request.user)
    return redirect("prompt_collection", project, current.pk)


@require_POST
@login_required
def store_prompts_view(request: HttpRequest, project: str, collection: int) -> HttpResponse:
    """Store the accepted prompts as a dataset."""
    current = _collection(request, project, collection, sighted=True)
    try:
        name = without_nul(request.POST.get("name", ""))
        dataset = prompt_exports.store_prompts(collection=current, name=name, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("prompt_collection", project, current.pk)
    messages.success(request, _("“%(dataset)s” is stored.") % {"dataset": dataset})
    return redirect("dataset", project, dataset.pk)


@require_safe
@login_required
def prompts_csv_view(request: HttpRequest, project: str, collection: int) -> StreamingHttpResponse:
    """Every submitted version with its review, people by pseudonym."""
    current = _collection(request, project, collection, sighted=True)
    return _as_file(prompt_exports.prompts_csv(current, reader=request.user), f"prompts-{current.pk}.csv")


@require_safe
@login_required
def slots_csv_view(request: HttpRequest, project: str, collection: int) -> StreamingHttpResponse:
    """What is wanted, to be edited and uploaded again."""
    current = _collection(request, project, collection, sighted=True)
    return _as_file(prompt_exports.slots_csv(current), f"wanted-{current.pk}.csv")


def _as_file(lines: Iterable[str], name: str) -> StreamingHttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)


@require_POST
@login_required
def release_prompt_view(request: HttpRequest, project: str, collection: int, prompt: int) -> HttpResponse:
    """Give the place of a prompt that was sent back to somebody else."""
    current = _collection(request, project, collection, sighted=True)
    shown = get_object_or_404(current.prompts.select_related("collection__project"), pk=prompt)
    with refusals_as_messages(request, done=_("Somebody else can write this prompt now.")):
        prompt_writing.release_prompt(prompt=shown, actor=request.user)
    return redirect("prompt_collection", project, current.pk)


# --- writing ----------------------------------------------------------------------------------------------------------
@never_cache
@pages_and_forms
@login_required
def write_prompt(request: HttpRequest, project: str, collection: int, slot: int) -> HttpResponse:
    """Write a new prompt of a kind: checked first, then submitted."""
    member = _member(request, project, collection)
    wanted = get_object_or_404(member.collection.slots.select_related("collection__project"), pk=slot)
    if not member.writes:
        raise PermissionDenied("This is for the writers of the collection.")
    if request.method == "POST":
        return _write(request, member, wanted, None)
    draft = prompt_writing.stored_draft(member=member, slot=wanted)
    return _writing_page(request, member, wanted, None, text=draft, based_on=prompt_writing.draft_digest(draft))


def _write(
    request: HttpRequest, member: CollectionMember, slot: PromptSlot, prompt: CollectedPrompt | None
) -> HttpResponse:
    """Submit the text, or keep it and show why it was not: to be checked, striking and not confirmed, or refused."""
    text = without_nul(request.POST.get("text", "")).replace("\r\n", "\n")
    key, based_on = _key(request), request.POST.get("based_on")
    about: dict[str, Any] = {"member": member, "slot": slot, "text": text, "prompt": prompt, "based_on": based_on}
    try:
        checked = prompt_writing.checked_text(text)
        notices = prompt_originality.notices_about(slot=slot, text=checked, but=prompt, reader=member.annotator_id)
        if "check" in request.POST and not prompt_writing.is_submitted(member, key):
            raise PromptWarned(notices, text_identity(slot.language, checked))
        prompt_writing.submit_prompt(**about, key=key, notices=notices, confirmed=request.POST.get("seen", ""))
    except Refused as refused:
        shown: dict[str, Any] = {"text": text, "key": key}
        if isinstance(refused, PromptWarned):
            shown["notices"], shown["seen"] = refused.notices, refused.confirm
        else:
            shown["problem"] = refused.sentence
        try:
            shown["based_on"] = prompt_writing.keep_draft(**about)
        except prompt_writing.NewerDraft as newer:
            shown |= {"problem": newer.sentence, "other": newer.stored}
            shown["based_on"] = prompt_writing.draft_digest(newer.stored)
        except Refused as lost:  # the text is on the page
            shown["problem"] = lost.sentence
        return _writing_page(request, member, slot, prompt, **shown)
    messages.success(request, _("Submitted. Somebody else reviews it now."))
    left = next(one.left for one in prompt_collections.slot_progress(slot.collection) if one.slot.pk == slot.pk)
    if prompt is None and left:
        return redirect("prompt_write", slot.collection.project.slug, slot.collection_id, slot.pk)
    return redirect("prompt_collection", slot.collection.project.slug, slot.collection_id)


def _key(request: HttpRequest) -> UUID:
    try:
        return UUID(request.POST.get("key", ""))
    except ValueError:
        return uuid7()


def _writing_page(
    request: HttpRequest,
    member: CollectionMember,
    slot: PromptSlot,
    prompt: CollectedPrompt | None,
    *,
    text: str,
    notices: PromptNotices | None = None,
    seen: str = "",
    problem: str = "",
    key: UUID | None = None,
    based_on: str = "",
    other: str = "",
) -> HttpResponse:
    """``based_on``: the digest of the stored draft; ``other``: its text, if it is not what was entered; ``seen``: what
    confirms the ``notices`` of this very text."""
    own = [one for one in prompt_collections.slot_progress(slot.collection) if one.slot.pk == slot.pk]
    context = {
        "title": _("Revise a prompt") if prompt else _("Write a prompt"),
        "project": slot.collection.project,
        "collection": slot.collection,
        "slot": slot,
        "language_name": languages.name_for(slot.language, get_language()),
        "slot_progress": own[0],
        "guidelines": _guidelines(slot.collection, [slot.language]),
        "prompt": prompt,
        "versions": list(prompt.versions.order_by("-number")) if prompt else [],
        "text": text,
        "longest": prompt_writing.LONGEST_PROMPT,
        "key": key or uuid7(),
        "done": " ".join(str(one) for one in prompt_writing.newest_keys(member)),
        "problem": problem,
        "based_on": based_on,
        "other": other,
        "notices": _shown_notices(notices) if notices else None,
        "seen": seen,
        "is_open": slot.collection.state == PromptCollection.State.OPEN,
    }
    return render(request, "annotation/prompts/write.html", context)


def _shown_notices(notices: PromptNotices) -> dict[str, Any]:
    """In words: similar prompts, and what is odd about the language. Nobody reads here where a dataset's is from."""
    return {
        "similar": notices.similar,
        "language": finding_words(notices.language[0], dict(notices.language[1])) if notices.language else "",
        "is_striking": notices.is_striking,
    }


@require_POST
@login_required
def keep_prompt_draft(request: HttpRequest, project: str, collection: int, slot: int) -> HttpResponse:
    """Keep what is entered, for the page's script."""
    member = _member(request, project, collection)
    wanted = get_object_or_404(member.collection.slots, pk=slot)
    return _kept(request, member, wanted, None)


def _kept(
    request: HttpRequest, member: CollectionMember, slot: PromptSlot, prompt: CollectedPrompt | None
) -> JsonResponse:
    """Keep a draft for the page's script: the digest of what is stored, or 409 with what is newer."""
    try:
        based_on = prompt_writing.keep_draft(
            member=member,
            slot=slot,
            text=without_nul(request.POST.get("text", "")),
            prompt=prompt,
            based_on=request.POST.get("based_on"),
            key=_key(request),
        )
    except Refused as refused:
        answer = {"code": refused.code, "detail": refused.sentence}
        if isinstance(refused, prompt_writing.NewerDraft):
            answer |= {"text": refused.stored, "based_on": prompt_writing.draft_digest(refused.stored)}
        return JsonResponse(answer, status=409)
    return JsonResponse({"based_on": based_on})


@require_POST
@login_required
def keep_revision_draft(request: HttpRequest, project: str, collection: int, prompt: int) -> HttpResponse:
    """Keep what is entered for the next version, for the page's script."""
    member = _member(request, project, collection)
    own = get_object_or_404(CollectedPrompt.objects.filter(author=member).select_related("slot"), pk=prompt)
    return _kept(request, member, own.slot, own)


# --- one prompt -------------------------------------------------------------------------------------------------------
@never_cache
@pages_and_forms
@login_required
def prompt_page(request: HttpRequest, project: str, collection: int, prompt: int) -> HttpResponse:
    """A prompt with its versions and reviews: to be revised by its author, to be reviewed by somebody else."""
    current = _collection(request, project, collection)
    member = prompt_collections.member_of_collection(current, request.user)
    submitted = current.prompts.exclude(state=CollectedPrompt.State.DRAFT).select_related(
        "slot__collection__project", "author__annotator"
    )
    shown = get_object_or_404(submitted, pk=prompt)
    is_author = member is not None and shown.author_id == member.pk
    is_sighted = access.holds(user=request.user, project=current.project)
    if not (is_author or is_sighted or (member is not None and member.reviews)):
        raise Http404("No such prompt.")
    versions = list(shown.versions.select_related("reviewer__annotator").order_by("-number"))
    if is_author and member is not None and shown.state == CollectedPrompt.State.RETURNED:
        if request.method == "POST":
            return _write(request, member, shown.slot, shown)
        based_on = prompt_writing.draft_digest(shown.draft)
        text = shown.draft or versions[0].text
        return _writing_page(request, member, shown.slot, shown, text=text, based_on=based_on)
    if request.method == "POST":
        return _repeated(request, member, shown)
    may_review = (
        member is not None and member.reviews and not is_author and shown.state == CollectedPrompt.State.IN_REVIEW
    )
    notices = None
    if may_review and member is not None:
        present = prompt_originality.notices_about(
            slot=shown.slot, text=versions[0].text, but=shown, reader=member.annotator_id
        )
        notices = _shown_notices(present)
    elif shown.state == CollectedPrompt.State.IN_REVIEW and is_sighted:  # as they were when it was submitted
        notices = _shown_notices(PromptNotices.from_json(versions[0].notices))
    context = {
        "title": _("Review a prompt") if may_review else _("Prompt"),
        "project": current.project,
        "collection": current,
        "prompt": shown,
        "slot": shown.slot,
        "language_name": languages.name_for(shown.slot.language, get_language()),
        "versions": versions,
        "newest": versions[0],
        "is_sighted": is_sighted and not may_review,  # whoever reviews does not see who wrote it
        "may_review": may_review,
        "notices": notices,
        "guidelines": _guidelines(current, [shown.slot.language]),
        "comment": "",
    }
    return render(request, "annotation/prompts/prompt.html", context)


def _repeated(request: HttpRequest, member: CollectionMember | None, shown: CollectedPrompt) -> HttpResponse:
    """What follows a version that was sent to a prompt that is not waiting for one: usually it was sent twice."""
    if member is None or not prompt_writing.is_submitted(member, _key(request)):
        messages.error(request, _("This prompt can't be changed now. Look at its page."))
    return redirect("prompt", shown.collection.project.slug, shown.collection_id, shown.pk)


@require_safe
@login_required
def next_review(request: HttpRequest, project: str, collection: int) -> HttpResponse:
    """The prompt that has waited longest for a review, or back."""
    member = _member(request, project, collection)
    waiting = prompt_writing.waiting_for(member).first()
    if waiting is None:
        messages.info(request, _("No prompt waits for your review."))
        return redirect("prompt_collection", project, collection)
    return redirect("prompt", project, collection, waiting.prompt_id)


@require_POST
@login_required
def review_prompt_view(request: HttpRequest, project: str, collection: int, prompt: int) -> HttpResponse:
    """Accept a version, send it back, or reject it; then the next one."""
    member = _member(request, project, collection)
    shown = get_object_or_404(CollectedPrompt.objects.filter(collection=member.collection), pk=prompt)
    number = whole_number(request.POST.get("version"), largest=MOST_VERSIONS)
    versions = shown.versions.select_related("prompt__collection__project", "author__annotator__user")
    version = versions.filter(number=number).first()
    comment = without_nul(request.POST.get("comment", ""))
    decision = request.POST.get("decision", "")
    try:
        if version is None:
            raise Refused(_("Somebody else has just reviewed this prompt."), code="reviewed")
        prompt_writing.review_prompt(version=version, reviewer=member, decision=decision, comment=comment)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("prompt", project, collection, prompt)
    left = prompt_writing.waiting_for(member).count()
    done = ngettext("Saved. %(count)d prompt waits.", "Saved. %(count)d prompts wait.", left) % {"count": left}
    messages.success(request, done if left else _("Saved. No other prompt waits for your review."))
    if left:
        return redirect("prompt_review", project, collection)
    return redirect("prompt_collection", project, collection)
