"""Requests in somebody else's name: ``kubectl --as``, for senders who have the verb ``impersonate``.

Source: ``kube-api.md`` 3.5.
"""

from collections import defaultdict
from urllib.parse import unquote

from apiserver.auth.identity import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    service_account_groups,
    service_account_of,
    unique,
)
from apiserver.machinery.access import Authorize, HeaderList, Impersonate
from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import User
from krm.meta.errors import BadRequest

MAX_CLAIMS = 256
"""Impersonation headers in one request; each costs an authorization."""

_USER, _GROUP, _UID = b"impersonate-user", b"impersonate-group", b"impersonate-uid"
_EXTRA = b"impersonate-extra-"
_AUTHENTICATION = "authentication.k8s.io"


def impersonation(authorize: Authorize) -> Impersonate:
    """Return what turns the sender of a request into the user whom its impersonation headers name."""

    async def impersonate(sender: User, headers: HeaderList) -> User:
        wanted = _claimed(headers)
        if wanted is None:
            return sender
        for info in _rights_needed(wanted):
            await authorize(sender, info)
        return _completed(wanted)

    return impersonate


def _claimed(headers: HeaderList) -> User | None:
    """Read the headers as they stand; None when they claim nothing.

    Raises:
        BadRequest: groups, uid or extra without a user, or too many headers.
    """
    if len(headers) > MAX_CLAIMS:
        raise BadRequest(f"a request takes at most {MAX_CLAIMS} impersonation headers")
    names, uids, groups = [], [], []
    extra: dict[str, list[str]] = defaultdict(list)
    for header, value in headers:
        text = value.decode("utf-8", "replace")
        if header == _USER:
            names.append(text)
        elif header == _UID:
            uids.append(text)
        elif header == _GROUP:
            groups.append(text)
        elif header.startswith(_EXTRA):
            extra[unquote(header[len(_EXTRA) :].decode("latin-1")).lower()].append(text)
    name, uid = names[0] if names else "", uids[0] if uids else ""
    if name:
        return User(name, tuple(groups), uid, {key: tuple(values) for key, values in extra.items()})
    if groups or uid or extra:
        raise BadRequest("Impersonate-Group, Impersonate-Uid and Impersonate-Extra-… need Impersonate-User beside them")
    return None


def _rights_needed(wanted: User) -> list[RequestInfo]:
    account = service_account_of(wanted.name)
    if account:
        needed = [_target("serviceaccounts", account[1], namespace=account[0])]
    else:
        needed = [_target("users", wanted.name)]
    needed += [_target("groups", group) for group in wanted.groups]
    for key, values in wanted.extra.items():
        needed += [_target("userextras", value, group=_AUTHENTICATION, subresource=key) for value in values]
    if wanted.uid:
        needed.append(_target("uids", wanted.uid, group=_AUTHENTICATION))
    return needed


def _target(
    resource: str, name: str, *, group: str = "", subresource: str = "", namespace: str | None = None
) -> RequestInfo:
    return RequestInfo(
        "impersonate",
        "",
        group=group,
        version="v1",
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )


def _completed(wanted: User) -> User:
    """Add the groups that authentication would have added."""
    groups = wanted.groups
    account = service_account_of(wanted.name)
    if account and not groups:
        groups = service_account_groups(account[0])
    if wanted.name == ANONYMOUS:
        groups = (*groups, UNAUTHENTICATED)
    elif UNAUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return User(wanted.name, unique(groups), wanted.uid, wanted.extra)
