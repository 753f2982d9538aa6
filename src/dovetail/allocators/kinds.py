"""Claims that are alike: the same curve and as many GPUs, so that any may stand for any other.

Programs over kinds have a few dozen columns where programs over jobs have thousands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dovetail.core.claims import Claim, Curve, Point


class Kind(NamedTuple):
    """Claims that differ only in which job they are, by their place in the list of claims."""

    curve: Curve
    gpus: int
    members: list[int]

    @property
    def points(self) -> tuple[Point, ...]:
        """What one of them may get, cheapest first."""
        return self.curve.points


def kinds_of(claims: Sequence[Claim], among: Iterable[int] | None = None) -> list[Kind]:
    """The kinds of claims, in order of their first members."""
    numbers: dict[Curve, int] = {}
    # A curve is long to hash; most claims share the very same few objects.
    seen: dict[int, int] = {}
    kinds: dict[tuple[int, int], Kind] = {}
    for index in range(len(claims)) if among is None else among:
        claim = claims[index]
        number = seen.get(id(claim.curve))
        if number is None:
            number = numbers.setdefault(claim.curve, len(numbers))
            seen[id(claim.curve)] = number
        kind = kinds.get((number, claim.gpus))
        if kind is None:
            kind = kinds[number, claim.gpus] = Kind(claim.curve, claim.gpus, [])
        kind.members.append(index)
    return list(kinds.values())
