"""A training loop in plain Python that checkpoints and resumes; the same with and without Dovetail.

    python examples/live/train.py --steps 200
    dovetail submit --gpus 1 --resumable -- python examples/live/train.py --steps 200

It fits a line to points by gradient descent. What is saved goes to the job's own folder, which all
attempts of a job share, or here where nobody named one. Started again it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from pathlib import Path

from dovetail_client import checkpointed, progress, should_checkpoint

CHECKPOINT = Path(os.environ.get("DOVETAIL_JOB_DIR", ".")) / "train-checkpoint.json"


def load() -> dict[str, float]:
    """What the last attempt saved, or a beginning."""
    if CHECKPOINT.exists():
        return dict(json.loads(CHECKPOINT.read_text()))
    return {"step": 0, "slope": 0.0, "offset": 0.0}


def save(state: dict[str, float]) -> None:
    """All of it or nothing: a half-written checkpoint would be worse than none."""
    fresh = CHECKPOINT.with_suffix(".new")
    fresh.write_text(json.dumps(state))
    fresh.replace(CHECKPOINT)


def step(state: dict[str, float], rate: float) -> float:
    """One step of gradient descent on a point of y = 3x + 2; the error before it."""
    chance = random.Random(state["step"])
    x = chance.uniform(-1, 1)
    error = state["slope"] * x + state["offset"] - (3 * x + 2)
    state["slope"] -= rate * error * x
    state["offset"] -= rate * error
    state["step"] += 1
    return error


def main() -> None:
    """Train until the last step."""
    parser = argparse.ArgumentParser(description="Fits a line, slowly.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.05, help="a step takes at least")
    parser.add_argument("--rate", type=float, default=0.1, help="of learning")
    given = parser.parse_args()

    state = load()
    if state["step"]:
        print(f"resumed at step {state['step']}", flush=True)
    while state["step"] < given.steps:
        error = step(state, given.rate)
        time.sleep(given.seconds)
        progress(int(state["step"]), total=given.steps)
        if state["step"] % 20 == 0:
            print(f"step {state['step']}: error {error:+.4f}", flush=True)
        if should_checkpoint():
            save(state)
            print(f"saved at step {state['step']}", flush=True)
            # Here the job ends, if that is why it was asked to save.
            checkpointed()
    CHECKPOINT.unlink(missing_ok=True)
    print(f"y = {state['slope']:.2f} x + {state['offset']:.2f}")


if __name__ == "__main__":
    main()
