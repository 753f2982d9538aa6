"""The generator of Gavel (Narayanan et al., OSDI'20), reused by many later papers.

Sizes are 1, 2, 4 and 8 GPUs with 70, 10, 15 and 5 %. The length in minutes is 10^U[1.5, 3] for
80 % of the jobs and 10^U[3, 4] for the rest. Arrivals are a Poisson process, and the model is
uniform over the 26 job types. Random numbers are numpy's, so the jobs are alike but not the very
ones of the original program.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.traces.kinds.stream import Drawn, Stream

SIZES = {1: 0.70, 2: 0.10, 4: 0.15, 8: 0.05}

BATCHES = {
    "ResNet-18": (16, 32, 64, 128, 256),
    "ResNet-50": (16, 32, 64, 128),
    "Transformer": (16, 32, 64, 128, 256),
    "LM": (5, 10, 20, 40, 80),
    "Recommendation": (512, 1024, 2048, 4096, 8192),
}

MODELS = [f"{name} (batch size {size})" for name, sizes in BATCHES.items() for size in sizes]
MODELS += ["A3C", "CycleGAN"]


@dataclass(frozen=True)
class GavelLike(Stream):
    """Jobs from Gavel's distributions."""

    def draw(self, random: np.random.Generator, count: int) -> Drawn:
        """Size, length and model do not depend on each other."""
        gpus = random.choice(np.array(list(SIZES), dtype=np.int64), count, p=list(SIZES.values()))
        short = random.random(count) < 0.8
        minutes = 10 ** np.where(short, random.uniform(1.5, 3, count), random.uniform(3, 4, count))
        model = random.integers(len(MODELS), size=count).tolist()
        return Drawn(gpus, minutes * 60, model=map(MODELS.__getitem__, model))
