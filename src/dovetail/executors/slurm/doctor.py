"""Is this Slurm cluster ready for Dovetail? One finding a question, and what to do about it.

Asks only, but for one tiny job that looks whether a node sees the data folder. Prints nothing.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from dovetail.executors.slurm.commands import CommandLine, Refused, Trouble
from dovetail.executors.slurm.options import Options
from dovetail.executors.slurm.site import Site, closed, survey, version
from dovetail.model.errors import UserError

COMMANDS = ("sbatch", "squeue", "sinfo", "scancel", "scontrol")
OLDEST = (21, 8)
"""The first release whose lists of jobs come as JSON."""
TESTED = (22, 5)
CLOCKS_APART = 5.0
"""Seconds that clocks may differ; Slurm tells whole ones."""
LONGEST_PASS = 10.0
"""Seconds between passes of the backfill scheduler, beyond which gangs over nodes start late."""
YOUNGEST = 60
"""Seconds for which Slurm should remember jobs that ended."""


class Verdict(StrEnum):
    """How bad it is."""

    FINE = "fine"
    #: it works, but not as well as it could
    WEAK = "weak"
    #: it does not work
    WRONG = "wrong"


class Finding(NamedTuple):
    """The answer to one question."""

    about: str
    verdict: Verdict
    found: str
    #: what to do; empty where nothing is to be done
    advice: str = ""


def examine(
    data: Path, options: Options, commands: CommandLine, wall: Callable[[], datetime]
) -> Iterator[Finding]:
    """All findings, in the order in which they matter; ends where nothing more can be asked."""
    missing = [name for name in COMMANDS if shutil.which(name) is None]
    if missing:
        advice = "run this on a login node, or install Slurm's client commands"
        yield Finding("commands", Verdict.WRONG, f"no {', '.join(missing)} on the path", advice)
        return
    yield Finding("commands", Verdict.FINE, "all on the path")
    try:
        release = version(commands.text("sinfo", "--version"))
        yield _release(release)
        asked = wall()
        told = commands.text("scontrol", "show", "config")
        site = survey(commands, options)
        site.questions.jobs()
    except (Trouble, Refused, UserError) as error:
        yield Finding("slurmctld", Verdict.WRONG, str(error), "is slurmctld running? scontrol ping")
        return
    yield Finding("slurmctld", Verdict.FINE, "answers, and its JSON can be read")
    yield clock(told, asked)
    yield from nodes(site)
    yield from settings(site.config)
    yield from rights(site, options, commands)
    yield sight(data, site, commands)


def _release(release: tuple[int, int]) -> Finding:
    text = f"{release[0]}.{release[1]:02}"
    if release < OLDEST:
        return Finding("version", Verdict.WRONG, text, "Slurm 21.08 or newer is needed")
    if release > TESTED:
        note = "newer than what is tested (22.05): tell us if something is odd"
        return Finding("version", Verdict.WEAK, text, note)
    return Finding("version", Verdict.FINE, text)


def clock(told: str, here: datetime) -> Finding:
    """Do this machine and slurmctld agree on the time?"""
    found = re.search(r"as of (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)", told)
    if found is None:
        return Finding("clock", Verdict.WEAK, "slurmctld does not tell its time")
    apart = abs((datetime.fromisoformat(found[1]) - here).total_seconds())
    if apart > CLOCKS_APART:
        advice = "synchronise the clocks (chrony, ntp)"
        return Finding("clock", Verdict.WEAK, f"{apart:.0f} s away from slurmctld's", advice)
    return Finding("clock", Verdict.FINE, "agrees with slurmctld's")


def nodes(site: Site) -> Iterator[Finding]:
    """Are there GPUs, and can they be used?"""
    gpus = sum(node.gpus for node in site.nodes)
    kinds = ", ".join(dict.fromkeys(node.type for node in site.nodes if node.gpus))
    text = f"{len(site.nodes)} nodes in partition {site.partition}, {gpus} GPUs"
    if not gpus:
        advice = "set GresTypes=gpu, Gres= on the nodes and gres.conf, or name another partition"
        yield Finding("GPUs", Verdict.WRONG, text, advice)
        return
    yield Finding("GPUs", Verdict.FINE, f"{text} ({kinds})")
    shut = {each.name: closed(each) for each in site.questions.nodes() if closed(each)}
    mine = [f"{name} ({reason})" for name, reason in shut.items() if name in site.positions]
    if mine:
        listed = ", ".join(mine[:5]) + (", …" if len(mine) > 5 else "")
        advice = "scontrol update NodeName=… State=RESUME, when they are in order"
        yield Finding("closed nodes", Verdict.WEAK, listed, advice)


def settings(config: Mapping[str, str]) -> Iterator[Finding]:
    """Is Slurm set up so that placements can be exact and quick?"""
    select = config.get("SelectType", "")
    if "cons_tres" not in select:
        advice = "SelectType=select/cons_tres: others give out no single GPUs"
        yield Finding("select plug-in", Verdict.WRONG, select or "none", advice)
    counted = config.get("SelectTypeParameters", "")
    if "memory" not in counted.lower():
        advice = "SelectTypeParameters=CR_Core_Memory, if memory is to be shared out too"
        yield Finding("memory", Verdict.WEAK, f"not counted ({counted})", advice)
    pace = re.search(r"bf_interval=(\d+)", config.get("SchedulerParameters", ""))
    between = float(pace[1]) if pace else 30.0
    if "backfill" not in config.get("SchedulerType", ""):
        advice = "SchedulerType=sched/backfill: gangs of unlike parts never start without it"
        yield Finding("gangs", Verdict.WRONG, config.get("SchedulerType", "none"), advice)
    elif between > LONGEST_PASS:
        found = f"those of unlike parts start within {between:g} s"
        yield Finding("gangs", Verdict.WEAK, found, "SchedulerParameters=bf_interval=2, say")
    else:
        yield Finding("gangs", Verdict.FINE, f"start within {between:g} s")
    age = re.match(r"\d+", config.get("MinJobAge", "300"))
    if age and int(age[0]) < YOUNGEST:
        advice = f"MinJobAge={YOUNGEST} or more"
        yield Finding("records", Verdict.WEAK, f"jobs forgotten after {age[0]} s", advice)


def rights(site: Site, options: Options, commands: CommandLine) -> Iterator[Finding]:
    """May we submit, and for whom?"""
    first = next((node for node in site.nodes if node.gpus), site.nodes[0])
    words = ["sbatch", "--test-only", "--wrap=true", f"--nodelist={first.name}", "--gres=gpu:1"]
    own = {**os.environ, **options.surroundings()}
    try:
        commands.text(*words, environment=own)
        yield Finding("submitting", Verdict.FINE, "allowed")
    except (Refused, Trouble) as error:
        advice = "an account, a QOS or a partition that you may use"
        yield Finding("submitting", Verdict.WRONG, str(error), advice)
    if os.geteuid() == 0:
        yield Finding("owners", Verdict.FINE, "jobs run as whoever submitted them")
    else:
        advice = "run the controller as root for jobs of several users"
        yield Finding("owners", Verdict.WEAK, "all jobs run as you", advice)


def sight(data: Path, site: Site, commands: CommandLine) -> Finding:
    """Does a node see the data folder?"""
    advice = "choose one on a file system that nodes and this machine share (--data-dir)"
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return Finding("data folder", Verdict.WRONG, f"{data}: {error.strerror}", advice)
    words = ["srun", "--immediate=10", "--time=1", "--ntasks=1", f"--partition={site.partition}"]
    try:
        commands.text(*words, "test", "-w", str(data))
    except Trouble as error:
        return Finding("data folder", Verdict.WEAK, f"could not be looked at: {error}")
    except Refused as error:
        if "immediate" in str(error).lower() or "unable to allocate" in str(error).lower():
            return Finding("data folder", Verdict.WEAK, "no node is free to look for it")
        return Finding("data folder", Verdict.WRONG, f"nodes cannot write {data}", advice)
    return Finding("data folder", Verdict.FINE, f"nodes can write {data}")
