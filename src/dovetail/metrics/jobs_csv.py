"""Every job of a run as one line of a CSV file, in submit order, for tools that are not ours.

A cell is empty where the thing never happened. `jct` and `wait` are filled for finished jobs alone
so that averaging a column gives what the result says. Times are seconds to the microsecond.
Knows nothing of summaries or policies.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from dovetail.metrics.columns import (
    FINISHED,
    STILL_THERE,
    Columns,
    Floats,
    Integers,
    columns,
)
from dovetail.metrics.records import NEVER, OUTCOMES, Run

CHUNK = 50_000
"""Rows turned into Python objects at a time: a million at once would double the memory."""


def write_jobs(run: Run, path: Path | str) -> None:
    """Write the jobs of `run` to `path`, compressed if its name ends in `.gz`."""
    table = columns(run.records)
    order = np.lexsort((table.id, table.submit))
    with _opened(Path(path)) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_cells(run, table, order[:0]))
        for begin in range(0, len(order), CHUNK):
            cells = _cells(run, table, order[begin : begin + CHUNK])
            writer.writerows(zip(*cells.values(), strict=True))


def _cells(run: Run, table: Columns, order: Integers) -> dict[str, Sequence[Any]]:
    """The cells of the rows in `order`, by column of the file."""
    part, rows, records = table.at(order), order.tolist(), run.records
    return {
        "job_id": [records.name[row] for row in rows],
        **{name: _numbers(values) for name, values in _times(part).items()},
        "gpus": _numbers(part.milli_gpus / 1000),
        "tenant": [records.tenant[row] for row in rows],
        "user": [records.user[row] for row in rows],
        "outcome": [OUTCOMES[code] for code in part.outcome],
        "preemptions": [records.preemptions[row] for row in rows],
        "failures": [records.failures[row] for row in rows],
        "deadline": _numbers(part.deadline),
        "reason": [records.reason.get(row, "") for row in rows],
    }


def _times(part: Columns) -> dict[str, Floats]:
    """The columns that are times or spans, `nan` for cells that stay empty."""
    end = np.where(part.outcome < STILL_THERE, part.end, NEVER)
    jct = np.where(part.outcome == FINISHED, end - part.submit, NEVER)
    return {
        "submit": part.submit,
        "first_start": part.first_start,
        "end": end,
        "jct": jct,
        "wait": np.maximum(jct - part.run_time, 0.0),
        "run_time": part.run_time,
        "work": part.work,
    }


def _numbers(values: Floats) -> list[Any]:
    """Whole numbers where there is nothing else, nothing for `nan`."""
    known = ~np.isnan(values)
    filled = np.round(np.where(known, values, 0.0), 6)
    whole = (filled == np.trunc(filled)).all()
    cells: list[Any] = (filled.astype(np.int64) if whole else filled).tolist()
    if known.all():
        return cells
    return [cell if ok else "" for cell, ok in zip(cells, known.tolist(), strict=True)]


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    if path.suffix != ".gz":
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    # No name and no time in the header: the same run gives the same bytes.
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as file,
    ):
        yield file
