"""Measurements put together, what is said about them, and what profiling costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.model.errors import UserError
from dovetail.model.profile import Profile, Surface
from dovetail.profiler.bisection import Bisection
from dovetail.profiler.caching import Dataset
from dovetail.profiler.measurement import Measurement
from dovetail.profiler.needs import Needs
from dovetail.profiler.sensitivity import Task, compose
from dovetail.profiler.session import explore
from dovetail.profiles import published, read_profiles, written
from dovetail.report.profiles import needs

SAID = [
    ("res18", "profits up to 9 cores per GPU, needs 60 GiB; 3 cores cost it 58 %"),
    (
        "alexnet",
        "profits up to 12 cores per GPU, needs 115 GiB; 3 cores cost it 66 %, "
        "62.5 GiB cost it 32 %",
    ),
    ("gnmt", "is content with 1 core per GPU, needs 21 GiB; 3 cores and 62.5 GiB are enough"),
    ("deepspeech", "profits up to 3 cores per GPU, needs 60 GiB; 3 cores and 62.5 GiB are enough"),
]


@pytest.mark.parametrize(("name", "words"), SAID)
def test_what_a_published_model_needs(name: str, words: str) -> None:
    assert needs(published()[name]) == words


def points(*speeds: float, **more: float) -> list[Measurement]:
    return [
        Measurement(cores, speed, 0.01, memory=4.0, seconds=10.0, **more)  # type: ignore[arg-type]
        for cores, speed in enumerate(speeds, 1)
    ]


def test_speed_is_one_at_the_reference_share_and_a_step_is_known() -> None:
    profile = compose(Task("job", 1, (2.0, 62.5)), points(5.0, 8.0, 10.0)).profile
    assert profile.rate(2, 62.5) == pytest.approx(1.0)
    assert profile.rate(3, 62.5) == pytest.approx(1.25)
    assert profile.step == pytest.approx(1 / 8)


def test_a_profile_is_per_gpu() -> None:
    found = [Measurement(4, 5.0, memory=8.0), Measurement(8, 10.0, memory=8.0)]
    surface = compose(Task("job", 4, (2.0, 62.5)), found).profile.surface
    assert (surface.cores, surface.memory) == ((1.0, 2.0), (2.0,))


def test_a_job_that_used_a_part_of_a_core_is_content_with_that_part() -> None:
    profile = compose(Task("job", 1, (1.0, 62.5)), points(5.0, 5.0, used=0.25)).profile
    assert profile.surface.cores == (0.3, 1.0, 2.0)
    assert [profile.rate(cores, 62.5) for cores in (0.15, 0.3, 1.0)] == [0.5, 1.0, 1.0]
    assert needs(profile).startswith("is content with 0.3 cores per GPU")


def test_a_job_that_used_all_its_cores_needs_them() -> None:
    profile = compose(Task("job", 1, (1.0, 62.5)), points(5.0, 9.0, used=0.98)).profile
    assert profile.surface.cores == (1.0, 2.0)


def test_a_job_that_was_kept_from_its_core_by_others_may_need_all_of_it() -> None:
    starved = points(5.0, 5.0, used=0.25, others=0.7)
    profile = compose(Task("job", 1, (1.0, 62.5)), starved).profile
    assert profile.surface.cores == (1.0, 2.0)


def test_noise_that_falls_is_smoothed() -> None:
    findings = compose(Task("job", 1, (1.0, 1.0)), points(1.0, 2.02, 1.98))
    assert findings.profile.surface.speed[1] == findings.profile.surface.speed[2]
    assert findings.notices == ()


def test_a_real_fall_is_told() -> None:
    (notice,) = compose(Task("job"), points(1.0, 2.0, 1.5)).notices
    assert "up to 25 % slower" in notice


def test_busy_neighbours_are_told() -> None:
    (notice,) = compose(Task("job"), points(1.0, 2.0, others=0.4)).notices
    assert "Other programs used up to 40 %" in notice


def test_the_cost_is_set_against_the_full_grid() -> None:
    data = Dataset(100.0, 1000, 1e9)
    cost = compose(Task("job", counts=24), points(1.0, 2.0, 3.0), data).cost
    assert (cost.points, cost.grid_points, cost.seconds, cost.grid_seconds) == (3, 264, 30, 2640)
    assert compose(Task("job", counts=24), points(1.0, 2.0, 3.0)).cost.grid_points == 24


def test_nothing_measured_is_nothing_to_say() -> None:
    with pytest.raises(UserError, match="nothing was measured"):
        compose(Task("job"), [])


def test_what_was_measured_can_be_kept_and_read_again(tmp_path: Path) -> None:
    profile = compose(Task("my job"), points(1.0, 2.0), Dataset(100.0, 1000, 1e8)).profile
    file = tmp_path / "profiles.toml"
    file.write_text(written({profile.name: profile}))
    again = read_profiles(str(file))["my job"]
    assert again.rate(2, 60) == pytest.approx(profile.rate(2, 60), rel=1e-4)
    assert again.source == "measured on 1 GPU with 1, 2 cores, 10 s each"


def test_a_search_that_is_stopped_keeps_what_was_measured() -> None:
    def measure(cores: int) -> Measurement:
        if cores == 12:
            raise KeyboardInterrupt
        return Measurement(cores, float(cores))

    found, stopped = explore(Bisection(1, 24), measure)
    assert stopped
    assert [each.cores for each in found] == [24, 1]


def test_needs_of_a_curve_that_still_rises() -> None:
    surface = Surface((1.0, 2.0), (4.0,), ((1.0,), (2.0,)))
    found = Needs.of(Profile("job", surface, (1.0, 4.0)))
    assert (found.cores, found.memory, found.open_ended) == (2.0, 4.0, True)
    assert found.lost_to_cores == 0.5
    assert needs(Profile("job", surface, (1.0, 4.0))) == (
        "profits up to 2 cores per GPU, the most that was tried, needs 4 GiB; 1 core costs it 50 %"
    )
