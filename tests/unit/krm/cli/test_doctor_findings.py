"""What the doctor finds in objects and answers, as a table: the severity, and words of what is wrong and what would fix it."""

import base64
import datetime as dt
import json
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from krm.cli.doctor import objects, registration, server
from krm.cli.doctor.finding import MOST, Diagnosis, Finding, Severity, span
from krm.cli.doctor.printing import EXIT_FINDINGS, EXIT_HEALTHY, EXIT_NOT_LOOKED, document, exit_code, lines
from krm.client.connection import Answer
from krm.version import porch_version

Json = dict[str, Any]
NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
LONG_AGO, JUST_NOW = "2026-11-20T12:00:00Z", "2026-11-22T11:59:30Z"
HOUR = dt.timedelta(hours=1)


def body(kind: str, *conditions: Json, spec: Json | None = None, created: str = LONG_AGO, **meta: Any) -> Json:
    told = {"metadata": {"namespace": "edge", "name": "one", "creationTimestamp": created, **meta}, "spec": spec or {}}
    return {"kind": kind, **told, "status": {"conditions": list(conditions), "observedGeneration": meta.get("seen", 0)}}


def condition(type_: str, status: str, reason: str = "Why", since: str = LONG_AGO, message: str = "told") -> Json:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


def found(one: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.severity.value, finding.problem) for finding in one]


REPOSITORIES: dict[str, tuple[Json, list[tuple[str, str]]]] = {
    "all is well": (body("Repository", condition("Ready", "True")), []),
    "not read": (
        body("Repository", condition("Ready", "False", "Error")),
        [("error", "not Ready for 2d: Error: told")],
    ),
    "just begun": (body("Repository", condition("Ready", "False", "Reconciling", JUST_NOW)), []),
    "hangs": (
        body("Repository", condition("Ready", "False", "Reconciling")),
        [("error", "not Ready for 2d: Reconciling: told")],
    ),
    "new": (body("Repository", created=JUST_NOW), []),
    "nobody watches": (body("Repository"), [("error", "no server has looked at it yet")]),
    "takes nothing": (
        body("Repository", condition("Ready", "True"), condition("Writable", "False", "PushRefused")),
        [("error", "takes no pushes for 2d: PushRefused: told")],
    ),
    "held": (
        body("Repository", condition("Ready", "True"), deletionTimestamp=LONG_AGO, finalizers=["a/b"]),
        [("warning", "is to be deleted, and held by a/b for 2d")],
    ),
    "going": (body("Repository", condition("Ready", "True"), deletionTimestamp=JUST_NOW, finalizers=["a/b"]), []),
}


@pytest.mark.parametrize(("one", "told"), REPOSITORIES.values(), ids=REPOSITORIES)
def test_repositories(one: Json, told: list[tuple[str, str]]) -> None:
    assert found([*objects.of_repository(one, NOW)]) == told


def draft(gate: str, *conditions: Json, lifecycle: str = "Draft", **meta: Any) -> Json:
    return body(
        "PackageRevision",
        *conditions,
        spec={"lifecycle": lifecycle, "readinessGates": [{"conditionType": gate}]},
        **meta,
    )


REVISIONS: dict[str, tuple[Json, list[tuple[str, str]]]] = {
    "ready": (draft("tested", condition("tested", "True")), []),
    "waits": (
        draft("tested", condition("tested", "False")),
        [("warning", "waits for its readiness gate tested for 2d: Why: told")],
    ),
    "has no condition": (draft("tested"), [("warning", "waits for its readiness gate tested for 2d")]),
    "begins to wait": (draft("tested", condition("tested", "False", since=JUST_NOW)), []),
    "published": (draft("tested", lifecycle="Published"), []),
    "does not render": (
        draft("PackagePipelinePassed", condition("PackagePipelinePassed", "False", since=JUST_NOW)),
        [("warning", "its pipeline fails for 30s: Why: told")],
    ),
    "its variant is not done": (
        draft("PVOperationsComplete", condition("PVOperationsComplete", "False"), ownerReferences=[
            {"kind": "PackageVariant", "name": "mine"}
        ]),
        [("warning", "waits for its readiness gate PVOperationsComplete for 2d: Why: told")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("one", "told"), REVISIONS.values(), ids=REVISIONS)
def test_package_revisions(one: Json, told: list[tuple[str, str]]) -> None:
    assert found([*objects.of_revision(one, NOW, HOUR)]) == told


def test_a_gate_of_a_variant_names_the_variant() -> None:
    one = REVISIONS["its variant is not done"][0]
    assert "packagevariant mine" in next(objects.of_revision(one, NOW, HOUR)).fix


READY, STALLED = condition("Ready", "True"), condition("Stalled", "True", "DeletionGuard")
VARIANTS: dict[str, tuple[Json, list[tuple[str, str]]]] = {
    "all is well": (body("PackageVariant", READY, generation=1, seen=1), []),
    "stalled": (body("PackageVariant", STALLED, generation=1), [("error", "Stalled for 2d: DeletionGuard: told")]),
    "paused": (
        body("PackageVariant", STALLED, spec={"suspend": True}),
        [("note", "paused by a user: nothing is written")],
    ),
    "paused by an annotation": (
        body("PackageVariantSet", annotations={"config.porch.kpt.dev/paused": "true"}),
        [("note", "paused by a user: nothing is written")],
    ),
    "fails": (
        body("PackageVariant", condition("Ready", "False", "Error")),
        [("error", "not Ready for 2d: Error: told")],
    ),
    "rolls out": (
        body("PackageVariantSet", condition("Ready", "False", "RolloutInProgress"), generation=1, seen=1),
        [],
    ),
    "its rollout stands": (
        body("PackageVariantSet", condition("Ready", "False", "RolloutPaused")),
        [("warning", "not Ready for 2d: RolloutPaused: told")],
    ),
    "nobody works on it": (
        body("PackageVariant", READY, generation=2, seen=1),
        [("error", "no controller has looked at its newest version")],
    ),
    "was just changed": (
        body("PackageVariant", READY, generation=2, seen=1, managedFields=[{"time": JUST_NOW}]),
        [],
    ),
    "drifted": (
        body("PackageVariant", READY, condition("Drifted", "True"), generation=1, seen=1),
        [("note", "its package has drifted for 2d: Why: told")],
    ),
}


@pytest.mark.parametrize(("one", "told"), VARIANTS.values(), ids=VARIANTS)
def test_variants_and_sets(one: Json, told: list[tuple[str, str]]) -> None:
    assert found([*objects.of_variant(one, NOW)]) == told


@pytest.mark.parametrize(
    ("spec", "annotations", "severities"),
    [
        ({"holderIdentity": "me", "renewTime": JUST_NOW, "leaseDurationSeconds": 60}, {}, []),
        ({"holderIdentity": "me", "renewTime": LONG_AGO, "leaseDurationSeconds": 60}, {}, ["error"]),
        ({"holderIdentity": "", "renewTime": LONG_AGO, "leaseDurationSeconds": 60}, {}, ["note"]),
        (
            {"holderIdentity": "me", "renewTime": JUST_NOW, "leaseDurationSeconds": 60},
            {"config.porch.kpt.dev/paused": "true"},
            ["warning"],
        ),
    ],
    ids=["held", "left behind", "free", "stopped"],
)
def test_leases(spec: Json, annotations: Json, severities: list[str]) -> None:
    one = body("Lease", spec=spec, annotations=annotations)
    assert [finding.severity.value for finding in objects.of_lease(one, NOW)] == severities


def test_where_a_lease_is_held_others_of_its_name_are_left_over() -> None:
    """Of an installation that was moved to another namespace, say: nobody deletes its Lease."""
    held = body("Lease", spec={"holderIdentity": "me", "renewTime": JUST_NOW, "leaseDurationSeconds": 60})
    free = body("Lease", spec={"holderIdentity": "", "renewTime": LONG_AGO})
    left = body("Lease", spec={"holderIdentity": "it", "renewTime": LONG_AGO, "leaseDurationSeconds": 60})

    def severities(*leases: Json) -> list[str]:
        return [one.severity.value for one in objects.of_leases(leases, NOW, is_wanted=True)]

    assert severities(held) == []
    assert severities(free, held, left) == ["note", "note"]
    assert severities(free, left) == ["error", "error"]


@pytest.mark.parametrize("rubbish", [{}, {"metadata": None, "spec": None, "status": None}])
def test_objects_of_no_sense_do_not_stop_the_doctor(rubbish: Json) -> None:
    for check in (objects.of_repository, objects.of_variant, objects.of_lease):
        assert isinstance([*check(rubbish, NOW)], list)
    assert [*objects.of_revision(rubbish, NOW, HOUR)] == []


# --- the server -------------------------------------------------------------------------------------


def certificate(begins: dt.datetime, ends: dt.datetime) -> bytes:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, begins, ends)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize(
    ("begins", "ends", "told"),
    [
        (-9, 90, []),
        (-90, 9, [("warning", "expires in 9d")]),
        (-2, 9, []),
        (-9, 3, [("warning", "expires in 3d")]),
        (-9, -3, [("error", "expired 3d ago")]),
        (3, 90, [("error", "is valid only in 3d")]),
    ],
)
def test_certificates(begins: int, ends: int, told: list[tuple[str, str]]) -> None:
    made = certificate(NOW + dt.timedelta(days=begins), NOW + dt.timedelta(days=ends))
    assert found([*server.of_certificate("It", made, NOW, "renew it")]) == told


def answer(code: int = 200, text: str = "", **headers: str) -> Answer:
    return Answer(code, headers, text.encode(), None)


def test_a_clock_that_is_wrong() -> None:
    theirs = server.time_of(answer(Date="Sun, 22 Nov 2026 12:05:00 GMT"))

    assert found([*server.of_clock("It", theirs, NOW)]) == [("warning", "its clock is 5m ahead of this machine's")]
    assert found([*server.of_clock("It", theirs, NOW + 2 * HOUR)])[0][1].endswith("behind this machine's")
    assert [*server.of_clock("It", theirs, NOW + dt.timedelta(minutes=5))] == []
    assert server.time_of(answer(Date="yesterday")) is None


def test_readiness_names_the_checks() -> None:
    told = answer(500, "[+]ping ok\n[-]database failed: reason withheld\nreadyz check failed\n")

    assert found([*server.of_readiness("It", told)]) == [("error", "not ready: checks that fail: database")]
    assert [*server.of_readiness("It", answer(200, "ok"))] == []


@pytest.mark.parametrize(
    ("kubectl", "number"), [("v1.33.1", 0), ("v1.35.0", 0), ("v1.32.9", 1), ("v1.36.0", 1), ("", 0), ("vx", 0)]
)
def test_versions(kubectl: str, number: int) -> None:
    assert len([*server.of_versions("It", "v1.34.0+porch", kubectl)]) == number


def test_drafts_that_wait_to_be_pushed() -> None:
    text = "# HELP porch_outbox_drafts x\nporch_outbox_drafts 3.0\nporch_outbox_oldest_seconds {}\n"

    assert [*server.of_figures("It", text.format("2.5"))] == []
    told = "3 saved drafts are not in Git yet, the first for 2h"
    assert found([*server.of_figures("It", text.format("7300.0"))]) == [("warning", told)]


def test_another_version_of_porch() -> None:
    assert [*server.of_figures("It", f'porch_build_info{{version="{porch_version()}"}} 1.0\n')] == []
    assert found([*server.of_figures("It", 'porch_build_info{version="99.0.0"} 1.0\n')])[0][1].startswith(
        "is Porch 99.0.0"
    )


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        ([condition("Available", "True")], []),
        (
            [condition("Available", "False", "MissingEndpoints")],
            [("error", "not Available for 2d: MissingEndpoints: told")],
        ),
        ([], [("error", "not Available for 0s: Unknown: nobody has looked at it")]),
    ],
    ids=["available", "no endpoints", "new"],
)
def test_api_services(conditions: list[Json], told: list[tuple[str, str]]) -> None:
    assert found([*registration.of_api_service(body("APIService", *conditions), NOW)]) == told


def api_service(**spec: Any) -> Json:
    return body("APIService", condition("Available", "True"), spec=spec)


def authorities(*ends: int) -> str:
    made = (certificate(NOW - dt.timedelta(days=9), NOW + dt.timedelta(days=days)) for days in ends)
    bundle = b"".join(x509.load_der_x509_certificate(one).public_bytes(serialization.Encoding.PEM) for one in made)
    return base64.b64encode(bundle).decode()


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({}, []),
        ({"caBundle": "####"}, [("error", "its caBundle holds no certificates")]),
        ({"caBundle": base64.b64encode(b"nonsense").decode()}, [("error", "its caBundle holds no certificates")]),
        ({"caBundle": authorities(-3, 90)}, []),
        ({"caBundle": authorities(-3)}, [("error", "expired 3d ago")]),
        ({"insecureSkipTLSVerify": True}, [("warning", "kube-apiserver takes anybody for the server")]),
    ],
)
def test_what_kube_apiserver_is_to_trust(spec: Json, told: list[tuple[str, str]]) -> None:
    assert found([*registration.of_api_service(api_service(**spec), NOW)]) == told


def test_refusals_count_only_where_the_service_is_available() -> None:
    refused = "requests are not handed on: x509"
    (told,) = registration.of_refusal(api_service(), "x509")
    assert refused in told.problem
    away = body("APIService", condition("Available", "False"))
    assert [*registration.of_refusal(away, "x509")] == [], "that is told already"


def definition(*versions: Json, established: str = "True") -> Json:
    return body(
        "CustomResourceDefinition",
        condition("Established", established, message="no names"),
        spec={"versions": list(versions)},
    )


def version(name: str, schema: Json, *, served: bool = True) -> Json:
    return {"name": name, "served": served, "schema": {"openAPIV3Schema": schema}}


def fields(**properties: Json) -> Json:
    return {"properties": properties}


ITEMS = fields(spec=fields(a={}, b={"items": fields(c={}, d={})}))


@pytest.mark.parametrize(
    ("installed", "told"),
    [
        (None, ["is missing"]),
        (definition(version("v1", ITEMS)), []),
        (definition(version("v1", fields(spec=fields(a={}, b={"items": fields(c={})})))), ["v1 lacks .spec.b[].d"]),
        (definition(version("v1", fields(spec=fields(b={"items": ITEMS})))), ["v1 lacks .spec.a, .spec.b[].c"]),
        (definition(version("v1", {"x-kubernetes-preserve-unknown-fields": True})), []),
        (definition(version("v0", ITEMS)), ["does not serve v1"]),
        (definition(version("v1", ITEMS, served=False)), ["does not serve v1"]),
        (definition(version("v1", ITEMS), established="False"), ["is not served: no names"]),
    ],
)
def test_definitions_are_compared_with_ours(installed: Json | None, told: list[str]) -> None:
    ours = {
        "metadata": {"name": "ones"},
        "spec": definition(version("v1", ITEMS), version("v0", {}, served=False))["spec"],
    }

    problems = [one.problem for one in registration.of_definition(ours, installed)]

    assert len(problems) == len(told)
    assert all(part in problem for part, problem in zip(told, problems, strict=True)), problems


def test_a_lease_that_nobody_holds_matters_where_there_is_work() -> None:
    free = {"kind": "Lease", "metadata": {"name": "porch-controllers"}, "spec": {}}

    assert [one.severity for one in objects.of_lease(free, NOW)] == [Severity.NOTE]
    assert [one.severity for one in objects.of_lease(free, NOW, is_wanted=True)] == [Severity.ERROR]
    assert [*registration.of_absent_leader([])] == []


# --- what is printed --------------------------------------------------------------------------------


def test_the_worst_comes_first_and_a_line_stays_a_line() -> None:
    diagnosis = Diagnosis()
    diagnosis.add(
        "a", [Finding(Severity.NOTE, "B", "fine", "nothing"), Finding(Severity.ERROR, "A", "x\n\x1b[2Jy", "z")]
    )

    assert [*lines(diagnosis)] == ["ERROR    A: x  [2Jy; fix: z", "NOTE     B: fine; fix: nothing"]
    assert json.loads(document(diagnosis))["findings"][0]["problem"] == "x\n\x1b[2Jy"


def test_a_check_that_finds_thousands_tells_some_and_counts_the_rest() -> None:
    diagnosis = Diagnosis()
    diagnosis.add("drafts", (Finding(Severity.WARNING, f"{number}", "x", "y") for number in range(MOST + 5)))

    assert len(diagnosis.findings) == MOST
    assert [*lines(diagnosis)][-1] == "and 5 more of drafts: -n NAMESPACE looks at one namespace only"


def test_exit_codes() -> None:
    diagnosis = Diagnosis()
    assert (exit_code(diagnosis), [*lines(diagnosis)]) == (EXIT_HEALTHY, ["Nothing is wrong."])
    diagnosis.add("a", [Finding(Severity.NOTE, "A", "x", "y")])
    assert exit_code(diagnosis) == EXIT_HEALTHY
    diagnosis.add("a", [Finding(Severity.WARNING, "A", "x", "y")])
    assert exit_code(diagnosis) == EXIT_FINDINGS
    diagnosis.cannot_look("the rest")
    assert exit_code(diagnosis) == EXIT_NOT_LOOKED


@pytest.mark.parametrize(("seconds", "told"), [(0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (180_000, "2d")])
def test_spans(seconds: int, told: str) -> None:
    assert span(dt.timedelta(seconds=seconds)) == told
