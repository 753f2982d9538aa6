"""Tells another program of every change of a job's state, by signed HTTP requests.

Changes are queued in memory and sent by a task of their own: a receiver that is slow or away never
holds a decision up. They go out in order, several in one request, and are tried again with growing
pauses. The queue is bounded; what could not be delivered is counted and told in the log.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from dovetail.controller.journal import Entry
from dovetail.controller.loop import Controller
from dovetail.controller.roster import OVER
from dovetail.controller.store import Row
from dovetail.model.errors import UserError

log = logging.getLogger("dovetail")

SIGNATURE, DELIVERY = "Dovetail-Signature", "Dovetail-Delivery"
MOST_QUEUED = 100_000
AT_ONCE = 100
"""Changes in one request."""
PATIENCE = 10.0
"""Seconds a receiver has to answer."""
TRIES = 10
PAUSES = tuple(min(300.0, 2.0**number) for number in range(TRIES))
AGAIN = {408, 425, 429}
"""Refusals that may pass; others are final."""

Change = dict[str, Any]


class Told(NamedTuple):
    """What was last told of a job that has not ended."""

    job: int
    name: str
    owner: str
    state: str = ""


class Webhook:
    """One receiver."""

    def __init__(self, controller: Controller, url: str, secret: bytes) -> None:
        self._controller = controller
        self.url = checked(url)
        self._secret = secret
        self._told = {
            live.id: Told(live.id, live.name, live.submission.owner, live.state)
            for live in controller.roster.values()
        }
        self.queue: deque[Change] = deque()
        #: changes that were never delivered
        self.lost = 0
        #: is nothing under way?
        self.idle = True
        self._bell = asyncio.Event()

    # ---- hearing -----------------------------------------------------------------------------

    def __call__(self, entry: Entry) -> None:
        """Queue what a turn changed."""
        for row in entry.new_jobs:
            self._note(Told(row["id"], row["name"], row["owner"]), row, entry.wall)
        for number, row in entry.jobs.items():
            before = self._told.get(number)
            if before is not None:
                self._note(before, row, entry.wall)

    def _note(self, before: Told, row: Row, at: float) -> None:
        state = str(row.get("state", before.state))
        if state in OVER:
            self._told.pop(before.job, None)
        else:
            self._told[before.job] = before._replace(state=state)
        if state != before.state:
            reason = row.get("reason") or ""
            changed = {**before._asdict(), "was": before.state, "state": state}
            self._put({**changed, "at": at, "reason": reason})

    def _put(self, change: Change) -> None:
        if len(self.queue) >= MOST_QUEUED:
            self.queue.popleft()
            self.lost += 1
        self.queue.append(change)
        self._bell.set()

    # ---- telling -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            while True:
                await self._bell.wait()
                self._bell.clear()
                self.idle = False
                while self.queue:
                    some = [self.queue.popleft() for _ in range(min(AT_ONCE, len(self.queue)))]
                    if refusal := await self._deliver(client, some):
                        self.lost += len(some)
                        log.warning(
                            "webhook %s %s: changes that could not be told: %d, in all %d",
                            self.url,
                            refusal,
                            len(some),
                            self.lost,
                        )
                self.idle = True

    async def _deliver(self, client: httpx.AsyncClient, changes: list[Change]) -> str:
        """Try until it is taken, refused for good, or hopeless; why not, or nothing."""
        body = json.dumps({"changes": changes}).encode()
        delivery, refusal = secrets.token_hex(8), ""
        for pause in PAUSES:
            moment = round(self._controller.time.wall())
            headers = {
                "Content-Type": "application/json",
                DELIVERY: delivery,
                SIGNATURE: f"t={moment},v1={signature(self._secret, moment, body)}",
            }
            code = await self._send(client, body, headers)
            if 200 <= code < 300:
                return ""
            known, refusal = refusal, f"answers {code}" if code else "does not answer"
            if 300 <= code < 500 and code not in AGAIN:
                break
            if not known:
                log.warning("webhook %s %s and is tried again", self.url, refusal)
            await asyncio.sleep(pause)
        return refusal

    async def _send(self, client: httpx.AsyncClient, body: bytes, headers: dict[str, str]) -> int:
        """What the receiver answered; 0: nothing. What it says is not read."""
        try:
            async with client.stream("POST", self.url, content=body, headers=headers) as answer:
                return answer.status_code
        except httpx.HTTPError:
            return 0


def signature(secret: bytes, moment: int, body: bytes) -> str:
    """What proves that a request is ours: HMAC-SHA256 over `moment.body`, in hexadecimal."""
    return hmac.new(secret, f"{moment}.".encode() + body, hashlib.sha256).hexdigest()


def checked(url: str) -> str:
    """Refuse what is no address of a web server."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"webhook {url!r}: write an address like https://example.org/hook")
    return url


def read_secret(path: Path) -> bytes:
    """The secret of a file; a file that is not there yet is made, for its owner alone."""
    try:
        if not path.exists():
            path.touch(0o600)
            path.write_text(secrets.token_hex(32) + "\n")
        secret = path.read_bytes().strip()
    except OSError as error:
        raise UserError(f"{path}: cannot be used for a secret ({error.strerror})") from None
    if len(secret) < 16:
        raise UserError(f"{path}: a secret has at least 16 characters")
    return secret
