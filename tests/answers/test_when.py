"""When jobs start and end: ranges that hold as often as they promise, measured on a real trace."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from random import Random

import pytest
from replayed import Oracle

from dovetail.answers.calibration import ENOUGH, Calibration
from dovetail.answers.foresight import Foresight, fork
from dovetail.answers.when import Effort, when
from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Submitted
from dovetail.model.job import JobSpec
from dovetail.model.live import Range
from dovetail.model.request import gang
from dovetail.simulator.experiment import Replay
from dovetail.traces.loader import load


def ask(policy: str = "fifo", cluster: str = "1x4") -> Oracle:
    settings = Replay("x", cluster, policy, predictor="declared", restart_cost=0.0)
    return Oracle(settings, 1, Effort(20, 20, 60.0))


def waiting(oracle: Oracle, lengths: list[float], gpus: int = 4) -> Scheduler:
    scheduler = oracle.make()
    specs = [
        JobSpec(number, f"j{number}", 0.0, gang(gpus), estimate=length)
        for number, length in enumerate(lengths)
    ]
    scheduler.step(0.0, [Submitted(spec) for spec in specs])
    return scheduler


def test_known_lengths_give_the_moment_itself() -> None:
    oracle = ask()
    scheduler = waiting(oracle, [100.0, 50.0, 10.0])
    found = when(scheduler.image(), oracle.make, 40.0, [0, 1, 2])
    assert found[0].start == Range(0.0, 0.0, 0.0)
    assert found[1].start == Range(60.0, 60.0, 60.0)
    assert found[2].start == Range(110.0, 110.0, 110.0)
    assert found[2].end == Range(120.0, 120.0, 120.0)


def test_nobody_is_touched_by_looking_ahead() -> None:
    oracle = ask()
    scheduler = waiting(oracle, [100.0, 50.0, 10.0])
    before = scheduler.snapshot()
    when(scheduler.image(), oracle.make, 40.0, [2])
    assert scheduler.snapshot() == before


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las", "fair-share:skip=true", "gittins"])
def test_every_job_ends_in_every_future(policy: str) -> None:
    oracle = ask(policy, "2x4")
    scheduler = waiting(oracle, [float(10 + number % 7) for number in range(40)], 3)
    ahead = Foresight(fork(oracle.make, scheduler.image()), 1.0, lambda job: job.expected)
    for _ in range(5000):
        if not ahead.advance():
            break
    assert sorted(ahead.ended) == list(range(40))


def test_ranges_are_stretched_until_they_hold() -> None:
    calibration, random = Calibration(), Random(1)
    raw = Range(90.0, 100.0, 110.0)
    for _ in range(200):
        calibration.learn(raw, random.lognormvariate(5.0, 1.0))
    told = calibration.stretched(raw)
    assert told.low is not None and told.high is not None and told.high > 300
    held = [told.low <= random.lognormvariate(5.0, 1.0) <= told.high for _ in range(1000)]
    assert 0.7 <= statistics.mean(held) <= 0.9
    assert calibration.held is not None and 0.7 <= calibration.held <= 0.9
    again = Calibration()
    again.restore(calibration.snapshot())
    assert again.stretched(raw) == told


def test_what_is_certain_stays_so_and_the_unknown_too() -> None:
    calibration = Calibration()
    assert calibration.stretched(Range(0.0, 0.0, 0.0)) == Range(0.0, 0.0, 0.0)
    assert calibration.stretched(Range(1.0, None, None)) == Range(1.0, None, None)
    calibration.learn(Range(1.0, None, None), 5.0)
    assert not calibration.hits


def test_errors_of_many_jobs_do_not_even_out() -> None:
    """A hundred jobs of a user whose lengths are guesses may all run longer."""
    settings = Replay("x", "1x4", "fifo", predictor="history", restart_cost=0.0)
    oracle = Oracle(settings, 1, Effort(40, 40, 60.0))
    scheduler = oracle.make()
    specs = [JobSpec(n, f"j{n}", 0.0, gang(4), user="ann") for n in range(100)]
    scheduler.step(0.0, [Submitted(spec) for spec in specs])
    found = when(scheduler.image(), oracle.make, 1.0, [99], effort=oracle.effort)[99].start
    assert found.low is not None and found.high is not None
    # A hundred that err on their own would be known within a third or so.
    assert found.high > 2.5 * found.low


def test_a_middle_of_few_futures_is_that_of_many() -> None:
    settings = Replay("x", "1x4", "fifo", predictor="history", restart_cost=0.0)
    oracle = Oracle(settings, 1, Effort())
    scheduler = oracle.make()
    specs = [JobSpec(n, f"j{n}", 0.0, gang(4), user="ann") for n in range(30)]
    scheduler.step(0.0, [Submitted(spec) for spec in specs])
    middles = [
        when(scheduler.image(), oracle.make, 1.0, [29], effort=Effort(10, 10, 60.0), seed=seed)[29]
        for seed in range(12)
    ]
    found = [each.start.middle for each in middles if each.start.middle]
    assert max(found) < 2 * min(found)


@pytest.mark.real
@pytest.mark.shared
def test_on_philly_ranges_hold_and_beat_the_naive_guess(
    public_traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The jobs of a week on two fifths of its machines, asked about when they come."""
    trace = load(str(public_traces / "philly_82k.csv.gz"), start="2017-10-01", stop="2017-10-08")
    jobs = list(trace.jobs)[:6000]
    settings = Replay("x", "60x8", "fifo", predictor="history", restart_cost=0.0)
    oracle = Oracle(settings, 20, Effort(10, 10, 60.0))
    oracle.run(jobs, 120)
    asked = [each for each in oracle.asked.values() if each.start is not None]
    later = asked[2 * ENOUGH :]
    held = statistics.mean(each.holds for each in later)
    error = statistics.median(each.error for each in later)
    naive = statistics.median(each.naive_error for each in later)
    cold = statistics.mean(each.holds for each in asked[: 2 * ENOUGH])
    width = statistics.median(each.width for each in later)
    with capsys.disabled():
        print(  # noqa: T201
            f"\nwhen, Philly: {held:.0%} of {len(later)} ranges of 80 % held, of the first "
            f"{2 * ENOUGH} {cold:.0%}; from end to end a factor of {width:.2f} in the middle; "
            f"median error {error:.0f} s, naive {naive:.0f} s"
        )
    assert 0.7 <= held <= 0.9
    assert error < naive


def test_a_queue_of_a_thousand_is_answered_in_two_seconds() -> None:
    settings = Replay("x", "16x8", "fair-share:skip=true", predictor="history", restart_cost=0.0)
    oracle, random = Oracle(settings, 1, Effort()), Random(1)
    scheduler = oracle.make()
    sizes = (1, 1, 1, 2, 4, 8)
    specs = [
        JobSpec(number, "x", 0.0, gang(random.choice(sizes)), user=f"u{number % 20}")
        for number in range(1000)
    ]
    scheduler.step(0.0, [Submitted(spec) for spec in specs])
    begun = time.process_time()
    found = when(scheduler.image(), oracle.make, 1.0, [999])
    assert time.process_time() - begun < 2.0
    assert found[999].start.middle


def test_nothing_ends_before_it_starts_however_far_both_are_stretched() -> None:
    start, end = Range(5.0, 50.0, 900.0), Range(3.0, 60.0, 700.0)
    assert end.no_earlier(start) == Range(5.0, 60.0, 900.0)
    assert Range(3.0, None, None).no_earlier(start) == Range(5.0, None, None)
    assert end.no_earlier(Range(None, None, None)) == end
