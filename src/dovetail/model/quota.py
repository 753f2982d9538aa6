"""What a user or a group may hold at one time: hard caps, whatever is free.

A group is a tenant or a beginning of its path: `lab` is the group of `lab` and of `lab/team`. A job
counts for its user and for every group it is in. Who holds what is not known here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec

ANYBODY = "*"
GROUP = "group:"
FORM = "write NAME=GPUS, group:NAME=GPUS or *=GPUS, or GPUS/CORES/GiB in place of GPUS"


class Limit(NamedTuple):
    """Thousandths of GPUs and of cores, MiB; `None`: as much as there is."""

    gpus: int | None = None
    cpu: int | None = None
    memory: int | None = None

    def __str__(self) -> str:
        """As people type it: `4` or `4/16/-`."""
        units = zip(self, (1000, 1000, 1024), strict=True)
        gpus, *others = ["-" if each is None else f"{each / unit:g}" for each, unit in units]
        return gpus if others == ["-", "-"] else "/".join([gpus, *others])


@dataclass(frozen=True)
class Quotas:
    """The limits of all accounts: `alice`, `group:lab`, and `*` for each user not named."""

    limits: Mapping[str, Limit] = field(default_factory=dict)

    def accounts(self, spec: JobSpec) -> tuple[tuple[str, Limit], ...]:
        """Every account a job counts for that has a limit, the user's first."""
        found = []
        own = self.limits.get(spec.user, self.limits.get(ANYBODY))
        if own is not None:
            found.append((spec.user, own))
        path = spec.tenant.split("/") if spec.tenant else []
        for depth in range(1, len(path) + 1):
            name = f"{GROUP}{'/'.join(path[:depth])}"
            if name in self.limits:
                found.append((name, self.limits[name]))
        return tuple(found)

    @property
    def beyond_gpus(self) -> bool:
        """Is anything but GPUs limited?"""
        return any(limit[1:] != (None, None) for limit in self.limits.values())

    def __str__(self) -> str:
        """As people type them."""
        return ",".join(f"{name}={limit}" for name, limit in self.limits.items())


def read_quotas(text: str | None) -> Quotas | None:
    """`alice=4,group:lab=8/64/512,*=2`, or a TOML file with a table `quotas`; None: no quotas."""
    if text is None or not text.strip():
        return None
    if text.endswith(".toml"):
        return Quotas(_from_table(_table(text), text))
    limits: dict[str, Limit] = {}
    for item in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not name or name in limits:
            raise UserError(f"quotas {item!r}: {FORM}, each name once")
        limits[name] = _limit(value.split("/"), item)
    return Quotas(limits)


def _limit(amounts: list[Any], where: str) -> Limit:
    if len(amounts) not in (1, 3):
        raise UserError(f"quotas {where!r}: {FORM}")
    units = zip(amounts, (1000, 1000, 1024), strict=False)
    return Limit(*(_amount(each, unit, where) for each, unit in units))


def _amount(given: Any, unit: int, where: str) -> int | None:
    if given in (None, "-"):
        return None
    try:
        value = -1.0 if isinstance(given, bool) else float(given)
    except (TypeError, ValueError):
        value = -1.0
    if not 0 <= value < 1e9:
        raise UserError(f"quotas {where!r}: {given!r} is not a number of at least 0")
    return round(value * unit)


def _table(path: str) -> Any:
    try:
        content = tomllib.loads(Path(path).read_text())
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: is not TOML ({error})") from None
    return content.get("quotas")


def _from_table(table: Any, path: str) -> dict[str, Limit]:
    if not isinstance(table, dict):
        raise UserError(f"{path}: has no table [quotas]")
    limits: dict[str, Limit] = {}
    for name, given in table.items():
        where = f"{path}: {name}"
        if isinstance(given, dict):
            unknown = given.keys() - {"gpus", "cpus", "mem"}
            if unknown:
                raise UserError(f"{where}: knows gpus, cpus and mem, not {min(unknown)}")
            limits[name] = _limit([given.get(key) for key in ("gpus", "cpus", "mem")], where)
        else:
            limits[name] = _limit([given], where)
    return limits
