"""The three questions as screens ask them, of a controller whose time jumps."""

from __future__ import annotations

import asyncio

import pytest
from staging import Stage

from dovetail.controller.api.foreseeing import FRESH, Outlook
from dovetail.controller.api.service import Service
from dovetail.controller.commands import Cancel
from dovetail.controller.tokens import Tokens
from dovetail.controller.why import why
from dovetail.model.live import Estimate


@pytest.fixture
def crowd(stage: Stage) -> Stage:
    """One job runs, six of another size wait behind it."""
    stage.submit(gpus=4, length=1000)
    for _ in range(6):
        stage.submit(gpus=4, length=100)
    stage.until(10)
    return stage


@pytest.mark.parametrize("number", range(2, 8))
def test_ideas_are_tried_for_a_job_among_many_alike(crowd, number):
    answer, trials = why(crowd.controller, number, crowd.parts("fifo"))
    assert trials is not None
    assert all(idea.starts_in >= 0 for idea in trials.instead(number))
    assert 1 in [each.job for each in answer.blame]


def outlook_on(stage: Stage) -> Outlook:
    assert stage.site.store is not None
    return Outlook(Service(stage.controller, Tokens(stage.site.store), "fifo"))


def test_the_whole_queue_is_told_when_it_starts_in_order(crowd):
    found = asyncio.run(outlook_on(crowd).queue())
    starts = [found[number].start.middle for number in range(2, 8)]
    assert None not in starts
    assert starts == sorted(starts)
    assert starts[0] > 0


def test_what_was_found_is_told_to_everybody_for_a_while(crowd):
    outlook = outlook_on(crowd)

    async def ask() -> list[int]:
        first = await outlook.queue()
        again = await outlook.queue()
        crowd.until(crowd.site.clock.now + FRESH + 1)
        later = await outlook.queue()
        return [id(each) for each in (first, again, later)]

    first, again, later = asyncio.run(ask())
    assert first == again != later


def test_who_ends_while_others_are_answered_is_left_out(crowd):
    service = Service(crowd.controller, Tokens(crowd.site.store), "fifo")

    async def ask() -> dict[int, Estimate]:
        async with service.looking_ahead:
            asked = asyncio.create_task(service.estimating.estimate([1, 2]))
            await asyncio.sleep(0)
            crowd.ask(Cancel((1,)))
            crowd.until(crowd.site.clock.now + 5)
        return await asked

    assert list(asyncio.run(ask())) == [2]
