"""All ways to be known, in order: the first that finds a user wins.

Source: ``kube-api.md`` 3.1.
"""

from collections.abc import Sequence

from starlette.types import Scope

from apiserver.auth.identity import AUTHENTICATED, NOBODY, UNAUTHENTICATED, with_group
from apiserver.machinery.access import Authenticator
from apiserver.machinery.rest import User
from krm.meta.errors import Unauthorized


class AuthenticatorChain:
    """Asks each authenticator in turn; ``anonymous`` lets in who has no credentials at all, as ``system:anonymous``."""

    def __init__(self, authenticators: Sequence[Authenticator], *, anonymous: bool = False) -> None:
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous

    async def authenticate(self, scope: Scope) -> User | None:
        """Return the user, or None for somebody without credentials.

        Raises:
            Unauthorized: there are credentials, and none of them is valid. Such a sender is never taken for an
                anonymous one: they believe to be somebody.
        """
        refused: Unauthorized | None = None
        for authenticator in self._authenticators:
            try:
                user = await authenticator.authenticate(scope)
            except Unauthorized as error:
                refused = error
                continue
            if user is not None:
                # An anonymous user whom a front proxy names stays one.
                return user if UNAUTHENTICATED in user.groups else with_group(user, AUTHENTICATED)
        if refused is not None:
            raise refused
        return NOBODY if self._anonymous else None
