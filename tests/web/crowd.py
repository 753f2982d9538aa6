"""A real controller with many fake machines and many jobs, served until its parent goes.

Hours of its life pass in a moment first, so that there is something to look at. Run as a program:
`crowd.py FOLDER CLUSTER JOBS HOURS`; its one line of output is a JSON object with port and token.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "controller"))

from virtual import Site

from dovetail.controller.api.app import make_app
from dovetail.controller.api.listening import Listening
from dovetail.controller.api.people import Doorkeeper
from dovetail.controller.api.service import Service
from dovetail.controller.api.serving import serve
from dovetail.controller.commands import Drain, Submit
from dovetail.controller.loop import Controller
from dovetail.controller.measuring import Sampler
from dovetail.controller.parts import Parts
from dovetail.controller.shadowing import Pace, Shadow
from dovetail.controller.submission import Submission
from dovetail.controller.tokens import Tokens
from dovetail.executors.fake import FakeExecutor
from dovetail.executors.protocol import Attempt, Usage
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.web.serving import Dashboard

HOSTILE = "<img src=x onerror=alert(1)>"
NAMES = ("resnet50", "bert-large", "llama-sft", "whisper-tune", "vit-b16", "eval-suite", "sweep-lr")
USERS = ("amira", "bela", "chiara", "dmitri", "emeka", "fatou", "goran", "hanna", "ines")
FEW = 1000
"""Jobs up to which another policy looks on: with more, the hours before would take too long."""
LIVES = 600.0
"""Seconds this serves at most."""


class Passing:
    """Time that jumps while it is told to, and then passes by itself."""

    def __init__(self, hours: float) -> None:
        self.now = 0.0
        self.jump = 0.0
        self._since: float | None = None
        self._begin = time.time() - 3600 * hours  # noqa: TID251

    def go(self) -> None:
        self._since = time.monotonic()

    def monotonic(self) -> float:
        return self.now + (0.0 if self._since is None else time.monotonic() - self._since)

    def wall(self) -> float:
        return self._begin + self.monotonic()

    def boot(self) -> str:
        return "crowd"


class Measuring(FakeExecutor):
    """Fake machines that tell what attempts take: each a steady share of what it was granted."""

    def usage(self, attempt: Attempt) -> Usage | None:
        known = self.machine.known.get(attempt)
        if known is None or known.over is not None:
            return None
        held, share = known.launch.allocation, 0.3 + 0.65 * (attempt.job % 11) / 10
        ran = self.machine.clock() - known.begun
        return Usage(share * ran * held.cpu / 1000, int(share * held.memory * 2**20))


class Crowd:
    """The site, its people and what they want."""

    def __init__(self, folder: Path, cluster: str, jobs: int, hours: float) -> None:
        self.site = Site(folder, cluster, Parts("fifo:skip=true"), 0.5, oracle=False)
        self.site.clock = self.clock = Passing(hours)  # type: ignore[assignment]
        self.site.machine.clock = self.clock.monotonic
        self.controller: Controller = self.site.open(executor=Measuring(self.site.machine))
        self.jobs, self.hours = jobs, hours
        self.chance = random.Random(5)

    def submit(self, count: int) -> None:
        first = self.controller.roster.next_id
        wanted = [self._submission(number) for number in range(first, first + count)]
        self.controller.post(Submit(tuple(wanted)))

    def _submission(self, number: int) -> Submission:
        chance = self.chance
        gpus = chance.choices((1, 2, 4, 8), (5, 3, 4, 2))[0]
        name = HOSTILE if number % 97 == 5 else f"{chance.choice(NAMES)}-{number % 40}"
        spec = JobSpec(number, name, self.clock.monotonic(), gang(gpus))
        length = chance.lognormvariate(8.4, 0.9)
        self.site.machine.tell(TraceJob(spec, length))
        believed, owner = length * chance.uniform(0.9, 1.6), chance.choice(USERS)
        return Submission(("train",), gang(gpus), name, owner=owner, estimate=believed)

    def shadow(self) -> Shadow | None:
        """Somebody who would have shorter jobs go first."""
        if self.jobs > FEW:
            return None
        pace = Pace(clock=self.clock.monotonic)
        return Shadow(self.controller, Parts("srtf"), self.site.parts.policy, pace)

    def live(self, sampler: Sampler, shadow: Shadow | None) -> None:
        """The hours before anybody looks."""
        steps = max(1, round(60 * self.hours))
        for step in range(steps):
            self.clock.now = 60.0 * step
            lot = self.jobs * (step + 1) // steps - self.jobs * step // steps
            self.submit(lot)
            self.controller.turn()
            if shadow is not None:
                shadow.consider()
            if step % 2 == 0:
                asyncio.run(sampler.sample())
        drained = self.controller.executor.nodes[-1].name
        self.controller.post(Drain(drained))
        self.controller.turn()
        self.clock.go()


def main(folder: str, cluster: str, jobs: str, hours: str) -> None:
    crowd = Crowd(Path(folder), cluster, int(jobs), float(hours))
    tokens = Tokens(crowd.controller.journal.store)
    service = Service(crowd.controller, tokens, crowd.site.parts.policy)
    shadow = crowd.shadow()
    if shadow is not None:
        service.keep_in_shadow(shadow)
    app = make_app(service, Doorkeeper(tokens, crowd.clock.wall))
    crowd.live(app.state.sampler, shadow)
    token = tokens.make("amira", "admin", crowd.clock.wall(), 86400)

    def ready(port: int | None) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, service.end)
        print(json.dumps({"port": port, "token": token}), flush=True)  # noqa: T201
        asyncio.get_running_loop().call_later(LIVES, service.end)

    asyncio.run(serve(service, Dashboard(app), Listening(Path(folder), port=0), ready))


if __name__ == "__main__":
    main(*sys.argv[1:])
