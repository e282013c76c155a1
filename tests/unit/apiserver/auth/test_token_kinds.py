"""Tokens of every kind: whom they stand for, when they stop, and what is told of those that do not count."""

import base64
import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from apiserver.auth.bearer import MAX_TOKEN, BearerTokens, InvalidToken, TokenIdentity
from apiserver.auth.bootstrap_token import LIFE, RENEW_BEFORE, BootstrapToken, TokenRecord, is_still_good, new_token
from apiserver.auth.chain import AuthenticatorChain
from apiserver.auth.service_account_tokens import Account, BoundObject, ServiceAccountTokens
from apiserver.auth.signing_keys import SigningKeys, UnusableKey, load_or_create_signing_keys
from apiserver.auth.token_file import TokenFile, parse_tokens
from apiserver.auth.watched_file import LOOK_SECONDS, UnusableFile, WatchedFile
from apiserver.machinery.rest import User
from krm.meta.errors import Unauthorized

ISSUER = "https://issuer.example"
ROBOT = Account("tools", "robot", "uid-1")


def scope(*headers: tuple[str, str]) -> dict[str, Any]:
    return {"type": "http", "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]}


def bearer(token: str) -> dict[str, Any]:
    return scope(("Authorization", f"Bearer {token}"))


class Known:
    """Knows the tokens of a dictionary; a user None is a token that it refuses."""

    def __init__(self, **tokens: User | None) -> None:
        self.tokens = tokens

    async def identify(self, token: str) -> TokenIdentity | None:
        if token not in self.tokens:
            return None
        user = self.tokens[token]
        if user is None:
            raise InvalidToken("it is over")
        return TokenIdentity(user, ("elsewhere",) if token == "foreign" else ())


class TestBearerTokens:
    tokens = BearerTokens([Known(first=User("a"), over=None), Known(second=User("b"), foreign=User("c"))], ["here"])

    @pytest.mark.parametrize(
        ("value", "name"),
        [
            pytest.param("Bearer first", "a", id="first-kind"),
            pytest.param("bearer second", "b", id="second-kind-and-odd-case"),
            pytest.param("  Bearer first", "a", id="leading-space"),
            pytest.param("Bearer first more", "a", id="what-follows-is-ignored"),
        ],
    )
    async def test_the_kind_that_knows_a_token_names_the_user(self, value: str, name: str) -> None:
        user = await self.tokens.authenticate(scope(("authorization", value)))

        assert user is not None
        assert user.name == name

    @pytest.mark.parametrize("value", ["", "Bearer", "Bearer ", "Bearer  first", "Basic Zmlyc3Q=", "first"])
    async def test_what_is_no_bearer_token_is_no_credential(self, value: str) -> None:
        assert await self.tokens.authenticate(scope(("authorization", value))) is None

    @pytest.mark.parametrize("token", ["unknown", "over", "foreign", "x" * (MAX_TOKEN + 1)])
    async def test_a_token_that_does_not_count_is_refused(self, token: str) -> None:
        with pytest.raises(Unauthorized) as refused:
            await self.tokens.authenticate(bearer(token))

        assert refused.value.message == "Unauthorized"

    async def test_a_review_tells_for_whom_a_token_is_meant(self) -> None:
        assert (await self.tokens.review("first", ["other", "here"])).audiences == ("here",)
        assert (await self.tokens.review("foreign", ["elsewhere"])).audiences == ("elsewhere",)
        with pytest.raises(InvalidToken) as refused:
            await self.tokens.review("foreign", ["here"])

        assert str(refused.value) == (
            '[invalid bearer token, token audiences ["elsewhere"] is invalid for the target audiences ["here"]]'
        )


class Answering:
    """An authenticator that always gives the same answer."""

    def __init__(self, answer: User | Unauthorized | None) -> None:
        self.answer = answer

    async def authenticate(self, _scope: Any) -> User | None:
        if isinstance(self.answer, Unauthorized):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answers", "anonymous", "name"),
    [
        pytest.param([None, User("a")], False, "a", id="second"),
        pytest.param([User("a"), User("b")], False, "a", id="first-wins"),
        pytest.param([Unauthorized(), User("a")], False, "a", id="a-refusal-does-not-stop-the-next"),
        pytest.param([None, None], False, None, id="nobody"),
        pytest.param([None], True, "system:anonymous", id="anonymous"),
        pytest.param([Unauthorized(), None], True, Unauthorized, id="wrong-is-not-anonymous"),
    ],
)
async def test_the_first_authenticator_that_knows_somebody_wins(
    answers: Sequence[Any], anonymous: bool, name: Any
) -> None:
    chain = AuthenticatorChain([Answering(a) for a in answers], anonymous=anonymous)
    if name is Unauthorized:
        with pytest.raises(Unauthorized):
            await chain.authenticate({})
    else:
        user = await chain.authenticate({})
        assert (user and user.name) == name
        if user is not None:
            assert user.groups == (("system:unauthenticated",) if anonymous else ("system:authenticated",))


class TestTokenFile:
    async def test_each_line_is_a_user(self, tmp_path: Path) -> None:
        path = tmp_path / "tokens"
        path.write_text('t1,alice,1,"a,b"\n\nt2, bob ,2\n')
        tokens = TokenFile(path)

        alice, bob = await tokens.identify("t1"), await tokens.identify("t2")

        assert alice is not None
        assert alice.user == User("alice", ("a", "b", "system:authenticated"), "1")
        assert bob is not None
        assert bob.user == User("bob", ("system:authenticated",), "2")
        assert await tokens.identify("t3") is None

    @pytest.mark.parametrize(
        "text",
        ["secret-token,alice", ",alice,1", "secret-token,,1", 'secret-token,"alice,1'],
        ids=["short", "no-token", "no-user", "open-quote"],
    )
    def test_a_broken_line_is_named_without_its_content(self, text: str) -> None:
        with pytest.raises(ValueError, match="line 1") as refused:
            parse_tokens(text)

        assert "secret-token" not in str(refused.value)

    def test_a_missing_file_is_told_at_the_start(self, tmp_path: Path) -> None:
        with pytest.raises(UnusableFile, match="cannot be read"):
            TokenFile(tmp_path / "none")


class TestWatchedFile:
    def test_a_change_counts_after_a_second_and_a_broken_one_never(self, tmp_path: Path) -> None:
        path, clock = tmp_path / "number", [0.0]
        path.write_text("1")
        file = WatchedFile(path, int, clock=lambda: clock[0])
        first = file.current()

        path.write_text("22")
        too_early = file.current()
        clock[0] += LOOK_SECONDS
        changed = file.current()
        path.write_text("nonsense")
        clock[0] += LOOK_SECONDS
        broken = file.current()
        path.unlink()
        clock[0] += LOOK_SECONDS

        assert [first, too_early, changed, broken, file.current()] == [1, 1, 22, 22, 22]

    def test_what_is_not_there_yet_may_come_later(self, tmp_path: Path) -> None:
        clock = [0.0]
        file = WatchedFile(tmp_path / "number", int, clock=lambda: clock[0])
        nothing = file.current()
        (tmp_path / "number").write_text("1")
        clock[0] += LOOK_SECONDS

        assert (nothing, file.current()) == (None, 1)


class TestBootstrapToken:
    def written(self, folder: Path) -> tuple[str, Path]:
        token, record = new_token("admin", ["system:masters"])
        path = folder / "record.json"
        path.write_bytes(record.encode())
        return token, path

    async def test_it_is_the_administrators_until_its_end(self, tmp_path: Path) -> None:
        token, path = self.written(tmp_path)
        moment = dt.datetime.now(dt.UTC)
        kind = BootstrapToken(path, now=lambda: moment)

        known = await kind.identify(token)
        moment += LIFE

        assert known is not None
        assert known.user.name == "admin"
        assert known.user.groups == ("system:masters", "system:authenticated")
        assert known.user.extra == {"authentication.kubernetes.io/credential-id": (f"BOOTSTRAP={token.split('.')[0]}",)}
        with pytest.raises(InvalidToken, match="expired"):
            await kind.identify(token)

    async def test_only_its_digest_is_kept(self, tmp_path: Path) -> None:
        token, path = self.written(tmp_path)

        assert token.split(".")[1] not in path.read_text()

    async def test_a_wrong_secret_or_a_revoked_record_is_refused(self, tmp_path: Path) -> None:
        token, path = self.written(tmp_path)
        kind = BootstrapToken(path)
        assert await kind.identify(token)

        with pytest.raises(InvalidToken):
            await kind.identify(token[:-1] + ("a" if token[-1] != "a" else "b"))
        path.unlink()
        with pytest.raises(InvalidToken):
            await kind.identify(token)

    @pytest.mark.parametrize("token", ["", "abc", "ABCDEF.0123456789abcdef0123456789abcdef", "a.b.c"])
    async def test_what_looks_otherwise_is_not_its_business(self, tmp_path: Path, token: str) -> None:
        assert await BootstrapToken(tmp_path / "none").identify(token) is None

    def test_it_is_renewed_before_its_end(self, tmp_path: Path) -> None:
        token, path = self.written(tmp_path)
        record = TokenRecord.parse(path.read_text())
        soon = TokenRecord(record.id, record.digest, dt.datetime.now(dt.UTC) + RENEW_BEFORE / 2, "admin", ())

        assert is_still_good(path, token)
        assert not is_still_good(path, "other")
        assert not is_still_good(tmp_path / "none", token)
        path.write_bytes(soon.encode())
        assert not is_still_good(path, token)

    @pytest.mark.parametrize("text", ["", "{}", "[]", '{"id":1,"sha256":"","expires":"x","user":"","groups":[]}'])
    def test_a_damaged_record_is_told(self, text: str) -> None:
        with pytest.raises(ValueError, match="delete it"):
            TokenRecord.parse(text)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> SigningKeys:
    return load_or_create_signing_keys(tmp_path_factory.mktemp("keys") / "key.pem")


class Accounts:
    """Tokens of an issuer whose accounts and clock a test changes."""

    def __init__(self, keys: SigningKeys, issuer: str = ISSUER) -> None:
        self.live: dict[tuple[str, str, str], str] = {("serviceaccounts", "tools", "robot"): "uid-1"}
        self.now = 1_000_000.0
        self.tokens = ServiceAccountTokens(keys, issuer, lambda *where: self.live.get(where), clock=lambda: self.now)

    def issue(self, bound: BoundObject | None = None) -> str:
        return self.tokens.issue(ROBOT, [ISSUER, "other"], 600, bound)[0]


@pytest.fixture
def accounts(keys: SigningKeys) -> Accounts:
    return Accounts(keys)


class TestServiceAccountTokens:
    async def test_a_token_is_its_account(self, accounts: Accounts) -> None:
        identity = await accounts.tokens.identify(accounts.issue())

        assert identity is not None
        assert identity.user.name == "system:serviceaccount:tools:robot"
        assert identity.user.uid == "uid-1"
        assert identity.user.groups == (
            "system:serviceaccounts",
            "system:serviceaccounts:tools",
            "system:authenticated",
        )
        assert identity.user.extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")
        assert identity.audiences == (ISSUER, "other")

    async def test_it_ends(self, accounts: Accounts) -> None:
        token = accounts.issue()
        assert await accounts.tokens.identify(token)
        accounts.now += 611

        with pytest.raises(InvalidToken, match="expired"):
            await accounts.tokens.identify(token)

    async def test_it_does_not_begin_before_it_was_issued(self, accounts: Accounts) -> None:
        token = accounts.issue()
        accounts.now -= 60

        with pytest.raises(InvalidToken, match="not valid yet"):
            await accounts.tokens.identify(token)

    async def test_it_ends_with_its_account(self, accounts: Accounts) -> None:
        token = accounts.issue()
        assert await accounts.tokens.identify(token)
        accounts.live["serviceaccounts", "tools", "robot"] = "uid-2"

        with pytest.raises(InvalidToken, match="invalidated"):
            await accounts.tokens.identify(token)

    async def test_it_ends_with_the_object_that_it_is_bound_to(self, accounts: Accounts) -> None:
        accounts.live["secrets", "tools", "s"] = "uid-s"
        token = accounts.issue(BoundObject("Secret", "s", "uid-s"))
        assert await accounts.tokens.identify(token)
        del accounts.live["secrets", "tools", "s"]

        with pytest.raises(InvalidToken, match="invalidated"):
            await accounts.tokens.identify(token)

    async def test_tokens_of_others_are_not_its_business(self, accounts: Accounts, keys: SigningKeys) -> None:
        foreign = Accounts(keys, "https://other.example").issue()

        for token in (foreign, "abc", "a.b.c", "", "[" * 5000 + ".x.y"):
            assert await accounts.tokens.identify(token) is None

    async def test_forgeries_are_refused(self, accounts: Accounts, keys: SigningKeys) -> None:
        """Another key, no signature, the public key as a password, somebody else's name."""
        good = accounts.issue()
        claims = jwt.decode(good, options={"verify_signature": False})
        key_id, key = keys.signing
        stranger = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        head, body, signature = good.split(".")
        admin = {**claims, "sub": "system:serviceaccount:kube-system:admin"}
        forged = [
            jwt.encode(claims, stranger, algorithm="ES256", headers={"kid": key_id}),
            jwt.encode(claims, stranger, algorithm="ES256", headers={"kid": "unknown"}),
            jwt.encode(claims, "", algorithm="none", headers={"kid": key_id}),
            jwt.encode(claims, base64.b64encode(public), algorithm="HS256", headers={"kid": key_id}),
            jwt.encode(admin, key, algorithm="ES256", headers={"kid": key_id}),
            f"{head}.{_encoded(admin)}.{signature}",
            f"{head}.{body}.",
        ]

        for token in forged:
            with pytest.raises(InvalidToken):
                await accounts.tokens.identify(token)

    @pytest.mark.parametrize("missing", ["exp", "nbf", "iat", "sub", "aud", "kubernetes.io"])
    async def test_a_claim_may_not_be_missing(self, accounts: Accounts, keys: SigningKeys, missing: str) -> None:
        claims = jwt.decode(accounts.issue(), options={"verify_signature": False})
        key_id, key = keys.signing
        del claims[missing]

        with pytest.raises(InvalidToken):
            await accounts.tokens.identify(jwt.encode(claims, key, algorithm="ES256", headers={"kid": key_id}))


def _encoded(claims: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()


class TestSigningKeys:
    def test_the_key_is_made_once_and_for_its_owner_only(self, tmp_path: Path) -> None:
        path = tmp_path / "sub" / "key.pem"
        first, again = load_or_create_signing_keys(path), load_or_create_signing_keys(path)

        assert first.keys.keys() == again.keys.keys()
        assert path.stat().st_mode & 0o777 == 0o600
        assert [one.name for one in path.parent.iterdir()] == ["key.pem"]

    async def test_a_second_key_verifies_what_it_signed(self, tmp_path: Path) -> None:
        path = tmp_path / "key.pem"
        old = Accounts(load_or_create_signing_keys(path))
        token, previous = old.issue(), path.read_bytes()
        path.unlink()
        load_or_create_signing_keys(path)
        path.write_bytes(path.read_bytes() + previous)
        both = load_or_create_signing_keys(path)

        assert len(both.keys) == 2
        assert await Accounts(both).tokens.identify(token)
        assert {key["kid"] for key in both.key_set()["keys"]} == set(both.keys)
        assert all(key["crv"] == "P-256" and "d" not in key for key in both.key_set()["keys"])

    @pytest.mark.parametrize(
        "content",
        [
            pytest.param(b"", id="empty"),
            pytest.param(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", id="damaged"),
            pytest.param(
                ec.generate_private_key(ec.SECP384R1()).private_bytes(
                    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
                ),
                id="other-curve",
            ),
        ],
    )
    def test_a_file_that_is_no_key_is_not_replaced(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "key.pem"
        path.write_bytes(content)

        with pytest.raises(UnusableKey):
            load_or_create_signing_keys(path)
        assert path.read_bytes() == content
