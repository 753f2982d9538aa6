"""Which model each job trains, in the manner of Synergy (Mohan et al., OSDI'22).

Jobs belong to the classes image, language and speech in given shares. The next job is of the class
that is furthest behind its share (of equals the first), and inside a class the models take turns.
Nothing is drawn, so the sequence depends on the shares alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, cycle

from dovetail.model.errors import UserError

CLASSES = {
    "image": ("alexnet", "res18", "res50", "mobilenet", "shufflenet"),
    "language": ("gnmt", "transformer", "lstm"),
    "speech": ("m5", "deepspeech"),
}

#: seconds a training step takes at the GPU-proportional share, as in the published profiles
STEPS = {
    "alexnet": 0.6,
    "res18": 0.64,
    "res50": 0.78,
    "mobilenet": 0.71,
    "shufflenet": 0.615,
    "gnmt": 0.12,
    "transformer": 0.67,
    "lstm": 0.011,
    "m5": 0.6,
    "deepspeech": 0.757,
}


def check_split(split: tuple[float, ...]) -> None:
    """Refuse shares that are not one for each class."""
    if len(split) != len(CLASSES) or not (min(split) >= 0 and 0 < sum(split) < float("inf")):
        told = "/".join(f"{share:g}" for share in split)
        raise UserError(f"split={told}: write the shares of {', '.join(CLASSES)} as in 20/70/10")


def models(split: tuple[float, ...]) -> Iterator[str]:
    """Names of models without end, in shares of image, language and speech."""
    shares = {task: share for task, share in zip(CLASSES, split, strict=True) if share}
    turns = {task: cycle(CLASSES[task]) for task in shares}
    had, whole = dict.fromkeys(shares, 0), sum(split)
    for total in count():
        behind = {task: share * total - whole * had[task] for task, share in shares.items()}
        furthest = max(behind, key=behind.__getitem__)
        had[furthest] += 1
        yield next(turns[furthest])
