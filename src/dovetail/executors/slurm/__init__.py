"""The engine for clusters that Slurm runs. Nothing of ours is installed on their nodes."""

from dovetail.executors.slurm.executor import Slurm
from dovetail.executors.slurm.options import Options

__all__ = ["Options", "Slurm"]
