"""The data base behind the controller: one connection, one owner, one transaction at a time.

SQLite in WAL mode with full synchronisation by default, PostgreSQL by URL with the same code. The
store knows rows, not schedulers. What a person can run into (a folder that vanished, a full disk, a
damaged or occupied data base) becomes one sentence, and the transaction it hit leaves no trace.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    Connection,
    Dialect,
    Engine,
    Executable,
    Table,
    bindparam,
    create_engine,
    delete,
    event,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from dovetail.controller import schema
from dovetail.model.errors import UserError

Row = dict[str, Any]

DIALECTS: dict[str, Callable[[], Dialect]] = {
    "sqlite": sqlite.dialect,
    "postgresql": psycopg.dialect,
}
"""How each data base wants to be spoken to."""

ADVISORY = 0x646F7665
"""Key of the lock that one controller holds on a PostgreSQL data base."""

TRIES, BETWEEN = 20, 0.1
"""How often that lock is tried, and seconds between two tries."""

CAUSES = {
    "database is locked": "another program is using it; stop that one first",
    "disk is full": "the disk is full; make room and start the controller again",
    "disk i/o error": "the disk cannot be read or written; check it, then start again",
    "malformed": "the file is damaged; restore a copy, or choose another data folder",
    "not a database": "the file is no data base; choose another data folder",
    "readonly": "it may not be written; check its permissions",
    "unable to open": "it cannot be opened; check that the folder is there and may be written",
    "no such table": "tables are missing; restore a copy, or choose another data folder",
    "server closed": "the connection to the server was lost; start the controller again",
    "terminating connection": "the server ended the connection; start the controller again",
    "connection refused": "nothing answers there; check the address and that the server runs",
    "authentication failed": "the server refuses this user or password",
    "does not exist": "the server knows no such data base or user; create it first",
}
"""What data bases say, and what a person can do about it."""


def sentence(error: SQLAlchemyError, where: str) -> UserError:
    """An error of the data base as the one sentence a person reads."""
    said = str(error.orig if isinstance(error, DBAPIError) else error).strip()
    for sign, advice in CAUSES.items():
        if sign in said.lower():
            return UserError(f"{where}: {advice}")
    first = said.splitlines()[0] if said else type(error).__name__
    return UserError(f"{where}: the data base reports: {first}")


class Prepared:
    """An insert or update as the text its data base takes: made once, for it is run all the time.

    Building and compiling statements anew took most of the time of a turn.
    """

    def __init__(
        self, table: Table, keys: tuple[str, ...], names: tuple[str, ...], dialect: Dialect
    ) -> None:
        others = [name for name in names if name not in keys]
        if keys:
            found = [table.c[key] == bindparam(f"key_{key}") for key in keys]
            values: dict[str, Any] = {name: bindparam(name) for name in others}
            compiled = update(table).where(*found).values(values).compile(dialect=dialect)
        else:
            compiled = insert(table).compile(dialect=dialect, column_keys=others)
        self._text = str(compiled)
        self._order = getattr(compiled, "positiontup", None)
        #: parameter -> column
        self._columns = {**{name: name for name in others}, **{f"key_{key}": key for key in keys}}

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Do it to each of the rows."""
        columns = self._columns
        if self._order is not None:
            order = [columns[name] for name in self._order]
            bound: Any = [tuple([row[name] for name in order]) for row in rows]
        else:
            bound = [{name: row[column] for name, column in columns.items()} for row in rows]
        connection.exec_driver_sql(self._text, bound[0] if len(bound) == 1 else bound)


@lru_cache
def prepared(table: str, keys: tuple[str, ...], names: tuple[str, ...], dialect: str) -> Prepared:
    """The statement for rows of these columns."""
    return Prepared(schema.metadata.tables[table], keys, names, DIALECTS[dialect]())


class Store:
    """An open data base that belongs to this process, or one that is only read.

    Reading takes no lock and leaves everything as it is, so it may be done beside a controller.
    """

    def __init__(self, url: str, durable: bool = True, reading: bool = False) -> None:
        try:
            made = make_url(url)
        except ArgumentError:
            raise UserError(
                f"{url!r} is no data base; write sqlite:///PATH or postgresql+psycopg://…"
            ) from None
        #: what errors call it: never with a password
        self.where = made.database or url if made.drivername == "sqlite" else repr(made)
        self._file = Path(made.database) if made.drivername == "sqlite" and made.database else None
        self._lock: int | None = None
        self._engine: Engine | None = None
        try:
            if reading:
                self._look(url)
            else:
                self._open(url, durable)
        except BaseException as error:
            self.close()
            if isinstance(error, SQLAlchemyError):
                raise sentence(error, self.where) from None
            if isinstance(error, ImportError):
                advice = "pip install 'psycopg[binary]'"
                raise UserError(f"{self.where}: needs a driver; {advice}") from None
            raise

    def _open(self, url: str, durable: bool) -> None:
        if self._file is not None:
            self._own(self._file)
        self._engine = _engine(url, self._file is not None, durable)
        self._connection = self._engine.connect()
        self._claim()
        with self.transaction() as connection:
            schema.prepare(connection, self.where)

    def _look(self, url: str) -> None:
        if self._file is not None:
            if not self._file.is_file():
                raise UserError(f"{self._file}: there is no data base of a controller")
            url = f"sqlite:///file:{quote(str(self._file.absolute()))}?mode=ro&uri=true"
        self._engine = create_engine(url, poolclass=StaticPool)
        self._connection = self._engine.connect()
        schema.check(self._connection, self.where)
        self._connection.rollback()

    def _own(self, file: Path) -> None:
        """Only one controller may write: two would start every job twice."""
        try:
            self._lock = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            # The data base holds secrets: nobody else may read it.
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise UserError(f"{file}: cannot be opened ({error.strerror})") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                f"{file}: another controller is using it; stop that one first"
            ) from None

    def _claim(self) -> None:
        """The same on a server, which takes a moment to notice that the last owner died."""
        if self._file is not None:
            return
        for left in reversed(range(TRIES)):
            got = self._connection.execute(select(text(f"pg_try_advisory_lock({ADVISORY})")))
            free = got.scalar()
            self._connection.commit()
            if free:
                return
            time.sleep(BETWEEN if left else 0)
        raise UserError(f"{self.where}: another controller is using it; stop that one first")

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # ---- writing -----------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All of it or nothing; on disk when it is over."""
        if self._file is not None and not self._file.exists():
            raise UserError(f"{self._file}: has vanished; put the data folder back and start again")
        try:
            with self._connection.begin():
                yield self._connection
        except SQLAlchemyError as error:
            raise sentence(error, self.where) from None

    def add(self, table: Table, rows: Sequence[Row]) -> None:
        """Insert rows of equal columns; call it inside a transaction."""
        if rows:
            made = prepared(table.name, (), tuple(rows[0]), self._connection.dialect.name)
            made.run(self._connection, rows)

    def change(self, table: Table, keys: tuple[str, ...], rows: Sequence[Row]) -> None:
        """Update rows found by their keys; each may change other columns."""
        alike: dict[tuple[str, ...], list[Row]] = {}
        for row in rows:
            alike.setdefault(tuple(row), []).append(row)
        for names, same in alike.items():
            made = prepared(table.name, keys, names, self._connection.dialect.name)
            made.run(self._connection, same)

    def note(self, values: Mapping[str, str]) -> None:
        """Set values of the `meta` table; call it inside a transaction."""
        for key, value in values.items():
            self._connection.execute(delete(schema.meta).where(schema.meta.c.key == key))
            self._connection.execute(insert(schema.meta).values(key=key, value=value))

    def run(self, statement: Executable) -> None:
        """Any other statement; call it inside a transaction."""
        self._connection.execute(statement)

    # ---- reading -----------------------------------------------------------------------------

    def noted(self, key: str) -> str | None:
        """A value of the `meta` table."""
        rows = self.rows(select(schema.meta.c.value).where(schema.meta.c.key == key))
        return str(rows[0]["value"]) if rows else None

    def rows(self, statement: Executable) -> list[Row]:
        """The answer to a query."""
        try:
            return [dict(row) for row in self._connection.execute(statement).mappings()]
        except SQLAlchemyError as error:
            raise sentence(error, self.where) from None
        finally:
            if not self._connection.closed:
                self._connection.rollback()

    def close(self) -> None:
        """Let go of the data base; what was not committed is gone."""
        try:
            if self._engine is not None:
                self._engine.dispose()
        finally:
            self._unlock()


def _engine(url: str, sqlite: bool, durable: bool) -> Engine:
    if not sqlite:
        return create_engine(url, poolclass=StaticPool)
    # A refused lock is an error at once: nobody else has business in this file.
    engine = create_engine(url, poolclass=StaticPool, connect_args={"timeout": 1.0})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'OFF'}")
        connection.execute("PRAGMA foreign_keys=ON")

    return engine
