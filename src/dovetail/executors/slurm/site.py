"""A Slurm cluster as Dovetail is to use it: which nodes, what of them counts, how to ask.

Read once, when the engine is opened. Asks questions alone; starts and ends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor

from dovetail.executors.slurm import reading
from dovetail.executors.slurm.commands import CommandLine, Refused, Trouble
from dovetail.executors.slurm.hostlists import names
from dovetail.executors.slurm.options import Options
from dovetail.executors.slurm.reading import SlurmJob, SlurmNode
from dovetail.model.errors import UserError
from dovetail.model.node import Capabilities, Node

START_LATENCY = 1.0
"""Seconds from a submission to the job's first instruction, about: Slurm starts once a second."""

CLOSED = frozenset(
    ["DOWN", "ERROR", "FAIL", "FUTURE", "UNKNOWN", "INVAL", "INVALID_REG", "NOT_RESPONDING"]
)
LEAVING = frozenset(["DRAIN", "MAINTENANCE", "REBOOT_REQUESTED", "REBOOT_ISSUED", "REBOOT"])
NODES_BY_SCONTROL = (23, 2)
"""The release from which on `sinfo` no longer lists nodes one by one."""


class Questions:
    """The two bulk questions, asked as this release wants them."""

    def __init__(self, commands: CommandLine, release: tuple[int, int]) -> None:
        self._commands = commands
        self._nodes: tuple[str, ...] = ("sinfo", "--json")
        if release >= NODES_BY_SCONTROL:
            self._nodes = ("scontrol", "show", "nodes", "--json")

    def jobs(self) -> list[SlurmJob]:
        """All jobs, those that ended lately too."""
        return reading.jobs(self._commands.json("squeue", "--json", "--states=all"))

    def nodes(self) -> list[SlurmNode]:
        """All nodes."""
        return reading.nodes(self._commands.json(*self._nodes))


@dataclass(frozen=True)
class Site:
    """What was found."""

    nodes: tuple[Node, ...]
    #: by name: its position in `nodes`
    positions: Mapping[str, int]
    #: by name: CPUs are given out in multiples of this
    grain: Mapping[str, int]
    questions: Questions
    partition: str
    release: str
    config: Mapping[str, str]

    @property
    def capabilities(self) -> dict[str, Capabilities]:
        """By node type. What runs cannot be resized, and keeps its GPUs while it is suspended."""
        able = Capabilities(
            resize_in_place=False,
            suspend_frees_gpu=False,
            move=False,
            share=False,
            start_latency=START_LATENCY,
        )
        return {node.type: able for node in self.nodes}


def closed(node: SlurmNode) -> str:
    """Why a node takes no jobs; empty: it does."""
    if found := node.states & CLOSED:
        return node.reason or f"{min(found).lower().replace('_', ' ')} in Slurm"
    if node.states & LEAVING:
        return node.reason or "drained in Slurm"
    return ""


def survey(commands: CommandLine, options: Options) -> Site:
    """Look at the cluster, or say in one sentence why it cannot be used."""
    try:
        release = version(commands.text("sinfo", "--version"))
        config = configuration(commands.text("scontrol", "show", "config"))
        partition = options.partition or _default(commands)
        questions = Questions(commands, release)
        listed = questions.nodes()
    except (Trouble, Refused) as error:
        raise UserError(f"Slurm cannot be used from here: {error}") from None
    ours = _in_order(_chosen(listed, partition, options))
    counted = "memory" in config.get("SelectTypeParameters", "memory").lower()
    return Site(
        tuple(_node(each, counted) for each in ours),
        {each.name: place for place, each in enumerate(ours)},
        {each.name: _grain(each, config) for each in ours},
        questions,
        partition,
        f"{release[0]}.{release[1]:02}",
        config,
    )


def version(text: str) -> tuple[int, int]:
    """The release in `slurm-wlm 22.05.8`."""
    found = re.search(r"(\d+)\.(\d+)", text)
    if found is None:
        raise Trouble(f"its version cannot be read: {text.strip()!r}")
    return int(found[1]), int(found[2])


def configuration(text: str) -> dict[str, str]:
    """`scontrol show config`, line by line."""
    pairs = [line.partition("=") for line in text.splitlines() if "=" in line]
    return {name.strip(): value.strip() for name, _, value in pairs}


def _default(commands: CommandLine) -> str:
    """The partition Slurm marks as the one to use."""
    listed = commands.text("sinfo", "--noheader", "--format=%P").split()
    marked = [name.rstrip("*") for name in listed if name.endswith("*")]
    if not marked:
        raise Refused("no partition is the default: name one")
    return marked[0]


def _chosen(listed: Sequence[SlurmNode], partition: str, options: Options) -> list[SlurmNode]:
    """The nodes of the partition, or what Dovetail was given of them."""
    if not 0 < options.share <= 1:
        raise UserError(f"a share of {options.share:g} asked for; it must be over 0, at most 1")
    found = [node for node in listed if partition in node.partitions]
    if not found:
        known = sorted({name for node in listed for name in node.partitions})
        raise UserError(f"partition {partition} has no nodes; there are {', '.join(known)}")
    if options.nodes is not None:
        wanted = names(options.nodes)
        if unknown := [name for name in wanted if name not in {node.name for node in found}]:
            raise UserError(f"partition {partition} has no node {unknown[0]}")
        found = [node for node in found if node.name in wanted]
    kept = floor(len(found) * options.share)
    if not kept:
        raise UserError(f"a share of {options.share:g} of {len(found)} nodes is none")
    return found[:kept]


def _in_order(found: Sequence[SlurmNode]) -> list[SlurmNode]:
    """Nodes of one type side by side, as the cluster wants them."""
    types = list(dict.fromkeys(_type(node) for node in found))
    return sorted(found, key=lambda node: types.index(_type(node)))


def _type(node: SlurmNode) -> str:
    return node.type or ("gpu" if node.gpus else "cpu")


def _node(found: SlurmNode, counted: bool) -> Node:
    memory = found.memory if counted else None
    cpu = found.cpus * 1000
    return Node(found.name, found.gpus, cpu, memory, _type(found), labels=found.features)


def _grain(node: SlurmNode, config: Mapping[str, str]) -> int:
    """Where whole cores are given out, all threads of a core go together."""
    by_core = re.search(r"CR_(CORE|SOCKET)", config.get("SelectTypeParameters", "").upper())
    return node.threads if by_core else 1
