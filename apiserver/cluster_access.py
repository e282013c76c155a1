"""The part of aggregated's composition root that is about access: the cluster says who is known, and who may."""

from typing import Any

from apiserver.auth.audit import AuditLog, Level
from apiserver.auth.authenticate import CertificateAuthenticator
from apiserver.auth.bearer import BearerTokens
from apiserver.auth.chain import AuthenticatorChain
from apiserver.auth.front_proxy import FrontProxyAuthenticator, HeadersForgotten, VouchedCertificates
from apiserver.auth.impersonation import impersonation
from apiserver.auth.reviews import ReviewedAccess, ReviewedTokens
from apiserver.cluster.authentication import FollowedTrust
from apiserver.machinery.access import AuditTrail, Authenticator, Authorize, Impersonate
from apiserver.machinery.metrics import Metrics
from apiserver.settings import Settings
from apiserver.wiring import audit_log_file
from krm.client.client import KubeClient
from krm.client.resources import Resource

Json = dict[str, Any]
_TOKENS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
_ACCESS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
_CLUSTER = "cluster"
"""Stands for the audience of tokens that are meant for kube-apiserver, whatever it calls itself: it checks that."""


class ClusterAccess:
    """Everything about access, wired for one cluster: front proxy, certificates, tokens; then SubjectAccessReviews."""

    def __init__(self, settings: Settings, client: KubeClient, metrics: Metrics) -> None:
        self.trust = FollowedTrust(client)

        async def review_token(review: Json) -> Json:
            return await client.create(_TOKENS, None, review)

        async def review_access(review: Json) -> Json:
            return await client.create(_ACCESS, None, review)

        chain = AuthenticatorChain(
            [
                FrontProxyAuthenticator(lambda: self.trust.current),
                VouchedCertificates(
                    CertificateAuthenticator(observe=metrics.certificates.observe), lambda: self.trust.current
                ),
                BearerTokens([ReviewedTokens(review_token)], [_CLUSTER]),
            ],
            anonymous=True,  # who then may what anonymous users may, which the cluster says
        )
        self.authenticator: Authenticator = HeadersForgotten(chain, lambda: self.trust.current)
        self.authorize: Authorize = ReviewedAccess(review_access).authorize
        self.impersonate: Impersonate = impersonation(self.authorize)
        self._audit_file = audit_log_file(settings)
        self.audit: AuditTrail | None = (
            None if self._audit_file is None else AuditLog(self._audit_file, Level(settings.audit_level))
        )

    async def start(self) -> None:
        """Open the audit log and begin to follow whom the cluster trusts.

        Raises:
            AuditLogUnusable: the audit log cannot be written.
            ClusterUnusable: the cluster does not say whom it trusts.
        """
        if self._audit_file is not None:
            self._audit_file.start()
        await self.trust.start()

    async def close(self) -> None:
        """Follow no more, and write the audit log to its end; after everything else, since everything else may add to it."""
        await self.trust.stop()
        if self._audit_file is not None:
            await self._audit_file.close()
