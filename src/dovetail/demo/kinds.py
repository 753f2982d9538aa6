"""The kinds of training jobs of the demo: how much the processor and the device do in a step.

They differ as the models of Synergy do: images keep processors busy, text keeps devices busy.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """What a step takes."""

    name: str
    #: pictures decoded on the processor
    batch: int
    #: seconds on the virtual device
    device: float


KINDS = {
    kind.name: kind
    for kind in (
        Kind("image", 256, 0.004),
        Kind("speech", 48, 0.012),
        Kind("text", 24, 0.020),
    )
}
