"""A driver of the core: replays a workload in a simulated world, as fast as it can."""
