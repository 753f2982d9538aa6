"""Long answers about the past, and decisions that are made meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import Any

import pytest
from hosting import Hosted, until
from sqlalchemy import select

from dovetail.controller import schema
from dovetail.controller.api.service import Service
from dovetail.live import Box

JOBS = 20_000
OFTEN = 0.005
Question = Callable[[Box], Any]


def past_of(service: Service) -> None:
    """Let one job that has ended have been tens of thousands."""
    store = service.controller.journal.store
    (job,) = store.rows(select(schema.jobs).where(schema.jobs.c.id == 1))
    (run,) = store.rows(select(schema.attempts))
    numbers = range(1_000_000, 1_000_000 + JOBS)
    with store.transaction():
        store.add(schema.jobs, [{**job, "id": number} for number in numbers])
        store.add(schema.attempts, [{**run, "job": number} for number in numbers])


class Pulse:
    """How long the controller's thread did not get round to anything else."""

    def __init__(self, host: Hosted) -> None:
        self.longest = 0.0
        self._going = True
        self._host = host
        host.inside(lambda service: asyncio.get_running_loop().create_task(self._beat()))

    async def _beat(self) -> None:
        while self._going:
            before = perf_counter()
            await asyncio.sleep(OFTEN)
            self.longest = max(self.longest, perf_counter() - before - OFTEN)

    def end(self) -> float:
        self._going = False
        return self.longest


@pytest.mark.parametrize(
    "question", [lambda box: box.review(0.0), lambda box: box.what_if(gpus=8)], ids=["week", "past"]
)
def test_decisions_are_made_while_the_past_is_looked_at(host: Hosted, question: Question) -> None:
    with host.box() as box, host.box() as other, ThreadPoolExecutor(1) as beside:
        box.submit(["true"], gpus=1)
        until(lambda: box.show(1).job.state == "done")
        host.inside(past_of)
        pulse, begun = Pulse(host), perf_counter()
        answer: Future[Any] = beside.submit(question, other)
        started = []
        while not answer.done():
            number = box.submit(["sleep", "600"], gpus=1)
            until(lambda number=number: box.show(number).job.state != "waiting", "its start")
            started.append(answer.done())
            box.cancel(number)
        took, pause = perf_counter() - begun, pulse.end()
        assert answer.result() is not None
    assert False in started, "no job started before the answer was there"
    assert pause < max(0.5, took / 4)
