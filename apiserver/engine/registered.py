"""One registered repository at run time: its settings, its clone, and the objects no remote has yet."""

import asyncio
import base64
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import orjson

from krm.meta.errors import ServiceUnavailable
from storage.git.clone import Clone
from storage.git.commits import Identity
from storage.git.errors import GitError
from storage.git.objects import Overlay
from storage.git.refs import full_path
from storage.git.remote import Credentials, Remote
from storage.interfaces import ObjectKey, ObjectStore

Json = dict[str, Any]
T = TypeVar("T")

BASIC_AUTH = "kubernetes.io/basic-auth"


class CredentialsProblem(GitError):
    """The Secret that a Repository names does not hold credentials we can use."""


@dataclass(frozen=True, slots=True)
class RepositorySettings:
    """What a Repository object says, defaults filled in. Source: ``porch-api.md`` 1.9."""

    namespace: str
    name: str
    uid: str
    generation: int
    type: str
    url: str
    branch: str
    directory: str
    deployment: bool
    create_branch: bool
    secret: str
    author: Identity | None

    @property
    def key(self) -> str:
        """``namespace/name``, as outbox parcels and claims name the repository."""
        return f"{self.namespace}/{self.name}"

    @property
    def branch_ref(self) -> str:
        """The registered branch's full ref."""
        return f"refs/heads/{self.branch}"

    def full_path(self, package: str) -> str:
        """Return the path of a package inside the Git tree."""
        return full_path(self.directory, package)


def read_settings(body: Json) -> RepositorySettings:
    """Read the settings of a stored Repository object."""
    metadata, spec = body["metadata"], body["spec"]
    git = spec.get("git") or {}
    author, email = git.get("author") or "", git.get("email") or ""
    return RepositorySettings(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        type=spec.get("type") or "git",
        url=git.get("repo") or "",
        branch=git.get("branch") or "main",
        directory=(git.get("directory") or "").strip("/"),
        deployment=bool(spec.get("deployment")),
        create_branch=bool(git.get("createBranch")),
        secret=(git.get("secretRef") or {}).get("name") or "",
        author=Identity(author or email, email or author) if author or email else None,
    )


def read_credentials(store: ObjectStore, namespace: str, secret: str) -> Credentials | None:
    """Return the basic-auth credentials of a Secret in the repository's namespace, None without a Secret.

    Raises:
        CredentialsProblem: the Secret is missing or of another type; the message names what to fix.
    """
    if not secret:
        return None
    entry = store.get(ObjectKey("secrets", namespace, secret))
    if entry is None:
        raise CredentialsProblem(f"failed to obtain credential from secret {namespace}/{secret}: it does not exist")
    body = orjson.loads(entry.body)
    data = body.get("data") or {}
    if body.get("type") != BASIC_AUTH or "password" not in data:
        raise CredentialsProblem(
            f"cannot resolve credentials in secret {namespace}/{secret}: its type must be {BASIC_AUTH}, "
            "with the keys username and password"
        )
    try:
        return Credentials(*(base64.b64decode(data.get(key, "")).decode() for key in ("username", "password")))
    except ValueError:
        raise CredentialsProblem(f"secret {namespace}/{secret} holds a username or password that is not text") from None


class RegisteredRepository:
    """A repository in use. Blocking Git work runs in the shared pool through :meth:`run`.

    ``clone`` and ``objects`` exist once :meth:`open` has returned; until then requests that need them are
    told to wait.
    """

    def __init__(
        self, settings: RepositorySettings, folder: Path, store: ObjectStore, pool: ThreadPoolExecutor, timeout: float
    ) -> None:
        self.settings = settings
        self.folder = folder
        self._store = store
        self._pool = pool
        self._timeout = timeout
        self._clone: Clone | None = None
        self._objects: Overlay | None = None
        self.synced = False
        """The registered branch and the revisions are known at least once."""
        self.damaged = False
        """Objects that should be in the clone are not; the next sync gets everything anew."""

    async def open(self) -> None:
        """Open or create the bare clone and bring back what the outbox holds. Safe to repeat."""
        if self._objects is not None:
            return
        clone = await self.run(Clone.open, self.folder)
        overlay = Overlay(clone)
        for parcel in await self._store.outbox.parcels(self.settings.key):
            overlay.add(parcel.objects)
        self._clone, self._objects = clone, overlay

    @property
    def clone(self) -> Clone:
        """The local bare clone.

        Raises:
            ServiceUnavailable: it is not open yet.
        """
        if self._clone is None:
            raise self._not_ready()
        return self._clone

    @property
    def objects(self) -> Overlay:
        """Git objects, pushed or not.

        Raises:
            ServiceUnavailable: the clone is not open yet.
        """
        if self._objects is None:
            raise self._not_ready()
        return self._objects

    def remote(self) -> Remote:
        """Return the remote with its current credentials.

        Raises:
            CredentialsProblem: the Secret cannot be used.
            UnsafeAddress: the address is not one we talk to.
        """
        settings = self.settings
        credentials = read_credentials(self._store, settings.namespace, settings.secret)
        return Remote(settings.url, credentials, timeout=self._timeout)

    def branch_head(self) -> str | None:
        """Return the last known head of the registered branch."""
        return self.clone.refs.get(self.settings.branch_ref)

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run local Git work (reading and building objects) off the event loop, in the shared pool."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    async def converse(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run work that waits for the remote in a thread of its own.

        A remote that hangs then holds nobody up, not even the server's exit: the thread is a daemon.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            try:
                result = function(*arguments)
            except BaseException as error:  # noqa: BLE001  (handed to the waiting coroutine as it is)
                _resolve(loop, done, error=error)
            else:
                _resolve(loop, done, result=result)

        Thread(target=work, name=f"git {self.settings.key}", daemon=True).start()
        return await done

    def _not_ready(self) -> ServiceUnavailable:
        name = self.settings.name
        return ServiceUnavailable(
            f'repository "{name}" has not been read yet; wait until its Ready condition is True '
            f"(kubectl wait --for=condition=Ready repository/{name})"
        )

    def require_open(self) -> None:
        """Refuse work that needs the clone while it is not open.

        Raises:
            ServiceUnavailable: the clone is not open yet.
        """
        if self._clone is None:
            raise self._not_ready()

    def require_synced(self) -> None:
        """Refuse work that depends on knowing the remote.

        Raises:
            ServiceUnavailable: the repository was never synced since it was registered.
        """
        if not self.synced:
            raise self._not_ready()


def _resolve(
    loop: asyncio.AbstractEventLoop,
    done: "asyncio.Future[Any]",
    *,
    result: object = None,
    error: BaseException | None = None,
) -> None:
    """Hand a thread's outcome to its waiter, unless the waiter or the loop is gone."""

    def hand_over() -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(hand_over)
