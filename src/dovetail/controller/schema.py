"""The tables of the controller's data base, and how an older one becomes a newer one.

Values that only we read (events, plans, snapshots, submissions) are JSON text, so that SQLite and
PostgreSQL hold the same bytes. Columns exist for what is searched or shown in lists.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    insert,
    literal,
    select,
    union_all,
    update,
)
from sqlalchemy.schema import CreateColumn

from dovetail.model.errors import UserError

VERSION = 5
"""Raised with every change of the tables; `MIGRATIONS` says how to get there."""

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("owner", Text, nullable=False, index=True),
    #: what was asked for, without secrets: this may be shown
    Column("submission", Text, nullable=False),
    #: environment variables and commands that are never shown
    Column("secrets", Text, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    #: why it ended the way it did, or why it is withheld
    Column("reason", Text, nullable=False, server_default=""),
    #: until when it pauses after a failure, on the time base of decisions
    Column("pause", Float),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("code", Integer),
    Column("signal", Integer),
    #: wall time in seconds since 1970, for people
    Column("submitted", Float, nullable=False),
    Column("started", Float),
    Column("ended", Float),
    #: the array it is a member of, and its place there
    Column("array", BigInteger, index=True),
    Column("index", Integer),
    #: when it was submitted, on the time base of decisions
    Column("arrived", Float),
    #: when it ended, on the same
    Column("over", Float, index=True),
    #: seconds that attempts which are over have run
    Column("ran", Float, nullable=False, server_default="0"),
    #: wall time of the last checkpoint the job told of
    Column("saved", Float),
    Index("jobs_by_end", "ended", "id"),
    Index("jobs_by_owner_and_end", "owner", "ended", "id"),
)

arrays = Table(
    "arrays",
    metadata,
    #: from the same counter as jobs
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("submitted", Float, nullable=False),
)

batches = Table(
    "batches",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    #: the time base of decisions
    Column("now", Float, nullable=False),
    #: wall time, for people
    Column("wall", Float, nullable=False),
    Column("events", Text, nullable=False),
)

plans = Table(
    "plans",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("actions", Text, nullable=False),
    Column("wake_at", Float),
    #: how it came about, where several domains plan
    Column("asked", Text),
)

snapshots = Table(
    "snapshots",
    metadata,
    #: the last batch that is in it
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    #: everything but the jobs; those of version 2 have them here
    Column("state", Text, nullable=False),
)

snapshot_pieces = Table(
    "snapshot_pieces",
    metadata,
    #: the snapshot they belong to; without its row they are nobody's
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    #: some of the jobs
    Column("jobs", Text, nullable=False),
)

attempts = Table(
    "attempts",
    metadata,
    Column("job", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    #: folder and allocation it was started with; never its environment
    Column("launch", Text, nullable=False),
    #: did an engine ever confirm that it runs?
    Column("confirmed", Integer, nullable=False, server_default="0"),
    #: was it asked to stop?
    Column("stopping", Integer, nullable=False, server_default="0"),
    Column("started", Float, nullable=False),
    Column("ended", Float, index=True),
    #: how it ended, in words
    Column("outcome", Text, nullable=False, server_default=""),
    #: what is to become of the job once this attempt has ended; empty: as it ends
    Column("fate", String(16), nullable=False, server_default=""),
    #: the boot of the machine it was started in
    Column("boot", String(64), nullable=False, server_default=""),
    #: since when it runs, on the time base of decisions
    Column("since", Float),
)

steps = Table(
    "steps",
    metadata,
    #: the order they came in, whatever the wall clock did
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("job", BigInteger, nullable=False, index=True),
    #: wall time in seconds since 1970
    Column("at", Float, nullable=False),
    #: its state from here on; empty: as before
    Column("state", String(16), nullable=False, server_default=""),
    Column("attempt", Integer),
    #: what the attempt holds from here on, as in `attempts`; empty: as before
    Column("launch", Text, nullable=False, server_default=""),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(16), primary_key=True),
    #: of the secret part: the text itself is nowhere
    Column("hash", String(64), nullable=False),
    Column("owner", Text, nullable=False, index=True),
    Column("role", String(16), nullable=False),
    Column("note", Text, nullable=False, server_default=""),
    #: wall time in seconds since 1970
    Column("created", Float, nullable=False),
    Column("expires", Float, nullable=False),
    Column("revoked", Integer, nullable=False, server_default="0"),
)


def _add_columns(connection: Connection, table: Table, *names: str) -> None:
    for name in names:
        text = CreateColumn(table.c[name]).compile(dialect=connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {text}")


def _to_2(connection: Connection) -> None:
    """Arrays, time that attempts have run, checkpoints, and what is to become of a job."""
    _add_columns(connection, jobs, "array", "index", "arrived", "over", "ran", "saved")
    connection.execute(update(jobs).where(jobs.c.ended.is_not(None)).values(over=0.0))
    _add_columns(connection, attempts, "fate", "boot", "since")
    for index in jobs.indexes:
        index.create(connection, checkfirst=True)


def _to_3(_: Connection) -> None:
    """Snapshots in pieces: a table that is new has been made already."""


def _to_4(connection: Connection) -> None:
    """What each domain wanted, where there are several."""
    _add_columns(connection, plans, "asked")


def _to_5(connection: Connection) -> None:
    """Steps: of earlier attempts, when they started and ended and what they held last."""
    runs, none = attempts.c, literal("")
    begun = select(runs.job, runs.started.label("at"), literal("running"), runs.number, runs.launch)
    over = select(runs.job, runs.ended, literal("waiting"), runs.number, none)
    known = union_all(begun, over.where(runs.ended.is_not(None))).order_by("at")
    names = ["job", "at", "state", "attempt", "launch"]
    connection.execute(insert(steps).from_select(names, known))


MIGRATIONS: dict[int, Callable[[Connection], None]] = {1: _to_2, 2: _to_3, 3: _to_4, 4: _to_5}
"""From a version to the next one: each changes the tables inside the same transaction."""


def prepare(connection: Connection, where: str) -> None:
    """Make the tables, or bring them up to date; refuse those of a newer program."""
    metadata.create_all(connection)
    version = _version(connection, where)
    if version is None:
        connection.execute(insert(meta).values(key="schema", value=str(VERSION)))
        return
    for step in range(version, VERSION):
        MIGRATIONS[step](connection)
    if version < VERSION:
        stored = update(meta).where(meta.c.key == "schema").values(value=str(VERSION))
        connection.execute(stored)


def check(connection: Connection, where: str) -> None:
    """Refuse tables that cannot be read as they are."""
    version = _version(connection, where)
    if version != VERSION:
        raise UserError(f"{where}: is of an older Dovetail; start the controller once to update it")


def _version(connection: Connection, where: str) -> int | None:
    found = connection.execute(select(meta.c.value).where(meta.c.key == "schema")).scalar()
    if found is not None and int(found) > VERSION:
        raise UserError(
            f"{where}: was written by a newer Dovetail (schema {found}, this one knows "
            f"{VERSION}); install that version, or choose another data folder"
        )
    return None if found is None else int(found)
