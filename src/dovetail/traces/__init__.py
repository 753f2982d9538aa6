"""Recorded and made-up workloads: one reader per public format, and generators.

`dovetail.traces.loader.load` is the way in. A reader takes an open `Source` and yields jobs; it is
a class, whose fields are its parameters, or a plain generator function. Readers do not know the
simulator, the cluster or any policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from textwrap import shorten
from typing import Any, Protocol

from dovetail.core.registry import Registry, construct, nearest, split
from dovetail.model.errors import UserError
from dovetail.model.trace import TraceJob
from dovetail.traces.acme import Acme
from dovetail.traces.gavel import Gavel
from dovetail.traces.helios import Helios
from dovetail.traces.muri import Muri
from dovetail.traces.native import Native
from dovetail.traces.openb import Openb
from dovetail.traces.pai import Pai
from dovetail.traces.philly import Philly
from dovetail.traces.philly_json import PhillyJson
from dovetail.traces.sacct import Sacct
from dovetail.traces.source import Source
from dovetail.traces.synergy import Synergy
from dovetail.traces.table import Table, header
from dovetail.traces.tiresias import Tiresias


class Reader(Protocol):
    """Anything that makes jobs of an open trace, in the order of the file.

    The `id` of a job does not matter: the loader numbers jobs once it has sorted them. A class may
    have `recognises(first_line) -> int`: how specific a match the file is, 0 for none.
    """

    def __call__(self, source: Source) -> Iterator[TraceJob]:
        """The jobs of the file."""


BUILTIN: dict[str, Callable[[], Reader]] = {
    "native": Native,
    "philly": Philly,
    "philly_json": PhillyJson,
    "helios": Helios,
    "acme": Acme,
    "pai": Pai,
    "openb": Openb,
    "tiresias": Tiresias,
    "muri": Muri,
    "gavel": Gavel,
    "synergy": Synergy,
    "sacct": Sacct,
}

FORMATS: Registry[Reader] = Registry("trace format", BUILTIN, "dovetail.traces")


def reader(text: str) -> Reader:
    """The reader a person names: `philly`, `gavel:throughputs=FILE` or `path.py:name`."""
    name, given = split(text)
    if not FORMATS.knows(name):
        raise UserError(f"unknown trace format {name!r}{nearest(name, FORMATS.names())}")
    found: Any = FORMATS.find(name)
    if isinstance(found, type):
        made: Reader = construct(found, name, given)
        return made
    if given:
        raise UserError(f"{name} is a function and takes no parameters; make it a class")
    plain: Reader = found
    return plain


def recognise(source: Source) -> str:
    """The name of the format whose header fits best; third-party formats come second."""
    best = _best(BUILTIN, source.first)
    if best is None:
        # Looking for installed packages takes long, so only files that need it pay for it.
        known = FORMATS.names()
        best = _best(known[len(BUILTIN) :], source.first)
    if best is None:
        raise UserError(
            f"{source.name}: no known trace format has {_almost(source.first)};"
            f" name one with --format: {', '.join(known)}, or path.py:name"
        )
    return best


def _best(names: Iterable[str], first: str) -> str | None:
    scores = {name: _score(name, first) for name in names}
    best = max(scores, key=scores.__getitem__, default=None)
    return best if best is not None and scores[best] else None


def _score(name: str, first: str) -> int:
    recognises = getattr(FORMATS.find(name), "recognises", None)
    return int(recognises(first)) if recognises else 0


def _almost(first: str) -> str:
    """Part of a sentence: the columns there are, and the format that lacks least."""
    found = header(first)
    lacking = {
        name: [column for column in made.needed() if column not in found]
        for name, made in BUILTIN.items()
        if isinstance(made, type) and issubclass(made, Table)
    }
    best = min(lacking, key=lambda name: len(lacking[name]))
    missing = ", ".join(map(repr, lacking[best]))
    hint = f" (nearest is {best}, which needs {missing} too)" if len(lacking[best]) <= 3 else ""
    return f"the columns {shorten(', '.join(found), 120)}{hint}"
