"""allauth's adapters: accounts are created by invitation only, so sign-up needs a valid invitation in the session."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.contrib.sites.shortcuts import get_current_site
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts import audit, mail, people, tokens
from accounts.models import User
from accounts.refusals import Refused


class InvitationOnlyAdapter(DefaultAccountAdapter):
    """Allows sign-up only with an invitation, and records account activity in the audit trail.

    allauth calls these methods when somebody signs in, fails to sign in, or changes how they sign in.
    """

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return people.pending(request.session) is not None

    def post_login(self, request: HttpRequest, user: User, **options: Any) -> HttpResponse:
        audit.record_activity(verb=audit.SIGN_IN, user_pk=user.pk, by=user)
        response: HttpResponse = super().post_login(request, user, **options)
        return response

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        audit.record_failure(email=str(credentials.get("email", "")))

    def set_password(self, user: User, password: str) -> None:
        """A new password revokes all API tokens, and ends all sessions."""
        with transaction.atomic():
            super().set_password(user, password)
            tokens.revoke_all(user=user)

    def send_notification_mail(
        self, template_prefix: str, user: User, context: dict[str, Any] | None = None, email: str | None = None
    ) -> None:
        """Called for every change of an account: record it in the audit trail, then mail the owner."""
        audit.record_activity(verb=template_prefix.rpartition("/")[2].replace("_", " "), user_pk=user.pk, by=user)
        super().send_notification_mail(template_prefix, user, context, email or user.email)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Render the mail now; a worker sends it, or without a broker this request."""
        site = get_current_site(self.request)
        written = {"request": self.request, "email": email, "current_site": site, **context}
        message = self.render_mail(template_prefix, email, written)
        mail.queue_text(subject=message.subject, body=message.body, to=message.to)


class InvitationOnlySocialAdapter(DefaultSocialAccountAdapter):
    """The same for sign-up by single sign-on: the account and its membership are created together."""

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        secret = request.session.get(people.SESSION_KEY, "")
        try:
            with transaction.atomic():
                user: User = super().save_user(request, sociallogin, form)
                people.accept(secret=secret, user=user)
        except Refused:
            raise ImmediateHttpResponse(redirect("join", secret)) from None
        return user
