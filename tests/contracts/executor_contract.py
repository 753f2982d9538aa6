"""What every engine promises, whatever it runs jobs on. Derive from `ExecutorContract`.

A test class for an engine names itself `Test...`, derives from `ExecutorContract` and brings a
fixture `rig`: an engine with jobs that do as they are told. Time may be real or made up.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from dovetail.executors.protocol import (
    Advanced,
    Attempt,
    Ended,
    Executor,
    Launch,
    Paused,
    Report,
    Running,
)
from dovetail.model.allocation import Allocation, Part, allocation_of

PATIENCE = 120.0
"""Seconds of the rig's time after which a report will not come any more."""
MOMENT = 0.02


class Does(Enum):
    """What a job does."""

    #: ends at once with code 0
    SUCCEEDS = "succeeds"
    #: ends at once with code 3
    FAILS = "fails"
    #: runs until it is stopped, and then ends
    WAITS = "waits"
    #: says "deaf", and runs on when asked to end
    INSISTS = "insists"
    #: reports a step of 1000 every 50 ms, and runs until it is stopped
    COUNTS = "counts"


class Rig(Protocol):
    """An engine under test."""

    executor: Executor

    def launch(self, attempt: Attempt, does: Does) -> Launch:
        """One that holds the first GPU of the first node, one core and 256 MiB."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""

    def reopen(self) -> None:
        """The controller died and there is a new one: `executor` is another object."""


def small(cpu: int = 1000, memory: int = 256, devices: int = 1) -> Allocation:
    return allocation_of((Part(0, devices, cpu, memory),))


def collect(rig: Rig, enough: Callable[[list[Report]], bool]) -> list[Report]:
    """Reports until there are enough of them."""
    found = rig.executor.reports()
    waited = 0.0
    while not enough(found):
        assert waited < PATIENCE, f"nothing more came after {found}"
        rig.wait(MOMENT)
        waited += MOMENT
        found += rig.executor.reports()
    return found


def until(rig: Rig, kind: type[Report]) -> list[Report]:
    """Reports up to the first of a kind."""
    return collect(rig, lambda found: any(isinstance(each, kind) for each in found))


def last(reports: list[Report]) -> Report:
    return reports[-1]


FIRST, SECOND = Attempt(1, 1), Attempt(1, 2)


class ExecutorContract:
    """The promises."""

    def begin(self, rig: Rig, does: Does, attempt: Attempt = FIRST) -> Launch:
        """Start a job and see it run."""
        launch = rig.launch(attempt, does)
        rig.executor.start(launch)
        assert until(rig, Running)[0] == Running(attempt, launch.allocation)
        return launch

    def test_every_kind_of_node_has_its_capabilities(self, rig: Rig) -> None:
        assert rig.executor.nodes
        assert {node.type for node in rig.executor.nodes} <= set(rig.executor.capabilities)

    def test_a_job_that_ends_well_is_reported_as_running_and_ended_once(self, rig: Rig) -> None:
        rig.executor.start(rig.launch(FIRST, Does.SUCCEEDS))
        found = until(rig, Ended)
        rig.wait(0.2)
        found += rig.executor.reports()
        assert [each for each in found if isinstance(each, Ended)] == [Ended(FIRST, 0)]
        assert sum(isinstance(each, Running) for each in found) <= 1

    def test_a_failure_carries_its_code(self, rig: Rig) -> None:
        rig.executor.start(rig.launch(FIRST, Does.FAILS))
        ended = last(until(rig, Ended))
        assert isinstance(ended, Ended) and ended.code == 3

    def test_a_stopped_job_ends(self, rig: Rig) -> None:
        self.begin(rig, Does.WAITS)
        rig.executor.stop(FIRST, 10.0)
        assert last(until(rig, Ended)).attempt == FIRST

    def test_a_job_that_insists_is_ended_after_the_grace(self, rig: Rig) -> None:
        self.begin(rig, Does.INSISTS)
        collect(rig, lambda _: "deaf" in logged(rig))
        rig.executor.stop(FIRST, 0.5)
        ended = last(until(rig, Ended))
        assert isinstance(ended, Ended)
        assert ended.reason == "did not end within 0.5 s of being asked to"

    def test_a_job_stopped_right_after_its_start_ends(self, rig: Rig) -> None:
        rig.executor.start(rig.launch(FIRST, Does.WAITS))
        rig.executor.stop(FIRST, 5.0)
        assert last(until(rig, Ended)).attempt == FIRST

    def test_asking_of_a_job_that_is_not_there_is_no_error(self, rig: Rig) -> None:
        for ask in (rig.executor.suspend, rig.executor.resume):
            ask(FIRST)
        rig.executor.resize(FIRST, small())
        rig.executor.stop(FIRST, 0.0)
        assert rig.executor.reports() == []

    def test_asking_twice_is_no_error(self, rig: Rig) -> None:
        launch = self.begin(rig, Does.WAITS)
        rig.executor.start(launch)
        rig.wait(0.2)
        assert not any(isinstance(each, Running) for each in rig.executor.reports())
        rig.executor.stop(FIRST, 5.0)
        rig.executor.stop(FIRST, 5.0)
        found = until(rig, Ended)
        rig.executor.stop(FIRST, 5.0)
        found += rig.executor.reports()
        assert sum(isinstance(each, Ended) for each in found) == 1

    def test_progress_is_told(self, rig: Rig) -> None:
        self.begin(rig, Does.COUNTS)
        told = collect(rig, lambda found: steps(found) >= 3)
        advanced = [each for each in told if isinstance(each, Advanced)]
        assert advanced[-1].total == 1000
        assert advanced[-1].rate > 0
        self.end(rig)

    def test_a_suspended_job_makes_no_progress_until_it_is_resumed(self, rig: Rig) -> None:
        self.begin(rig, Does.COUNTS)
        collect(rig, lambda found: steps(found) >= 2)
        rig.executor.suspend(FIRST)
        until(rig, Paused)
        # Some engines take a moment.
        collect(rig, lambda _: stands_still(rig))
        assert stands_still(rig)
        rig.executor.resume(FIRST)
        until(rig, Running)
        collect(rig, lambda found: steps(found) > 0)
        self.end(rig)

    def test_a_suspended_job_can_be_stopped(self, rig: Rig) -> None:
        self.begin(rig, Does.WAITS)
        rig.executor.suspend(FIRST)
        until(rig, Paused)
        self.end(rig)

    def test_a_resized_job_runs_on(self, rig: Rig) -> None:
        self.begin(rig, Does.COUNTS)
        if rig.executor.capabilities[rig.executor.nodes[0].type].resize_in_place:
            rig.executor.resize(FIRST, small(cpu=500, memory=300))
        found = collect(rig, lambda found: steps(found) >= 3)
        assert not any(isinstance(each, Ended) for each in found)
        self.end(rig)

    def test_reports_of_the_next_attempt_are_not_those_of_the_last(self, rig: Rig) -> None:
        self.begin(rig, Does.WAITS)
        self.end(rig)
        self.begin(rig, Does.WAITS, SECOND)
        self.end(rig, SECOND)

    def test_a_new_controller_finds_a_running_job(self, rig: Rig) -> None:
        launch = self.begin(rig, Does.WAITS)
        rig.reopen()
        assert rig.executor.adopt(launch)
        assert Running(FIRST, launch.allocation) in until(rig, Running)
        self.end(rig)

    def test_a_new_controller_hears_of_a_job_that_ended_meanwhile(self, rig: Rig) -> None:
        launch = rig.launch(FIRST, Does.FAILS)
        rig.executor.start(launch)
        # Somebody was told, and died before it was written down.
        until(rig, Ended)
        rig.reopen()
        assert rig.executor.adopt(launch)
        ended = last(until(rig, Ended))
        assert isinstance(ended, Ended) and ended.code == 3

    def test_a_job_that_was_never_started_is_not_known(self, rig: Rig) -> None:
        assert not rig.executor.adopt(rig.launch(FIRST, Does.WAITS))
        assert rig.executor.reports() == []

    def end(self, rig: Rig, attempt: Attempt = FIRST) -> None:
        """Leave nothing behind."""
        rig.executor.stop(attempt, 5.0)
        assert last(until(rig, Ended)).attempt == attempt


def logged(rig: Rig) -> str:
    """What the first attempt has written."""
    return "".join(path.read_text() for path in rig.executor.logs(FIRST))


def stands_still(rig: Rig) -> bool:
    """Does the job report nothing for as long as several steps take?"""
    rig.wait(0.4)
    return steps(rig.executor.reports()) == 0


def steps(reports: list[Report]) -> float:
    """How far the reports say a job is."""
    return max((each.steps for each in reports if isinstance(each, Advanced)), default=0)
