"""For training scripts: say how far the job is, ask whether to save it. Standard library only.

    from dovetail_client import steps

    for batch in steps(loader):
        train(batch)

Whoever runs the job (`dovetail profile`, a controller) names two files in the environment:
`DOVETAIL_PROGRESS`, to which progress is appended as JSON lines, and `DOVETAIL_CHECKPOINT`, whose
existence asks for a checkpoint. Where neither is named nothing happens, so the calls may stay in a
script for good. Of a job of many processes one reports, as only one writes the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from dovetail_client.reporter import Reporter

__all__ = ["attach", "checkpointed", "progress", "should_checkpoint", "steps"]

Item = TypeVar("Item")

_reporter = Reporter()


def attach() -> bool:
    """Read the environment again and report that the job is there. Is anybody listening?

    Only needed to say so before a long start; the other calls do without.
    """
    _reporter.attach()
    return _reporter.listened


def progress(steps: int, total: int | None = None, epoch: int | None = None) -> None:
    """Report how many steps are done, counted from the beginning of the training.

    `total` is where the job ends, `epoch` the steps of one pass over the data. Cheap enough for
    every step: what comes too soon after the last report is held back until the next.
    """
    _reporter.progress(steps, total, epoch)


def should_checkpoint() -> bool:
    """Has somebody asked for a checkpoint? Save, call `checkpointed`, and go on.

    Who asks this is not ended by SIGTERM at once: there are the seconds of grace to save in.
    """
    return _reporter.should_checkpoint()


def checkpointed() -> None:
    """Report that all work so far is saved: stopping the job now would lose nothing.

    A job that was told to end by SIGTERM ends here.
    """
    _reporter.checkpointed()


def steps(iterable: Iterable[Item], total: int | None = None) -> Iterator[Item]:
    """The items of a pass over the data, reporting a step when each has been dealt with.

    Steps count on from pass to pass. `total` is the number of steps of all passes together.
    """
    epoch = _length(iterable)
    for item in iterable:
        yield item
        _reporter.progress(_reporter.steps + 1, total, epoch)
    _reporter.flush()


def _length(iterable: Iterable[object]) -> int | None:
    try:
        return len(iterable)  # type: ignore[arg-type]
    except TypeError:
        # A generator, or a loader over a stream: the length of a pass is not known.
        return None
