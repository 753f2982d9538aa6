"""Each ordering against its definition: keys by hand, parameters that make no sense."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ordering_support import order, view, waiting
from workbench import scheduler, spec
from workloads import effort

from dovetail.model.allocation import Part, allocation_of
from dovetail.model.errors import UserError
from dovetail.model.event import Held, Submitted
from dovetail.model.job import Status
from dovetail.model.plan import Reject, Start
from dovetail.orderings import BUILTIN, ORDERINGS
from dovetail.orderings.attained import LeastAttained, next_drop, queue_of
from dovetail.orderings.fairness import FairShare, FinishTimeFairness, weights
from dovetail.orderings.gittins import Gittins, index
from dovetail.recipes import RECIPES, policy


@pytest.mark.parametrize("name", BUILTIN)
def test_every_ordering_can_be_made_by_name_and_tells_what_it_is(name: str) -> None:
    made = ORDERINGS.create(name)
    assert isinstance(made, BUILTIN[name])
    assert (type(made).__doc__ or "").strip()


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_can_be_cooked(name: str) -> None:
    cooked = policy(name)
    assert cooked.placement
    assert cooked.predictor
    cooked.ordering()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fifo:backfill=hard", "say none, easy or conservative"),
        ("fifo:backfill=easy,preempt=true", "exclude each other"),
        ("fifo:skip=perhaps", "say true or false"),
        ("fifo:depth=many", "not a valid int"),
        ("fifo:round=3", "no parameter 'round'"),
        ("fifo:patience=0", "more than 0 seconds, or none"),
        ("fifo:patience=nan", "more than 0 seconds"),
        ("las:patience=inf", "more than 0 seconds"),
        ("fifo:patience=long", "not a valid float"),
        ("las:round=0", "more than 0 seconds"),
        ("las:round=nan", "more than 0 seconds"),
        ("las:round=-5", "more than 0 seconds"),
        ("las:round=soon", "not a valid float"),
        ("las:thresholds=7200/3250", "must rise"),
        ("las:thresholds=5/5", "must rise"),
        ("las:thresholds=0/5", "above 0"),
        ("las:thresholds=-5", "above 0"),
        ("las:thresholds=nan", "must rise"),
        ("las:thresholds=a/b", "not a valid float"),
        ("las:promote=8", "needs thresholds"),
        ("las:thresholds=5,promote=-1", "0 \\(never\\) or more"),
        ("gittins:thresholds=7200/3250", "must rise"),
        ("gittins:samples=/no/such/file", "cannot be read"),
        ("deadline:admission=maybe", "say report or reject"),
        ("fair-share:half_life=0", "above 0 seconds"),
        ("fair-share:weights=a", "write them as team-a"),
        ("dominant-share:weights=a*0", "must be above 0"),
        ("dominant-share:weights=a*nan", "must be above 0"),
        ("dominant-share:preempt=true", "by tenant"),
        ("fair-share:backfill=easy", "by tenant"),
        ("finish-time-fairness:round=0", "more than 0 seconds"),
        ("tetris:srtf=-1", "must be 0 \\(packing alone\\) or more"),
        ("tetris:srtf=nan", "must be 0"),
        ("tetris:preempt=true", "by what is free"),
        ("tetris:backfill=easy", "by what is free"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_in_a_sentence(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        policy(text)


@pytest.mark.parametrize("depth", [0, -3])
def test_a_backfill_must_look_at_somebody(depth: int) -> None:
    with pytest.raises(UserError, match="depth"):
        policy(f"fifo:backfill=easy,depth={depth}")


# ---- arrival, size, length ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fifo", [0, 1, 2, 3]),
        ("sjf", [2, 1, 3, 0]),
        ("ljf", [0, 1, 3, 2]),
        ("smallest-first", [3, 1, 2, 0]),
        ("priority", [2, 0, 1, 3]),
        ("deadline", [3, 1, 0, 2]),
        ("srtf", [3, 2, 1, 0]),
        ("srsf", [3, 2, 1, 0]),
    ],
)
def test_the_order_of_four_jobs(name: str, expected: list[int]) -> None:
    jobs = [
        waiting(0, 4, 0, length=50, deadline=90.0),
        waiting(1, 2, 1, length=20, deadline=40.0),
        waiting(2, 2, 1, length=10, priority=5.0),
        waiting(3, 1, 2, length=20, deadline=20.0, ran=15),
    ]
    assert order(ORDERINGS.create(name), jobs, view(now=30.0)) == expected


def test_remaining_time_shrinks_while_a_job_runs_and_pays_its_restart() -> None:
    srtf, seen = ORDERINGS.create("srtf"), view(now=10.0)
    job = waiting(0, 2, length=100.0, ran=30)
    assert srtf.key(job, seen) == 70.0
    job.status, job.since, job.overhead = Status.RUNNING, 10.0, 5.0
    assert srtf.key(job, seen) == 75.0
    seen.now = 20.0
    assert srtf.key(job, seen) == 65.0
    assert ORDERINGS.create("srsf").key(job, seen) == 130.0


# ---- attained service --------------------------------------------------------------------------

LIMITS = (3250.0, 7200.0)


@pytest.mark.parametrize(
    ("service", "queue"),
    [(0, 0), (3249.9, 0), (3250, 1), (3251, 1), (7199, 1), (7200, 2), (9e9, 2)],
)
def test_queues_begin_at_their_thresholds(service: float, queue: int) -> None:
    assert queue_of(service, LIMITS) == queue


@pytest.mark.parametrize(
    ("service", "gpus", "at"),
    [
        (0.0, 1, 100 + 3250.0),
        (0.0, 4, 100 + 812.5),
        (250.0, 4, 100 + 750.0),
        (3250.0, 4, 100 + 987.5),
        (7200.0, 4, None),
        (0.0, 0, None),
    ],
)
def test_a_job_of_n_gpus_drops_n_times_as_fast(service: float, gpus: int, at: float | None) -> None:
    assert next_drop(service, gpus, 100.0, LIMITS) == at


def test_discretised_queues_order_by_queue_then_first_start() -> None:
    las = LeastAttained(thresholds=(10.0, 100.0))
    jobs = [waiting(n, ran=ran) for n, ran in enumerate([50.0, 5.0, 0.0, 11.0, 200.0])]
    for job, first in zip(jobs, [3.0, 9.0, None, 1.0, 0.0], strict=True):
        job.first_start = first
    assert order(las, jobs, view(now=300.0)) == [1, 2, 3, 0, 4]


def test_continuous_order_is_by_gpu_seconds() -> None:
    jobs = [waiting(0, 4, ran=10), waiting(1, 1, ran=39), waiting(2, 2, ran=19), waiting(3)]
    assert order(ORDERINGS.create("las"), jobs, view(now=99.0)) == [3, 2, 1, 0]


@pytest.mark.parametrize(("knob", "at"), [(1.0, 90.0), (2.0, 140.0), (0.5, 65.0)])
def test_a_job_is_promoted_when_it_has_waited_so_many_times_as_long_as_it_ran(
    knob: float, at: float
) -> None:
    las = LeastAttained(thresholds=(10.0,), promote=knob)
    seen = view(now=50.0)
    job = waiting(0, ran=50.0)
    job.first_start = 0.0
    seen.now = 60.0  # waits since 50, 10 seconds so far
    assert las.turn(job, seen) == at + 10.0
    seen.now = at + 10.0
    las.turned(job, seen)
    assert las.key(job, seen)[0] == 0
    assert las.turn(job, seen) is None


# ---- Gittins -----------------------------------------------------------------------------------


def by_definition(samples: list[float], attained: float, quantum: float) -> float:
    """P / E over the samples that are longer than what was attained."""
    longer = [size for size in samples if size > attained]
    if not longer:
        return 0.0
    chance = sum(size <= attained + quantum for size in longer) / len(longer)
    consumed = sum(min(size - attained, quantum) for size in longer) / len(longer)
    return chance / consumed


@effort(300)
@given(
    samples=st.lists(st.integers(1, 50).map(float), min_size=1, max_size=30).map(sorted),
    attained=st.integers(0, 60).map(float),
    quantum=st.sampled_from([1.0, 5.0, 20.0, 1000.0, float("inf")]),
)
def test_the_index_is_chance_over_expected_service(
    samples: list[float], attained: float, quantum: float
) -> None:
    sums = list(accumulate(samples, initial=0.0))
    found = index(samples, sums, attained, quantum)
    assert found == pytest.approx(by_definition(samples, attained, quantum))


def test_for_the_last_queue_the_index_is_one_over_the_mean_rest() -> None:
    samples = [10.0, 20.0, 60.0]
    sums = list(accumulate(samples, initial=0.0))
    assert index(samples, sums, 10.0, float("inf")) == pytest.approx(1 / 30)


def test_jobs_close_to_a_common_length_go_first(tmp_path: Path) -> None:
    file = tmp_path / "samples.txt"
    file.write_text("seconds\n" + "100\n" * 10 + "1000\n" * 10)
    gittins = Gittins(samples=str(file))
    jobs = [waiting(0), waiting(1, ran=150), waiting(2, ran=900), waiting(3, ran=90)]
    # 1/550, 1/850, 1/100, and half of them within 10, the others 910 more: 1/460
    assert order(gittins, jobs, view(now=1e6)) == [2, 3, 0, 1]
    assert [gittins.key(job, view(now=1e6)) for job in jobs] == [
        (0, pytest.approx(-1 / 550)),
        (0, pytest.approx(-1 / 850)),
        (0, pytest.approx(-1 / 100)),
        (0, pytest.approx(-1 / 460)),
    ]


def test_few_samples_say_nothing(tmp_path: Path) -> None:
    file = tmp_path / "samples.txt"
    file.write_text("100\n" * 19)
    keys = {Gittins(samples=str(file)).key(waiting(0, ran=ran), view()) for ran in (0, 50, 99)}
    assert keys == {(0, 0.0)}


@pytest.mark.parametrize("bad", ["ten\nten", "100\n-3", "100\nnan", "100\ninf"])
def test_samples_that_are_no_gpu_seconds_are_refused(bad: str, tmp_path: Path) -> None:
    file = tmp_path / "samples.txt"
    file.write_text(bad)
    with pytest.raises(UserError, match=f"{file}:2"):
        Gittins(samples=str(file))


# ---- deadlines ---------------------------------------------------------------------------------


def verdicts(policy_: str) -> tuple[list[str], dict[str, int]]:
    """Four GPUs, all held by others; what is said of three jobs that come after each other."""
    decider = scheduler("1x4", policy_)
    decider.step(0.0, [Held("others", allocation_of((Part(0, 0b1111),)))])
    answers = []
    for number, (gpus, length, deadline) in enumerate([(4, 10, 5.0), (4, 10, 20.0), (1, 10, 20.0)]):
        job = spec(number, gpus, length=length, deadline=deadline)
        plan = decider.step(0.0, [Submitted(job)])
        answers += [action.cause for action in plan.actions if isinstance(action, Reject)] or [""]
    return answers, decider.planners[0].report()["admission"]


def test_deadlines_are_promised_or_doubted_at_submission() -> None:
    # 0 cannot be done by 5. With it, 40 GPU-seconds are due by 20; 1 makes it 80, all there are
    # in 20 seconds; 2 is too much.
    answers, report = verdicts("deadline")
    assert answers == ["", "", ""]
    assert report == {"promised": 1, "doubtful": 2}


def test_doubtful_deadlines_can_be_refused() -> None:
    # Without 0 there is room for both.
    answers, report = verdicts("deadline:admission=reject")
    assert answers == ["its deadline is 5 s too early even if it started now", "", ""]
    assert report == {"promised": 2, "doubtful": 1}


def test_too_much_work_before_a_deadline_is_refused_with_the_ratio() -> None:
    decider = scheduler("1x4", "deadline:admission=reject")
    decider.step(0.0, [Submitted(spec(0, 4, length=15, deadline=20.0))])
    plan = decider.step(0.0, [Submitted(spec(1, 2, length=15, deadline=20.0))])
    assert [action.cause for action in plan.actions] == [
        "jobs due by then need 1.12 times the capacity"
    ]


def test_jobs_without_a_deadline_are_not_judged() -> None:
    decider = scheduler("1x4", "deadline:admission=reject")
    decider.step(0.0, [Submitted(spec(0, 4, length=1e9))])
    assert decider.planners[0].report() == {"admission": {"promised": 0, "doubtful": 0}}


# ---- fairness ----------------------------------------------------------------------------------


def test_the_worst_treated_goes_first() -> None:
    # Two active jobs, four GPUs: the fair share is two GPUs.
    fair, seen = FinishTimeFairness(), view(now=100.0)
    long, short = waiting(0, length=100.0), waiting(1, at=50, length=10.0)
    assert order(fair, [long, short], seen) == [1, 0]
    assert fair.key(long, seen) == -(100 + 100) / 100
    assert fair.key(short, seen) == -(50 + 10) / 10
    wide = waiting(2, 4, length=100.0)
    assert fair.key(wide, seen) == -(100 + 100) / (100 * 2)


def test_ratios_of_one_round_are_about_the_same_number_of_jobs() -> None:
    fair, seen = FinishTimeFairness(round=50.0), view(now=10.0)
    job = waiting(0, 4, length=100.0)
    seen.jobs[0] = job
    assert fair.key(job, seen) == -1.1
    seen.jobs[1] = waiting(1)
    assert fair.key(job, seen) == -1.1
    seen.now = 50.0
    assert fair.key(job, seen) == -0.75


def test_a_job_just_stopped_does_not_rank_before_the_one_it_was_stopped_for() -> None:
    from dovetail.model.costs import Costs

    fair, seen = FinishTimeFairness(), view(now=100.0)
    seen.costs = Costs(restart=1000.0)
    job = waiting(0, length=200.0, ran=50.0)
    job.status, job.since, job.starts = Status.RUNNING, 100.0, 1
    running = fair.key(job, seen)
    job.status = Status.WAITING
    assert fair.key(job, seen) == running


def test_use_is_forgotten_by_half_every_half_life() -> None:
    fair, seen = FairShare(half_life=100.0), view(now=100.0)
    fair.left(waiting(0, 2, ran=100.0, tenant="red"), seen, True)
    assert fair.prefix("red", seen, {}) == 200.0
    assert fair.prefix("blue", seen, {}) == 0.0
    seen.now = 200.0
    assert fair.prefix("red", seen, {}) == 100.0
    seen.now = 400.0
    assert fair.prefix("red", seen, {}) == 25.0


def test_use_adds_up_after_it_has_decayed_and_nothing_is_charged_twice() -> None:
    fair, seen = FairShare(half_life=100.0), view(now=100.0)
    job = waiting(0, 1, ran=80.0, tenant="red")
    fair.left(job, seen, False)
    seen.now, job.run_time = 200.0, 130.0
    fair.left(job, seen, True)
    assert fair.prefix("red", seen, {}) == 40.0 + 50.0


def test_what_is_held_counts_as_if_for_one_half_life_more_and_weights_divide() -> None:
    fair, seen = FairShare(half_life=100.0, weights="red*4"), view()
    seen.held["red"] = (3000, 0, 0)
    assert fair.prefix("red", seen, {"red": (1000, 0, 0)}) == (3 + 1) * 100.0 / 4
    assert weights("a*2/b*0.5") == {"a": 2.0, "b": 0.5}


def test_the_dominant_share_is_the_largest_of_three() -> None:
    drf = ORDERINGS.create("dominant-share:weights=red*2")
    seen = view("2x4,cpus=10,mem=10")
    seen.held["blue"] = (2000, 5000, 2 * 1024)
    assert drf.prefix("blue", seen, {}) == 0.25
    seen.held["blue"] = (2000, 12000, 2 * 1024)
    assert drf.prefix("blue", seen, {}) == 0.6
    seen.held["blue"] = (2000, 5000, 15 * 1024)
    assert drf.prefix("blue", seen, {}) == 0.75
    seen.held["red"] = (4000, 0, 0)
    assert drf.prefix("red", seen, {}) == 0.25
    assert drf.prefix("red", seen, {"red": (2000, 0, 0)}) == 0.375


def test_progressive_filling_serves_the_lowest_tenant_again_and_again() -> None:
    decider = scheduler("1x8", "dominant-share")
    jobs = [spec(n, 2, tenant="red") for n in range(4)]
    jobs += [spec(n, 1, tenant="blue") for n in range(4, 12)]
    plan = decider.step(0.0, [Submitted(job) for job in jobs])
    started = [action.job for action in plan.actions if isinstance(action, Start)]
    # red 1/4, blue 1/8, blue 1/4, red 1/2, blue 3/8, blue 1/2: then eight are gone
    assert started == [0, 4, 5, 1, 6, 7]
