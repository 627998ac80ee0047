"""Personal data: e-mail addresses, bank accounts and cards with right check digits, telephone numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import regex

from accounts import languages
from analytics.stats.declared.declaring import translatable
from annotation.checkup.checked_items import CheckedItem, TextPart, excerpt_around
from annotation.checkup.declared import Check, Hit

_EMAIL = regex.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?P<domain>[\w-]{1,63}(?:\.[\w-]{1,63}){1,4})")
# Names that are kept for examples (RFC 2606, 6761): nobody has an address there.
_RESERVED = regex.compile(r"(?:^|\.)(?:example(?:\.(?:com|net|org))?|test|invalid|localhost|local)$", regex.IGNORECASE)
_IBAN = regex.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?!\w)")
_CARD = regex.compile(r"(?<![\w.,-])\d(?:[ -]?\d){12,18}(?![\w-])")
_CARD_STARTS = regex.compile(r"(?:4|5[1-5]|2[2-7]|3[47]|3[0689]|6(?:011|5|4[4-9])|35|62)")
_DIGITS = regex.compile(r"(?<![\w@./-])[+(]?\d[\d ()./-]{5,20}\d(?![\w@])")
# What a number of digits alone may follow: "Telefon: 5123456", "my mobile number is 07700900123".
_TELEPHONE = regex.compile(
    r"(?:\btel\b|t[eé]l[eé](?:f|ph)|phone|puhelin|\bmobi|\bgsm\b|whats ?app|телефон|тел\.|电话|電話|手机|手機|携帯|"
    r"전화|هاتف|جوال|تلفن|फ़ोन|फ़ोन|फोन)[^\d\n.,;!?]{0,14}$",
    regex.IGNORECASE,
)
FEWEST_DIGITS = 13  # of a card
MOST_NUMBERS = 300  # possible telephone numbers of one turn that are looked at
BEFORE_DIGITS = 30  # characters before digits in which a word for a telephone is looked for
AROUND = 4  # characters before and after possible digits of a number that are read with them


class _Personal(Check):
    subject = "personal data"
    severity = "warning"
    says = translatable("%(found)s in “%(text)s”")

    def look(self, item: CheckedItem) -> Iterator[Hit]:
        for part in item.parts:
            for start, end in self.places(part, item.language):
                shown = excerpt_around(part.text, start, end)
                yield Hit(item.ordinal, part.place, {"found": part.text[start:end], "text": shown})

    def places(self, part: TextPart, language: str) -> Iterator[tuple[int, int]]:
        """From where to where they stand."""
        raise NotImplementedError


class EmailAddress(_Personal):
    name = "email_address"
    title = translatable("E-mail address")
    help = translatable("Addresses at names that are kept for examples, such as example.com, are not counted.")

    def places(self, part: TextPart, language: str) -> Iterator[tuple[int, int]]:
        if "@" in part.text:
            for match in _EMAIL.finditer(part.text):
                if not _RESERVED.search(match["domain"]):
                    yield match.span()


class BankAccount(_Personal):
    name = "bank_account"
    title = translatable("Bank account (IBAN)")
    help = translatable("The check digits are right, so it may be the account of a person.")

    def places(self, part: TextPart, language: str) -> Iterator[tuple[int, int]]:
        for match in _IBAN.finditer(part.text):
            # What follows a number in groups may look like one more group.
            words = match.group().split(" ")
            for count in range(len(words), 0, -1):
                number = "".join(words[:count])
                if 15 <= len(number) <= 34 and is_iban(number):
                    yield match.start(), match.start() + len(" ".join(words[:count]))
                    break


class CardNumber(_Personal):
    name = "card_number"
    title = translatable("Number of a payment card")
    help = translatable("The check digit is right, so it may be the card of a person.")

    def places(self, part: TextPart, language: str) -> Iterator[tuple[int, int]]:
        place = 0
        while match := _CARD.search(part.text, place):
            place = match.end()
            # The groups after a number may be the date on which the card expires, and its code.
            words = match.group().split(" ")
            for count in range(len(words), 0, -1):
                written = " ".join(words[:count])
                digits = regex.sub(r"\D", "", written)
                if len(digits) < FEWEST_DIGITS:
                    break
                if _CARD_STARTS.match(digits) and is_luhn(digits) and len(set(digits)) > 1:
                    place = match.start() + len(written)
                    yield match.start(), place
                    break


class TelephoneNumber(_Personal):
    name = "telephone_number"
    title = translatable("Telephone number")
    help = translatable(
        "A valid number with its country code, or a valid number of a country in which the item's language is spoken."
    )

    def places(self, part: TextPart, language: str) -> Iterator[tuple[int, int]]:
        from phonenumbers import Leniency, PhoneNumberMatcher

        region = languages.likely_region(language) or None
        for digits in islice(_DIGITS.finditer(part.text), MOST_NUMBERS):
            written = digits.group()
            if written[0] not in "+(" and not regex.search(r"\d[ -]\d", written):
                before = part.text[max(0, digits.start() - BEFORE_DIGITS) : digits.start()]
                if not _TELEPHONE.search(before):
                    continue  # an order number is as long, and only the word before it tells one from the other
            start = max(0, digits.start() - AROUND)
            window = part.text[start : digits.end() + AROUND]
            for match in PhoneNumberMatcher(window, region, leniency=Leniency.STRICT_GROUPING):
                opened = match.raw_string.startswith("(") and ")" not in match.raw_string
                yield start + match.start + opened, start + match.end


def is_luhn(digits: str) -> bool:
    """Whether the last digit of a card's number is its check digit (ISO/IEC 7812-1)."""
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(value - 9 if value > 9 else value for value in doubled)) % 10 == 0


def is_iban(number: str) -> bool:
    """Whether the check digits of an account's number are right (ISO 13616): the rest by 97 is 1."""
    return int("".join(str(int(sign, 36)) for sign in number[4:] + number[:4])) % 97 == 1


CHECKS: tuple[type[Check], ...] = (EmailAddress, BankAccount, CardNumber, TelephoneNumber)
