"""Reads numbers from addresses, headers and forms: the one place that decides what a whole number is and how large."""

LARGEST = 2**63 - 1  # of a primary key in either database


def whole_number(text: str | None, *, largest: int = LARGEST) -> int | None:
    """The number that ``text`` writes in the digits 0 to 9, from 0 to ``largest``; None for anything else."""
    if not text or len(text) > len(str(largest)) or not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return number if number <= largest else None
