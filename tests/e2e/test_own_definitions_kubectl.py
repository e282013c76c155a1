"""Our own definitions as a user of kubectl meets them: listed, applied again, explained, and not removed."""

from pathlib import Path

from kubectl import Kubectl

CRDS = Path(__file__).parents[2] / "charts" / "porch" / "files" / "crds"
NAMES = {
    "packagevariants.config.porch.kpt.dev",
    "packagevariantsets.config.porch.kpt.dev",
    "repositories.config.porch.kpt.dev",
}
SET = """
apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata:
  name: example
spec:
  upstream: {repo: example-repo, package: foo, revision: v1}
  targets:
  - repositorySelector:
      matchLabels: {env: prod}
      packageNames: [foo-a]
    template:
      labelExprs: {key: org, valueExpr: "repository.labels['org']"}
"""


def test_they_are_listed_and_their_files_can_be_applied_again_and_again(kubectl: Kubectl) -> None:
    listed = {line.split()[0] for line in kubectl.ok("get", "crds", "--no-headers").splitlines()}

    kubectl.ok("apply", "-f", str(CRDS))
    again = kubectl.ok("apply", "-f", str(CRDS))

    assert listed >= NAMES
    assert [line.split()[1] for line in again.splitlines()] == ["unchanged"] * len(NAMES)


def test_another_definition_of_them_is_taken_with_a_warning_and_changes_nothing(kubectl: Kubectl) -> None:
    name = "repositories.config.porch.kpt.dev"
    before = kubectl.json("get", "crd", name)["spec"]

    patched = kubectl("patch", "crd", name, "--type=merge", "-p", '{"spec":{"names":{"shortNames":["r"]}}}')
    deleted = kubectl("delete", "crd", name)

    assert patched.returncode == 0
    assert "its own definition of it stays in force" in patched.stderr
    assert kubectl.json("get", "crd", name)["spec"] == before
    assert deleted.returncode == 1
    assert "Forbidden" in deleted.stderr


def test_sets_are_kept_as_their_authors_write_them_and_explained(kubectl: Kubectl) -> None:
    kubectl.ok("apply", "-f", "-", stdin=SET)
    expressions = kubectl.json("get", "pkgvarset", "example")["spec"]["targets"][0]["template"]["labelExprs"]
    printed = kubectl.ok("get", "pkgvarset").splitlines()
    explained = kubectl.ok("explain", "pkgvarset.spec.targets.repositorySelector.matchExpressions.operator")

    assert expressions == {"key": "org", "valueExpr": "repository.labels['org']"}
    assert printed[0].split() == ["NAME", "UPSTREAM", "TARGETS", "READY-TARGETS", "READY", "STALLED", "AGE"]
    assert "In, NotIn, Exists or DoesNotExist." in explained
