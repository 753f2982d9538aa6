"""The local engine where the kernel says no: it is told, tried again, and given up in the end."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from executor_contract import small, until
from local_rig import LocalRig

from dovetail.executors.local import Local, detect
from dovetail.executors.local.fences import Fences
from dovetail.executors.local.mechanism import Limits
from dovetail.executors.local.run import PATIENCE
from dovetail.executors.protocol import Attempt, Ended, Hindered, Launch, Paused, Running

FIRST = Attempt(1, 1)


class Stuck(Fences):
    """Fences that cannot freeze, thaw or resize while they are stuck."""

    stuck = False

    def _complain(self) -> None:
        if self.stuck:
            raise OSError(errno.EBUSY, "Device or resource busy")

    def freeze(self, key: str) -> None:
        self._complain()
        super().freeze(key)

    def thaw(self, key: str) -> None:
        if not self.stuck:
            super().thaw(key)

    def resize(self, key: str, limits: Limits) -> None:
        self._complain()
        super().resize(key, limits)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[LocalRig]:
    """An engine on such fences, with a job that runs."""
    made = LocalRig(tmp_path / "data", "none")
    made.now = 0.0  # type: ignore[attr-defined]
    made.executor = Local(made.data, detect(virtual=2), Stuck(), clock=lambda: made.now)  # type: ignore[attr-defined]
    made.executor.start(Launch(FIRST, "j", ("sleep", "60"), small(), tmp_path))
    until(made, Running)
    yield made
    fences(made).stuck = False
    made.executor.stop(FIRST, 0.0)
    until(made, Ended)


def fences(rig: LocalRig) -> Stuck:
    assert isinstance(rig.executor.fences, Stuck)
    return rig.executor.fences


def test_one_that_cannot_be_frozen_is_told_once_and_given_up_in_the_end(rig: LocalRig) -> None:
    fences(rig).stuck = True
    rig.executor.suspend(FIRST)
    busy = Hindered(FIRST, "suspend", "Device or resource busy")
    assert until(rig, Hindered) == [busy]
    assert rig.executor.reports() == []
    rig.now += PATIENCE + 1  # type: ignore[attr-defined]
    assert rig.executor.reports() == [busy._replace(given_up=True)]
    assert rig.executor.reports() == []


def test_one_that_can_be_frozen_after_all_is_paused(rig: LocalRig) -> None:
    fences(rig).stuck = True
    rig.executor.suspend(FIRST)
    until(rig, Hindered)
    fences(rig).stuck = False
    assert until(rig, Paused) == [Paused(FIRST)]


def test_one_that_stands_still_is_not_said_to_go_on(rig: LocalRig) -> None:
    rig.executor.suspend(FIRST)
    until(rig, Paused)
    fences(rig).stuck = True
    rig.executor.resume(FIRST)
    assert until(rig, Hindered) == [Hindered(FIRST, "resume", "its processes stand still")]
    fences(rig).stuck = False
    assert until(rig, Running) == [Running(FIRST, small())]


def test_a_resize_that_is_refused_is_told_with_its_reason(rig: LocalRig) -> None:
    fences(rig).stuck = True
    rig.executor.resize(FIRST, small(memory=128))
    assert rig.executor.reports() == [
        Running(FIRST, small()),
        Hindered(FIRST, "resize", "Device or resource busy", given_up=True),
    ]
