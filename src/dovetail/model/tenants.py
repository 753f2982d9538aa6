"""Who owns what of a cluster and who uses it just now, as values.

A tenancy tells what it knows: what each tenant owns and which job is on which GPU. The controller
adds what people ask next: whose jobs these are, since when, and when lent hardware is back. Times
are wall time in seconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from dovetail.model.live import Labels


class Use(StrEnum):
    """What becomes of a GPU that somebody owns."""

    #: a job of its owner's holds it
    USED = "used"
    IDLE = "idle"
    #: somebody else's job holds it, until its owner wants it
    LENT = "lent"
    #: its owner can have it, or has it, once the job that is on it has let go
    RETURNING = "returning"
    #: out of service, or in the hands of others
    BAD = "bad"


@dataclass(frozen=True)
class CellCount:
    """Cells of one type that a tenant owns; each is counted once."""

    type: str
    #: in one of them
    gpus: int
    owned: int
    #: the owner has at least one GPU of it in use
    used: int = 0
    #: nobody has
    idle: int = 0
    #: the owner has none in use, and others have
    lent: int = 0
    #: a part of it is bad
    bad: int = 0


@dataclass(frozen=True)
class Patch:
    """GPUs of one node with the same owner and the same use."""

    node: str
    devices: tuple[int, ...]
    #: empty: nobody owns them
    tenant: str
    use: Use
    #: which cell of the tenant's they are, as in `vision/0`; empty where numbers are owned
    cell: str = ""
    #: type of that cell
    type: str = ""
    #: who is on them
    jobs: tuple[int, ...] = ()
    #: the owner's cell is tied to these GPUs; else they are what it would get now
    bound: bool = False


@dataclass(frozen=True)
class Estate:
    """What one tenant owns, and what of it is in whose hands. In GPUs."""

    name: str
    gpus: float
    used: float = 0.0
    idle: float = 0.0
    lent: float = 0.0
    bad: float = 0.0
    cells: tuple[CellCount, ...] = ()


@dataclass(frozen=True)
class Overview:
    """What a tenancy knows of itself."""

    #: cells, shares or partitions; empty: everybody shares everything
    kind: str = ""
    #: GPUs that nobody owns
    unowned: float = 0.0
    estates: tuple[Estate, ...] = ()
    patches: tuple[Patch, ...] = ()


@dataclass(frozen=True)
class Tenant(Estate):
    """The same with how its jobs fare, and who may submit them."""

    #: GPUs that its jobs have on loan
    borrowed: float = 0.0
    running: int = 0
    waiting: int = 0
    #: of the running ones, those on loan
    borrowing: int = 0
    #: accounts and groups whose jobs these may be; both empty: the group of that name
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Loan:
    """GPUs of one node that a job has until their owner wants them."""

    job: int
    name: str
    #: whose job it is, and the tenant it counts for
    user: str
    borrower: str
    #: whose GPUs they are; empty: nobody's, or numbers are owned and not GPUs
    lender: str
    node: str
    devices: tuple[int, ...]
    gpus: float
    #: since when it runs
    since: float | None = None
    #: seconds until they are back at the latest; None: nobody wants them back yet
    back_in: float | None = None
    #: the owner's job that waits for them
    wanted_by: int | None = None


@dataclass(frozen=True)
class Tenants:
    """Everything at once."""

    #: cells or shares; empty: there are no tenants, and everybody shares everything
    kind: str = ""
    #: of all machines, and those that nobody owns
    gpus: float = 0.0
    unowned: float = 0.0
    tenants: tuple[Tenant, ...] = ()
    loans: tuple[Loan, ...] = ()
    patches: tuple[Patch, ...] = ()
    #: of the jobs in both
    labels: Labels = field(default_factory=dict)


@dataclass(frozen=True)
class Shift:
    """What a tenant owns before and after a change. In GPUs; 0: it is not there."""

    name: str
    before: float
    after: float
    #: `+1 gpu-node`, `-2 gpu`
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Affected:
    """A job that a change concerns."""

    job: int
    name: str
    user: str
    tenant: str
    state: str
    #: what it comes to, in a few words
    becomes: str
    #: it would lose its work if an owner wanted its GPUs
    at_risk: bool = False


@dataclass(frozen=True)
class Change:
    """What other contracts do to tenants and to the jobs that are there."""

    #: cells or shares; empty: no tenants
    before: str
    after: str
    tenants: tuple[Shift, ...] = ()
    jobs: tuple[Affected, ...] = ()
    #: jobs that run; none of them is stopped by the change
    running: int = 0
    #: it was made; else this is what it would do
    applied: bool = False
    #: of the jobs
    labels: Labels = field(default_factory=dict)


@dataclass(frozen=True)
class Contracts:
    """Who owns what, as it is written."""

    kind: str
    #: a file of `[[tenants]]`
    text: str
