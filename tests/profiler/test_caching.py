"""The memory axis: monotone, exact where it is calculated, near enough between its columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.model.errors import UserError
from dovetail.profiler.caching import GIB, Dataset, surface

DATA = Dataset(size=100.0, epoch=1000, storage=1e9, memory=10e9, memory_limit=20e9)
STEP = 100 * GIB / 1000

FETCH = [
    ("all from storage", 1, 0.0, STEP / 1e9),
    ("all from memory, one core", 1, 1.0, STEP / 10e9),
    ("all from memory, two cores", 2, 1.0, STEP / 20e9),
    ("memory has a limit", 8, 1.0, STEP / 20e9),
    ("half and half", 1, 0.5, STEP / 2 / 1e9 + STEP / 2 / 10e9),
]


@pytest.mark.parametrize(("why", "cores", "cached", "seconds"), FETCH, ids=[r[0] for r in FETCH])
def test_how_long_a_step_s_data_takes(why: str, cores: int, cached: float, seconds: float) -> None:
    assert DATA.fetch(cores, cached) == pytest.approx(seconds), why


def test_the_slower_of_reading_and_computing_sets_the_pace() -> None:
    assert DATA.speed(1, computed=2.0, cached=0.0) == 2.0
    assert DATA.speed(1, computed=20.0, cached=0.0) == pytest.approx(1e9 / STEP)


def test_without_a_dataset_there_is_one_column_at_the_memory_seen() -> None:
    made = surface({1: 2.0, 4: 8.0}, None, working=6.0, gpus=2)
    assert (made.cores, made.memory, made.speed) == ((0.5, 2.0), (3.0,), ((2.0,), (8.0,)))


def test_memory_levels_are_the_working_memory_and_what_is_cached() -> None:
    made = surface({1: 50.0}, DATA, working=20.0, gpus=2)
    assert made.memory[0] == pytest.approx(10.0)
    assert made.memory[-1] == pytest.approx(60.0)


def test_a_job_that_storage_never_holds_up_has_two_equal_columns() -> None:
    made = surface({1: 1.0, 2: 2.0}, DATA, working=5.0)
    assert made.memory == (5.0, 105.0)
    assert made.speed == ((1.0, 1.0), (2.0, 2.0))


datasets = st.builds(
    Dataset,
    size=st.floats(1, 1000),
    epoch=st.floats(10, 1e5),
    storage=st.floats(1e7, 5e9),
    memory=st.floats(5e9, 2e10),
    memory_limit=st.floats(2e10, 2e11),
)
rising = st.lists(st.floats(0.1, 100), min_size=1, max_size=8).map(
    lambda speeds: dict(enumerate(sorted(speeds), 1))
)


@given(rising, datasets, st.floats(0.1, 100))
def test_more_memory_and_more_cores_never_make_a_job_slower(
    points: dict[int, float], data: Dataset, working: float
) -> None:
    made = surface(points, data, working)
    for row in made.speed:
        assert all(right >= left * (1 - 1e-9) for left, right in pairwise(row))
    for low, high in pairwise(made.speed):
        assert all(right >= left * (1 - 1e-9) for left, right in zip(low, high, strict=True))


@given(rising, datasets, st.floats(0.1, 100), st.floats(0, 1))
def test_between_its_columns_the_surface_is_near_what_would_be_calculated(
    points: dict[int, float], data: Dataset, working: float, cached: float
) -> None:
    made = surface(points, data, working)
    for cores, computed in points.items():
        exact = data.speed(cores, computed, cached)
        # The columns are chosen on a fine grid: between two of its steps it may be a bit more.
        assert made.at(cores, working + cached * data.size) == pytest.approx(exact, rel=0.15)


@pytest.mark.parametrize("field", ["size", "epoch", "storage", "memory"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
def test_a_dataset_that_makes_no_sense_is_refused(field: str, value: float) -> None:
    with pytest.raises(UserError, match="must be a number above 0"):
        replace(DATA, **{field: value})
