"""Nodes that Slurm has closed, told when that changes; remembered over a restart of the controller.

A node that was opened while no controller was there must still be told as opened, and the books
do not say who closed it. So what was told is kept in a small file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dovetail.executors.protocol import Closed, Opened
from dovetail.executors.slurm.reading import SlurmNode
from dovetail.executors.slurm.site import closed


class Closures:
    """What was told of nodes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told: dict[str, str] = {}
        #: closed when the last controller was there
        self._before = self._read()

    def changes(
        self, nodes: Sequence[SlurmNode], positions: Mapping[str, int]
    ) -> Iterator[Closed | Opened]:
        """What is to be told after an answer of Slurm."""
        now = {node.name: closed(node) for node in nodes if node.name in positions}
        for name, reason in now.items():
            if reason and name not in self._told:
                yield Closed(positions[name], reason)
            elif not reason and name in {**self._told, **self._before}:
                yield Opened(positions[name])
        told = {name: reason for name, reason in now.items() if reason}
        # What was just told as opened is forgotten with the next answer: its report may be lost.
        self._write({*told, *self._told, *self._before})
        self._told, self._before = told, {}

    def _read(self) -> dict[str, str]:
        try:
            return dict.fromkeys(json.loads(self._path.read_text()), "")
        except (OSError, ValueError, TypeError):
            return {}

    def _write(self, names: set[str]) -> None:
        if set(self._read()) != names:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._path.with_suffix(".new")
            fresh.write_text(json.dumps(sorted(names)))
            fresh.replace(self._path)
