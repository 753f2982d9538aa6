"""Events and plans as the text the journal keeps, and back."""

from __future__ import annotations

import json
import typing
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from dovetail.core import codec
from dovetail.model.event import Event, Submitted
from dovetail.model.plan import Action, Plan
from dovetail.model.request import Request

KINDS: dict[str, Any] = {
    kind.__name__: kind for union in (Event, Action) for kind in typing.get_args(union)
}
"""Events and actions by name; a record is its name and its fields."""


@lru_cache(maxsize=4096)
def _request(request: Request) -> Any:
    """Most requests come again and again."""
    return codec.to_plain(request)


def _plain(value: Event | Action) -> list[Any]:
    if isinstance(value, Submitted):
        fields = {**value.spec._asdict(), "request": _request(value.spec.request)}
        return ["Submitted", {"spec": {name: codec.to_plain(fields[name]) for name in fields}}]
    return [type(value).__name__, codec.to_plain(value)]


def compact(value: Any) -> str:
    """JSON without spaces; numbers come back exactly as they were."""
    return json.dumps(value, separators=(",", ":"))


def written(values: Sequence[Event | Action]) -> str:
    """Events or actions as text."""
    return compact([_plain(value) for value in values])


def read(text: str) -> list[Any]:
    """The events or actions in a text."""
    return [codec.from_plain(KINDS[kind], fields) for kind, fields in json.loads(text)]


def read_plan(actions: str, wake_at: float | None) -> Plan:
    """A recorded plan."""
    return Plan(tuple(read(actions)), wake_at)
