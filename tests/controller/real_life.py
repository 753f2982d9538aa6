"""A short life with real processes: each job leaves a line, so that one that ran twice shows.

It can end between any two parts of a start, and every other shim is slow to begin: who comes next
may be there before it, or after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from crashing import FragileStore, Fuse
from remains import remains
from sqlalchemy import select

from dovetail.controller import schema
from dovetail.controller.commands import Submit
from dovetail.controller.journal import Journal
from dovetail.controller.loop import Controller
from dovetail.controller.parts import Parts, composer
from dovetail.controller.submission import Submission
from dovetail.executors.local import Local, detect, shim
from dovetail.executors.local import executor as executor_module
from dovetail.executors.local.fences import Fences
from dovetail.executors.local.folders import Folder
from dovetail.model.request import gang

JOBS = 4
PATIENCE = 120.0


SLOW = """
import os, pathlib, runpy, sys, time
link = os.link

def late(*given):
    time.sleep(0.1)
    link(*given)

if int(pathlib.Path(sys.argv[1]).name.partition("-")[0]) % 2:
    os.link = late
runpy.run_path({shim!r}, run_name="__main__")
"""
"""A shim that takes its time before it takes its claim, for every other job."""
PARTS = ((Folder, "make"), (Fences, "make"), (Folder, "write"), (executor_module, "_spawn"))
"""What a start is made of."""


@contextmanager
def fragile(fuse: Fuse) -> Iterator[None]:
    """While a start can end after each of its parts, and so can whoever stops something."""
    with ExitStack() as stack:
        for owner, name in (*PARTS, (Local, "start"), (Local, "stop")):
            stack.enter_context(patch.object(owner, name, _burning(getattr(owner, name), fuse)))
        yield


def _burning(call: Callable[..., Any], fuse: Fuse) -> Callable[..., Any]:
    def burns(*given: Any) -> Any:
        found = call(*given)
        fuse.burn()
        return found

    return burns


def live(folder: Path, url: str | None, at: int) -> int:
    """One life, to the end of all jobs or of the fuse."""
    fuse = Fuse(at)
    slow = folder / "slow.py"
    slow.write_text(SLOW.format(shim=str(shim.__file__)))
    with fragile(fuse), patch.object(shim, "__file__", str(slow)):
        _live(folder, url, fuse)
    return fuse.count


def _live(folder: Path, url: str | None, fuse: Fuse) -> None:
    executor = Local(folder, detect(virtual=2))
    store = FragileStore(url or f"sqlite:///{folder / 'dovetail.db'}", fuse)
    make = composer(Parts(), executor)
    controller = Controller(make, Journal(store, every=5), executor)
    for number in range(controller.roster.next_id, JOBS + 1):
        controller.post(Submit((_job(folder, number),)))
        controller.turn()
    deadline = time.monotonic() + PATIENCE
    while controller.roster:
        controller.turn()
        time.sleep(0.005)
        assert time.monotonic() < deadline, "the jobs never end"
    controller.scheduler.validate()
    rows = store.rows(select(schema.jobs).order_by(schema.jobs.c.id))
    ends = [(row["state"], row["reason"]) for row in rows]
    assert ends == [("done", "")] * JOBS, ends
    for number in range(1, JOBS + 1):
        assert (folder / f"ran-{number}").read_text() == "once\n", "it ran twice, or never"
    controller.journal.close()
    store.close()
    while found := remains(folder / "attempts"):
        time.sleep(0.005)
        assert time.monotonic() < deadline, found


def _job(folder: Path, number: int) -> Submission:
    line = f"echo once >> {folder / f'ran-{number}'}"
    after = (1,) if number == JOBS else ()
    return Submission(("sh", "-c", line), gang(1, 100, 16), after=after)
