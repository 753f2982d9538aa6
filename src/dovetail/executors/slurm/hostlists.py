"""Slurm's short way to write many names or numbers: `n[1-3,07]`, `0-1,3`. Pure text."""

from __future__ import annotations

from collections.abc import Iterator


def names(text: str) -> list[str]:
    """All names that `text` stands for: `n[1-2],m4` is n1, n2 and m4."""
    return [name for word in _split(text) for name in _expand(word)]


def numbers(text: str) -> list[int]:
    """All numbers that `text` stands for: `0-1,3` is 0, 1 and 3."""
    return [int(each) for each in _ranges(text)]


def _split(text: str) -> Iterator[str]:
    """At the commas outside of brackets."""
    depth, word = 0, ""
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            yield word
            word = ""
        else:
            word += letter
    if word:
        yield word


def _expand(word: str) -> Iterator[str]:
    before, bracket, rest = word.partition("[")
    if not bracket:
        yield word
        return
    inside, _, after = rest.partition("]")
    for each in _ranges(inside):
        for tail in _expand(after):
            yield f"{before}{each}{tail}"


def _ranges(text: str) -> Iterator[str]:
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        for number in range(int(first), int(last or first) + 1):
            # Leading zeros are part of the name.
            yield str(number).zfill(len(first))
