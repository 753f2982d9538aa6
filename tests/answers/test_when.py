"""When jobs start and end: ranges that hold as often as they promise, measured on a real trace."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from random import Random

import pytest
import workbench
from replayed import Oracle, scores

from dovetail.answers.arrivals import Arrivals
from dovetail.answers.calibration import Calibration, Open
from dovetail.answers.foresight import Foresight, fork
from dovetail.answers.when import Effort, when
from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Started, Submitted
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
        told = calibration.stretched(raw)
        calibration.learn(raw, told, random.lognormvariate(5.0, 1.0))
    told = calibration.stretched(raw)
    assert told.low is not None and told.high is not None and told.high > 300
    held = [told.low <= random.lognormvariate(5.0, 1.0) <= told.high for _ in range(1000)]
    assert 0.7 <= statistics.mean(held) <= 0.9
    assert calibration.held is not None and 0.7 <= calibration.held <= 0.9
    again = Calibration()
    again.restore(calibration.snapshot())
    assert again.stretched(raw) == told


def test_those_who_still_wait_widen_ranges_before_anything_came_true() -> None:
    calibration, raw = Calibration(), Range(90.0, 100.0, 110.0)
    cold = calibration.stretched(raw)
    waiting = calibration.stretched(raw, [Open(raw, 5000.0)] * 10)
    just_asked = calibration.stretched(raw, [Open(raw, 0.0)] * 10)
    assert cold.high is not None and waiting.high is not None
    assert waiting.high > 5 * cold.high
    assert just_asked == cold


def test_what_an_older_version_kept_is_learned_anew() -> None:
    calibration = Calibration()
    calibration.restore({"above": [1.0], "below": [2.0], "hits": [True], "errors": [3.0]})
    assert calibration == Calibration()


def test_what_is_certain_stays_so_and_the_unknown_too() -> None:
    calibration, unknown = Calibration(), Range(1.0, None, None)
    assert calibration.stretched(Range(0.0, 0.0, 0.0)) == Range(0.0, 0.0, 0.0)
    assert calibration.stretched(unknown, [Open(unknown, 5.0)]) == unknown
    calibration.learn(unknown, unknown, 5.0)
    assert not calibration.hits


def test_who_waits_for_a_stop_starts_when_that_is_over() -> None:
    """Its devices are its own already, but somebody is still on them."""

    def make() -> Scheduler:
        return workbench.scheduler("1x4", "srtf", acknowledged=True)

    scheduler = make()
    scheduler.step(0.0, [Submitted(workbench.spec(0, 4, length=1000.0, resumable=True))])
    held = scheduler.jobs[0].allocation
    assert held is not None
    scheduler.step(1.0, [Started(0, held)])
    scheduler.step(10.0, [Submitted(workbench.spec(1, 4, 10.0, length=50.0))])
    assert scheduler.jobs[1].awaits == {0}
    found = when(scheduler.image(), make, 12.0, [1], leaving={0: 40.0})[1].start
    assert found.low is not None and found.middle is not None and found.high is not None
    assert 0.0 < found.low < found.middle < found.high <= 28.0


def test_who_comes_later_may_go_first() -> None:
    """Short jobs have come every two seconds: a long one will wait for more of them."""
    oracle = ask("sjf")
    scheduler = waiting(oracle, [10.0, 1000.0])
    past = [JobSpec(9 + n, "x", 2.0 * n - 200.0, gang(4), estimate=20.0) for n in range(100)]
    alone = when(scheduler.image(), oracle.make, 1.0, [1], effort=oracle.effort)[1].start
    busy = when(
        scheduler.image(), oracle.make, 1.0, [1], effort=oracle.effort, arrivals=Arrivals(past)
    )[1].start
    assert alone.middle == 9.0
    assert busy.middle is not None and busy.middle > 100.0


def test_tenants_that_are_apart_are_looked_at_alone() -> None:
    def make() -> Scheduler:
        tenants = workbench.owners("cells", red="nodes = 1", blue="nodes = 1")
        return workbench.scheduler("2x4", "fifo", tenants=tenants)

    scheduler = make()
    numbers = range(20)
    scheduler.step(
        0.0,
        [
            Submitted(workbench.spec(n, 4, length=10.0, tenant=("red", "blue")[n % 2]))
            for n in numbers
        ],
    )
    red = scheduler.images_of([0])[0]
    assert {job.id for job in red["jobs"]} == set(numbers[::2])
    apart = when(red, lambda: workbench.scheduler("1x4", "fifo"), 1.0, [18])[18]
    together = when(scheduler.image(), make, 1.0, numbers)[18]
    assert (apart.start, apart.end) == (together.start, together.end)
    assert apart.start == Range(89.0, 89.0, 89.0)


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


WEEKS = {
    "10-01": ("10-01", "10-08", "60x8", "fifo", 20, False),
    "11-05": ("11-05", "11-09", "40x8", "fifo:skip=true", 10, False),
    "12-03": ("12-03", "12-10", "32x8", "srtf", 15, False),
}
"""Of Philly; the first is the one on which it was decided how much luck jobs share."""


@pytest.mark.real
@pytest.mark.shared
@pytest.mark.parametrize("week", WEEKS)
def test_on_philly_ranges_hold_and_beat_the_naive_guess(
    week: str, public_traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Jobs on too few machines, asked about when they come, or any of those who wait."""
    start, stop, cluster, policy, every, drawn = WEEKS[week]
    trace = load(
        str(public_traces / "philly_82k.csv.gz"), start=f"2017-{start}", stop=f"2017-{stop}"
    )
    settings = Replay("x", cluster, policy, predictor="history", restart_cost=0.0)
    oracle = Oracle(settings, every, Effort(8, 8, 60.0), drawn)
    oracle.run(list(trace.jobs), 100)
    starts, ends = scores(oracle)
    with capsys.disabled():
        print(f"\nwhen, Philly {week}, {policy}: starts: {starts}; ends: {ends}")  # noqa: T201
    for found in (starts, ends):
        assert 0.7 <= found.held <= 0.9
        assert found.error < found.naive


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
