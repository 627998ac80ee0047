"""Accounts are made by invitation: allauth's open sign-up is closed unless a valid invitation is in the session."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.db import transaction
from django.http import HttpRequest
from django.shortcuts import redirect

from accounts import invitations
from accounts.models import User
from accounts.refusals import Refused


class InvitationOnlyAdapter(DefaultAccountAdapter):
    """Opens sign-up to the holder of an invitation link and to nobody else."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return invitations.pending(request.session) is not None


class InvitationOnlySocialAdapter(DefaultSocialAccountAdapter):
    """The same for who signs up by single sign-on; the account and its membership are made together."""

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        secret = request.session.get(invitations.SESSION_KEY, "")
        try:
            with transaction.atomic():
                user: User = super().save_user(request, sociallogin, form)
                invitations.accept(secret=secret, user=user)
        except Refused:
            raise ImmediateHttpResponse(redirect("join", secret)) from None
        return user
