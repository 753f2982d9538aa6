"""Who waits longer than in a private cluster: number quotas against cells, tenant by tenant.

    python examples/guarantees/tenants.py TRACE --cluster 352x8 --tenants vc_nodes.csv
    python examples/guarantees/tenants.py --quick      # seconds: a made-up workload

Every ordering runs three times: each tenant alone on a cluster of its own (private), all together
by number of GPUs (shares), and all together on cells. Excess is the mean wait of a tenant's own
jobs above that of its private cluster. With `--lent 5`, each fifth job is taken to run on what
owners leave idle, where there is lending; it is left out where there is none. Restarts and stops
are free unless `--stop-cost` says otherwise.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from dovetail.metrics.summary import summarise
from dovetail.simulator.experiment import Replay, replay
from dovetail.traces.loader import load
from dovetail.traces.writer import write

ORDERINGS = ["fifo", "fifo:skip=true", "sjf:skip=true", "srtf", "las:round=600"]
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


def main() -> None:
    """Run what was asked for and print a table an ordering."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        trace, tenants = _inputs(arguments, Path(folder))
        for ordering in arguments.orderings or ORDERINGS:
            _compare(arguments, trace, tenants, ordering)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", nargs="?")
    parser.add_argument("--cluster", default="8x8")
    parser.add_argument("--tenants", help="what tenants own: TOML, or CSV of NAME,NODES")
    parser.add_argument("--start")
    parser.add_argument("--stop")
    parser.add_argument("--lent", type=int, default=0, help="each so manieth job borrows")
    parser.add_argument("--stop-cost", type=float, default=0.0)
    parser.add_argument("--orderings", nargs="*")
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


def _inputs(arguments: argparse.Namespace, folder: Path) -> tuple[str, str]:
    """The trace with some jobs turned into borrowers, and the file of tenants."""
    source, tenants = arguments.trace, arguments.tenants
    if arguments.quick:
        source = "generate:philly,jobs=600,load=0.9"
        tenants = str(folder / "tenants.toml")
        Path(tenants).write_text(QUICK)
    gpus = sum(int(n) * int(g) for n, g in [arguments.cluster.split(",")[0].split("x")])
    loaded = load(source, start=arguments.start, stop=arguments.stop, cluster_gpus=gpus)
    jobs = []
    for job in loaded.jobs:
        spec = job.spec
        if arguments.quick:
            spec = spec._replace(tenant=f"tenant{spec.id % 3}")
        if arguments.lent and spec.id % arguments.lent == 0:
            spec = spec._replace(priority=-1.0)
        jobs.append(job._replace(spec=spec))
    write(replace(loaded, jobs=jobs), str(folder / "jobs.csv"))
    return str(folder / "jobs.csv"), tenants


def _compare(arguments: argparse.Namespace, trace: str, tenants: str, ordering: str) -> None:
    runs = {
        kind: replay(
            Replay(
                trace,
                arguments.cluster,
                ordering,
                placement="consolidated:fit=best",
                tenancy=f"{kind}:{tenants}",
                restart_cost=0.0,
                stop_cost=arguments.stop_cost,
            )
        )
        for kind in ("private", "shares", "cells")
    }
    print(f"\n{ordering}")
    head = ["jobs", "private", "shares", "excess", "cells", "excess"]
    print(f"  {'tenant':12}" + "".join(f" {word:>9}" for word in head))
    results = {kind: summarise(run) for kind, run in runs.items()}
    for tenant, alone in sorted(results["cells"]["tenants"].items()):
        if "private_wait" not in alone:
            continue
        row = [alone["private_wait"]]
        for kind in ("shares", "cells"):
            more = results[kind]["tenants"][tenant]["excess_wait"]
            row += [row[0] + more, more]
        jobs = results["private"]["tenants"][tenant]["finished"]
        print(f"  {tenant:12} {jobs:9}" + "".join(f" {value:9.1f}" for value in row))
    for kind, result in results.items():
        jct, use = result["jct"]["mean"], 100 * result["utilisation"]["gpu"]
        excess = [each.get("worst_excess", 0.0) for each in result["tenants"].values()]
        print(
            f"  {kind:8} {result['jobs']['finished']} jobs, mean JCT {jct:.1f} s, "
            f"GPU use {use:.1f} %, {result['preemptions']} preemptions, "
            f"worst excess of a job {max(excess):.1f} s"
        )


if __name__ == "__main__":
    main()
