"""Tokens of service accounts from issue to end, as programs meet them: JWKS, reviews, audiences, bound objects."""

import base64
import json
import time
from typing import Any

import jwt
import pytest
from kubectl import Kubectl
from porch_client import PorchClient

ISSUER = "https://kubernetes.default.svc"


@pytest.fixture
def robot(kubectl: Kubectl) -> str:
    """A service account; its user name."""
    kubectl.ok("create", "serviceaccount", "robot")
    return f"system:serviceaccount:{kubectl.namespace}:robot"


def review(porch: PorchClient, token: str, *audiences: str) -> Any:
    question = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": list(audiences)},
    }
    return porch.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", question).object["status"]


def test_anybody_with_the_keys_can_check_a_token(kubectl: Kubectl, porch: PorchClient, robot: str) -> None:
    token = kubectl.ok("create", "token", "robot", "--duration=20m").strip()
    configuration = porch.request("GET", "/.well-known/openid-configuration").object
    published = porch.request("GET", "/openid/v1/jwks").object

    key = jwt.PyJWKSet.from_dict(published)[jwt.get_unverified_header(token)["kid"]]
    claims = jwt.decode(token, key, algorithms=["ES256"], audience=ISSUER, issuer=configuration["issuer"])

    assert claims["sub"] == robot
    assert claims["exp"] - claims["iat"] == 1200
    assert abs(claims["iat"] - time.time()) < 60
    uid = kubectl.ok("get", "serviceaccount", "robot", "-o", "jsonpath={.metadata.uid}")
    assert claims["kubernetes.io"] == {"namespace": kubectl.namespace, "serviceaccount": {"name": "robot", "uid": uid}}
    assert configuration["jwks_uri"] == f"{ISSUER}/openid/v1/jwks"


def test_a_review_knows_the_account_and_for_whom_the_token_is(kubectl: Kubectl, porch: PorchClient, robot: str) -> None:
    token = kubectl.ok("create", "token", "robot", "--audience=vault").strip()

    meant, other = review(porch, token, "vault", "x"), review(porch, token)

    assert meant["authenticated"] is True
    assert meant["user"]["username"] == robot
    assert meant["audiences"] == ["vault"]
    assert other["error"] == (
        f'[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["{ISSUER}"]]'
    )
    assert "authenticated" not in other


def test_a_token_ends_with_the_secret_it_is_bound_to(kubectl: Kubectl, porch: PorchClient, robot: str) -> None:
    kubectl.ok("create", "secret", "generic", "anchor")
    bound = ("--bound-object-kind=Secret", "--bound-object-name=anchor")
    token = kubectl.ok("create", "token", "robot", *bound).strip()
    before = review(porch, token)
    kubectl.ok("delete", "secret", "anchor")

    assert before["user"]["username"] == robot
    assert review(porch, token)["error"] == "[invalid bearer token, service account token has been invalidated]"
    assert 'secrets "anchor" not found' in kubectl("create", "token", "robot", *bound).stderr


def test_an_account_made_again_does_not_inherit_tokens(kubectl: Kubectl, porch: PorchClient, robot: str) -> None:
    token = kubectl.ok("create", "token", "robot").strip()
    kubectl.ok("delete", "serviceaccount", "robot")
    kubectl.ok("create", "serviceaccount", "robot")

    assert "authenticated" not in review(porch, token)


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        pytest.param({"expirationSeconds": 60}, 422, "may not specify a duration less than 10 minutes", id="short"),
        pytest.param({"expirationSeconds": 1 << 33}, 422, "larger than 2^32 seconds", id="long"),
        pytest.param(
            {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "n"}}, 400, "cannot bind", id="node"
        ),
    ],
)
def test_a_request_out_of_bounds_is_refused(porch: PorchClient, robot: str, spec: Any, code: int, message: str) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{porch.namespace}/serviceaccounts/robot/token"

    refused = porch.request("POST", path, body)

    assert refused.code == code
    assert message in refused.message


def test_a_token_is_for_nobody_that_is_not_there(porch: PorchClient) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}

    refused = porch.request("POST", f"/api/v1/namespaces/{porch.namespace}/serviceaccounts/none/token", body)

    assert (refused.code, refused.message) == (404, 'serviceaccounts "none" not found')


def test_a_token_with_other_claims_under_its_signature_is_refused(
    kubectl: Kubectl, porch: PorchClient, robot: str
) -> None:
    token = kubectl.ok("create", "token", "robot").strip()
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    claims["exp"] += 86_400
    longer = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()

    assert review(porch, f"{head}.{longer}.{signature}")["error"] == "invalid bearer token"
