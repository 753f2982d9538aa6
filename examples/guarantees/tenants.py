"""Who waits longer than in a private cluster: number quotas against cells, policy by policy.

    python examples/guarantees/tenants.py TRACE --cluster 352x8 --tenants vc_nodes.csv
    python examples/guarantees/tenants.py --quick      # a minute: a made-up workload

Every policy runs four times: each tenant alone on a cluster of its own (private), all together by
number of GPUs (shares), and twice on cells, where each fourth job borrows what owners leave idle:
with stops that take no time, and with stops that take `--stop-cost`. Excess is the mean wait of a
tenant's own jobs above that in its private cluster. Restarts are free. `--shrink 8` takes an eighth
of everybody's nodes; `--each` prints the tenants one by one.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dovetail.metrics.summary import summarise
from dovetail.model.errors import UserError
from dovetail.orderings import BUILTIN
from dovetail.recipes import RECIPES
from dovetail.simulator.experiment import Replay, replay
from dovetail.traces.loader import load
from dovetail.traces.writer import write

QUICK = """[[tenants]]
name = "tenant0"
nodes = 2
gpus = [4]
[[tenants]]
name = "tenant1"
nodes = 3
[[tenants]]
name = "tenant2"
nodes = 1
gpus = [4, 4]
"""
HEAD = (
    f"{'':22}{'longer by number':>25} {'cells':>7} {'+ s at stop cost':>16}"
    f" {'mean JCT in hours':>24} {'GPU use in %':>21}\n"
    f"{'policy':22}{'tenants':>8} {'the worst, in s':>16} {'longer':>7} {'tenant':>8}{'job':>8}"
    f" {'private':>8}{'shares':>8}{'cells':>8} {'priv.':>7}{'shares':>7}{'cells':>7}"
)

Result = dict[str, Any]


class Inputs(NamedTuple):
    """The files of one comparison."""

    own: str
    #: the same jobs, some of which borrow
    lent: str
    tenants: str


def main() -> None:
    """Run what was asked for and print a line a policy."""
    arguments = _arguments()
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        inputs = _inputs(arguments, Path(folder))
        for policy in arguments.policies or [*BUILTIN, *RECIPES]:
            try:
                results = _results(arguments, inputs, policy)
            except UserError as error:
                print(f"{policy:22}{error}")
                continue
            print(_line(policy, results), flush=True)
            if arguments.each:
                _print_tenants(results)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", nargs="?")
    parser.add_argument("--cluster", default="8x8")
    parser.add_argument("--tenants", help="what tenants own: TOML, or CSV of NAME,NODES")
    parser.add_argument(
        "--shrink", type=int, default=1, help="take so manieth of the nodes of a CSV"
    )
    parser.add_argument("--start")
    parser.add_argument("--stop")
    parser.add_argument("--lent", type=int, default=4, help="each so manieth job borrows")
    parser.add_argument("--stop-cost", type=float, default=30.0)
    parser.add_argument("--policies", nargs="*", help="all orderings and recipes unless given")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


def _inputs(arguments: argparse.Namespace, folder: Path) -> Inputs:
    """The trace, the same with borrowers, and the file of tenants."""
    source, tenants = arguments.trace, arguments.tenants
    if arguments.quick:
        source, tenants = "generate:philly,jobs=600,load=0.9", str(folder / "tenants.toml")
        Path(tenants).write_text(QUICK)
    elif arguments.shrink > 1:
        tenants = _shrunk(Path(tenants), arguments.shrink, folder / "tenants.csv")
    gpus = sum(int(n) * int(g) for n, g in [arguments.cluster.split(",")[0].split("x")])
    loaded = load(source, start=arguments.start, stop=arguments.stop, cluster_gpus=gpus)
    if arguments.quick:
        jobs = [
            j._replace(spec=j.spec._replace(tenant=f"tenant{j.spec.id % 3}")) for j in loaded.jobs
        ]
        loaded = replace(loaded, jobs=jobs)
    lent = [
        job if job.spec.id % arguments.lent else job._replace(spec=job.spec._replace(priority=-1.0))
        for job in loaded.jobs
    ]
    inputs = Inputs(str(folder / "own.csv"), str(folder / "lent.csv"), tenants)
    write(loaded, inputs.own)
    write(replace(loaded, jobs=lent), inputs.lent)
    return inputs


def _shrunk(source: Path, by: int, target: Path) -> str:
    head, *lines = source.read_text().splitlines()
    pairs = (line.rsplit(",", 1) for line in lines if line.strip())
    target.write_text("\n".join([head, *(f"{n},{max(1, int(c) // by)}" for n, c in pairs)]) + "\n")
    return str(target)


def _results(arguments: argparse.Namespace, inputs: Inputs, policy: str) -> dict[str, Result]:
    def run(kind: str, trace: str, stop_cost: float = 0.0) -> Result:
        settings = Replay(
            trace,
            arguments.cluster,
            policy,
            placement="consolidated:fit=best",
            tenancy=f"{kind}:{inputs.tenants}",
            restart_cost=0.0,
            stop_cost=stop_cost,
        )
        return summarise(replay(settings))

    return {
        "private": run("private", inputs.own),
        "shares": run("shares", inputs.own),
        "cells": run("cells", inputs.lent),
        "stops": run("cells", inputs.lent, arguments.stop_cost),
    }


def _line(policy: str, results: dict[str, Result]) -> str:
    shares, cells, stops = (_compared(results[kind]) for kind in ("shares", "cells", "stops"))
    longer = [each for each in shares if each["excess_wait"] > 0]
    worst = max(shares, key=lambda each: each["excess_wait"])
    ratio = f"{worst['private_wait']:.0f} → {worst['private_wait'] + worst['excess_wait']:.0f}"
    late = [each for each in cells if each["worst_excess"] > 0]
    kinds = [results[kind] for kind in ("private", "shares", "cells")]
    hours = "".join(f"{result['jct']['mean'] / 3600:8.1f}" for result in kinds)
    use = "".join(f"{100 * result['utilisation']['gpu']:7.1f}" for result in kinds)
    return (
        f"{policy:22}{len(longer):4} of {len(shares):2} {ratio:>15} {len(late) or 'none':>7}"
        f" {max(each['excess_wait'] for each in stops):8.1f}"
        f"{max(each['worst_excess'] for each in stops):8.0f} {hours} {use}"
    )


def _compared(result: Result) -> list[Result]:
    """What is known of tenants that have jobs of their own."""
    return [each for each in result["tenants"].values() if "excess_wait" in each]


def _print_tenants(results: dict[str, Result]) -> None:
    for tenant, alone in sorted(results["shares"]["tenants"].items()):
        if "excess_wait" in alone:
            excess = [results[kind]["tenants"][tenant] for kind in ("shares", "cells", "stops")]
            values = "".join(f"{each.get('excess_wait', 0.0):+12.1f}" for each in excess)
            print(f"  {tenant:20}{alone['private_wait']:12.1f}{values}")


if __name__ == "__main__":
    main()
