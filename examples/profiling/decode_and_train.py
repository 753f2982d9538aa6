"""A data-loading job to profile: read, decode and augment samples, then a GPU step that is a sleep.

    dovetail profile -- python examples/profiling/decode_and_train.py --gpu-ms 40

Workers, one for each core the process may use, decompress and augment samples with numpy; a reader
runs ahead of them. A sample that is not cached waits for a storage of the stated bandwidth, so that
a cache too small for the dataset can be tried without a slow disk. With few cores the decoding sets
the pace, with many the GPU step does.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import threading
import time
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from dovetail_client import progress

SIDE = 256
"""Pixels of a sample's side."""
KINDS = 16
"""Different pictures; the dataset repeats them."""


def parse() -> argparse.Namespace:
    """What can be set."""
    parser = argparse.ArgumentParser(description="A data-loading job to profile.")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--batch", type=int, default=8, help="samples a step")
    parser.add_argument("--epoch", type=int, default=512, help="steps in one pass over the data")
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--gpu-ms", type=float, default=20.0, help="milliseconds of a GPU step")
    parser.add_argument("--rounds", type=int, default=2, help="of augmentation: more is slower")
    parser.add_argument("--cached", type=float, default=1.0, help="share of the data in memory")
    parser.add_argument("--storage", type=float, default=100.0, help="MB/s for what is not cached")
    return parser.parse_args()


def pictures() -> list[bytes]:
    """Samples as they lie in storage: compressed."""
    generator = np.random.default_rng(0)
    drawn = (generator.integers(0, 64, (SIDE, SIDE, 3), dtype=np.uint8) for _ in range(KINDS))
    return [zlib.compress(picture.tobytes(), 1) for picture in drawn]


def decode(packed: bytes, rounds: int, generator: np.random.Generator) -> float:
    """Decompress a sample, then flip and normalise it."""
    picture = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(SIDE, SIDE, 3)
    image = picture.astype(np.float32)
    for _ in range(rounds):
        image = image[:, ::-1] if generator.random() < 0.5 else image[::-1]
        image = (image - image.mean()) / (image.std() + 1e-6)
    return float(image[0, 0, 0])


def work(tasks: Any, results: Any, packed: list[bytes], rounds: int) -> None:
    """A worker: decode what it is given."""
    generator = np.random.default_rng(os.getpid())
    while True:
        results.put(decode(packed[tasks.get() % KINDS], rounds, generator))


def read_ahead(tasks: Any, packed: list[bytes], given: argparse.Namespace) -> None:
    """Hand samples to the workers in order; those that are not cached come from storage."""
    ready = time.monotonic()
    while True:
        for index in range(given.epoch * given.batch):
            # The cache never evicts: the same samples, evenly spread, are hit in every pass.
            if int((index + 1) * given.cached) == int(index * given.cached):
                # Storage that was idle does not catch up, but for what a late wake-up lost.
                ready = max(ready, time.monotonic() - 0.01)
                ready += len(packed[index % KINDS]) / (given.storage * 1e6)
                time.sleep(max(0.0, ready - time.monotonic()))
            tasks.put(index)


def batches(given: argparse.Namespace) -> Iterator[list[float]]:
    """Decoded samples, a step's worth at a time."""
    packed = pictures()
    context = multiprocessing.get_context("fork")
    tasks, results = context.Queue(4 * given.batch), context.Queue(4 * given.batch)
    for _ in range(given.workers):
        context.Process(
            target=work, args=(tasks, results, packed, given.rounds), daemon=True
        ).start()
    threading.Thread(target=read_ahead, args=(tasks, packed, given), daemon=True).start()
    for _ in range(given.epoch * given.passes):
        yield [results.get() for _ in range(given.batch)]


def main() -> None:
    """Train, or look as if."""
    given = parse()
    size = sum(map(len, pictures())) / KINDS * given.epoch * given.batch
    print(f"dataset: {size / 2**30:.3f} GiB", flush=True)
    for done, _ in enumerate(batches(given), 1):
        time.sleep(given.gpu_ms / 1000)
        progress(done, total=given.epoch * given.passes, epoch=given.epoch)


if __name__ == "__main__":
    main()
