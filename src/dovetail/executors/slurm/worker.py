"""The thread that talks to Slurm, so that nobody else has to wait for it.

It owns all runs. Orders come in through one queue and reports leave through another; there are no
locks. Between orders it asks Slurm one question an interval, whatever the number of jobs: mostly
about jobs, now and then about nodes.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread

from dovetail.executors.local.surroundings import common
from dovetail.executors.protocol import Attempt, Ended, Fault, Launch, Report, Running
from dovetail.executors.slurm import batch
from dovetail.executors.slurm.closures import Closures
from dovetail.executors.slurm.commands import CommandLine, Refused, Trouble
from dovetail.executors.slurm.options import Options
from dovetail.executors.slurm.others import Others
from dovetail.executors.slurm.reading import SlurmJob, SlurmNode
from dovetail.executors.slurm.run import Deed, Run
from dovetail.executors.slurm.site import Site
from dovetail.model.allocation import NOTHING, Allocation
from dovetail.model.errors import UserError

log = logging.getLogger(__name__)

NODES_EVERY = 10
"""Every so many questions is one about nodes."""
LONGEST_REST = 60.0
"""Seconds between two tries of a submission."""

CANCELLING: dict[Deed, tuple[str, ...]] = {
    Deed.WITHDRAW: ("--state=PENDING",),
    # Without --full the script and its children are left out.
    Deed.TERMINATE: ("--full", "--signal=TERM"),
    Deed.KILL: (),
    Deed.PAUSE: ("--full", "--signal=STOP"),
    Deed.CONTINUE: ("--full", "--signal=CONT"),
}
"""What `scancel` is told, for many jobs at once."""

Order = Callable[[], None]


class Worker(Thread):
    """One controller's connection to Slurm."""

    def __init__(
        self,
        commands: CommandLine,
        site: Site,
        options: Options,
        closures: Closures,
        client: str,
        prefix: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(name="dovetail-slurm", daemon=True)
        self.reports: SimpleQueue[Report] = SimpleQueue()
        self.runs: dict[Attempt, Run] = {}
        #: what others hold, as of the last answer
        self.held_by_others: Allocation = NOTHING
        #: why Slurm could not be asked lately; empty: it could
        self.trouble = ""
        self._commands, self._site, self._options = commands, site, options
        self._closures, self._client, self._clock = closures, client, clock
        #: how the marks of our jobs begin
        self._prefix = prefix
        self._others = Others(site)
        self._orders: SimpleQueue[Order | None] = SimpleQueue()
        self._questions = 0
        self._next_question = 0.0

    def order(self, order: Order | None) -> None:
        """Have something done by the thread; None: have it end."""
        self._orders.put(order)

    def run(self) -> None:
        """Until it is ordered to end; what was ordered before is still done."""
        self._next_question = self._clock() + self._options.interval
        while True:
            try:
                if not self._round():
                    break
            except Exception as error:
                # Full disks and the like: whoever waits for reports must not wait for ever.
                log.exception("Slurm could not be looked after")
                self.trouble = str(error)
                self._next_question = self._clock() + self._options.interval
        self._pursue()

    def _round(self) -> bool:
        """Carry out orders, do what is due, ask if it is time; False: end."""
        if not self._obey():
            return False
        self._pursue()
        if self._clock() >= self._next_question:
            self._next_question = self._clock() + self._options.interval
            self._ask()
        return True

    def _obey(self) -> bool:
        """Carry out what is ordered until it is time for a question; False: end."""
        pause = max(self._next_question - self._clock(), 0.0)
        with suppress(Empty):
            order = self._orders.get(timeout=pause) if pause else self._orders.get_nowait()
            while order is not None:
                order()
                order = self._orders.get_nowait()
            return False
        return True

    # ---- orders ------------------------------------------------------------------------------

    def begin(self, launch: Launch, run: Run) -> None:
        """An attempt is to start."""
        if launch.attempt in self.runs:
            return
        try:
            batch.check(launch, self._site)
            # Either may be there, or half of it: a start that was cut short is made again.
            run.folder.make(launch.owner)
            run.folder.make_log(launch.owner)
        except (OSError, UserError) as error:
            self._refuse(run, error)
        else:
            self.follow(run)

    def follow(self, run: Run) -> None:
        """An attempt is there, or is to be submitted."""
        self.runs.setdefault(run.launch.attempt, run)

    def stop(self, attempt: Attempt, grace: float) -> None:
        """An attempt is to end."""
        if run := self.runs.get(attempt):
            run.ask_to_stop(self._clock(), grace)

    def suspend(self, attempt: Attempt) -> None:
        """An attempt is to stand still."""
        if run := self.runs.get(attempt):
            run.ask_to_pause()

    def resume(self, attempt: Attempt) -> None:
        """An attempt is to go on."""
        if run := self.runs.get(attempt):
            run.ask_to_continue()

    def insist(self, attempt: Attempt) -> None:
        """What runs cannot be changed: say what it has."""
        if run := self.runs.get(attempt):
            self.reports.put(Running(attempt, run.launch.allocation))

    # ---- what is due -------------------------------------------------------------------------

    def _pursue(self) -> None:
        due: dict[Deed, list[Run]] = defaultdict(list)
        for run in list(self.runs.values()):
            now = self._clock()
            deed = run.wants(now, self._options.patience)
            if deed is Deed.SUBMIT:
                self._submit(run, now)
            elif deed is not None:
                due[deed].append(run)
        for deed, runs in due.items():
            self._cancel(deed, runs)

    def _submit(self, run: Run, now: float) -> None:
        if run.stop is not None:
            self._end(run, Ended(run.launch.attempt, None, None, "stopped before it began"))
            return
        cpu = run.launch.allocation.parts[0].cpu
        own = common(run.launch, run.folder, self._client, cpu)
        call = batch.words(run.launch, run.mark, run.folder, self._site)
        try:
            said = self._commands.text(
                *call,
                given=batch.script(run.launch, run.folder),
                environment=batch.settings(own, self._options.surroundings()),
                owner=run.launch.owner,
            )
            run.id = int(said.strip().partition(";")[0])
        except (Trouble, ValueError) as error:
            # It may have arrived: only Slurm's next list of jobs can tell.
            self.trouble = str(error)
            run.in_doubt, run.tries = True, run.tries + 1
            run.not_before = now + min(LONGEST_REST, 2.0**run.tries)
        except Refused as error:
            self._refuse(run, error)

    def _cancel(self, deed: Deed, runs: Sequence[Run]) -> None:
        if deed is Deed.TERMINATE:
            for run in runs:
                run.folder.ask_for_checkpoint()
        try:
            self._commands.text("scancel", *CANCELLING[deed], *(str(run.id) for run in runs))
        except Trouble as error:
            self.trouble = str(error)
            return
        except Refused:
            # It ended meanwhile; what became of it is in the next answer.
            pass
        for run in runs:
            for report in run.did(deed):
                self.reports.put(report)

    def _refuse(self, run: Run, error: Exception) -> None:
        reason = f"could not start: {error}"
        self._end(run, Ended(run.launch.attempt, None, None, reason))

    def _end(self, run: Run, ended: Ended) -> None:
        run.over = True
        self.runs.pop(run.launch.attempt, None)
        self.reports.put(ended)

    # ---- what is the case --------------------------------------------------------------------

    def _ask(self) -> None:
        self._questions += 1
        try:
            if self._questions % NODES_EVERY:
                self.hear_jobs(self._site.questions.jobs())
            else:
                self.hear_nodes(self._site.questions.nodes())
            self.trouble = ""
        except (Trouble, Refused) as error:
            self.trouble = str(error)

    def hear_jobs(self, jobs: Sequence[SlurmJob]) -> None:
        """An answer on all jobs."""
        listed: dict[str, list[SlurmJob]] = defaultdict(list)
        for job in jobs:
            listed[job.comment].append(job)
        now = self._clock()
        for run in list(self.runs.values()):
            found = listed.pop(run.mark, [])
            for report in run.look(found, now):
                self.reports.put(report)
                if isinstance(report, Ended) and report.fault is Fault.ENGINE:
                    # A node may be gone: the next question is about them.
                    self._questions = NODES_EVERY - 1
            if run.over:
                del self.runs[run.launch.attempt]
            for stray in run.strays(found):
                with suppress(Trouble, Refused):
                    self._commands.text("scancel", "--state=PENDING", str(stray))
        self._end_late(
            [each for mark in listed if mark.startswith(self._prefix) for each in listed[mark]]
        )
        foreign = [job for each in listed.values() for job in each]
        self.held_by_others = self._others.held(foreign, self._places())

    def _end_late(self, late: Sequence[SlurmJob]) -> None:
        """End what arrived after its attempt was given up: a submission that took its time."""
        if numbers := sorted({job.leader for job in late if not job.over}):
            with suppress(Trouble, Refused):
                self._commands.text("scancel", *map(str, numbers))

    def _places(self) -> dict[int, int]:
        """What our attempts hold, or are about to."""
        held: dict[int, int] = defaultdict(int)
        for run in self.runs.values():
            for part in run.launch.allocation.parts:
                held[part.node] |= part.devices
        return held

    def hear_nodes(self, nodes: Sequence[SlurmNode]) -> None:
        """An answer on all nodes."""
        for report in self._closures.changes(nodes, self._site.positions):
            self.reports.put(report)
