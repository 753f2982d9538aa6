"""What we believe about a job's length. The predictor is named in every result."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.core.protocols import Predictor
from dovetail.core.registry import Registry
from dovetail.predictors.history import History
from dovetail.predictors.oracle import Declared, Noisy, Oracle

BUILTIN: dict[str, Callable[..., Predictor]] = {
    "oracle": Oracle,
    "noisy": Noisy,
    "declared": Declared,
    "history": History,
}

PREDICTORS: Registry[Predictor] = Registry(
    "predictor", BUILTIN, "dovetail.predictors", ("expect", "quantiles", "learn")
)
