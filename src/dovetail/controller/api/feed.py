"""The live feed: what changes, to everybody who listens, as it happens.

A message is made once, however many listen, and not at all while nobody does. Each listener has a
small queue of their own; who does not keep up is dropped and looks at everything anew. The bell
that rings after each decision wakes the streams, so a decision never waits for a listener.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response

from dovetail.controller import board, reading
from dovetail.controller.api.jobs import shown
from dovetail.controller.api.people import Anyone, Doorkeeper
from dovetail.controller.api.refusing import Refused
from dovetail.controller.api.service import Served, Service
from dovetail.controller.api.streaming import Streaming
from dovetail.controller.journal import Entry

MOST_LISTENERS, MOST_EACH = 200, 20
"""Pages that listen at one time, and those of one person: nobody keeps all others out."""
MOST_BEHIND = 256
"""Messages a listener may be behind."""
HEARTBEAT = 15.0
"""Seconds of silence after which a sign of life is sent, and tokens are looked at again."""
MOST_ASKED = 200

router = APIRouter(tags=["screens"])


class Listener:
    """Somebody who listens, and what they have not been sent yet."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue: deque[bytes] = deque()
        self.lost = False

    def put(self, message: bytes) -> None:
        """One more; too many, and they have lost the thread."""
        if len(self.queue) >= MOST_BEHIND:
            self.lost = True
        else:
            self.queue.append(message)

    def take(self) -> bytes:
        """All that is there."""
        said = b"".join(self.queue)
        self.queue.clear()
        return said


class Feed:
    """All who listen."""

    def __init__(self, service: Service, keeper: Doorkeeper) -> None:
        self._service = service
        self._keeper = keeper
        self.listeners: set[Listener] = set()
        #: turns so far: whoever loads everything knows which changes are in it
        self.sequence = 0

    def admit(self, name: str) -> Listener:
        """One more who listens from now on, unless the house is full."""
        if sum(each.name == name for each in self.listeners) >= MOST_EACH:
            raise _full(f"{MOST_EACH} pages of {name} listen already; close one of them")
        if len(self.listeners) >= MOST_LISTENERS:
            raise _full(f"{MOST_LISTENERS} pages listen already; try again when one was closed")
        listener = Listener(name)
        self.listeners.add(listener)
        return listener

    def written(self, entry: Entry) -> None:
        """Tell everybody what a turn changed."""
        self.sequence += 1
        if self.listeners:
            told = board.changes(self._service.controller, entry)
            if told is not None:
                self.tell("changes", {"sequence": self.sequence, **told})

    def tell(self, kind: str, value: Any) -> None:
        """One message to all; whoever tells something between decisions rings the bell."""
        if self.listeners:
            message = _message(kind, value)
            for listener in self.listeners:
                listener.put(message)

    async def stream(self, request: Request, listener: Listener) -> AsyncGenerator[bytes, None]:
        """What one listener is sent, until they go, fall behind, or the controller ends."""
        service = self._service
        try:
            yield _message("hello", {"at": service.wall()})
            while not service.ending and not listener.lost:
                said = listener.take()
                if said:
                    yield said
                    continue
                before = service.wall()
                await service.bell.wait(HEARTBEAT)
                if not listener.queue and service.wall() - before >= HEARTBEAT:
                    if not self._welcomes(request):
                        return
                    yield b": still here\n\n"
        finally:
            self.listeners.discard(listener)

    def _welcomes(self, request: Request) -> bool:
        """A token may have expired or been revoked since."""
        try:
            self._keeper.recognise(
                getattr(request.state, "peer", None), request.headers.get("authorization")
            )
        except Refused:
            return False
        return True


def attach(app: FastAPI, service: Service, keeper: Doorkeeper) -> Feed:
    """A feed of the service's decisions."""
    feed = app.state.feed = Feed(service, keeper)
    service.readers.append(feed.written)
    return feed


def _feed(request: Request) -> Feed:
    feed: Feed = request.app.state.feed
    return feed


Feeding = Annotated[Feed, Depends(_feed)]


@router.get("/events", response_class=Response)
async def events(person: Anyone, request: Request, feed: Feeding) -> Response:
    """Server-sent events: `changes` after decisions, `sample` every few seconds."""
    # From here on: what changes before the first byte is sent must not be missed.
    return Streaming(feed.stream(request, feed.admit(person.name)))


@router.get("/board", response_class=Response)
async def everything(person: Anyone, service: Served, feed: Feeding) -> Response:
    """All jobs that have not ended and all nodes, as small rows; `events` says what changes."""
    now = {"sequence": feed.sequence, **board.board(service.controller)}
    body = json.dumps(now, separators=(",", ":"))
    headers = {"Cache-Control": "no-store"}
    return Response(body, media_type="application/json", headers=headers)


@router.get("/reasons")
async def reasons(
    person: Anyone,
    service: Served,
    jobs: Annotated[str, Query(max_length=4000, pattern=r"^\d{1,15}(,\d{1,15})*$")],
) -> dict[int, str]:
    """Why these jobs wait, in words; those that have ended are left out."""
    numbers = [int(each) for each in jobs.split(",")][:MOST_ASKED]
    controller = service.controller
    alive = [
        reading.describe(controller, number) for number in numbers if number in controller.roster
    ]
    return {job.id: shown(job, person).reason for job in alive}


def _full(sentence: str) -> Refused:
    return Refused(429, sentence, again=round(HEARTBEAT))


def _message(kind: str, value: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(value, separators=(',', ':'))}\n\n".encode()
