"""A validator for passwords that guessing programs try first, also in disguise."""

from __future__ import annotations

import re
import unicodedata

from django.contrib.auth.password_validation import CommonPasswordValidator
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

DISGUISES = str.maketrans("013457@$!", "oleastasi")
ROWS = ("0123456789" * 3, "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm", "1qaz2wsx3edc4rfv5tgb6yhn7ujm")
OWN_WORDS = {"panelbench"}
FEWEST_CHARACTERS = 5


class KnownPasswordValidator(CommonPasswordValidator):
    """Refuses Django's list of 20,000 common passwords, also with digits or signs around them, with digits for letters,
    or repeated; rows of the keyboard; and passwords with fewer than five different characters."""

    def validate(self, password: str, user: object = None) -> None:
        plain = unicodedata.normalize("NFKC", password).lower().strip()
        if self._is_known(plain) or _is_row(plain) or len(set(plain)) < FEWEST_CHARACTERS:
            raise ValidationError(
                _("This password is easy to guess. Use several unrelated words instead."),
                code="password_too_common",
            )

    def _is_known(self, plain: str) -> bool:
        forms = {_once(form) for text in (plain, plain.translate(DISGUISES)) for form in (text, _bare(text))}
        return bool(forms & (self.passwords | OWN_WORDS))


def _bare(text: str) -> str:
    """The text without digits and signs around it."""
    return re.sub(r"^[\W\d_]+|[\W\d_]+$", "", text)


def _once(text: str) -> str:
    """The part that a repeated text repeats: `abcabc` -> `abc`."""
    match = re.fullmatch(r"(.+?)\1+", text, re.DOTALL)
    return match.group(1) if match else text


def _is_row(text: str) -> bool:
    """Whether the text is a part of a keyboard row or of the alphabet, forwards or backwards."""
    return any(text in row or text[::-1] in row for row in ROWS)
