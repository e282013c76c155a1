"""From impersonation headers to the rights they need and the user they make."""

import pytest

from apiserver.auth.impersonation import MAX_CLAIMS, impersonation
from apiserver.machinery.access import AccessDenied, take_credentials
from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import User
from krm.meta.errors import BadRequest

SENDER = User("admin", ("system:masters",))
Headers = list[tuple[bytes, bytes]]


async def impersonated(headers: Headers) -> tuple[User, list[str]]:
    """Return the user, and the rights that were asked for."""
    asked: list[str] = []

    async def authorize(user: User, info: RequestInfo) -> None:
        assert user is SENDER
        resource = "/".join(part for part in (info.resource, info.subresource) if part)
        asked.append(f"{info.verb} {info.group}:{resource} {info.namespace or ''}:{info.name}")

    return await impersonation(authorize)(SENDER, headers), asked


async def test_every_claim_is_a_right() -> None:
    user, asked = await impersonated(
        [
            (b"impersonate-user", b"bob"),
            (b"impersonate-group", b"a"),
            (b"impersonate-group", b"b"),
            (b"impersonate-uid", b"7"),
            (b"impersonate-extra-Acme.com%2FProject", b"x"),
            (b"impersonate-extra-scopes", b"one"),
            (b"impersonate-extra-scopes", b"two"),
        ]
    )

    assert user.name == "bob"
    assert user.uid == "7"
    assert user.groups == ("a", "b", "system:authenticated")
    assert user.extra == {"acme.com/project": ("x",), "scopes": ("one", "two")}
    assert asked == [
        "impersonate :users :bob",
        "impersonate :groups :a",
        "impersonate :groups :b",
        "impersonate authentication.k8s.io:userextras/acme.com/project :x",
        "impersonate authentication.k8s.io:userextras/scopes :one",
        "impersonate authentication.k8s.io:userextras/scopes :two",
        "impersonate authentication.k8s.io:uids :7",
    ]


async def test_a_service_account_gets_its_groups_unless_others_are_given() -> None:
    name = b"system:serviceaccount:tools:robot"

    plain, asked = await impersonated([(b"impersonate-user", name)])
    given, _ = await impersonated([(b"impersonate-user", name), (b"impersonate-group", b"g")])

    assert plain.groups == ("system:serviceaccounts", "system:serviceaccounts:tools", "system:authenticated")
    assert given.groups == ("g", "system:authenticated")
    assert asked == ["impersonate :serviceaccounts tools:robot"]


@pytest.mark.parametrize(
    ("name", "groups", "wanted"),
    [
        pytest.param(b"system:anonymous", [], ("system:unauthenticated",), id="anonymous"),
        pytest.param(b"bob", [b"system:unauthenticated"], ("system:unauthenticated",), id="said-to-be-nobody"),
        pytest.param(b"bob", [b"system:authenticated"], ("system:authenticated",), id="once"),
    ],
)
async def test_the_groups_of_authentication_are_added(
    name: bytes, groups: list[bytes], wanted: tuple[str, ...]
) -> None:
    user, _ = await impersonated([(b"impersonate-user", name), *((b"impersonate-group", group) for group in groups)])

    assert user.groups == wanted


@pytest.mark.parametrize("header", [b"impersonate-group", b"impersonate-uid", b"impersonate-extra-scopes"])
async def test_claims_without_a_user_are_refused(header: bytes) -> None:
    with pytest.raises(BadRequest):
        await impersonated([(header, b"x")])


async def test_empty_claims_are_none() -> None:
    user, asked = await impersonated([(b"impersonate-user", b""), (b"impersonate-nonsense", b"x")])

    assert user is SENDER
    assert asked == []


async def test_a_flood_of_claims_is_refused_before_any_is_checked() -> None:
    with pytest.raises(BadRequest):
        await impersonated([(b"impersonate-user", b"bob"), *[(b"impersonate-group", b"g")] * MAX_CLAIMS])


async def test_one_right_that_is_missing_refuses_all() -> None:
    async def deny(_user: User, info: RequestInfo) -> None:
        if info.resource == "groups":
            raise AccessDenied("no", info=info, reason="")

    with pytest.raises(AccessDenied):
        await impersonation(deny)(SENDER, [(b"impersonate-user", b"bob"), (b"impersonate-group", b"system:masters")])


def test_what_claims_an_identity_is_taken_out_of_the_request() -> None:
    plain = [(b"host", b"x"), (b"accept", b"*/*")]
    claims = [(b"authorization", b"Bearer x"), (b"x-remote-user", b"admin"), (b"x-remote-extra-a", b"b")]
    scope = {"headers": [*plain, *claims, (b"impersonate-user", b"bob")]}

    taken = take_credentials(scope)

    assert scope["headers"] == plain
    assert taken == [(b"impersonate-user", b"bob")]
