"""A controller that will be killed: its engine keeps what it knows in files, as real ones do."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from dovetail.controller.commands import Submit
from dovetail.controller.journal import Journal
from dovetail.controller.loop import Controller
from dovetail.controller.parts import Parts, composer
from dovetail.controller.store import Store
from dovetail.controller.submission import Submission
from dovetail.executors.protocol import Attempt, Ended, Executor, Launch, Report, Running
from dovetail.model.allocation import Allocation
from dovetail.model.cluster import Capabilities, Node
from dovetail.model.request import gang

LENGTH = 0.03
JOBS = 60


class FileExecutor(Executor):
    """An attempt is a file with the moment it began; it ends a little later by itself."""

    nodes: Sequence[Node] = (Node("n0", 4),)
    capabilities: Mapping[str, Capabilities] = {"gpu": Capabilities(start_latency=0.0)}

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "attempts"
        self.folder.mkdir(exist_ok=True)
        self.mine: dict[Attempt, Allocation] = {}
        self.told: set[Attempt] = set()

    def _file(self, attempt: Attempt) -> Path:
        return self.folder / f"{attempt.job}-{attempt.number}"

    def start(self, launch: Launch) -> None:
        assert not self._file(launch.attempt).exists(), "started twice"
        self._file(launch.attempt).write_text(str(time.monotonic()))
        self.mine[launch.attempt] = launch.allocation

    def stop(self, attempt: Attempt, grace: float) -> None:
        raise AssertionError("nobody is stopped here")

    suspend = resume = resize = stop

    def adopt(self, launch: Launch) -> bool:
        if not self._file(launch.attempt).exists():
            return False
        self.mine[launch.attempt] = launch.allocation
        return True

    def reports(self) -> list[Report]:
        said: list[Report] = []
        for attempt, allocation in list(self.mine.items()):
            if attempt not in self.told:
                self.told.add(attempt)
                said.append(Running(attempt, allocation))
            began = float(self._file(attempt).read_text() or "0")
            if time.monotonic() - began > LENGTH:
                del self.mine[attempt]
                said.append(Ended(attempt, 0))
        return said


def main(folder: Path, finish: bool) -> None:
    executor = FileExecutor(folder)
    journal = Journal(Store(f"sqlite:///{folder / 'dovetail.db'}"), every=5)
    controller = Controller(composer(Parts(), executor), journal, executor)
    print("ready", flush=True)  # noqa: T201
    missing = JOBS + 1 - controller.roster.next_id
    for _ in range(0, missing, 5):
        controller.post(Submit((Submission(("true",), gang(1)),) * 5))
        controller.turn()
    while controller.scheduler.jobs or not finish:
        controller.turn()
        time.sleep(0.001)
    controller.scheduler.validate()


if __name__ == "__main__":
    main(Path(sys.argv[1]), len(sys.argv) > 2)
