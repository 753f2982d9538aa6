"""What a user may say about the cluster Dovetail is to drive; all of it may be left out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Where jobs go, and on whose account."""

    #: None: Slurm's default partition
    partition: str | None = None
    #: only these nodes of it, in Slurm's way of writing: n[1-4]
    nodes: str | None = None
    #: only this part of its nodes, from the first on
    share: float = 1.0
    #: for jobs that name none themselves
    account: str | None = None
    qos: str | None = None
    #: as `sbatch --time` takes it
    time_limit: str | None = None
    reservation: str | None = None
    #: seconds between two questions to Slurm
    interval: float = 1.0
    #: seconds a job may wait in Slurm's queue for the nodes it was given
    patience: float = 30.0

    def surroundings(self) -> dict[str, str]:
        """The same as variables that `sbatch` reads, so that a job can say otherwise."""
        said = {
            "SBATCH_PARTITION": self.partition,
            "SBATCH_ACCOUNT": self.account,
            "SBATCH_QOS": self.qos,
            "SBATCH_TIMELIMIT": self.time_limit,
            "SBATCH_RESERVATION": self.reservation,
        }
        return {name: value for name, value in said.items() if value is not None}
