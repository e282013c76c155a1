"""What is wrong on the machine of a server: its data directory, disk, keys, certificates and database.

Works beside a running server and changes nothing: the database is read as of one moment. Source: issue 9, part 6; ``users.md``
2.2 (#4: what no other place has must not be lost).
"""

import asyncio
import contextlib
import datetime as dt
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from apiserver.auth.certificates import Files
from apiserver.database_snapshot import database_place, snapshot_of
from apiserver.settings import Settings
from krm.cli.doctor.finding import MOST, Diagnosis, Finding, Severity
from krm.cli.doctor.server import of_certificate
from storage.interfaces import StoreUnavailable
from storage.sealing import SealBroken, load_or_create_key
from storage.sql.migrate import current_revision
from storage.sql.schema import REVISION

DATABASE: Final = "porch.db"
LITTLE_SPACE: Final = 0.1
"""Share of a disk that should be free; with less a large fetch may fill it."""
NO_SPACE: Final = 100 << 20
"""Bytes. Below this the next sync or draft may fail."""
WAIT_SECONDS: Final = 60.0
"""For a database that does not answer."""
SECRETS: Final = "secrets"
CLONES: Final = "clones"
UPSTREAMS: Final = "upstreams"
MOST_FILES: Final = 100_000


async def examine_host(settings: Settings, diagnosis: Diagnosis) -> None:
    """Look at what a server keeps on this machine; what is found is added to ``diagnosis``."""
    try:
        await _examine(settings, diagnosis)
    except OSError as error:
        diagnosis.cannot_look(f"what the server keeps in {settings.data}: {error}")


async def _examine(settings: Settings, diagnosis: Diagnosis) -> None:
    postgres = settings.database.startswith("postgres")
    if not postgres and not (settings.data / DATABASE).is_file():
        fix = "name the server's data directory with --data, or its database with --database-url"
        problem = f"holds no {DATABASE}: no server has kept anything here"
        diagnosis.add("data", [Finding(Severity.ERROR, f"Data directory {settings.data}", problem, fix)])
        diagnosis.cannot_look(f"the database under {settings.data}")
        return
    if await asyncio.to_thread(settings.data.is_dir):
        diagnosis.add("data", await asyncio.to_thread(lambda: [*_of_folder(settings.data)]))
        diagnosis.add("clones", await asyncio.to_thread(lambda: [*_of_clones(settings.data / CLONES)]))
        diagnosis.add("certificates", _of_certificates(settings.data, dt.datetime.now(dt.UTC)))
    await _examine_database(settings, diagnosis, postgres=postgres)


def _of_folder(data: Path) -> Iterator[Finding]:
    name = f"Data directory {data}"
    usage = shutil.disk_usage(data)
    if usage.free < max(usage.total * LITTLE_SPACE, NO_SPACE):
        yield _of_space(data, usage.free, usage.total)
    if data.stat().st_mode & 0o077 and not _is_volume(data):
        yield Finding(Severity.WARNING, name, "other users of this machine may look into it", f"chmod 700 {data}")


def _is_volume(data: Path) -> bool:
    """Tell whether somebody else mounted it for this process, as for a Pod: they chose its rights, and no other users are there."""
    return data.is_mount() and data.stat().st_uid != os.geteuid()


def _of_space(data: Path, free: int, total: int) -> Finding:
    name, clones = f"Data directory {data}", _size(data / CLONES) + _size(data / UPSTREAMS)
    left = f"{free >> 20} MiB of {total >> 30} GiB are free, copies of remotes take {clones >> 20} MiB"
    if free < NO_SPACE:
        fix = "free space now: writes are refused when it is full; clones and upstreams can be deleted while the server is stopped"
        return Finding(Severity.ERROR, name, f"its disk is full: {left}", fix)
    return Finding(Severity.WARNING, name, f"its disk is nearly full: {left}", "free space, or give it a larger disk")


def _of_clones(folder: Path) -> Iterator[Finding]:
    """Find copies of remotes that cannot be used; each is fetched again when it is not there."""
    for clone in sorted(folder.glob("*.git")):
        try:
            is_whole = (clone / "HEAD").read_bytes() != b"" and (clone / "objects").is_dir()
        except OSError:
            is_whole = False
        if not is_whole:
            fix = f"stop the server, rm -r {clone} and start it: the remote is fetched again"
            yield Finding(Severity.WARNING, f"Clone {clone}", "is no whole repository, or cannot be read", fix)


def _size(folder: Path) -> int:
    """Return the bytes of all files below a folder, of the first hundred thousand at most."""
    files = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    size = 0
    for one in itertools.islice(files, MOST_FILES):
        with contextlib.suppress(OSError):  # it has gone meanwhile
            size += one.lstat().st_size
    return size


def _of_certificates(data: Path, now: dt.datetime) -> Iterator[Finding]:
    files = Files.under(data)
    fixes = {
        files.serving: "restart the server: it makes a new one",
        files.admin: "restart the server: it makes a new one",
        files.ca: "move ca.crt and ca.key away and restart the server; every client then needs a new kubeconfig",
    }
    for file, fix in fixes.items():
        if file.is_file():
            yield from of_certificate(f"Certificate {file}", file.read_bytes(), now, fix)


# --- the database -----------------------------------------------------------------------------------


async def _examine_database(settings: Settings, diagnosis: Diagnosis, *, postgres: bool) -> None:
    """Look whether the database can be read, at the schema that this version works with, and opened with the keys."""
    name = f"Database {'PostgreSQL' if postgres else settings.data / DATABASE}"
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            schema = await asyncio.to_thread(current_revision, database_place(settings))
    except (StoreUnavailable, TimeoutError) as error:
        why = str(error) or f"no answer within {WAIT_SECONDS:g} s"
        fix = (
            "see that PostgreSQL runs and that the address, user and password are right"
            if postgres
            else "restore the last backup (porch restore), or move the file away and register the repositories again"
        )
        diagnosis.add("database", [Finding(Severity.ERROR, name, f"cannot be read: {why}", fix)])
        diagnosis.cannot_look(f"what the database holds: {why}")
        return
    diagnosis.add("database", _of_schema(name, schema))
    if schema is None or _major(schema) > _major(REVISION):
        return
    key = list(_of_key(settings.secret_key))  # one that is missing matters only if something was sealed under it
    diagnosis.add("keys", key)
    if not key:
        await _examine_contents(settings, name, diagnosis)


def _of_schema(name: str, schema: str | None) -> Iterator[Finding]:
    if schema is None:
        yield Finding(Severity.NOTE, name, "is empty", "nothing is to be done: the server's first start fills it")
    elif _major(schema) > _major(REVISION):
        problem = f"is at schema {schema}, newer than {REVISION} of this porch, which cannot work with it"
        yield Finding(
            Severity.ERROR, name, problem, "install the version of Porch that has upgraded it, or a newer one"
        )
    elif schema != REVISION and _order(schema) < _order(REVISION):
        problem = f"is at schema {schema}, older than {REVISION} of this porch"
        fix = "make a backup, then start this version or run porch migrate up: either brings it up"
        yield Finding(Severity.NOTE, name, problem, fix)


def _order(schema: str) -> tuple[int, int]:
    major, _, minor = schema.partition(".")
    return int(major), int(minor or 0)


def _major(schema: str) -> int:
    return _order(schema)[0]


def _of_key(path: Path) -> Iterator[Finding]:
    """Find that the key for Secrets is there and cannot be used."""
    name = f"Key {path}"
    if not path.is_file():
        return
    try:
        load_or_create_key(path)
    except (ValueError, OSError) as error:
        fix = f"chmod 600 {path} and see that it is the server's file; else put it back from a backup"
        yield Finding(Severity.ERROR, name, f"the key for Secrets cannot be used: {error}", fix)


def _of_sealed(name: str, key: Path, error: SealBroken) -> Finding:
    """Tell that Secrets cannot be opened with the key that is there, or is not."""
    if not key.is_file():
        fix = "put the file back from a backup: without it the Secrets of repositories cannot be read, and have to be made again"
        return Finding(Severity.ERROR, f"Key {key}", "the key for Secrets is missing", fix)
    fix = f"put the key back that was used: {key} is another one (replicas share one); or make the Secrets again"
    return Finding(Severity.ERROR, name, str(error), fix)


async def _examine_contents(settings: Settings, name: str, diagnosis: Diagnosis) -> None:
    """Read the log as a start does, Secrets included, and look what has not been pushed."""
    with tempfile.TemporaryDirectory(prefix="porch-doctor-") as folder:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                store = await snapshot_of(settings, Path(folder))
                store.register(SECRETS, lambda _body: ({}, ()), sealed=True)
                await store.start()
        except SealBroken as error:
            diagnosis.add("keys", [_of_sealed(name, settings.secret_key, error)])
            return
        except (StoreUnavailable, TimeoutError, OSError) as error:
            why = str(error) or f"no answer within {WAIT_SECONDS:g} s"
            diagnosis.cannot_look(f"what the database holds: {why}")
            return
        try:
            waiting = {one: len(await store.outbox.heads(one)) for one in await store.outbox.owing()}
        finally:
            await store.stop()
    if waiting:
        listed = ", ".join(f"{number} of {repository}" for repository, number in sorted(waiting.items())[:MOST])
        problem = f"holds what Git has not got yet of package revisions: {listed}"
        fix = "keep the server running while their Repositories are Ready; do not delete the database before"
        diagnosis.add("database", [Finding(Severity.NOTE, name, problem, fix)])
