"""One workload under four policies: mean completion time, mean wait, GPU use."""

from dovetail.metrics.summary import summarise
from dovetail.simulator.experiment import Replay, replay

POLICIES = ("fifo", "fifo:backfill=easy", "sjf:skip=true", "srtf")

print(f"{'policy':20} {'mean JCT':>9} {'mean wait':>9} {'GPU use':>8}")
for policy in POLICIES:
    result = summarise(replay(Replay("generate:tiresias480", "15x4", policy)))
    jct, wait = result["jct"]["mean"], result["wait"]["mean"]
    print(f"{policy:20} {jct:8.0f}s {wait:8.0f}s {result['utilisation']['gpu']:8.1%}")
