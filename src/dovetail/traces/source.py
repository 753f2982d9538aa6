"""An open trace: its lines, where in it we are, and what becomes of rows that are no use.

A reader takes a `Source` and yields jobs. It is told nothing about sorting, dates, filters or the
numbers jobs have inside the core: that is the loader's. Files may be plain or gzip, told apart by
their first bytes, and are UTF-8.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TextIO, TypeVar

from dovetail.model.errors import UserError
from dovetail.model.trace import TraceJob

R = TypeVar("R")

FIRST = 65536
"""Characters of the first line that formats are recognised by."""


class LeftOut(Exception):
    """Raised by a reader for a row that is correct but is no job; the text says what such rows are.

    The text continues a sentence that begins with their number: "12 rows left out: never started".
    """


class Source:
    """The text of one trace. Iterating gives its lines and keeps `line` up to date."""

    def __init__(self, name: str, file: TextIO, skip_bad: bool = False) -> None:
        self.name = name
        self.skip_bad = skip_bad
        #: the line that was read last, counted from 1
        self.line = 0
        #: the first line of the file, header or not
        self.first = file.readline(FIRST)
        #: all lines including the first, for readers that count by themselves
        self.lines: Iterator[str] = chain((self.first,), file)
        #: complaints about bad rows: how many, and the first of them
        self.bad = 0
        self.first_bad = ""
        #: reasons why correct rows are no jobs
        self.left_out: Counter[str] = Counter()

    def __iter__(self) -> Iterator[str]:
        for number, text in enumerate(self.lines, 1):
            self.line = number
            yield text

    def jobs(
        self, records: Iterable[R], parse: Callable[[R], TraceJob | None]
    ) -> Iterator[TraceJob]:
        """Parse each record; `None` is passed over, a `ValueError` makes it a bad row."""
        for record in records:
            try:
                job = parse(record)
            except ValueError as error:
                self.reject(str(error))
            except LeftOut as reason:
                self.left_out[str(reason)] += 1
            else:
                if job is not None:
                    yield job

    def reject(self, problem: str) -> None:
        """The present row is bad: say so and stop, or count it where the person said so."""
        complaint = f"{self.name}:{self.line}: {problem}"
        if not self.skip_bad:
            raise UserError(complaint)
        self.bad += 1
        self.first_bad = self.first_bad or complaint

    def notices(self) -> list[str]:
        """What was not turned into jobs, in sentences."""
        told = [f"{_rows(count)} left out: {why}" for why, count in self.left_out.items()]
        if self.bad:
            told.append(f"{_rows(self.bad, 'bad ')} skipped, first: {self.first_bad}")
        return told


def _rows(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}row{'' if count == 1 else 's'}"


@contextmanager
def open_text(name: str) -> Iterator[TextIO]:
    """The text of a file, plain or gzip; whatever is wrong with the file becomes one sentence."""
    try:
        with Path(name).open("rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            stream = io.BufferedReader(gzip.GzipFile(fileobj=raw)) if packed else raw
            with io.TextIOWrapper(stream, "utf-8-sig", newline="") as file:
                yield file
    except FileNotFoundError:
        raise UserError(f"{name}: no such file{_nearby(Path(name))}") from None
    except IsADirectoryError:
        raise UserError(f"{name} is a directory; name a file in it") from None
    except PermissionError:
        raise UserError(f"{name} may not be read by you; check its permissions") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{name} is cut short or damaged ({error}); fetch it again") from None
    except UnicodeDecodeError:
        raise UserError(f"{name} is not a text file in UTF-8") from None
    except csv.Error as error:
        raise UserError(f"{name} is not a text file or not CSV ({error})") from None


def _nearby(path: Path) -> str:
    """The end of a sentence: the file that was probably meant."""
    if not path.parent.is_dir():
        return f"; there is no directory {path.parent} either"
    names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.6)
    return f"; did you mean {path.with_name(close[0])}?" if close else ""
