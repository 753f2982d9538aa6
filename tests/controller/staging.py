"""A controller on virtual time with one small node: people ask, time passes, people look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from virtual import Site

from dovetail.controller.commands import Command, Submit
from dovetail.controller.parts import Parts
from dovetail.controller.reading import describe
from dovetail.controller.submission import Submission
from dovetail.model.costs import Costs
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob


class Stage:
    """One node of four GPUs, where starts take a second and stops two."""

    def __init__(
        self, folder: Path, policy: str = "fifo", latency: float | None = 1.0, **more: Any
    ) -> None:
        machines = more.pop("cluster", "1x4")
        self.site = Site(folder, machines, self.parts(policy), latency, oracle=False, **more)
        self.controller = self.site.open()

    @staticmethod
    def parts(policy: str) -> Parts:
        return Parts(policy, costs=Costs(restart=0.0, stop=2.0))

    def submit(self, gpus: int = 4, length: float = 10.0, **more: Any) -> int:
        number = self.controller.roster.next_id
        self.know(number, gpus, length, more.pop("breaks", ()))
        more.setdefault("estimate", length)
        wanted = Submission(("train",), gang(gpus), f"j{number}", **more)
        assert self.ask(Submit((wanted,))).jobs == (number,)
        return number

    def know(self, number: int, gpus: int, length: float, breaks: tuple[float, ...] = ()) -> None:
        """Tell the machine how long a job will truly run."""
        spec = JobSpec(number, f"j{number}", self.site.clock.now, gang(gpus))
        self.site.machine.tell(TraceJob(spec, length, breaks))

    def ask(self, command: Command) -> Any:
        answer = self.controller.post(command)
        self.controller.turn()
        return answer.result(0)

    def until(self, moment: float) -> None:
        """Let time pass in small steps, as a live loop would."""
        clock = self.site.clock
        while clock.now < moment:
            clock.now = min(moment, clock.now + 0.5)
            self.controller.turn()

    def restart(self, **more: Any) -> None:
        self.site.close()
        self.controller = self.site.open(**more)
        self.controller.turn()

    def state(self, number: int) -> str:
        return describe(self.controller, number).state

    def why(self, number: int) -> str:
        return describe(self.controller, number).reason
