"""What both composition roots wire alike: the store's database, metrics, limits, the audit log, and what a wired server is."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import FastAPI

from apiserver.auth.audit_log import AuditLogFile
from apiserver.machinery.in_flight import Limits
from apiserver.machinery.metrics import Metrics, ResourceFigures
from apiserver.machinery.rest import Served
from apiserver.machinery.stopping import Stopping
from apiserver.settings import Settings
from krm.package.yaml_edit_text import EDIT_WAYS
from krm.version import porch_version
from storage.sealing import Sealer
from storage.sql.postgres import postgres_database
from storage.sql.sqlite import sqlite_database
from storage.watchcache.store import WatchedStore

VERSION = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.0+porch",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}
"""What kubectl compares its own version with (``kube-api.md`` 1.5)."""


@dataclass(slots=True)
class Server:
    """The wired server: the application, what stops it, and what it serves."""

    app: FastAPI
    shutdown: Stopping
    served: Sequence[Served]
    metrics: Metrics


def database_store(settings: Settings, sealer: Sealer | None = None) -> WatchedStore:
    """Return the object store of the configured database; it is opened by its ``start``."""
    database = (
        postgres_database(
            settings.database, readers=settings.database_connections - 3, lease_seconds=settings.replica_lease
        )
        if settings.database.startswith("postgres")
        else sqlite_database(settings.data / "porch.db")
    )
    return WatchedStore(database, sealer)


def limits(settings: Settings) -> Limits:
    """Return how many requests may be under way."""
    return Limits(
        reads=settings.max_reads,
        writes=settings.max_writes,
        packages=settings.max_package_operations,
        watches=settings.max_watches,
        package_wait_seconds=settings.request_timeout / 4,
    )


def audit_log_file(settings: Settings) -> AuditLogFile | None:
    """Return the file of the audit log, if there is to be one; it is opened by its ``start``."""
    if settings.audit_log is None:
        return None
    return AuditLogFile(settings.audit_log, max_bytes=settings.audit_log_max_size, backups=settings.audit_log_backups)


def create_metrics(store: WatchedStore) -> Metrics:
    """Return metrics that show the version, the store and the editing of YAML."""
    metrics = Metrics()
    metrics.build.labels(porch_version()).set(1)
    metrics.read_resources(lambda: [ResourceFigures(*one) for one in store.figures()])
    metrics.read_edits(lambda: EDIT_WAYS)
    return metrics
