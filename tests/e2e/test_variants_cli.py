"""``porch variants`` with a server, its controllers and a real Git remote: what reviewers see of a variant's drafts."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from git_server import GitServer
from kubectl import Kubectl
from lifecycles import move
from manifests import Register
from porch_process import PorchProcess
from remotes import Remote, empty_remote
from variants_kubectl import publish_blueprint, ready_target

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n"
SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  size: small # for now\n"
FUNCTION = {"image": "set-labels:v0.2", "configMap": {"team": "edge"}}


@pytest.fixture(scope="module")
def porch_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server that starts its controllers."""
    server = PorchProcess(tmp_path_factory.mktemp("variants-cli") / "data", arguments=["--controllers"])
    server.start()
    yield server
    server.stop()


@pytest.fixture
def repositories(kubectl: Kubectl, register: Register, git_http: GitServer, namespace: str) -> None:
    """A repository of blueprints with one, and one to deploy from."""
    found = {}
    for name in ("blueprints", "deployments"):
        folder = empty_remote(git_http.root / f"{namespace}-{name}.git")
        found[name] = Remote(folder, f"{git_http.url}/{namespace}-{name}.git")
    register(**found, deployment=("deployments",))
    publish_blueprint(kubectl, "blueprints", "web", "v1", {"Kptfile": KPTFILE, "settings.yaml": SETTINGS})


def variants(kubectl: Kubectl, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command as a user would."""
    where = ["--kubeconfig", str(kubectl.kubeconfig), "--namespace", kubectl.namespace]
    command = [sys.executable, "-m", "apiserver", "variants", *arguments, *where]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def printed(kubectl: Kubectl, *arguments: str) -> str:
    done = variants(kubectl, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_reviewers_see_what_drafts_change_and_why_they_exist(
    kubectl: Kubectl, repositories: None, tmp_path: Path
) -> None:
    spec = {
        "upstream": {"repo": "blueprints", "package": "web"},
        "downstream": {"repo": "deployments", "package": "site"},
    }
    kind = {"apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "PackageVariant", "metadata": {"name": "my-pv"}}
    kubectl.apply({**kind, "spec": spec})
    first = ready_target(kubectl, "my-pv")

    new = variants(kubectl, "diff", "my-pv")
    assert (new.returncode, new.stderr) == (0, f"{first} compared with nothing: the package is new\n")
    assert "+++ b/settings.yaml\n" in new.stdout
    assert "\n+  size: small # for now\n" in new.stdout
    assert "\n-" not in new.stdout.replace("\n--- ", "")

    move(kubectl, first, "Proposed", "Published")
    ready_target(kubectl, "my-pv", target=first)
    nothing = variants(kubectl, "diff", "my-pv")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", 'variant "my-pv" has no draft\n')

    kubectl.apply({**kind, "spec": {**spec, "pipeline": {"mutators": [FUNCTION]}}})
    second = ready_target(kubectl, "my-pv", target="deployments.site.packagevariant-2")
    change = variants(kubectl, "diff", "my-pv")
    assert change.stderr == f"{second} compared with {first}\n"
    assert "\n+    image: set-labels:v0.2\n" in change.stdout
    assert "\n+  labels:\n+    team: edge\n" in change.stdout
    assert "\n   size: small # for now\n" in change.stdout
    assert "README" not in change.stdout

    ready_target(kubectl, "my-pv", target=second)
    file = tmp_path / "my-pv.yaml"
    context = {"packageContext": {"data": {"town": "ams"}}}
    file.write_text(json.dumps({**kind, "spec": {**spec, "pipeline": {"mutators": [FUNCTION]}, **context}}))
    as_it_is = variants(kubectl, "preview-pv", "my-pv")
    assert (as_it_is.returncode, as_it_is.stdout) == (0, ""), as_it_is.stderr
    as_it_would_be = variants(kubectl, "preview-pv", "my-pv", "-f", str(file))
    assert as_it_would_be.stderr == f"{second} compared with what the variant makes of it\n"
    assert "\n+  town: ams\n" in as_it_would_be.stdout
    assert "settings.yaml" not in as_it_would_be.stdout
    assert variants(kubectl, "diff", "my-pv").stdout == change.stdout, "nothing was written"

    heading, *rows = printed(kubectl, "history", "my-pv").splitlines()
    assert heading.split() == ["REVISION", "CREATED", "LIFECYCLE", "TRIGGER", "CHANGES", "DETAIL"]
    assert [row.split("   ")[0].strip() for row in rows] == [first, second]
    assert "Published v1" in rows[0]
    assert "Initial" in rows[0]
    assert "Draft" in rows[1]
    assert "SpecChanged" in rows[1]
    assert "modified" in rows[1]


def test_a_variant_that_is_not_there_is_an_error(kubectl: Kubectl) -> None:
    for command in ("diff", "history", "preview-pv"):
        done = variants(kubectl, command, "nobody")

        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == 'Error: packagevariants.config.porch.kpt.dev "nobody" not found\n'
