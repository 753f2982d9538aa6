"""Dovetail schedules deep-learning workloads on shared GPUs: one core, simulated and live."""

__version__ = "0.1.0"
