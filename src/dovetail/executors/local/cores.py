"""Which cores back which share: whole cores where it can be, a part of a core for the rest.

Amounts are thousandths of a core. Shares that do not fit one core are spread over several; the
quota, where the machine can set one, then keeps a job to its amount. Knows no processes.
"""

from __future__ import annotations

from collections.abc import Sequence

WHOLE_CORE = 1000


class Cores:
    """The cores of the machine and what is left of each."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = tuple(ids)
        self._free = dict.fromkeys(self.ids, WHOLE_CORE)
        self._held: dict[str, dict[int, int]] = {}

    def take(self, key: str, amount: int) -> tuple[int, ...]:
        """The cores for this holder, instead of those it had; an amount of 0 is not limited."""
        before = self._held.get(key, {})
        self.release(key)
        if not 0 < amount < WHOLE_CORE * len(self.ids):
            return self.ids
        taken: dict[int, int] = {}
        while (missing := amount - sum(taken.values())) > 0:
            core = self._next(missing, taken, before)
            taken[core] = min(missing, max(self._free[core], 1))
            if len(taken) == len(self.ids):
                break
        for core, part in taken.items():
            self._free[core] -= part
        self._held[key] = taken
        return tuple(sorted(taken))

    def release(self, key: str) -> None:
        """Give back what the holder had."""
        for core, part in self._held.pop(key, {}).items():
            self._free[core] += part

    def _next(self, missing: int, taken: dict[int, int], before: dict[int, int]) -> int:
        """A whole core while one is missing, then the tightest that is enough, then the freest.

        Cores that the holder had come first: what its caches hold is there.
        """
        wanted = min(missing, WHOLE_CORE)

        def rank(core: int) -> tuple[bool, int, bool, int]:
            free = self._free[core]
            enough = free >= wanted
            return not enough, free if enough else -free, core not in before, core

        return min((core for core in self.ids if core not in taken), key=rank)
