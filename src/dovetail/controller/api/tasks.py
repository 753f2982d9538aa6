"""A task: what somebody sends to have something run, checked field by field.

One task is one job, an array of alike jobs, or a sweep over parameters. `submissions` makes of it
what the controller takes; a field that makes no sense is one sentence.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from dovetail.controller import hiding
from dovetail.controller.submission import Submission
from dovetail.model import amounts
from dovetail.model.errors import UserError
from dovetail.model.request import WHOLE, Request, gang

MOST_MEMBERS = 10_000
WORDS = 4096
TEXT = 128 * 1024 - 1
"""Bytes that the kernel takes as one argument."""

LONGEST_GRACE = 3600.0
"""Seconds."""

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def _checked(check: Callable[[Any], Any]) -> Any:
    """Keeps what was written, if it can be read."""

    def run(value: Any) -> Any:
        try:
            check(value)
        except UserError as error:
            raise ValueError(str(error)) from None
        return value

    return AfterValidator(run)


def _plain(text: str) -> str:
    """Text that a command line, an environment and a data base can hold."""
    try:
        broken = "\0" in text or len(text.encode()) > TEXT
    except UnicodeEncodeError:
        broken = True
    if broken:
        raise ValueError(f"text has at most {TEXT:,} bytes, without NUL or broken characters")
    return text


def _line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a name is one line of printable text")
    return text


def _grace(given: float | str) -> float:
    """Seconds; none is an answer, too."""
    seconds = 0.0 if given in (0, "0") else amounts.duration(given)
    if seconds > LONGEST_GRACE:
        raise UserError(f"a grace of {given}: a job has an hour to stop at most")
    return seconds


def _variables(values: Mapping[str, str]) -> Mapping[str, str]:
    for name in values:
        if not name or "=" in name:
            raise ValueError(f"{name!r} is no name of an environment variable")
    return values


Text = Annotated[str, Field(max_length=TEXT), AfterValidator(_plain)]
Name = Annotated[str, Field(max_length=200), AfterValidator(_plain), AfterValidator(_line)]
Variables = Annotated[dict[Text, Text], Field(max_length=10_000), AfterValidator(_variables)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Duration = Annotated[Number | Text, _checked(amounts.duration)]
Cores = Annotated[Number | Text | None, _checked(amounts.cores)]
Memory = Annotated[Number | Text | None, _checked(amounts.memory)]
Priority = Annotated[Number | Text, _checked(amounts.priority)]
Id = Annotated[int, Field(ge=1, lt=2**53)]
Member = Annotated[str, Field(pattern=r"^[0-9]{1,15}(\.[0-9]{1,15})?$")]


class Task(BaseModel):
    """What is to be run, and what it needs."""

    model_config = ConfigDict(extra="forbid", title="Task")

    command: Annotated[list[Text], Field(min_length=1, max_length=WORDS)]
    name: Name = ""
    gpus: Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)] = Field(
        0, description="Whole GPUs, or a part of one below 1."
    )
    cpus: Cores = Field(None, description="Cores for the whole job; auto: as the policy sees fit.")
    memory: Memory = Field(None, description="MiB or text like 16G; auto: as the policy sees fit.")
    gpu_memory: Memory = Field(None, description="MiB on each GPU that must be free.")
    gpu_type: Name = ""
    priority: Priority = 0.0
    tenant: Name = Field("", description="Whose job it is, where there are tenants.")
    borrow: bool = Field(False, description="Run it on what owners leave idle, until they want it.")
    deadline: Duration | None = Field(None, description="From submission.")
    time_limit: Duration | None = Field(None, description="Of running; then it is ended.")
    estimate: Duration | None = Field(None, description="How long its owner thinks it takes.")
    retries: Annotated[int, Field(ge=0, le=1000)] = 0
    after: Annotated[list[Id | Member], Field(max_length=1000)] = Field(
        [], description="Jobs, arrays, or members of arrays (12.3) that must be done first."
    )
    after_any: bool = Field(False, description="They only need to have ended.")
    directory: Text = "/"
    environment: Variables = Field(default_factory=dict)
    secrets: Variables = Field(default_factory=dict, description="Never shown.")
    model: Name = Field("", description="Key of its sensitivity profile.")
    group: Name = Field("", description="Jobs of one group are expected to be alike.")
    resumable: bool = Field(False, description="It can checkpoint and come back.")
    grace: Annotated[Number | Text, _checked(_grace)] = Field(
        30.0, description="To save in, once it is asked to stop."
    )
    on_reboot: Literal["requeue", "fail"] = "requeue"
    held: bool = False
    array: Id | Name | None = Field(
        None, description="10 is members 0 to 9; 1-4,7 is what it says."
    )
    sweep: Annotated[dict[Name, list[Text | Number | bool]], Field(max_length=20)] = Field(
        default_factory=dict, description="A job for each combination of these values."
    )

    @property
    def request(self) -> Request:
        """What the scheduler must find."""
        types = (self.gpu_type,) if self.gpu_type else ()
        share, count = WHOLE, round(self.gpus)
        if 0 < self.gpus < 1:
            share, count = max(1, round(self.gpus * WHOLE)), 1
        elif self.gpus != count:
            raise UserError(f"{self.gpus:g} GPUs: ask for a whole number, or for a part of one")
        cpu, memory = amounts.cores(self.cpus), amounts.memory(self.memory)
        if not count and cpu is None:
            # There is no share of GPUs to go by.
            cpu = 1000
        return gang(count, cpu, memory, types, share, amounts.memory(self.gpu_memory) or 0)


def submissions(task: Task, owner: str, run_as: tuple[int, int] | None) -> list[Submission]:
    """One for each job of the task, in order; whom they wait for must still be found out."""
    members = _members(task)
    plain = _submission(task, owner, run_as)
    if not members:
        return [plain]
    return [_member(plain, *member) for member in members]


def is_array(task: Task) -> bool:
    """Is it one object of several jobs?"""
    return task.array is not None or bool(task.sweep)


def _submission(task: Task, owner: str, run_as: tuple[int, int] | None) -> Submission:
    named = {name: text for name, text in task.environment.items() if name not in task.secrets}
    shown, secrets = hiding.split(named)
    return Submission(
        command=tuple(task.command),
        request=task.request,
        name=task.name,
        owner=owner,
        directory=task.directory,
        environment=shown,
        secrets={**secrets, **task.secrets},
        model=task.model,
        priority=amounts.priority(task.priority),
        deadline=None if task.deadline is None else amounts.duration(task.deadline),
        estimate=None if task.estimate is None else amounts.duration(task.estimate),
        group=task.group or task.name,
        resumable=task.resumable,
        retries=task.retries,
        grace=_grace(task.grace),
        run_as=run_as,
        held=task.held,
        after_any=task.after_any,
        time_limit=None if task.time_limit is None else amounts.duration(task.time_limit),
        on_reboot=task.on_reboot,
    )


def _members(task: Task) -> list[tuple[int, dict[str, str]]]:
    """Index and parameters of each job of an array or a sweep."""
    if task.array is not None and task.sweep:
        raise UserError("give an array or a sweep, not both")
    if task.array is not None:
        return [(index, {}) for index in amounts.indices(str(task.array), MOST_MEMBERS)]
    count = 1 if task.sweep else 0
    for name, values in task.sweep.items():
        if not name.isidentifier() or not values:
            raise UserError(f"sweep {name!r}: write a name like lr and at least one value")
        count *= len(values)
    if count > MOST_MEMBERS:
        raise UserError(f"this sweep has {count:,} jobs; at most {MOST_MEMBERS:,} are possible")
    chosen = itertools.product(*task.sweep.values()) if task.sweep else ()
    return [
        (index, {name: _said(value) for name, value in zip(task.sweep, values, strict=True)})
        for index, values in enumerate(chosen)
    ]


def _said(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _member(plain: Submission, index: int, given: Mapping[str, str]) -> Submission:
    """`{lr}` and `{index}` in the command stand for this member's values."""
    words = {"index": str(index), **given}
    command = tuple(_filled(word, words) for word in plain.command)
    variables = {name.upper(): value for name, value in given.items()}
    environment = {**plain.environment, **variables}
    return replace(plain, command=command, environment=environment, index=index)


def _filled(word: str, values: Mapping[str, str]) -> str:
    """All at once: a value that looks like a placeholder is none."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), word)
