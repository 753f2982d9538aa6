"""How a job might have been: asking for less, for something else, or with more urgency.

Ideas of one kind are a ladder: what changes least comes first. Whether any of them would help is
not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from dovetail.model.job import JobSpec
from dovetail.model.request import WHOLE, Alternative, Group, Request

PARTS = tuple(part / 20 for part in range(19, 0, -1))
"""Of a length, or of all amounts at once, that are tried."""
TENTHS = 10
LONG = 600.0
"""Seconds from which on lengths are spoken of in minutes."""
NORMAL, URGENT, BORROWING = 0.0, 1.0, -1.0


@dataclass(frozen=True)
class Idea:
    """A job as it might have been."""

    change: str
    spec: JobSpec


@dataclass(frozen=True)
class Ladder:
    """Ideas of one kind, the mildest first."""

    ideas: tuple[Idea, ...]
    #: does each of them help at least as much as those before it?
    steady: bool = True


def smaller(spec: JobSpec) -> list[list[Ladder]]:
    """Less of one thing; the ladders of a group are tried until one helps at once."""
    cores, memory = tuple(_amounts(spec, "cpu")), tuple(_amounts(spec, "memory"))
    both = tuple(_both(spec)) if cores and memory else ()
    devices = [Ladder(tuple(_widths(spec))), Ladder(tuple(_narrower(spec)))]
    amounts = [Ladder(cores), Ladder(memory), Ladder(both), Ladder(tuple(_unstated(spec)), False)]
    return [amounts, devices]


def _amounts(spec: JobSpec, name: str) -> Iterator[Idea]:
    """Fewer cores, or less memory: one less, and so on down to one."""
    unit, word = (1000, "cores") if name == "cpu" else (1024, "GiB")
    asked = _total(spec.request, name)
    for fewer in range(-(-asked // unit) - 1, 0, -1):
        one = word.removesuffix("s") if fewer == 1 else word
        change = f"{fewer} {one} instead of {asked / unit:g}"
        yield Idea(change, spec._replace(request=_scaled(spec.request, name, fewer * unit)))


def _unstated(spec: JobSpec) -> Iterator[Idea]:
    """Leave to the policy what it asked for beside its GPUs."""
    for name, option in (("cpu", "--cpus auto"), ("memory", "--memory auto")):
        if spec.request.gpus and _total(spec.request, name):
            yield Idea(option, spec._replace(request=_each(spec.request, name, lambda _: None)))


def _both(spec: JobSpec) -> Iterator[Idea]:
    """A part of the cores and of the memory."""
    cpu, memory = _total(spec.request, "cpu"), _total(spec.request, "memory")
    for part in PARTS:
        cores, gibs = max(1, int(cpu * part / 1000)), max(1, int(memory * part / 1024))
        request = _scaled(_scaled(spec.request, "cpu", cores * 1000), "memory", gibs * 1024)
        plural = "s" * (cores > 1)
        change = f"{cores} core{plural} and {gibs} GiB instead of {cpu / 1000:g} and"
        yield Idea(f"{change} {memory / 1024:g}", spec._replace(request=request))


def _widths(spec: JobSpec) -> Iterator[Idea]:
    """Fewer GPUs with the same cores and memory in all."""
    for width, group in _below(spec.request):
        each = group.each
        cpu = None if each.cpu is None else -(-group.most * each.cpu // width)
        memory = None if each.memory is None else -(-group.most * each.memory // width)
        narrow = Group(width, replace(each, cpu=cpu, memory=memory), width)
        yield Idea(_gpus(width, group), _with(spec, narrow))


def _narrower(spec: JobSpec) -> Iterator[Idea]:
    """Fewer GPUs, and less of what was asked for with them."""
    for width, group in _below(spec.request):
        if group.each.cpu or group.each.memory:
            narrow = Group(width, group.each, width)
            change = f"{_gpus(width, group)}, and as much less CPU and memory"
            yield Idea(change, _with(spec, narrow))


def _below(request: Request) -> Iterator[tuple[int, Group]]:
    """Widths that the job did not ask for, where it is one group of equal parts."""
    groups = request.alternatives[0].groups
    if len(groups) == 1 and groups[0].each.gpus and groups[0].each.share == WHOLE:
        yield from ((width, groups[0]) for width in range(groups[0].least - 1, 0, -1))


def _gpus(width: int, group: Group) -> str:
    gpus, least = width * group.each.gpus, group.least * group.each.gpus
    asked = f"{least}" if least == group.gpus else f"{least} to {group.gpus}"
    return f"{gpus} GPU{'s' * (gpus > 1)} instead of {asked}"


def shares(spec: JobSpec, packed: bool) -> Ladder:
    """A smaller part of a GPU; half of a whole one or less, where the cluster is `packed`."""
    groups = spec.request.alternatives[0].groups
    if len(groups) != 1 or groups[0].gpus != 1:
        return Ladder(())
    asked = groups[0].each.share
    most = -(-asked * TENTHS // WHOLE) - 1 if asked < WHOLE else TENTHS // 2 * packed
    return Ladder(
        tuple(
            Idea(
                f"{tenths / TENTHS:g} of a GPU instead of {asked / WHOLE:g}",
                _with(spec, Group(1, replace(groups[0].each, share=tenths * WHOLE // TENTHS), 1)),
            )
            for tenths in range(most, 0, -1)
        )
    )


def other_types(spec: JobSpec, types: Iterable[str]) -> Ladder:
    """GPUs that it did not want, one type after the other."""
    alternative = spec.request.alternatives[0]
    others = dict.fromkeys(kind for kind in types if kind not in alternative.types)
    asked = " or ".join(alternative.types)
    return Ladder(
        tuple(
            Idea(
                f"GPUs of type {kind} instead of {asked}",
                spec._replace(request=_request(spec.request, replace(alternative, types=(kind,)))),
            )
            for kind in (others if alternative.types else ())
        ),
        steady=False,
    )


def shorter(spec: JobSpec) -> Ladder:
    """A shorter length, where its owner has named one: whole minutes of long ones."""
    said = spec.estimate or 0.0
    unit, word = (60, "min") if said >= LONG else (1, "s")
    lengths = [int(said * part / unit) for part in PARTS if said * part >= unit]
    ideas = [
        Idea(
            f"an estimate of {length} {word} instead of {said / unit:.4g}",
            spec._replace(estimate=float(length * unit)),
        )
        for length in lengths
    ]
    return Ladder(tuple(ideas))


def urgency(spec: JobSpec) -> Ladder:
    """Priorities above its own that people may ask for."""
    ideas = []
    if spec.priority < NORMAL:
        ideas.append(Idea("normal priority", spec._replace(priority=NORMAL)))
    if spec.priority < URGENT:
        ideas.append(Idea("high priority", spec._replace(priority=URGENT)))
    return Ladder(tuple(ideas), steady=False)


def borrowing(spec: JobSpec) -> Ladder:
    """On what others own and do not use, until they want it."""
    if not spec.resumable or spec.priority < NORMAL:
        return Ladder(())
    idea = Idea("--borrow, on what others leave idle", spec._replace(priority=BORROWING))
    return Ladder((idea,))


def _total(request: Request, name: str) -> int:
    groups = request.alternatives[0].groups
    return sum(group.most * (getattr(group.each, name) or 0) for group in groups)


def _scaled(request: Request, name: str, total: int) -> Request:
    """The same with another total, split as it was; rounded up, as a new submission would be."""
    asked = _total(request, name)
    return _each(request, name, lambda amount: -(-amount * total // asked))


def _each(request: Request, name: str, make: Callable[[int], int | None]) -> Request:
    """The same with other amounts wherever some are stated."""
    alternative, groups = request.alternatives[0], list[Group]()
    for group in alternative.groups:
        changed: dict[str, Any] = {
            name: getattr(group.each, name) and make(getattr(group.each, name))
        }
        groups.append(replace(group, each=replace(group.each, **changed)))
    return _request(request, replace(alternative, groups=tuple(groups)))


def _with(spec: JobSpec, group: Group) -> JobSpec:
    alternative = replace(spec.request.alternatives[0], groups=(group,))
    return spec._replace(request=_request(spec.request, alternative))


def _request(request: Request, alternative: Alternative) -> Request:
    return Request((alternative,), request.modes, request.labels, request.datasets)
