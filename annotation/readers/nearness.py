"""What somebody probably meant by a name that is not known: `did you mean “Fluency”?`"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from annotation.readers.problems import excerpt

_NEAR = 0.7
_APART = re.compile(r"[\W_]+|(?<!\d)0+(?=\d)")


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like this one, capitals and small letters alike; "" where none is."""
    by_folded = {each.casefold(): each for each in known}
    return next((by_folded[near] for near in get_close_matches(name.casefold(), by_folded, 1, _NEAR)), "")


def hint(near: str) -> str:
    """`did you mean “Fluency”? `, to go before what was expected; "" where nothing is near."""
    return f"did you mean {excerpt(near)}? " if near else ""


def loosely(identifier: str) -> str:
    """What identifiers have in common that mean the same but for capitals, what stands between their parts, zeros in
    front of a number, and the ``.0`` of a number that was read as a fraction."""
    return _APART.sub("", identifier.strip().casefold().removesuffix(".0"))
