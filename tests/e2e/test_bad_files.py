"""Package contents that must not get in: each save is refused naming the file, and the draft stays as it was."""

import time
from pathlib import Path

import pytest
from drafts import CONFIG_MAP, Revision, accepted, draft, refused
from manifests import Object, Register
from porch_client import PorchClient
from porch_process import PorchProcess
from remotes import Remote

LIMIT = 6 * 1024 * 1024
"""Default bytes of a request body."""


@pytest.fixture
def app(porch: PorchClient, register: Register, empty_remote: Remote) -> Revision:
    """A draft of the package app, pushed."""
    register(deployments=empty_remote)
    return draft(porch, "deployments", empty_remote)


def save_is_refused(app: Revision, files: dict[str, str | None], *words: str) -> Object:
    before = app.snapshot()
    status = refused(app.porch.save(app.name, files), 422, "Invalid", *words)
    assert app.look() == before
    accepted(app.porch.save(app.name, {"fine.txt": "a good save still works\n"}))
    assert isinstance(status, dict)
    return status


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("../escape.yaml", id="parent"),
        pytest.param("a/../../escape.yaml", id="parent-inside"),
        pytest.param("/etc/passwd", id="absolute"),
        pytest.param("./here.yaml", id="dot"),
        pytest.param("a//b.yaml", id="empty-segment"),
        pytest.param("", id="empty"),
        pytest.param("folder/", id="trailing-slash"),
        pytest.param("a\\b.yaml", id="backslash"),
        pytest.param("nul\u0000.yaml", id="nul"),
        pytest.param("bell\u0007.yaml", id="control-character"),
        pytest.param(".git/config", id="dot-git"),
        pytest.param("sub/.GIT/hooks/post-checkout", id="dot-git-in-capitals"),
        pytest.param("git~1/config", id="dot-git-of-ntfs"),
        pytest.param(".g\u200cit/config", id="dot-git-of-hfs"),
        pytest.param("x" * 256 + ".yaml", id="over-long-name"),
        pytest.param("/".join(["folder"] * 200) + "/deep.yaml", id="over-long-path"),
        pytest.param("Kptfile/inner.yaml", id="file-and-folder-at-once"),
    ],
)
def test_a_path_that_leaves_the_package_or_means_something_to_git_is_refused(path: str, app: Revision) -> None:
    status = save_is_refused(app, {path: CONFIG_MAP})

    assert status["details"]["causes"][0]["field"].startswith("spec.resources")


def test_over_many_files_are_refused(app: Revision) -> None:
    save_is_refused(app, {f"many/{number}": "" for number in range(10_001)}, "10000")


def test_a_body_of_100_mb_is_refused_and_not_kept_in_memory(app: Revision, porch_server: PorchProcess) -> None:
    before = app.snapshot()
    body = app.porch.resources(app.name).object
    body["spec"]["resources"]["huge.txt"] = "x" * 100_000_000
    resident = resident_bytes(porch_server.pid)

    answer = app.porch.request("PUT", app.porch.path("packagerevisionresources", app.name), body)

    refused(answer, 413, "RequestEntityTooLarge", str(LIMIT))
    assert resident_bytes(porch_server.pid) - resident < 30_000_000
    assert app.look() == before


def resident_bytes(pid: int) -> int:
    """Return a process's resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def test_five_megabytes_are_taken_and_come_back_as_they_were(app: Revision) -> None:
    text = "x" * (5 * 1024 * 1024)

    accepted(app.porch.save(app.name, {"large.txt": text}))

    assert app.files["large.txt"] == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("a: [1, 2", ["line"], id="unclosed"),
        pytest.param("a: b: c", ["line 1"], id="nested-mapping"),
        pytest.param("\tkey: value", ["line 1"], id="tab"),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n", ["name"], id="duplicate-key"
        ),
        pytest.param("a: &a [x]\nb: *b\n", ["b"], id="unknown-alias"),
    ],
)
def test_invalid_yaml_is_refused_with_file_and_line(text: str, words: list[str], app: Revision) -> None:
    save_is_refused(app, {"broken.yaml": text}, "broken.yaml", *words)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)), id="aliases"),
        pytest.param("a: " + "[" * 50_000, id="depth"),
        pytest.param("a:\n" + "".join(f"{' ' * n}k:\n" for n in range(1, 2_000)), id="depth-of-mappings"),
    ],
)  # fmt: skip
def test_a_yaml_bomb_is_refused_at_once(text: str, app: Revision) -> None:
    started = time.monotonic()

    save_is_refused(app, {"bomb.yaml": text}, "bomb.yaml")

    assert time.monotonic() - started < 30, "or it is expanded, which takes for ever"


@pytest.mark.parametrize(
    ("kptfile", "words"),
    [
        pytest.param(None, ["package must contain Kptfile at root"], id="none"),
        pytest.param("", ["Kptfile"], id="empty"),
        pytest.param("just text", ["Kptfile"], id="no-mapping"),
        pytest.param("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\n", ["Kptfile"], id="another-kind"),
        pytest.param(
            "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\npipline: {}\n",
            ["pipline"],
            id="unknown-field",
        ),
        pytest.param(
            "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\npipeline:\n  mutators: 5\n",
            ["pipeline.mutators"],
            id="wrong-type",
        ),
    ],
)
def test_an_invalid_kptfile_is_refused(kptfile: str | None, words: list[str], app: Revision) -> None:
    save_is_refused(app, {"Kptfile": kptfile}, *words)


def test_a_failing_pipeline_refuses_the_save_and_names_the_image(app: Revision) -> None:
    kptfile = app.files["Kptfile"] + "pipeline:\n  mutators:\n  - image: registry.example/nobody/has-this:v9\n"

    save_is_refused(
        app,
        {"Kptfile": kptfile},
        "Package NOT pushed to remote. Fix locally (until 'kpt fn render' succeeds) and retry. Details: ",
        "registry.example/nobody/has-this:v9",
    )


def test_an_executable_in_a_pipeline_is_refused(app: Revision) -> None:
    kptfile = app.files["Kptfile"] + "pipeline:\n  mutators:\n  - exec: /bin/true\n"

    save_is_refused(app, {"Kptfile": kptfile}, "exec")
