"""Jobs that have not ended, as the controller needs them beside what the scheduler believes.

The scheduler knows requests and devices; the roster knows commands, attempts and wishes of owners.
It is rebuilt from the rows of the data base, so nothing here needs a snapshot.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlalchemy import func, select

from dovetail.controller import records, schema, submission
from dovetail.controller.dependencies import DONE, Dependencies
from dovetail.controller.store import Row, Store
from dovetail.controller.submission import Member, Submission
from dovetail.core import codec
from dovetail.core.lifecycle import FINAL
from dovetail.executors.protocol import Advanced, Attempt
from dovetail.model.allocation import Allocation
from dovetail.model.live import called

HELD = "held"
"""The state of a job its owner keeps from starting; all others are the scheduler's."""

REQUEUE, FAIL = "requeue", "fail"
"""Fates of an attempt that we end ourselves: its job waits again, or has failed for good."""

OVER = frozenset(str(status) for status in FINAL)
ALIVE = schema.jobs.c.state.not_in(OVER)


@dataclass
class Run:
    """An attempt that has not ended, as far as we were told."""

    attempt: Attempt
    allocation: Allocation
    #: did an engine confirm that it runs?
    confirmed: bool = False
    #: was it asked to stop?
    stopping: bool = False
    #: what is to become of the job once this has ended; empty: as it ends
    fate: str = ""
    #: the boot of the machine it was started in
    boot: str = ""
    #: since when it runs, on the time base of decisions
    since: float | None = None

    def survived(self, boot: str) -> bool:
        """Has the machine stayed up since it was started?"""
        return self.boot in ("", boot)

    def row(self, wall: float) -> Row:
        """The new attempt for the data base."""
        job, number = self.attempt
        known = {"launch": self.launch(), "boot": self.boot, "since": self.since}
        return {"job": job, "number": number, "started": wall, **known}

    def launch(self) -> str:
        """What it was started with, as it is stored."""
        return records.compact({"allocation": codec.to_plain(self.allocation)})


class Asked:
    """What was asked for, read from its row when somebody wants to know."""

    def __init__(self, shown: str, secrets: str) -> None:
        self._written = (shown, secrets)

    @cached_property
    def submission(self) -> Submission:
        """All of it."""
        return submission.read(*self._written)


@dataclass
class Live:
    """A job that has not ended."""

    id: int
    asked: Submission | Asked
    name: str
    owner: str
    #: wall time, for people
    submitted: float
    #: on the time base of decisions
    arrived: float | None = None
    member: Member | None = None
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
    #: seconds that attempts which are over have run
    ran: float = 0.0
    #: wall time of its last checkpoint
    saved: float | None = None
    #: jobs it waits for, until the scheduler is told of it
    waits: set[int] = field(default_factory=set)

    @property
    def submission(self) -> Submission:
        """What was asked for."""
        return self.asked.submission if isinstance(self.asked, Asked) else self.asked

    @property
    def label(self) -> str:
        """Its number as lists have it: `7`, or `12.3` for a member of an array."""
        return str(self.member or self.id)

    def row(self) -> Row:
        """The new job for the data base."""
        shown, secrets = submission.written(self.submission)
        return {
            "id": self.id,
            "name": self.name,
            "owner": self.owner,
            "submission": shown,
            "secrets": secrets,
            "state": self.state,
            "submitted": self.submitted,
            "arrived": self.arrived,
            "array": self.member.array if self.member else None,
            "index": self.member.index if self.member else None,
        }


class Roster(dict[int, Live]):
    """Live jobs by id, and the next id to give."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        #: how many each owner has
        self.owned: Counter[str] = Counter()
        jobs = schema.jobs
        # The newest id is always a job's: an array comes before its members.
        highest = store.rows(select(func.max(jobs.c.id).label("id")))
        self.next_id = int(highest[0]["id"] or 0) + 1
        sizes = self._sizes()
        for row in store.rows(select(jobs).where(ALIVE).order_by(jobs.c.id)):
            self.enter(_live(row, sizes))
        #: jobs that rest after a failure, and until when
        self.resting = {live.id: live.pause for live in self.values() if live.pause is not None}
        #: when running jobs have used up the time they may run
        self.limits: dict[int, float] = {}
        #: open attempts of jobs that are over: they must still be ended
        self.orphans: dict[int, Live] = {}
        self._find_runs(sizes)
        self.dependencies = Dependencies()

    def _sizes(self) -> dict[int, int]:
        """How large the arrays of live jobs are."""
        jobs, arrays = schema.jobs, schema.arrays
        wanted = select(jobs.c.array).where(ALIVE, jobs.c.array.is_not(None))
        rows = self.store.rows(select(arrays.c.id, arrays.c.size).where(arrays.c.id.in_(wanted)))
        return {int(row["id"]): int(row["size"]) for row in rows}

    def _find_runs(self, sizes: dict[int, int]) -> None:
        jobs, attempts, store = schema.jobs, schema.attempts, self.store
        counted = select(attempts.c.job, func.max(attempts.c.number).label("number"))
        mine = counted.join(jobs, jobs.c.id == attempts.c.job).where(ALIVE)
        for row in store.rows(mine.group_by(attempts.c.job)):
            self[int(row["job"])].attempts = int(row["number"])
        unended = select(attempts).where(attempts.c.ended.is_(None))
        runs = [_run(row) for row in store.rows(unended)]
        lost = [run.attempt.job for run in runs if run.attempt.job not in self]
        for row in store.rows(select(jobs).where(jobs.c.id.in_(lost))) if lost else ():
            self.orphans[int(row["id"])] = _live(row, sizes)
        for run in runs:
            live = self.get(run.attempt.job) or self.orphans[run.attempt.job]
            live.run = run
            if run.since is not None and live.id in self:
                self.clock_in(live, run.since)

    def unheard(self, known: Collection[int]) -> None:
        """Take up again what jobs wait for that the scheduler does not know yet."""
        # In this order: what a job asked for is not read before it is needed.
        waiting = [live for live in self.values() if live.id not in known and live.submission.after]
        asked = {number for live in waiting for number in live.submission.after}
        states = self.states(asked - self.keys())
        for live in waiting:
            live.waits = set(live.submission.after)
            self.dependencies.register(live.id, live.waits)
        for number in sorted(asked - self.keys()):
            # One whose record is gone ended so long ago that nobody minded.
            self.dependencies.ended(number, states.get(number, DONE))

    def states(self, numbers: Collection[int]) -> dict[int, str]:
        """How jobs stand that are not live any more; without those that never were."""
        rows: list[Row] = []
        for some in batched(sorted(numbers)):
            found = select(schema.jobs.c.id, schema.jobs.c.state)
            rows += self.store.rows(found.where(schema.jobs.c.id.in_(some)))
        return {int(row["id"]): str(row["state"]) for row in rows}

    def labels(self, numbers: Iterable[int]) -> dict[int, str]:
        """Members of arrays among these jobs by number, whatever became of them."""
        asked, jobs = set(numbers), schema.jobs.c
        alive = [self[number] for number in asked if number in self]
        found = {live.id: live.label for live in alive if live.member is not None}
        for some in batched(sorted(number for number in asked if number not in self)):
            members = select(jobs.id, jobs.array, jobs.index).where(jobs.array.is_not(None))
            for row in self.store.rows(members.where(jobs.id.in_(some))):
                found[int(row["id"])] = f"{row['array']}.{row['index']}"
        return found

    def called(self, *jobs: int) -> str:
        """Jobs as lists have them."""
        return called(self.labels(jobs), *jobs)

    def clock_in(self, live: Live, now: float) -> None:
        """An attempt runs from now on."""
        assert live.run is not None
        live.run.since = now
        if live.submission.time_limit is not None and not live.run.fate:
            self.limits[live.id] = now + live.submission.time_limit - live.ran

    def clock_out(self, live: Live, run: Run, now: float) -> None:
        """An attempt does not run any more."""
        if run.since is not None:
            live.ran += max(0.0, now - run.since)
            run.since = None
        self.limits.pop(live.id, None)

    def enter(self, live: Live) -> None:
        """A job begins its life here."""
        self[live.id] = live
        self.owned[live.submission.owner] += 1

    def leave(self, job: int, state: str) -> Live:
        """A job has ended."""
        self.resting.pop(job, None)
        self.limits.pop(job, None)
        self.dependencies.ended(job, state)
        live = self.pop(job)
        self.owned[live.submission.owner] -= 1
        return live


def batched(numbers: Sequence[int], size: int = 500) -> Iterator[Sequence[int]]:
    """A few at a time: data bases take only so many values in one statement."""
    for at in range(0, len(numbers), size):
        yield numbers[at : at + size]


def _live(row: Row, sizes: dict[int, int]) -> Live:
    member = None
    if row["array"] is not None:
        array = int(row["array"])
        member = Member(array, int(row["index"]), sizes.get(array, 0))
    return Live(
        int(row["id"]),
        Asked(row["submission"], row["secrets"]),
        row["name"],
        row["owner"],
        row["submitted"],
        row["arrived"],
        member,
        row["started"],
        row["state"],
        row["reason"],
        failures=row["failures"],
        held=row["state"] == HELD,
        pause=row["pause"],
        code=row["code"],
        signal=row["signal"],
        ran=row["ran"],
        saved=row["saved"],
    )


def _run(row: Row) -> Run:
    attempt = Attempt(int(row["job"]), int(row["number"]))
    allocation = codec.from_plain(Allocation, json.loads(row["launch"])["allocation"])
    return Run(
        attempt,
        allocation,
        bool(row["confirmed"]),
        bool(row["stopping"]),
        row["fate"],
        row["boot"],
        row["since"],
    )
