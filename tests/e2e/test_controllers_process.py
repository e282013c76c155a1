"""The controllers as the standalone server's child, and as a program: started, ended, restarted, limited in what they may do."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from controllers_process import ROOT, ControllersProcess
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from logged_lines import logged_lines
from porch_process import PorchProcess
from variant_place import GATE, SET_LABELS, Place, condition_of, downstream, new_place, variant, with_blueprint

Json = dict[str, Any]
READY = ("True", "NoErrors", "successfully ensured downstream package variant")
WORKING = "package variants are kept"
STOPS_WITHIN = 30.0
"""Seconds; five are allowed on a machine of one's own, and one that hangs takes for ever."""

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server that runs the controllers; whatever a test does to it, it is stopped in the end."""
    server = PorchProcess(tmp_path_factory.mktemp("parent") / "data", arguments=["--controllers"])
    server.start()
    yield server
    server.stop()


@pytest.fixture
def place(parent: PorchProcess, git_http: GitServer, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A place of the test's own, whose variants the child keeps."""
    name = re.sub(r"[^a-z]+", "-", request.node.name.removeprefix("test_"))[:40].strip("-")
    made = with_blueprint(new_place(parent, git_http, name))
    yield made
    made.porch.close()


def children(server: PorchProcess) -> list[int]:
    """Return the processes that the server started and that run the controllers."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent_id = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent_id == server.pid and b"controllers" in command:
            found.append(int(folder.name))
    return found


def child(server: PorchProcess) -> int:
    """Wait for the one child and return its process id."""

    def one() -> int:
        (found,) = children(server) or [0]
        assert found
        return found

    return eventually(one)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def lines(log: Path, since: int = 0) -> list[Json]:
    """Return the JSON lines that were logged after ``since`` bytes."""
    return [json.loads(line) for line in logged_lines(log, since) if line.startswith("{")]


def said(log: Path, what: str, since: int = 0) -> None:
    assert what in [line["event"] for line in lines(log, since)], log.read_text()[-3000:]


def is_ready(place: Place, name: str = "my-pv") -> None:
    assert place.condition("Ready", name) == READY


# --- the child ------------------------------------------------------------------------------------


def test_a_variant_becomes_a_draft_with_the_rights_of_the_childs_own_user(place: Place) -> None:
    place.create("/api/v1", "configmaps", {"metadata": {"name": "us-east"}, "data": {"db": "db.example.com"}})
    place.push("blueprints", {"injected@v1": {**_injected()}})
    place.sync("blueprints")
    spec: Json = {
        "upstream": {"repo": "blueprints", "package": "injected", "revision": 1},
        "pipeline": {"mutators": [SET_LABELS]},
        "packageContext": {"data": {"site": "east"}},
        "injectors": [{"name": "us-east"}],
    }
    place.add_variant(variant(**spec))
    eventually(lambda: is_ready(place), timeout=60)

    draft = place.revision("deployments.bar.packagevariant-1")
    assert condition_of(draft, GATE)["status"] == "True"
    assert "db.example.com" in place.files(draft["metadata"]["name"])["endpoints.yaml"]
    eventually(lambda: _has_events(place))
    place.delete("/apis/config.porch.kpt.dev/v1alpha1", "packagevariants", "my-pv")
    eventually(lambda: _is_gone(place))
    assert not place.exists("deployments.bar.packagevariant-1")


def _injected() -> Mapping[str, str]:
    annotated = "metadata:\n  name: endpoints\n  annotations:\n    kpt.dev/config-injection: required\n"
    return {
        "Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: injected\n",
        "endpoints.yaml": f"apiVersion: v1\nkind: ConfigMap\n{annotated}data:\n  db: none\n",
    }


def _is_gone(place: Place) -> None:
    assert not place.has_variant()


@pytest.mark.parametrize(
    ("may", "verb", "resource"),
    [
        (True, "create", "packagerevisions.porch.kpt.dev"),
        (True, "update", "packagerevisionresources.porch.kpt.dev"),
        (True, "update", "packagevariants.config.porch.kpt.dev/status"),
        (True, "update", "packagevariants.config.porch.kpt.dev/finalizers"),
        (True, "watch", "repositories.config.porch.kpt.dev"),
        (True, "update", "leases.coordination.k8s.io"),
        (True, "create", "events"),
        (True, "list", "configmaps"),
        (False, "update", "packagerevisions.porch.kpt.dev/approval"),
        (False, "bypass-gates", "packagerevisions.porch.kpt.dev"),
        (False, "get", "secrets"),
        (False, "list", "secrets"),
        (False, "update", "configmaps"),
        (False, "update", "repositories.config.porch.kpt.dev"),
        (False, "create", "packagevariantsets.config.porch.kpt.dev"),
        (False, "create", "clusterroles.rbac.authorization.k8s.io"),
        (False, "list", "serviceaccounts"),
    ],
)
def test_the_childs_user_may_do_what_it_needs_and_no_more(
    parent: PorchProcess, may: bool, verb: str, resource: str
) -> None:
    kind, _, subresource = resource.partition("/")
    more = [f"--subresource={subresource}"] if subresource else []
    answer = Kubectl(parent.kubeconfig)("auth", "can-i", verb, kind, *more, "--as=system:porch-controllers")

    assert answer.stdout.strip() == ("yes" if may else "no"), answer.stderr


def test_a_labelled_role_lets_the_controllers_read_another_kind(parent: PorchProcess) -> None:
    """As docs/how-to/run-controllers.md tells it."""
    kubectl = Kubectl(parent.kubeconfig)
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": "injectable-accounts",
            "labels": {"config.porch.kpt.dev/aggregate-to-injectables": "true"},
        },
        "rules": [{"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["get", "list", "watch"]}],
    }
    kubectl.apply(role)

    def may_list() -> None:
        answer = kubectl("auth", "can-i", "list", "serviceaccounts", "--as=system:porch-controllers")
        assert answer.stdout.strip() == "yes"

    eventually(may_list)


def test_the_childs_kubeconfig_is_readable_by_its_owner_only(parent: PorchProcess) -> None:
    child(parent)

    assert (parent.data / "controllers.kubeconfig").stat().st_mode & 0o777 == 0o600


def test_a_child_that_dies_is_started_again_and_goes_on(place: Place, parent: PorchProcess) -> None:
    first = child(parent)
    os.kill(first, signal.SIGKILL)
    place.add_variant(variant(downstream=downstream("after")))
    eventually(lambda: is_ready(place), timeout=60)

    assert child(parent) != first
    assert len(children(parent)) == 1


def test_a_server_that_stops_ends_the_child_in_order_and_the_next_leads_at_once(parent: PorchProcess) -> None:
    pid = child(parent)
    eventually(lambda: said(parent.log, WORKING))
    began = parent.log.stat().st_size
    seconds = parent.stop()
    after = parent.log.stat().st_size

    assert seconds < STOPS_WITHIN
    assert not is_alive(pid)
    told = [line["event"] for line in lines(parent.log, began)]
    assert "stopped" in told
    assert "lease not released" not in told
    parent.start()
    eventually(lambda: said(parent.log, WORKING, after))
    assert "another process leads" not in [line["event"] for line in lines(parent.log, after)]


def test_a_server_that_stops_while_the_child_works_stops_in_time_and_the_next_finishes(
    place: Place, parent: PorchProcess
) -> None:
    names = [f"v{number}" for number in range(15)]
    for name in names:
        place.add_variant(variant(name, downstream=downstream(name), pipeline={"mutators": [SET_LABELS]}))
    seconds = parent.stop()
    place.porch.close()
    parent.start()
    place.porch = parent.client(place.namespace)
    for name in names:
        eventually(lambda name=name: is_ready(place, name), timeout=60)  # type: ignore[misc]
        assert place.revisions_of(name) == {"packagevariant-1": "Draft"}

    assert seconds < STOPS_WITHIN


def test_a_server_that_is_killed_takes_the_child_with_it(parent: PorchProcess) -> None:
    pid = child(parent)
    eventually(lambda: said(parent.log, WORKING))
    parent.kill()

    def ended() -> None:
        assert not is_alive(pid)

    eventually(ended)
    parent.start()
    child(parent)


def test_a_child_that_hangs_does_not_keep_the_server_from_stopping(parent: PorchProcess) -> None:
    pid = child(parent)
    os.kill(pid, signal.SIGSTOP)
    seconds = parent.stop()

    assert seconds < STOPS_WITHIN
    os.kill(pid, signal.SIGCONT) if is_alive(pid) else None
    eventually(lambda: _has_ended(pid))
    parent.start()


def _has_ended(pid: int) -> None:
    assert not is_alive(pid)


def test_without_the_flag_there_is_no_child(porch_server: PorchProcess) -> None:
    assert children(porch_server) == []
    assert not (porch_server.data / "controllers.kubeconfig").exists()


RIGHTS = {"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
"""Kinds of what the chart renders that say who may what; the rest a standalone server need not have."""


def test_the_roles_for_a_cluster_are_enough_for_a_service_account(
    porch_server: PorchProcess, git_http: GitServer, tmp_path: Path
) -> None:
    """The server of this test runs no controllers; these come with a token, as in a cluster."""
    admin = Kubectl(porch_server.kubeconfig, "porch-system", str(tmp_path / "cache"))
    manifests = yaml.safe_load_all((ROOT / "deploy" / "porch-small.yaml").read_text())
    here = (one for one in manifests if one and one["metadata"].get("namespace") in (None, "porch-system"))
    admin.apply(*(one for one in here if one["kind"] in RIGHTS))
    token = admin.ok("create", "token", "porch-controllers").strip()
    config = yaml.safe_load(porch_server.kubeconfig.read_text())
    config["users"] = [{"name": config["contexts"][0]["context"]["user"], "user": {"token": token}}]
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    place = with_blueprint(new_place(porch_server, git_http, "service-account"))
    place.create("/api/v1", "configmaps", {"metadata": {"name": "us-east"}, "data": {"db": "db.example.com"}})
    place.push("blueprints", {"injected@v1": _injected()})
    place.sync("blueprints")
    election = {"PORCH_CONTROLLERS_LEADER_ELECTION": "true", "PORCH_CONTROLLERS_LEASE_NAMESPACE": "porch-system"}
    controllers = ControllersProcess(tmp_path / "kubeconfig", place.namespace, tmp_path / "log", election)
    controllers.start()
    try:
        source = {"repo": "blueprints", "package": "injected", "revision": 1}
        place.add_variant(variant(upstream=source, injectors=[{"name": "us-east"}]))
        eventually(lambda: is_ready(place), timeout=60)
        place.delete("/apis/config.porch.kpt.dev/v1alpha1", "packagevariants", "my-pv")
        eventually(lambda: _is_gone(place))
        eventually(lambda: _has_events(place))

        assert "orbidden" not in controllers.tail(100_000)
    finally:
        place.porch.close()
        controllers.kill()


def _has_events(place: Place) -> None:
    events = place.porch.request("GET", place.path("/api/v1", "events")).object["items"]
    assert "packagevariant-controller" in {event["source"]["component"] for event in events}


# --- the program ----------------------------------------------------------------------------------


@pytest.fixture
def program(porch_server: PorchProcess, namespace: str, tmp_path: Path) -> Iterator[ControllersProcess]:
    """A process of controllers for the test's namespace, with health and metrics."""
    environment = {"PORCH_CONTROLLERS_PORT": "0"}
    made = ControllersProcess(porch_server.kubeconfig, namespace, tmp_path / "program.log", environment)
    made.start(["-m", "apiserver", "controllers", "--workers", "2"])
    eventually(lambda: said(made.log, WORKING))
    yield made
    made.kill()


def endpoint(process: ControllersProcess, path: str) -> str:
    (port,) = [line["port"] for line in lines(process.log) if line["event"] == "health and metrics are served"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def assert_ready(process: ControllersProcess) -> None:
    try:
        assert endpoint(process, "/readyz") == "ok"
    except urllib.error.HTTPError as error:
        raise AssertionError(f"not ready: {error}") from error


def test_the_program_is_healthy_counts_and_stops_in_order(program: ControllersProcess) -> None:
    assert endpoint(program, "/healthz") == "ok"
    eventually(lambda: assert_ready(program))  # one of its controllers works before the other
    metrics = endpoint(program, "/metrics")
    assert 'controller_runtime_max_concurrent_reconciles{controller="packagevariant"} 2.0' in metrics
    assert 'workqueue_depth{name="packagevariant"} 0.0' in metrics
    assert "process_resident_memory_bytes" in metrics
    assert not re.search(r"_created[ {]", metrics)
    assert program.stop() == 0
    said(program.log, "stopped")


def test_sigusr1_has_everything_looked_at_again(program: ControllersProcess) -> None:
    assert program._process
    program._process.send_signal(signal.SIGUSR1)

    eventually(lambda: said(program.log, "resync asked for"))
    assert program.running


def test_a_second_signal_ends_it_at_once(program: ControllersProcess, porch_server: PorchProcess) -> None:
    assert program._process
    os.kill(porch_server.pid, signal.SIGSTOP)
    try:
        program._process.send_signal(signal.SIGTERM)
        program._process.send_signal(signal.SIGINT)
        assert program.wait(STOPS_WITHIN) in {0, 128 + signal.SIGINT, 128 + signal.SIGTERM}
    finally:
        os.kill(porch_server.pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--port", "99999"], 2, "--port (or PORCH_CONTROLLERS_PORT)"),
        (["--workers", "0"], 2, "--workers (or PORCH_CONTROLLERS_WORKERS)"),
        (["--kubeconfig", "/nonexistent"], 3, "/nonexistent"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(arguments: list[str], code: int, told: str) -> None:
    command = [sys.executable, "-m", "controllers", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)

    assert done.returncode == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_times_with_which_two_could_lead_are_refused(tmp_path: Path) -> None:
    environment = {**os.environ, "PORCH_CONTROLLERS_LEASE_RENEW": "10", "PORCH_CONTROLLERS_LEASE_DURATION": "10"}
    command = [sys.executable, "-m", "controllers"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False, env=environment)

    assert done.returncode == 2
    assert "lease_renew less than lease_duration" in done.stderr
