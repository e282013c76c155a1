"""A fleet with real kubectl, a server process with its controllers, and a real Git server: issue 8, from start to end.

One blueprint goes to twenty-five repositories that a selector finds, each with the custom resource of its site injected. A site
comes, one leaves, the template changes for some of them, an expression is wrong, and the set ends. Each step names what was
written: everything else keeps its resourceVersion. Source: seeds 000 and 001; ``variants.md`` 3, 3.7, 3.8, C-41.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from custom_kinds import definition, readable
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from lifecycles import move
from porch_process import PorchProcess
from remotes import Remote, files_at, refs
from sets_kubectl import (
    FLEET_WAIT,
    all_files,
    changed,
    fleet_is_ready,
    fleet_remotes,
    register_fleet,
    set_condition_is,
    steady,
    variants_of,
)
from variants_kubectl import condition, publish_blueprint

Object = dict[str, Any]
REGIONS = ("north", "south", "west")
SITES = [f"edge-{number:02}" for number in range(1, 27)]
NEW, LEAVING, APPROVED = SITES[25], SITES[24], SITES[0]
"""The site that comes later, the one that leaves, and the one whose first revision is published."""
ARCHIVE, LAB, CATALOG = "archive", "lab", "blueprints"
CANARIES = SITES[:5]

KPTFILE = """apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: web
pipeline:
  mutators:
  - image: gcr.io/kpt-fn/set-labels:v0.1
    configMap:
      app: web
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
"""
PROFILE = """# What the site is like; whoever deploys this puts in their own.
apiVersion: fleet.example.com/v1
kind: SiteProfile
metadata:
  name: site-profile
  annotations:
    config.kubernetes.io/local-config: "true"
    kpt.dev/config-injection: required
spec:
  mtu: 0
  ntp: example
"""
SPEC = {"type": "object", "properties": {"mtu": {"type": "integer"}, "ntp": {"type": "string"}}}
DEFINITION = definition(
    {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
    },
    kind="SiteProfile",
    plural="siteprofiles",
    group="fleet.example.com",
)
TEMPLATE: Object = {
    "downstream": {"packageExpr": "packageDefault + '-' + repository.labels['region']"},
    "labels": {"team": "edge"},
    "labelExprs": [{"keyExpr": "'region'", "valueExpr": "repository.labels['region']"}],
    "packageContext": {"data": {"stage": "first"}, "dataExprs": [{"key": "site", "valueExpr": "target.name"}]},
    "pipeline": {
        "mutators": [
            {
                "image": "gcr.io/kpt-fn/set-namespace:v0.1",
                "name": "place",
                "configMapExprs": [{"key": "namespace", "valueExpr": "'web-' + repository.name"}],
            }
        ]
    },
    "injectors": [{"group": "fleet.example.com", "kind": "SiteProfile", "nameExpr": "repository.name + '-profile'"}],
}
BY_SELECTOR: Object = {
    "repositorySelector": {
        "matchLabels": {"fleet": "edge"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["canary", "prod"]}],
    },
    "template": TEMPLATE,
}
BY_NAME: Object = {
    "repositories": [{"name": ARCHIVE}],
    "template": {"deletionPolicy": "orphan", "injectors": [{"name": f"{APPROVED}-profile"}]},
}


@pytest.fixture(scope="module")
def porch_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server that starts its controllers."""
    server = PorchProcess(tmp_path_factory.mktemp("fleet") / "data", arguments=["--controllers"])
    server.start()
    yield server
    server.stop()


@dataclass
class Fleet:
    """The repositories, and how everything was when it was last looked at."""

    kubectl: Kubectl
    remotes: Mapping[str, Remote]
    versions: dict[str, str] = field(default_factory=dict)

    def written(self) -> dict[str, str]:
        """Wait until nothing is written any more; return what was since the last time."""
        before, self.versions = self.versions, steady(self.kubectl)
        return changed(before, self.versions)

    def apply_set(self, *targets: Object) -> None:
        self.kubectl.apply(
            {
                "apiVersion": "config.porch.kpt.dev/v1alpha2",
                "kind": "PackageVariantSet",
                "metadata": {"name": "fleet"},
                "spec": {
                    "upstream": {"repo": CATALOG, "package": "web", "revision": "v1"},
                    "targets": [*targets, BY_NAME],
                },
            }
        )

    def label(self, site: str, *labels: str) -> None:
        self.kubectl.ok("label", "repository", site, "--overwrite", *labels)


@pytest.fixture
def fleet(kubectl: Kubectl, git_http: GitServer, namespace: str) -> Fleet:
    """The blueprint, every repository, and a profile for each site; nothing selects the new one yet."""
    remotes = fleet_remotes(git_http, namespace, [CATALOG, *SITES, ARCHIVE, LAB])
    register_fleet(
        kubectl, remotes, {**{site: labels(site) for site in SITES}, LAB: {"fleet": "lab"}}, catalogs=[CATALOG]
    )
    kubectl.apply(DEFINITION, readable("fleet.example.com", "siteprofiles"))
    kubectl.ok("wait", "--for=condition=Established", "--timeout=60s", f"crd/{DEFINITION['metadata']['name']}")
    kubectl.apply(*(profile(site) for site in SITES))
    publish_blueprint(
        kubectl, CATALOG, "web", "v1", {"Kptfile": KPTFILE, "deployment.yaml": DEPLOYMENT, "profile.yaml": PROFILE}
    )
    return Fleet(kubectl, remotes)


def labels(site: str) -> dict[str, str]:
    found = {"region": region(site), "tier": "canary" if site in CANARIES else "prod"}
    return found if site == NEW else {**found, "fleet": "edge"}


def region(site: str) -> str:
    return REGIONS[SITES.index(site) % len(REGIONS)]


def profile(site: str) -> Object:
    return {
        "apiVersion": "fleet.example.com/v1",
        "kind": "SiteProfile",
        "metadata": {"name": f"{site}-profile"},
        "spec": spec_of(site),
    }


def spec_of(site: str) -> Object:
    return {"mtu": 1400 + SITES.index(site), "ntp": f"ntp.{site}.example.com"}


def variant(site: str) -> str:
    return f"fleet-{site}-web-{region(site)}"


def draft(site: str, number: int = 1) -> str:
    return f"{site}.web-{region(site)}.packagevariant-{number}"


def branch(site: str, number: int = 1) -> str:
    return f"refs/heads/drafts/web-{region(site)}/packagevariant-{number}"


@pytest.mark.timeout(900)
def test_a_fleet_follows_its_set_from_the_first_draft_to_the_end(fleet: Fleet) -> None:
    first_drafts(fleet)
    a_site_comes(fleet)
    a_site_leaves(fleet)
    the_template_changes_for_some(fleet)
    a_wrong_expression_writes_nothing(fleet)
    the_set_ends(fleet)


def first_drafts(fleet: Fleet) -> None:
    """Twenty-five variants by the selector and one by name, each with its draft, in the API and in Git."""
    fleet.apply_set(BY_SELECTOR)
    body = fleet_is_ready(fleet.kubectl, "fleet", 26)
    assert condition(body, "Stalled")["reason"] == "Valid"
    assert body["status"]["targets"]["failed"] == 0
    files, revisions = all_files(fleet.kubectl), by_name(fleet)
    for site in SITES[:25]:
        check_draft(files[draft(site)], revisions[draft(site)], site)
    archived = f"{ARCHIVE}.web.packagevariant-1"
    assert set(variants_of(fleet.kubectl, "fleet")) == {f"fleet-{ARCHIVE}-web", *map(variant, SITES[:25])}
    assert not [name for name in revisions if name.startswith((f"{NEW}.", f"{LAB}."))], "nobody selected these"
    for site in (SITES[0], SITES[13], LEAVING):
        eventually(lambda site=site: is_pushed(fleet, site, files[draft(site)]), timeout=60)  # type: ignore[misc]
    for name, revision in ((variant(APPROVED), draft(APPROVED)), (f"fleet-{ARCHIVE}-web", archived)):
        move(fleet.kubectl, revision, "Proposed", "Published")
        eventually(lambda name=name: tells_publication(fleet, name), timeout=FLEET_WAIT)  # type: ignore[misc]
    fleet_is_ready(fleet.kubectl, "fleet", 26)
    fleet.written()


def tells_publication(fleet: Fleet, name: str) -> None:
    (target,) = fleet.kubectl.json("get", "packagevariant", name)["status"]["downstreamTargets"]
    assert target["lifecycle"] == "Published"


def by_name(fleet: Fleet) -> dict[str, Object]:
    items = fleet.kubectl.json("get", "packagerevisions")["items"]
    return {one["metadata"]["name"]: one for one in items if one["spec"].get("revision") != -1}


def check_draft(files: Mapping[str, str], body: Object, site: str) -> None:
    """Compare with what the template says for the site."""
    assert body["spec"]["lifecycle"] == "Draft"
    given = body["metadata"]["labels"]
    assert (given["team"], given["region"]) == ("edge", region(site))
    context = yaml.safe_load(files["package-context.yaml"])["data"]
    name = f"web-{region(site)}"
    assert context == {"name": name, "package-path": name, "stage": "first", "site": site}
    deployment = yaml.safe_load(files["deployment.yaml"])["metadata"]
    assert (deployment["namespace"], deployment["labels"]) == (f"web-{site}", {"app": "web"}), "both pipelines ran"
    injected = yaml.safe_load(files["profile.yaml"])
    assert injected["spec"] == spec_of(site)
    assert injected["metadata"]["name"] == "site-profile"
    assert injected["metadata"]["annotations"]["kpt.dev/injected-resource-name"] == f"{site}-profile"
    assert files["profile.yaml"].startswith("# What the site is like")
    kptfile = yaml.safe_load(files["Kptfile"])
    assert kptfile["upstream"]["git"]["ref"] == "web/v1"
    assert kptfile["pipeline"]["mutators"][0]["name"] == f"PackageVariant.{variant(site)}.place.0"
    gates = {gate["conditionType"] for gate in body["spec"]["readinessGates"]}
    assert gates == {
        "PackagePipelinePassed",
        "PVOperationsComplete",
        "config.injection.SiteProfile.site-profile",
    }
    assert {condition(body, gate)["status"] for gate in gates} == {"True"}


def is_pushed(fleet: Fleet, site: str, files: Mapping[str, str]) -> None:
    remote = fleet.remotes[site].path
    found = refs(remote)
    assert branch(site) in found
    assert files_at(remote, found[branch(site)], f"web-{region(site)}") == files


def a_site_comes(fleet: Fleet) -> None:
    """One label on one Repository: one variant and one draft more, and nothing else is written."""
    fleet.label(NEW, "fleet=edge")
    fleet_is_ready(fleet.kubectl, "fleet", 27)
    assert fleet.written() == {f"v/{variant(NEW)}": "added", f"r/{draft(NEW)}": "added"}
    check_draft(all_files(fleet.kubectl)[draft(NEW)], by_name(fleet)[draft(NEW)], NEW)


def a_site_leaves(fleet: Fleet) -> None:
    """Its variant goes, and its draft with it, from Git too; its Repository is nobody's business."""
    fleet.label(LEAVING, "fleet=retired")
    fleet_is_ready(fleet.kubectl, "fleet", 26)
    assert fleet.written() == {f"v/{variant(LEAVING)}": "removed", f"r/{draft(LEAVING)}": "removed"}
    eventually(lambda: no_branch(fleet, LEAVING, 1), timeout=60)
    assert set(refs(fleet.remotes[LEAVING].path)) == {"refs/heads/main"}
    repository = fleet.kubectl.json("get", "repository", LEAVING)
    assert condition(repository, "Ready")["status"] == "True"


def no_branch(fleet: Fleet, site: str, number: int) -> None:
    assert branch(site, number) not in refs(fleet.remotes[site].path)


def the_template_changes_for_some(fleet: Fleet) -> None:
    """What an expression gives changes for the canaries only; the others' specs are what they were."""
    staged = copy.deepcopy(BY_SELECTOR)
    stage = {"key": "stage", "valueExpr": "target.labels['tier'] == 'canary' ? 'second' : 'first'"}
    staged["template"]["packageContext"]["dataExprs"].append(stage)
    fleet.apply_set(staged)
    body = fleet_is_ready(fleet.kubectl, "fleet", 26)
    counts = body["status"]["targets"]
    assert {key: counts[key] for key in ("created", "updated", "deleted")} == {"created": 0, "updated": 5, "deleted": 0}
    written = fleet.written()
    drafts = {f"r/{draft(site)}": "written" for site in CANARIES if site != APPROVED}
    assert written == {
        **{f"v/{variant(site)}": "written" for site in CANARIES},
        **drafts,
        f"r/{draft(APPROVED, 2)}": "added",
    }
    files = all_files(fleet.kubectl)
    for name in (*(key.removeprefix("r/") for key in drafts), draft(APPROVED, 2)):
        assert yaml.safe_load(files[name]["package-context.yaml"])["data"]["stage"] == "second"
    assert yaml.safe_load(files[draft(APPROVED)]["package-context.yaml"])["data"]["stage"] == "first", "it is published"


def a_wrong_expression_writes_nothing(fleet: Fleet) -> None:
    """Neither what has no value for a target nor what does not compile; what is mended afterwards is as it was."""
    right = fleet.kubectl.json("get", "packagevariantset", "fleet")["spec"]["targets"][0]
    for expression, reason, message in (
        (
            "repository.labels['zone']",
            "UnexpectedError",
            f"spec.targets[0] ({SITES[0]}/web-{region(SITES[0])}): template.labelExprs[0].valueExpr: no such key: zone",
        ),
        (
            "repository.labels['region'] +",
            "ValidationError",
            "spec.targets[0].template.labelExprs[0].valueExpr: line 1 column 30: Syntax error: mismatched input '<EOF>'",
        ),
        (
            "site.name",
            "ValidationError",
            "spec.targets[0].template.labelExprs[0].valueExpr: line 1 column 1: undeclared reference to 'site'",
        ),
    ):
        wrong = copy.deepcopy(right)
        wrong["template"]["labelExprs"][0]["valueExpr"] = expression
        fleet.apply_set(wrong)
        body = set_condition_is(fleet.kubectl, "fleet", "Stalled", "True", reason)
        assert message in condition(body, "Stalled")["message"]
        assert condition(body, "Ready")["status"] == "False"
        assert fleet.written() == {}
    eventually(lambda: tells_errors(fleet))
    fleet.apply_set(right)
    fleet_is_ready(fleet.kubectl, "fleet", 26)
    assert fleet.written() == {}


def tells_errors(fleet: Fleet) -> None:
    events = fleet.kubectl.json("get", "events", "--field-selector=involvedObject.name=fleet")["items"]
    assert {"UnexpectedError", "ValidationError"} <= {one["reason"] for one in events}


def the_set_ends(fleet: Fleet) -> None:
    """Variants go with their set, drafts with their variants; what is published is proposed for deletion, or left (``orphan``)."""
    fleet.kubectl.ok("delete", "packagevariantset", "fleet", "--timeout=60s")
    eventually(lambda: no_variant(fleet), timeout=FLEET_WAIT)
    archived = f"{ARCHIVE}.web.packagevariant-1"
    left = {name: one for name, one in by_name(fleet).items() if not name.startswith(f"{CATALOG}.")}
    assert {name: one["spec"]["lifecycle"] for name, one in left.items()} == {
        draft(APPROVED): "DeletionProposed",
        archived: "Published",
    }
    assert not [name for name, one in left.items() if one["metadata"].get("ownerReferences")]
    for site in (SITES[1], SITES[20], NEW):
        eventually(lambda site=site: no_branch(fleet, site, 1), timeout=60)  # type: ignore[misc]
    assert f"refs/tags/web-{region(APPROVED)}/v1" in refs(fleet.remotes[APPROVED].path)
    assert "refs/tags/web/v1" in refs(fleet.remotes[ARCHIVE].path)
    blueprint = fleet.kubectl.json("get", "packagerevision", f"{CATALOG}.web.v1")
    assert blueprint["spec"]["lifecycle"] == "Published"


def no_variant(fleet: Fleet) -> None:
    names = json.loads(fleet.kubectl.ok("get", "packagevariants", "-o", "json"))["items"]
    assert [one["metadata"]["name"] for one in names] == []
