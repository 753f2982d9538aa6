"""What Slurm says of nodes and jobs, taken out of its JSON.

The shape of that JSON differs between releases: numbers may be objects, states lists, and what a
job holds is written in two ways. All of that ends here. Knows no attempts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dovetail.executors.slurm.commands import Trouble
from dovetail.executors.slurm.gres import gpus
from dovetail.executors.slurm.hostlists import names

BROKEN = frozenset(("BOOT_FAIL", "NODE_FAIL", "LAUNCH_FAILED", "PREEMPTED", "REVOKED"))
"""Ends that are Slurm's own doing."""
ENDED = BROKEN | {"CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "TIMEOUT"}
WAITING = frozenset(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"))


class Piece(NamedTuple):
    """What a job holds of one node."""

    node: str
    gpus: int
    cpus: int
    #: MiB
    memory: int
    #: which devices, as Slurm counts them
    indices: tuple[int, ...] = ()


class SlurmJob(NamedTuple):
    """One job, as Slurm sees it; of a heterogeneous one, one component."""

    id: int
    #: the id of the whole where it is a component, else its own
    leader: int
    name: str
    comment: str
    user: str
    partition: str
    #: RUNNING, or RUNNING and COMPLETING, or ...
    states: frozenset[str]
    #: why it waits, or ended
    reason: str
    code: int | None
    signal: int | None
    pieces: tuple[Piece, ...]
    #: wall seconds; 0: not yet
    submitted: float
    started: float
    ended: float

    @property
    def over(self) -> bool:
        """Has it ended and let go of everything?"""
        return bool(self.states & ENDED) and "COMPLETING" not in self.states

    @property
    def waits(self) -> bool:
        """Has it still to begin?"""
        return bool(self.states & WAITING)

    @property
    def holds(self) -> bool:
        """Does it occupy nodes?"""
        return not self.over and not self.waits


class SlurmNode(NamedTuple):
    """One node, as Slurm sees it."""

    name: str
    gpus: int
    #: of its GPUs
    type: str
    cpus: int
    #: hardware threads in a core
    threads: int
    #: MiB
    memory: int
    features: tuple[str, ...]
    partitions: tuple[str, ...]
    states: frozenset[str]
    #: why an administrator closed it
    reason: str


def jobs(answer: Mapping[str, Any]) -> list[SlurmJob]:
    """The jobs in an answer of `squeue --json`."""
    return [_job(each) for each in _list(answer, "jobs")]


def nodes(answer: Mapping[str, Any]) -> list[SlurmNode]:
    """The nodes in an answer of `sinfo --json` or `scontrol show nodes --json`."""
    return [_node(each) for each in _list(answer, "nodes")]


def _list(answer: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = answer.get(key)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Trouble(f"Slurm's answer has no list of {key}")
    return found


def _job(said: Mapping[str, Any]) -> SlurmJob:
    try:
        number = int(said["job_id"])
        code, signal = _exit(said.get("exit_code"))
        return SlurmJob(
            number,
            _number(said.get("het_job_id")) or number,
            str(said.get("name", "")),
            str(said.get("comment", "")),
            str(said.get("user_name", "")),
            str(said.get("partition", "")),
            _states(said["job_state"]),
            str(said.get("state_reason", "")),
            code,
            signal,
            tuple(_pieces(said)),
            _number(said.get("submit_time")),
            _number(said.get("start_time")),
            _number(said.get("end_time")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Trouble(f"Slurm's answer on a job cannot be read: {error!r}") from None


def _node(said: Mapping[str, Any]) -> SlurmNode:
    try:
        has = gpus(str(said.get("gres", "")))
        states = _states(said["state"]) | _states(said.get("state_flags", ()))
        return SlurmNode(
            str(said["name"]),
            has.number,
            has.type,
            _number(said.get("effective_cpus")) or _number(said["cpus"]),
            max(_number(said.get("threads")), 1),
            _number(said["real_memory"]) - _number(said.get("specialized_memory")),
            _words(said.get("active_features") or said.get("features")),
            _words(said.get("partitions")),
            states,
            str(said.get("reason", "")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Trouble(f"Slurm's answer on a node cannot be read: {error!r}") from None


def _number(value: Any) -> int:
    """A number, or the object that newer releases make of it; 0: not set."""
    if isinstance(value, dict):
        return int(value.get("number", 0)) if value.get("set", True) else 0
    return int(value or 0)


def _states(value: Any) -> frozenset[str]:
    return frozenset(each.upper() for each in ([value] if isinstance(value, str) else value))


def _words(value: Any) -> tuple[str, ...]:
    """A list, or names with commas between them."""
    found = (value or "").split(",") if isinstance(value, str) or value is None else value
    return tuple(str(each).strip() for each in found if each)


def _exit(value: Any) -> tuple[int | None, int | None]:
    """Exit code and signal; a wait status in older releases, an object in newer ones."""
    if isinstance(value, dict):
        number = value.get("signal", {}).get("id", value.get("signal", {}).get("signal_id"))
        signal = _number(number)
        return (None, signal) if signal else (_number(value.get("return_code")), None)
    status = _number(value)
    return (None, status & 127) if status & 127 else (status >> 8, None)


def _pieces(said: Mapping[str, Any]) -> Iterator[Piece]:
    """What it holds, node by node."""
    if not said.get("job_resources"):
        return
    details = [gpus(text) for text in said.get("gres_detail") or ()]
    asked = gpus(str(said.get("tres_per_node", "")))
    for place, (name, cpus, memory) in enumerate(_allocated(said)):
        has = details[place] if place < len(details) else asked
        yield Piece(name, has.number, cpus, memory, has.indices)


def _allocated(said: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """Names, CPUs and MiB."""
    resources = said["job_resources"]
    if isinstance(resources.get("nodes"), dict):
        return [
            (each["name"], _number(each["cpus"]["count"]), _number(each["memory"]["allocated"]))
            for each in resources["nodes"]["allocation"]
        ]
    total = _number(resources.get("allocated_cpus")) or _number(said.get("cpus"))
    if listed := resources.get("allocated_nodes"):
        return _by_core(listed, total)
    # Some releases say no more than which nodes.
    hosts = names(str(said.get("nodes", "")))
    memory = _number(said.get("memory_per_node"))
    return [(host, total // len(hosts), memory) for host in hosts]


def _by_core(listed: list[Mapping[str, Any]], total: int) -> list[tuple[str, int, int]]:
    """Only cores are told node by node; CPUs may be threads of them."""
    cores = [sum(len(each["cores"]) for each in node["sockets"].values()) for node in listed]
    each_core = total / (sum(cores) or 1)
    return [
        (str(node["nodename"]), round(count * each_core), _number(node["memory_allocated"]))
        for node, count in zip(listed, cores, strict=True)
    ]
