"""The engine for one machine: real processes, fenced, that outlive the controller."""

from __future__ import annotations

from dovetail.executors.local.executor import Local
from dovetail.executors.local.machine import Machine, detect

__all__ = ["Local", "Machine", "detect"]
