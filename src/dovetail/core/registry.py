"""Finding plug-ins by the text a person types: `name`, `name:key=value,…` or `path.py:Class`.

Built-ins are one literal dict per kind; third parties register entry points; a local file needs
no installation. Parameters are the fields of the plug-in's dataclass, converted by their type.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from dovetail.model.errors import UserError

T = TypeVar("T")


class Registry(Generic[T]):
    """One kind of plug-in: its built-ins and how to make one from text."""

    def __init__(
        self,
        kind: str,
        builtin: Mapping[str, Callable[..., T]],
        group: str,
        needs: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.builtin = builtin
        #: entry-point group of third parties
        self.group = group
        #: what every plug-in of this kind must have
        self.needs = needs

    def find(self, name: str) -> Callable[..., T]:
        """The class behind a name, or a sentence that offers the nearest names."""
        if name in self.builtin:
            return self.builtin[name]
        if ".py:" in name:
            return self._from_file(*name.rsplit(":", 1))
        for entry in entry_points(group=self.group):
            if entry.name == name:
                return typing.cast("Callable[..., T]", entry.load())
        raise UserError(f"unknown {self.kind} {name!r}{nearest(name, self.names())}")

    def knows(self, name: str) -> bool:
        """Can this name be typed? Third parties are looked for last: that takes milliseconds."""
        return name in self.builtin or ".py:" in name or name in self.names()

    def names(self) -> list[str]:
        """Every name that can be typed without a path."""
        others = [entry.name for entry in entry_points(group=self.group)]
        return [*self.builtin, *others]

    def create(self, text: str) -> T:
        """Make a plug-in from `name` or `name:key=value,…`."""
        name, given = split(text)
        return self.make(name, given)

    def make(self, name: str, given: Mapping[str, str]) -> T:
        """Make a plug-in by name, and see that it is one of this kind."""
        made = construct(self.find(name), name, given)
        for need in self.needs:
            if not hasattr(made, need):
                raise UserError(f"{name} is no {self.kind}: it has no {need!r}")
        return made

    def _from_file(self, path: str, attribute: str) -> Callable[..., T]:
        if not Path(path).is_file():
            raise UserError(f"{path}: no such file ({self.kind})")
        # One name per file: two files may be called the same.
        name = re.sub(r"\W", "_", str(Path(path).resolve()))
        spec = importlib.util.spec_from_file_location(f"dovetail_plug_in{name}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # Dataclasses with postponed annotations look their module up there.
        sys.modules[spec.name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise UserError(f"{path}: cannot be loaded: {error!r}") from error
        if not hasattr(module, attribute):
            raise UserError(f"{path} has no {attribute!r}{nearest(attribute, dir(module))}")
        return typing.cast("Callable[..., T]", getattr(module, attribute))


def split(text: str) -> tuple[str, dict[str, str]]:
    """`name:key=value,…` as name and parameters; the colon of `path.py:Class` stays."""
    head, colon, rest = text.partition(":")
    if head.endswith(".py") and colon:
        attribute, colon, rest = rest.partition(":")
        head = f"{head}:{attribute}"
    given: dict[str, str] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise UserError(f"{text!r}: write parameters as key=value, not {item!r}")
        given[key.strip().replace("-", "_")] = value.strip()
    return head, given


def construct(make: Callable[..., T], name: str, given: Mapping[str, str]) -> T:
    """Call a plug-in's class with parameters converted to the types of its fields.

    A field called like a word of Python has a `_` behind it that nobody types: `from_` is `from=`.
    """
    own = fields(make) if is_dataclass(make) else ()
    known = {f.name.removesuffix("_"): f for f in own if f.init}
    hints = typing.get_type_hints(make) if known else {}
    values: dict[str, Any] = {}
    for key, text in given.items():
        if key not in known:
            raise UserError(f"{name} has no parameter {key!r}{nearest(key, list(known))}")
        field = known[key].name
        values[field] = convert(text, hints[field], f"{name}:{key}")
    if not callable(make):
        raise UserError(f"{name} is not a class or function")
    missing = [
        f.name
        for f in known.values()
        if f.default is MISSING and f.default_factory is MISSING and f.name not in values
    ]
    if missing:
        raise UserError(f"{name} needs {missing[0]}=…")
    return make(**values)


def convert(text: str, kind: Any, where: str) -> Any:
    """Text to bool, int, float, str, an optional of those, or a `/`-separated tuple of them."""
    members = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return tuple(convert(item, members[0], where) for item in filter(None, text.split("/")))
    if members and type(None) in members:
        others = [member for member in members if member is not type(None)]
        return None if text.lower() == "none" else convert(text, others[0], where)
    if kind is bool:
        return _truth(text, where)
    try:
        return kind(text)
    except ValueError:
        raise UserError(f"{where}={text}: not a valid {kind.__name__}") from None


def _truth(text: str, where: str) -> bool:
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in known:
        raise UserError(f"{where}={text}: say true or false")
    return known[text.lower()]


def nearest(name: str, known: list[str]) -> str:
    """The end of an error sentence: a likely correction, or what there is."""
    public = [word for word in known if not word.startswith("_")]
    close = difflib.get_close_matches(name, public, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are: {', '.join(sorted(public))}" if public else "; it takes none"
