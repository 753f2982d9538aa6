"""The jobs submitted of late, and what might come because of them: the same once more.

Under most policies those who come later may go first, so a future in which nobody comes is too
rosy. Each possible future gets the recent past again, begun at another place of it: rushes stay
rushes, and users submit what they do. But whoever has to wait came in a rush, and rushes end: how
much of it comes again is drawn as well, from nothing to all. How long these jobs take is for others
to draw.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count, pairwise
from random import Random

from dovetail.model.job import JobSpec

REMEMBERED = 2000
"""Submissions: a day or two of a busy cluster."""

NUMBERED = 1 << 40
"""Jobs that nobody has submitted are numbered from here."""


class Arrivals:
    """What was submitted of late, in order."""

    def __init__(self, specs: Iterable[JobSpec] = ()) -> None:
        self._recent = deque(sorted(specs, key=lambda spec: spec.submit), REMEMBERED)

    def note(self, spec: JobSpec) -> None:
        """One more was submitted."""
        self._recent.append(spec)

    def copy(self) -> Arrivals:
        """As it is now, for another thread."""
        return Arrivals(self._recent)

    def of(self, mine: Callable[[JobSpec], bool]) -> Arrivals:
        """Only these."""
        return Arrivals(filter(mine, self._recent))

    def again(self, now: float, random: Random) -> Iterator[JobSpec]:
        """What might come from now on, for as long as is remembered."""
        past = list(self._recent)
        if len(past) < 2:
            return
        first, share = random.randrange(len(past)), random.random()
        # The time since the last submission closes the circle.
        gaps = [later.submit - one.submit for one, later in pairwise(past)]
        gaps.append(max(0.0, now - past[-1].submit))
        at = now
        for number, place in zip(count(NUMBERED), range(first, first + len(past)), strict=False):
            at += gaps[place % len(past)]
            if random.random() < share:
                yield past[(place + 1) % len(past)]._replace(id=number, submit=at)
