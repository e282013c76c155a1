"""Previews of sets through a real kube-apiserver: of objects that are the cluster's, with the rights that the cluster tells.

Source: ``variants.md`` 6.1; ``kube-api.md`` 7.2, row 3.
"""

from typing import Any

from kubectl import Kubectl
from manifests import Register
from remotes import Remote
from set_place import package_set

Json = dict[str, Any]
BASENS = {"repo": "blueprints", "package": "basens", "revision": 1}


def asked(**spec: Any) -> Json:
    return {"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageVariantSetPreview", "spec": spec}


def of_objects(kind: str) -> Json:
    return package_set("fleet", {"objectSelector": {"apiVersion": "v1", "kind": kind}}, upstream=BASENS)


def test_a_set_of_the_cluster_is_previewed_with_the_callers_rights(
    kubectl: Kubectl, register: Register, test_blueprints_remote: Remote, empty_remote: Remote
) -> None:
    register(blueprints=test_blueprints_remote, deployments=empty_remote)
    target = {"repositories": [{"name": "deployments"}, {"name": "blueprints", "packageNames": ["other"]}]}
    # Paused, or the controllers would be faster than the preview.
    kubectl.apply(package_set("fleet", target, upstream=BASENS, suspend=True))
    kubectl.ok("create", "configmap", "deployments")

    stored = kubectl.create(asked(name="fleet"))["status"]
    selected = kubectl.create(asked(set=of_objects("ConfigMap")))["status"]
    unreadable = kubectl.create(asked(set=of_objects("ServiceAccount")))["status"]
    refused = kubectl("create", "-f", "-", "--validate=false", "--as=nobody", stdin=asked(name="fleet"))
    kubectl.ok("create", "role", "asker", "--verb=create", "--resource=packagevariantsetpreviews.porch.kpt.dev")
    kubectl.ok("create", "rolebinding", "asker", "--role=asker", "--user=asker")
    blind = kubectl("create", "-f", "-", "--validate=false", "--as=asker", stdin=asked(name="fleet"))

    assert [(one["name"], one["action"], one["admitted"]) for one in stored["targets"]] == [
        ("fleet-deployments-basens", "create", False),
        ("fleet-blueprints-other", "create", False),
    ]
    assert [one["name"] for one in selected["targets"] if one["downstream"]["repo"] == "deployments"]
    assert "serviceaccounts is forbidden" in unreadable["conditions"][0]["message"], (
        "the server itself may not list them"
    )
    assert 'cannot create resource "packagevariantsetpreviews"' in refused.stderr
    assert 'list resource "repositories.config.porch.kpt.dev"' in blind.stderr
    assert 'get resource "packagevariantsets.config.porch.kpt.dev" "fleet"' in blind.stderr


def test_row_03_four_resources_are_shown(kubectl: Kubectl) -> None:
    lines = kubectl.ok("api-resources", "--api-group=porch.kpt.dev", "--no-headers", "-o", "name").split()

    assert sorted(lines) == [
        f"{one}.porch.kpt.dev"
        for one in ("packagerevisionresources", "packagerevisions", "packages", "packagevariantsetpreviews")
    ]
