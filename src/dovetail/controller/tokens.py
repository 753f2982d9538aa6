"""Tokens: who may ask without being known to the machine. Only their hashes are stored.

A token is `dt_<id>_<secret>`: the id finds the row, the hash of the secret must agree. It expires,
and it can be revoked.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from sqlalchemy import insert, select, update

from dovetail.controller import schema
from dovetail.controller.store import Row, Store
from dovetail.model.errors import Missing
from dovetail.model.live import Token

PREFIX = "dt"
WRONG = "this token is not known here; ask an admin for a new one"


class Tokens:
    """The tokens of a data base."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def make(self, owner: str, role: str, now: float, lasts: float, note: str = "") -> str:
        """A new token: the only time its text is seen."""
        number, secret = secrets.token_hex(4), secrets.token_hex(24)
        row = {
            "id": number,
            "hash": _hash(secret),
            "owner": owner,
            "role": role,
            "created": now,
            "expires": now + lasts,
            "note": note,
        }
        with self._store.transaction():
            self._store.run(insert(schema.tokens).values(row))
        return f"{PREFIX}_{number}_{secret}"

    def holder(self, text: str, now: float) -> Token | str:
        """The token with this text, or the sentence why it does not count."""
        prefix, _, rest = text.partition("_")
        number, _, secret = rest.partition("_")
        rows = self._rows(number) if prefix == PREFIX else []
        if not rows or not hmac.compare_digest(rows[0]["hash"], _hash(secret)):
            return WRONG
        token = _token(rows[0])
        if token.revoked:
            return "this token was revoked; ask an admin for a new one"
        if token.expires <= now:
            return "this token has expired; ask an admin for a new one"
        return token

    def revoke(self, number: str) -> None:
        """From now on it opens nothing."""
        self.get(number)
        with self._store.transaction():
            found = schema.tokens.c.id == number
            self._store.run(update(schema.tokens).where(found).values(revoked=1))

    def get(self, number: str) -> Token:
        """One token."""
        rows = self._rows(number)
        if not rows:
            raise Missing(f"there is no token {number!r}")
        return _token(rows[0])

    def listed(self, owner: str | None = None) -> list[Token]:
        """All tokens, or those of one owner."""
        wanted = select(schema.tokens).order_by(schema.tokens.c.created)
        if owner is not None:
            wanted = wanted.where(schema.tokens.c.owner == owner)
        return [_token(row) for row in self._store.rows(wanted)]

    def _rows(self, number: str) -> list[Row]:
        return self._store.rows(select(schema.tokens).where(schema.tokens.c.id == number))


def _hash(secret: str) -> str:
    # The secret is 192 random bits: a slow hash would only slow down every request.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: Row) -> Token:
    shown = {name: row[name] for name in ("id", "owner", "role", "created", "expires", "note")}
    return Token(**shown, revoked=bool(row["revoked"]))
