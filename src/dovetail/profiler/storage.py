"""How fast this machine reads: from where a dataset lies, past the cache, and from memory.

Bounded in time and in bytes. Reads only; the cache of others is left alone where the file system
can be asked to go past it (O_DIRECT), else the pages that are read are dropped first.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np

from dovetail.model.errors import UserError

CHUNK = 4 << 20
LEAST = 1 << 20
"""Fewer bytes say nothing about a bandwidth."""


def storage_bandwidth(path: Path, seconds: float = 3.0, most: int = 1 << 30) -> float:
    """Bytes per second of reading a file, or files of a folder, past the cache."""
    begin, read = time.perf_counter(), 0
    for file in _files(path):
        read += _read(file, most - read, begin + seconds)
        if read >= most or time.perf_counter() >= begin + seconds:
            break
    spent = time.perf_counter() - begin
    if read < LEAST:
        raise UserError(f"{path}: holds too little data to measure a bandwidth; give one instead")
    return read / spent


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    return sum(file.stat().st_size for file in _files(path))


def memory_bandwidth(threads: int = 1, seconds: float = 0.3, size: int = 32 << 20) -> float:
    """Bytes per second that so many threads copy out of memory together."""
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda _: _copied(size, seconds), range(threads)))


def _copied(size: int, seconds: float) -> float:
    # Larger than a cache of the processor, and touched before the clock starts.
    source = np.ones(size // 8)
    target = np.zeros(size // 8)
    begin, copies = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        np.copyto(target, source)
        copies += 1
    return copies * size / (time.perf_counter() - begin)


def _files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise UserError(f"{path}: there is no such file or folder")
    if path.is_file():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        yield from (file for name in sorted(names) if (file := Path(folder, name)).is_file())


def _read(path: Path, most: int, until: float) -> int:
    """Read a file up to so many bytes or to a moment; how many were read."""
    try:
        file = _open(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    read = 0
    try:
        # Reading past the cache needs a buffer at the beginning of a page.
        with mmap.mmap(-1, CHUNK) as buffer:
            while read < most and time.perf_counter() < until:
                got = os.preadv(file, [buffer], read)
                read += got
                if got < CHUNK:
                    break
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    finally:
        os.close(file)
    return read


def _open(path: Path) -> int:
    with suppress(OSError):
        return os.open(path, os.O_RDONLY | os.O_DIRECT)
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    return file
