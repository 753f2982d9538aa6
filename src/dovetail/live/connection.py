"""A line to a controller: one request, one answer; what it refuses is raised as its sentence."""

from __future__ import annotations

import os
import ssl
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from dovetail.live.finding import SOCKET, Address
from dovetail.model.errors import UserError

VERSION = "v1"
PATIENCE = 60.0
KEPT = 2.0
"""Seconds after which a line is not used again: controllers hang up on silent ones after 5."""
SCHEMES = ("http", "https")
HERE = ("localhost", "127.0.0.1", "::1")


class Refused(UserError):
    """The controller refused; `code` is the status of HTTP."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Closing:
    """What is closed at the end of a `with`."""

    def close(self) -> None:
        """Let go."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Connection(Closing):
    """An open line; close it, or use it in a `with`."""

    def __init__(self, address: Address) -> None:
        self.address = address
        if address.url is not None and urlsplit(address.url).scheme not in SCHEMES:
            raise UserError(f"{address}: write an address like https://box:8443")
        self._folder: int | None = None
        headers = {"Authorization": f"Bearer {_sendable(address)}"} if address.token else {}
        transport, limits = None, httpx.Limits(keepalive_expiry=KEPT)
        if address.folder is not None:
            transport = httpx.HTTPTransport(uds=self._socket(address), limits=limits)
        # Proxies of the environment have no business between a box and its users.
        self._client = httpx.Client(
            base_url=f"{address.url or 'http://dovetail'}/{VERSION}",
            transport=transport,
            headers=headers,
            timeout=PATIENCE,
            limits=limits,
            trust_env=False,
            verify=_trusted(address),
        )

    def _socket(self, address: Address) -> str:
        """By its folder's descriptor: the path itself may be too long for a socket."""
        assert address.folder is not None
        try:
            self._folder = os.open(address.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            raise UserError(f"{address.folder}: there is no data folder of a controller") from None
        return f"/proc/self/fd/{self._folder}/{SOCKET}"

    def get(self, path: str, **query: Any) -> Any:
        """Ask for something."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._ask("GET", path, params=given, timeout=PATIENCE + given.get("wait", 0.0))

    def post(self, path: str, body: Any = None) -> Any:
        """Ask for something to be done."""
        return self._ask("POST", path, json=body)

    def delete(self, path: str) -> Any:
        """Ask for something to be taken away."""
        return self._ask("DELETE", path)

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        try:
            answer = self._client.request(method, path, **more)
        except httpx.TimeoutException:
            raise UserError(f"{self.address}: the controller does not answer in time") from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise UserError(f"{self.address}: {_unreachable(error)}") from None
        if answer.is_success:
            return answer.json()
        raise Refused(answer.status_code, _sentence(answer))

    def close(self) -> None:
        """Hang up."""
        self._client.close()
        if self._folder is not None:
            os.close(self._folder)
            self._folder = None


def _sendable(address: Address) -> str:
    """The token, unless others could read it on its way."""
    assert address.token is not None
    parts = urlsplit(address.url or "")
    if parts.scheme != "https" and parts.hostname not in HERE:
        raise UserError(f"{address}: a token would travel in the open; use https")
    if not address.token.isascii() or not address.token.isprintable():
        raise UserError("the token has characters that no token has")
    return address.token


def _trusted(address: Address) -> ssl.SSLContext | bool:
    """The certificates to believe; a box with one of its own is named by SSL_CERT_FILE."""
    if not (address.url or "").startswith("https:"):
        return False
    try:
        return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or None)
    except OSError as error:
        raise UserError(f"SSL_CERT_FILE: cannot be read ({error.strerror})") from None


def _unreachable(error: Exception) -> str:
    if isinstance(error, httpx.ConnectError):
        said = str(error)
        if "Permission denied" in said:
            return "you may not talk to this controller; ask its admin for a token"
        if "CERTIFICATE" in said:
            return "its certificate is not trusted here (set SSL_CERT_FILE)"
        return "no controller answers there; start one with: dovetail up"
    return f"the controller could not be asked ({error})"


def _sentence(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"the controller answered with HTTP status {answer.status_code}"
