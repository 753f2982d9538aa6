"""What interrupting a job costs, in seconds. Nothing is free unless it is said to be.

The defaults follow what the literature measured: checkpoint and restore of a training job takes 4
to 46 s in Muri's table, 30 to 60 s in Helios and Lucid, 15 to 250 s in Sia. We charge 30 s for a
restart (process start, restore, cold caches) and count the checkpoint inside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.model.allocation import Difference


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds during which a job holds its devices without making progress."""

    #: every start after the first
    restart: float = 30.0
    #: from the decision to stop until the devices are free
    stop: float = 0.0
    #: a move to other devices, in place of a restart; `None`: as a restart
    move: float | None = None
    #: the first start (image, imports, cold caches)
    first_start: float = 0.0
    #: resuming a suspended job on the devices' node
    resume: float = 1.0
    #: seconds of work between checkpoints: a crash loses what came after the last one
    checkpoint_every: float = 1800.0
    #: restart seconds by model name, over `restart`
    by_model: dict[str, float] = field(default_factory=dict)

    def start(self, model: str, starts: int) -> float:
        """The price of the next start of a job that has started `starts` times."""
        if not starts:
            return self.first_start
        return self.by_model.get(model, self.restart) if self.by_model else self.restart

    def kept(self, work: float, resumable: bool) -> float:
        """The work that survives a crash: all up to the last checkpoint."""
        if not resumable:
            return 0.0
        return work // self.checkpoint_every * self.checkpoint_every

    def change(self, kind: Difference, model: str) -> float:
        """The price of changing a running job's allocation."""
        if kind in (Difference.NONE, Difference.IN_PLACE):
            return 0.0
        if kind is Difference.MOVE and self.move is not None:
            return self.move
        return self.by_model.get(model, self.restart)


FREE = Costs(restart=0.0, resume=0.0)
"""Charges nothing: for comparing with systems that do not."""
