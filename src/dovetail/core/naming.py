"""Jobs as sentences name them: by name. The numbers that people know them by are not known here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dovetail.model.job import Job


def names_of(jobs: Mapping[int, Job], numbers: Sequence[int]) -> str:
    """`a`, `a (×2) and b`, `a, b and 3 more`."""
    named = Counter(jobs[number].spec.name for number in numbers)
    names = [f"{name} (×{many})" if many > 1 else name for name, many in named.items()]
    if len(names) > 3:
        more = len(numbers) - sum(list(named.values())[:2])
        return f"{', '.join(names[:2])} and {more} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
