"""What a policy in the shadow would have done instead, as values.

`GET /v1/shadow` answers a `ShadowReport`. Moments are wall time since 1970, waits are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.model.live import Labels


@dataclass(frozen=True)
class Difference:
    """One decision that the candidate would have made otherwise, by jobs."""

    at: float
    #: that it would have started and the real one did not
    instead: tuple[int, ...] = ()
    #: that were started, and it would not have
    passed: tuple[int, ...] = ()
    #: that it would have stopped and the real one did not
    stops: tuple[int, ...] = ()
    #: that were stopped, and it would not have
    spared: tuple[int, ...] = ()


@dataclass(frozen=True)
class Effect:
    """What the candidate would mean for one user."""

    user: str
    #: different jobs it would have started when they were not
    instead: int
    #: different jobs it would not have started when they were
    passed: int
    #: looks at the future in which the user had a job
    looks: int
    #: mean seconds their jobs would still wait, as things are and with the candidate
    present: float
    candidate: float


@dataclass(frozen=True)
class ShadowReport:
    """The differences so far."""

    #: the candidate, and what really decides
    policy: str
    present: str
    since: float
    #: decisions since then, how many it was asked about, and in how many of those either acted
    decisions: int
    asked: int
    acted: int
    otherwise: int
    #: the share of all time that it took, and what it is kept below
    share: float
    budget: float
    #: mean seconds that present jobs would still wait, as things are and with the candidate
    wait_present: float
    wait_candidate: float
    users: tuple[Effect, ...] = ()
    #: the latest ones, latest first
    differences: tuple[Difference, ...] = ()
    #: questions that the candidate could not answer, and the last reason
    failures: int = 0
    failure: str = ""
    #: of the jobs in the differences
    labels: Labels = field(default_factory=dict)
