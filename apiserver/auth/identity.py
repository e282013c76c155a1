"""Names that mean something to the server: groups that authentication adds, users that service accounts are.

Source: ``kube-api.md`` 3.1 and 3.5; the names are Kubernetes'.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from apiserver.machinery.rest import User

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
"""Its members may do everything, whatever the roles say."""
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
"""Key of a user's extra that tells which credential was used, without being one."""
SERVICE_ACCOUNTS = "system:serviceaccounts"

_SERVICE_ACCOUNT = "system:serviceaccount:"

NOBODY = User(ANONYMOUS, (UNAUTHENTICATED,))
"""Who sends requests without credentials, where such are let in."""


def service_account_user(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"{_SERVICE_ACCOUNT}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, str]:
    """Return the groups of every service account of a namespace."""
    return SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"


def service_account_of(user: str) -> tuple[str, str] | None:
    """Return namespace and name of the service account that a user name stands for, or None."""
    namespace, separator, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
    if not user.startswith(_SERVICE_ACCOUNT) or not separator or not namespace or not name or ":" in name:
        return None
    return namespace, name


def with_group(user: User, group: str) -> User:
    """Return the user as a member of ``group`` too."""
    return user if group in user.groups else replace(user, groups=(*user.groups, group))


def unique(groups: Iterable[str]) -> tuple[str, ...]:
    """Return groups in order, each once and none empty."""
    return tuple(dict.fromkeys(group for group in groups if group))


def user_info(user: User) -> dict[str, Any]:
    """Return a user as ``authentication.k8s.io/v1`` UserInfo."""
    info: dict[str, Any] = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info
