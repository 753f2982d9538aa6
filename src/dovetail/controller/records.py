"""Events and plans as the text the journal keeps, and back."""

from __future__ import annotations

import json
import typing
from collections.abc import Sequence
from typing import Any

from dovetail.core import codec
from dovetail.model.event import Event, Submitted
from dovetail.model.plan import Action, Asked, Plan

KINDS: dict[str, Any] = {
    kind.__name__: kind for union in (Event, Action) for kind in typing.get_args(union)
}
"""Events and actions by name; a record is its name and its fields."""


def _plain(value: Event | Action) -> list[Any]:
    if isinstance(value, Submitted):
        return ["Submitted", {"spec": codec.spec_to_plain(value.spec)}]
    return [type(value).__name__, codec.to_plain(value)]


ENCODER = json.JSONEncoder(separators=(",", ":"))
"""JSON without spaces; numbers come back exactly as they were."""

compact = ENCODER.encode


def written(values: Sequence[Event | Action]) -> str:
    """Events or actions as text."""
    return compact([_plain(value) for value in values])


def read(text: str) -> list[Any]:
    """The events or actions in a text."""
    return [_read(kind, fields) for kind, fields in json.loads(text)]


def _read(kind: str, fields: dict[str, Any]) -> Any:
    if kind == "Submitted":
        return Submitted(codec.spec_from_plain(fields["spec"]))
    return codec.from_plain(KINDS[kind], fields)


def written_asked(asked: Sequence[Asked]) -> str | None:
    """What several domains wanted, as text; None: there is only one."""
    if not asked:
        return None
    return compact([[each.domain, list(map(_plain, each.wanted)), each.came] for each in asked])


def read_plan(actions: str, wake_at: float | None, asked: str | None = None) -> Plan:
    """A recorded plan."""
    found = tuple(
        Asked(domain, tuple(_read(kind, fields) for kind, fields in wanted), came)
        for domain, wanted, came in (json.loads(asked) if asked else ())
    )
    return Plan(tuple(read(actions)), wake_at, found)
