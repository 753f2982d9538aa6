"""Jobs from columns: many tuples at once, without running Python code for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

from dovetail.model.job import JobSpec
from dovetail.model.trace import TraceJob


def assemble(specs: Sequence[Iterable[Any]], truth: Sequence[Iterable[Any]]) -> Iterator[TraceJob]:
    """`specs` has a column for each field of `JobSpec`, `truth` for the rest of `TraceJob`."""
    new = tuple.__new__
    made = map(new, repeat(JobSpec), zip(*specs, strict=False))
    return map(new, repeat(TraceJob), zip(made, *truth, strict=False))
