"""Pauses the search for garbage while very much is made that is none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 100_000
"""Objects that are worth not to be looked at ever again."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """What is made in here stays, or makes no cycles: looking through it again is vain."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def keeping_all() -> Iterator[None]:
    """Nothing made in here is garbage: looking for it took half of the time of a restart.

    What is left of it at the end, if it is much, is not looked at later either: whoever asked first
    had to wait for that.
    """
    with undisturbed():
        try:
            yield
        finally:
            if gc.get_count()[0] >= MANY:
                gc.freeze()
