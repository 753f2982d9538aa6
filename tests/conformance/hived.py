"""Replays recorded HiveD scenarios on our cells, step by step: outcome, placement, state.

`python tests/conformance/hived.py FILE…` takes scenario files (.json) and recorded ones (.jsonl,
plain or .gz) and prints one line per scenario, then how many passed and failed. The state is
validated after every step as well.

After some faults HiveD's own books do not balance, and ours do (docs/decisions/0022). From that
step on ours may differ; the same cells with HiveD's books (`hived_books`) must then go through all
steps as recorded, and the line says from where on. Whoever differs before that step has failed.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hived_books import HivedCells, imbalance

from dovetail.model.errors import UserError
from dovetail.tenancy.cells.cell import FREE, Physical
from dovetail.tenancy.cells.commands import Ask, Break, Go, Leave, Preempt, Repair, Sit, Withdraw
from dovetail.tenancy.cells.groups import Gang, Group
from dovetail.tenancy.cells.hived import layout_of
from dovetail.tenancy.cells.state import Cells

Json = dict[str, Any]
PREEMPTING = "Preempting"
GZIP = b"\x1f\x8b"
#: how a record that is none, or a state that went wrong, shows itself
BROKEN = (
    AssertionError,
    AttributeError,
    LookupError,
    StopIteration,
    TypeError,
    ValueError,
)
USAGE = "usage: python tests/conformance/hived.py FILE…  (.json, .jsonl, .jsonl.gz)"


class Mismatch(Exception):
    """A step did not go as recorded."""

    def __init__(self, said: str, step: int = 0) -> None:
        super().__init__(said)
        self.step = step


def scenarios(path: Path) -> Iterator[Json]:
    """All scenarios of a file: one, a list of them, or one in each line."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == GZIP else data).decode()
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        yield from (json.loads(line) for line in text.splitlines() if line.strip())
    else:
        yield from whole if isinstance(whole, list) else [whole]


def gang_of(spec: Json) -> Gang:
    sizes: dict[int, int] = {}
    for member in spec["affinityGroup"]["members"]:
        size = member["leafCellNumber"]
        sizes[size] = sizes.get(size, 0) + member["podNumber"]
    return Gang(
        spec["affinityGroup"]["name"],
        spec["virtualCluster"],
        spec["priority"],
        sizes,
        spec.get("leafCellType", ""),
        spec.get("pinnedCellId", ""),
        spec.get("lazyPreemptionEnable", False),
        spec.get("ignoreK8sSuggestedNodes", True),
    )


class Replay:
    """One scenario on its way."""

    def __init__(self, config: Json, kind: type[Cells] = Cells) -> None:
        self.kind = kind
        self.cells = _started(config, kind)
        #: group and command by pod
        self.group: dict[str, str] = {}
        self.sat: dict[str, Sit] = {}

    def step(self, step: Json) -> Json:
        """What our cells say to one step, in the words of the records."""
        match step["op"]:
            case "schedule":
                return self.schedule(step)
            case "deleteAllocated":
                self.sat.pop(step["pod"])
                self.cells.apply(Leave(step["pod"], self.group[step["pod"]]))
            case "deleteUnallocated":
                self.cells.apply(Withdraw(step["pod"], self.group[step["pod"]]))
            case "setBadNode":
                self.cells.apply(Break(step["node"]))
            case "setHealthyNode":
                self.cells.apply(Repair(step["node"]))
            case "reconfigure":
                before, self.cells = self.cells, _started(step["config"], self.kind)
                self.cells.take_over(before)
            case "leafCellStates":
                return {"outcome": "ok", "cells": self.leaf_states(step["observed"]["cells"])}
            case unknown:
                raise Mismatch(f"the runner does not know {unknown!r}")
        return {"outcome": "ok"}

    def schedule(self, step: Json) -> Json:
        gang, pod, size = gang_of(step["spec"]), step["pod"], step["spec"]["leafCellNumber"]
        nodes = step.get("suggestedNodes")
        suggested = None if nodes is None else frozenset(nodes)
        try:
            answer = self.cells.apply(
                Ask(pod, gang, size, suggested, step.get("phase", PREEMPTING) == PREEMPTING)
            )
        except UserError:
            return {"outcome": "error"}
        self.group[pod] = gang.name
        if isinstance(answer, Go):
            if not step.get("noCommit"):
                self.sat[pod] = Sit(pod, gang, size, answer.row, answer.placed)
                self.cells.apply(self.sat[pod])
            rows = [row for rows in answer.placed.rows.values() for row in rows]
            return {
                "outcome": "bind",
                "node": answer.row.node,
                "leafCells": list(answer.row.devices),
                "chain": answer.placed.chain,
                "gang": sorted((r.node, list(r.devices), sorted(set(r.types))) for r in rows),
            }
        if isinstance(answer, Preempt):
            victims = sorted(answer.victims)
            return {"outcome": "preempt", "allVictims": victims, "someVictims": victims}
        return {"outcome": "wait"}

    def leaf_states(self, addresses: Json) -> Json:
        chains = self.cells.forest.physical.values()
        leaves = {leaf.address: leaf for levels in chains for leaf in levels[1]}
        return {at: [str(leaves[at].state), leaves[at].priority] for at in addresses}

    def state(self) -> Json:
        """Groups, virtual clusters and free cells, as the recorded digests have them."""
        groups = {name: _group(group) for name, group in self.cells.groups.items()}
        return {"groups": groups, "vc": self._tenants(), "free": self._free()}

    def _tenants(self) -> Json:
        found: Json = {}
        for name, estate in self.cells.forest.estates.items():
            found[name] = {}
            for chain, levels in estate.roots.items():
                for cells in filter(None, levels):
                    free = sum(cell.priority == FREE for cell in cells)
                    bad = sum(cell.twin is not None and not cell.twin.healthy for cell in cells)
                    kind = cells[0].chain.types[cells[0].level]
                    found[name][f"{chain}@{kind}"] = [len(cells), free, bad]
        return found

    def _free(self) -> Json:
        return {
            chain: {
                cells[0].chain.types[cells[0].level]: sorted(cell.address for cell in cells)
                for cells in filter(None, stock.free)
            }
            for chain, stock in self.cells.stocks.items()
            if any(stock.free)
        }


def _started(config: Json, kind: type[Cells]) -> Cells:
    """Begin as the records do: with all nodes bad, until one by one reports."""
    cells = kind(layout_of(config))
    nodes = [node for levels in cells.forest.physical.values() for node in _nodes(levels)]
    for node in nodes:
        cells.apply(Break(node))
    for node in nodes:
        cells.apply(Repair(node))
    return cells


def _nodes(levels: list[list[Physical]]) -> list[str]:
    return [node for cell in levels[-1] for node in cell.nodes]


def _group(group: Group) -> list[Any]:
    nodes: dict[str, list[int]] = {}
    for leaf, _ in group.leaves():
        nodes.setdefault(leaf.nodes[0], []).append(leaf.devices[0])
    placed = {node: sorted(devices) for node, devices in nodes.items()}
    return [str(group.state), group.lazily_preempted_by is not None, placed]


def recorded(step: Json) -> tuple[Json, Json]:
    """What was recorded of a step: outcome and state, in one form for both kinds of files."""
    if "result" in step:
        outcome, state = dict(step["result"]), step["state"]
        if "gang" in outcome:
            outcome["gang"] = sorted((n, d, sorted(t)) for n, d, t in outcome["gang"])
        return outcome, state
    outcome = {k: v for k, v in step["observed"].items() if k in _COMPARED}
    if "gang" in outcome:
        outcome["gang"] = sorted(
            (row["node"], row["leafCells"], sorted(set(row["preassignedCellTypes"])))
            for row in outcome["gang"]
        )
    after = step["observed"].get("after", {})
    state: Json = {}
    if after:
        tenants = after["virtualClusters"].items()
        state["vc"] = {
            name: {kind: [c["total"], c["free"], c["bad"]] for kind, c in cells.items()}
            for name, cells in tenants
        }
        state["free"] = after["freeCells"]
        state["groups"] = {
            name: [group["state"], group["lazyPreempted"]]
            for name, group in after["groups"].items()
        }
    return outcome, state


_COMPARED = ("outcome", "node", "leafCells", "chain", "gang", "allVictims", "someVictims", "cells")


def compare(what: str, ours: Any, theirs: Any) -> None:
    """Raise where the records say something else; what they do not say is not compared."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if what.endswith(("groups", "free")) and ours.keys() != theirs.keys():
            raise Mismatch(f"{what}: {sorted(ours)}, recorded was {sorted(theirs)}")
        for key, value in theirs.items():
            compare(f"{what} {key}", ours.get(key), value)
    elif isinstance(theirs, list) and isinstance(ours, list) and "groups" in what:
        for index, value in enumerate(theirs):
            compare(f"{what}[{index}]", ours[index], value)
    elif what.endswith("someVictims"):
        # HiveD tells those of one node, by chance.
        compare(f"{what} known", sorted(set(ours or ()) & set(theirs)), sorted(theirs))
    elif what.endswith("allVictims"):
        compare(f"{what} sorted", sorted(ours or ()), sorted(theirs))
    elif ours != theirs:
        raise Mismatch(f"{what} is {ours}, recorded was {theirs}")


def run(scenario: Json) -> str:
    """Replay one scenario; returns what is to be said of it, or raises `Mismatch`."""
    steps = f"{len(scenario['steps'])} steps"
    try:
        for _ in follow(scenario, Cells):
            pass
    except Mismatch as ours:
        broken = _broken(scenario, ours)
        return f"{steps}, from step {ours.step} on only with HiveD's books; {broken}"
    return steps


def _broken(scenario: Json, ours: Mismatch) -> str:
    """Where HiveD's books break before ours differ, and how; raises if that is not the reason."""
    found = None
    try:
        for number, cells in enumerate(follow(scenario, HivedCells), 1):
            said = imbalance(cells) if found is None and number <= ours.step else None
            if said is not None:
                found = f"they break at step {number}: {said}"
    except Mismatch:
        raise ours from None
    if found is None:
        raise ours
    return found


def follow(scenario: Json, kind: type[Cells]) -> Iterator[Cells]:
    """Replay on cells of a kind: those after each step that went as recorded."""
    refused = scenario.get("initOutcome", "ok") != "ok"
    try:
        replay = Replay(scenario["config"], kind)
    except UserError as error:
        if refused:
            return
        raise Mismatch(f"refused at start: {error}") from None
    if refused:
        raise Mismatch("was not refused at start")
    for number, step in enumerate(scenario["steps"], 1):
        try:
            outcome, state = recorded(step)
            compare("", replay.step(step), outcome)
            compare("state", replay.state(), state)
            replay.cells.validate()
        except (Mismatch, *BROKEN) as error:
            who = f"{step.get('op')} {step.get('pod', step.get('node', ''))}".strip()
            raise Mismatch(f"step {number} ({who}): {_said(error)}", number) from error
        yield replay.cells


def _said(error: Exception) -> str:
    """What went wrong, on one line."""
    kind = "" if isinstance(error, Mismatch) else f"{type(error).__name__} "
    return " ".join(f"{kind}{error}".split())


def outcomes(path: Path) -> Iterator[tuple[str, str | Mismatch]]:
    """The name of each scenario with its steps, or what went wrong; a file that is none fails."""
    name, number = path.name, 0
    try:
        for number, scenario in enumerate(scenarios(path), 1):
            name = str(scenario.get("id", f"{path.name} {number}"))
            try:
                yield name, run(scenario)
            except Mismatch as error:
                yield name, error
            name = f"{path.name} after {name}"
        if not number:
            yield name, Mismatch("holds no scenario")
    except OSError as error:
        yield name, Mismatch(f"cannot be read ({error.strerror or error})")
    except (EOFError, zlib.error, *BROKEN) as error:
        yield name, Mismatch(f"not a scenario: {_said(error)}")


def main(paths: list[str]) -> int:
    """Replay all scenarios of the files; 1 if any failed, 2 if there are no files."""
    if not paths:
        print(USAGE, file=sys.stderr)
        return 2
    passed = failed = 0
    for path in paths:
        for name, outcome in outcomes(Path(path)):
            if isinstance(outcome, Mismatch):
                failed += 1
                print(f"FAILED {name}: {outcome}")
            else:
                passed += 1
                print(f"passed {name}: {outcome}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
