"""The informers of the approval controller, and what is asked of them by index; nothing here makes a request.

Source: ``variants.md`` 6.3 and 6.10.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controllers.runtime.informers import Informers
from krm.client.client import KubeClient
from krm.client.resources import LEASES, PACKAGE_REVISIONS, PACKAGE_VARIANTS, REPOSITORIES
from krm.variants.approval import ApprovingVariant, Candidate
from krm.variants.revisions import Revision
from krm.variants.vocabulary import KIND, PAUSED

Json = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""

_DEFAULT_BRANCH: Final = "main"
_PACKAGE: Final = "package"
_OWNER: Final = "owner"
_UID: Final = "uid"


@dataclass(frozen=True, slots=True)
class Branch:
    """The branch that a Repository publishes to."""

    namespace: str
    name: str
    """Of the Repository."""
    resource_version: str
    branch: str

    @classmethod
    def of(cls, body: Json) -> "Branch":
        """Read a Repository as it is on the wire."""
        meta, git = body["metadata"], (body.get("spec") or {}).get("git") or {}
        return cls(
            meta.get("namespace", ""),
            meta["name"],
            meta.get("resourceVersion", ""),
            git.get("branch") or _DEFAULT_BRANCH,
        )


@dataclass(frozen=True, slots=True)
class Switch:
    """The Lease of the controller, as far as people use it to stop all approvals."""

    namespace: str
    name: str
    resource_version: str
    off: bool
    """Whether its annotation ``config.porch.kpt.dev/paused`` is "true"."""

    @classmethod
    def of(cls, body: Json) -> "Switch":
        """Read a Lease as it is on the wire."""
        meta = body["metadata"]
        off = (meta.get("annotations") or {}).get(PAUSED) == "true"
        return cls(meta.get("namespace", ""), meta["name"], meta.get("resourceVersion", ""), off)


class Caches(Informers):
    """PackageRevisions, PackageVariants and Repositories of one namespace or (None) of all, and the Lease ``lease``."""

    def __init__(self, client: KubeClient, namespace: str | None, lease: Key) -> None:
        super().__init__(client)
        self._lease = lease
        self.revisions = self.informer(
            PACKAGE_REVISIONS,
            namespace,
            Candidate.of,
            indexes={
                _PACKAGE: lambda one: (package_of(one.revision),),
                _OWNER: lambda one: {(one.namespace, owner.uid) for owner in one.revision.owners if owner.kind == KIND},
            },
        )
        self.variants = self.informer(
            PACKAGE_VARIANTS,
            namespace,
            ApprovingVariant.of,
            indexes={_UID: lambda one: ((one.namespace, one.uid),)},
        )
        self.branches = self.informer(REPOSITORIES, namespace, Branch.of)
        self.switch = self.informer(LEASES, lease[0], Switch.of, field_selector=f"metadata.name={lease[1]}")

    @property
    def switched_off(self) -> bool:
        """Whether somebody has stopped all approvals; so it counts also while that is not known."""
        switch = self.switch.get(*self._lease)
        return not self.switch.synced or (switch is not None and switch.off)

    # --- what is asked ------------------------------------------------------------------------------

    def candidate(self, key: Key) -> Candidate | None:
        """Return a package revision."""
        return self.revisions.get(*key)

    def of_package(self, namespace: str, repository: str, package: str) -> Sequence[Revision]:
        """Return the revisions of a package."""
        return [one.revision for one in self.revisions.by_index(_PACKAGE, (namespace, repository, package))]

    def owned(self, namespace: str, uid: str) -> Iterable[Candidate]:
        """Return the package revisions that a variant owns."""
        return self.revisions.by_index(_OWNER, (namespace, uid))

    def variant(self, namespace: str, uid: str) -> ApprovingVariant | None:
        """Return the variant with this UID."""
        return next(iter(self.variants.by_index(_UID, (namespace, uid))), None)

    def branch(self, namespace: str, repository: str) -> str:
        """Return the branch that a repository publishes to."""
        known = self.branches.get(namespace, repository)
        return known.branch if known else _DEFAULT_BRANCH


def package_of(revision: Revision) -> tuple[str, str, str]:
    """Return namespace, repository and package."""
    return revision.namespace, revision.repository, revision.package
