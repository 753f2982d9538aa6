"""Snapshots: the scheduler's state on disk, written in pieces so that no turn waits for it.

An image of the state is made at once. Its jobs are spelled out beside the controller, by a thread
that touches nothing on disk; the controller's own connection writes what is ready, one piece a
turn, and last the row that makes it a snapshot. Pieces without that row are nobody's, whoever died
before it was written, and are swept away. Which snapshots are worth keeping is for the journal.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, delete, or_, select

from dovetail.controller import records, schema
from dovetail.controller.store import Store
from dovetail.core import codec
from dovetail.model.job import Job

SLICE, TOKENS = 32, 1000
"""Jobs, and parts of other values, spelled out before a rest: about a millisecond."""
SWEPT = 4
"""Pieces swept away at once."""

Image = dict[str, Any]
"""What `Scheduler.image` makes."""


class Writing(NamedTuple):
    """A snapshot on its way to the disk."""

    sequence: int
    pieces: deque[Future[str]]
    state: Future[str]
    #: pieces in all
    size: int


class Snapshots:
    """The snapshots of one data base, and the one that is being written."""

    def __init__(self, store: Store, beside: Executor | None = None) -> None:
        self.store = store
        self.last = max(self.numbers(), default=0)
        self._beside = beside or ThreadPoolExecutor(1, "snapshots")
        #: jobs in one piece, which one transaction writes
        self.piece = 1000
        self._writing: Writing | None = None
        #: may there be pieces that belong to no snapshot? Whoever was here before may have died
        self._littered = True

    # ---- writing -----------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Is there something to tend to? Then none can begin."""
        return self._writing is not None or self._littered

    def begin(self, sequence: int, image: Image) -> None:
        """Let a snapshot be written beside what comes."""
        submit, (jobs, state) = self._beside.submit, _apart(image)
        pieces = deque(submit(_at_ease, some) for some in self._pieces(jobs))
        self._writing = Writing(sequence, pieces, submit(_state_at_ease, state), len(pieces))

    def tend(self) -> bool:
        """Take the next small step, if one can be taken; True: a snapshot has become whole."""
        writing = self._writing
        if writing is None:
            if self._littered:
                self._sweep()
        elif not writing.pieces:
            return writing.state.done() and self._finish(writing)
        elif writing.pieces[0].done():
            place, text = writing.size - len(writing.pieces), writing.pieces.popleft().result()
            with self.store.transaction():
                self._add(writing.sequence, place, text)
        return False

    def _finish(self, writing: Writing) -> bool:
        with self.store.transaction():
            row = {"sequence": writing.sequence, "state": writing.state.result()}
            self.store.add(schema.snapshots, [row])
        self.last, self._writing = writing.sequence, None
        return True

    def put(self, sequence: int, image: Image) -> None:
        """Write a snapshot, or write it anew, as a part of the transaction that is open."""
        self._give_up()
        for table in (schema.snapshots, schema.snapshot_pieces):
            self.store.run(delete(table).where(table.c.sequence == sequence))
        jobs, state = _apart(image)
        for place, some in enumerate(self._pieces(jobs)):
            self._add(sequence, place, _spelled(some))
        row = {"sequence": sequence, "state": records.compact(state)}
        self.store.add(schema.snapshots, [row])
        self.last = sequence

    def _pieces(self, jobs: list[Job]) -> list[list[Job]]:
        return [jobs[first : first + self.piece] for first in range(0, len(jobs), self.piece)]

    def _add(self, sequence: int, place: int, jobs: str) -> None:
        row = {"sequence": sequence, "place": place, "jobs": jobs}
        self.store.add(schema.snapshot_pieces, [row])

    def drop(self, numbers: Sequence[int]) -> None:
        """Forget snapshots, as a part of the transaction that is open; their pieces go later."""
        self.store.run(delete(schema.snapshots).where(schema.snapshots.c.sequence.in_(numbers)))
        self._littered = True

    def _sweep(self) -> None:
        """Remove some pieces that belong to no snapshot."""
        pieces = schema.snapshot_pieces
        whole = select(schema.snapshots.c.sequence)
        nobodys = select(pieces.c.sequence, pieces.c.place).where(pieces.c.sequence.not_in(whole))
        found = self.store.rows(nobodys.limit(SWEPT))
        self._littered = len(found) == SWEPT
        if found:
            these = (and_(_of(row["sequence"]), pieces.c.place == row["place"]) for row in found)
            with self.store.transaction():
                self.store.run(delete(pieces).where(or_(*these)))

    def _give_up(self) -> None:
        """Leave the one that is being written unfinished."""
        if self._writing is not None:
            for each in (*self._writing.pieces, self._writing.state):
                each.cancel()
            self._writing, self._littered = None, True

    def close(self) -> None:
        """Begin nothing any more; what is unfinished stays so."""
        self._give_up()
        self._beside.shutdown()

    # ---- reading -----------------------------------------------------------------------------

    def numbers(self) -> list[int]:
        """Sequence numbers of the snapshots there are, oldest first."""
        column = schema.snapshots.c.sequence
        return [int(row["sequence"]) for row in self.store.rows(select(column).order_by(column))]

    def state(self, sequence: int) -> dict[str, Any]:
        """The snapshot with this number, as `Scheduler.restore` takes it."""
        found = schema.snapshots.c.sequence == sequence
        rows = self.store.rows(select(schema.snapshots.c.state).where(found))
        state: dict[str, Any] = json.loads(rows[0]["state"])
        pieces = schema.snapshot_pieces
        texts = select(pieces.c.jobs).where(_of(sequence)).order_by(pieces.c.place)
        jobs = [job for row in self.store.rows(texts) for job in json.loads(row["jobs"])]
        return {"jobs": jobs, **state}


def _of(sequence: int) -> ColumnElement[bool]:
    return schema.snapshot_pieces.c.sequence == sequence


def _apart(image: Image) -> tuple[list[Job], dict[str, Any]]:
    """Jobs, and everything else."""
    return image["jobs"], {name: value for name, value in image.items() if name != "jobs"}


def _spelled(jobs: Sequence[Job]) -> str:
    return records.compact([codec.job_to_plain(job) for job in jobs])


def _at_ease(jobs: Sequence[Job]) -> str:
    some = (jobs[first : first + SLICE] for first in range(0, len(jobs), SLICE))
    return f"[{','.join(_resting(_spelled(each)[1:-1] for each in some))}]"


def _state_at_ease(state: dict[str, Any]) -> str:
    tokens = records.ENCODER.iterencode(state)
    return "".join(_resting(iter(lambda: "".join(islice(tokens, TOKENS)), "")))


def _resting(parts: Iterable[str]) -> Iterator[str]:
    """Rest as long as it took to make each: the interpreter is the controller's as well."""
    begun = time.perf_counter()
    for part in parts:
        yield part
        time.sleep(time.perf_counter() - begun)
        begun = time.perf_counter()
