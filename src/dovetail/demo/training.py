"""A small model that is really trained: decode pictures on the processor, then a device step.

    python -m dovetail.demo.training image --steps 500

Pictures are stored as cosine coefficients, as in JPEG, and are decoded ahead of the training by a
few threads. The model, a logistic regression, learns to tell bright ones from dark ones. The device
is virtual: its part of a step is a sleep. Runs as a job, and knows nothing of who runs it.
"""

from __future__ import annotations

import os

# One thread a picture: the library's own would fight with ours. To be said before it is loaded.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from dovetail.demo.kinds import KINDS, Kind
from dovetail_client import progress

SIDE = 64
"""Pixels of a picture's side."""
THREADS = 4
"""More than cores are granted do no harm: together they get what is granted."""
AHEAD = 8
"""Batches decoded before they are wanted."""
RATE = 0.5

Array = NDArray[np.float32]
Batch = tuple[Array, Array]


def cosines() -> Array:
    """The basis in which pictures are stored."""
    places = np.arange(SIDE)
    waves: Array = np.cos(np.pi / SIDE * (places[None, :] + 0.5) * places[:, None])
    return (waves / SIDE).astype(np.float32)


BASIS = cosines()


def load(kind: Kind, number: int) -> Batch:
    """A batch: the decoded pictures' means over a coarse grid, and which are bright."""
    generator = np.random.default_rng(number)
    stored = generator.standard_normal((kind.batch, SIDE, SIDE), dtype=np.float32)
    bright = generator.integers(0, 2, kind.batch).astype(np.float32)
    stored[:, 0, 0] += 4 * SIDE * (bright - 0.5)
    pictures = BASIS.T @ stored @ BASIS
    coarse = pictures.reshape(kind.batch, 8, SIDE // 8, 8, SIDE // 8).mean(axis=(2, 4))
    return coarse.reshape(kind.batch, -1), bright


def batches(kind: Kind, steps: int) -> Iterator[Batch]:
    """Batches in order, decoded ahead."""
    with ThreadPoolExecutor(THREADS) as pool:
        ahead: deque[Future[Batch]] = deque()
        for number in range(steps):
            ahead.append(pool.submit(load, kind, number))
            if len(ahead) > AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


class Model:
    """A logistic regression."""

    def __init__(self) -> None:
        self._weights = np.zeros(64, dtype=np.float32)

    def learn(self, batch: Batch) -> float:
        """One step; the share of pictures it got right before."""
        seen, bright = batch
        said = 1 / (1 + np.exp(-(seen @ self._weights)))
        self._weights -= RATE * (seen.T @ (said - bright)) / len(bright)
        return float(np.mean((said > 0.5) == (bright > 0.5)))


def main() -> None:
    """Train for so many steps."""
    parser = argparse.ArgumentParser(description="Trains a small model.")
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("--steps", type=int, default=100_000)
    given = parser.parse_args()
    kind, model, right = KINDS[given.kind], Model(), 0.0
    for done, batch in enumerate(batches(kind, given.steps), 1):
        right += 0.05 * (model.learn(batch) - right)
        time.sleep(kind.device)
        progress(done, total=given.steps)
    print(f"{given.steps} steps, {right:.0%} right")  # noqa: T201 (the job's own log)


if __name__ == "__main__":
    main()
