"""A linear or integer program, written down column by column and row by row, solved by HiGHS.

It knows nothing about jobs. It is a thin typed cover of `scipy.optimize.milp` that maximises, says
None instead of raising, and stops by counting branches, so that the same program has the same
answer on any machine; the limit in seconds is only there to save a caller from a hopeless one.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

import numpy as np

CORE, GIB = 1000, 1024
"""Units of rows: the solver's tolerances are absolute, so it is better with small numbers."""


class Effort(NamedTuple):
    """How hard to try."""

    #: relative distance from the best possible at which an answer is good enough
    gap: float = 1e-4
    #: seconds after which whatever was found is taken
    seconds: float = 30.0
    branches: int = 10_000


class Answer(NamedTuple):
    """What each column came out as, what that is worth, and what no answer can exceed."""

    values: list[float]
    worth: float
    bound: float

    def whole(self, column: int) -> int:
        """The value of an integer column."""
        return round(self.values[column])


class Program:
    """Columns with a worth each, rows that bound sums of columns."""

    def __init__(self) -> None:
        self._worth: list[float] = []
        self._most: list[float] = []
        self._integral: list[int] = []
        self._low: list[float] = []
        self._high: list[float] = []
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._factors: list[float] = []

    def column(self, worth: float, most: float = inf, *, whole: bool = False) -> int:
        """A new quantity between 0 and `most`."""
        self._worth.append(worth)
        self._most.append(most)
        self._integral.append(int(whole))
        return len(self._worth) - 1

    def row(
        self, terms: Iterable[tuple[int, float]], low: float, high: float, unit: float = 1
    ) -> None:
        """A sum of columns times factors that must lie between two values, all in a unit."""
        for column, factor in terms:
            self._rows.append(len(self._low))
            self._columns.append(column)
            self._factors.append(factor / unit)
        self._low.append(low / unit)
        self._high.append(high / unit)

    def solve(self, effort: Effort) -> Answer | None:
        """The best values found, or None where there are none or none were found in time."""
        # Commands start fast: the solver is loaded where one is asked for.
        from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415
        from scipy.sparse import csc_matrix  # noqa: PLC0415

        if not self._worth:
            return Answer([], 0.0, 0.0)
        entries = (self._factors, (self._rows, self._columns))
        matrix = csc_matrix(entries, shape=(len(self._low), len(self._worth)))
        found = milp(
            -np.array(self._worth),
            integrality=np.array(self._integral),
            bounds=Bounds(np.zeros(len(self._worth)), np.array(self._most)),
            constraints=LinearConstraint(matrix, np.array(self._low), np.array(self._high)),
            options={
                "mip_rel_gap": effort.gap,
                "time_limit": effort.seconds,
                "node_limit": effort.branches,
            },
        )
        if found.x is None:
            return None
        bound = found.mip_dual_bound if found.mip_dual_bound is not None else found.fun
        return Answer(found.x.tolist(), -float(found.fun), -float(bound))
