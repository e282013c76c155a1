"""Protobuf request bodies: what typed clients encode arrives as the JSON object, and hostile bytes are refused."""

import base64
import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery.protobuf import MAX_FIELDS, ProtobufRefused, UnknownKind, decode_envelope


def varint(value: int) -> bytes:
    encoded = b""
    value &= 2**64 - 1
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw) + field(3, "") + field(4, "")


def entry(key: str, value: bytes | str) -> bytes:
    return field(1, key) + field(2, value)


METADATA = (
    field(1, "a")
    + field(2, "")
    + field(3, "ns")
    + field(8, b"")
    + field(11, entry("app", "web"))
    + field(14, "x/y")
    + field(13, field(1, "K") + field(3, "o") + field(4, "u") + field(5, "v1") + field(6, 0))
)


def test_a_config_map_arrives_with_its_metadata_and_data() -> None:
    raw = field(1, METADATA) + field(2, entry("k", "v")) + field(2, entry("empty", "")) + field(3, entry("b", b"\xff"))

    assert decode_envelope(envelope("v1", "ConfigMap", raw)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "a",
            "namespace": "ns",
            "labels": {"app": "web"},
            "finalizers": ["x/y"],
            "ownerReferences": [{"kind": "K", "name": "o", "uid": "u", "apiVersion": "v1", "controller": False}],
        },
        "data": {"k": "v", "empty": ""},
        "binaryData": {"b": "/w=="},
    }


def test_secret_values_become_base64() -> None:
    decoded = decode_envelope(envelope("v1", "Secret", field(2, entry("k", b"\x00secret")) + field(3, "Opaque")))

    assert decoded["data"] == {"k": base64.b64encode(b"\x00secret").decode()}
    assert decoded["type"] == "Opaque"


def test_empty_messages_strings_and_zeros_stand_for_absent_fields() -> None:
    raw = field(1, field(1, "n") + field(5, "") + field(7, 0) + field(8, b"")) + field(2, b"") + field(3, b"")

    assert decode_envelope(envelope("v1", "Namespace", raw)) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "n"},
    }


def test_times_have_the_precision_of_their_type() -> None:
    moment = field(1, 1767323045) + field(2, 123456789)
    raw = field(6, moment) + field(10, moment)

    decoded = decode_envelope(envelope("v1", "Event", raw))

    assert decoded["firstTimestamp"] == "2026-01-02T03:04:05Z"
    assert decoded["eventTime"] == "2026-01-02T03:04:05.123456Z"


def test_years_zero_of_go_are_no_time() -> None:
    decoded = decode_envelope(envelope("v1", "Event", field(6, field(1, -62135596800))))

    assert "firstTimestamp" not in decoded


def test_delete_options_come_with_whatever_group_they_like() -> None:
    raw = field(1, 0) + field(2, field(1, "uid-1")) + field(4, "Background") + field(5, "All")

    decoded = decode_envelope(envelope("porch.kpt.dev/v1alpha1", "DeleteOptions", raw))

    assert decoded["gracePeriodSeconds"] == 0
    assert decoded["preconditions"] == {"uid": "uid-1"}
    assert decoded["dryRun"] == ["All"]


def test_an_access_review_says_who_wants_what() -> None:
    wanted = field(1, "ns") + field(2, "get") + field(5, "pods")
    extra = field(5, entry("scopes", field(1, "a") + field(1, "b")))
    spec = field(1, wanted) + field(3, "bob") + field(4, "g1") + field(4, "g2") + extra
    raw = field(1, b"") + field(2, spec) + field(3, field(1, 0))

    review = decode_envelope(envelope("authorization.k8s.io/v1", "SubjectAccessReview", raw))

    assert review["spec"] == {
        "resourceAttributes": {"namespace": "ns", "verb": "get", "resource": "pods"},
        "user": "bob",
        "groups": ["g1", "g2"],
        "extra": {"scopes": ["a", "b"]},
    }
    assert "status" not in review


@pytest.mark.parametrize(
    ("api_version", "kind", "raw", "expected"),
    [
        pytest.param(
            "authorization.k8s.io/v1",
            "SelfSubjectAccessReview",
            field(2, field(2, field(1, "/metrics") + field(2, "get"))),
            {"spec": {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}},
            id="self-access",
        ),
        pytest.param(
            "authorization.k8s.io/v1",
            "SelfSubjectAccessReview",
            field(2, field(1, b"")),
            {"spec": {"resourceAttributes": {}}},
            id="empty-attributes-are-attributes",
        ),
        pytest.param(
            "authorization.k8s.io/v1",
            "SelfSubjectRulesReview",
            field(2, field(1, "ns")),
            {"spec": {"namespace": "ns"}},
            id="rules",
        ),
        pytest.param("authentication.k8s.io/v1", "SelfSubjectReview", field(1, b""), {}, id="whoami"),
        pytest.param(
            "authentication.k8s.io/v1",
            "TokenReview",
            field(2, field(1, "secret") + field(2, "here")),
            {"spec": {"token": "secret", "audiences": ["here"]}},
            id="token-review",
        ),
        pytest.param(
            "authentication.k8s.io/v1",
            "TokenRequest",
            field(2, field(1, "a") + field(3, field(1, "Secret") + field(4, "u")) + field(4, 3600)),
            {
                "spec": {
                    "audiences": ["a"],
                    "boundObjectRef": {"kind": "Secret", "uid": "u"},
                    "expirationSeconds": 3600,
                }
            },
            id="token-request",
        ),
        pytest.param(
            "rbac.authorization.k8s.io/v1",
            "Role",
            field(1, field(1, "r")) + field(2, field(1, "get") + field(2, "") + field(3, "pods")),
            {"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
            id="role-of-the-core-group",
        ),
        pytest.param(
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            field(3, field(1, field(1, entry("aggregate", "yes")))),
            {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"aggregate": "yes"}}]}},
            id="aggregated-role",
        ),
        pytest.param(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            field(2, field(1, "User") + field(3, "bob")) + field(3, field(2, "ClusterRole") + field(3, "view")),
            {"subjects": [{"kind": "User", "name": "bob"}], "roleRef": {"kind": "ClusterRole", "name": "view"}},
            id="binding",
        ),
        pytest.param(
            "coordination.k8s.io/v1",
            "Lease",
            field(2, field(1, "") + field(2, 15) + field(4, field(1, 1767323045) + field(2, 5000)) + field(5, 0)),
            {
                "spec": {
                    "holderIdentity": "",
                    "leaseDurationSeconds": 15,
                    "renewTime": "2026-01-02T03:04:05.000005Z",
                    "leaseTransitions": 0,
                }
            },
            id="lease-given-back",
        ),
        pytest.param(
            "events.k8s.io/v1",
            "Event",
            field(4, "c") + field(8, field(1, "ConfigMap") + field(3, "x")) + field(10, "note") + field(15, 0),
            {"reportingController": "c", "regarding": {"kind": "ConfigMap", "name": "x"}, "note": "note"},
            id="event",
        ),
        pytest.param("autoscaling/v1", "Scale", field(2, field(1, 0)), {"spec": {"replicas": 0}}, id="scaled-to-none"),
    ],
)
def test_every_kind_that_typed_clients_send_has_a_table(
    api_version: str, kind: str, raw: bytes, expected: dict[str, object]
) -> None:
    decoded = decode_envelope(envelope(api_version, kind, raw))

    assert decoded == {"apiVersion": api_version, "kind": kind, **expected}


def test_unknown_fields_are_skipped() -> None:
    raw = field(1, field(1, "n")) + field(99, b"x") + varint(98 << 3 | 1) + b"12345678" + varint(97 << 3 | 5) + b"1234"

    assert decode_envelope(envelope("v1", "Namespace", raw))["metadata"] == {"name": "n"}


def test_kinds_without_a_table_are_unknown() -> None:
    with pytest.raises(UnknownKind):
        decode_envelope(envelope("v1", "Pod", b""))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"kind":"ConfigMap"}', id="no-magic"),
        pytest.param(b"k8s\0" + b"\x0a\xff\xff\xff\xff\x0f", id="length-beyond-the-end"),
        pytest.param(b"k8s\0" + b"\xff" * 11, id="endless-number"),
        pytest.param(envelope("v1", "ConfigMap", field(1, 7)), id="number-for-message"),
        pytest.param(envelope("v1", "ConfigMap", field(1, field(1, b"\xff\xfe"))), id="not-utf-8"),
        pytest.param(envelope("v1", "ConfigMap", field(4, b"x")), id="bytes-for-bool"),
        pytest.param(envelope("v1", "ConfigMap", b"\x0b"), id="group-wire-type"),
        pytest.param(envelope("v1", "ConfigMap", varint(4 << 3 | 1) + b"12345678"), id="fixed-width-for-bool"),
        pytest.param(envelope("v1", "Secret", varint(3 << 3 | 5) + b"1234"), id="fixed-width-for-text"),
        pytest.param(envelope("v1", "ConfigMap", field(2, "")[:-1] + b"\x7f"), id="truncated-map"),
        pytest.param(envelope("v1", "Event", field(6, field(1, 2**62))), id="time-out-of-range"),
        pytest.param(envelope("v1", "ConfigMap", field(99, 0) * (MAX_FIELDS + 1)), id="too-many-fields"),
    ],
)
def test_malformed_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(ProtobufRefused):
        decode_envelope(body)


@given(st.binary(max_size=200), st.sampled_from(["ConfigMap", "Secret", "Namespace", "Event", "DeleteOptions"]))
def test_random_bytes_decode_or_are_refused(raw: bytes, kind: str) -> None:
    with suppress(ProtobufRefused, UnknownKind):
        decode_envelope(envelope("v1", kind, raw))


def test_damaged_real_bodies_decode_or_are_refused() -> None:
    good = envelope("v1", "ConfigMap", field(1, METADATA) + field(2, entry("k", "v" * 50)))
    source = random.Random(7)  # noqa: S311 - repeatable damage
    for _ in range(500):
        damaged = bytearray(good)
        damaged[source.randrange(4, len(good))] ^= 1 << source.randrange(8)
        with suppress(ProtobufRefused, UnknownKind):
            decode_envelope(bytes(damaged))
