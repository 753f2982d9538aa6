"""Model values as plain lists, dicts and numbers, and back: for snapshots and the journal.

Driven by type hints, so a new field needs no code here. Plain values survive JSON unchanged.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, lru_cache, partial
from typing import Any

from dovetail.model.allocation import Allocation
from dovetail.model.job import Job, JobSpec, Status
from dovetail.model.request import Request

_STATE = (
    "attained",
    "run_time",
    "since",
    "began",
    "saved",
    "overhead",
    "rate",
    "starts",
    "first_start",
    "preemptions",
    "failures",
    "mark",
    "impatient",
    "withheld",
    "stray",
    "home",
)
"""Run state of a job that is plain already."""


@cache
def _shape(kind: Any) -> Any:
    """What values of a type become: a dict of these fields, a list, an enum's value, themselves."""
    if issubclass(kind, Enum):
        return Enum
    if is_dataclass(kind):
        return tuple(f.name for f in fields(kind) if f.init)
    if hasattr(kind, "_fields"):
        return kind._fields
    return list if issubclass(kind, tuple | list) else None


def to_plain(value: Any) -> Any:
    """A model value as JSON-able data."""
    kind: Any = type(value)
    shape = _shape(kind)
    if shape is None:
        return value
    if shape is list:
        return [to_plain(item) for item in value]
    if shape is Enum:
        return value.value
    return {name: to_plain(getattr(value, name)) for name in shape}


def from_plain(kind: Any, plain: Any) -> Any:
    """The value of a model type that `to_plain` wrote."""
    read = _reader(kind)
    return plain if read is None else read(plain)


@cache
def _reader(kind: Any) -> Callable[[Any], Any] | None:
    """How values of a type are read; None: they are what they are."""
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        inner = _reader(next(m for m in members if m is not type(None)))
        return inner and (lambda plain: None if plain is None else inner(plain))
    if origin is tuple:
        each = _reader(members[0])
        return tuple if each is None else (lambda plain: tuple(map(each, plain)))
    if origin is Mapping and members[0] is int:
        # JSON makes text of every key.
        return lambda plain: {int(key): value for key, value in plain.items()}
    if isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields")):
        return partial(_read_fields, kind)
    return kind if isinstance(kind, type) and issubclass(kind, Enum) else None


@cache
def _readers(kind: Any) -> dict[str, Callable[[Any], Any] | None]:
    return {name: _reader(hint) for name, hint in typing.get_type_hints(kind).items()}


def _read_fields(kind: Any, plain: dict[str, Any]) -> Any:
    readers = _readers(kind)
    return kind(
        **{
            name: item if (read := readers[name]) is None else read(item)
            for name, item in plain.items()
        }
    )


@cache
def structured_fields() -> dict[str, Any]:
    """Fields of a job's spec that are more than plain values, but its request, and their types."""
    hints = typing.get_type_hints(JobSpec)
    plain = (int, float, str, bool, int | None, float | None, str | None, Request)
    return {name: hint for name, hint in hints.items() if hint not in plain}


@lru_cache(maxsize=4096)
def request_to_plain(request: Request) -> Any:
    """Most requests come again and again."""
    return to_plain(request)


def spec_to_plain(spec: JobSpec) -> dict[str, Any]:
    """What was asked for, in a third of the time: very many are written at once."""
    fields = {**spec._asdict(), "request": request_to_plain(spec.request)}
    for name in structured_fields():
        fields[name] = to_plain(fields[name])
    return fields


@lru_cache(maxsize=4096)
def _read_request(text: str) -> Request:
    request: Request = from_plain(Request, json.loads(text))
    return request


def request_from_plain(plain: Any) -> Request:
    """The request that was written; equal ones are one and the same, as planners like it."""
    return _read_request(json.dumps(plain))


def spec_from_plain(plain: dict[str, Any]) -> JobSpec:
    """As `from_plain` would, in a tenth of the time: a restart reads very many of these."""
    fields = {**plain, "request": request_from_plain(plain["request"])}
    for name, hint in structured_fields().items():
        if name in fields:
            fields[name] = from_plain(hint, fields[name])
    return JobSpec(**fields)


def job_to_plain(job: Job) -> dict[str, Any]:
    """A job's spec and run state; the queue's own marks are rebuilt, not stored."""
    plain = {name: to_plain(getattr(job, name)) for name in _STATE}
    plain["spec"] = spec_to_plain(job.spec)
    plain["status"] = job.status.value
    plain["expected"] = job.expected
    plain["awaits"] = sorted(job.awaits)
    for name in ("allocation", "virtual", "residual"):
        plain[name] = to_plain(getattr(job, name))
    return plain


def job_from_plain(plain: dict[str, Any]) -> Job:
    """The job that `job_to_plain` wrote."""
    job = Job(spec_from_plain(plain["spec"]), plain["expected"])
    for name in _STATE:
        # Snapshots of older programs lack what they did not know.
        value = plain.get(name, getattr(job, name))
        setattr(job, name, tuple(value) if isinstance(value, list) else value)
    job.status = Status(plain["status"])
    job.awaits = frozenset(plain["awaits"])
    for name in ("allocation", "virtual"):
        setattr(job, name, from_plain(Allocation | None, plain[name]))
    if plain["residual"] is not None:
        physical, virtual = (from_plain(Allocation, held) for held in plain["residual"])
        job.residual = (physical, virtual)
    return job
