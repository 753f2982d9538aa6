"""Values as JSON can hold them: no nan, no infinity, no numpy scalars, no objects.

`json.dumps` writes `NaN`, which no other reader accepts; here it becomes null. Knows nothing of
schedules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any


def plain(value: Any) -> Any:
    """`value` in terms of dict, list, str, int, float, bool and None; the rest as its text."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _container(value)


def _container(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value)
