"""Decisions without effects: the scheduler, its life-cycle table, its indexes and protocols."""
