"""Install what `make test-real` needs, when root on Debian or Ubuntu; else say what is missing.

Tests marked `real` skip by name what is not there, so a missing package is a line, not a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from glob import glob

PACKAGES = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "postgresql": ("initdb",),
    "slurmctld": ("slurmctld",),
    "slurmd": ("slurmd",),
    "slurm-client": ("sbatch",),
    "munge": ("munged",),
}
"""Debian package -> commands any of which will do."""

ELSEWHERE = "/usr/lib/postgresql/*/bin/{}"
"""Debian keeps the commands of PostgreSQL servers off the path."""


def missing() -> list[str]:
    """Packages none of whose commands is there."""
    return [name for name, commands in PACKAGES.items() if not any(map(_found, commands))]


def _found(command: str) -> bool:
    return bool(shutil.which(command) or glob(ELSEWHERE.format(command)))


def main() -> None:
    """Install the missing packages, or name them."""
    wanted = missing()
    if not wanted:
        return
    names = ", ".join(wanted)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"not installed: {names} (needs root and apt-get); tests that need them skip")
        return
    print(f"installing {names}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["update", "-qq"],
        ["install", "-y", "-qq", "--no-install-recommends", *wanted],
    ):
        subprocess.run(
            ["apt-get", *command], env=environment, check=False, stdout=subprocess.DEVNULL
        )
    if still := missing():
        print(f"could not be installed: {', '.join(still)}; tests that need them skip")


if __name__ == "__main__":
    main()
