"""A PyTorch training loop that checkpoints and resumes; the same with and without Dovetail.

    pip install torch
    dovetail submit --gpus 1 --resumable -- python examples/live/train_torch.py --epochs 20

It saves model, optimiser and place in the data, so that a resumed run goes on as if nothing had
happened. Runs on the GPU it was given, or on the processor where there is none.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

try:
    import torch
except ImportError:
    sys.exit("This example needs PyTorch: pip install torch")

from dovetail_client import checkpointed, progress, should_checkpoint

CHECKPOINT = Path(os.environ.get("DOVETAIL_JOB_DIR", ".")) / "torch-checkpoint.pt"
BATCHES, BATCH = 50, 64


def batch(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points of a spiral, and on which of its two arms they lie."""
    chance = torch.Generator().manual_seed(number)
    arm = torch.randint(0, 2, (BATCH,), generator=chance)
    turn = 6 * torch.rand(BATCH, generator=chance)
    angle = turn + arm * torch.pi
    return torch.stack((turn * angle.cos(), turn * angle.sin()), dim=1) / 6, arm


def main() -> None:
    """Train until the last epoch."""
    parser = argparse.ArgumentParser(description="Learns to tell the arms of a spiral apart.")
    parser.add_argument("--epochs", type=int, default=20)
    given = parser.parse_args()
    total = given.epochs * BATCHES

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 2),
    ).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    done = 0
    if CHECKPOINT.exists():
        saved = torch.load(CHECKPOINT, map_location=device, weights_only=True)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        done = saved["done"]
        print(f"resumed at step {done}", flush=True)

    def save() -> None:
        fresh = CHECKPOINT.with_suffix(".new")
        state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "done": done}
        torch.save(state, fresh)
        fresh.replace(CHECKPOINT)
        print(f"saved at step {done}", flush=True)
        # Here the job ends, if that is why it was asked to save.
        checkpointed()

    while done < total:
        points, arm = (part.to(device) for part in batch(done % BATCHES))
        loss = torch.nn.functional.cross_entropy(model(points), arm)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        done += 1
        progress(done, total=total, epoch=BATCHES)
        if done % BATCHES == 0:
            print(f"epoch {done // BATCHES}: loss {loss.item():.4f}", flush=True)
        if done % BATCHES == 0 or should_checkpoint():
            save()
    CHECKPOINT.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
