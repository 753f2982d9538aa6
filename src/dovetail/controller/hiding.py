"""Secrets: which environment variables are, and what command lines look like without them.

A guess by name: whoever calls a secret something harmless can name it as one. No pattern here may
take longer than in proportion to the text, which strangers choose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

HIDDEN = "***"

_NAME = re.compile(
    r"(?i)(secret|token|passw|pwd|credential|api_?key|private|auth|session|cookie|_key$|^key$)"
)
_HARMLESS = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY", "TOKENIZERS_PARALLELISM"})
_HARMLESS_START = ("XDG_SESSION", "DESKTOP_SESSION", "SESSION_MANAGER", "GDMSESSION")
_TELLING = r"(?:secret|token|passw|credential|api[-_]?key)"
_SUSPICIOUS = re.compile(rf"(?i){_TELLING}|://")
_OPTION = re.compile(r"[\w.-]+")
_ASSIGNED = re.compile(rf"""(?i)({_TELLING}[\w-]{{0,40}}=)(?:"[^"]*"|'[^']*'|[^\s;&|"']+)""")
_URL = re.compile(r"(://[^\s/:@]{0,200}):[^\s/@]{1,1000}@")


def is_secret(name: str) -> bool:
    """Does the name of a variable say that its value is nobody's business?"""
    harmless = name in _HARMLESS or name.startswith(_HARMLESS_START)
    return not harmless and _NAME.search(name) is not None


def split(environment: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """What may be shown of an environment, and what may not."""
    shown = {name: text for name, text in environment.items() if not _hidden(name, text)}
    return shown, {name: text for name, text in environment.items() if name not in shown}


def _hidden(name: str, text: str) -> bool:
    return is_secret(name) or ("://" in text and _URL.search(text) is not None)


def redacted(command: Sequence[str]) -> tuple[str, ...]:
    """A command line as it may be shown: `--api-key ***`, `TOKEN=***`, `https://me:***@host`."""
    if not _SUSPICIOUS.search("\n".join(command)):
        return tuple(command)
    shown: list[str] = []
    hide_next = False
    for word in command:
        name, sign, _ = word.partition("=")
        option = word.startswith("-")
        telling = _SUSPICIOUS.search(name) is not None and _OPTION.fullmatch(name) is not None
        if hide_next and not option:
            shown.append(HIDDEN)
        elif telling and sign:
            shown.append(f"{name}={HIDDEN}")
        else:
            assigned = _ASSIGNED.sub(rf"\1{HIDDEN}", word)
            shown.append(_URL.sub(rf"\1:{HIDDEN}@", assigned))
        hide_next = telling and option and not sign
    return tuple(shown)
