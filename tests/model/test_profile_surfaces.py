"""Surfaces between and beyond their grid points, and profiles as files that people write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.model.errors import UserError
from dovetail.model.profile import Profile, Surface
from dovetail.profiles import catalogue, published, read_profiles, written

GRID = Surface((2.0, 4.0, 8.0), (10.0, 20.0), ((1.0, 2.0), (3.0, 6.0), (5.0, 6.0)))


# ---- surfaces ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cores", "memory", "speed"),
    [
        (2, 10, 1.0),
        (4, 20, 6.0),
        (3, 10, 2.0),  # half-way in cores
        (4, 15, 4.5),  # half-way in memory
        (3, 15, 3.0),  # half-way in both: the mean of four corners
        (6, 12, 4.4),  # half-way between 3.6 and 5.2
        (5, 20, 6.0),
        (8, 10, 5.0),
        (99, 10, 5.0),  # beyond the last level nothing changes
        (8, 99, 6.0),
        (99, 99, 6.0),
        (4, 1, 3.0),  # less memory than was measured: as the least that was
        (1, 10, 0.5),  # fewer cores than were measured: in proportion
        (0.5, 20, 0.5),
        (0, 10, 0.0),
    ],
)
def test_speeds_are_bilinear_within_the_grid_and_flat_beyond(
    cores: float, memory: float, speed: float
) -> None:
    assert GRID.at(cores, memory) == pytest.approx(speed)


def test_one_level_is_a_surface_too() -> None:
    point = Surface((2.0,), (8.0,), ((3.0,),))
    assert [point.at(*at) for at in ((1, 8), (2, 8), (4, 99), (2, 1))] == [1.5, 3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("model", "cores", "memory", "rate"),
    [
        ("alexnet", 3, 62.5, 1.0),
        ("alexnet", 10, 125, 2.3133),  # a third of the way from 2 to 2.94
        ("alexnet", 12, 125, 2.94),
        ("alexnet", 12, 93.75, 2.47),  # half-way in memory from 2 to 2.94
        ("alexnet", 24, 500, 2.94),
        ("alexnet", 0.5, 62.5, 0.15),
        ("m5", 6, 125, 2.0),
        ("m5", 6, 187.5, 2.5),
        ("m5", 6, 156.25, 2.25),
        ("m5", 5.5, 62.5, 1.45),
        ("res18", 7, 62.5, 1.9667),
        ("gnmt", 1, 20.83, 1.0),
        ("deepspeech", 24, 250, 1.0),
        ("res50", 3, 20.83, 0.1),
    ],
)
def test_published_models_at_points_computed_by_hand(
    model: str, cores: float, memory: float, rate: float
) -> None:
    assert published()[model].rate(cores, memory) == pytest.approx(rate, abs=5e-5)


levels = st.lists(st.integers(1, 200), min_size=1, max_size=5, unique=True).map(sorted)


@st.composite
def surfaces(draw: st.DrawFn) -> Surface:
    cores, memory = draw(levels), draw(levels)
    speeds = st.floats(0.01, 10, allow_subnormal=False)
    row = st.lists(speeds, min_size=len(memory), max_size=len(memory)).map(tuple)
    rows = draw(st.lists(row, min_size=len(cores), max_size=len(cores)))
    return Surface(tuple(map(float, cores)), tuple(map(float, memory)), tuple(rows))


@given(surface=surfaces(), cores=st.floats(0, 300), memory=st.floats(0, 300))
def test_no_speed_is_outside_of_what_was_measured(
    surface: Surface, cores: float, memory: float
) -> None:
    every = [value for row in surface.speed for value in row]
    speed = surface.at(cores, memory)
    assert speed <= max(every) + 1e-9
    assert cores < surface.cores[0] or speed >= min(every) - 1e-9
    assert surface.best == max(every)


@given(surface=surfaces())
def test_grid_points_are_what_was_measured(surface: Surface) -> None:
    for row, cores in zip(surface.speed, surface.cores, strict=True):
        assert [surface.at(cores, each) for each in surface.memory] == pytest.approx(list(row))


# ---- profiles ----------------------------------------------------------------------------------


def test_a_gpu_type_has_speeds_of_its_own_in_the_unit_of_the_reference() -> None:
    fast = Surface((2.0, 4.0), (10.0,), ((4.0,), (8.0,)))
    profile = Profile("mine", GRID, (4.0, 10.0), {"A100": fast})
    assert profile.rate(4, 10) == 1.0
    assert profile.rate(4, 10, "V100") == 1.0
    assert profile.rate(4, 10, "A100") == pytest.approx(8 / 3)
    assert profile.on("A100").at(2, 10) == pytest.approx(4 / 3)
    assert profile.on("V100").at(8, 10) == pytest.approx(5 / 3)


@given(surface=surfaces(), cores=st.floats(0, 300), memory=st.floats(0, 300))
def test_scaled_surfaces_and_rates_agree(surface: Surface, cores: float, memory: float) -> None:
    profile = Profile("any", surface, (surface.cores[-1], surface.memory[0]))
    assert profile.on("").at(cores, memory) == pytest.approx(profile.rate(cores, memory))
    assert profile.rate(*profile.reference) == pytest.approx(1.0)


# ---- files -------------------------------------------------------------------------------------

GOOD = {
    "reference": "{ cores = 2, memory = 10 }",
    "cores": "[2, 4]",
    "memory": "[10, 20]",
    "speed": "[[1, 2], [3, 4]]",
}


def text(**changes: str | None) -> str:
    rows = {**GOOD, **changes}
    return "[mine]\n" + "\n".join(f"{key} = {value}" for key, value in rows.items() if value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (text(reference=None), "[mine] lacks reference"),
        (text(cores=None), "[mine] lacks cores"),
        (text(memory=None), "[mine] lacks memory"),
        (text(speed=None), "[mine] lacks speed"),
        (text(reference="{ cores = 2 }"), "[mine] lacks memory"),
        (text(speed="[[1, 2]]"), "[mine] 1 rows of speed for 2 core levels"),
        (text(speed="[[1, 2], [3]]"), "[mine] a row of 1 speeds for 2 memory levels"),
        (text(speed='[[1, 2], [3, "fast"]]'), "[mine] has something else than a number"),
        (text(speed="[1, 2]"), "[mine] has something else than a number"),
        (text(cores='["few", "many"]'), "[mine] has something else than a number"),
        (text(cores="2"), "[mine] has something else than a number"),
        (text(reference="3"), "[mine] has something else than a number"),
        (text(speed="[[1, 2], [3, -4]]"), "[mine] a speed must be a number above 0"),
        (text(speed="[[1, 2], [3, 0]]"), "[mine] a speed must be a number above 0"),
        (text(speed="[[1, 2], [3, nan]]"), "[mine] a speed must be a number above 0"),
        (text(speed="[[1, 2], [3, inf]]"), "[mine] a speed must be a number above 0"),
        (text(cores="[4, 2]"), "[mine] cores: levels must rise from first to last"),
        (text(memory="[10, 10]"), "[mine] memory: levels must rise from first to last"),
        (text(cores="[-1, 2]"), "[mine] cores: levels must be numbers above 0"),
        (text(memory="[0, 10]"), "[mine] memory: levels must be numbers above 0"),
        (text(cores="[]"), "[mine] a profile needs at least one level of cores"),
        (text(reference="{ cores = 0, memory = 10 }"), "the reference share must be above 0 cores"),
        (text(colour='"red"'), "[mine] unknown key 'colour'; keys are cores, memory, reference"),
        (text(step='"soon"'), "[mine] has something else than a number"),
        (text(types="{ A = { speed = [[1]] } }"), "[mine] 1 rows of speed for 2 core levels"),
        (text(types="{ A = { speeds = [[1]] } }"), "[mine] types.A: unknown key 'speeds'"),
        (text(types="3"), "[mine] has something else than a number"),
        ("mine = 3", "[mine] has something else than a number"),
        ("[mine", "is not valid TOML"),
    ],
)
def test_a_bad_file_is_answered_with_a_sentence(
    content: str, sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "profiles.toml"
    file.write_text(content)
    with pytest.raises(UserError) as refused:
        read_profiles(str(file))
    assert str(refused.value).startswith(f"{file}: ")
    assert sentence in str(refused.value)


def test_a_file_that_is_not_there_or_not_text_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\xff\xfe\x00\x9c")
    for name, sentence in (
        ("gone", "gone: cannot be read (No such file or directory)"),
        (".", "cannot be read (Is a directory)"),
        ("picture", "picture: is not a text file"),
    ):
        with pytest.raises(UserError) as refused:
            read_profiles(str(tmp_path / name))
        assert sentence in str(refused.value)


def test_what_is_written_can_be_read_again(tmp_path: Path) -> None:
    odd = Profile(
        'a "b" \\ c',
        GRID,
        (4.0, 10.0),
        {"A100 80G": Surface((1.0,), (2.0,), ((0.5,),))},
        task="speech",
        step=0.25,
        source='measured "by hand"',
    )
    file = tmp_path / "all.toml"
    file.write_text(written({**published(), odd.name: odd}))
    assert read_profiles(str(file)) == {**published(), odd.name: odd}


def test_a_file_stands_over_the_published_models(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text().replace("[mine]", "[alexnet]"))
    mixed = catalogue(str(file))
    assert mixed["alexnet"].surface.cores == (2.0, 4.0)
    assert mixed["m5"] == published()["m5"] == catalogue()["m5"]


@pytest.mark.shared
def test_the_published_models_are_those_of_the_artifact(public_traces: Path) -> None:
    source = json.loads((public_traces.parent / "synergy" / "models.json").read_text())
    assert set(source["models"]) == set(published())
    assert len(published()) == 10
    for name, given_ in source["models"].items():
        profile = published()[name]
        assert list(profile.surface.cores) == source["cpu_levels_per_gpu"]
        assert list(profile.surface.memory) == source["mem_levels_gb_per_gpu"]
        assert [list(row) for row in profile.surface.speed] == given_["throughput_matrix"]
        assert (profile.task, profile.step) == (given_["task"], given_["iter_time_s"])
        assert profile.reference == (3.0, 62.5)
