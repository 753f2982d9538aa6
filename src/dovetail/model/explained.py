"""What decides, and what is believed about a kind of job, as people read it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """One knob of a part."""

    name: str
    value: str
    about: str = ""


@dataclass(frozen=True)
class Piece:
    """One part of a policy."""

    #: ordering, placement, allocator or predictor
    kind: str
    name: str
    #: in one line
    about: str
    #: in a paragraph
    more: str = ""
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class Way:
    """A policy that could be chosen."""

    name: str
    about: str


@dataclass(frozen=True)
class Cap:
    """What an account may hold at one time. None: as much as there is."""

    #: a user, `group:NAME`, or `*` for each user who is not named
    account: str
    gpus: float | None
    #: cores
    cpu: float | None
    #: GiB
    memory: float | None


@dataclass(frozen=True)
class Rules:
    """What decides here."""

    policy: str
    #: where it was published; empty: it is no recipe
    source: str
    pieces: tuple[Piece, ...]
    ways: tuple[Way, ...] = ()
    quotas: tuple[Cap, ...] = ()


@dataclass(frozen=True)
class Curve:
    """How the speed of a kind of job depends on its cores. 1 at the reference share."""

    model: str
    task: str
    source: str
    #: per GPU
    cores: tuple[float, ...]
    speeds: tuple[float, ...]
    #: GiB per GPU it is drawn for
    memory: float
    #: cores per GPU it has now; None: it does not run
    granted: float | None = None
    #: the speed with them
    speed: float | None = None
