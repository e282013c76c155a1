"""``porch doctor`` in a cluster that is broken in one way after the other: each is found, and told with what would help.

The control plane is this module's own, since others could not work meanwhile. What is wrong with databases, keys and disks is in
``tests/e2e/test_doctor.py``. Source: issue 9, part 6.
"""

import asyncio
import base64
import datetime as dt
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import control_plane_keys
import pytest
from aggregated_process import API_SERVICE, ROLE, ROOT, USER, AggregatedProcess, install_rights, objects, rights
from control_plane import ControlPlane
from control_plane_keys import Authority
from eventually import eventually
from kubectl import Kubectl
from manifests import repository
from porch_process import free_port

from apiserver.crd_files import FOLDER as DEFINITIONS
from apiserver.resources.custom.own import own_definitions
from krm.cli.doctor import server as server_findings
from krm.cli.doctor.finding import Diagnosis
from krm.cli.doctor.looking import examine_server

Object = dict[str, Any]
GUIDE = ROOT / "docs" / "how-to" / "find-what-is-wrong.md"
FOUND_SECONDS = 90.0
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def plane(control_plane_program: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control_plane_keys, "LIFE", dt.timedelta(days=365))  # or every certificate would end soon
        with ControlPlane(tmp_path_factory.mktemp("ill")) as control_plane:
            install_rights(control_plane)
            yield control_plane


@pytest.fixture(scope="module")
def server(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AggregatedProcess]:
    process = AggregatedProcess(
        plane, tmp_path_factory.mktemp("server") / "data", environment={"PORCH_SYNC_INTERVAL": "2"}
    )
    process.start()
    yield process
    process.stop()


@pytest.fixture
def admin(plane: ControlPlane) -> Kubectl:
    return Kubectl(plane.kubeconfig)


def doctor(kubeconfig: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command as somebody who administers the cluster would, from another machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PORCH_", "KUBE"))}
    command = [sys.executable, "-m", "apiserver", "doctor", "--kubeconfig", str(kubeconfig)]
    return subprocess.run(
        [*command, "--server-account", USER, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**kept, "HOME": str(kubeconfig.parent)},
    )


def wait_until_told(plane: ControlPlane, *lines: str) -> str:
    """Run it until it tells all of these; return what it printed. What is wrong is wrong: it ends with 1, or 2."""
    printed: list[str] = []

    def check() -> None:
        done = doctor(plane.kubeconfig)
        printed[:] = [done.stdout]
        assert [one for one in lines if one not in done.stdout] == [], done.stdout + done.stderr
        assert done.returncode in (1, 2)

    eventually(check, timeout=FOUND_SECONDS)
    return printed[0]


def told(plane: ControlPlane) -> list[str]:
    """Return what is told besides notes."""
    return [line for line in doctor(plane.kubeconfig).stdout.splitlines() if not line.startswith("NOTE")]


def test_nothing_is_wrong_with_a_cluster_that_is_well(plane: ControlPlane, server: AggregatedProcess) -> None:
    def well() -> None:
        done = doctor(plane.kubeconfig)
        worse = [line for line in done.stdout.splitlines() if not line.startswith("NOTE")]
        assert (worse, done.returncode) == (["Nothing is wrong."], 0), done.stdout + done.stderr

    eventually(well, timeout=FOUND_SECONDS)
    without = doctor(plane.kubeconfig, "--server-account", "")
    assert "NOTE     Service porch-system/porch-server: no Pods are behind it" in without.stdout
    assert without.returncode == 0


def test_rights_that_the_server_lacks(plane: ControlPlane, server: AggregatedProcess, admin: Kubectl) -> None:
    private = repository("private", "https://git.example.invalid/private.git", login="its-login")
    admin.apply(private)
    reader = f"{ROLE}-extension-apiserver-authentication-reader"
    admin.ok("delete", "rolebinding", reader, "--namespace=kube-system")
    admin.ok("patch", "clusterrole", ROLE, "--type=merge", "--patch", '{"rules":[]}')
    account = f"ERROR    The server's account {USER}: may not"
    try:
        printed = wait_until_told(
            plane,
            f"{account} get configmaps extension-apiserver-authentication in kube-system: whom to believe",
            f"{account} list repositories.config.porch.kpt.dev in all namespaces",
            f"{account} update repositories/status.config.porch.kpt.dev in all namespaces",
            f"{account} get secrets its-login in default",
        )
        assert "fix: a RoleBinding in kube-system to the Role extension-apiserver-authentication-reader" in printed
        assert f"{account} create tokenreviews" not in printed
    finally:
        Kubectl(plane.kubeconfig, "").apply(*rights())
        admin.ok("delete", "repository", "private", "--wait=false")
    assert not [line for line in told(plane) if "account" in line]


def test_every_right_that_the_server_is_given_is_asked_about() -> None:
    from krm.cli.doctor.registration import NEEDS, secret_need

    (role,) = (one for one in rights() if one["kind"] == "ClusterRole")
    given = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    asked = {
        (need.group, f"{need.resource}/{need.subresource}" if need.subresource else need.resource, need.verb)
        for need in (*NEEDS, secret_need("a", "b"))
    }

    assert given <= asked


def test_definitions_that_are_missing_or_of_another_version(
    plane: ControlPlane, server: AggregatedProcess, admin: Kubectl
) -> None:
    name = "repositories.config.porch.kpt.dev"
    lost = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/sync"
    admin.ok("patch", "crd", name, "--type=json", "--patch", json.dumps([{"op": "remove", "path": lost}]))
    admin.ok("delete", "crd", "packagevariantsets.config.porch.kpt.dev")
    try:
        wait_until_told(
            plane,
            "ERROR    CustomResourceDefinition packagevariantsets.config.porch.kpt.dev: is missing",
            f"ERROR    CustomResourceDefinition {name}: is of another version of Porch: v1alpha1 lacks .spec.sync",
            "fix: kubectl apply --server-side",
        )
    finally:
        admin.ok("apply", "--server-side", "--force-conflicts", "-f", str(ROOT / DEFINITIONS))
        admin.ok("wait", "--for=condition=Established", "--timeout=60s", "-f", str(ROOT / DEFINITIONS))
    assert not [line for line in told(plane) if "CustomResourceDefinition" in line]


def test_a_repository_that_is_not_ready_and_variants_that_nobody_works_on(
    plane: ControlPlane, server: AggregatedProcess, admin: Kubectl
) -> None:
    nobody: Object = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "porch-controllers"},
        "spec": {"holderIdentity": "", "leaseDurationSeconds": 15},
    }
    variant: Object = {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "PackageVariant",
        "metadata": {"name": "waiting"},
        "spec": {
            "upstream": {"repo": "nowhere", "package": "a", "revision": 1},
            "downstream": {"repo": "nowhere", "package": "b"},
        },
    }
    admin.apply(repository("nowhere", "file:///nowhere.git", login=""), variant)
    try:
        wait_until_told(
            plane,
            "ERROR    Repository default/nowhere: not Ready for",
            "ERROR    Lease porch-controllers: no controllers have run here, and there is work for them: PackageVariant default/waiting",
        )
        admin.apply(nobody)
        wait_until_told(plane, "ERROR    Lease default/porch-controllers: nobody holds it")
    finally:
        admin.ok("delete", "repository/nowhere", "packagevariant/waiting", "--wait=false")
        admin.ok("delete", "lease/porch-controllers", "--ignore-not-found")


def test_an_apiservice_that_leads_nowhere(plane: ControlPlane, server: AggregatedProcess, admin: Kubectl) -> None:
    stranger = Authority.new(plane.folder, "stranger").file.read_bytes()
    own = (server.data / "ca.crt").read_bytes()
    line = f"ERROR    APIService {API_SERVICE}: not Available for"
    try:
        Kubectl(plane.kubeconfig, "").apply(*objects(server.port, stranger))
        refused = f"ERROR    APIService {API_SERVICE}: Available, and yet requests are not handed on: "
        printed = wait_until_told(plane, refused, "not looked at: packagerevisions: ")
        assert "spec.caBundle has to hold the CA that issued the server's" in printed
        assert doctor(plane.kubeconfig).returncode == 2, "what is on the server could not be looked at"

        Kubectl(plane.kubeconfig, "").apply(*objects(free_port(), own))
        wait_until_told(plane, line, "FailedDiscoveryCheck: ")

        server.kill()
        Kubectl(plane.kubeconfig, "").apply(*objects(server.port, own))
        wait_until_told(plane, line, "the server runs, and the port and network policies lead to it")

        insecure = {"spec": {"insecureSkipTLSVerify": True, "caBundle": None}}
        admin.ok("patch", "apiservice", API_SERVICE, "--type=merge", "--patch", json.dumps(insecure))
        wait_until_told(plane, f"WARNING  APIService {API_SERVICE}: kube-apiserver takes anybody for the server")

        admin.ok("delete", "apiservice", API_SERVICE)
        wait_until_told(plane, f"ERROR    APIService {API_SERVICE}: is missing")
    finally:
        if not server.running:
            server.restart()
        Kubectl(plane.kubeconfig, "").apply(*objects(server.port, own))
        server.wait_until_available()


def test_an_authority_that_ends_soon(plane: ControlPlane, server: AggregatedProcess, admin: Kubectl) -> None:
    own = (server.data / "ca.crt").read_bytes()
    soon = Authority.new(plane.folder, "soon", valid=(dt.timedelta(days=-90), dt.timedelta(days=1))).file.read_bytes()

    def trusted(bundle: bytes) -> None:
        patch = {"spec": {"caBundle": base64.b64encode(bundle).decode()}}
        admin.ok("patch", "apiservice", API_SERVICE, "--type=merge", "--patch", json.dumps(patch))

    try:
        trusted(soon)
        wait_until_told(plane, f"WARNING  The CA of APIService {API_SERVICE}: expires in")
        trusted(own + soon)
        assert not [line for line in told(plane) if "The CA of" in line], "the newest of a bundle counts"
    finally:
        trusted(own)


def test_clocks_of_both_servers_are_looked_at(
    plane: ControlPlane, server: AggregatedProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.wait_until_available()
    monkeypatch.setattr(server_findings, "SKEW", dt.timedelta(seconds=-1))  # then no clock is right enough
    diagnosis = Diagnosis()

    asyncio.run(
        examine_server(
            plane.kubeconfig,
            "default",
            dt.timedelta(hours=1),
            diagnosis,
            definitions=lambda: own_definitions().values(),
        )
    )

    seen = {one.object for one in diagnosis.findings if "its clock is" in one.problem}
    assert seen == {f"Server {plane.url}", f"Porch behind Server {plane.url}"}


def test_who_administers_nothing_is_told_what_could_not_be_looked_at(
    plane: ControlPlane, server: AggregatedProcess, admin: Kubectl
) -> None:
    eve = plane.kubeconfig_of("eve")
    admin.ok("create", "rolebinding", "eve-views", "--clusterrole=admin", "--user=eve")

    done = doctor(eve, "-n", "default")

    assert "NOTE     You: may not see how the cluster is told of Porch (apiservices)" in done.stdout
    assert "NOTE     You: may not ask what the server may do (subjectaccessreviews)" in done.stdout
    assert "ERROR" not in done.stdout


def test_the_commands_of_the_guide_work(plane: ControlPlane, server: AggregatedProcess, tmp_path: Path) -> None:
    server.wait_until_available()
    blocks = re.findall(r"```sh cluster-guide\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    porch = tmp_path / "porch"
    porch.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m apiserver "$@"\n')
    porch.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"

    typed = subprocess.run(
        ["sh", "-eu", "-c", "".join(blocks)],
        cwd=tmp_path,
        env={**os.environ, "KUBECONFIG": str(plane.kubeconfig), "PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert typed.returncode == 0, typed.stdout + typed.stderr
    assert not [line for line in told(plane) if "account" in line], "the guide leaves nothing behind"
