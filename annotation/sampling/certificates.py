"""The certificate of a curated set: what was asked for, what there was, how even it is before and after. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

LENGTHS = ("short", "middle", "long")


class PoolRow(NamedTuple):
    """One item of the pool with its values by facet; an item may have several values of one facet (its issues)."""

    language: str
    family: str
    facets: Mapping[str, tuple[str, ...]]


def length_bands(lengths: Sequence[tuple[str, int]]) -> tuple[list[str], dict[str, list[int]]]:
    """The band of each (language, characters): thirds of its language; and where the second and third band begin."""
    by_language: dict[str, list[int]] = defaultdict(list)
    for language, length in lengths:
        by_language[language].append(length)
    bounds = {}
    for language, own in sorted(by_language.items()):
        own.sort()
        bounds[language] = [own[len(own) // 3], own[2 * len(own) // 3]]
    bands = [LENGTHS[sum(length >= bound for bound in bounds[language])] for language, length in lengths]
    return bands, bounds


def unevenness(rows: Sequence[tuple[str, ...]], values: Collection[str]) -> float | None:
    """The share of the items that would need another value for all values to be equally frequent: 0 is even.

    An item with k values counts 1/k for each of them. sum |p_v - 1/K| / 2 over the K ``values``; None if K < 2.
    """
    if len(values) < 2 or not rows:
        return None
    shares: Counter[str] = Counter()
    for own in rows:
        for value in own:
            shares[value] += 1 / len(own)  # type: ignore[assignment]
    return sum(abs(shares[value] / len(rows) - 1 / len(values)) for value in values) / 2


def certify(
    pool: Sequence[PoolRow],
    chosen: Collection[int],
    *,
    n: int,
    languages: Sequence[str],
    facets: Sequence[str],
    left_out: Mapping[str, int],
    by_family: bool,
) -> dict[str, Any]:
    """The certificate: counts by language, and by facet and language each value in the pool and in the set.

    ``chosen``: places in the pool. A language with fewer than ``n`` has the number that it lacks as ``missing``.
    """
    inside = set(chosen)
    places: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(pool):
        places[row.language].append(place)
    counts, tables = [], []
    for language in languages:
        own = places[language]
        kept = [place for place in own if place in inside]
        numbers = {"asked": n, "available": len(own), "chosen": len(kept), "missing": max(0, n - len(kept))}
        counts.append({"language": language, **numbers})
        for facet in facets:
            before = [pool[place].facets[facet] for place in own]
            after = [pool[place].facets[facet] for place in kept]
            of_pool, of_set = (Counter(value for values in rows for value in values) for rows in (before, after))
            tables.append(
                {
                    "facet": facet,
                    "language": language,
                    "values": [[value, of_pool[value], of_set[value]] for value in sorted(of_pool)],
                    "uneven": [unevenness(before, of_pool), unevenness(after, of_pool)],
                }
            )
    families = None
    if by_family:
        kept_families = {pool[place].family for place in inside}
        families = {"available": len({row.family for row in pool}), "chosen": len(kept_families)}
    return {"languages": counts, "families": families, "left_out": dict(left_out), "tables": tables}


def require_shown(rule: Any, document: Any) -> None:
    """Raise ``ValueError`` unless these are a rule and a certificate that a page can show."""
    try:
        shown = [rule["method"], rule["n"], document["left_out"].items(), document["families"], document["judge"]]
        for row in document["languages"]:
            shown += [row[name] for name in ("language", "asked", "available", "chosen", "missing")]
        for table in document["tables"]:
            shown += [table["facet"], table["language"], *((v, int(b), int(a)) for v, b, a in table["values"])]
            _before, _after = table["uneven"]
        for row in document["errors"] or ():
            shown += [row[name] for name in ("language", "issue", "flagged", "items", "labelled", "bounds")]
            shown += [row["sensitivity"], row["specificity"]]
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ValueError("a rule and a certificate as a curated dataset has them") from None
