"""What the verbs work on: a controller, its engine, the people's tokens, and a bell.

The bell lets requests wait until something was decided, instead of asking again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from dovetail.controller.commands import Cancel, Drain, Undrain
from dovetail.controller.estimating import Estimating
from dovetail.controller.journal import Entry
from dovetail.controller.loop import Controller
from dovetail.controller.parts import Parts
from dovetail.controller.shadowing import Shadow
from dovetail.controller.tokens import Tokens
from dovetail.model.event import Event
from dovetail.model.plan import Plan

Watcher = Callable[[float, Sequence[Event], Plan], None]
Reader = Callable[[Entry], None]


class Bell:
    """Rings for all who wait, whenever something was decided."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wake everybody up."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Until it rings, or for so long."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return


@dataclass(frozen=True)
class Limits:
    """What one person may ask for."""

    #: jobs in the queue: of one user, and in all
    queue_per_user: int = 100_000
    queue: int = 1_000_000


@dataclass
class Service:
    """Everything behind the API."""

    controller: Controller
    tokens: Tokens
    #: what decides, as the admin wrote it
    policy: str
    limits: Limits = field(default_factory=Limits)
    #: do jobs run as the people who submit them?
    as_owner: bool = False
    bell: Bell = field(default_factory=Bell)
    #: looking ahead is work: one question at a time
    looking_ahead: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: told of every decision
    watchers: list[Watcher] = field(default_factory=list)
    #: told of everything that is written, decided or not
    readers: list[Reader] = field(default_factory=list)
    #: what runs beside the controller as long as it is served, and is cancelled with it
    beside: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    #: a policy that only looks on, if there is one
    shadow: Shadow | None = None
    #: lets the servers end
    stop: Callable[[], None] = lambda: None
    ending: bool = False
    #: nodes that were drained only to stop what ran there
    emptied: tuple[str, ...] = ()

    estimating: Estimating = field(init=False)

    def __post_init__(self) -> None:
        self.controller.watch = self._decided
        self.controller.written = self._written
        self.estimating = Estimating(self.controller, self.looking_ahead)
        self.watchers.append(self.estimating)
        self.beside.append(self.estimating.run)

    def keep_in_shadow(self, shadow: Shadow) -> None:
        """Let a policy look on as long as this is served."""
        self.shadow = shadow
        self.watchers.append(shadow)
        self.beside.append(shadow.run)

    def _decided(self, now: float, events: Sequence[Event], plan: Plan) -> None:
        for watcher in self.watchers:
            watcher(now, events, plan)

    def _written(self, entry: Entry) -> None:
        for reader in self.readers:
            reader(entry)
        self.bell.ring()

    def end(self) -> None:
        """Let go: whoever waits is answered, and the servers end."""
        self.ending = True
        self.bell.ring()
        self.stop()

    async def stop_jobs(self, patience: float) -> int:
        """Give up what runs, and let nothing start in its place; how many were given up."""
        controller, cluster = self.controller, self.controller.scheduler.cluster
        nodes = enumerate(cluster.nodes)
        self.emptied = tuple(node.name for at, node in nodes if at not in cluster.closed)
        await asyncio.gather(*(controller.ask(Drain(name)) for name in self.emptied))
        active = [live.id for live in controller.roster.values() if live.run is not None]
        if active:
            await controller.ask(Cancel(tuple(active)))
        until = controller.time.now() + patience
        while controller.roster.keys() & active and controller.time.now() < until:
            await self.bell.wait(until - controller.time.now())
        return len(active)

    def farewell(self) -> None:
        """Let the controller end, with all nodes as they were: the next one starts what waits."""
        for name in self.emptied:
            self.controller.post(Undrain(name))
        self.controller.end(act=not self.emptied)

    def wall(self) -> float:
        """The time people read."""
        return self.controller.time.wall()


def parts_of(service: Service) -> Parts:
    """What decides, as it is on record."""
    return service.controller.parts or Parts(service.policy)


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(_service)]
