"""The live driver: real jobs, real time, nothing lost. The same core as in the simulator."""
