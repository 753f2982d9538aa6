"""Predictors that are told: the truth, the truth with noise, or what the owner declared.

The truth is the simulated world's; the driver hands it over through `told`, and only predictors
that admit to being oracles look at it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec


@dataclass
class Oracle:
    """Knows every job's true length. For comparing with work that assumes it."""

    told: Callable[[int], float] | None = field(default=None, init=False)

    #: is there anything to tell it about jobs that are done?
    learns: ClassVar[bool] = False

    def expect(self, spec: JobSpec) -> float:
        """The true work."""
        if self.told is None:
            raise UserError("the oracle predictor only works in simulation; choose another")
        return self.told(spec[0])

    def quantiles(self, spec: JobSpec, levels: Sequence[float]) -> list[float]:
        """Certain: all quantiles are the truth."""
        return [self.expect(spec)] * len(levels)

    def knows(self, spec: JobSpec) -> bool:
        """It knows everything."""
        return True

    def learn(self, spec: JobSpec, work: float) -> None:
        """Nothing to learn."""

    def snapshot(self) -> Any:
        """Nothing to keep."""
        return None

    def restore(self, state: Any) -> None:
        """Nothing was kept."""


BANDS = ((0.1, 0.0, 0.1), (0.4, 0.1, 0.5), (0.2, 0.5, 1.0), (0.2, 1.0, 10.0), (0.1, 10.0, 100.0))
"""(share of jobs, least, most relative error): the recipe Helios (SC'21) used for Philly."""


@dataclass
class Noisy(Oracle):
    """The truth with relative errors drawn from the Helios recipe, by seed and job id."""

    seed: int = 0

    def expect(self, spec: JobSpec) -> float:
        """The truth times a factor that depends on seed and job alone."""
        draw = random.Random(self.seed * 1_000_003 + spec.id)
        at, band = draw.random(), 0
        while band < len(BANDS) - 1 and at >= BANDS[band][0]:
            at -= BANDS[band][0]
            band += 1
        error = draw.uniform(BANDS[band][1], BANDS[band][2])
        truth = super().expect(spec)
        return truth / (1 + error) if draw.random() < 0.5 else truth * (1 + error)


@dataclass
class Declared(Oracle):
    """What the owner declared; `default` seconds where nothing was declared."""

    default: float = 3600.0

    def knows(self, spec: JobSpec) -> bool:
        """Did its owner say?"""
        return spec.estimate is not None

    def expect(self, spec: JobSpec) -> float:
        """The estimate in the job's spec."""
        return self.default if spec.estimate is None else spec.estimate
