"""The controller as people meet it: HTTP on a UNIX socket, durable data base, fake machines.

The controller is a process of its own. Rates are on the clock, the disk and the client included;
`cpu_ms` is what the controller's process used.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from dovetail.controller.api.app import make_app
from dovetail.controller.api.listening import Listening
from dovetail.controller.api.serving import serve
from dovetail.controller.opening import Opening, opened
from dovetail.controller.parts import Parts
from dovetail.executors.fake import FakeExecutor, Machine
from dovetail.live import Box, connect
from dovetail.live.finding import SOCKET
from dovetail.model.costs import Costs
from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.simulator.spec import parse_cluster
from dovetail.speed.locality import Locality
from live import PACE

BULK = 500
"""Tasks in one request."""
LINES = 8
"""People who submit at the same time."""
ENVIRONMENT = {f"VARIABLE_{number}": f"/some/folder/of/somebody/{number}" for number in range(20)}


class Long(dict[int, TraceJob]):
    """Jobs that run longer than any measurement."""

    def __missing__(self, job: int) -> TraceJob:
        return TraceJob(JobSpec(job, f"j{job}", 0.0, gang(1)), 1e6)


def host(folder: Path, cluster: str, policy: str) -> None:
    """Be a controller until told to end."""

    def engine(_: Path) -> FakeExecutor:
        machines = parse_cluster(cluster)
        machine = Machine(machines, Locality(), Costs(), time.monotonic, latency=PACE)
        machine.truths = Long()
        return FakeExecutor(machine)

    with opened(Opening(folder, Parts(policy)), engine) as (service, keeper):
        app = make_app(service, keeper)
        asyncio.run(serve(service, app, Listening(folder), lambda _: None))


class Served:
    """A controller elsewhere, and how much CPU it has used."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self._process = psutil.Process(process.pid)

    def box(self) -> Box:
        return connect(self.folder)

    def cpu(self) -> float:
        used = self._process.cpu_times()
        return float(used.user + used.system)

    def measure(self, work: Callable[[], object], count: int) -> dict[str, float]:
        begun, used = time.perf_counter(), self.cpu()
        work()
        clock, cpu = time.perf_counter() - begun, self.cpu() - used
        return {
            "rate": round(count / clock),
            "ms": round(1e3 * clock / count, 3),
            "cpu_ms": round(1e3 * cpu / count, 3),
        }


@contextmanager
def served(cluster: str, policy: str) -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name:
        folder = Path(name)
        process = subprocess.Popen([sys.executable, __file__, name, cluster, policy])
        try:
            while not (folder / SOCKET).exists():
                time.sleep(0.02)
            yield Served(folder, process)
            with connect(folder) as box:
                box.end()
        finally:
            process.wait(60)


def tasks(count: int, gpus: int = 1) -> list[dict[str, Any]]:
    plain = {"command": ["python", "train.py"], "environment": ENVIRONMENT, "gpus": gpus}
    return [{**plain, "name": f"j{number}", "estimate": 3600} for number in range(count)]


def fill(box: Box, jobs: int, gpus: int = 1) -> None:
    for first in range(0, jobs, BULK):
        box.submit_all(tasks(min(BULK, jobs - first), gpus))


def bulk(cluster: str, policy: str, jobs: int) -> dict[str, float]:
    """Submission, hundreds in one request."""
    with served(cluster, policy) as here, here.box() as box:
        return here.measure(lambda: fill(box, jobs), jobs)


def single(cluster: str, policy: str, jobs: int) -> dict[str, float]:
    """Submission one by one, by several people at the same time."""

    def submit(count: int) -> None:
        with here.box() as box:
            for _ in range(count):
                box.submit_all(tasks(1))

    with served(cluster, policy) as here, ThreadPoolExecutor(LINES) as people:
        return here.measure(lambda: list(people.map(submit, [jobs // LINES] * LINES)), jobs)


def ask(cluster: str, policy: str, jobs: int, full: int, times: int) -> dict[str, float]:
    """What it takes to say why a job waits, behind so many others on a full cluster.

    Then the whole queue with all reasons, and how long others wait for an answer meanwhile.
    """
    with served(cluster, policy) as here, here.box() as box:
        fill(box, full, gpus=8)
        fill(box, jobs)
        last = box.queue(after=full + jobs - 1)[-1].id
        took = [_clock(lambda: box.show(last)) for _ in range(times)]
        why = here.measure(lambda: [box.show(last) for _ in range(times)], times)
        longest, listing = _beside(here, lambda: box.queue(reasons=True))
        return {
            **why,
            "why_ms": round(1e3 * statistics.median(took), 1),
            "queue_ms": round(1e3 * listing),
            "blocked_ms": round(1e3 * longest),
        }


def _clock(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _beside(here: Served, work: Callable[[], object]) -> tuple[float, float]:
    """How long somebody else waits at most while something is done, and how long that takes."""
    waits, over = [0.0], threading.Event()

    def look() -> None:
        with here.box() as box:
            while not over.is_set():
                waits.append(_clock(box.about))

    other = threading.Thread(target=look)
    other.start()
    took = _clock(work)
    over.set()
    other.join()
    return max(waits), took


KINDS: dict[str, Callable[..., dict[str, float]]] = {
    "http-bulk": bulk,
    "http-single": single,
    "http-ask": ask,
}

if __name__ == "__main__":
    try:
        host(Path(sys.argv[1]), *sys.argv[2:4])
    except UserError as error:
        sys.exit(json.dumps(str(error)))
