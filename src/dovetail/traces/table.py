"""Readers of CSV files with a header: name the columns and their units, make a job of one row.

A subclass gives `columns` (name to converter, in the order `job` takes them) and `job`. The rest
follows from that: the header is checked and recognised, cells are converted, and a cell that is
wrong is reported with its file, line, column and text. A converter takes the text of a cell and
raises `ValueError` saying what it must be.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, repeat
from math import inf
from typing import Any, ClassVar, NamedTuple

from dovetail.model.errors import UserError
from dovetail.model.request import WHOLE, Alternative, Group, Replica, Request, gang
from dovetail.model.trace import TraceJob
from dovetail.traces.source import LeftOut, Source

BLOCK = 1000
"""Rows read at once: converting whole columns takes half the time of converting rows."""

Convert = Callable[[str], Any]
Columns = Mapping[str, Convert]


@dataclass(frozen=True, slots=True)
class Maybe:
    """A column that may be missing or have empty cells; then `default` stands for it."""

    convert: Convert
    default: Any = None

    def __call__(self, text: str) -> Any:
        """The converted cell."""
        return self.convert(text) if text else self.default


class Table:
    """A reader of one CSV format."""

    columns: ClassVar[Columns]
    #: further column names that tell the format from others; nothing is read from them
    marks: ClassVar[tuple[str, ...]] = ()
    #: what stands between cells
    delimiter: ClassVar[str] = ","

    def job(self, *args: Any, **kwargs: Any) -> TraceJob:
        """The job of one row: takes the converted cells in the order of `columns`."""
        raise NotImplementedError

    @classmethod
    def needed(cls) -> list[str]:
        """Columns that must be there."""
        return [name for name, kind in cls.columns.items() if not isinstance(kind, Maybe)]

    @classmethod
    def recognises(cls, first: str) -> int:
        """How specific a match the first line of a file is: 0 is none."""
        needed = [*cls.needed(), *cls.marks]
        return len(needed) if set(header(first, cls.delimiter)).issuperset(needed) else 0

    def __call__(self, source: Source) -> Iterator[TraceJob]:
        """The jobs of the file, in its order."""
        return _Rows(self, source).jobs()


class _Cell(NamedTuple):
    #: place among the arguments of `job`
    slot: int
    #: place in the row
    place: int
    convert: Convert
    name: str


class _Rows:
    """The rows of one file, as one table reads them."""

    def __init__(self, table: Table, source: Source) -> None:
        self.source = source
        self.rows = csv.reader(source.lines, skipinitialspace=True, delimiter=table.delimiter)
        self.found = [name.strip() for name in next(self.rows, [])]
        missing = [name for name in table.needed() if name not in self.found]
        if missing:
            listed = ", ".join(self.found)
            text = f"there is no column {missing[0]!r}; the columns are: {listed}"
            raise UserError(f"{source.name}: {text}")
        self.make = table.job
        #: arguments of `job` as they are where a column is not there
        self.values = [getattr(kind, "default", None) for kind in table.columns.values()]
        self.cells = [
            _Cell(slot, self.found.index(name), kind, name)
            for slot, (name, kind) in enumerate(table.columns.items())
            if name in self.found
        ]

    def jobs(self) -> Iterator[TraceJob]:
        """All jobs, by blocks of rows; a block with anything unusual in it goes row by row."""
        source, line = self.source, self.rows.line_num
        while block := list(islice(self.rows, BLOCK)):
            made = self.block(block) if self.rows.line_num - line == len(block) else None
            if made is None:
                yield from source.jobs(self.numbered(block, line), self.parse)
            else:
                for number, job in enumerate(made, line + 1):
                    source.line = number
                    yield job
            line = self.rows.line_num

    def block(self, rows: list[list[str]]) -> list[TraceJob] | None:
        """The jobs of rows that are all in order, column by column; `None`: they are not."""
        arguments: list[Iterable[Any]] = [repeat(value) for value in self.values]
        try:
            columns = list(zip(*rows, strict=True))
            for slot, place, convert, _ in self.cells:
                arguments[slot] = columns[place] if convert is str else map(convert, columns[place])
            return list(map(self.make, *arguments))
        except (ValueError, IndexError, LeftOut):
            return None

    def numbered(self, rows: list[list[str]], line: int) -> Iterator[list[str]]:
        """The rows that are not empty, with the line of the source kept up to date."""
        for row in rows:
            line += 1 + sum(cell.count("\n") for cell in row)
            if row:
                self.source.line = line
                yield row

    def parse(self, row: list[str]) -> TraceJob:
        """The job of one row."""
        values = self.values.copy()
        try:
            for slot, place, convert, _ in self.cells:
                values[slot] = convert(row[place])
        except (ValueError, IndexError):
            raise ValueError(self.complaint(row)) from None
        return self.make(*values)

    def complaint(self, row: list[str]) -> str:
        """Which cell is wrong, found by trying them again: only bad rows pay for it."""
        for cell in self.cells:
            if cell.place >= len(row):
                return f"{cell.name} is missing: {len(row)} fields for {len(self.found)} columns"
            try:
                cell.convert(row[cell.place])
            except ValueError as error:
                return f"{cell.name} is {row[cell.place]!r}: it {error}"
        raise AssertionError("the row was bad a moment ago")


def header(first: str, delimiter: str = ",") -> list[str]:
    """Column names in the first line of a file."""
    cells = csv.reader([first.replace("\0", "")], delimiter=delimiter)
    return [name.strip() for name in next(cells, [])]


# ---- converters -----------------------------------------------------------------------------


def label(text: str) -> str:
    """Text that must be there."""
    if not text:
        raise ValueError("must not be empty")
    return text


def seconds(text: str) -> float:
    """A length of time: finite, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < inf:
        raise ValueError("must be a number of seconds, 0 or more")
    return value


def number(text: str) -> float:
    """Any finite number."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError("must be a number") from None
    if not -inf < value < inf:
        raise ValueError("must be a finite number")
    return value


def amount(text: str) -> float:
    """A finite number, 0 or more."""
    value = number(text)
    if value < 0:
        raise ValueError("must be 0 or more")
    return value


def count(text: str) -> int:
    """A whole number, 0 or more; `8.0` is one too."""
    try:
        value = int(text)
    except ValueError:
        value = _whole(text)
    if value < 0:
        raise ValueError("must be a whole number, 0 or more")
    return value


def _whole(text: str) -> int:
    value = number(text)
    if not value.is_integer():
        raise ValueError("must be a whole number, 0 or more")
    return int(value)


def cores(text: str) -> int:
    """Cores, as thousandths."""
    return round(amount(text) * 1000)


def gib(text: str) -> int:
    """GiB, as MiB."""
    return round(amount(text) * 1024)


def type_list(text: str) -> tuple[str, ...]:
    """GPU types joined by `|`, in order of preference; none means any."""
    return tuple(part for part in map(str.strip, text.split("|")) if part)


# ---- shapes ---------------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def instances(
    count: int,
    gpus: int,
    cpu: int | None = None,
    memory: int | None = None,
    types: tuple[str, ...] = (),
    share: int = WHOLE,
    gpu_memory: int = 0,
) -> Request:
    """`count` instances of `gpus` GPUs, each instance on one node; the amounts are for each."""
    if gpus == 1 or (gpus == 0 and count == 1):
        whole_cpu = None if cpu is None else cpu * count
        whole_memory = None if memory is None else memory * count
        return gang(count * gpus, whole_cpu, whole_memory, types, share, gpu_memory)
    each = Replica(gpus, share, gpu_memory, cpu, memory)
    return Request((Alternative((Group(count, each, count),), types),))
