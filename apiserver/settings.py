"""Every setting of the server process: read once from PORCH_* variables and the command line, then passed on.

No other module reads the environment. ``docs/reference/settings.md`` is generated from this class by
``python -m apiserver.settings_reference``.
"""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, IPvAnyNetwork, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "PORCH_"


class PushDrafts(StrEnum):
    """When the branch of a saved draft goes to the remote."""

    ASYNC = "async"
    SYNC = "sync"
    NEVER = "never"


class Authorization(StrEnum):
    """Who decides what a known user may do."""

    RBAC = "rbac"
    ALWAYS_ALLOW = "always-allow"


def default_data() -> Path:
    """Return ``porch`` under the user's data home (XDG base directories)."""
    home = os.environ.get("XDG_DATA_HOME", "")
    # The specification says to ignore a relative path here.
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "share") / "porch"


def function_environment() -> dict[str, str]:
    """Return what a container runtime needs of the server's environment; nothing of it is a secret of Porch."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST") if name in os.environ}


Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Settings(BaseSettings):
    """How one server process runs."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True, validate_default=True
    )

    data: Path = Field(
        default_factory=default_data,
        description="Directory of everything the server keeps: certificates, kubeconfig, database, clones of "
        "repositories. Made, readable by its owner only, when missing.",
    )
    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        max_length=253,
        description="Address to listen on: an IP address or `localhost`. Whoever holds a client certificate of the "
        "server's CA may do everything, so widen it with care.",
    )
    port: int = Field(default=9443, ge=0, le=65_535, description="TCP port of the HTTPS API; 0 takes a free one.")
    database_url: str = Field(
        default="",
        pattern=r"^(postgresql://.+)?$",
        description="A PostgreSQL database for several replicas: `postgresql://USER:PASSWORD@HOST/NAME`. Empty: the SQLite file "
        "`porch.db` in the data directory.",
    )
    aggregated: bool = Field(
        default=False,
        description="Serve `porch.kpt.dev` behind a cluster's kube-apiserver, registered there as an APIService. Repositories, Secrets, "
        "namespaces and Events are the cluster's then, and the cluster says who somebody is and what they may do.",
    )
    kubeconfig: Path | None = Field(
        default=None,
        description="Kubeconfig of that cluster, whose current context is used. Empty: the service account of the pod that the server runs in.",
    )
    tls_cert_file: Path | None = Field(
        default=None,
        description="PEM file with the serving certificate of a server in a cluster, and those between it and its CA. It is looked at every "
        "2 s, so that a new one counts without a restart. Empty: `tls.crt` in the data directory, signed there by a CA of the server's own.",
    )
    tls_private_key_file: Path | None = Field(default=None, description="PEM file with the key of that certificate.")
    tls_secret: str = Field(
        default="",
        pattern=r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$",
        description="Secret of the cluster, as `NAMESPACE/NAME`, in which the servers keep a CA and a certificate of their own: made there when the "
        "Secret is empty, renewed after two thirds of their life, and told to kube-apiserver in the APIService. Empty: none.",
    )
    tls_names: list[str] = Field(
        default=[],
        max_length=20,
        description="Names, as a JSON list, that a certificate which the server makes for a cluster is for besides its address: "
        '`["porch-server.porch-system.svc"]`.',
    )
    database_connections: int = Field(
        default=7,
        ge=4,
        le=200,
        description="Connections to PostgreSQL that one server may have: three of them write, listen and hold turns, the others read.",
    )
    replica_lease: float = Field(
        default=10.0,
        ge=1.0,
        le=300.0,
        description="Seconds after which a replica that shows no sign of life loses its turn at a repository to another one. One that "
        "dies loses it at once.",
    )
    secret_key_file: Path | None = Field(
        default=None,
        description="File with the key that encrypts Secrets in the database. Empty: `secret.key` in the data directory, "
        "made on the first start.",
    )
    push_drafts: PushDrafts = Field(
        default=PushDrafts.ASYNC,
        description="When a saved draft's branch goes to the remote: `async` within a second after the answer, `sync` "
        "before it, `never` (drafts live in the database until they are published).",
    )
    sync_interval: Seconds = Field(
        default=60.0,
        description="Seconds between two looks at the remote of a registered repository, after which changes made by others "
        "show up. With a schedule (`spec.sync.schedule`) the looks only check that the remote answers.",
    )
    full_sync_interval: Seconds = Field(
        default=3600.0,
        description="Seconds after which a repository without a schedule is due for its next full sync: `lastFullSyncTime` and "
        "`nextFullSyncTime` in its status.",
    )
    max_parallel_syncs: int = Field(default=4, ge=1, le=64, description="Repositories synchronised at the same time.")
    git_timeout: Seconds = Field(
        default=60.0,
        description="Seconds one exchange with a Git remote may take (connect, fetch, push) before it is given up.",
    )
    upstream_clones_size: int = Field(
        default=2 * 1024**3,
        ge=64 * 1024**2,
        le=1024**5,
        description="Bytes of all clones that are kept of repositories which are not registered but cloned from by address. "
        "Beyond it those not used for longest are removed; also the largest pack that such a remote may send.",
    )
    denied_networks: list[IPvAnyNetwork] = Field(
        default=[],
        max_length=100,
        description='Networks that no Git remote may be in, as a JSON list: `["10.0.0.0/8", "fd00::/8"]`. Whoever may register a '
        "repository chooses where the server connects to, so name what it must not reach. Link-local addresses (among "
        "them the metadata services of clouds), multicast and unspecified ones are denied in any case.",
    )
    local_repositories: bool = Field(
        default=True,
        description="Allow `file://` addresses: repositories that are directories of the server's machine. Turn it off where those "
        "who register repositories may not read, or write, what the server can.",
    )
    ssh_known_hosts: Path | None = Field(
        default=None,
        description="File in OpenSSH's known_hosts format with the keys of SSH hosts, for Secrets that hold no `known_hosts` of "
        "their own. It is read at each use. Empty: none, and a host is talked to only when the Secret vouches for it.",
    )
    git_threads: int = Field(default=16, ge=2, le=256, description="Threads for Git work, shared by all repositories.")
    render_workers: int = Field(
        default_factory=lambda: min(4, os.cpu_count() or 1),
        ge=1,
        le=64,
        description="Processes that render large packages, each started when it is first needed. Default: one for each "
        "processor, at most 4.",
    )
    function_executables: dict[str, Path] = Field(
        default={},
        description="Programs that stand in for function images, as a JSON object of image pattern and absolute path: "
        '`{"ghcr.io/acme/lint:v1.*": "/usr/local/bin/lint"}`. They get a ResourceList on stdin, and run with the '
        "rights of the server.",
    )
    container_runtime: Literal["", "docker", "podman", "nerdctl"] = Field(
        default="",
        description="Command that runs all function images which are neither built in nor among the executables. Empty: "
        "none, and a package with such a function is refused.",
    )
    schema_directory: Path | None = Field(
        default=None,
        description="Directory of OpenAPI documents (JSON) that the function kubeconform may be told to use in "
        "`schema_location`. Empty: Kubernetes' own and the package's CustomResourceDefinitions only.",
    )
    function_environment: dict[str, str] = Field(
        default_factory=function_environment,
        description="Environment of the executables and of the container runtime, as a JSON object. Default: PATH, HOME, "
        "XDG_RUNTIME_DIR and DOCKER_HOST of the server.",
    )
    authorization: Authorization = Field(
        default=Authorization.RBAC,
        description="What known users may do: `rbac` what the roles bound to them allow (the kubeconfig's user is in "
        "`system:masters`, who may do everything), `always-allow` everything.",
    )
    anonymous_auth: bool = Field(
        default=False,
        description="Let in requests without credentials, as user `system:anonymous` of group `system:unauthenticated`. "
        "Has no effect with `always-allow`. Health and `/version` are open to everybody in any case.",
    )
    token_file: Path | None = Field(
        default=None,
        description='File of bearer tokens, one a line: `token,user,uid,"group1,group2"`. It is read again when it changes. '
        "Empty: none.",
    )
    service_account_issuer: str = Field(
        default="https://kubernetes.default.svc",
        pattern=r"^https://[^\s?#]+$",
        max_length=1024,
        description="Issuer and audience of service-account tokens. To let others check the tokens, an address under which "
        "they reach this server. A change ends the tokens issued before.",
    )
    service_account_key_file: Path | None = Field(
        default=None,
        description="PEM file with the ES256 keys of service-account tokens: the first signs, all verify. Empty: "
        "`service-account.key` in the data directory, made on the first start. Replicas share one.",
    )
    audit_log: Path | None = Field(
        default=None,
        description="File that records who asked for what, one JSON line (`audit.k8s.io/v1`) for each stage of a request. "
        "While it cannot be written, requests are refused. Empty: none.",
    )
    audit_level: Literal["Metadata", "Request", "RequestResponse"] = Field(
        default="Metadata",
        description="How much of a write is recorded: that it happened, also what was sent, also what was answered. What is in "
        "Secrets and ConfigMaps, and tokens, is never recorded.",
    )
    audit_log_max_size: int = Field(
        default=100 * 1024 * 1024,
        ge=64 * 1024,
        le=100 * 1024**3,
        description="Bytes at which the audit log is renamed to `….1` and a new one begun.",
    )
    audit_log_backups: int = Field(default=10, ge=0, le=1000, description="Renamed audit logs that are kept.")
    body_limit: int = Field(
        default=6 * 1024 * 1024,
        ge=64 * 1024,
        le=1024**3,
        description="Bytes a request's body may have; larger ones are answered 413.",
    )
    request_timeout: Seconds = Field(
        default=60.0,
        description="Seconds a request other than a watch may take before it is answered 504.",
    )
    shutdown_delay: float = Field(
        default=10.0,
        ge=0.0,
        le=300.0,
        description="Seconds that a server in a cluster goes on to serve after SIGTERM, unready, until nobody is sent to it any more. Then it "
        "takes no new connections, ends its watches over ten seconds and finishes requests, which may take as long as they ever may. "
        "After Ctrl-C, and standalone, it stops within five seconds.",
    )
    max_connections: int = Field(
        default=4096, ge=16, le=100_000, description="Open connections; further ones are answered 503."
    )
    max_reads: int = Field(
        default=400,
        ge=2,
        le=100_000,
        description="Reads (other than watches) under way at once; one user has at most half. Those above wait shortly, then "
        "are answered 429. Administrators (`system:masters`) are not counted, here and below.",
    )
    max_writes: int = Field(
        default=200,
        ge=2,
        le=100_000,
        description="Writes under way at once, other than those of packages; one user has at most half.",
    )
    max_package_operations: int = Field(
        default=32,
        ge=2,
        le=10_000,
        description="Writes of packages (which clone and render) under way at once; one user has at most half. Those above "
        "wait for a quarter of the request timeout.",
    )
    max_watches: int = Field(
        default=3000,
        ge=2,
        le=100_000,
        description="Open watches; one user has at most half. Further ones are answered 429.",
    )
    controllers: bool = Field(
        default=False,
        description="Run the controllers, too: as a process of their own that is started with the server, started again when it "
        "dies, and ended with the server. Its settings are the variables `PORCH_CONTROLLERS_…`, see controllers-settings.md.",
    )
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65_535,
        description="TCP port of a plain HTTP listener that serves `/metrics` to whoever reaches it, on the same address; 0 "
        "takes a free one. Empty: none, and metrics are read at the HTTPS port only.",
    )
    keep_alive: float = Field(
        default=180.0,
        ge=120,
        le=3600,
        description="Seconds an idle connection is kept. Clients written in Go keep theirs for 90 s; a shorter time here "
        "would break their next request.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe messages that are logged, on stderr."
    )
    log_format: Literal["json", "console"] = Field(
        default="json", description="How messages are logged: a JSON object a line, or text for people."
    )
    otel_exporter_otlp_endpoint: str = Field(
        default="",
        validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT",
        pattern=r"^(https?://[^\s@?#]+)?$",
        description="Address of an OpenTelemetry collector that traces are sent to, by OTLP over HTTP (`/v1/traces` is added). Empty: no "
        "traces. Needs the extra `pyporch[telemetry]`.",
    )
    otel_exporter_otlp_headers: SecretStr = Field(
        default=SecretStr(""),
        validation_alias="OTEL_EXPORTER_OTLP_HEADERS",
        description="Headers of what is sent to the collector: `name=value,name=value`, percent-encoded.",
    )
    otel_service_name: str = Field(
        default="porch",
        validation_alias="OTEL_SERVICE_NAME",
        max_length=255,
        description="How traces name this server.",
    )
    otel_traces_sampler_arg: float = Field(
        default=1.0,
        ge=0,
        le=1,
        validation_alias="OTEL_TRACES_SAMPLER_ARG",
        description="Share of the requests that are traced; one that belongs to a trace of its client's does as that says.",
    )

    @field_validator(
        "data",
        "kubeconfig",
        "tls_cert_file",
        "tls_private_key_file",
        "secret_key_file",
        "schema_directory",
        "token_file",
        "service_account_key_file",
        "audit_log",
        "ssh_known_hosts",
    )
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        """Pin a path to where the process started, whatever changes its working directory later."""
        return None if value is None else value.expanduser().absolute()

    @field_validator("function_executables")
    @classmethod
    def _absolute_programs(cls, value: dict[str, Path]) -> dict[str, Path]:
        """Refuse programs that a working directory or a search path would choose."""
        for image, program in value.items():
            if not program.is_absolute():
                raise ValueError(f"the program {program} for {image} must be an absolute path")
        return value

    @property
    def traces(self) -> bool:
        """Whether traces are collected."""
        return bool(self.otel_exporter_otlp_endpoint)

    @property
    def database(self) -> str:
        """The database's URL, with the default filled in."""
        return self.database_url or f"sqlite:///{self.data / 'porch.db'}"

    @property
    def secret_key(self) -> Path:
        """The file of the key for Secrets, with the default filled in."""
        return self.secret_key_file or self.data / "secret.key"

    @property
    def service_account_key(self) -> Path:
        """The file of the keys for service-account tokens, with the default filled in."""
        return self.service_account_key_file or self.data / "service-account.key"
