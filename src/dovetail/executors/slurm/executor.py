"""The engine for a Slurm cluster: Dovetail decides, Slurm runs.

Jobs wait outside of Slurm and are submitted when their nodes are decided on. Every job of Slurm
carries its attempt in its comment, and its script runs only if it is the first of the attempt, so
that a new executor over the same data takes up where the last one was and nothing runs twice.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty

from dovetail.executors.local.folders import folder_of, remove
from dovetail.executors.local.surroundings import client_folder
from dovetail.executors.protocol import Attempt, Executor, Launch, Report
from dovetail.executors.slurm.batch import claim_of, ended_of
from dovetail.executors.slurm.closures import Closures
from dovetail.executors.slurm.commands import CommandLine, Refused, Trouble
from dovetail.executors.slurm.files import number_in
from dovetail.executors.slurm.options import Options
from dovetail.executors.slurm.run import Run
from dovetail.executors.slurm.site import Site, survey
from dovetail.executors.slurm.worker import Worker
from dovetail.model.allocation import Allocation
from dovetail.model.errors import UserError
from dovetail.model.node import Capabilities, Node


class Slurm(Executor):
    """An `Executor` for a cluster that Slurm runs. The data folder must be seen by its nodes."""

    def __init__(
        self,
        data: Path,
        options: Options | None = None,
        commands: CommandLine | None = None,
    ) -> None:
        self._data = data.resolve()
        self.options = options or Options()
        self.commands = commands or CommandLine()
        self.site: Site = survey(self.commands, self.options)
        self._prefix = f"dovetail:{_signature(self._data)}:"
        self._worker = Worker(
            self.commands,
            self.site,
            self.options,
            Closures(self._data / "closed-nodes.json"),
            client_folder(self._data),
            self._prefix,
        )
        self._found = self._open()

    def _open(self) -> set[str]:
        """A first look: the marks of our jobs that Slurm knows."""
        try:
            jobs = self.site.questions.jobs()
            self._worker.hear_nodes(self.site.questions.nodes())
        except (Trouble, Refused) as error:
            raise UserError(f"Slurm cannot be used from here: {error}") from None
        self._worker.hear_jobs([job for job in jobs if not job.comment.startswith(self._prefix)])
        return {job.comment for job in jobs if job.comment.startswith(self._prefix)}

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes of the partition, or what Dovetail was given of them."""
        return self.site.nodes

    @property
    def capabilities(self) -> Mapping[str, Capabilities]:
        """By node type: what can be done to a running job."""
        return self.site.capabilities

    @property
    def trouble(self) -> str:
        """Why Slurm could not be asked lately; empty: it could."""
        return self._worker.trouble

    def describe(self) -> str:
        """What runs jobs here and what is enforced on them, in one line."""
        partition = self.site.partition
        return f"Slurm {self.site.release}, partition {partition}: {len(self.nodes)} nodes"

    def logs(self, attempt: Attempt) -> Sequence[Path]:
        """What an attempt wrote."""
        return folder_of(self._data, attempt).logs()

    def devices(self, attempt: Attempt) -> dict[str, tuple[int, ...]]:
        """Which GPUs Slurm gave a running attempt, by node and as Slurm counts them."""
        run = self._worker.runs.get(attempt)
        job = None if run is None else run.job
        return {piece.node: piece.indices for piece in job.pieces} if job else {}

    def used_by_others(self) -> Allocation:
        """What jobs hold that Slurm runs on its own."""
        return self._worker.held_by_others

    def start(self, launch: Launch) -> None:
        """Start an attempt; reported as running, or as ended if it could not be started."""
        run = self._run(launch)
        self._worker.order(lambda: self._worker.begin(launch, run))

    def stop(self, attempt: Attempt, grace: float) -> None:
        """Ask it to end, and end it after the grace; reported as ended."""
        self._worker.order(lambda: self._worker.stop(attempt, grace))

    def suspend(self, attempt: Attempt) -> None:
        """Pause it; reported as paused. It keeps its GPUs, as its capabilities say."""
        self._worker.order(lambda: self._worker.suspend(attempt))

    def resume(self, attempt: Attempt) -> None:
        """Let it go on; reported as running."""
        self._worker.order(lambda: self._worker.resume(attempt))

    def resize(self, attempt: Attempt, allocation: Allocation) -> None:
        """Slurm cannot: it is reported as running on what it has."""
        self._worker.order(lambda: self._worker.insist(attempt))

    def adopt(self, launch: Launch) -> bool:
        """After a restart of the controller: is this attempt known here, running or ended?"""
        if launch.attempt in self._worker.runs:
            return True
        run = self._run(launch)
        left = claim_of(run.folder), ended_of(run.folder)
        if run.mark not in self._found and not any(path.exists() for path in left):
            return False
        self._worker.order(lambda: self._worker.follow(run))
        return True

    def reports(self) -> list[Report]:
        """What happened since the last call; never waits."""
        self._wake()
        found: list[Report] = []
        try:
            while True:
                found.append(self._worker.reports.get_nowait())
        except Empty:
            return found

    def forget(self, attempts: Sequence[Attempt]) -> None:
        """Throw away the folders of attempts that are over."""
        remove(self._data, attempts)

    def close(self) -> None:
        """Let go of Slurm; jobs go on."""
        self._wake()
        self._worker.order(None)
        self._worker.join(self.commands.patience)

    def _wake(self) -> None:
        """Begin to ask Slurm. Not before whoever came back has said what runs and what is to start:
        until then our own jobs look as if they had been given up.
        """
        if self._worker.ident is None:
            self._worker.start()

    def _run(self, launch: Launch) -> Run:
        folder = folder_of(self._data, launch.attempt)
        job, number = launch.attempt
        run = Run(launch, f"{self._prefix}{job}.{number}", folder)
        # Whoever claimed it runs it: it is never submitted again.
        run.id = number_in(claim_of(folder))
        run.in_doubt = run.mark in self._found
        return run


def _signature(data: Path) -> str:
    """Tells the jobs of one data folder from those of another."""
    return hashlib.sha256(os.fsencode(data)).hexdigest()[:8]
