"""The verbs, as methods: each is one request, answered with values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import sleep
from typing import Any, TypeVar
from urllib.parse import quote

from dovetail.core.codec import from_plain
from dovetail.live import tasks
from dovetail.live.connection import Closing, Connection
from dovetail.live.finding import Address
from dovetail.model.errors import UserError
from dovetail.model.live import (
    About,
    Description,
    Detail,
    Estimate,
    Forecast,
    Machine,
    Page,
    Piece,
    Receipt,
    Stretch,
    Token,
    Told,
    Usage,
)
from dovetail.model.review import Review
from dovetail.model.shadow import ShadowReport
from dovetail.model.tenants import Change, Contracts, Tenants
from dovetail.model.what_if import Comparison
from dovetail.model.why import Why

ENDED = frozenset({"done", "failed", "cancelled", "rejected"})
HOLDS = 30.0
"""Seconds the controller holds a request that waits."""
PAGE = 500
"""Jobs the controller puts into one answer."""

Value = TypeVar("Value")
Reference = int | str
"""A job, `12.3` for a member of an array, or an array."""


class Box(Closing):
    """A controller, and what can be asked of it."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._line = Connection(address)

    def about(self) -> About:
        """What answers, and who you are to it."""
        return _value(About, self._line.get("/about"))

    # ---- submitting --------------------------------------------------------------------------

    def submit(self, command: Sequence[str] | Mapping[str, Any] | Path, **fields: Any) -> int:
        """Have a command, a task or a task file run; its id, or that of its array.

        Fields are those of a task: gpus, cpus, memory, name, priority, retries, after …
        """
        receipt = self.submit_all([_task(command, fields)])[0]
        if receipt.state == "rejected":
            raise UserError(f"job {receipt.jobs[0]} was rejected: {receipt.reason}")
        return receipt.jobs[0] if receipt.array is None else receipt.array

    def submit_all(self, many: Sequence[Mapping[str, Any]]) -> list[Receipt]:
        """Have many tasks run: all or none are accepted."""
        said = self._line.post("/jobs", {"tasks": [dict(task) for task in many]})
        return [_value(Receipt, each) for each in said["tasks"]]

    def forecast(
        self, command: Sequence[str] | Mapping[str, Any] | Path, **fields: Any
    ) -> Forecast:
        """Where and when it would run, without submitting it."""
        return _value(Forecast, self._line.post("/jobs/forecast", _task(command, fields)))

    # ---- looking -----------------------------------------------------------------------------

    def queue(self, limit: int | None = None, **filters: Any) -> list[Description]:
        """Jobs that have not ended: by owner, state; `reasons=True` says why each waits."""
        return list(self.page(limit, **filters).jobs)

    def page(self, limit: int | None = None, after: int = 0, **filters: Any) -> Page:
        """The same, from behind a job on, with how many there are in all."""
        total = 0

        def ask(limit: int, last: int) -> Sequence[Description]:
            nonlocal total
            said = self._line.get("/jobs", limit=limit, after=last or after, **filters)
            page = _value(Page, said)
            total = page.total
            return page.jobs

        return Page(tuple(_pages(ask, limit)), total)

    def show(self, job: Reference, wait: float | None = None) -> Detail:
        """One job with all that may be seen of it."""
        return _value(Detail, self._line.get(_path(job), wait=wait))

    def members(self, job: Reference) -> list[Description]:
        """The jobs of an array; of a job, itself."""
        path = f"{_path(job)}/members"
        return _pages(lambda limit, last: self._jobs(path, limit=limit, after=last), None)

    def wait(self, job: Reference, seconds: float = float("inf")) -> Description:
        """One job when it has ended, or after so many seconds."""
        while True:
            held = min(HOLDS, seconds)
            found = self.show(job, wait=held).job
            seconds -= held
            if found.state in ENDED or seconds <= 0:
                return found

    def log(
        self, job: Reference, attempt: int = 0, cursor: str = "", tail: int | None = None
    ) -> Piece:
        """Some of what a job wrote."""
        asked = {"attempt": attempt, "cursor": cursor, "tail": tail}
        return _value(Piece, self._line.get(f"{_path(job)}/log", **asked))

    def follow(
        self, job: Reference, attempt: int = 0, cursor: str = "", pace: float = 0.5
    ) -> Iterator[str]:
        """What a job writes, as it comes, until it has ended."""
        while True:
            piece = self.log(job, attempt, cursor)
            cursor = piece.cursor
            if piece.text:
                yield piece.text
            elif piece.over:
                return
            else:
                sleep(pace)

    def timeline(self, job: Reference) -> list[Stretch]:
        """Its states and what it held, from submission on."""
        return [_value(Stretch, each) for each in self._line.get(f"{_path(job)}/timeline")]

    def why(self, job: Reference, instead: bool = True) -> Why:
        """Why a job is as it is, and what would help."""
        return _value(Why, self._line.get(f"{_path(job)}/why", instead=instead))

    def when(self, job: Reference) -> Estimate:
        """When a job starts and ends, as ranges with a probability."""
        return _value(Estimate, self._line.get(f"{_path(job)}/when"))

    def what_if(self, **different: Any) -> Comparison:
        """This controller's past, replayed with another policy, gpus, quotas; `since` then."""
        asked = {name: value for name, value in different.items() if value is not None}
        return _value(Comparison, self._line.post("/what-if", asked))

    def shadow(self) -> ShadowReport:
        """What the policy in the shadow would have done otherwise."""
        return _value(ShadowReport, self._line.get("/shadow"))

    def review(self, since: float = 0.0) -> Review:
        """Use, waits and wasted GPU-hours since then."""
        return _value(Review, self._line.get("/review", since=since))

    def history(self, limit: int | None = 100, **filters: Any) -> list[Description]:
        """Jobs that have ended, the latest first: by owner, state, name, since."""
        return _pages(
            lambda most, last: self._jobs("/history", limit=most, before=last, **filters), limit
        )

    def _jobs(self, path: str, **query: Any) -> list[Description]:
        return [_value(Description, each) for each in self._line.get(path, **query)]

    def usage(self, since: float = 0.0) -> list[Usage]:
        """What each user had since then."""
        return [_value(Usage, each) for each in self._line.get("/usage", since=since)]

    def nodes(self) -> list[Machine]:
        """All machines."""
        return [_value(Machine, each) for each in self._line.get("/nodes")]

    def tenants(self) -> Tenants:
        """What tenants own, who is on it, and what is lent to whom."""
        return _value(Tenants, self._line.get("/tenants"))

    def contracts(self) -> Contracts:
        """Who owns what, as a file that can be changed and applied."""
        return _value(Contracts, self._line.get("/tenants/contracts"))

    # ---- touching ----------------------------------------------------------------------------

    def cancel(self, job: Reference) -> Told:
        """Give a job or an array up."""
        return self._touch(job, "cancel")

    def hold(self, job: Reference) -> Told:
        """Keep it from starting."""
        return self._touch(job, "hold")

    def release(self, job: Reference) -> Told:
        """Let it start again."""
        return self._touch(job, "release")

    def requeue(self, job: Reference) -> Told:
        """Run it again: from waiting, or as a new job where it has ended."""
        return self._touch(job, "requeue")

    def _touch(self, job: Reference, verb: str) -> Told:
        return _value(Told, self._line.post(f"{_path(job)}/{verb}"))

    def drain(self, node: str) -> None:
        """Let nothing new start on a machine."""
        self._line.post(f"/nodes/{quote(node, safe='')}/drain")

    def undrain(self, node: str) -> None:
        """Take work there again."""
        self._line.post(f"/nodes/{quote(node, safe='')}/undrain")

    def apply_tenants(
        self, text: str, kind: str = "", name: str = "tenants.toml", dry_run: bool = False
    ) -> Change:
        """Let others own what while jobs run; a dry run only says what that would do."""
        wanted = {"text": text, "kind": kind, "name": name, "dry_run": dry_run}
        return _value(Change, self._line.post("/tenants/contracts", wanted))

    def end(self, stop_jobs: bool = False) -> int:
        """End the controller; jobs go on running, or are given up: how many were."""
        said = self._line.post(f"/end?stop_jobs={str(stop_jobs).lower()}")
        return int(said["stopped"])

    # ---- tokens ------------------------------------------------------------------------------

    def make_token(self, **wish: Any) -> str:
        """A new token: for whom (owner), role, lasts, note."""
        said = {name: value for name, value in wish.items() if value is not None}
        return str(self._line.post("/tokens", said)["token"])

    def tokens(self) -> list[Token]:
        """Your tokens; all of them for an admin."""
        return [_value(Token, each) for each in self._line.get("/tokens")]

    def revoke(self, token: str) -> None:
        """Let a token open nothing any more."""
        self._line.delete(f"/tokens/{quote(token, safe='')}")

    def close(self) -> None:
        """Hang up."""
        self._line.close()


def _task(what: Sequence[str] | Mapping[str, Any] | Path, fields: Mapping[str, Any]) -> Any:
    if isinstance(what, Mapping):
        return {**what, **fields}
    if isinstance(what, Path):
        return {**tasks.read(what), **fields}
    return tasks.task(what, **fields)


def _path(job: Reference) -> str:
    if not str(job):
        raise UserError("say which job: 12, or 12.3 for a member of array 12")
    return f"/jobs/{quote(str(job), safe='')}"


def _pages(
    ask: Callable[[int, int], Sequence[Description]], limit: int | None
) -> list[Description]:
    """As many as are wanted, a page at a time; each begins at the last job of the one before."""
    found: list[Description] = []
    while limit is None or len(found) < limit:
        most = PAGE if limit is None else min(PAGE, limit - len(found))
        page = ask(most, found[-1].id if found else 0)
        found += page
        if len(page) < most:
            break
    return found


def _value(kind: type[Value], plain: Any) -> Value:
    found: Value = from_plain(kind, plain)
    return found
