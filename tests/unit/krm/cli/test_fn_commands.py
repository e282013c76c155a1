"""``porch fn`` as users run it: a program with options, folders, pipes, messages and exit codes."""

import contextlib
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from krm.cli.fn import cli
from krm.package.folder import read_folder
from krm.package.yaml_reader import read_document

CATALOG = "ghcr.io/kptdev/krm-functions-catalog"
KPTFILE = """\
# the package
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: app
pipeline:
  mutators:
    # who owns it
    - image: set-namespace:v0.4.1
      configMap:
        namespace: staging
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web # the name
spec:
  replicas: 3
"""
CUSTOM = "apiVersion: example.com/v1\nkind: Custom\nmetadata:\n  name: custom\nspec: {}\n"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Lay down a package of two resources and a file that is none."""
    package = tmp_path / "app"
    package.mkdir()
    (package / "Kptfile").write_text(KPTFILE)
    (package / "web.yaml").write_text(DEPLOYMENT)
    (package / "custom.yaml").write_text(CUSTOM)
    (package / "README.md").write_text("# app\n")
    return package


@dataclass(frozen=True, slots=True)
class _Ran:
    """What a line of commands did: all they said, and the exit code of the last."""

    returncode: int
    stdout: str
    stderr: str


def _porch(line: str, folder: Path, *, given: str = "", **environment: str) -> _Ran:
    """Run commands joined by ``|`` in ``folder``, in this process; without any container runtime."""
    variables = {"PATH": "/usr/bin:/bin", "KRM_FN_RUNTIME": None, "KPT_IMAGE_PREFIX": None, **environment}
    runner = CliRunner(env=variables)
    stdout, stderr, code = given, "", 0
    with contextlib.chdir(folder):
        for command in line.split(" | "):
            result = runner.invoke(cli, shlex.split(command)[2:], input=stdout, catch_exceptions=False)
            stdout, stderr, code = result.stdout, stderr + result.stderr, result.exit_code
    return _Ran(code, stdout, stderr)


class TestRender:
    def test_package_is_rendered_in_place(self, app: Path) -> None:
        result = _porch("porch fn render", app)

        assert (result.returncode, result.stdout) == (0, "")
        assert result.stderr.startswith(
            f'Package "app":\n[RUNNING] "{CATALOG}/set-namespace:v0.4.1" on package "app"\n'
            f'[PASS] "{CATALOG}/set-namespace:v0.4.1" in 0s\n  [Results]:\n    [info]: '
        )
        assert result.stderr.endswith("\n\nSuccessfully executed 1 function(s) in 1 package(s).\n")
        assert "  namespace: staging\n" in (app / "web.yaml").read_text()
        assert "  name: web # the name\n" in (app / "web.yaml").read_text()
        assert (app / "Kptfile").read_text().startswith("# the package\n")
        assert "reason: RenderSuccess" in (app / "Kptfile").read_text()

    def test_second_render_touches_no_resource_file(self, app: Path) -> None:
        _porch("porch fn render", app)
        before = (app / "web.yaml").stat().st_mtime_ns

        assert _porch("porch fn render", app).returncode == 0

        assert (app / "web.yaml").stat().st_mtime_ns == before

    def test_out_of_place_leaves_the_package_and_copies_all_of_it(self, app: Path) -> None:
        before = read_folder(app)

        result = _porch("porch fn render app -o out", app.parent)

        assert result.returncode == 0
        assert read_folder(app) == before
        out = read_folder(app.parent / "out")
        assert sorted(out) == sorted(before)
        assert b"namespace: staging" in out["web.yaml"].data
        assert b"status" not in out["Kptfile"].data

    @pytest.mark.parametrize("command", ["render app -o out", "eval app -i no-op -o out", "sink out"])
    def test_output_that_exists_is_refused_before_anything_runs(self, app: Path, command: str) -> None:
        (app.parent / "out").mkdir()

        result = _porch(f"porch fn {command}", app.parent)

        assert result.returncode == 1
        assert result.stderr == 'Error: directory "out" already exists, please delete the directory and retry\n'

    def test_package_may_be_named_by_a_link(self, app: Path) -> None:
        (app.parent / "link").symlink_to("app")

        result = _porch("porch fn render link", app.parent)

        assert result.returncode == 0
        assert f'[WARN] resolved symlink "link" to "{app}"' in result.stderr
        assert 'Package "app":' in result.stderr
        assert "namespace: staging" in (app / "web.yaml").read_text()

    def test_standard_output_gets_a_resource_list(self, app: Path) -> None:
        result = _porch("porch fn render app -o stdout", app.parent)

        items = read_document(result.stdout)["items"]
        assert result.stdout.startswith(
            "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n# the package\n"
        )
        assert [item["kind"] for item in items] == ["Kptfile", "Custom", "Deployment"]
        assert items[2]["metadata"] == {
            "name": "web",
            "namespace": "staging",
            "annotations": {
                "config.kubernetes.io/index": "0",
                "config.kubernetes.io/path": "web.yaml",
                "internal.config.kubernetes.io/index": "0",
                "internal.config.kubernetes.io/path": "web.yaml",
                "internal.config.kubernetes.io/seqindent": "compact",
            },
        }

    def test_unwrapped_resources_are_bare(self, app: Path) -> None:
        result = _porch("porch fn render app -o unwrap", app.parent)

        assert result.stdout.endswith(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web # the name\n"
            "  namespace: staging\nspec:\n  replicas: 3\n"
        )

    def test_functions_chain_through_pipes(self, app: Path) -> None:
        line = (
            "porch fn render app -o stdout --results-dir one"
            " | porch fn eval - -i set-labels:v0.2 -- tier=db"
            " | porch fn eval - -i set-annotations:v0.1.4 -- owner=me"
            " | porch fn sink out"
        )

        result = _porch(line, app.parent)

        assert result.returncode == 0, result.stderr
        written = (app.parent / "out" / "web.yaml").read_text()
        assert "  name: web # the name\n" in written
        assert read_document(written)["metadata"] == {
            "name": "web",
            "namespace": "staging",
            "labels": {"tier": "db"},
            "annotations": {"owner": "me"},
        }
        assert read_document((app.parent / "one" / "results.yaml").read_text())["exitCode"] == 0

    def test_command_needs_permission(self, app: Path) -> None:
        (app / "Kptfile").write_text(
            KPTFILE.replace("image: set-namespace:v0.4.1", "exec: 'sed \"s/name: web/name: shop/\"'")
        )
        refused = _porch("porch fn render", app)
        before = (app / "web.yaml").read_text()

        allowed = _porch("porch fn render --allow-exec", app)

        assert refused.returncode == 1
        assert "Error: must run with `--allow-exec` option to allow running function binaries\n" in refused.stderr
        assert before == DEPLOYMENT
        assert allowed.returncode == 0
        assert '[RUNNING] "sed \\"s/name: web/name: shop/\\"" on package "app"\n[PASS]' in allowed.stderr
        assert (app / "web.yaml").read_text() == DEPLOYMENT.replace("name: web", "name: shop")

    def test_what_a_command_says_is_shown_and_cannot_drive_the_terminal(self, app: Path) -> None:
        script = app.parent / "fn.sh"
        script.write_text("#!/bin/sh\nprintf 'one\\n\\033[2Jtwo\\n' >&2\nseq 3 9 >&2\nexit 4\n")
        script.chmod(0o755)
        (app / "Kptfile").write_text(KPTFILE.replace("image: set-namespace:v0.4.1", "exec: ../fn.sh"))

        result = _porch("porch fn render --allow-exec", app)
        whole = _porch("porch fn render --allow-exec --truncate-output=false", app)

        assert result.returncode == 1
        assert (
            '[FAIL] "../fn.sh" in 0s\n  Stderr:\n    one\n    [2Jtwo\n    3\n    4\n'
            "    ...(5 line(s) truncated, use '--truncate-output=false' to disable)\n  Exit code: 4\n\n"
            "Failed to execute any functions in 1 package(s).\n"
        ) in result.stderr
        assert "    8\n    9\n  Exit code: 4\n" in whole.stderr
        assert "reason: RenderFailed" in (app / "Kptfile").read_text()
        assert (app / "web.yaml").read_text() == DEPLOYMENT

    def test_failure_after_success_is_partial(self, app: Path) -> None:
        more = "    - image: set-labels:v0.2\n      configPath: custom.yaml\n"
        (app / "Kptfile").write_text(KPTFILE + more)

        result = _porch("porch fn render --results-dir results", app)

        assert result.returncode == 1
        assert (
            "Partially executed 1 function(s) in 1 package(s).\nFor complete results, see results/results.yaml\n"
            in (result.stderr)
        )
        assert read_document((app / "results" / "results.yaml").read_text())["exitCode"] == 1
        assert (app / "web.yaml").read_text() == DEPLOYMENT

    def test_short_names_get_the_prefix_of_the_option_or_the_environment(self, app: Path) -> None:
        by_option = _porch("porch fn render --image-prefix registry.example/a -o unwrap", app, KPT_IMAGE_PREFIX="b.c/d")
        by_environment = _porch("porch fn render -o unwrap", app, KPT_IMAGE_PREFIX="b.c/d")
        wrong = _porch("porch fn render --image-prefix https://x", app)

        assert '"registry.example/a/set-namespace:v0.4.1"' in by_option.stderr
        assert '"b.c/d/set-namespace:v0.4.1"' in by_environment.stderr
        assert (by_option.returncode, by_environment.returncode, wrong.returncode) == (0, 0, 1)
        assert wrong.stderr == ('Error: invalid image prefix "https://x": must not include a scheme (e.g. https://)\n')

    def test_folder_without_a_package_is_named(self, tmp_path: Path) -> None:
        nothing = _porch("porch fn render", tmp_path)
        nowhere = _porch("porch fn render nowhere", tmp_path)

        assert (nothing.returncode, nothing.stderr) == (1, f'Error: No Kptfile found at "{tmp_path}".\n')
        assert (nowhere.returncode, nowhere.stderr) == (1, 'Error: "nowhere" is no directory\n')

    def test_unknown_image_is_told_with_what_would_run_it(self, app: Path) -> None:
        (app / "Kptfile").write_text(KPTFILE.replace("set-namespace:v0.4.1", "example.com/mine:v1"))

        result = _porch("porch fn render", app)

        assert result.returncode == 1
        for part in ('"example.com/mine:v1" not found', "KRM_FN_RUNTIME", "--executable"):
            assert part in result.stderr

    def test_executable_and_container_runtime_come_from_options_and_environment(self, app: Path) -> None:
        tools = app.parent / "tools"
        tools.mkdir()
        (tools / "podman").write_text("#!/bin/sh\nexec sed s/web/container/\n")
        (tools / "edit").write_text("#!/bin/sh\nexec sed s/web/executable/\n")
        for tool in tools.iterdir():
            tool.chmod(0o755)
        (app / "Kptfile").write_text(KPTFILE.replace("set-namespace:v0.4.1", "example.com/mine:v1"))
        path = f"{tools}:/usr/bin:/bin"

        by_program = _porch(f"porch fn render -o unwrap --executable 'example.com/*={tools}/edit'", app)
        by_container = _porch("porch fn render -o unwrap", app, KRM_FN_RUNTIME="podman", PATH=path)
        wrong = _porch("porch fn render -o unwrap", app, KRM_FN_RUNTIME="rkt")

        assert "name: executable" in by_program.stdout
        assert "name: container" in by_container.stdout
        assert (wrong.returncode, wrong.stderr.splitlines()[-1]) == (
            1,
            'Error: KRM_FN_RUNTIME="rkt" must be one of docker, podman, nerdctl',
        )


class TestEval:
    def test_function_sees_all_of_the_folder(self, app: Path) -> None:
        sub = app / "db"
        sub.mkdir()
        (sub / "Kptfile").write_text(KPTFILE.replace("app", "db"))

        result = _porch("porch fn eval app -i set-annotations:v0.1.4 -- a=b", app.parent)

        assert result.returncode == 0
        assert result.stderr.startswith(f'[RUNNING] "{CATALOG}/set-annotations:v0.1.4"\n[PASS] ')
        for file in ("Kptfile", "web.yaml", "custom.yaml", "db/Kptfile"):
            assert read_document((app / file).read_text())["metadata"]["annotations"] == {"a": "b"}

    def test_ignored_subpackages_are_left_alone(self, app: Path) -> None:
        (app / "db").mkdir()
        (app / "db" / "broken.yaml").write_text("{")
        (app / "db" / "Kptfile").write_text("{")
        (app / ".krmignore").write_text("db\n")

        assert _porch("porch fn eval app -i no-op", app.parent).returncode == 0

    def test_selectors_are_one_selector(self, app: Path) -> None:
        matched = _porch(
            "porch fn eval app -i set-labels:v0.2 --match-kind Deployment --match-name web -- a=b", app.parent
        )
        excluded = _porch("porch fn eval app -i set-labels:v0.2 --exclude-labels a=b -- c=d", app.parent)

        assert "on 1 resource(s)\n" in matched.stderr
        assert "on 2 resource(s)\n" in excluded.stderr
        assert read_document((app / "web.yaml").read_text())["metadata"]["labels"] == {"a": "b"}
        assert read_document((app / "custom.yaml").read_text())["metadata"]["labels"] == {"c": "d"}

    def test_configuration_in_the_folder_is_no_input(self, app: Path) -> None:
        config = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\ndata:\n  a: b\n"
        (app / "config.yaml").write_text(config)

        result = _porch("porch fn eval app -i set-labels:v0.2 --fn-config app/config.yaml", app.parent)

        assert result.returncode == 0
        assert (app / "config.yaml").read_text() == config
        assert read_document((app / "web.yaml").read_text())["metadata"]["labels"] == {"a": "b"}

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ("-i set-labels --fn-config nowhere.yaml", "missing function config file: nowhere.yaml"),
            ("-i set-labels --fn-config nameless", 'functionConfig "nameless": resource must have `metadata.name`'),
            ("-i set-labels --fn-config app/web.yaml -- a=b", "only be specified without function config file"),
            ("-i set-labels -- Kind a", 'function argument "a" must be written NAME=VALUE'),
            ("-i set-labels --match-labels a -- a=b", '"a" must be written NAME=VALUE'),
            ("-i a:b:c", 'function image reference "a:b:c" is invalid'),
            ("-i no-op --exec cat", "must specify one of `--image` and `--exec`"),
            ("", "must specify one of `--image` and `--exec`"),
            ("-i set-labels -s -o stdout -- a=b", "only when it runs in place"),
            ("-i set-labels -s -- SetLabels a=b", "of kind ConfigMap only"),
            ("-i set-labels -s --fn-config outside", "must be inside the package"),
        ],
    )
    def test_wrong_use_is_told_before_anything_runs(self, app: Path, options: str, problem: str) -> None:
        (app.parent / "nameless").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n")
        (app.parent / "outside").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
        before = read_folder(app)

        result = _porch(f"porch fn eval app {options}", app.parent)

        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.startswith("Error: ")
        assert problem in result.stderr
        assert "[PASS]" not in result.stderr
        assert read_folder(app) == before

    def test_resources_that_are_none_are_refused_on_both_sides(self, app: Path) -> None:
        returned = _porch("porch fn eval app --exec \"sed 's/name: web.*/x: y/'\"", app.parent)
        (app / "nonkrm.yaml").write_text("a: b\n")
        given = _porch("porch fn eval app -i no-op", app.parent)

        message = "output resource list must contain only KRM resources: web.yaml: resource must have `metadata.name`"
        assert (returned.returncode, message in returned.stderr) == (1, True)
        assert (given.returncode, given.stderr) == (
            1,
            "error: input resource list must contain only KRM resources: nonkrm.yaml: resource must have `apiVersion`\n",
        )
        assert (app / "web.yaml").read_text() == DEPLOYMENT

    def test_saved_function_is_added_and_then_updated(self, app: Path) -> None:
        added = _porch("porch fn eval app -i set-labels:v0.2.0 -s --match-kind Deployment -- tier=db", app.parent)
        first = (app / "Kptfile").read_text()
        updated = _porch("porch fn eval app -i set-labels:v0.2.2 -s -- tier=web", app.parent)

        assert f'Added "{CATALOG}/set-labels:v0.2.0" as mutator in the Kptfile.\n' in added.stderr
        assert first == KPTFILE + (
            f"    - image: {CATALOG}/set-labels:v0.2.0\n      configMap:\n        tier: db\n"
            "      selectors:\n        - kind: Deployment\n"
        )
        assert f'Updated "{CATALOG}/set-labels:v0.2.2" as mutator in the Kptfile.\n' in updated.stderr
        assert read_document((app / "Kptfile").read_text())["pipeline"]["mutators"][1] == {
            "image": f"{CATALOG}/set-labels:v0.2.2",
            "configMap": {"tier": "web"},
        }
        assert "# the package\n" in (app / "Kptfile").read_text()
        assert "    # who owns it\n" in (app / "Kptfile").read_text()

    def test_saved_function_names_its_command_and_configuration(self, app: Path) -> None:
        (app / "cfg").mkdir()
        (app / "cfg" / "fn.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\n")

        result = _porch("porch fn eval app --exec cat -t validator -s --fn-config app/cfg/fn.yaml", app.parent)

        assert result.returncode == 0
        assert 'Added "cat" as validator in the Kptfile.\n' in result.stderr
        pipeline = read_document((app / "Kptfile").read_text())["pipeline"]
        assert pipeline["validators"] == [{"exec": "cat", "configPath": "cfg/fn.yaml"}]

    def test_function_that_fails_is_not_saved(self, app: Path) -> None:
        before = read_folder(app)

        result = _porch("porch fn eval app --exec false -s", app.parent)

        assert result.returncode == 1
        assert '[FAIL] "false" in 0s\n' in result.stderr
        assert read_folder(app) == before

    def test_tag_may_be_a_range(self, app: Path) -> None:
        result = _porch("porch fn eval app -i set-labels:v9 --tag '~0.1' -- a=b", app.parent)

        assert f'[PASS] "{CATALOG}/set-labels:v0.1.5"' in result.stderr

    def test_results_travel_with_the_resources(self, app: Path) -> None:
        line = "porch fn eval app -i set-labels:v0.2 -o stdout -- a=b | porch fn eval - -i set-labels:v0.2 -- c=d"

        result = _porch(line, app.parent)

        results = read_document(result.stdout)["results"]
        assert [one["message"] for one in results] == ["set 4 labels in total", "set 4 labels in total"]
        assert (app / "web.yaml").read_text() == DEPLOYMENT

    def test_failure_in_a_pipe_writes_nothing(self, app: Path) -> None:
        result = _porch("porch fn source app | porch fn eval - --exec false", app.parent)

        assert (result.returncode, result.stdout) == (1, "")

    def test_deleted_resources_take_their_files_along(self, app: Path) -> None:
        some = _porch("porch fn eval app --exec \"sed '/^items:/,$d'\" --match-kind Custom", app.parent)
        left = sorted(read_folder(app))
        rest = _porch("porch fn eval app --exec \"sed '/^items:/,$d'\"", app.parent)

        assert (some.returncode, rest.returncode) == (0, 0)
        assert left == ["Kptfile", "README.md", "web.yaml"]
        assert sorted(read_folder(app)) == ["README.md"]


class TestSourceAndSink:
    def test_folder_comes_out_of_the_pipe_as_it_went_in(self, app: Path) -> None:
        result = _porch("porch fn source app | porch fn sink out", app.parent)

        assert result.returncode == 0, result.stderr
        assert {**read_folder(app.parent / "out"), "README.md": None} == {**read_folder(app), "README.md": None}

    def test_ignored_files_are_no_resources(self, app: Path) -> None:
        (app / ".krmignore").write_text("custom.yaml\n")

        result = _porch("porch fn source app", app.parent)

        assert [item["kind"] for item in read_document(result.stdout)["items"]] == ["Kptfile", "Deployment"]

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            ("", "expected a ResourceList, got nothing"),
            ("{", "yaml: line"),
            ("kind: ResourceList", "a ResourceList has apiVersion"),
            (
                "kind: X\nmetadata: {annotations: {config.kubernetes.io/path: ../x.yaml}}",
                "function must not modify resources outside of package: resource has path ../x.yaml",
            ),
            (
                "kind: X\nmetadata: {annotations: {config.kubernetes.io/path: /etc/x.yaml}}",
                "package paths may not be absolute paths",
            ),
            (
                "kind: X\nmetadata: {annotations: {config.kubernetes.io/path: .git/hooks/x}}",
                "names Git's own directory",
            ),
        ],
    )
    def test_sink_writes_nothing_of_what_it_cannot_write_whole(self, tmp_path: Path, given: str, problem: str) -> None:
        result = _porch("porch fn sink out", tmp_path, given=given)

        assert result.returncode == 1
        assert result.stderr.startswith("Error: ")
        assert problem in result.stderr
        assert list(tmp_path.iterdir()) == []

    def test_resources_without_a_place_get_one(self, tmp_path: Path) -> None:
        given = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: ns\n"

        result = _porch("porch fn sink out", tmp_path, given=given)

        assert result.returncode == 0, result.stderr
        assert (tmp_path / "out" / "ns" / "configmap_a.yaml").read_text() == given


def test_real_pipe_carries_resources_between_processes(app: Path) -> None:
    porch = f"{shlex.quote(sys.executable)} -m apiserver fn"
    line = f"{porch} source app | {porch} eval - -i set-labels:v0.2 -- a=b | {porch} sink out"
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path.cwd())}

    result = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=app.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (result.returncode, result.stdout) == (0, "")
    assert "  name: web # the name\n  labels:\n    a: b\n" in (app.parent / "out" / "web.yaml").read_text()


def test_local_commands_load_nothing_of_the_server(app: Path) -> None:
    heavy = ("pydantic", "fastapi", "sqlalchemy", "typer", "dulwich", "uvicorn", "apiserver.settings", "semver", "re2")
    program = (
        "import sys\nfrom apiserver.__main__ import main\n"
        f"main(['fn', 'render', {str(app)!r}], standalone_mode=False)\n"
        f"sys.exit([name for name in {heavy!r} if name in sys.modules] or 0)\n"
    )

    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False, cwd=Path.cwd()
    )

    assert (result.returncode, result.stderr.splitlines()[-1:]) == (
        0,
        ["Successfully executed 1 function(s) in 1 package(s)."],
    )
