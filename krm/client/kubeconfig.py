"""Where the API server is and who we are there, as kubernetes-asyncio reads it from a kubeconfig or inside a cluster.

Of that library only the configuration is used. Importing it whole loads its 700 generated models, 0.3 s and 33 MB of a
process that handles JSON as it comes, so the modules are loaded past the packages' own ``__init__``.
"""

import asyncio
import importlib
import importlib.util
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

READ_SECONDS: Final = 30.0
"""Deadline for reading the configuration; it may run a program that fetches credentials."""
REREAD_SECONDS: Final = 10.0
"""Between two readings: a server that refuses everybody does not make us run such programs all the time."""

_LIBRARY: Final = "kubernetes_asyncio"
_MALFORMED: Final = (OSError, TypeError, KeyError, ValueError, AttributeError, AssertionError)
"""What the library raises for files that it does not expect, among others."""


class BadKubeconfig(Exception):
    """The configuration cannot be read, or credentials that it tells how to get cannot be had."""


@dataclass
class Access:
    """The server's address, our credentials, and how both are read again. Not for use by several threads."""

    kubeconfig: Path | None
    configuration: Any
    """A ``kubernetes_asyncio.client.Configuration``."""
    tls: ssl.SSLContext
    proxy: str | None
    read_at: float
    """Monotonic time, seconds."""

    @property
    def url(self) -> str:
        """The address of the server without a slash at its end."""
        return str(self.configuration.host).rstrip("/")

    @property
    def server_name(self) -> str | None:
        """The name to ask the server for and to find in its certificate, where that is not its address."""
        return self.configuration.tls_server_name or None

    async def authorization(self) -> str | None:
        """Return the Authorization header: None where a client certificate is all; a pod's token is read again each minute.

        Raises:
            BadKubeconfig: That file cannot be read.

        """
        try:
            return await self.configuration.get_api_key_with_prefix("BearerToken")  # type: ignore[no-any-return]
        except (_library().ConfigException, OSError) as error:
            raise BadKubeconfig(f"cannot read the token: {error}") from error

    async def refresh(self) -> bool:
        """Read everything again after the server refused us; tell whether that was done.

        Does nothing within 10 s of the last reading.

        Raises:
            BadKubeconfig: It cannot be used any more; what was read before stays.

        """
        if time.monotonic() - self.read_at < REREAD_SECONDS:
            return False
        self.read_at = time.monotonic()
        configuration = await _configuration(self.kubeconfig)
        _trust(self.tls, configuration)
        self.configuration = configuration
        return True


async def read_access(kubeconfig: Path | None) -> Access:
    """Read a kubeconfig file, or without one the service account of the pod that we run in.

    Raises:
        BadKubeconfig: It is missing, malformed or incomplete, or a credentials program failed.

    """
    configuration = await _configuration(kubeconfig)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if configuration.ssl_ca_cert else ssl.create_default_context()
    # Also an authority that is named without its root, as client-go does.
    tls.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _trust(tls, configuration)
    if not configuration.verify_ssl:  # as the kubeconfig's author asked, who alone can
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return Access(kubeconfig, configuration, tls, _proxy(configuration), time.monotonic())


async def _configuration(kubeconfig: Path | None) -> Any:
    library = _library()
    configuration = library.Configuration()
    try:
        if kubeconfig is None:
            library.load_incluster_config(client_configuration=configuration)
        elif not await asyncio.to_thread(kubeconfig.is_file):
            raise BadKubeconfig(f"there is no kubeconfig {kubeconfig}")
        else:
            async with asyncio.timeout(READ_SECONDS):
                await library.load_kube_config(
                    config_file=str(kubeconfig), client_configuration=configuration, persist_config=False
                )
    except (library.ConfigException, library.YAMLError, aiohttp.ClientError, *_MALFORMED) as error:
        where = f"kubeconfig {kubeconfig}" if kubeconfig else "the service account of this pod"
        raise BadKubeconfig(f"cannot use {where}: {str(error) or type(error).__name__}") from error
    return configuration


def _trust(tls: ssl.SSLContext, configuration: Any) -> None:
    """Make new connections of ``tls`` use the files that ``configuration`` names, as they are now."""
    try:
        if configuration.ssl_ca_cert:
            tls.load_verify_locations(configuration.ssl_ca_cert)
        if configuration.cert_file:
            tls.load_cert_chain(configuration.cert_file, configuration.key_file)
    except OSError as error:  # among them those of malformed certificates
        raise BadKubeconfig(f"cannot use the kubeconfig's certificates: {error}") from error


def _proxy(configuration: Any) -> str | None:
    """Return the proxy that the kubeconfig names, else that of the environment; asked once, not at each request."""
    if configuration.proxy:
        return str(configuration.proxy)
    url = urlsplit(configuration.host)
    if not url.hostname or proxy_bypass(url.hostname):
        return None
    return getproxies().get(url.scheme)


@dataclass(frozen=True)
class _Library:
    """What is used of kubernetes-asyncio."""

    Configuration: Any
    load_kube_config: Any
    load_incluster_config: Any
    ConfigException: type[Exception]
    YAMLError: type[Exception]


_loaded: list[_Library] = []


def _library() -> _Library:
    if not _loaded:
        with _bare_packages():
            _loaded.append(_load())
    return _loaded[0]


def _load() -> _Library:
    configuration = importlib.import_module(f"{_LIBRARY}.client.configuration").Configuration
    # the configuration's modules take two names from the package that is not loaded, and use one
    sys.modules[f"{_LIBRARY}.client"].__dict__.update({"Configuration": configuration, "ApiClient": None})
    kube_config = importlib.import_module(f"{_LIBRARY}.config.kube_config")
    incluster = importlib.import_module(f"{_LIBRARY}.config.incluster_config")
    return _Library(
        Configuration=configuration,
        load_kube_config=kube_config.load_kube_config,
        load_incluster_config=incluster.load_incluster_config,
        ConfigException=kube_config.ConfigException,
        YAMLError=kube_config.yaml.YAMLError,
    )


@contextmanager
def _bare_packages() -> Iterator[None]:
    """Let modules of the library be imported while its packages are empty; afterwards nobody else sees any of it."""
    before = _of_library()
    for name in before:
        del sys.modules[name]
    try:
        for name in (_LIBRARY, f"{_LIBRARY}.client", f"{_LIBRARY}.config"):
            sys.modules[name] = _bare(name)
        yield
    finally:
        for name in _of_library():
            del sys.modules[name]
        sys.modules.update(before)


def _bare(name: str) -> ModuleType:
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return importlib.util.module_from_spec(spec)


def _of_library() -> dict[str, ModuleType]:
    found = dict(sys.modules)
    return {name: module for name, module in found.items() if name == _LIBRARY or name.startswith(f"{_LIBRARY}.")}
