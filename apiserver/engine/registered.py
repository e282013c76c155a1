"""One registered repository at run time: its settings, its clone, and the objects no remote has yet."""

import asyncio
import contextlib
import contextvars
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from apiserver.engine.remote_access import RemoteAccess
from krm.meta.errors import ServiceUnavailable
from storage.git.clone import Clone
from storage.git.commits import Identity
from storage.git.objects import GitObject, Overlay
from storage.git.refs import full_path
from storage.git.remote import Remote
from storage.interfaces import ObjectStore, StoreUnavailable
from storage.spans import span
from storage.turns import TakenTurn, Turn

Json = dict[str, Any]
T = TypeVar("T")

COMPLETE_SECONDS = 300.0
"""Between two times that readers have everything fetched again."""
OUTBOX_SECONDS = 10.0
"""How long a thread waits for an object that another replica saved."""


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


def turn_at(repository: str) -> str:
    """Return the name of the turn at the remote of a repository (``namespace/name``)."""
    return f"repository {repository}"


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


class RegisteredRepository:
    """A repository in use. Blocking Git work runs in the shared pool through :meth:`run`.

    ``clone`` and ``objects`` exist once :meth:`open` has returned; until then requests that need them are
    told to wait.
    """

    def __init__(
        self,
        settings: RepositorySettings,
        folder: Path,
        store: ObjectStore,
        pool: ThreadPoolExecutor,
        access: RemoteAccess,
    ) -> None:
        self.settings = settings
        self.folder = folder
        self._store = store
        self._pool = pool
        self._access = access
        self._clone: Clone | None = None
        self._objects: Overlay | None = None
        self.synced = False
        """The registered branch and the revisions are known at least once."""
        self.damaged = False
        """Objects that should be in the clone are not; the next sync gets everything anew."""
        self.behind = False
        """Another replica has talked to the remote since; what the clone says of its refs may be out of date."""
        self.turn: Turn | None = None
        """Ours at this repository among all replicas, while the queue holds it."""
        self._completed_at = -math.inf

    async def open(self) -> None:
        """Open or create the bare clone and bring back what the outbox holds. Safe to repeat."""
        if self._objects is not None:
            return
        clone = await self.run(Clone.open, self.folder)
        overlay = Overlay(clone, self._from_outbox(asyncio.get_running_loop()) if self._store.shared else None)
        for parcel in await self._store.outbox.parcels(self.settings.key):
            overlay.add(parcel.objects)
        self._clone, self._objects = clone, overlay

    def _from_outbox(self, loop: asyncio.AbstractEventLoop) -> Callable[[str], GitObject | None]:
        """Return what finds an object that another replica saved and has not pushed; for threads."""

        def find(oid: str) -> GitObject | None:
            with contextlib.suppress(RuntimeError):
                if asyncio.get_running_loop() is loop:
                    return None  # the loop cannot wait for itself
            asked = asyncio.run_coroutine_threadsafe(self._store.outbox.find_object(self.settings.key, oid), loop)
            try:
                return asked.result(OUTBOX_SECONDS)
            except (StoreUnavailable, TimeoutError):
                asked.cancel()
                return None

        return find

    @property
    def shared(self) -> bool:
        """Whether other replicas may talk to the remote, too."""
        return self._store.shared

    def take_turn(self) -> TakenTurn:
        """Wait for the turn at the remote among all replicas."""
        return self._store.turn(turn_at(self.settings.key))

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

    def complete_again(self) -> bool:
        """Have the next sync get everything anew, unless that was done just now; tell whether it is to be done.

        Readers ask for it, as often as they like; what is missing in the remote, too, does not come by asking again.
        """
        now = time.monotonic()
        if self.damaged or now - self._completed_at < COMPLETE_SECONDS:
            return False
        self.damaged, self._completed_at = True, now
        return True

    async def remote(self) -> Remote:
        """Return the remote with its current credentials.

        Raises:
            CredentialsProblem: the Secret cannot be used.
            RemoteUnavailable: the Secret cannot be read now.
            UnsafeAddress: the address is not one we talk to.
        """
        settings = self.settings
        return await self._access.remote(settings.namespace, settings.url, settings.secret)

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
        name = function.__name__.strip("_").replace("_", " ")
        with span(f"git {name}", repository=self.settings.key):
            return await self._in_a_thread(function, *arguments)

    async def _in_a_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            try:
                result = function(*arguments)
            except BaseException as error:  # noqa: BLE001  (handed to the waiting coroutine as it is)
                _resolve(loop, done, error=error)
            else:
                _resolve(loop, done, result=result)

        # The thread works for whoever waits: same request in its log lines, same trace.
        context = contextvars.copy_context()
        Thread(target=context.run, args=(work,), name=f"git {self.settings.key}", daemon=True).start()
        return await done

    def _not_ready(self) -> ServiceUnavailable:
        name = self.settings.name
        return ServiceUnavailable(
            f'repository "{name}" has not been read yet; wait until its Ready condition is True '
            f"(kubectl wait --for=condition=Ready repository/{name})",
            retry_after=1,  # upon which kubectl and client libraries try again by themselves, for some seconds
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
