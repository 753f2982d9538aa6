"""What preemption is worth depends on what a restart costs: from nothing to four minutes."""

from dovetail.metrics.summary import summarise
from dovetail.simulator.experiment import Replay, replay


def mean_jct(policy: str, cost: float) -> float:
    """Seconds from submission to end, on average."""
    settings = Replay("generate:tiresias480", "15x4", policy, restart_cost=cost)
    mean: float = summarise(replay(settings))["jct"]["mean"]
    return mean


without = mean_jct("sjf:skip=true", 0)
print(f"sjf:skip=true never restarts a job: {without:.0f} s")
for cost in (0, 30, 60, 120, 240):
    line = [f"{policy} {mean_jct(policy, cost) / without:.2f}" for policy in ("srtf", "las")]
    print(f"restart {cost:3} s: mean JCT over that of sjf: {', '.join(line)}")
