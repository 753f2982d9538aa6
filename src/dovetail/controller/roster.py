"""Jobs that have not ended, as the controller needs them beside what the scheduler believes.

The scheduler knows requests and devices; the roster knows commands, attempts and wishes of owners.
It is rebuilt from the rows of the data base, so nothing here needs a snapshot.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import func, select

from dovetail.controller import records, schema, submission
from dovetail.controller.store import Row, Store
from dovetail.controller.submission import Submission
from dovetail.core import codec
from dovetail.core.lifecycle import FINAL
from dovetail.executors.protocol import Advanced, Attempt
from dovetail.model.allocation import Allocation

HELD = "held"
"""The state of a job its owner keeps from starting; all others are the scheduler's."""

OVER = frozenset(str(status) for status in FINAL)


@dataclass
class Run:
    """An attempt that has not ended, as far as we were told."""

    attempt: Attempt
    allocation: Allocation
    #: did an engine confirm that it runs?
    confirmed: bool = False
    #: was it asked to stop?
    stopping: bool = False

    def row(self, wall: float) -> Row:
        """The attempt for the data base."""
        job, number = self.attempt
        launch = records.compact({"allocation": codec.to_plain(self.allocation)})
        return {"job": job, "number": number, "launch": launch, "started": wall}


@dataclass
class Live:
    """A job that has not ended."""

    id: int
    submission: Submission
    #: wall time, for people
    submitted: float
    started: float | None = None
    #: as it was last written down
    state: str = "waiting"
    reason: str = ""
    #: attempts so far
    attempts: int = 0
    failures: int = 0
    run: Run | None = None
    #: does its owner keep it from starting?
    held: bool = False
    #: until when it rests after a failure, on the time base of decisions
    pause: float | None = None
    progress: Advanced | None = None
    #: when progress was last told to the scheduler
    told: float = float("-inf")
    code: int | None = None
    signal: int | None = None

    def row(self) -> Row:
        """The new job for the data base."""
        shown, secrets = submission.written(self.submission)
        return {
            "id": self.id,
            "name": self.submission.name or f"job-{self.id}",
            "owner": self.submission.owner,
            "submission": shown,
            "secrets": secrets,
            "state": self.state,
            "submitted": self.submitted,
        }


class Roster(dict[int, Live]):
    """Live jobs by id, and the next id to give."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        jobs, attempts = schema.jobs, schema.attempts
        highest = store.rows(select(func.max(jobs.c.id).label("id")))
        self.next_id = int(highest[0]["id"] or 0) + 1
        for row in store.rows(select(jobs).where(jobs.c.state.not_in(OVER)).order_by(jobs.c.id)):
            self[int(row["id"])] = _live(row)
        #: jobs that rest after a failure, and until when
        self.resting = {live.id: live.pause for live in self.values() if live.pause is not None}
        counted = select(attempts.c.job, func.max(attempts.c.number).label("number"))
        alive = jobs.c.state.not_in(OVER)
        mine = counted.join(jobs, jobs.c.id == attempts.c.job).where(alive)
        for row in store.rows(mine.group_by(attempts.c.job)):
            self[int(row["job"])].attempts = int(row["number"])
        #: open attempts of jobs that are over: they must still be ended
        self.orphans: dict[int, Live] = {}
        unended = select(attempts).where(attempts.c.ended.is_(None))
        runs = [_run(row) for row in store.rows(unended)]
        lost = [run.attempt.job for run in runs if run.attempt.job not in self]
        for row in store.rows(select(jobs).where(jobs.c.id.in_(lost))) if lost else ():
            self.orphans[int(row["id"])] = _live(row)
        for run in runs:
            (self.get(run.attempt.job) or self.orphans[run.attempt.job]).run = run

    def leave(self, job: int) -> Live:
        """A job has ended."""
        self.resting.pop(job, None)
        return self.pop(job)


def _live(row: Row) -> Live:
    return Live(
        int(row["id"]),
        submission.read(row["submission"], row["secrets"]),
        row["submitted"],
        row["started"],
        row["state"],
        row["reason"],
        failures=row["failures"],
        held=row["state"] == HELD,
        pause=row["pause"],
        code=row["code"],
        signal=row["signal"],
    )


def _run(row: Row) -> Run:
    attempt = Attempt(int(row["job"]), int(row["number"]))
    allocation = codec.from_plain(Allocation, json.loads(row["launch"])["allocation"])
    return Run(attempt, allocation, bool(row["confirmed"]), bool(row["stopping"]))
