"""One line, one scheduling test: `2x4 | a:4@0+10 b:2@1+5 | fifo -> a 0-10, b 1-6`.

Before the first bar the cluster. Then jobs, `name:size@submit+length`; a size is a number of GPUs
(`4`), a share of one (`0.5`) or replicas (`2*4`: two of four GPUs each); further columns of the
native trace follow, `a:1@0+5,cpus=4`. Then the policy, a placement if it is not best-fit, and
`restart=`, `stop=`, `move=`, `span=`, `quotas=ann=2`, `parts=red:1/blue:2` (nodes by tenant) or
`faults=` as in `n0.down@5/n0.up@9`. After the arrow, when each job ran: `a 0-3 8-12`, with its
nodes if they matter, `a 0-3@n0`, or what became of it: rejected, failed or waiting.

A row runs through the public door, from a trace file to records, with costs of zero.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dovetail.core.scheduler import Scheduler
from dovetail.metrics.records import OUTCOMES, Run
from dovetail.model.allocation import Allocation
from dovetail.model.event import Event
from dovetail.model.plan import Plan
from dovetail.simulator import experiment
from dovetail.simulator.experiment import Replay, replay

JOB = re.compile(r"(\w+):([\d.*]+)@([\d.]+)\+([\d.]+)(?:,(\S+))?")
COLUMNS = {"mem": "memory_gb", "type": "gpu_type", "p": "priority", "due": "deadline"}
FLAGS = {"fixed": ("resumable", "false"), "recorded-failed": ("outcome", "failed")}
OPTIONS = {"restart": "restart_cost", "stop": "stop_cost", "move": "move_cost"}
OPTIONS |= {"span": "span_penalty"}


@dataclass
class Stay:
    """One run of a job on one place."""

    begin: float
    nodes: str
    end: float | None = None

    def told(self, place: bool) -> str:
        end = "" if self.end is None else f"{self.end:g}"
        return f"{self.begin:g}-{end}" + (f"@{self.nodes}" if place else "")


class Watched(Scheduler):
    """A scheduler that remembers who held what, when."""

    latest: Watched

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.stays: dict[str, list[Stay]] = {}
        self._held: dict[str, Allocation] = {}
        Watched.latest = self

    def step(self, now: float, batch: Sequence[Event]) -> Plan:
        plan = super().step(now, batch)
        holding = {
            job.spec.name: job.allocation
            for job in self.jobs.values()
            if job.allocation is not None and job.status == "running"
        }
        for name, held in self._held.items():
            if holding.get(name) != held:
                self.stays[name][-1].end = now
        for name, held in holding.items():
            if self._held.get(name) != held:
                nodes = sorted({self.cluster.nodes[part.node].name for part in held.parts})
                self.stays.setdefault(name, []).append(Stay(now, "+".join(nodes)))
        self._held = holding
        self.validate()
        return plan


@dataclass
class Row:
    """A row taken apart."""

    cluster: str
    jobs: list[dict[str, str]]
    settings: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    expected: dict[str, str] = field(default_factory=dict)


def parse(text: str) -> Row:
    """Take a row apart."""
    cluster, jobs, rest = (piece.strip() for piece in text.split(" | "))
    asked, _, expected = rest.partition(" -> ")
    row = Row(cluster, [_job(token) for token in jobs.split()])
    row.settings["policy"], *more = asked.split()
    for token in more:
        _setting(row, token)
    for item in expected.split(", "):
        name, _, told = item.strip().partition(" ")
        row.expected[name] = told
    return row


def _job(token: str) -> dict[str, str]:
    found = JOB.fullmatch(token)
    assert found, f"{token} is not name:size@submit+length"
    name, size, submit, length, more = found.groups()
    columns = {"job_id": name, "submit_time": submit, "duration": length, **_size(size)}
    for item in filter(None, (more or "").split(",")):
        key, _, value = item.partition("=")
        if key in FLAGS:
            key, value = FLAGS[key]
        columns[COLUMNS.get(key, key)] = value
    return columns


def _size(text: str) -> dict[str, str]:
    if "*" in text:
        replicas, each = map(int, text.split("*"))
        return {"gpus": str(replicas * each), "replicas": str(replicas)}
    if "." in text:
        return {"gpus": "1", "gpu_milli": str(round(float(text) * 1000))}
    return {"gpus": text}


def _setting(row: Row, token: str) -> None:
    key, equals, value = token.partition("=")
    if key in OPTIONS and equals:
        row.settings[OPTIONS[key]] = float(value)
    elif key == "quotas" and equals:
        row.settings["quotas"] = value
    elif key == "parts" and equals:
        sizes = [item.replace(":", ",") for item in value.split("/")]
        row.files["parts.csv"] = "\n".join(["tenant,nodes", *sizes])
        row.settings["partition_by"] = "tenant=parts.csv"
    elif key == "faults" and "@" in value:
        events = re.findall(r"(\w+)\.(\w+)@([\d.]+)", value)
        lines = [f"{time},{node},{event}" for node, event, time in events]
        row.files["faults.csv"] = "\n".join(["time,node,event", *lines])
        row.settings["faults"] = "faults.csv"
    elif key in ("faults", "predictor") and equals:
        row.settings[key] = value
    else:
        row.settings["placement"] = token


def run(row: Row, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Replay a row in a folder of its own."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(experiment, "Scheduler", Watched)
    for name, content in row.files.items():
        (folder / name).write_text(content + "\n")
    columns = sorted({column for job in row.jobs for column in job})
    with open(folder / "jobs.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(row.jobs)
    settings = {"restart_cost": 0.0, "placement": "best-fit", **row.settings}
    return replay(Replay("jobs.csv", row.cluster, **settings))


def outcome(row: Row, done: Run) -> dict[str, str]:
    """What became of every job, in the words of the row."""
    stays = Watched.latest.stays
    told = {}
    for name, kind in zip(done.records.name, done.records.outcome, strict=True):
        places = "@" in row.expected.get(name, "")
        words = [stay.told(places) for stay in stays.get(name, [])]
        if OUTCOMES[kind] != "finished":
            words.append(OUTCOMES[kind])
        told[name] = " ".join(words)
    return told


def check(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a row and compare what happened with what it says."""
    row = parse(text)
    done = run(row, folder, monkeypatch)
    assert outcome(row, done) == row.expected
    assert len(done.records) == len(row.jobs)
    return done
