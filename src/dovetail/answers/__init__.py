"""Answers from the engine that decides: why, when, what if. All of them ask forks, never it."""
