"""Secrets: which environment variables are, and what command lines look like without them.

A guess by name: whoever calls a secret something harmless can name it as one.
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
_FLAG = re.compile(
    r"(?i)^(-{1,2}[\w.-]*(?:secret|token|passw|credential|api[-_]?key)[\w.-]*)(=.*)?$"
)
_ASSIGNED = re.compile(r"(?i)^(\w*(?:SECRET|TOKEN|PASSW|CREDENTIAL|API_?KEY)\w*)=.*$")
_SUSPICIOUS = re.compile(r"(?i)secret|token|passw|credential|api[-_]?key|://")
_URL = re.compile(r"(\w+://[^\s/:@]*):[^\s/@]+@")


def is_secret(name: str) -> bool:
    """Does the name of a variable say that its value is nobody's business?"""
    harmless = name in _HARMLESS or name.startswith(_HARMLESS_START)
    return not harmless and _NAME.search(name) is not None


def split(environment: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """What may be shown of an environment, and what may not."""
    shown = {name: text for name, text in environment.items() if not _hidden(name, text)}
    return shown, {name: text for name, text in environment.items() if name not in shown}


def _hidden(name: str, text: str) -> bool:
    return is_secret(name) or _URL.search(text) is not None


def redacted(command: Sequence[str]) -> tuple[str, ...]:
    """A command line as it may be shown: `--api-key ***`."""
    if not _SUSPICIOUS.search("\n".join(command)):
        return tuple(command)
    shown: list[str] = []
    hide_next = False
    for word in command:
        found = _FLAG.match(word)
        if hide_next and not word.startswith("-"):
            shown.append(HIDDEN)
        elif found and found[2]:
            shown.append(f"{found[1]}={HIDDEN}")
        else:
            assigned = _ASSIGNED.sub(rf"\1={HIDDEN}", word)
            shown.append(_URL.sub(rf"\1:{HIDDEN}@", assigned))
        hide_next = found is not None and not found[2]
    return tuple(shown)
