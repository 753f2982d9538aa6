"""Who waits for whose end. Knows numbers of jobs and how those ended, nothing else.

It is rebuilt from what owners asked for, so nothing here needs to be stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from dovetail.model.job import Status

DONE = str(Status.DONE)


class Dependencies:
    """Jobs that others wait for."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[int]] = {}
        #: ends that those who waited have not been told of: number and state
        self.news: deque[tuple[int, str]] = deque()

    def register(self, job: int, others: Iterable[int]) -> None:
        """A job waits for others."""
        for other in others:
            self._waiting.setdefault(other, []).append(job)

    def ended(self, job: int, state: str) -> None:
        """A job has ended; news only where somebody waits for it."""
        if job in self._waiting:
            self.news.append((job, state))

    def waiting_for(self, job: int) -> list[int]:
        """Who waited for a job; asked once."""
        return self._waiting.pop(job, [])
