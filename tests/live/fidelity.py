"""Real jobs on this machine, and a simulation of the same submissions from what the journal says.

The jobs sleep: they come to an end by the clock and not by a share of a busy processor, save how
far they are when asked to stop, and go on from there. What a start and a stop cost is measured in
the same run, and is all that the simulation is told besides submissions and lengths.
"""

from __future__ import annotations

import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from dovetail.controller.commands import Submit
from dovetail.controller.journal import Journal
from dovetail.controller.loop import Controller
from dovetail.controller.opening import Opening, opened
from dovetail.controller.parts import Parts
from dovetail.controller.submission import Submission
from dovetail.executors.local import Local, detect
from dovetail.metrics.summary import summarise
from dovetail.model.costs import Costs
from dovetail.model.event import Finished, Started, Stopped, Submitted
from dovetail.model.plan import Start, Stop
from dovetail.model.request import gang
from dovetail.simulator.experiment import Replay, replay

SLEEPER = Path(__file__).parent / "sleeper.py"
GPUS = 4
MEMORY = 64
"""MiB of a GPU's share: what others use of the machine's memory must not matter."""
PACE = 0.02
"""Seconds between two turns of the controller."""
BELIEVED = Costs(restart=0.3, stop=0.1)
"""What the policy is told that interruptions cost."""


@dataclass(frozen=True)
class Sleeper:
    """A job: when it comes, what it asks for, how long it takes in all."""

    at: float
    gpus: int
    length: float


def sleepers(count: int, seed: int) -> list[Sleeper]:
    """Jobs that come a little faster than they can be served."""
    chance, at, made = random.Random(seed), 0.0, []
    for _ in range(count):
        gpus = chance.choices((1, 2, 4), (6, 3, 1))[0]
        made.append(Sleeper(at, gpus, round(chance.uniform(1.0, 4.0), 2)))
        at += chance.expovariate(1 / 0.7)
    return made


@dataclass(frozen=True)
class Lived:
    """What a journal says of a run, in seconds."""

    #: mean from submission to end
    jct: float
    #: from the decision to start until the job works, and from its end until that is known
    start: float
    #: from the decision to stop until the devices are free
    stop: float
    stops: int
    submits: list[float]


def live(folder: Path, policy: str, jobs: list[Sleeper], limit: float) -> Lived:
    """Run the jobs for real."""
    parts = Parts(policy, predictor="declared", costs=BELIEVED)
    with opened(Opening(folder, parts), _engine) as (service, _):
        _drive(service.controller, jobs, limit)
        return lived(service.controller.journal, [job.length for job in jobs])


def _engine(folder: Path) -> Local:
    return Local(folder, detect(GPUS))


def _drive(controller: Controller, jobs: list[Sleeper], limit: float) -> None:
    ahead, begin = list(jobs), time.monotonic()
    while ahead or controller.roster:
        now = time.monotonic() - begin
        assert now < limit, "the jobs never end"
        while ahead and ahead[0].at <= now:
            controller.post(Submit((_submission(ahead.pop(0)),)))
        controller.turn()
        time.sleep(PACE)


def _submission(job: Sleeper) -> Submission:
    command = (sys.executable, "-I", "-S", str(SLEEPER), str(job.length))
    return Submission(command, gang(job.gpus, memory=MEMORY), estimate=job.length, resumable=True)


def lived(journal: Journal, lengths: list[float]) -> Lived:
    """Read off a journal what came of jobs of these lengths."""
    submitted: dict[int, float] = {}
    asked: dict[int, float] = {}
    began: dict[int, float] = {}
    worked: dict[int, float] = dict.fromkeys(range(1, len(lengths) + 1), 0.0)
    starts: dict[int, int] = dict.fromkeys(worked, 0)
    delays, stops, jcts = [], [], []
    for batch in journal.recorded(0):
        for event in batch.events:
            if isinstance(event, Submitted):
                submitted[event.spec.id] = batch.now
            elif isinstance(event, Started):
                delays.append(batch.now - asked[event.job])
                began[event.job], starts[event.job] = batch.now, starts[event.job] + 1
            elif isinstance(event, Stopped | Finished):
                worked[event.job] += batch.now - began.get(event.job, batch.now)
                if isinstance(event, Stopped):
                    stops.append(batch.now - asked[event.job])
                else:
                    jcts.append(batch.now - submitted[event.job])
        for action in batch.plan.actions:
            if (isinstance(action, Start) and not action.awaits) or isinstance(action, Stop):
                asked[action.job] = batch.now
    runs = sum(starts.values())
    beyond = (sum(worked.values()) - sum(lengths) - sum(stops)) / runs
    return Lived(
        mean(jcts),
        mean(delays) + max(0.0, beyond),
        mean(stops) if stops else 0.0,
        len(stops),
        [submitted[number] for number in sorted(submitted)],
    )


def simulated(folder: Path, policy: str, jobs: list[Sleeper], found: Lived) -> float:
    """The mean completion time that the simulator computes for the same submissions."""
    rows = zip(found.submits, jobs, strict=True)
    lines = [f"{n},{at},{job.gpus},{job.length}" for n, (at, job) in enumerate(rows, 1)]
    trace, cluster = folder / "jobs.csv", folder / "cluster.toml"
    trace.write_text("\n".join(["job_id,submit_time,gpus,duration", *lines]) + "\n")
    costs = f"first_start = {found.start}\nrestart = {found.start}\nstop = {found.stop}\n"
    cluster.write_text(f"[[nodes]]\ncount = 1\ngpus = {GPUS}\n\n[costs]\n{costs}")
    result = summarise(replay(Replay(str(trace), str(cluster), policy)))
    assert result["jobs"]["finished"] == len(jobs)
    return float(result["jct"]["mean"])
