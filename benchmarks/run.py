"""`make bench`: how fast simulator and controller are, and as ratios to a calibration loop.

Each case runs in a process of its own, with calibration loops all through it. What is checked
against `ranges.toml` is cost per job (or event) in units of that loop, so that a slow or busy
machine does not matter much. Rates are 2 x finished jobs per CPU second, trace generation included.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import plans
import served

import live

LIVE = {**live.KINDS, **served.KINDS}
HERE = Path(__file__).parent
SHARED = HERE.parent.parent / "shared" / "data" / "traces"
PHILLY = SHARED / "philly_82k.csv.gz"


def calibrate(additions: int = 1_000_000) -> float:
    """CPU seconds of ten million additions, measured on fewer of them."""
    begun = time.process_time()
    total = 0
    for number in range(additions):
        total += number
    return 10_000_000 / additions * (time.process_time() - begun)


class Calibration:
    """Samples of the loop all through a run: the speed of a shared machine changes within it."""

    def __init__(self) -> None:
        self.samples: list[float] = []
        self.spent = 0.0
        self._calls = 0

    def sample(self, done: int, total: int | None) -> None:
        """A short loop now and then; what it costs is not the run's."""
        self._calls += 1
        if self._calls % 5 == 1:
            begun = time.process_time()
            self.samples.append(calibrate(100_000))
            self.spent += time.process_time() - begun


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """One case in this process: figures and what they cost in calibration loops."""
    from dovetail.metrics.summary import summarise  # noqa: PLC0415
    from dovetail.simulator.experiment import Replay, replay  # noqa: PLC0415

    calibration, before = Calibration(), calibrate()
    run = replay(Replay(**case["replay"]), calibration.sample)
    loop = statistics.mean((before, *calibration.samples, calibrate()))
    run.cpu_seconds -= calibration.spent
    result = summarise(run)
    jobs = result["jobs"]
    return {
        "finished": jobs["finished"],
        "events": run.events,
        "cpu_seconds": round(run.cpu_seconds, 3),
        "peak_memory_mib": round(run.peak_memory_mib),
        "calibration": round(loop, 4),
        "rate": round(2 * jobs["finished"] / run.cpu_seconds),
        "cost_per_job": round(1e6 * run.cpu_seconds / jobs["submitted"] / loop, 1),
        "cost_per_event": round(1e6 * run.cpu_seconds / run.events / loop, 1),
        "preemptions": run.preemptions,
        "mean_jct": result["jct"]["mean"],
    }


def measure_plan(case: dict[str, Any]) -> dict[str, Any]:
    """One plan in this process: everything submitted at once, so that all jobs are new."""
    before = calibrate()
    made = plans.KINDS[case["kind"]](**case["of"])
    times = []
    for _ in range(case["repeat"]):
        begun = time.process_time()
        made()
        times.append(time.process_time() - begun)
    loop = statistics.mean((before, calibrate()))
    return {
        "first_ms": round(1e3 * times[0], 2),
        "median_ms": round(1e3 * statistics.median(times), 2),
        "calibration": round(loop, 4),
        "cost": round(1e3 * statistics.median(times) / loop, 1),
    }


def measure_live(case: dict[str, Any]) -> dict[str, Any]:
    """The controller under load in this process; `ms` is on the clock, the disk included."""
    before = calibrate()
    figures: dict[str, Any] = LIVE[case["live"]](**case["of"])
    loop = statistics.mean((before, calibrate()))
    for name in [name for name in figures if name.endswith("cpu_ms")]:
        figures[name.removesuffix("cpu_ms") + "cost"] = round(figures[name] / loop, 2)
    return {**figures, "calibration": round(loop, 4)}


def measured(case: dict[str, Any]) -> dict[str, Any]:
    """A case of any kind in this process."""
    if "live" in case:
        return measure_live(case)
    return measure_plan(case) if "kind" in case else measure(case)


def in_process(name: str, case: dict[str, Any]) -> dict[str, Any]:
    """A case in a fresh process, so that memory and warm-up are its own."""
    command = [sys.executable, __file__, "--case", json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    figures: dict[str, Any] = json.loads(done.stdout)
    if "ms" in figures:
        print(
            f"{name:34} {figures['rate']:>9,}/s  {figures['ms']:>9,} ms  "
            f"{figures['cost']:>7} per loop second",
            flush=True,
        )
        return figures
    if "median_ms" in figures:
        print(
            f"{name:34} {figures['median_ms']:>9,} ms  {figures['cost']:>7} per loop second  "
            f"(the first time {figures['first_ms']:,} ms)",
            flush=True,
        )
        return figures
    print(
        f"{name:34} {figures['rate']:>9,}/s  {figures['cost_per_job']:>7} per job  "
        f"{figures['cpu_seconds']:>8.2f} s CPU  {figures['peak_memory_mib']:>5} MiB",
        flush=True,
    )
    return figures


def check(figures: dict[str, Any], ranges: dict[str, Any]) -> list[str]:
    """What is out of range, in sentences."""
    wrong = []
    for name, limits in ranges.items():
        for key, most in limits.items():
            base = limits.get("against")
            if key == "against" or name not in figures or (base and base not in figures):
                continue
            if key == "growth":
                value = figures[name]["cost_per_event"] / figures[base]["cost_per_event"]
            else:
                value = figures[name][key]
            if value > most:
                wrong.append(f"{name}: {key} is {value:.1f}, at most {most} is allowed")
    return wrong


def main() -> None:
    """Run the cases, write the figures, compare with the ranges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    parser.add_argument("--case", help="internal: run one case and print its figures")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the jobs to run")
    asked = parser.parse_args()
    if asked.case:
        print(json.dumps(measured(json.loads(asked.case))))
        return
    spec = tomllib.loads((HERE / "ranges.toml").read_text())
    figures = {}
    for name, case in spec["cases"].items():
        if asked.only not in name:
            continue
        settings = dict(case)
        jobs = int(settings.pop("jobs", 0) * asked.scale)
        settings["trace"] = settings["trace"].format(jobs=jobs, philly=PHILLY)
        if str(PHILLY) in settings["trace"] and not PHILLY.exists():
            print(f"{name:34} skipped: {PHILLY.name} is not beside the project")
            continue
        figures[name] = in_process(name, {"replay": settings})
    for name, case in spec["plans"].items():
        if asked.only in name:
            figures[name] = in_process(name, case)
    for name, case in spec["live"].items():
        if asked.only in name:
            of = {**case["of"], "jobs": int(case["of"]["jobs"] * asked.scale)}
            figures[name] = in_process(name, {**case, "of": of})
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    wrong = check(figures, spec["ranges"])
    asked.out.write_text(json.dumps({"figures": figures, "out_of_range": wrong}, indent=2) + "\n")
    for sentence in wrong:
        print(sentence)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
