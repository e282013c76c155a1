"""``porch variants preview`` and ``convert`` on files: what they print, what their exit codes say, what they refuse."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from krm.cli import object_folder
from krm.cli.preview_output import as_text, exit_code
from krm.cli.variants import cli

Json = dict[str, Any]
SET_LABEL = "config.porch.kpt.dev/packagevariantset"
CONFIG = "config.porch.kpt.dev/v1alpha1"
UPSTREAM = {"repo": "blueprints", "package": "web", "revision": "v1"}


def repository(name: str, **labels: str) -> Json:
    return {"apiVersion": CONFIG, "kind": "Repository", "metadata": {"name": name, "labels": labels}}


def fleet(*targets: Json, name: str = "fleet", **spec: Any) -> Json:
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha2",
        "kind": "PackageVariantSet",
        "metadata": {"name": name},
        "spec": {"upstream": UPSTREAM, "targets": list(targets) or [{"repositorySelector": {}}], **spec},
    }


def variant(repo: str, uid: str = "u1", **spec: Any) -> Json:
    metadata = {"name": f"fleet-{repo}-web", "namespace": "default", "labels": {SET_LABEL: uid}}
    body = {"upstream": UPSTREAM, "downstream": {"repo": repo, "package": "web"}, **spec}
    return {"apiVersion": CONFIG, "kind": "PackageVariant", "metadata": metadata, "spec": body}


REVISION: Json = {
    "apiVersion": "porch.kpt.dev/v1alpha1",
    "kind": "PackageRevision",
    "metadata": {"name": "blueprints.web.v1"},
    "spec": {
        "repository": "blueprints",
        "packageName": "web",
        "workspaceName": "v1",
        "revision": 1,
        "lifecycle": "Published",
    },
}
STORED: Json = {**fleet(), "metadata": {"name": "fleet", "namespace": "default", "uid": "u1", "generation": 4}}


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    """A folder with two repositories, the blueprint, a stored set, and two variants of it."""
    folder = tmp_path / "objects"
    (folder / "more").mkdir(parents=True)
    listed = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [repository("edge-1", tier="a"), repository("edge-2"), STORED],
    }
    (folder / "all.yaml").write_text(yaml.safe_dump_all([listed, REVISION]))
    (folder / "more" / "variants.json").write_text(
        json.dumps({"kind": "PackageVariantList", "items": [variant("edge-1", labels={"a": "b"}), variant("edge-9")]})
    )
    (folder / "more" / "elsewhere.yml").write_text(
        yaml.safe_dump({**repository("other"), "metadata": {"name": "other", "namespace": "other"}})
    )
    (folder / "notes.txt").write_text("not: [an object")
    return folder


def run(*arguments: str | Path, stdin: str = "") -> Result:
    return CliRunner().invoke(cli, list(map(str, arguments)), input=stdin, env={"KUBECONFIG": "/nowhere"})


def written(folder: Path, *bodies: Json) -> Path:
    file = folder / "set.yaml"
    file.write_text(yaml.safe_dump_all(bodies))
    return file


def test_a_file_is_previewed_against_files(objects: Path, tmp_path: Path) -> None:
    done = run("preview", "-f", written(tmp_path, fleet()), "--objects", objects)

    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "ACTION   NOW   VARIANT            DOWNSTREAM   DETAIL",
        'update   yes   fleet-edge-1-web   edge-1/web   spec.labels: {"a": "b"} -> (none)',
        "create   yes   fleet-edge-2-web   edge-2/web   -",
        "delete   yes   fleet-edge-9-web   edge-9/web   -",
        "",
        "fleet: 1 to create, 1 to update, 1 to delete, 0 unchanged, 0 failed; 3 written by the next pass",
        "Stalled=False Valid: all validation checks passed",
        "Ready=True Reconciled: package variants successfully reconciled",
    ]


def test_the_exit_code_tells_what_a_pipeline_has_to_know(objects: Path, tmp_path: Path) -> None:
    def code(*arguments: str | Path) -> int:
        return run("preview", *arguments, "--objects", objects).exit_code

    wrong = {"repositorySelector": {}, "template": {"downstream": {"packageExpr": "target.none"}}}
    (tmp_path / "set.json").write_text(json.dumps(fleet(wrong)))

    assert code("fleet") == 0
    assert code("fleet", "--exit-code") == 3
    assert code("fleet", "--max-deletions", "0") == 2
    assert code("-f", tmp_path / "set.json") == 2
    assert code("-f", written(tmp_path, fleet({}))) == 2
    assert code("none") == 1
    assert code("fleet", "--max-deletions", "many") == 1
    assert code() == code("fleet", "-f", tmp_path / "set.json") == code("fleet", "--against-cluster") == 1
    assert code("--no-such-option") == 1
    assert run("preview", "fleet").exit_code == 1, "there is no server"


def test_a_document_for_programs_has_every_set_of_a_file(objects: Path, tmp_path: Path) -> None:
    file = written(tmp_path, fleet(), fleet({"repositories": [{"name": "edge-2"}]}, name="other"))
    as_json = json.loads(run("preview", "-f", file, "--objects", objects, "-o", "json").stdout)
    as_yaml = [*yaml.safe_load_all(run("preview", "-f", file, "--objects", objects, "-o", "yaml").stdout)]
    one = json.loads(run("preview", "-f", "-", "--objects", objects, "-o", "json", stdin=json.dumps(fleet())).stdout)

    assert as_json["items"] == as_yaml
    assert [body["status"]["summary"]["create"] for body in as_yaml] == [1, 1]
    assert one == as_yaml[0]
    assert one["status"]["conditions"][0]["observedGeneration"] == 4, "it is the stored set, not changed"


def test_what_a_folder_does_not_define_is_not_served(objects: Path, tmp_path: Path) -> None:
    teams = {"objectSelector": {"apiVersion": "x.io/v1", "kind": "Team"}}
    file = written(tmp_path, fleet(teams))
    without = run("preview", "-f", file, "--objects", objects)
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "teams.x.io"},
        "spec": {"group": "x.io", "names": {"kind": "Team"}, "versions": [{"name": "v1"}]},
    }
    (objects / "crd.yaml").write_text(yaml.safe_dump(crd))
    with_definition = run("preview", "-f", file, "--objects", objects)

    assert without.exit_code == 2
    assert 'no matches for kind "Team" in version "x.io/v1"' in without.stdout
    assert with_definition.exit_code == 0
    assert "Warning: spec.targets[0] selects nothing" in with_definition.stdout


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "set.yaml: "),
        ("- 1\n", "not every document is an object"),
        ("kind: ConfigMap\n", "there is no PackageVariantSet"),
        (
            "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: PackageVariantSet\nmetadata: {name: old}\n",
            "porch variants convert -f",
        ),
        (
            "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\nmetadata: {name: a, namespace: b}\nspec: {}\n",
            "a is of namespace b, not c",
        ),
        ("a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\n" * 2, "set.yaml: "),
    ],
)
def test_a_file_that_cannot_be_used_is_named(objects: Path, tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(text)
    done = run("preview", "-f", file, "--objects", objects, "-n", "c")

    assert done.exit_code == 1
    assert told in done.stderr
    assert done.stdout == ""


def test_folders_are_bounded_and_links_out_of_them_not_followed(
    objects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside.yaml").write_text(yaml.safe_dump(repository("outside")))
    (objects / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    linked = run("preview", "fleet", "--objects", objects)
    monkeypatch.setattr(object_folder, "MAX_FILES", 2)
    many = run("preview", "fleet", "--objects", objects)

    assert "outside" not in linked.stdout
    assert many.exit_code == 1
    assert "more than 2 files" in many.stderr


def test_an_answer_is_told_on_lines_of_their_own() -> None:
    status = {
        "summary": {"create": 1, "failed": 1, "omitted": 7},
        "targets": [
            {"downstream": {"repo": "r", "package": "p"}, "error": "first\nsecond"},
            {
                "downstream": {"repo": "r", "package": "q"},
                "name": "n",
                "action": "update",
                "admitted": False,
                "reason": "later",
                "diff": [{"path": f"spec.{one}", "new": "x" * 100} for one in "abc"],
            },
        ],
    }
    lines = list(as_text("fleet", status))

    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines)
    assert lines[1].split()[:2] == ["error", "-"]
    assert lines[1].endswith("first second\n")
    assert "later; spec.a: (none) -> " in lines[2]
    assert lines[2].endswith(", and 1 more\n")
    assert "7 entries left out" in lines[-1]
    assert exit_code([status], tell_changes=True) == 2
    assert exit_code([{"summary": {"delete": 1}}], tell_changes=True) == 3


def test_sets_of_the_old_version_are_converted(tmp_path: Path) -> None:
    old: Json = {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "PackageVariantSet",
        "metadata": {"name": "old", "namespace": "default"},
        "spec": {
            "upstream": {"package": {"repo": "blueprints", "name": "web"}, "revision": "v1"},
            "targets": [{"repositories": {"matchLabels": {"a": "b"}}}],
        },
    }
    names = {"baseName": {"fromField": "spec.secret"}}
    unclear = {
        **old,
        "metadata": {"name": "unclear"},
        "spec": {**old["spec"], "targets": [{"repositories": {}, "packageName": names}]},
    }
    good = run("convert", "-f", written(tmp_path, old, repository("edge-1")))
    bad = run("convert", "-f", written(tmp_path, unclear))
    nothing = run("convert", "-f", "-")

    converted = list(yaml.safe_load_all(good.stdout))
    assert (good.exit_code, good.stderr) == (0, "")
    assert converted[0]["apiVersion"] == "config.porch.kpt.dev/v1alpha2"
    assert converted[0]["spec"]["targets"] == [{"repositorySelector": {"matchLabels": {"a": "b"}}}]
    assert converted[1] == repository("edge-1")
    assert bad.exit_code == 1
    assert bad.stderr.startswith("unclear: spec.targets[0].packageName.baseName.fromField: spec.secret cannot be read")
    assert yaml.safe_load(bad.stdout)["metadata"]["name"] == "unclear"
    assert (nothing.exit_code, nothing.stdout) == (1, "")
