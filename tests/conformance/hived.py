"""Replays recorded HiveD scenarios on our cells, step by step: outcome, placement, state.

`python tests/conformance/hived.py FILE…` takes scenario files (.json) and recorded ones (.jsonl,
plain or .gz) and prints one line per scenario, then how many passed and failed. The state is
validated after every step as well.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dovetail.model.errors import UserError
from dovetail.tenancy.cells.cell import FREE, Physical
from dovetail.tenancy.cells.commands import Ask, Break, Go, Leave, Preempt, Repair, Sit, Withdraw
from dovetail.tenancy.cells.groups import Gang, Group
from dovetail.tenancy.cells.hived import layout_of
from dovetail.tenancy.cells.state import Cells

Json = dict[str, Any]


class Mismatch(Exception):
    """A step did not go as recorded."""


def scenarios(path: Path) -> Iterator[Json]:
    """All scenarios of a file."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as file:
        if path.suffix == ".json":
            yield json.load(file)
        else:
            yield from (json.loads(line) for line in file if line.strip())


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

    def __init__(self, scenario: Json) -> None:
        self.cells = Cells(layout_of(scenario["config"]))
        self._report_nodes()
        #: group and command by pod
        self.group: dict[str, str] = {}
        self.sat: dict[str, Sit] = {}

    def _report_nodes(self) -> None:
        """Begin as the records do: with all nodes bad, until one by one reports."""
        nodes = [node for levels in self.cells.forest.physical.values() for node in _nodes(levels)]
        for node in nodes:
            self.cells.apply(Break(node))
        for node in nodes:
            self.cells.apply(Repair(node))

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
                self.cells = self.cells.reconfigured(layout_of(step["config"]))
            case "leafCellStates":
                return {"outcome": "ok", "cells": self.leaf_states(step["observed"]["cells"])}
        return {"outcome": "ok"}

    def schedule(self, step: Json) -> Json:
        gang, pod, size = gang_of(step["spec"]), step["pod"], step["spec"]["leafCellNumber"]
        nodes = step.get("suggestedNodes")
        suggested = None if nodes is None else frozenset(nodes)
        try:
            answer = self.cells.apply(
                Ask(pod, gang, size, suggested, step["phase"] == "Preempting")
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
            return {"outcome": "preempt", "allVictims": sorted(answer.victims)}
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


_COMPARED = ("outcome", "node", "leafCells", "chain", "gang", "allVictims", "cells")


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
    elif what.endswith("allVictims"):
        compare(f"{what} sorted", sorted(ours or ()), sorted(theirs))
    elif ours != theirs:
        raise Mismatch(f"{what} is {ours}, recorded was {theirs}")


def run(scenario: Json) -> int:
    """Replay one scenario; returns the number of steps, or raises `Mismatch`."""
    refused = scenario.get("initOutcome", "ok") != "ok"
    try:
        replay = Replay(scenario)
    except UserError as error:
        if refused:
            return 0
        raise Mismatch(f"refused at start: {error}") from None
    if refused:
        raise Mismatch("was not refused at start")
    for number, step in enumerate(scenario["steps"], 1):
        try:
            outcome, state = recorded(step)
            compare("", replay.step(step), outcome)
            compare("state", replay.state(), state)
            replay.cells.validate()
        except (Mismatch, AssertionError) as error:
            raise Mismatch(
                f"step {number} ({step['op']} {step.get('pod', '')}): {error}"
            ) from error
    return len(scenario["steps"])


def main(paths: list[str]) -> int:
    """Replay all scenarios of the files; 1 if any failed."""
    passed = failed = 0
    for path in paths:
        for scenario in scenarios(Path(path)):
            try:
                steps = run(scenario)
            except Mismatch as error:
                failed += 1
                print(f"FAILED {scenario['id']}: {error}")
            else:
                passed += 1
                print(f"passed {scenario['id']}: {steps} steps")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
