"""Accounts are made by invitation: allauth's open sign-up is closed unless a valid invitation is in the session."""

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest

from accounts import invitations


class InvitationOnlyAdapter(DefaultAccountAdapter):
    """Opens sign-up to the holder of an invitation link and to nobody else."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return invitations.pending(request.session) is not None
