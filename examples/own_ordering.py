"""An ordering of your own, in the program that tries it: widest first, then arrival."""

from dataclasses import dataclass

from dovetail.core.ordering import Ordering
from dovetail.core.view import View
from dovetail.metrics.summary import summarise
from dovetail.model.job import Job
from dovetail.simulator.experiment import Replay, replay


@dataclass(frozen=True)
class WidestFirst(Ordering):
    """Most GPUs first; ties fall by submit time, as they always do."""

    def key(self, job: Job, view: View) -> float:
        """Smaller goes first, so the size is turned round."""
        return -job.spec.request.gpus


if __name__ == "__main__":
    for policy in ("smallest-first", "fifo", f"{__file__}:WidestFirst"):
        result = summarise(replay(Replay("generate:tiresias480", "15x4", policy)))
        print(f"{policy.rpartition(':')[2]:15} mean JCT {result['jct']['mean']:8.1f} s")
