"""What people can ask of a running controller, as values."""

from __future__ import annotations

from typing import NamedTuple

from dovetail.controller.submission import Submission


class Submit(NamedTuple):
    """Run these; answered with their ids, once they are on disk."""

    submissions: tuple[Submission, ...]


class Cancel(NamedTuple):
    """Give these up, whatever they are doing."""

    jobs: tuple[int, ...]


class Hold(NamedTuple):
    """Keep these waiting jobs from starting."""

    jobs: tuple[int, ...]


class Release(NamedTuple):
    """Let these start again."""

    jobs: tuple[int, ...]


class Drain(NamedTuple):
    """What runs on this node may finish; nothing new starts there."""

    node: str


class Undrain(NamedTuple):
    """This node takes work again."""

    node: str


Command = Submit | Cancel | Hold | Release | Drain | Undrain
