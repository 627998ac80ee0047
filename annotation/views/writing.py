"""Texts written by people: the author's pages on the desk, and those on which leads open duties, read and store."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import wraps
from hashlib import sha256
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, languages
from accounts.inputs import storable, whole_number, without_nul
from accounts.models import SIGHTED, Project
from accounts.refusals import Refused, refusals_as_messages
from annotation.collection import texts, texts_read
from annotation.desk import ended_studies, presentation
from annotation.desk.views import next_address, read_seconds, refusal_json, study_ended, wants_json
from annotation.models import Dataset, Item, Panel, WritingDuty, WritingSubmission, WritingText
from annotation.views.campaigns import show_refusal

PAGE = 50
pages_and_forms = require_http_methods(["GET", "HEAD", "POST"])
View = Callable[..., HttpResponse]


# --- the author's pages -----------------------------------------------------------------------------------------------


def for_the_author(view: View) -> View:
    """Say that a duty or a text is not theirs, and turn a refusal into a response: JSON for the page's script."""

    @login_required
    @never_cache
    @wraps(view)
    def responding(request: HttpRequest, **named: Any) -> HttpResponse:
        try:
            return view(request, **named)
        except (WritingDuty.DoesNotExist, WritingText.DoesNotExist):
            key = named.get("writing_key")
            ended = ended_studies.ended_study(request.user, key=key, writing=named.get("writing"))
            if ended is not None:
                if key is not None and request.method == "POST":
                    texts.keep_sent_text(
                        user=request.user, key=key, texts=_entered(request.POST), **_about(request.POST)
                    )
                return study_ended(request, ended)
            title = _("This is not among your tasks")
            detail = _("The project lead closed the task, or you are no longer on its panel. What you wrote is kept.")
            if wants_json(request):
                return JsonResponse({"code": "not_found", "detail": f"{title}. {detail}", "fields": {}}, status=404)
            return render(request, "annotation/not_theirs.html", {"title": title, "detail": detail}, status=404)
        except Refused as refused:
            if wants_json(request):
                return refusal_json(refused)
            messages.warning(request, refused.sentence)
            return redirect("desk_writing", named["writing"]) if "writing" in named else redirect("desk")

    return responding


@pages_and_forms
@for_the_author
def writing_view(request: HttpRequest, *, writing: int) -> HttpResponse:
    """GET: the author's texts in a duty. POST: the prompt that comes next."""
    own_duty, annotator = texts.writer_of(user=request.user, duty=writing)
    if request.method == "POST":
        if (text := texts.take_prompt(duty=own_duty, annotator=annotator)) is not None:
            return next_address(request, reverse("desk_writing_text", args=[text.key]))
        messages.info(request, _("There is no prompt left for you."))
        return next_address(request, reverse("desk_writing", args=[own_duty.pk]))
    own = WritingText.objects.filter(duty=own_duty, annotator=annotator).select_related("item").order_by("-pk")
    page = Paginator(own, PAGE).get_page(request.GET.get("page"))
    submissions = (
        WritingSubmission.objects.filter(text__in=[text.pk for text in page])
        .order_by("number")
        .prefetch_related("decisions")
    )
    newest = {row.text_id: row for row in submissions}
    rows = [(text, newest.get(text.pk), _beginning(own_duty, text)) for text in page]
    context = {"title": own_duty.name, "duty": own_duty, "rows": rows, "page_obj": page}
    context["is_open"] = own_duty.state == WritingDuty.State.OPEN
    return render(request, "annotation/writing/own_texts.html", context)


def _beginning(duty: WritingDuty, text: WritingText) -> str:
    prompt = texts.writing_prompt(duty, text.item)
    given = [str(value) for value in prompt.fields.values()] + [turn["text"] for turn in prompt.turns if turn]
    return next((one for one in given if one.strip()), "…")[:160]


@require_safe
@for_the_author
def writing_text_view(request: HttpRequest, *, writing_key: UUID) -> HttpResponse:
    """The prompt, and the draft of the author; of a submitted text what is stored."""
    return _writing_page(request, texts.authors_text(user=request.user, key=writing_key), writing_key)


def _writing_page(
    request: HttpRequest,
    text: WritingText,
    key: UUID,
    *,
    entered: Sequence[str] | None = None,
    refused: Refused | None = None,
) -> HttpResponse:
    duty, item = text.duty, text.item
    prompt = texts.writing_prompt(duty, item)
    submitted = text.submissions.order_by("-number").first()
    open_states = (WritingText.State.WRITING, WritingText.State.RETURNED, WritingText.State.RELEASED)
    is_open = text.state in open_states and text.key == key
    draft = list(entered if entered is not None else text.draft or (submitted.texts if submitted else []))
    draft += [""] * (prompt.places - len(draft))
    wrong = refused.fields if refused else {}
    boxes = [
        {"name": f"text-{place}", "text": draft[place], "error": wrong.get(f"text-{place}", ""), "number": place + 1}
        for place in range(prompt.places)
    ]
    shown = presentation.show_item(shown_prompt(prompt, item), (), duty.dataset.layout)
    left = iter(boxes)
    entries = [
        {"turn": turn, "box": None if given is not None else next(left)}
        for given, turn in zip(prompt.turns, shown.turns, strict=False)
    ]
    warned = refused if isinstance(refused, texts.WritingWarned) else None
    notes = warned.warnings if warned else []
    context = {
        "title": duty.name,
        "duty": duty,
        "text": text,
        "key": key,
        "item": shown,
        "entries": entries,
        "boxes": list(left),
        "language": item.language,
        "language_name": languages.endonym(item.language),
        "direction": languages.direction(item.language),
        "is_open": is_open,
        "submitted": submitted,
        "notes": [texts.warning_sentence(note, get_language() or "en") for note in notes],
        "confirm": warned.confirm if warned else "",
        "problem": refused.sentence if refused and not notes else "",
        "reasons": WritingText.SkipReason.choices,
        "seconds": round(text.seconds),
        "pasted": text.pasted,
        "based_on": _draft_digest(text.draft),
    }
    return render(request, "annotation/writing/write.html", context, status=422 if refused else 200)


def shown_prompt(prompt: texts.WritingPrompt, item: Item) -> Item:
    """The prompt as an item, whose turns to be written have no text yet."""
    turns = [turn or {"speaker": "", "text": ""} for turn in prompt.turns]
    return Item(
        turns=turns,
        fields=dict(prompt.fields),
        language=item.language,
        title="",
        content_warning=item.content_warning,
    )


def _entered(form: QueryDict) -> list[str]:
    places = (form.get(f"text-{place}") for place in range(texts.MOST_TURNS))
    return [without_nul(text).replace("\r\n", "\n") for text in places if text is not None]


def _about(form: QueryDict) -> dict[str, Any]:
    return {"seconds": read_seconds(form), "pasted": whole_number(form.get("pasted")) or 0}


@require_POST
@for_the_author
def writing_submit_view(request: HttpRequest, *, writing_key: UUID) -> HttpResponse:
    """Submit the text. The same key again gets the same response."""
    key = writing_key
    text, entered = texts.authors_text(user=request.user, key=key), _entered(request.POST)
    try:
        texts.submit_writing(
            text=text, key=key, texts=entered, confirmed=request.POST.get("confirmed", ""), **_about(request.POST)
        )
    except Refused as refused:
        if text.key == key:
            _keep_entered(request, text, key, entered)
        if wants_json(request):
            return JsonResponse(
                {"code": refused.code, "detail": refused.sentence, "fields": refused.fields}, status=422
            )
        return _writing_page(request, text, key, entered=entered, refused=refused)
    messages.success(request, _("Submitted. Thank you."))
    return next_address(request, reverse("desk_writing", args=[text.duty_id]))


def _keep_entered(request: HttpRequest, text: WritingText, key: UUID, entered: Sequence[str]) -> None:
    """Keep what could not be submitted; the refusal itself is what the page says."""
    try:
        texts.save_writing(text=text, key=key, texts=entered, **_about(request.POST))
    except Refused:
        return


@require_POST
@for_the_author
def writing_draft_view(request: HttpRequest, *, writing_key: UUID) -> HttpResponse:
    """Save the draft (autosave)."""
    key = writing_key
    entered = _entered(request.POST)
    text = texts.authors_text(user=request.user, key=key)
    based_on = request.POST.get("based_on", _draft_digest(text.draft))
    if any(text.draft) and text.draft != entered and based_on != _draft_digest(text.draft):
        detail = _("Another draft was saved, perhaps on another device.")
        newer = {"code": "changed", "detail": detail, "texts": text.draft, "based_on": _draft_digest(text.draft)}
        return JsonResponse(newer, status=409)
    saved_at = texts.save_writing(text=text, key=key, texts=entered, **_about(request.POST))
    digest = _draft_digest([storable(one) for one in entered])
    return next_address(request, reverse("desk_writing_text", args=[key]), saved_at=saved_at, based_on=digest)


def _draft_digest(draft: Sequence[str]) -> str:
    """What a device keeps of the draft that its text is based on; "" without a draft."""
    return sha256(json.dumps(list(draft)).encode()).hexdigest()[:32] if any(draft) else ""


@require_POST
@for_the_author
def writing_skip_view(request: HttpRequest, *, writing_key: UUID) -> HttpResponse:
    """Skip the prompt with a reason."""
    key = writing_key
    text = texts.authors_text(user=request.user, key=key)
    note = without_nul(request.POST.get("note", ""))
    texts.skip_writing(text=text, key=key, reason=request.POST.get("reason", ""), note=note)
    return next_address(request, reverse("desk_writing", args=[text.duty_id]))


# --- the leads' pages -------------------------------------------------------------------------------------------------


class WritingDutyForm(forms.Form):
    """A new duty to write."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    dataset = forms.ModelChoiceField(
        label=gettext_lazy("Prompts"),
        queryset=Dataset.objects.none(),
        help_text=gettext_lazy("Its answers are hidden. There is one prompt for each scenario."),
    )
    panel = forms.ModelChoiceField(label=gettext_lazy("Panel"), queryset=Panel.objects.none())
    kind = forms.ChoiceField(
        label=gettext_lazy("What is written"),
        choices=WritingDuty.Kind.choices,
        initial=WritingDuty.Kind.ANSWER,
        widget=forms.RadioSelect,
    )
    part = forms.CharField(
        label=gettext_lazy("Field or role"),
        max_length=60,
        initial="answer",
        help_text=gettext_lazy("The field that people write, such as answer; or the role, as the dialogues name it."),
    )
    most_turns = forms.IntegerField(
        label=gettext_lazy("Turns at most"),
        min_value=1,
        max_value=texts.MOST_TURNS,
        initial=1,
        help_text=gettext_lazy("Where a dialogue has no turn of the role yet."),
    )
    shortest = forms.IntegerField(
        label=gettext_lazy("Fewest characters"), min_value=1, max_value=texts.LONGEST_TEXT, initial=20
    )
    longest = forms.IntegerField(
        label=gettext_lazy("Most characters"), min_value=1, max_value=texts.LONGEST_TEXT, initial=8_000
    )
    per_prompt = forms.IntegerField(
        label=gettext_lazy("People per prompt"), min_value=1, max_value=texts.MOST_PER_PROMPT, initial=1
    )
    generator = forms.CharField(
        label=gettext_lazy("Generator"),
        max_length=80,
        required=False,
        initial="human",
        help_text=gettext_lazy("The name of all these texts. Empty: every person has a code."),
    )
    instructions = forms.CharField(
        label=gettext_lazy("Instructions"),
        required=False,
        max_length=texts.MOST_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 6, "dir": "auto"}),
    )

    def __init__(self, project: Project, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        datasets = Dataset.objects.ready().filter(project=project).order_by("-pk")
        self.fields["dataset"].queryset = datasets  # type: ignore[attr-defined]
        self.fields["panel"].queryset = Panel.objects.filter(project=project)  # type: ignore[attr-defined]


class StoreWritingForm(forms.Form):
    """Where accepted texts are stored."""

    name = forms.CharField(
        label=gettext_lazy("Name of a new dataset"),
        required=False,
        max_length=texts_read.LONGEST_NAME,
        help_text=gettext_lazy("Empty: among the other texts, in the next version of the dataset of the prompts."),
    )


def _duty(request: HttpRequest, project: str, duty: int) -> WritingDuty:
    current_project = access.require(user=request.user, slug=project, roles=SIGHTED)
    duties = WritingDuty.objects.filter(project=current_project)
    return get_object_or_404(duties.select_related("project", "panel", "dataset"), pk=duty)


@require_safe
@login_required
def writing_duties_page(request: HttpRequest, project: str) -> HttpResponse:
    """The project's duties to write, newest first."""
    current_project = access.require(user=request.user, slug=project, roles=SIGHTED)
    duties = WritingDuty.objects.filter(project=current_project).select_related("panel", "dataset")
    page = Paginator(duties, PAGE).get_page(request.GET.get("page"))
    rows = [(duty, texts_read.writing_progress(duty)) for duty in page]
    context = {"title": _("Texts by people"), "project": current_project, "rows": rows, "page_obj": page}
    return render(request, "annotation/writing/duties.html", context)


@pages_and_forms
@login_required
def new_writing_duty(request: HttpRequest, project: str) -> HttpResponse:
    """Open a duty to write."""
    current_project = access.require(user=request.user, slug=project, roles=SIGHTED)
    begins = {"dataset": whole_number(request.GET.get("dataset"))}
    form = WritingDutyForm(current_project, request.POST or None, initial=begins)
    if form.is_valid():
        try:
            duty = texts.open_writing_duty(project=current_project, actor=request.user, **form.cleaned_data)
            return redirect("writing_duty", current_project.slug, duty.pk)
        except Refused as refused:
            show_refusal(form, refused)
    context = {"title": _("New writing task"), "project": current_project, "form": form}
    return render(request, "annotation/writing/duty_new.html", context)


@require_safe
@login_required
def writing_duty_page(request: HttpRequest, project: str, writing: int) -> HttpResponse:
    """How far a duty is, its texts by state, and how to store them."""
    shown = _duty(request, project, writing)
    state = request.GET.get("state", "")
    human_texts = WritingText.objects.filter(duty=shown).select_related("annotator", "item", "stored_in")
    if state in WritingText.State.values:
        human_texts = human_texts.filter(state=state)
    page = Paginator(human_texts.order_by("pk"), PAGE).get_page(request.GET.get("page"))
    context = {
        "title": shown.name,
        "project": shown.project,
        "duty": shown,
        "progress": texts_read.writing_progress(shown),
        "rows": [(text, _beginning(shown, text)) for text in page],
        "page_obj": page,
        "state": state,
        "states": WritingText.State.choices,
        "unread": _unread(shown),
        "storable": texts_read.accepted_texts(shown).count(),
        "store_form": StoreWritingForm(),
    }
    return render(request, "annotation/writing/duty.html", context)


def _unread(duty: WritingDuty, but: int | None = None) -> WritingText | None:
    waiting = WritingText.objects.filter(duty=duty, state=WritingText.State.SUBMITTED)
    return waiting.exclude(pk=but).order_by("pk").first()


@require_POST
@login_required
def set_writing_state_view(request: HttpRequest, project: str, writing: int) -> HttpResponse:
    """Open, pause or close a duty."""
    changed = _duty(request, project, writing)
    with refusals_as_messages(request):
        texts.set_writing_state(duty=changed, state=request.POST.get("state", ""), actor=request.user)
    return redirect("writing_duty", changed.project.slug, changed.pk)


@require_POST
@login_required
def store_writing_view(request: HttpRequest, project: str, writing: int) -> HttpResponse:
    """Store the accepted texts as items."""
    kept = _duty(request, project, writing)
    try:
        dataset = texts_read.store_writing(duty=kept, name=request.POST.get("name", ""), actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("writing_duty", kept.project.slug, kept.pk)
    return redirect("dataset", kept.project.slug, dataset.pk)


@pages_and_forms
@login_required
def writing_read_page(request: HttpRequest, project: str, writing: int, human_text: int) -> HttpResponse:
    """A submitted text with its prompt and everything about it. POST: accept it or send it back."""
    shown_duty = _duty(request, project, writing)
    human_texts = WritingText.objects.filter(duty=shown_duty).select_related(
        "annotator", "item", "stored_in", "duty__project"
    )
    shown = get_object_or_404(human_texts, pk=human_text)
    if request.method == "POST":
        following = _unread(shown_duty, shown.pk)
        decision, comment = request.POST.get("decision", ""), without_nul(request.POST.get("comment", ""))
        number = whole_number(request.POST.get("number")) or 0
        try:
            if decision == texts_read.RELEASED:
                texts_read.release_writing(text=shown, actor=request.user)
            else:
                texts_read.decide_writing(
                    text=shown, number=number, decision=decision, comment=comment, actor=request.user
                )
        except Refused as refused:
            messages.error(request, refused.sentence)
            following = shown
        if following is None:
            return redirect("writing_duty", project, writing)
        return redirect("writing_text", project, writing, following.pk)
    submissions = list(shown.submissions.prefetch_related("decisions__decided_by").order_by("-number"))
    newest = submissions[0] if submissions else None
    spoken = get_language() or "en"
    context = {
        "title": _("Text %d") % shown.pk,
        "project": shown_duty.project,
        "duty": shown_duty,
        "text": shown,
        "newest": newest,
        "item": _as_item(shown_duty, shown, newest),
        "notes": [texts.warning_sentence(note, spoken) for note in newest.warnings] if newest else [],
        "submissions": submissions,
        "is_unfinished": shown.state in texts.UNFINISHED,
        "is_own": shown.annotator.user_id == request.user.pk,
        "after": _unread(shown_duty, shown.pk),
    }
    return render(request, "annotation/writing/read.html", context)


def _as_item(duty: WritingDuty, text: WritingText, newest: WritingSubmission | None) -> presentation.ItemShown | None:
    """The text as the item that it becomes."""
    if newest is None:
        return None
    turns, fields = texts.written_parts(duty, text.item, newest.texts)
    item = Item(turns=turns, fields=fields, language=text.item.language, title="")
    return presentation.show_item(item, (), duty.dataset.layout)
