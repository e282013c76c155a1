"""The part of standalone's composition root that is about access: who is known, who may, and what is served for it."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

import structlog
from starlette.routing import Route

from apiserver.auth.audit import AuditLog, Level
from apiserver.auth.authenticate import CertificateAuthenticator
from apiserver.auth.authorizer import AlwaysAllow, Authorizer, enforced
from apiserver.auth.bearer import BearerTokens, TokenKind
from apiserver.auth.bootstrap_token import BootstrapToken
from apiserver.auth.certificates import Files
from apiserver.auth.chain import AuthenticatorChain
from apiserver.auth.discovery_documents import issuer_documents
from apiserver.auth.escalation import EscalationCheck
from apiserver.auth.impersonation import impersonation
from apiserver.auth.rbac import RbacAuthorizer
from apiserver.auth.service_account_tokens import ServiceAccountTokens
from apiserver.auth.signing_keys import load_or_create_signing_keys
from apiserver.auth.token_file import TokenFile
from apiserver.machinery.access import AuditTrail, Authenticator, Authorize, Impersonate
from apiserver.machinery.metrics import Metrics
from apiserver.machinery.rest import Resource, Served
from apiserver.resources.access_reviews import access_reviews
from apiserver.resources.identity_reviews import SelfSubjectReviews, TokenReviews
from apiserver.resources.objects import NamespaceCheck
from apiserver.resources.rbac.aggregation import RoleAggregation
from apiserver.resources.rbac.guarded import guarded_kinds
from apiserver.resources.rbac.reconciliation import reconcile_defaults
from apiserver.resources.token_requests import TokenRequests, live_uid
from apiserver.settings import Authorization, Settings
from apiserver.wiring import audit_log_file
from storage.interfaces import ObjectStore

log = structlog.get_logger()


class Access:
    """Everything about access, wired for one store. Nothing is written before ``start``.

    Raises:
        UnusableFile: the token file cannot be read.
        UnusableKey: the signing key cannot be read.
    """

    def __init__(
        self,
        settings: Settings,
        store: ObjectStore,
        namespace_check: NamespaceCheck,
        metrics: Metrics,
    ) -> None:
        keys = load_or_create_signing_keys(settings.service_account_key)
        issuer = settings.service_account_issuer
        accounts = ServiceAccountTokens(keys, issuer, partial(live_uid, store))
        tokens = BearerTokens(_token_kinds(settings, accounts), [issuer])
        rbac = self._rbac = RbacAuthorizer()
        authorizer: Authorizer = rbac if settings.authorization is Authorization.RBAC else AlwaysAllow()
        kinds = guarded_kinds(store, EscalationCheck(authorizer, rbac), namespace_check)
        self.authenticator: Authenticator = AuthenticatorChain(
            [CertificateAuthenticator(observe=metrics.certificates.observe), tokens],
            anonymous=_lets_anonymous_in(settings),
        )
        self.authorize: Authorize = enforced(authorizer)
        self.impersonate: Impersonate = impersonation(self.authorize)
        self.documents: Sequence[Route] = issuer_documents(issuer, keys)
        self.served: Sequence[Served] = [
            *(Served(kind) for kind in kinds),
            *(Served(review) for review in access_reviews(authorizer)),
            Served(TokenReviews(tokens)),
            Served(SelfSubjectReviews()),
        ]
        self.account_subresources: Mapping[str, Resource] = {"token": TokenRequests(store, accounts, tokens.audiences)}
        self._audit_file = audit_log_file(settings)
        self.audit: AuditTrail | None = (
            None if self._audit_file is None else AuditLog(self._audit_file, Level(settings.audit_level))
        )
        self._cluster_roles, _, self._cluster_role_bindings, _ = kinds
        self._aggregation = RoleAggregation(store, self._cluster_roles)

    async def close(self) -> None:
        """Write the audit log to its end; after everything else, since everything else may add to it."""
        if self._audit_file is not None:
            await self._audit_file.close()

    def follow(self, store: ObjectStore) -> None:
        """Keep up with the roles; to be called once their kinds are registered, before the store starts."""
        self._rbac.follow(store)
        self._aggregation.follow()

    async def start(self) -> None:
        """Open the audit log and bring the default roles up to date; to be called once the store has started.

        Raises:
            AuditLogUnusable: the audit log cannot be written.
        """
        if self._audit_file is not None:
            self._audit_file.start()
        await reconcile_defaults(self._cluster_roles, self._cluster_role_bindings)
        await self._aggregation.settle()

    @property
    def background(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """What runs as long as the server does."""
        return [self._aggregation.run]


def _lets_anonymous_in(settings: Settings) -> bool:
    """Let nobody in who would then be allowed everything."""
    if settings.anonymous_auth and settings.authorization is Authorization.ALWAYS_ALLOW:
        log.warning("anonymous requests stay refused, because everything is allowed to whoever is let in")
        return False
    return settings.anonymous_auth


def _token_kinds(settings: Settings, accounts: ServiceAccountTokens) -> list[TokenKind]:
    kinds: list[TokenKind] = [] if settings.token_file is None else [TokenFile(settings.token_file)]
    return [*kinds, accounts, BootstrapToken(Files.under(settings.data).token_record)]
