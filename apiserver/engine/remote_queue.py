"""One conversation with a remote at a time, shared by everybody who waits for it.

Each registered repository has one queue. Jobs that wait together (approvals, deletions, drafts of the outbox) are
planned on one view of the refs and leave in one atomic compare-and-swap push (``decisions.md`` 8). When the
remote moved meanwhile, the queue syncs and plans again. Nothing but the queue position is held while a remote is
waited for.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog
from opentelemetry.trace import SpanContext

from apiserver.engine.claims import claim_on
from apiserver.engine.engine_metrics import EngineMetrics
from apiserver.engine.log_context import enter_background
from apiserver.engine.push_jobs import PushJob, RefView
from apiserver.engine.push_outcomes import not_begun, unavailable, unrecorded
from apiserver.engine.push_refusals import PushRefusals, refusal
from apiserver.engine.registered import RegisteredRepository
from krm.meta.errors import Conflict, InternalError, NotFound, ResourceName, ServiceUnavailable, StatusError
from storage.git.errors import (
    AuthenticationFailed,
    GitError,
    PushRejected,
    PushWithdrawn,
    RefMoved,
    RemoteUnavailable,
)
from storage.git.remote import Remote
from storage.git.sending import MaySend, always
from storage.interfaces import StoreUnavailable
from storage.spans import here, span

log = structlog.get_logger(__name__)

REVISIONS = ResourceName("packagerevisions", "porch.kpt.dev")
MAX_BATCH = 64
"""Jobs in one push; bounds the size of a pack and of the commands that one refusal fails."""
MAX_ATTEMPTS = 6
"""Plans of one batch before giving up; each follows a sync, so only a remote that moves all the time gets there."""
RETRY_SECONDS = (0.2, 0.4)
"""Pauses before a push is tried again that the remote could not take just now (``porch-api.md`` 6.5: three attempts)."""


@dataclass(slots=True, eq=False)
class _Waiting:
    job: PushJob
    cause: SpanContext = field(default_factory=here)
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def fail(self, error: StatusError) -> None:
        if not self.done.done():
            self.done.set_exception(error)
            self.done.exception()  # an abandoned request must not warn that nobody looked

    def succeed(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


class RemoteQueue:
    """The queue of one repository. ``sync`` is called between pushes, on demand or when the remote moved.

    ``read_ahead`` does before a turn what takes long and needs none, and tells whether there is anything to sync.
    ``look_soon`` asks for a sync that does not wait its turn: the log may not know what the remote has.
    """

    def __init__(
        self,
        repository: RegisteredRepository,
        sync: Callable[[], Awaitable[object]],
        refusals: PushRefusals,
        metrics: EngineMetrics,
        look_soon: Callable[[], None] = lambda: None,
        read_ahead: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._repository = repository
        self._sync = sync
        self._read_ahead = read_ahead
        self._reading_ahead = asyncio.Lock()
        self._refusals = refusals
        self._metrics = metrics
        self._look_soon = look_soon
        self._waiting: list[_Waiting] = []
        self._conversation = asyncio.Lock()
        self._next_look: asyncio.Task[None] | None = None
        self._drain: asyncio.Task[None] | None = None
        self._tidying: asyncio.Task[None] | None = None
        self._settling: set[asyncio.Task[None]] = set()
        self._closed = False

    async def submit(self, job: PushJob) -> None:
        """Wait until the remote has the job's refs and the job is settled.

        A cancelled caller does not take the job back.

        Raises:
            StatusError: the job was refused, or the remote was.
        """
        if self._closed:
            raise self._gone()
        waiting = _Waiting(job)
        self._waiting.append(waiting)
        if self._drain is None or self._drain.done():
            self._drain = asyncio.create_task(self._work())
        await asyncio.shield(waiting.done)

    async def synchronize(self) -> None:
        """Bring the log up to date with the remote, between two pushes.

        Raises:
            GitError: the remote could not be read.
        """
        begun = time.perf_counter()
        if not await self._worth_a_turn():
            self._metrics.synced_without_a_turn(time.perf_counter() - begun)
            return
        async with self._in_turn():
            await self._look()

    async def _worth_a_turn(self) -> bool:
        """Do what needs no turn among replicas; tell whether the remote has anything that the log may not have.

        Raises:
            GitError: the remote could not be read.
        """
        if self._read_ahead is None or not self._repository.shared:
            return True
        async with self._reading_ahead:
            return await self._read_ahead()

    async def _prepare(self) -> None:
        """Before the first push of a process, see what the remote has without keeping other replicas from it."""
        if self._repository.synced:
            return
        try:
            await self._worth_a_turn()
        except Exception as error:  # noqa: BLE001 # who has the turn then meets it, too, and tells whoever waits
            log.info("a remote cannot be read ahead", repository=self._repository.settings.key, problem=str(error))

    async def look(self) -> None:
        """Like :meth:`synchronize`; those who ask together share one, begun after they asked.

        Raises:
            GitError: the remote could not be read.
        """
        if self._next_look is None:
            self._next_look = asyncio.create_task(self._look_for_many())
        await asyncio.shield(self._next_look)

    async def _look_for_many(self) -> None:
        try:
            await self._prepare()
            async with self._in_turn():
                self._next_look = None  # who comes from here on may have come too late for this one
                await self._look()
        finally:
            if self._next_look is asyncio.current_task():
                self._next_look = None

    @asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        """Talk to the remote alone: in this process, and among all replicas.

        Raises:
            StoreUnavailable: the turn did not come.
        """
        repository = self._repository
        async with self._conversation, repository.take_turn() as turn:
            repository.turn = turn
            repository.behind = repository.behind or turn.moved
            try:
                yield
            finally:
                if repository.shared:
                    await self._settled()
                repository.turn = None

    async def _look(self) -> None:
        """Sync, once everything of ours is recorded."""
        await self._settled()
        await self._sync()
        self._repository.behind = False

    async def close(self) -> None:
        """Refuse new jobs, fail those that wait, and let the push under way finish; cancelled, this gives that up, too."""
        self._closed = True
        while self._waiting:
            self._waiting.pop().fail(self._gone())
        try:
            if self._drain is not None:
                await asyncio.wait([self._drain])
            await self._settled()
        finally:
            if self._drain is not None:
                self._drain.cancel()
            await self._refusals.close()

    def _gone(self, besides: str = "") -> ServiceUnavailable:
        return ServiceUnavailable(f'repository "{self._repository.settings.name}" is no longer registered{besides}')

    async def _work(self) -> None:
        enter_background(self._repository.settings.key)
        while self._waiting:
            try:
                await self._prepare()
                async with self._in_turn():
                    batch = self._next_batch()
                    if batch:
                        await self._push_or_tell(batch)
            except StoreUnavailable as error:
                for waiting in self._next_batch():
                    waiting.fail(not_begun(waiting.job.name, error))
            except Exception:  # or those who wait would do so for ever, with their claims in hand
                log.exception("no turn came, unexpectedly", repository=self._repository.settings.key)
                for waiting in self._next_batch():
                    waiting.fail(InternalError.because("the push did not begin; the server's log says why"))
            self._tidy()

    def _next_batch(self) -> list[_Waiting]:
        batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
        return batch

    async def _push_or_tell(self, batch: list[_Waiting]) -> None:
        """Push a batch; when that is given up on the way, nobody waits for it for ever, with a claim in hand."""
        try:
            await self._push_together(batch)
        except asyncio.CancelledError:
            for waiting in batch:
                waiting.fail(self._gone("; what was just pushed may be in its Git remote"))
            raise

    def _tidy(self) -> None:
        """Have the clone put its many small packs together, beside the work that goes on."""
        clone = self._repository.clone
        if clone.scattered and (self._tidying is None or self._tidying.done()):
            self._tidying = asyncio.create_task(self._consolidate())

    async def _consolidate(self) -> None:
        try:
            await self._repository.converse(self._repository.clone.consolidate)
        except GitError as error:
            log.warning("a clone could not be tidied", repository=self._repository.settings.key, problem=str(error))

    async def _push_together(self, batch: list[_Waiting]) -> None:
        """Push a batch; when the remote refuses it as a whole, each job alone."""
        try:
            if not self._repository.synced or self._repository.behind:
                await self._look()  # an approval of before a crash, or of another replica, may be in the remote already
            await self._push(batch)
        except PushRejected as rejected:
            await self._push_alone(batch, rejected)
        except (GitError, StatusError, StoreUnavailable) as error:
            self._give_up(batch, error)
        except Exception:
            self._doubt()
            log.exception("push failed unexpectedly", repository=self._repository.settings.key)
            for waiting in batch:
                waiting.fail(InternalError.because("the push failed unexpectedly; the server's log says why"))

    async def _push_alone(self, batch: list[_Waiting], rejected: PushRejected) -> None:
        """Find out whose refs the remote refuses."""
        if len(batch) == 1:
            self._refuse(batch[0], rejected)
            return
        for waiting in batch:
            if not waiting.done.done():
                await self._push_together([waiting])

    def _give_up(self, batch: Sequence[_Waiting], error: GitError | StatusError | StoreUnavailable) -> None:
        """Tell everybody why there is no push now."""
        known = isinstance(error, GitError) and not (isinstance(error, RemoteUnavailable) and error.outcome_unknown)
        if not known:
            self._doubt()
        for waiting in batch:
            if isinstance(error, AuthenticationFailed):
                self._refuse(waiting, error)
            elif isinstance(error, GitError):
                waiting.fail(unavailable(self._repository.settings.name, error))
            else:
                waiting.fail(unrecorded(waiting.job.name, error))

    def _doubt(self) -> None:
        """Have everything compared soon: the remote may have what the log does not know."""
        self._repository.synced = False
        self._look_soon()

    def _refuse(self, waiting: _Waiting, error: PushRejected | AuthenticationFailed) -> None:
        """Fail a job whose push the remote refused; a remote that is merely busy will take it later."""
        if isinstance(error, PushRejected) and error.transient:
            waiting.fail(unavailable(self._repository.settings.name, error))
            return
        self._refusals.refused(waiting.job.name, error)
        waiting.fail(refusal(self._repository, waiting.job.name, error))

    async def _push(self, batch: list[_Waiting]) -> None:
        repository = self._repository
        pauses = iter(RETRY_SECONDS)
        for attempt in range(MAX_ATTEMPTS):
            if attempt:
                await self._make_sure_of_turn()
            remote = await repository.remote()
            undone = [waiting for waiting in batch if not waiting.done.done()]
            try:
                planned, refused, moved = await self._try(remote, undone)
            except PushRejected as error:
                await self._pause(error, pauses)
                continue
            except AuthenticationFailed:
                if (await repository.remote()).credentials == remote.credentials:
                    raise
                continue  # the Secret was exchanged while we knocked
            except (RefMoved, RemoteUnavailable) as error:
                if isinstance(error, RemoteUnavailable) and not error.outcome_unknown:
                    raise
                await self._look_again(error)
                continue
            except PushWithdrawn:
                if attempt == MAX_ATTEMPTS - 1:
                    raise
                log.info("a push was withdrawn: our turn may be over", repository=repository.settings.key)
                continue
            for waiting, why in refused:
                waiting.fail(why)
            self._refusals.accepted([waiting.job.name for waiting in planned], moved)
            self._settle_aside(planned)
            return
        moving = "the remote kept moving while this was pushed; try again"
        for waiting in batch:
            waiting.fail(Conflict.of(REVISIONS, waiting.job.name, moving))

    async def _pause(self, rejected: PushRejected, pauses: Iterator[float]) -> None:
        """Wait before a push is tried again that the remote could not take just now; raise what is final."""
        pause = next(pauses, None) if rejected.transient else None
        if pause is None:
            raise rejected
        await asyncio.sleep(pause)

    async def _make_sure_of_turn(self) -> None:
        """See whether other replicas did something while we were waiting, or paused.

        What comes next is planned anew in any case, on the log and the claims of now.
        """
        turn = self._repository.turn
        if turn is not None and await turn.renew():
            self._repository.behind = True
            await self._look()

    async def _look_again(self, cause: RefMoved | RemoteUnavailable) -> None:
        """See what moved, or what of ours arrived; when the remote does not say, that stays as unknown as it was."""
        try:
            await self._make_sure_of_turn()
            await self._look()
        except GitError as error:
            if isinstance(cause, RemoteUnavailable):
                raise cause from error
            raise

    async def _try(
        self, remote: Remote, batch: list[_Waiting]
    ) -> tuple[list[_Waiting], list[tuple[_Waiting, StatusError]], frozenset[str]]:
        """Push once, measured."""
        causes = [waiting.cause for waiting in batch]
        key = self._repository.settings.key
        with self._metrics.push(len(batch)), span("push", causes, repository=key, jobs=len(batch)):
            return await self._repository.converse(self._attempt, remote, batch)

    def _attempt(
        self, remote: Remote, batch: list[_Waiting]
    ) -> tuple[list[_Waiting], list[tuple[_Waiting, StatusError]], frozenset[str]]:
        """Plan and push in a Git thread; return the jobs that went along, those that would not, and the refs that moved."""
        repository = self._repository
        view = RefView(repository)
        planned: list[_Waiting] = []
        refused: list[tuple[_Waiting, StatusError]] = []
        for waiting in batch:
            try:
                waiting.job.plan(view)
            except StatusError as error:
                refused.append((waiting, error))
            except GitError as error:  # its own content cannot be read; the others need not suffer for it
                refused.append((waiting, unavailable(repository.settings.name, error)))
            else:
                planned.append(waiting)
        updates = view.updates()
        if updates:
            # Stored first: the clone must never know a ref whose objects a crash or a full disk kept from it.
            repository.clone.add_objects(view.objects())
            repository.clone.push(remote, updates, view.objects(), self._fence(planned))
        return planned, refused, frozenset(update.ref for update in updates)

    def _fence(self, planned: Sequence[_Waiting]) -> MaySend:
        """Return what withdraws a push if others may have had the turn, or a revision, since it was planned."""
        repository = self._repository
        if repository.turn is None:
            return always
        return repository.turn.fence(claim_on(repository.settings.namespace, one.job.name) for one in planned)

    def _settle_aside(self, planned: Sequence[_Waiting]) -> None:
        """Record pushed jobs while the next push goes on; those of one package in turn, because they move one label."""
        packages: dict[str, list[_Waiting]] = {}
        for waiting in planned:
            packages.setdefault(waiting.job.package, []).append(waiting)
        for group in packages.values():
            task = asyncio.create_task(self._settle_in_turn(group))
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)

    async def _settle_in_turn(self, group: Sequence[_Waiting]) -> None:
        for waiting in group:
            await self._settle(waiting)

    async def _settled(self) -> None:
        """Wait until the log knows every push of ours; a sync would take what it does not know for somebody else's."""
        if self._settling:
            await asyncio.wait(self._settling)  # whoever is cancelled here must not take the settling with him

    async def _settle(self, waiting: _Waiting) -> None:
        """Record one pushed job."""
        try:
            await waiting.job.settle()
        except (Conflict, NotFound) as error:  # somebody else wrote, or removed, the revision while it was pushed
            self._doubt()
            waiting.fail(error)
        except (StatusError, StoreUnavailable) as error:
            self._doubt()
            log.warning("a push waits to be recorded", job=waiting.job.name, problem=str(error))
            waiting.fail(unrecorded(waiting.job.name, error))
        except Exception:
            self._doubt()
            log.exception("recording a push failed", repository=self._repository.settings.key, job=waiting.job.name)
            why = f"{waiting.job.name} reached its remote, but recording it failed; the next sync repairs it"
            waiting.fail(InternalError.because(why))
        else:
            waiting.succeed()
