"""Figures as people say them: "2 h 14 min", "10,650", "88.2 %", and settings as sentences.

Nothing here computes a metric or knows where the text is shown; `None` is always a dash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

NOTHING = "–"

UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def duration(seconds: float | None) -> str:
    """Seconds in the two largest units that say something: 8040 is "2 h 14 min"."""
    if seconds is None:
        return NOTHING
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 59.5:
        return f"{seconds:.3g} s" if seconds < 9.95 else f"{seconds:.0f} s"
    return _two_units(seconds)


def _two_units(seconds: float) -> str:
    # Rounded to the smaller unit first, or 7199 s would read "1 h 60 min".
    for (large, size), (small, part) in pairwise(UNITS):
        whole, rest = divmod(round(seconds / part), size // part)
        if whole and whole < 100 and rest:
            return f"{whole} {large} {rest} {small}"
        if whole:
            return f"{count(whole)} {large}"
    return f"{seconds:.0f} s"


def compact(seconds: float | None) -> str:
    """Like `duration` in as few letters as a narrow table has room for: "2h14m"."""
    return duration(seconds).replace("min", "m").replace(" ", "")


def later(seconds: float) -> str:
    """A change of a moment: "2 h sooner", "10 min later"."""
    if not seconds:
        return "no change"
    return f"{duration(abs(seconds))} {'later' if seconds > 0 else 'sooner'}"


NOTICED = 0.05
"""Seconds below which nobody waited any longer or shorter."""


def beyond(seconds: float | None) -> str:
    """A wait against another one: "+2 h", "−10 min"."""
    if seconds is None or abs(seconds) < NOTICED:
        return NOTHING if seconds is None else "0 s"
    return ("−" if seconds < 0 else "+") + duration(abs(seconds))


def count(number: float | None) -> str:
    """A number of things, with thousands separators; means of counts keep one digit."""
    if number is None:
        return NOTHING
    return f"{number:,.0f}" if number == round(number) or abs(number) >= 100 else f"{number:,.1f}"


def percent(share: float | None) -> str:
    """A share of one as a percentage with one digit."""
    return NOTHING if share is None else f"{share * 100:.1f} %"


def ratio(number: float | None) -> str:
    """A factor or index with about three digits: 0.948, 1.05, 13.6, 1,809."""
    if number is None:
        return NOTHING
    size = abs(number)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{number:,.{digits}f}"


def tenant(name: str) -> str:
    """A tenant as a label; jobs of nobody in particular have one too."""
    return name or "(no tenant)"


def plural(number: int, noun: str) -> str:
    """The number and its noun: "1 job", "2 jobs"."""
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"


COSTS: dict[str, Callable[[Any], str]] = {
    "restart": lambda s: f"{duration(s)} for a restart" if s else "restarts are free",
    "stop": lambda s: f"{duration(s)} to stop" if s else "stopping takes no time",
    "move": lambda s: (
        "a move costs what a restart costs"
        if s is None
        else (f"{duration(s)} for a move" if s else "moves are free")
    ),
    "first_start": lambda s: f"{duration(s)} for a first start" if s else "first starts are free",
    "resume": lambda s: f"{duration(s)} to resume a suspended job" if s else "resuming is free",
    "checkpoint_every": lambda s: f"a checkpoint every {duration(s)}",
    "span_penalty": lambda p: (
        f"{percent(p)} more time on more nodes than needed"
        if p
        else "no penalty for spreading over nodes"
    ),
    "by_model": lambda m: f"own restart times for {plural(len(m), 'model')}" if m else "",
}


def costs(stated: Any) -> str:
    """What interruptions cost, as one phrase."""
    if not isinstance(stated, Mapping):
        return value(stated)
    parts = [
        COSTS[key](item) if key in COSTS else f"{name(key)} {value(item)}"
        for key, item in stated.items()
    ]
    return ", ".join(part for part in parts if part) or NOTHING


def name(key: str) -> str:
    """A key as a label: `span_penalty` is "span penalty"."""
    return key.replace("_", " ")


def value(stated: Any) -> str:
    """Any setting as text."""
    if stated is None or stated in ("", [], {}):
        return NOTHING
    if isinstance(stated, bool):
        return "yes" if stated else "no"
    if isinstance(stated, Mapping):
        return ", ".join(f"{name(str(key))} {value(item)}" for key, item in stated.items())
    if isinstance(stated, list | tuple):
        return ", ".join(map(value, stated))
    return f"{stated:g}" if isinstance(stated, float) else str(stated)


def predictor(stated: Any) -> str:
    """The predictor, saying what the oracle is: results with it are not reachable live."""
    text = value(stated)
    if text.split(":")[0] == "oracle":
        return f"{text} (policies are told each job's true length)"
    return text


def measured(measure: Mapping[str, Any]) -> str:
    """Which jobs the times are about."""
    finished = plural(measure["finished"], "finished job")
    if measure["from"] is None:
        return f"all of the trace: {finished} of {count(measure['jobs'])}"
    window = f"jobs {count(measure['from'])} to {count(measure['to'] - 1)} in submit order"
    return f"{window}: {finished} of {count(measure['jobs'])}"


def settings(result: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a result as label and sentence, in the order people ask for them."""
    stated = {
        "Trace": value(result["trace"]),
        "Cluster": value(result["cluster"]),
        "Policy": value(result["policy"]),
        "Placement": value(result["placement"]),
        "Allocator": value(result["allocator"]),
        "Predictor": predictor(result["predictor"]),
        "Costs": costs(result["costs"]),
        "Seed": value(result["seed"]),
        "Measured": measured(result["measure"]),
    }
    options = result.get("options", {})
    return stated | {name(key).capitalize(): value(item) for key, item in options.items()}
