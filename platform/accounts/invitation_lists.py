"""Invite many people at once, from a list of addresses: one a line, or CSV with name, panel and languages.

Nothing is created if a row can't be used. Who is invited already, is a member, or stands in the list twice is named and
not invited again; an annotator who is a member joins the panels at once.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import check_for_language, get_language
from django.utils.translation import gettext as _

from accounts import languages, mail, people
from accounts.models import Invitation, Membership, Project, Role, User
from accounts.refusals import Refused

MOST_INVITED = 500
LONGEST_LIST = 100_000  # characters
COLUMNS = {
    "email": "email",
    "e-mail": "email",
    "mail": "email",
    "address": "email",
    "name": "name",
    "panel": "panel",
    "panels": "panel",
    "language": "languages",
    "languages": "languages",
}
"""What a column may be called, in lower case."""
MOST_MAILED_INVITATIONS = 1000
"""Of one project and of one person in 24 hours. All invitations with an address count, mailed or not."""


class InvitationOutcome(StrEnum):
    """What came of one row."""

    INVITED = "invited"
    MEMBER = "member"
    OPEN = "open"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitedPerson:
    """One row of a list: whom to invite, to which panels (primary keys), with which languages."""

    email: str
    name: str = ""
    panels: tuple[int, ...] = ()
    languages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitedRow:
    """What came of one row; ``link`` is the path of the invitation's page, with its secret, and shown once.

    ``seated``: the names of the panels that a member has joined; ``note``: why a member has not, or why an invitation
    was not mailed.
    """

    email: str
    outcome: InvitationOutcome
    link: str = ""
    seated: tuple[str, ...] = ()
    note: str = ""


def read_list(text: str, offered: Sequence[tuple[int, str]]) -> list[InvitedPerson]:
    """The people in a pasted list; ``offered`` are the panels. Refused with a sentence for every row that is wrong."""
    if len(text) > LONGEST_LIST:
        raise Refused(_("The list is too long."), code="invalid", fields={"addresses": _("The list is too long.")})
    text = text.removeprefix("\ufeff")  # what a spreadsheet begins a file with
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    first = lines[0][1] if lines else ""
    mark = max(",;\t", key=first.count)
    named = [COLUMNS.get(cell.strip().lower(), "") for cell in first.split(mark)]
    has_header = "email" in named
    found, wrong = [], []
    for number, line in lines[has_header:]:
        try:
            if has_header:
                cells = next(csv.reader(io.StringIO(line), delimiter=mark))
                found.append(_person(dict(zip(named, cells, strict=False)), offered))
            else:
                cells = next(csv.reader([line.replace(";", ",")], skipinitialspace=True))  # commas in quotes are names
                found += [_person({"email": each}, offered) for each in cells if each.strip()]
        except (Refused, csv.Error) as error:
            sentence = error.sentence if isinstance(error, Refused) else str(error)
            wrong.append(_("Row %(row)d: %(why)s") % {"row": number, "why": sentence})
    if not found and not wrong:
        wrong.append(_("Paste at least one address."))
    if wrong:
        raise Refused(" ".join(wrong[:20]), code="invalid", fields={"addresses": " ".join(wrong[:20])})
    return found


def _person(cells: Mapping[str, str], offered: Sequence[tuple[int, str]]) -> InvitedPerson:
    email, name = cells.get("email", "").strip(), cells.get("name", "").strip()
    if email.endswith(">") and "<" in email:  # no pattern: on many spaces it takes the square of their number
        called, _mark, email = email[:-1].rpartition("<")
        email, name = email.strip(), name or called.strip('" ')
    by_name = {label.strip().casefold(): key for key, label in offered}
    panels = []
    for label in filter(None, (part.strip() for part in re.split(r"[|/]", cells.get("panel", "")))):
        if label.casefold() not in by_name:
            raise Refused(_("There is no panel “%(name)s”.") % {"name": label}, code="invalid")
        panels.append(by_name[label.casefold()])
    spoken = [tag for tag in re.split(r"[\s,;|/]+", cells.get("languages", "")) if tag]
    return checked_person(email=email, name=name, panels=panels, spoken=spoken)


def checked_person(
    *, email: str, name: str = "", panels: Sequence[int] = (), spoken: Sequence[str] = ()
) -> InvitedPerson:
    """The person, with the address in lower case and canonical languages. Refused if one of them is none."""
    try:
        validate_email(email)
    except ValidationError:
        raise Refused(_("“%(text)s” is not an e-mail address.") % {"text": email[:80]}, code="invalid") from None
    tags = _canonical(spoken)
    return InvitedPerson(email=email.lower(), name=name[:120], panels=tuple(dict.fromkeys(panels)), languages=tags)


def _canonical(spoken: Sequence[str]) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(languages.canonical_language(tag) for tag in spoken))
    except ValueError as error:
        raise Refused(str(error), code="invalid", fields={"languages": str(error)}) from None


def invite_many(
    *,
    project: Project,
    listed: Sequence[InvitedPerson],
    role: Role,
    created_by: User,
    panels: Sequence[int] = (),
    spoken: Sequence[str] = (),
    days: int = people.DEFAULT_DAYS,
    send: bool = False,
) -> list[InvitedRow]:
    """Invite everybody in the list in one transaction; ``panels`` and ``spoken`` are for rows without their own.

    ``send``: mail each of them their link, where the server sends mail; an address gets one mail a day from a project.
    Refused above `MOST_MAILED_INVITATIONS`.
    """
    if len(listed) > MOST_INVITED:
        sentence = _("Invite at most %d people at a time.") % MOST_INVITED
        raise Refused(sentence, code="too_many", fields={"addresses": sentence})
    usual, is_mailed = _canonical(spoken), send and mail.is_sent()
    rows, seen = [], set()
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)  # of two lists the second sees the first
        members = {
            member.user.email: member for member in Membership.objects.filter(project=project).select_related("user")
        }
        open_ones = Invitation.objects.open().filter(project=project).exclude(email="")
        waiting = set(open_ones.values_list("email", flat=True))
        lately = Invitation.objects.filter(project=project, mailed_at__gt=timezone.now() - timedelta(days=1))
        mailed = set(lately.values_list("email", flat=True))
        for person in listed:
            chosen = person.panels or tuple(panels)
            if person.email in seen:
                rows.append(InvitedRow(email=person.email, outcome=InvitationOutcome.DUPLICATE))
            elif member := members.get(person.email):
                rows.append(_seated(member, chosen, created_by))
            elif person.email in waiting:
                rows.append(InvitedRow(email=person.email, outcome=InvitationOutcome.OPEN))
            else:
                invitation, secret = people.invite(
                    project=project,
                    role=role,
                    created_by=created_by,
                    email=person.email,
                    name=person.name,
                    panels=chosen,
                    languages=person.languages or usual,
                    days=days,
                )
                link = reverse("join", args=[secret])
                note = _("This address got a mail in the last 24 hours. Send them the link yourself.")
                is_second = is_mailed and person.email in mailed
                rows.append(
                    InvitedRow(
                        email=person.email,
                        outcome=InvitationOutcome.INVITED,
                        link=link,
                        note=note if is_second else "",
                    )
                )
                if is_mailed and not is_second:
                    Invitation.objects.filter(pk=invitation.pk).update(mailed_at=timezone.now())
                    spoken = (*(person.languages or usual), get_language() or "en", "en")
                    with translation.override(next(tag for tag in spoken if check_for_language(tag))):
                        transaction.on_commit(_mailing(project, person.email, link, days))
            seen.add(person.email)
        if is_mailed:
            _require_few_mails(project, created_by)
    return rows


def _require_few_mails(project: Project, created_by: User) -> None:
    """Refuse more mails a day: anybody's address can be in a list."""
    lately = Invitation.objects.filter(created_at__gt=timezone.now() - timedelta(days=1)).exclude(email="")
    for own in (lately.filter(project=project), lately.filter(created_by=created_by)):
        if own.count() > MOST_MAILED_INVITATIONS:
            sentence = _(
                "At most %d invitations a day are sent by e-mail. Invite these people without e-mail, and send them "
                "their links yourself."
            )
            sentence %= MOST_MAILED_INVITATIONS
            raise Refused(sentence, code="too_many", fields={"send": sentence})


def _seated(member: Membership, panels: Sequence[int], actor: User) -> InvitedRow:
    """A member joins the panels at once, if they are an annotator."""
    seated, note = [], ""
    for access in people.panel_access if panels else ():
        for panel in panels:
            try:
                with transaction.atomic():
                    seated.append(access.seat_member(member, panel, actor))
            except Refused as refused:
                note = refused.sentence
    return InvitedRow(email=member.user.email, outcome=InvitationOutcome.MEMBER, seated=tuple(seated), note=note)


def _mailing(project: Project, email: str, link: str, days: int) -> Callable[[], None]:
    subject = _("Invitation to the project “%(project)s”") % {"project": project.name}
    body = _("You are invited to the project “%(project)s”. Open this link within %(days)d days:") % {
        "project": project.name,
        "days": days,
    }
    text = f"{body}\n\n{mail.site_address(link)}\n"
    return lambda: mail.queue_text(subject=" ".join(subject.split()), body=text, to=[email])
