"""The machines that were decided about, as a data base remembers them.

A journal is replayed with the machines it was written for, wherever the replay runs and whatever
engine there is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dovetail.core.codec import from_plain, to_plain
from dovetail.model.node import Capabilities, Node


class Machines(Protocol):
    """Nodes and what can be done on them: an engine has both."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The machines, in the order allocations count them."""

    @property
    def capabilities(self) -> Mapping[str, Capabilities]:
        """By node type: what can be done to a running job."""


@dataclass(frozen=True)
class Remembered:
    """Machines without an engine."""

    nodes: tuple[Node, ...]
    capabilities: dict[str, Capabilities]


def written(machines: Machines) -> str:
    """For the data base."""
    kinds = {kind: to_plain(each) for kind, each in machines.capabilities.items()}
    plain = {"nodes": to_plain(tuple(machines.nodes)), "capabilities": kinds}
    return json.dumps(plain, sort_keys=True)


def read_machines(text: str) -> Remembered:
    """The machines a data base remembers."""
    plain = json.loads(text)
    nodes = from_plain(tuple[Node, ...], plain["nodes"])
    kinds = plain["capabilities"].items()
    return Remembered(nodes, {kind: from_plain(Capabilities, each) for kind, each in kinds})
