"""What tenants own, as it is written: in a cluster file, a file of its own, or a list of nodes.

A TOML file has a table `[[tenants]]` each, with `name` and what it owns: `nodes` (whole machines),
`racks`, `gpus` (a number of loose GPUs, or a list of cell sizes, as in `[4, 2]`), `pinned` (a list
of certain hardware: `n3`, `n4:0-3`, `rack1`), and `type` where the cluster has several. A tenant
that owns of several types has a list `own` of such tables. Lists of `users` and `groups` say whose
jobs may be its own; only a live controller reads them. A CSV file has a header and NAME,NODES
lines. Nothing here knows hardware: `cells.config` does.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dovetail.core.registry import nearest
from dovetail.model.errors import UserError
from dovetail.tenancy.marks import Marks, marks_of

LENT = "lent"
"""What the domain is called in which jobs run on what owners leave idle."""
KEYS = ("type", "nodes", "racks", "gpus", "pinned")
PEOPLE = ("users", "groups")
ROW = re.compile(r"\s*(?P<name>[^,]*[^,\s])\s*,\s*(?P<nodes>\d{1,6})\s*")
"""NAME,NODES; nobody has more nodes than six digits can say."""


@dataclass(frozen=True)
class Holding:
    """Cells of one type of GPU."""

    type: str = ""
    nodes: int = 0
    racks: int = 0
    #: sizes of cells below a node
    gpus: tuple[int, ...] = ()
    #: certain hardware, by name
    pinned: tuple[str, ...] = ()
    #: `file:line: ` by key, for errors
    places: dict[str, str] = field(default_factory=dict, compare=False)

    def at(self, key: str) -> str:
        """Where a key of it stands."""
        return self.places.get(key, "")


@dataclass(frozen=True)
class Contract:
    """One tenant and all it owns."""

    name: str
    own: tuple[Holding, ...]
    #: accounts and groups whose jobs may be its own; both empty: the group of its name
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    #: `file:line: `, for errors
    where: str = ""


def read_contracts(path: str) -> tuple[Contract, ...]:
    """The tenants of a file, or a sentence about what is wrong there."""
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not a text file") from None
    return contracts_in(text, path)


def contracts_in(text: str, path: str) -> tuple[Contract, ...]:
    """The tenants that the text of a file lists; `path` is its name, for errors."""
    found = _listed(path, text) if path.endswith(".csv") else _tables(path, text)
    seen: set[str] = set()
    for contract in found:
        if contract.name == LENT:
            raise UserError(f"{contract.where}no tenant may be called {LENT!r}: idle hardware is")
        if contract.name in seen:
            raise UserError(f"{contract.where}tenant {contract.name!r} is listed twice")
        seen.add(contract.name)
    if not found:
        raise UserError(f"{path}: lists no tenants; give each a [[tenants]] table")
    return tuple(found)


def _listed(path: str, text: str) -> list[Contract]:
    found = []
    for name, nodes, where in rows_in(text, path):
        own = (Holding(nodes=nodes, places=dict.fromkeys(KEYS, where)),)
        found.append(Contract(name, own, where=where))
    return found


def rows_in(text: str, path: str) -> Iterator[tuple[str, int, str]]:
    """The lines NAME,NODES below a header, each with where it stands; `path` is for errors."""
    for number, line in enumerate(text.splitlines()[1:], 2):
        if not line.strip():
            continue
        row = ROW.fullmatch(line)
        if row is None or not int(row["nodes"]):
            raise UserError(f"{path}:{number}: {line!r} is not NAME,NODES")
        yield row["name"], int(row["nodes"]), f"{path}:{number}: "


@dataclass(frozen=True)
class _Place:
    """Where a table stands, and its keys."""

    path: str
    marks: Marks

    def at(self, key: str = "") -> str:
        line = self.marks.of(key)
        return f"{self.path}:{line}: " if line else f"{self.path}: "

    def part(self, index: int) -> _Place:
        return _Place(self.path, self.marks.part(index, "own"))


def _tables(path: str, text: str) -> list[Contract]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise UserError(f"{path}{f':{line[1]}' if line else ''}: not TOML: {error}") from None
    except RecursionError:
        raise UserError(f"{path}: lists are in too many others") from None
    tables = data.get("tenants", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UserError(f"{path}: tenants must be [[tenants]] tables")
    marks = marks_of(text, "tenants")
    marks += [Marks(0)] * (len(tables) - len(marks))
    return [_contract(*pair) for pair in zip(tables, (_Place(path, m) for m in marks), strict=True)]


def _contract(table: dict[str, Any], place: _Place) -> Contract:
    keys = dict(table)
    name = keys.pop("name", None)
    if not isinstance(name, str) or not name:
        raise UserError(f"{place.at('name')}a tenant needs a name")
    people = {key: _names(keys.pop(key, []), f"{place.at(key)}{name}: {key}") for key in PEOPLE}
    parts = keys.pop("own", [])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise UserError(f"{place.at('own')}{name}: own is {parts!r}; it must be a list of tables")
    own = [_holding(part, name, place.part(index)) for index, part in enumerate(parts)]
    if keys:
        own.insert(0, _holding(keys, name, place))
    if not any(h.nodes or h.racks or h.gpus or h.pinned for h in own):
        raise UserError(f"{place.at()}{name} owns nothing; give nodes, racks, gpus or pinned")
    return Contract(name, tuple(own), **people, where=place.at())


def _names(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise UserError(f"{where} is {value!r}; it must be a list of names")
    return tuple(value)


def _holding(table: dict[str, Any], name: str, place: _Place) -> Holding:
    for key in table:
        if key not in KEYS:
            raise UserError(
                f"{place.at(key)}{name}: unknown key {key!r}{nearest(key, [*KEYS, *PEOPLE, 'own'])}"
            )
    places = {key: place.at(key) for key in KEYS}
    where = {key: f"{places[key]}{name}: {key}" for key in KEYS}
    kind, gpus = table.get("type", ""), table.get("gpus", 0)
    if not isinstance(kind, str):
        raise UserError(f"{where['type']} is {kind!r}; it must be a name")
    sizes = gpus if isinstance(gpus, list) else [1] * _count(gpus, where["gpus"])
    return Holding(
        kind,
        _count(table.get("nodes", 0), where["nodes"]),
        _count(table.get("racks", 0), where["racks"]),
        tuple(_count(size, where["gpus"]) for size in sizes),
        _names(table.get("pinned", []), where["pinned"]),
        places,
    )


def _count(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1_000_000:
        raise UserError(f"{where} is {value!r}; it must be a whole number of at least 0")
    return value


def written(contracts: tuple[Contract, ...]) -> str:
    """The contracts as a file that can be read again."""
    return "\n".join(line for contract in contracts for line in _lines(contract))


def _lines(contract: Contract) -> Iterator[str]:
    yield "[[tenants]]"
    yield f"name = {json.dumps(contract.name)}"
    single = len(contract.own) == 1
    if single:
        yield from (f"{key} = {value}" for key, value in _amounts(contract.own[0]).items())
    else:
        tables = (_amounts(own).items() for own in contract.own)
        rows = (", ".join(f"{key} = {value}" for key, value in pairs) for pairs in tables)
        yield f"own = [{', '.join(f'{{ {row} }}' for row in rows)}]"
    for key in PEOPLE:
        if names := getattr(contract, key):
            yield f"{key} = {json.dumps(names)}"
    yield ""


def _amounts(own: Holding) -> dict[str, str]:
    found = {"type": json.dumps(own.type)} if own.type else {}
    found |= {"racks": str(own.racks)} if own.racks else {}
    found |= {"nodes": str(own.nodes)} if own.nodes else {}
    if own.gpus:
        loose = set(own.gpus) == {1}
        found["gpus"] = str(len(own.gpus)) if loose else json.dumps(own.gpus)
    found |= {"pinned": json.dumps(own.pinned)} if own.pinned else {}
    return found
