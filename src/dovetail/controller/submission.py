"""What somebody asks to be run: the command and all that goes with it, and its job for the core.

Secrets, which are environment variables and words of commands, are stored apart and never shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dovetail.controller import hiding
from dovetail.controller.records import compact
from dovetail.core.codec import request_from_plain, request_to_plain
from dovetail.executors.protocol import Attempt, Launch
from dovetail.model.allocation import Allocation
from dovetail.model.job import JobSpec
from dovetail.model.request import Request


@dataclass(frozen=True)
class Member:
    """A job's place in the array it belongs to."""

    array: int
    index: int
    size: int

    def __str__(self) -> str:
        """As lists have it: `12.3`."""
        return f"{self.array}.{self.index}"

    def environment(self) -> dict[str, str]:
        """What tells the members of an array apart."""
        named = {"ID": self.array, "INDEX": self.index, "SIZE": self.size}
        return {f"DOVETAIL_ARRAY_{name}": str(value) for name, value in named.items()}


@dataclass(frozen=True)
class Submission:
    """One job as its owner describes it."""

    command: tuple[str, ...]
    request: Request
    name: str = ""
    owner: str = ""
    directory: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    tenant: str = ""
    #: key of its sensitivity profile
    model: str = ""
    priority: float = 0.0
    #: seconds from submission
    deadline: float | None = None
    #: seconds its owner thinks it takes
    estimate: float | None = None
    group: str = ""
    #: can it checkpoint and come back? Only then may it be stopped for others
    resumable: bool = False
    #: how often it may fail and be tried again
    retries: int = 0
    #: seconds between asking it to stop and ending it
    grace: float = 30.0
    #: numeric user and group to run as; None: as the controller
    run_as: tuple[int, int] | None = None
    #: keep it from starting until it is released
    held: bool = False
    #: jobs that must be done before it may start
    after: tuple[int, ...] = ()
    #: is it enough that they have ended, however?
    after_any: bool = False
    #: seconds it may run, all attempts together
    time_limit: float | None = None
    #: what becomes of it when the machine is restarted under it
    on_reboot: Literal["requeue", "fail"] = "requeue"
    #: its number in its array; None: by position
    index: int | None = None

    def spec(self, number: int, now: float, arrived: float | None = None) -> JobSpec:
        """The job the scheduler sees from `now` on; it was submitted when it `arrived`."""
        begun = now if arrived is None else arrived
        deadline = None if self.deadline is None else begun + self.deadline
        return JobSpec(
            number,
            self.name or f"job-{number}",
            now,
            self.request,
            tenant=self.tenant,
            user=self.owner,
            model=self.model,
            priority=self.priority,
            deadline=deadline,
            estimate=self.estimate,
            group=self.group,
            resumable=self.resumable,
            retries=self.retries,
        )

    def launch(
        self, attempt: Attempt, allocation: Allocation, member: Member | None = None
    ) -> Launch:
        """Everything an engine needs for one attempt."""
        place = member.environment() if member is not None else {}
        return Launch(
            attempt,
            self.name or f"job-{attempt.job}",
            self.command,
            allocation,
            Path(self.directory),
            {**self.environment, **self.secrets, **place},
            self.run_as,
            self.grace,
        )


def written(submission: Submission) -> tuple[str, str]:
    """A submission as what may be shown and what may not."""
    shown: dict[str, Any] = {**vars(submission), "hidden": sorted(submission.secrets)}
    del shown["secrets"]
    shown["request"] = request_to_plain(submission.request)
    shown["environment"] = dict(submission.environment)
    shown["command"] = hiding.redacted(submission.command)
    hidden: dict[str, Any] = {"environment": dict(submission.secrets)}
    if shown["command"] != submission.command:
        hidden["command"] = submission.command
    return compact(shown), compact(hidden)


def read(shown: str, secrets: str) -> Submission:
    """The submission that `written` stored; without the secrets, what may be shown of it."""
    plain, hidden = json.loads(shown), json.loads(secrets)
    plain.pop("hidden")
    plain["request"] = request_from_plain(plain["request"])
    plain["command"] = tuple(hidden.get("command", plain["command"]))
    plain["after"] = tuple(plain.get("after", ()))
    plain["run_as"] = tuple(plain["run_as"]) if plain["run_as"] else None
    return Submission(**plain, secrets=hidden.get("environment", {}))
