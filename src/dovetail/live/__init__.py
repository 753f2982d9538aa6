"""The Python API: the verbs of the command line, on a controller that runs somewhere.

    from dovetail.live import connect

    with connect() as box:
        job = box.submit(["python", "train.py"], gpus=1)
        print(box.wait(job).state)

It knows HTTP and values, not schedulers.
"""

from __future__ import annotations

from pathlib import Path

from dovetail.live.box import ENDED, Box
from dovetail.live.finding import Address, find

__all__ = ["ENDED", "Box", "connect"]


def connect(folder: str | Path | None = None, url: str | None = None, token: str = "") -> Box:
    """A line to a controller: of a data folder, at a URL, or wherever one is found."""
    if url is not None:
        return Box(Address(url=url.rstrip("/"), token=token or None))
    return Box(find(None if folder is None else Path(folder)))
