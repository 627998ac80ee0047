"""The forms for accounts, projects, invitations and tokens."""

from __future__ import annotations

from typing import Any

from allauth.account.forms import ResetPasswordForm as AnybodysResetPasswordForm
from allauth.account.forms import SignupForm
from allauth.core import context
from django import forms
from django.conf import settings
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.text import format_lazy
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from accounts import audit, invitation_lists, jobs, languages, mail, people, tasks
from accounts.models import AGE_BANDS, Project, Role, Scope, User
from accounts.refusals import Refused


class LanguagesField(forms.CharField):
    """Language tags, separated by commas or spaces. The cleaned value is a list of canonical tags."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("help_text", _("Language tags such as et, es-MX or zh-Hant, separated by commas."))
        super().__init__(**options)

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]
        tags = (value or "").replace(",", " ").split()
        return list(dict.fromkeys(_canonical(tag) for tag in tags))

    def has_changed(self, initial: Any, posted: Any) -> bool:
        return self.to_python(posted) != (initial or [])


def _canonical(tag: str) -> str:
    try:
        return languages.canonical_language(tag)
    except ValueError:
        meant = languages.language_called(tag) or languages.spoken_in(tag)
        sentence = (
            _("“%(tag)s” is not a language tag. Did you mean %(meant)s?")
            if meant
            else _("“%(tag)s” is not a language tag. Write one such as et, pt-BR or zh-Hant.")
        )
        raise forms.ValidationError(sentence, params={"tag": tag, "meant": meant}) from None


class SignUpForm(SignupForm):
    """Sign-up by invitation: the account and its membership are created together, or neither."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.invitation = people.pending(context.request.session)
        if self.invitation and self.invitation.email:
            self.fields["email"].initial = self.invitation.email

    def clean_email(self) -> str:
        """An address with an account and an address that was not invited get the same answer, so that it reveals
        nothing."""
        refusal = forms.ValidationError(
            _(
                "This invitation is not for this address. Use the address that was invited. If you already have an "
                "account, sign in and open the link again."
            )
        )
        email = str(self.cleaned_data["email"]).lower()
        try:
            email = super().clean_email()
        except forms.ValidationError:
            if self.invitation:
                people.bind(invitation=self.invitation, email=email)
            raise refusal from None
        if self.invitation and self.invitation.email not in ("", email):
            raise refusal
        return email

    def try_save(self, request: HttpRequest) -> tuple[User | None, HttpResponse | None]:
        """The account; or a redirect, if the invitation was used at the same time."""
        secret = request.session.get(people.SESSION_KEY, "")
        try:
            with transaction.atomic():
                user, response = super().try_save(request)
                people.accept(secret=secret, user=user)
        except (Refused, IntegrityError):  # somebody else used this link, or registered this address, at the same time
            return None, redirect("join", secret) if secret else redirect("account_signup")
        return user, response


class ResetPasswordForm(AnybodysResetPasswordForm):
    """Queues the mail and does not look up the account, so that a registered address takes no longer than others."""

    def clean_email(self) -> str:
        if not jobs.is_broker_available():
            raise forms.ValidationError(_("Mails can't be sent at the moment. Try again in a few minutes."))
        return str(self.cleaned_data["email"]).lower()

    def save(self, request: HttpRequest, **options: Any) -> str:
        email, language = str(self.cleaned_data["email"]), get_language() or "en"
        jobs.enqueue_task(tasks.send_password_reset.name, email, request.build_absolute_uri("/"), language)
        return email


class SelfForm(forms.Form):
    """Name, languages, and interface language."""

    name = forms.CharField(label=_("Your name"), max_length=120, required=False)
    languages = LanguagesField(label=_("Languages you read and write well"), required=False)
    ui_language = forms.ChoiceField(
        label=_("Language of the interface"),
        required=False,
        choices=[("", _("Same as my browser")), *settings.LANGUAGES],
    )

    def save(self, user: User) -> None:
        for field, value in self.cleaned_data.items():
            setattr(user, field, value)
        user.save(update_fields=list(self.cleaned_data))


class EraseForm(forms.Form):
    """The confirmation: the person's own e-mail address and password."""

    email = forms.EmailField(label=_("Your e-mail address, to confirm"))
    password = forms.CharField(label=_("Password"), widget=forms.PasswordInput(attrs={"autocomplete": "off"}))

    def __init__(self, *args: Any, user: User, **options: Any) -> None:
        super().__init__(*args, **options)
        self.user = user
        if not user.has_usable_password():  # the account uses single sign-on
            del self.fields["password"]

    def clean_email(self) -> str:
        if str(self.cleaned_data["email"]).lower() != self.user.email:
            raise forms.ValidationError(_("This is not the address of your account."))
        return self.user.email

    def clean_password(self) -> str:
        if not self.user.check_password(self.cleaned_data["password"]):
            raise forms.ValidationError(_("This is not your password."))
        return ""


class ProfileForm(forms.Form):
    """Facts that a study may publish about its panel."""

    grew_up_with = LanguagesField(label=_("Languages you grew up with"), required=False)
    education = forms.CharField(label=_("Education"), max_length=120, required=False)
    experience = forms.CharField(label=_("Experience with language work"), max_length=240, required=False)
    dialect = forms.CharField(label=_("Dialect or variety"), max_length=80, required=False)
    age_band = forms.ChoiceField(
        label=_("Age"), choices=[("", "—"), *((band, band) for band in AGE_BANDS)], required=False
    )
    consent = forms.BooleanField(
        label=_("Studies may publish these facts about their panel, without my name"), required=False
    )


class ProjectForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=120)
    slug = forms.SlugField(
        label=_("Address"),
        max_length=60,
        help_text=_("Letters, digits and hyphens; it is part of every link."),
        error_messages={
            "invalid": _("An address can contain only the letters a to z, digits, hyphens and underscores.")
        },
    )
    description = forms.CharField(
        label=_("Description"), required=False, max_length=2000, widget=forms.Textarea(attrs={"rows": 3})
    )


class ProjectNameForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=120)
    description = forms.CharField(
        label=_("Description"), required=False, max_length=2000, widget=forms.Textarea(attrs={"rows": 3})
    )


class DeletionForm(forms.Form):
    """The project's name, typed as a confirmation; a name may have more code points typed than stored."""

    name = forms.CharField(label=_("The project's name, to confirm"), max_length=500)


class InvitationForm(forms.Form):
    name = forms.CharField(
        label=_("Name"),
        max_length=120,
        required=False,
        help_text=_("The name shown here until the person changes it. Annotators never see each other's names."),
    )
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.ANNOTATOR)
    panel = forms.TypedChoiceField(
        label=_("Panel"),
        required=False,
        coerce=int,
        empty_value=None,
        help_text=_("For annotators: they become members of this panel when they join the project."),
    )
    email = forms.EmailField(
        label=_("E-mail"),
        required=False,
        help_text=_(
            "Only this address can use the link. If you leave this empty, the first person who opens the link "
            "can use it."
        ),
    )
    note = forms.CharField(
        label=_("Note"),
        max_length=120,
        required=False,
        help_text=_("Only leads see this. It helps you to recognise the link."),
    )
    languages = LanguagesField(label=_("Languages"), required=False)
    days = forms.IntegerField(label=_("Valid for (days)"), min_value=1, max_value=90, initial=14)

    def __init__(self, *args: Any, project: Project, **options: Any) -> None:
        super().__init__(*args, **options)
        offered = [("", _("no panel yet")), *people.offered_panels(project)]
        self.fields["panel"].choices = offered  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("panel") and cleaned.get("role") != Role.ANNOTATOR:
            self.add_error("panel", people.ANNOTATORS_ONLY)
        return cleaned


class InvitationListForm(forms.Form):
    """Many people at once."""

    addresses = forms.CharField(
        label=_("Addresses"),
        max_length=invitation_lists.LONGEST_LIST,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "autocomplete": "off"}),
        help_text=format_lazy(
            _("One a line, or CSV with a first row: {columns}."), columns="email, name, panel, languages"
        ),
    )
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.ANNOTATOR)
    panels = forms.TypedMultipleChoiceField(
        label=_("Panels"),
        required=False,
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("For annotators without a panel in their row."),
    )
    spoken = LanguagesField(label=_("Languages"), required=False)
    days = forms.IntegerField(label=_("Valid for (days)"), min_value=1, max_value=90, initial=14)
    send = forms.BooleanField(label=_("Send each of them the link by e-mail"), required=False)

    def __init__(self, *args: Any, project: Project, **options: Any) -> None:
        super().__init__(*args, **{"auto_id": "many_%s", **options})
        self.offered = people.offered_panels(project)
        self.fields["panels"].choices = self.offered  # type: ignore[attr-defined]
        if not self.offered:
            del self.fields["panels"]
        if not mail.is_sent():
            del self.fields["send"]


class TrailForm(forms.Form):
    """The filters of the audit trail; an empty choice means all."""

    person = forms.ChoiceField(label=_("Person"), required=False)
    action = forms.ChoiceField(label=_("Action"), required=False)
    thing = forms.ChoiceField(label=_("Object"), required=False)
    first = forms.DateField(label=_("From"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    last = forms.DateField(label=_("To"), required=False, widget=forms.DateInput(attrs={"type": "date"}))

    def __init__(self, *args: Any, choices: audit.TrailChoices, **options: Any) -> None:
        super().__init__(*args, **options)
        for name, offered in choices._asdict().items():
            self.fields[name].choices = [("", _("all")), *offered]  # type: ignore[attr-defined]


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices)


class TokenForm(forms.Form):
    name = forms.CharField(label=_("What is it for"), max_length=80)
    scope = forms.ChoiceField(label=_("It can"), choices=Scope.choices)
    project = forms.ModelChoiceField(
        label=_("Only in"), queryset=Project.objects.none(), required=False, empty_label=_("all my projects")
    )
    days = forms.IntegerField(label=_("Valid for (days)"), min_value=1, max_value=365, initial=90)

    def __init__(self, *args: Any, user: User, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["project"].queryset = Project.objects.visible_to(user)  # type: ignore[attr-defined]
