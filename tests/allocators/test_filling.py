"""Sharing out a node: within its limits, above all floors, and close to the best there is."""

from __future__ import annotations

from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from placed_optimum import catalogue_curves, random_surface

from dovetail.allocators.filling import Filled, Filling, Member
from dovetail.core.claims import Curve, Point, curve

CORES, GIB = 24_000, 512_000
ROOM = {0: (CORES, GIB)}
FAIR = (3000, 64_000)
CURVES = catalogue_curves()


def alone(*members: tuple[Curve, int]) -> list[Member]:
    """Members on node 0."""
    return [(each, ((0, gpus),)) for each, gpus in members]


def filled(
    members: list[Member], room: dict[int, tuple[int, int]] = ROOM, hurry: bool = False
) -> Filled:
    return Filling(CORES, GIB, hurry).fill(members, room)


def assert_within(members: list[Member], found: Filled, room: dict[int, tuple[int, int]]) -> None:
    for node, (cpu, memory) in room.items():
        here = [
            (gpus, point)
            for (_, spots), point in zip(members, found.points, strict=True)
            for at, gpus in spots
            if at == node
        ]
        assert sum(gpus * point.cpu for gpus, point in here) <= cpu
        assert sum(gpus * point.memory for gpus, point in here) <= memory
    for (each, _), point in zip(members, found.points, strict=True):
        assert point in each.points


def best_sum(members: list[Member], cpu: int, memory: int) -> float:
    """The highest sum of speeds, by walking all states that no other state beats."""
    states = [(0, 0, 0.0)]
    for each, spots in members:
        gpus = spots[0][1]
        grown = [
            (c + gpus * point.cpu, m + gpus * point.memory, rate + point.rate)
            for c, m, rate in states
            for point in each.points
            if c + gpus * point.cpu <= cpu and m + gpus * point.memory <= memory
        ]
        states = []
        for state in sorted(grown, key=lambda state: (-state[2], state[0], state[1])):
            if not any(kept[0] <= state[0] and kept[1] <= state[1] for kept in states):
                states.append(state)
    return max(rate for _, _, rate in states)


def random_members(seed: int) -> list[Member]:
    """Jobs that fill the GPUs of one server, more or less."""
    rng = Random(seed)
    left, members = rng.choice([8, 8, 8, 6, 4]), []
    while left:
        gpus = rng.choice([each for each in (1, 1, 2, 4) if each <= left])
        own = rng.random() < 0.4
        which = curve(random_surface(rng, FAIR), *FAIR) if own else rng.choice([*CURVES.values()])
        members.append((which, ((0, gpus),)))
        left -= gpus
    return members


# ---- by hand -------------------------------------------------------------------------------------

LOW, MIDDLE, HIGH = Point(1000, 1000, 1.0), Point(2000, 1000, 1.5), Point(4000, 2000, 1.9)
THREE = Curve((LOW, MIDDLE, HIGH), LOW)
MUNCHER = Curve((LOW, Point(1000, 9000, 1.4)), LOW)


@pytest.mark.parametrize(
    ("members", "room", "rates"),
    [
        ([(THREE, 1)], (4000, 2000), [1.9]),
        ([(THREE, 1)], (3999, 2000), [1.5]),
        ([(THREE, 1)], (4000, 1999), [1.5]),
        ([(THREE, 1)], (1000, 1000), [1.0]),
        ([(THREE, 1), (THREE, 1)], (4000, 9000), [1.5, 1.5]),
        ([(THREE, 1), (THREE, 2)], (4000, 9000), [1.5, 1.0]),  # the step costs a wide job twice
        ([(THREE, 2), (THREE, 2)], (8000, 9000), [1.5, 1.5]),
        ([(THREE, 1), (MUNCHER, 1)], (3000, 10_000), [1.5, 1.4]),  # one wants CPU, one memory
        ([(MUNCHER, 1), (MUNCHER, 1)], (9000, 17_999), [1.4, 1.0]),
        ([], (4000, 2000), []),
    ],
)
def test_small_cases_by_hand(
    members: list[tuple[Curve, int]], room: tuple[int, int], rates: list[float]
) -> None:
    found = Filling(*room).fill(alone(*members), {0: room})
    assert sorted(point.rate for point in found.points) == sorted(rates)
    assert found.worth == pytest.approx(sum(rates))


def test_where_the_floors_do_not_fit_the_worth_says_so() -> None:
    assert filled(alone((THREE, 1), (THREE, 1)), {0: (1999, 9000)}).worth == -inf


def test_synergys_example_language_models_lend_their_cores() -> None:
    members = alone((CURVES["alexnet"], 1), *[(CURVES["gnmt"], 1)] * 7)
    found = filled(members)
    assert found.points[0] == Point(12_000, 128_000, pytest.approx(2.94))
    assert all(point.rate == 1.0 for point in found.points[1:])


def test_a_job_on_two_nodes_gets_what_the_poorer_one_has() -> None:
    res18, gnmt = CURVES["res18"], CURVES["gnmt"]
    room = {0: (24_000, GIB), 1: (10_000, GIB)}
    members: list[Member] = [(res18, ((0, 2), (1, 2))), (gnmt, ((0, 6),)), (gnmt, ((1, 2),))]
    found = filled(members, room)
    assert_within(members, found, room)
    assert found.points[0].cpu == 4000


def test_in_a_hurry_the_slow_job_is_preferred_to_the_fast_one() -> None:
    slow = Curve((Point(1000, 1000, 0.5), Point(2000, 1000, 0.8)), Point(1000, 1000, 0.5))
    fast = Curve((Point(1000, 1000, 2.0), Point(2000, 1000, 2.4)), Point(1000, 1000, 2.0))
    members = alone((slow, 1), (fast, 1))
    for hurry, rates in ((False, [0.5, 2.4]), (True, [0.8, 2.0])):
        found = Filling(4000, 4000, hurry).fill(members, {0: (3000, 4000)})
        assert [point.rate for point in found.points] == rates
    assert found.worth == pytest.approx(-1 / 0.8 - 1 / 2.0)


# ---- on any node ---------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), hurry=st.booleans())
def test_nothing_is_given_twice_and_nobody_is_under_the_floor(seed: int, hurry: bool) -> None:
    members = random_members(seed)
    found = filled(members, hurry=hurry)
    assert_within(members, found, ROOM)
    for (each, _), point in zip(members, found.points, strict=True):
        assert point.rate >= each.fair.rate - 1e-9


def test_filling_is_close_to_the_best_there_is() -> None:
    shares = []
    for seed in range(150):
        members = random_members(seed)
        found = filled(members)
        shares.append(sum(point.rate for point in found.points) / best_sum(members, CORES, GIB))
    assert max(shares) <= 1 + 1e-9
    assert min(shares) >= 0.93
    assert sum(share >= 0.97 for share in shares) >= 0.97 * len(shares)
    assert sum(shares) / len(shares) >= 0.995


@given(seed=st.integers(0, 10_000), order=st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter(seed: int, order: Random) -> None:
    members = random_members(seed)
    shuffled = members[:]
    order.shuffle(shuffled)

    def outcome(given_: list[Member]) -> list[tuple[object, ...]]:
        found = filled(given_)
        rows = [
            (id(c), spots, point) for (c, spots), point in zip(given_, found.points, strict=True)
        ]
        return sorted(rows)

    assert outcome(shuffled) == outcome(members)


@given(seed=st.integers(0, 10_000))
def test_what_was_remembered_is_what_was_computed(seed: int) -> None:
    members = random_members(seed)
    filling = Filling(CORES, GIB)
    first = filling.fill(members, ROOM)
    assert filling.fill(members, ROOM) == first
    copied = [(Curve(each.points, each.fair), spots) for each, spots in members]
    assert filling.fill(copied, ROOM) == first


@given(seed=st.integers(0, 10_000), hurry=st.booleans())
def test_jobs_over_several_nodes_keep_within_each_of_them(seed: int, hurry: bool) -> None:
    rng = Random(seed)
    room = dict.fromkeys(range(3), (CORES, GIB))
    members = random_members(seed)
    members += [(each, ((1, spots[0][1]),)) for each, spots in random_members(seed + 1)]
    # Node 2 is for jobs that also sit on one of the others, in place of somebody there.
    for index in rng.sample(range(len(members)), 2):
        each, spots = members[index]
        members[index] = (each, (*spots, (2, rng.choice([1, 2]))))
    found = filled(members, room, hurry)
    assert_within(members, found, room)
    assert found.worth > -inf
