"""One request on its way to a verb: what it asks for, who asks, and what of its headers a verb wants to know."""

from dataclasses import dataclass, field, replace

from starlette.types import Receive
from starlette.types import Scope as AsgiScope

from apiserver.machinery.access import Authorize
from apiserver.machinery.negotiate import Form, Shape, negotiate
from apiserver.machinery.options import write_options
from apiserver.machinery.request import Query, RequestInfo, header, text
from apiserver.machinery.rest import Scope, User, WriteOptions
from krm.meta.errors import Forbidden


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way to a verb."""

    asgi: AsgiScope
    receive: Receive
    info: RequestInfo
    query: Query
    user: User
    authorize: Authorize
    warnings: list[str] = field(default_factory=list)
    """What the client is warned of, whether the request succeeds or not."""

    async def authorize_also(self, verb: str) -> None:
        """Make sure that the user may use another verb on the same target, as an apply that creates needs ``create``.

        Raises:
            Forbidden: they may not.
        """
        await self.authorize(self.user, replace(self.info, verb=verb))

    async def may(self, verb: str) -> bool:
        """Tell whether the user may use another verb on the object, also when this request is for its subresource."""
        try:
            await self.authorize(self.user, replace(self.info, verb=verb, subresource=""))
        except Forbidden:
            return False
        return True

    @property
    def scope(self) -> Scope:
        """Where the request points, as handlers take it."""
        return Scope(self.info.namespace, self.user)

    def header(self, name: bytes) -> str:
        """Return a request header, or ""."""
        return header(self.asgi, name)

    def write_options(self, kind: str, *, apply: bool = False) -> WriteOptions:
        """Return the options of a write; ``kind`` names them (CreateOptions …). What they warn of is this call's."""
        options = write_options(self.query, kind, self.header(b"user-agent"), apply=apply)
        options.warnings = self.warnings
        return options

    def form(self, shape: Shape) -> Form:
        """Return the form of the answer that the client asked for."""
        return negotiate(
            self.header(b"accept"), shape, pretty=text(self.query, "pretty"), agent=self.header(b"user-agent")
        )
