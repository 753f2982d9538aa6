"""A short life with real processes: each job leaves a line, so that one that ran twice shows."""

from __future__ import annotations

import time
from pathlib import Path

from crashing import FragileStore, Fuse
from sqlalchemy import select

from dovetail.controller import schema
from dovetail.controller.commands import Submit
from dovetail.controller.journal import Journal
from dovetail.controller.loop import Controller
from dovetail.controller.parts import Parts, composer
from dovetail.controller.submission import Submission
from dovetail.executors.local import Local, detect
from dovetail.executors.protocol import Attempt, Launch
from dovetail.model.request import gang

JOBS = 4
PATIENCE = 120.0


class FragileLocal(Local):
    """Can die after every start and stop."""

    fuse = Fuse()

    def start(self, launch: Launch) -> None:
        super().start(launch)
        self.fuse.burn()

    def stop(self, attempt: Attempt, grace: float) -> None:
        super().stop(attempt, grace)
        self.fuse.burn()


def live(folder: Path, url: str | None, at: int) -> int:
    """One life, to the end of all jobs or of the fuse."""
    fuse = Fuse(at)
    executor = FragileLocal(folder, detect(virtual=2))
    executor.fuse = fuse
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
    return fuse.count


def _job(folder: Path, number: int) -> Submission:
    line = f"echo once >> {folder / f'ran-{number}'}"
    after = (1,) if number == JOBS else ()
    return Submission(("sh", "-c", line), gang(1, 100, 16), after=after)
