"""What the controller asks of an engine that runs jobs, and what it is told back.

Calls return at once; what came of them arrives as reports. An attempt is one run of one job: its
number rises with each start, so a late report of an old run is never taken for one of the new. An
engine knows processes and machines, not queues or policies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from dovetail.model.allocation import NOTHING, Allocation
from dovetail.model.node import Capabilities, Node


class Attempt(NamedTuple):
    """One run of one job."""

    job: int
    number: int


@dataclass(frozen=True)
class Launch:
    """Everything needed to start an attempt."""

    attempt: Attempt
    name: str
    #: argument vector; no shell unless the user wrote one
    command: tuple[str, ...]
    #: devices, CPU and memory; nodes are positions in `Executor.nodes()`
    allocation: Allocation
    #: where the command runs
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    #: numeric user and group to run as; None: as the controller
    owner: tuple[int, int] | None = None
    #: seconds between asking a job to stop and ending it
    grace: float = 30.0
    #: bytes of log kept per file before it is rotated, and how many files
    log_bytes: int = 16 * 1024 * 1024
    log_files: int = 4


class Running(NamedTuple):
    """The attempt runs on this allocation, which may differ from what was asked."""

    attempt: Attempt
    allocation: Allocation


class Fault(StrEnum):
    """Whose doing a bad end is."""

    #: it failed by itself; it is tried again as often as its owner allows
    JOB = "job"
    #: a machine or the engine failed under it; it is tried again, and this does not count
    ENGINE = "engine"
    #: somebody ended it behind our back; it is not tried again
    OTHERS = "others"


class Ended(NamedTuple):
    """The attempt is over and its devices are free."""

    attempt: Attempt
    #: exit code; None where it ended by a signal or is not known
    code: int | None
    #: the signal that ended it, if one did
    signal: int | None = None
    #: in words, where there is more to say: out of memory, could not start, lost
    reason: str = ""
    fault: Fault = Fault.JOB


class Advanced(NamedTuple):
    """The attempt told how far it is."""

    attempt: Attempt
    steps: float
    total: float | None
    #: steps per second, lately
    rate: float


class Saved(NamedTuple):
    """The attempt told that it has written a checkpoint."""

    attempt: Attempt


class Paused(NamedTuple):
    """A suspended attempt no longer uses its devices."""

    attempt: Attempt


class Hindered(NamedTuple):
    """What was asked of an attempt cannot be done now; it is tried again."""

    attempt: Attempt
    #: stop, suspend, resume or resize
    deed: str
    reason: str
    #: nobody tries again
    given_up: bool = False


class Closed(NamedTuple):
    """A machine takes nothing new; what is there goes on, or ends with reports of its own."""

    #: position in `Executor.nodes`
    node: int
    reason: str


class Opened(NamedTuple):
    """A machine takes work again."""

    node: int


Fate = Running | Ended | Advanced | Saved | Paused | Hindered
Report = Fate | Closed | Opened


class Use(NamedTuple):
    """How much an attempt makes of its devices."""

    percent: float
    #: what was measured
    of: str = "GPU"


class Usage(NamedTuple):
    """What an attempt takes."""

    cpu_seconds: float
    #: bytes
    memory: int


class Executor(Protocol):
    """An engine. What it cannot tell it need not: the last three methods have an answer for it."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The machines, in the order allocations count them."""

    @property
    def capabilities(self) -> Mapping[str, Capabilities]:
        """By node type: what can be done to a running job."""

    def start(self, launch: Launch) -> None:
        """Start an attempt; reported as running, or as ended if it could not be started."""

    def stop(self, attempt: Attempt, grace: float) -> None:
        """Ask it to end, and end it after the grace; reported as ended."""

    def suspend(self, attempt: Attempt) -> None:
        """Pause it; reported as paused."""

    def resume(self, attempt: Attempt) -> None:
        """Let it go on; reported as running."""

    def resize(self, attempt: Attempt, allocation: Allocation) -> None:
        """Other amounts of CPU and memory on the same devices, without a restart."""

    def adopt(self, launch: Launch) -> bool:
        """After a restart of the controller: is this attempt known here, running or ended?

        If so its reports come as if the controller had been there all the time. Whatever is neither
        adopted nor started before `reports` is first called was given up.
        """

    def describe(self) -> str:
        """What runs jobs here and what is enforced on them, in one line."""

    def logs(self, attempt: Attempt) -> Sequence[Path]:
        """The files with what an attempt wrote, oldest first; none where they are not kept."""

    def reports(self) -> list[Report]:
        """What happened since the last call; never waits."""

    def forget(self, attempts: Sequence[Attempt]) -> None:
        """Throw away what is kept of attempts that are over; called in another thread."""
        return

    def used_by_others(self) -> Allocation:
        """What others than our attempts occupy; attempts that start or end are ours."""
        return NOTHING

    def uses(self) -> Mapping[Attempt, Use]:
        """How much running attempts made of their devices since the last call."""
        return {}

    def usage(self, attempt: Attempt) -> Usage | None:
        """The CPU time a running attempt has taken, and its memory; None: nobody knows."""
        return None
