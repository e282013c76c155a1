"""What is wrong with how a cluster is told of Porch: its APIService, its definitions, and what its account may do.

Everything here is pure: objects as they are on the wire and the time go in, findings come out. Source: ``kube-api.md`` 1.10, 3.3, 4.
"""

import base64
import binascii
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from krm.cli.doctor.finding import Finding, Severity, age, span
from krm.cli.doctor.server import of_certificate

Json = dict[str, Any]

API_SERVICE: Final = "v1alpha1.porch.kpt.dev"
GUIDE: Final = "docs/how-to/run-behind-a-kube-apiserver.md"
MOST_FIELDS: Final = 5
MAX_DEPTH: Final = 64
"""Of a schema; ours are not a quarter as deep."""

# --- the APIService -----------------------------------------------------------------------------------

_FIXES: Final = {
    "ServiceNotFound": "make the Service that spec.service names, or correct the name and namespace there",
    "ServicePortError": "give spec.service.port a port that the Service has",
    "EndpointsNotFound": "see that the Service's selector matches the server's Pods, and that these run",
    "MissingEndpoints": "no Pod of the server is ready: look at kubectl describe pods and at the server's log",
    "FailedDiscoveryCheck": "if the message names a certificate: spec.caBundle has to hold the CA that issued the server's, and that has to be "
    "for SERVICE.NAMESPACE.svc; if no connection comes about: the server runs, and the port and network policies lead to it; "
    "if it answers 401 or 403: the server may read extension-apiserver-authentication in kube-system",
}
"""What helps, by the reason that kube-apiserver gives for Available False."""


def of_api_service(body: Json, now: dt.datetime) -> Iterator[Finding]:
    """Find that the cluster does not hand requests on to Porch, and why."""
    name = f"APIService {(body.get('metadata') or {}).get('name', '')}"
    available = _available(body)
    if available.get("status") != "True":
        since, reason = str(available.get("lastTransitionTime") or ""), str(available.get("reason") or "Unknown")
        why = f"{reason}: {available.get('message', 'nobody has looked at it')}"
        fix = _FIXES.get(reason, "see that the Service leads to the server, and that spec.caBundle is its CA")
        problem = f"not Available for {span(age(since, now))}: {why}"
        yield Finding(Severity.ERROR, name, problem, f"{fix} ({GUIDE})", since)
    yield from _of_bundle(name, body.get("spec") or {}, now)


def of_refusal(body: Json, told: str) -> Iterator[Finding]:
    """Find that requests fail although the APIService is Available: whether it is, is asked without looking at certificates."""
    if _available(body).get("status") == "True":
        name = f"APIService {(body.get('metadata') or {}).get('name', '')}"
        problem = f"Available, and yet requests are not handed on: {told}"
        yield Finding(Severity.ERROR, name, problem, f"{_FIXES['FailedDiscoveryCheck']} ({GUIDE})")


def _available(body: Json) -> Mapping[str, Any]:
    conditions = (body.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == "Available"), {})


def _of_bundle(name: str, spec: Json, now: dt.datetime) -> Iterator[Finding]:
    """Find that what kube-apiserver is to trust is nothing, or ends."""
    if spec.get("insecureSkipTLSVerify"):
        fix = "remove insecureSkipTLSVerify and put the CA of the server's certificate into spec.caBundle"
        yield Finding(Severity.WARNING, name, "kube-apiserver takes anybody for the server", fix)
    if not spec.get("caBundle"):
        return
    fix = "write the CA of the server's certificate into spec.caBundle, in PEM and then base64"
    try:
        certificates = x509.load_pem_x509_certificates(base64.b64decode(str(spec["caBundle"]), validate=True))
    except (ValueError, binascii.Error):
        yield Finding(Severity.ERROR, name, "its caBundle holds no certificates", fix)
        return
    latest = max(certificates, key=lambda one: one.not_valid_after_utc)
    yield from of_certificate(f"The CA of {name}", latest.public_bytes(Encoding.PEM), now, fix)


# --- definitions --------------------------------------------------------------------------------------


def of_definition(ours: Json, installed: Json | None) -> Iterator[Finding]:
    """Find that a CustomResourceDefinition is missing, not served, or lacks versions or fields that this Porch works with."""
    name = f"CustomResourceDefinition {ours['metadata']['name']}"
    fix = "kubectl apply --server-side --force-conflicts -f charts/porch/files/crds, or helm upgrade"
    if installed is None:
        yield Finding(Severity.ERROR, name, "is missing", fix)
        return
    conditions = (installed.get("status") or {}).get("conditions") or ()
    if not any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions):
        told = "; ".join(str(one.get("message")) for one in conditions if one.get("status") == "False")
        yield Finding(Severity.ERROR, name, f"is not served: {told or 'not Established'}", fix)
    served = {one.get("name"): one for one in (installed.get("spec") or {}).get("versions") or () if one.get("served")}
    for version in (one for one in ours["spec"]["versions"] if one["served"]):
        theirs = served.get(version["name"])
        if theirs is None:
            problem = f"is of another version of Porch: it does not serve {version['name']}"
            yield Finding(Severity.ERROR, name, problem, fix)
        elif missing := _missing(_schema(version), _schema(theirs)):
            listed = ", ".join(missing[:MOST_FIELDS]) + (", …" if len(missing) > MOST_FIELDS else "")
            problem = f"is of another version of Porch: {version['name']} lacks {listed}, which kube-apiserver drops"
            yield Finding(Severity.ERROR, name, problem, fix)


def _schema(version: Json) -> Any:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _missing(ours: Any, theirs: Any, path: str = "", depth: int = 0) -> list[str]:
    """Return the fields of ours that a schema does not know, those that are not below one another."""
    if depth > MAX_DEPTH or not isinstance(theirs, dict) or theirs.get("x-kubernetes-preserve-unknown-fields"):
        return []
    missing = []
    known = theirs.get("properties") or {}
    for name, schema in (ours.get("properties") or {}).items():
        if name not in known:
            missing.append(f"{path}.{name}")
        else:
            missing += _missing(schema, known[name], f"{path}.{name}", depth + 1)
    for inner in ("items", "additionalProperties"):
        if isinstance(ours.get(inner), dict) and isinstance(theirs.get(inner), dict):
            missing += _missing(ours[inner], theirs[inner], f"{path}[]", depth + 1)
    return missing


# --- what the server's account may do --------------------------------------------------------------------


class Need(NamedTuple):
    """A right that the server needs, what for, and what gives it; a namespace that is None stands for all."""

    verb: str
    group: str
    resource: str
    what: str
    gives: str
    namespace: str | None = None
    name: str = ""
    subresource: str = ""

    @property
    def described(self) -> str:
        """The right in words."""
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        kind = f"{resource}.{self.group}" if self.group else resource
        named = f" {self.name}" if self.name else ""
        return f"{self.verb} {kind}{named} in {self.namespace or 'all namespaces'}"


_CONFIG: Final = "config.porch.kpt.dev"
_OWN: Final = "the ClusterRole of the server"
_DELEGATOR: Final = "a ClusterRoleBinding to system:auth-delegator"
_READER: Final = "a RoleBinding in kube-system to the Role extension-apiserver-authentication-reader"
_TRUST: Final = ("", "configmaps", "whom to believe is not known, and the server does not start", _READER)

NEEDS: Final = (
    *(Need(verb, *_TRUST, "kube-system", "extension-apiserver-authentication") for verb in ("get", "list", "watch")),
    Need("create", "authentication.k8s.io", "tokenreviews", "tokens are known to nobody", _DELEGATOR),
    Need("create", "authorization.k8s.io", "subjectaccessreviews", "every request is refused", _DELEGATOR),
    *(
        Need(verb, _CONFIG, "repositories", "Repositories are not seen or not finished", _OWN)
        for verb in ("get", "list", "watch", "update")
    ),
    Need("update", _CONFIG, "repositories", "no Repository says whether it is Ready", _OWN, subresource="status"),
    *(Need(verb, "", "namespaces", "packages cannot be created", _OWN) for verb in ("get", "list", "watch")),
    *(Need(verb, "", "events", "what happens to packages is not told", _OWN) for verb in ("get", "create", "update")),
    *(
        Need(verb, _CONFIG, kind, "previews of sets are refused", _OWN)
        for kind in ("packagevariants", "packagevariantsets")
        for verb in ("get", "list")
    ),
)
"""What the server asks of the cluster as itself, wherever it runs."""


def secret_need(namespace: str, name: str) -> Need:
    """Return the right to read a Secret that Repositories name."""
    gives = f"a RoleBinding in {namespace}, or a ClusterRoleBinding, to a role that may get secrets"
    return Need("get", "", "secrets", "Repositories with credentials are not read", gives, namespace, name)


def access_review(need: Need, user: str, groups: Sequence[str]) -> Json:
    """Return the question whether an account has a right."""
    attributes = {"verb": need.verb, "group": need.group, "resource": need.resource}
    optional = {"namespace": need.namespace, "name": need.name, "subresource": need.subresource}
    attributes |= {key: value for key, value in optional.items() if value}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {"user": user, "groups": list(groups), "resourceAttributes": attributes},
    }


def of_account(user: str, missing: Sequence[Need]) -> Iterator[Finding]:
    """Find what the account may not do that it must."""
    for need in missing:
        problem = f"may not {need.described}: {need.what}"
        yield Finding(Severity.ERROR, f"The server's account {user}", problem, f"{need.gives} ({GUIDE})")


# --- the controllers ----------------------------------------------------------------------------------


def of_absent_leader(names: Sequence[str]) -> Iterator[Finding]:
    """Find that there is something to do for controllers of variants, and nobody who ever did."""
    if names:
        problem = f"no controllers have run here, and there is work for them: {', '.join(names)}"
        fix = "start them: porch controllers, or controllers.enabled=true of the chart"
        yield Finding(Severity.ERROR, "Lease porch-controllers", problem, fix)
