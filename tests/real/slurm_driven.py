"""A controller over Slurm whose turns a test makes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from slurm_controller import parts_of, submission
from slurm_lab import SlurmLab
from slurm_workload import Task

from dovetail.controller.commands import Submit
from dovetail.controller.journal import Journal
from dovetail.controller.loop import Controller, Settings
from dovetail.controller.parts import composer
from dovetail.controller.reading import describe
from dovetail.controller.store import Store
from dovetail.executors.slurm import Options, Slurm
from dovetail.model.event import Event, Started
from dovetail.model.live import Description
from dovetail.model.plan import Plan


class Driven:
    """A controller over Slurm whose turns a test makes."""

    def __init__(self, lab: SlurmLab, store: Store, interval: float) -> None:
        self.folder = lab.folder / f"driven-{time.monotonic_ns()}"
        self.states = self.folder / "states"
        self.states.mkdir(parents=True)
        self.executor = Slurm(self.folder / "data", Options(interval=interval))
        parts = parts_of("fifo:skip=true")
        make = composer(parts, self.executor)
        settings = Settings(backoff=lambda failures: 0.5, look=0.5)
        journal = Journal(store)
        self.controller = Controller(make, journal, self.executor, settings, parts=parts)
        self.controller.watch = self.note
        self.started: dict[int, float] = {}
        self.submitted: dict[int, float] = {}

    def note(self, now: float, events: list[Event], plan: Plan) -> None:
        for event in events:
            if isinstance(event, Started):
                self.started[event.job] = time.monotonic()

    def submit(self, tasks: list[Task], **environment: str) -> None:
        first = self.controller.roster.next_id
        numbered = list(enumerate(tasks, first))
        self.submitted.update(dict.fromkeys([n for n, _ in numbered], time.monotonic()))
        made = [submission(number, task, self.states) for number, task in numbered]
        own = [replace(each, environment={**each.environment, **environment}) for each in made]
        answer = self.controller.post(Submit(tuple(own)))
        self.controller.turn()
        answer.result(0)

    def until(self, fact: Callable[[], bool], limit: float = 120.0) -> None:
        deadline = time.monotonic() + limit
        while not fact():
            assert time.monotonic() < deadline
            self.controller.turn()
            time.sleep(0.02)

    def told(self, number: int) -> Description:
        return describe(self.controller, number)

    def state(self, number: int, *wanted: str) -> Description:
        """Wait until a job is in one of these states."""
        self.until(lambda: self.told(number).state in wanted)
        return self.told(number)

    def latencies(self) -> list[float]:
        return [self.started[number] - at for number, at in self.submitted.items()]


@contextmanager
def driven(
    lab: SlurmLab, monkeypatch: pytest.MonkeyPatch, interval: float = 1.0
) -> Iterator[Driven]:
    monkeypatch.setenv("SLURM_CONF", str(lab.conf))
    store = Store(f"sqlite:///{lab.folder}/driven-{time.monotonic_ns()}.db")
    found = Driven(lab, store, interval)
    try:
        yield found
    finally:
        found.executor.close()
        store.close()
        lab.quiet()
