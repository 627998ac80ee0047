"""The user's own pages: languages, profile with consent, API tokens, erasing the account."""

from __future__ import annotations

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import check_for_language
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts import audit, people, removal, tokens
from accounts.forms import (
    EraseForm,
    ProfileForm,
    SelfForm,
    TokenForm,
)
from accounts.models import (
    Profile,
    Token,
    User,
)
from accounts.refusals import Refused

A_YEAR = 31_536_000


@require_http_methods(["GET", "POST"])
@login_required
def me(request: HttpRequest) -> HttpResponse:
    form = SelfForm(request.POST or None, initial=_self(request.user))
    if form.is_valid():
        form.save(request.user)
        messages.success(request, _("Saved."))
        return redirect("me")
    return _page(request, form=form, profile_form=ProfileForm(initial=_profile_facts(request.user)))


@require_POST
def set_language(request: HttpRequest) -> HttpResponse:
    """Change the interface language: in the account, else in a cookie."""
    language = request.POST.get("language", "")
    following = request.POST.get("next", "/")
    safe = url_has_allowed_host_and_scheme(following, allowed_hosts={request.get_host()})
    response = redirect(following if safe else "/")
    if check_for_language(language) and language in dict(settings.LANGUAGES):
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            language,
            max_age=A_YEAR,
            samesite="Lax",
            secure=settings.LANGUAGE_COOKIE_SECURE,
        )
        if request.user.is_authenticated:
            User.objects.filter(pk=request.user.pk).update(ui_language=language)
    return response


@require_POST
@login_required
def profile(request: HttpRequest) -> HttpResponse:
    form = ProfileForm(request.POST)
    if form.is_valid():
        people.describe_self(user=request.user, **form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("me")
    return _page(request, form=SelfForm(initial=_self(request.user)), profile_form=form, status=422)


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def tokens_page(request: HttpRequest) -> HttpResponse:
    """The user's tokens, and a form to create one; its secret is shown once."""
    form = TokenForm(request.POST or None, user=request.user)
    secret = ""
    if form.is_valid():
        _token, secret = tokens.issue(user=request.user, **form.cleaned_data)
        _mail_about_token(request.user)
        form = TokenForm(user=request.user)
    live = Token.objects.visible_to(request.user).live().select_related("project")
    return render(request, "accounts/tokens.html", {"form": form, "secret": secret, "tokens": live})


@require_POST
@login_required
def revoke_token_view(request: HttpRequest, token: int) -> HttpResponse:
    own_token = get_object_or_404(Token.objects.visible_to(request.user), pk=token)
    tokens.revoke_token(token=own_token)
    return redirect("tokens")


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def erase(request: HttpRequest) -> HttpResponse:
    """Erase the user's own account, after they typed their address and password."""
    form = EraseForm(request.POST or None, user=request.user)
    if form.is_valid():
        try:
            removal.erase_user(user=request.user, actor=request.user)
        except Refused as refused:
            form.add_error(None, refused.sentence)
        else:
            logout(request)
            messages.success(request, _("Your account was erased."))
            return redirect("account_login")
    context = {"form": form, "deleted": removal.deleted_led_alone(request.user)}
    return render(request, "accounts/erase.html", context, status=422 if form.errors else 200)


def _page(request: HttpRequest, *, form: SelfForm, profile_form: ProfileForm, status: int = 200) -> HttpResponse:
    shown = {"form": form, "profile_form": profile_form, "activity": audit.recent_activity(user=request.user)}
    return render(request, "accounts/me.html", shown, status=status)


def _mail_about_token(user: User) -> None:
    get_adapter().send_mail("accounts/email/token_issued", user.email, {"user": user})


def _self(user: User) -> dict[str, object]:
    return {"name": user.name, "languages": user.languages, "ui_language": user.ui_language}


def _profile_facts(user: User) -> dict[str, object]:
    profile = Profile.objects.filter(user=user).first() or Profile()
    return {
        "grew_up_with": profile.grew_up_with,
        "education": profile.education,
        "experience": profile.experience,
        "dialect": profile.dialect,
        "age_band": profile.age_band,
        "consent": profile.consented_at is not None,
    }
