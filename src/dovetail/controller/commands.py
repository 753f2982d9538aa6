"""What people can ask of a running controller, as values."""

from __future__ import annotations

from typing import NamedTuple

from dovetail.controller.submission import Submission


class Submit(NamedTuple):
    """Run these; answered with `Accepted`, once they are on disk."""

    submissions: tuple[Submission, ...]
    #: are they members of one array?
    array: bool = False


class SubmitAll(NamedTuple):
    """Run all of these or none; answered with an `Accepted` for each."""

    orders: tuple[Submit, ...]


class Accepted(NamedTuple):
    """The numbers of new jobs, and of the array they are members of."""

    jobs: tuple[int, ...]
    array: int | None = None


class Cancel(NamedTuple):
    """Give these up, whatever they are doing."""

    jobs: tuple[int, ...]


class Hold(NamedTuple):
    """Keep these waiting jobs from starting."""

    jobs: tuple[int, ...]


class Release(NamedTuple):
    """Let these start again."""

    jobs: tuple[int, ...]


class Requeue(NamedTuple):
    """Run these again; answered with the number each runs under.

    A job that runs is stopped and waits again under its own number, and that is no failure of its.
    One that has ended is submitted again as a new job.
    """

    jobs: tuple[int, ...]


class Drain(NamedTuple):
    """What runs on this node may finish; nothing new starts there."""

    node: str


class Undrain(NamedTuple):
    """This node takes work again."""

    node: str


Command = Submit | SubmitAll | Cancel | Hold | Release | Requeue | Drain | Undrain
