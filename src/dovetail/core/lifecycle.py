"""The one table of a job's moves, and the only code that changes `Job.status`.

Recovery points are states that survive a restart of the controller; the others are passed through
and reconciled with what executors report.
"""

from __future__ import annotations

from dovetail.model.job import Job, Status

RECOVERY_POINTS = frozenset(
    {
        Status.WAITING,
        Status.RUNNING,
        Status.SUSPENDED,
        Status.DONE,
        Status.FAILED,
        Status.CANCELLED,
        Status.REJECTED,
    }
)
PASSING = frozenset({Status.STARTING, Status.STOPPING})
FINAL = frozenset({Status.DONE, Status.FAILED, Status.CANCELLED, Status.REJECTED})

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.WAITING: frozenset(
        {Status.STARTING, Status.RUNNING, Status.CANCELLED, Status.REJECTED, Status.FAILED}
    ),
    Status.STARTING: frozenset(
        {Status.RUNNING, Status.WAITING, Status.STOPPING, *FINAL - {Status.REJECTED}}
    ),
    Status.RUNNING: frozenset(
        {Status.STOPPING, Status.WAITING, Status.SUSPENDED, *FINAL - {Status.REJECTED}}
    ),
    Status.STOPPING: frozenset({Status.WAITING, Status.SUSPENDED, *FINAL - {Status.REJECTED}}),
    Status.SUSPENDED: frozenset(
        {
            Status.STARTING,
            Status.RUNNING,
            Status.STOPPING,
            Status.WAITING,
            Status.CANCELLED,
            Status.FAILED,
        }
    ),
    Status.DONE: frozenset(),
    Status.FAILED: frozenset(),
    Status.CANCELLED: frozenset(),
    Status.REJECTED: frozenset(),
}


class IllegalMove(Exception):
    """A job was asked to make a move the table does not have: a defect of ours."""


def move(job: Job, status: Status) -> None:
    """Change a job's status, if the table allows it."""
    if status not in TRANSITIONS[job.status]:
        raise IllegalMove(f"{job} cannot become {status}")
    job.status = status
