"""The same jobs under two policies, round by round, each under a controller of its own."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from pathlib import Path
from statistics import mean

from dovetail.demo.machine import Used
from dovetail.demo.measuring import MEMORY, Known
from dovetail.demo.rounds import Order, Outcome, orders, play
from dovetail.demo.site import running
from dovetail.live import Box
from dovetail.model.live import Description
from dovetail.profiles import written

POLICIES = {"proportional": "fifo", "synergy": "synergy:order=fifo"}
"""What they are called, and what decides: the order is the same, the shares are not."""
STATED = {"proportional": {"memory": f"{MEMORY}G"}, "synergy": {}}
"""What tasks say of memory: an equal share of it may be more than others leave."""
PATIENCE = 40.0
"""Seconds a pair of rounds may take: where it takes longer, there is no other."""

Watch = Callable[[str, int, list[Description]], None]
"""Told the policy, the round and its jobs, again and again."""


@dataclass
class Contest:
    """What was measured, by policy and round."""

    wanted: Sequence[Order]
    engine: str = ""
    outcomes: dict[str, list[Outcome]] = field(default_factory=lambda: {n: [] for n in POLICIES})

    def jct(self, policy: str) -> list[float]:
        """Mean completion time of each round."""
        return [each.jct for each in self.outcomes[policy]]

    def makespan(self, policy: str) -> float:
        """Mean over the rounds."""
        return mean(each.makespan for each in self.outcomes[policy])

    def speed(self, policy: str, job: str) -> float:
        """Steps per second of a job, mean over the rounds."""
        return mean(each.speeds[job] for each in self.outcomes[policy])


def contest(found: Sequence[Known], used: Used, rounds: int, watch: Watch) -> Contest:
    """Play the rounds; all that was started is ended and all that was written is removed."""
    made = Contest(orders(found, used.share[0]))
    with tempfile.TemporaryDirectory(prefix="dovetail-demo-") as name, ExitStack() as stack:
        boxes = _boxes(Path(name), found, used, stack)
        made.engine = boxes["proportional"].about().engine
        for number in range(rounds):
            begin = time.monotonic()
            for policy, box in boxes.items():
                seen = partial(watch, policy, number)
                made.outcomes[policy].append(play(box, made.wanted, seen, STATED[policy]))
            if time.monotonic() - begin > PATIENCE:
                break
    return made


def _boxes(folder: Path, found: Sequence[Known], used: Used, stack: ExitStack) -> dict[str, Box]:
    file = folder / "profiles.toml"
    most = ceil(used.cores)
    file.write_text(written({each.kind.name: each.profile(most, used.share) for each in found}))
    options = ["--gpus", str(used.gpus), "--profiles", str(file)]
    return {
        name: stack.enter_context(running(folder / name, [*options, "--policy", policy]))
        for name, policy in POLICIES.items()
    }
