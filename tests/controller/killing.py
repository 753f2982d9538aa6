"""Lives that are ended by SIGKILL, each a process of its own: a program the crash tests run.

    killing.py KIND FOLDER [--url URL] [--every N] [--chain]

Prints what it found as JSON. It forks, so it must be no process with threads, as a test's is.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TextIO

import crashing
import real_life
import tenants_life
from sqlalchemy import create_engine, text

Life = Callable[[Path, str | None, int], int]
LIVES: dict[str, Life] = {
    "fake": crashing.live,
    "local": real_life.live,
    "tenants": tenants_life.live,
}
CHAIN = 41
"""Things a controller lives to do where one dies after the other."""


class Process(NamedTuple):
    """A life in a process of its own."""

    pid: int
    said: TextIO

    def over(self) -> tuple[int, bool]:
        """What it counted, and whether it was killed; a life that fails is an error here."""
        with self.said as said:
            counted = said.read()
        _, status = os.waitpid(self.pid, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            raise SystemExit(f"process {self.pid} failed")
        return int(counted or 0), os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def fork(work: Callable[[], int]) -> Process:
    """Let a process of its own do something and tell a number."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(writer, str(work()).encode())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writer)
    return Process(pid, open(reader))


def fresh(folder: Path, url: str | None, name: object) -> Path:
    """An empty data folder, and an empty data base where that is a server's."""
    here = folder / str(name)
    here.mkdir()
    if url is not None:
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
        engine.dispose()
    return here


def one_crash(life: Life, folder: Path, url: str | None, point: int) -> int:
    """Killed at one point, then to the end; returns how many were killed."""
    here = fresh(folder, url, point)
    _, killed = fork(lambda: life(here, url, point)).over()
    fork(lambda: life(here, url, 0)).over()
    return int(killed)


def chain(life: Life, folder: Path, url: str | None, offset: int) -> int:
    """Killed again and again, until the rest is done; returns how many were killed."""
    here, killed, at = fresh(folder, url, f"chain-{offset}"), 0, offset
    while fork(partial(life, here, url, at)).over()[1]:
        killed, at = killed + 1, CHAIN
    return killed


def side_by_side(points: Sequence[int], lanes: int, work: Callable[[int], int]) -> int:
    """The sum of what comes of all points, some at the same time."""
    running = [fork(lambda lane=lane: sum(map(work, points[lane::lanes]))) for lane in range(lanes)]
    return sum(each.over()[0] for each in running)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=LIVES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--chain", action="store_true")
    asked = parser.parse_args()
    life, begun = LIVES[asked.kind], time.monotonic()
    # A whole life here first: those that follow find everything loaded.
    whole = life(fresh(asked.folder, asked.url, "whole"), asked.url, 0)
    gc.freeze()
    points = range(1, (CHAIN if asked.chain else whole) + 1, asked.every)
    work = partial(chain if asked.chain else one_crash, life, asked.folder, asked.url)
    killed = side_by_side(points, 1 if asked.url else 2, work)
    took = round(time.monotonic() - begun, 1)
    json.dump({"whole": whole, "points": len(points), "killed": killed, "s": took}, sys.stdout)


if __name__ == "__main__":
    main()
