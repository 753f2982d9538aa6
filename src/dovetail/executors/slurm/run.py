"""One attempt as a job of Slurm: what was asked of it, what was seen of it, what is to be told.

Looked at with every answer of Slurm. Nothing here calls Slurm: `wants` says what is due, and the
worker does it. An attempt is over when Slurm says so and its nodes are free, or when Slurm has
forgotten it and the files of the attempt say how it ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from dovetail.executors.local.folders import Folder
from dovetail.executors.local.progress import Listener
from dovetail.executors.protocol import (
    Advanced,
    Ended,
    Fault,
    Hindered,
    Launch,
    Paused,
    Report,
    Running,
    Saved,
)
from dovetail.executors.slurm.batch import NOT_SHARED, claim_of, ended_of
from dovetail.executors.slurm.files import number_in, text_in
from dovetail.executors.slurm.reading import BROKEN, SlurmJob

FORGOTTEN_AFTER = 2
"""Answers without a job that was there before, until it counts as forgotten."""


class Deed(Enum):
    """What can be due."""

    SUBMIT = "submit"
    #: end it if it has not begun
    WITHDRAW = "withdraw"
    #: ask it to end
    TERMINATE = "terminate"
    #: end it
    KILL = "kill"
    PAUSE = "pause"
    CONTINUE = "continue"


HINDERED = {
    Deed.WITHDRAW: "stop",
    Deed.TERMINATE: "stop",
    Deed.KILL: "stop",
    Deed.PAUSE: "suspend",
    Deed.CONTINUE: "resume",
}
"""What was asked for, by what Slurm is asked for."""


class Stop(NamedTuple):
    """It was asked to end, and must have ended by `deadline`."""

    grace: float
    deadline: float


class Run:
    """An attempt that has not been reported as ended."""

    def __init__(self, launch: Launch, mark: str, folder: Folder) -> None:
        self.launch, self.mark, self.folder = launch, mark, folder
        #: Slurm's number for it; None: none that we know
        self.id: int | None = None
        self.over = False
        self.job: SlurmJob | None = None
        self.stop: Stop | None = None
        #: when it may be submitted, and how often that went wrong
        self.not_before = 0.0
        self.tries = 0
        #: does nobody know whether the last submission arrived?
        self.in_doubt = False
        self._progress = Listener(folder.progress)
        self._told_running = False
        #: why we took it back, however often the controller was killed since
        self._withdrawn = text_in(_withdrawn_of(folder))
        self._waiting_since: float | None = None
        self._missed = 0
        self._done: set[Deed] = set()
        #: what Slurm said no to
        self._refused: set[Deed] = set()
        self._pause_due = False
        self._stands_still = False

    # ---- what is asked for -------------------------------------------------------------------

    def ask_to_stop(self, now: float, grace: float) -> None:
        """The earliest deadline holds."""
        if self.stop is None or now + grace < self.stop.deadline:
            self.stop = Stop(grace, now + grace)

    def ask_to_pause(self) -> None:
        """Let it stand still."""
        self._pause_due = True
        self._done.discard(Deed.PAUSE)
        self._refused.discard(Deed.PAUSE)

    def ask_to_continue(self) -> None:
        """Let it go on."""
        self._pause_due = False
        if self._stands_still:
            self._done.discard(Deed.CONTINUE)
        else:
            self._told_running = False

    def wants(self, now: float, patience: float) -> Deed | None:
        """The next thing to be done to it."""
        if self.over:
            return None
        if self.id is None:
            return Deed.SUBMIT if not self.in_doubt and now >= self.not_before else None
        due = self._ending(now) if self.stop else self._going_on(now, patience)
        return None if due in self._done else due

    def _ending(self, now: float) -> Deed:
        assert self.stop is not None
        if now >= self.stop.deadline:
            return Deed.KILL
        begun = self.job is not None and not self.job.waits
        if not begun and Deed.WITHDRAW not in self._done:
            return Deed.WITHDRAW
        if self._stands_still and Deed.TERMINATE in self._done:
            return Deed.CONTINUE
        return Deed.TERMINATE

    def _going_on(self, now: float, patience: float) -> Deed | None:
        if self._waiting_since is not None and now - self._waiting_since > patience:
            assert self.job is not None
            self._withdraw(self.job.reason)
            return Deed.WITHDRAW
        if self.job is None or self.job.waits:
            return None
        if self._pause_due and not self._stands_still:
            return Deed.PAUSE
        if not self._pause_due and self._stands_still:
            return Deed.CONTINUE
        return None

    def _withdraw(self, reason: str | None) -> None:
        """Note why it is to be taken back, before it is; None: it began after all."""
        if reason == self._withdrawn:
            return
        self._withdrawn = reason
        with suppress(OSError):
            if reason is None:
                _withdrawn_of(self.folder).unlink()
            else:
                _withdrawn_of(self.folder).write_text(reason)

    def hindered(self, deed: Deed, reason: str) -> Iterator[Report]:
        """Slurm said no, which is told once. It is asked again; but others wait for a pause."""
        if deed is Deed.PAUSE:
            self._pause_due = False
        if deed not in self._refused:
            self._refused.add(deed)
            given_up = deed is Deed.PAUSE
            yield Hindered(self.launch.attempt, HINDERED[deed], reason, given_up)

    def did(self, deed: Deed) -> Iterator[Report]:
        """It was done."""
        self._done.add(deed)
        self._refused.discard(deed)
        if deed is Deed.PAUSE:
            self._stands_still = True
            yield Paused(self.launch.attempt)
        elif deed is Deed.CONTINUE:
            self._stands_still = False
            if self.stop is None:
                yield Running(self.launch.attempt, self.launch.allocation)

    # ---- what is the case --------------------------------------------------------------------

    def look(self, found: Sequence[SlurmJob], now: float) -> Iterator[Report]:
        """What is new in an answer of Slurm; `over` after the last of it."""
        self.in_doubt = False
        mine = self._mine(found)
        if not mine:
            yield from self._not_listed()
            return
        self._missed = 0
        job = self.job = mine[0]
        self.id = job.leader
        self._note_waiting(now)
        if not self._told_running and self._running(mine):
            self._told_running = True
            yield from self._begun()
        if (news := self._progress.news()) is not None:
            yield Advanced(self.launch.attempt, *news)
        if self._progress.saved():
            yield Saved(self.launch.attempt)
        if all(each.over for each in mine):
            self.over = True
            yield self._verdict(mine)

    def _mine(self, found: Sequence[SlurmJob]) -> list[SlurmJob]:
        """The components of the one job that runs the attempt, the first of them first."""
        leaders = {each.leader for each in found}
        if len(leaders) > 1:
            # A submission nobody knew of arrived after all: the script that was first counts.
            first = number_in(claim_of(self.folder))
            # One that is over before anybody was first is not it: it saw who is about to be.
            going_on = {each.leader for each in found if not each.over}
            leaders = {first} if first in leaders else {min(going_on or leaders)}
        return sorted(each for each in found if each.leader in leaders)

    def strays(self, found: Sequence[SlurmJob]) -> set[int]:
        """Other jobs of Slurm for this attempt, which have nothing to do."""
        waiting = {each.leader for each in found if each.waits}
        return waiting - {self.id} if self.id is not None else set()

    def _running(self, mine: Sequence[SlurmJob]) -> bool:
        """Does it run, or did it?"""
        return all("RUNNING" in each.states or "STOPPED" in each.states for each in mine) or (
            all(each.over for each in mine) and claim_of(self.folder).exists()
        )

    def _begun(self) -> Iterator[Report]:
        yield Running(self.launch.attempt, self.launch.allocation)
        if self.job is not None and "STOPPED" in self.job.states and not self._stands_still:
            self._pause_due = self._stands_still = True
            yield Paused(self.launch.attempt)

    def _note_waiting(self, now: float) -> None:
        assert self.job is not None
        if self.job.holds:
            # It began after all, whatever was tried to take it back.
            self._waiting_since = None
            self._withdraw(None)
            self._done.discard(Deed.WITHDRAW)
        elif not self.job.waits:
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since = now

    def _not_listed(self) -> Iterator[Report]:
        """Slurm does not speak of it: not yet submitted, or forgotten."""
        if self.id is None and number_in(claim_of(self.folder)) is None:
            return
        self._missed += 1
        if self._missed < FORGOTTEN_AFTER:
            return
        self.over = True
        code = number_in(ended_of(self.folder))
        if code is None:
            lost = "lost: Slurm no longer knows it"
            yield Ended(self.launch.attempt, None, None, lost, Fault.ENGINE)
        else:
            yield Ended(self.launch.attempt, *_as_signal(code, None))

    def _verdict(self, mine: Sequence[SlurmJob]) -> Ended:
        """How it ended, in the words of the component that says most."""
        job = next((each for each in mine if "COMPLETED" not in each.states), mine[0])
        reason, fault = self._explain(job)
        code, signal = _as_signal(job.code, job.signal)
        if "COMPLETED" not in job.states and code == 0:
            code = None
        return Ended(self.launch.attempt, code, signal, reason, fault)

    def _explain(self, job: SlurmJob) -> tuple[str, Fault]:
        where = ",".join(piece.node for piece in job.pieces)
        if found := job.states & BROKEN:
            state = min(found).lower().replace("_", " ")
            return f"ended by Slurm: {state}{f' on {where}' if where else ''}", Fault.ENGINE
        if "CANCELLED" in job.states:
            return self._explain_cancelled()
        if job.states & {"TIMEOUT", "DEADLINE"}:
            return "ended by Slurm: its time limit was reached", Fault.JOB
        if "OUT_OF_MEMORY" in job.states:
            held = self.launch.allocation.memory
            return f"out of memory: it wanted more than the {held} MiB it was granted", Fault.JOB
        if job.code == NOT_SHARED and number_in(claim_of(self.folder)) is None:
            return f"{self.folder.job} cannot be written on {where}: nodes must share it", Fault.JOB
        return "", Fault.JOB

    def _explain_cancelled(self) -> tuple[str, Fault]:
        if self.stop is not None:
            late = Deed.KILL in self._done and self.stop.grace > 0
            told = f"did not end within {self.stop.grace:g} s of being asked to"
            return told if late else "", Fault.JOB
        if self._withdrawn is not None:
            why = f"Slurm did not start it on its nodes in time ({self._withdrawn})"
            return why, Fault.ENGINE
        return "cancelled in Slurm by somebody else", Fault.OTHERS


def _withdrawn_of(folder: Folder) -> Path:
    return folder.path / "withdrawn"


def _as_signal(code: int | None, signal: int | None) -> tuple[int | None, int | None]:
    """Shells say 128 and the signal where a command was ended by one."""
    if signal is None and code is not None and 128 < code <= 128 + 64:
        return None, code - 128
    return code, signal
