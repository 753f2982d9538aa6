"""How fast a job runs on what it holds: one interface for locality, GPU type, CPU, neighbours."""
