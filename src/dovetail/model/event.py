"""What happened, as values. Batches of these are the only input of the scheduler besides time."""

from __future__ import annotations

from typing import NamedTuple

from dovetail.model.allocation import Allocation
from dovetail.model.job import JobSpec


class Finished(NamedTuple):
    """The job ended by itself and well."""

    job: int


class Failed(NamedTuple):
    """An attempt ended badly; `kept` is the work a checkpoint saved, `None`: as costs say."""

    job: int
    reason: str = ""
    kept: float | None = None
    #: the job itself is broken: no retry helps
    final: bool = False


class Cancelled(NamedTuple):
    """Its owner does not want it any more."""

    job: int


class Withheld(NamedTuple):
    """A waiting job must not start for now: its owner says so, or it pauses after a failure."""

    job: int


class Offered(NamedTuple):
    """A job that was withheld may start again."""

    job: int


class Stopped(NamedTuple):
    """A job has let go of its devices: as it was asked to, or because others took it off.

    One that nobody asked waits again with what its last checkpoint kept; that is no failure.
    """

    job: int


class Started(NamedTuple):
    """An executor confirms a start, with what the job really got."""

    job: int
    allocation: Allocation


class Progressed(NamedTuple):
    """A measurement: total work done (seconds at rate 1) and present rate."""

    job: int
    work: float
    rate: float
    #: the work of the whole job, where it is known by now; None: as it was believed
    expected: float | None = None


class Checkpointed(NamedTuple):
    """The job has just saved all it has done so far."""

    job: int


class NodeDown(NamedTuple):
    """The node is gone, and so is everything that ran there."""

    node: int


class NodeUp(NamedTuple):
    """The node is back, or its drain was lifted."""

    node: int


class NodeDraining(NamedTuple):
    """What runs on the node may finish; nothing new starts there."""

    node: int


class Held(NamedTuple):
    """Someone outside our control occupies capacity."""

    owner: str
    allocation: Allocation


class Freed(NamedTuple):
    """Someone outside our control let go of all they held."""

    owner: str


class Submitted(NamedTuple):
    """A new job asks to run."""

    spec: JobSpec


class Wake(NamedTuple):
    """The time a plan asked to be woken at has come."""


Event = (
    Finished
    | Failed
    | Cancelled
    | Withheld
    | Offered
    | Stopped
    | Started
    | Progressed
    | Checkpointed
    | NodeDown
    | NodeUp
    | NodeDraining
    | Held
    | Freed
    | Submitted
    | Wake
)

ORDER: dict[type, int] = {
    Finished: 0,
    Failed: 0,
    Cancelled: 0,
    Withheld: 0,
    Offered: 0,
    Stopped: 0,
    Started: 0,
    Progressed: 0,
    Checkpointed: 0,
    NodeDown: 1,
    NodeUp: 1,
    NodeDraining: 1,
    Held: 1,
    Freed: 1,
    Submitted: 2,
    Wake: 3,
}
"""Inside a batch: what ends, what changes on nodes, what arrives, wakes; then arrival order."""
