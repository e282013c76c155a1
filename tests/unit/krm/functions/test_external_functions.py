"""Functions that are programs or containers: real programs, and a stand-in for the container runtime."""

import os
import shlex
import sys
import time
from pathlib import Path
from typing import Protocol

import pytest

from krm.functions.external.child_process import Limits
from krm.functions.external.containers import (
    ContainerOptions,
    ContainerRunner,
    ContainerRuntime,
    InvalidMount,
    Mount,
    PullPolicy,
)
from krm.functions.external.executables import ExecRunner, Executable, ExecutableRunner
from krm.functions.pipeline import render
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionNotFound, NoMatchingTag, ResourceList
from krm.functions.toolchain import function_runner
from krm.package.contents import File
from krm.package.documents import read_file

TEXT = """\
# about it
apiVersion: v1
kind: ConfigMap
metadata:
  name: a # the name

  # kept
data:
    foo:   bar # of foo
    n: 1.10
"""
ENVIRONMENT = {"PATH": os.environ["PATH"]}
IMAGE = "example.com/fns/edit:v1.2"


class Script(Protocol):
    """Writes a shell script to a folder that can be put on a PATH."""

    def __call__(self, text: str, name: str = "fn") -> Path: ...


@pytest.fixture
def script(tmp_path: Path) -> Script:
    def write(text: str, name: str = "fn") -> Path:
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        return program

    return write


def _given(config: FunctionConfig | None = None) -> ResourceList:
    (document,) = read_file(TEXT.encode())[1]
    return ResourceList([Resource.of_document(document.data, document.text, path="a.yaml", index=0)], config)


def _run(command: str, given: ResourceList) -> str:
    """Run a command that must succeed; return the first resource's text afterwards."""
    result = ExecRunner(environment=ENVIRONMENT).run(command, given)
    assert result.exit_code == 0, result.stderr
    return result.items[0].text()


def test_program_changes_values_and_all_else_stays_byte_for_byte() -> None:
    assert _run("sed s/bar/baz/", _given()) == TEXT.replace("bar", "baz")


def test_program_that_copies_leaves_every_byte() -> None:
    assert _run("cat", _given()) == TEXT


def test_comments_that_a_program_writes_are_taken_over() -> None:
    assert _run("sed 's/# of foo/# changed/'", _given()) == TEXT.replace("# of foo", "# changed")


def test_comments_that_a_program_drops_come_back() -> None:
    assert _run("sed -e 's/ *#.*//' -e s/bar/baz/", _given()) == TEXT.replace("bar", "baz")


def test_comments_that_a_program_moves_by_dropping_blank_lines_stay_where_they_were() -> None:
    text = "# licence\n\n# about\nkind: X\n\n# end of kind\n\nmetadata:\n  name: a\n  # below\n\n# last\n"
    (document,) = read_file(text.encode())[1]
    given = ResourceList([Resource.of_document(document.data, document.text, path="a.yaml", index=0)])

    assert _run("sed -e '/^$/d' -e 's/name: a/name: b/'", given) == text.replace("name: a", "name: b")


def test_program_that_writes_all_anew_in_an_order_of_its_own_leaves_every_byte() -> None:
    program = "import sys, yaml; yaml.safe_dump(yaml.safe_load(sys.stdin), sys.stdout, sort_keys=True)"

    assert _run(f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}", _given()) == TEXT


def test_program_writes_the_same_comment_to_several_values() -> None:
    text = "kind: X\nmetadata:\n  name: a # kpt-set: ${a}\nspec: a\n"
    (document,) = read_file(text.encode())[1]
    given = ResourceList([Resource.of_document(document.data, document.text, path="a.yaml", index=0)])

    changed = _run("sed 's/^  spec: a/&  # kpt-set: ${a}/'", given)

    assert changed == text.replace("spec: a", "spec: a # kpt-set: ${a}")


def test_program_moves_adds_and_deletes() -> None:
    given = _given()
    addition = r"a - {kind: X, apiVersion: v1, metadata: {name: x, annotations: {config.kubernetes.io/path: x.yaml}}}"

    moved = ExecRunner(environment=ENVIRONMENT).run(f"sed -e s/a.yaml/b.yaml/ -e '/^items:/{addition}'", given)

    assert [item.path for item in moved.items] == ["x.yaml", "b.yaml"]
    assert moved.items[1] is given.items[0]
    deleted = ExecRunner(environment=ENVIRONMENT).run("sed '/^items:/,$d'", _given())
    assert (deleted.items, deleted.exit_code) == ([], 0)


def test_program_reads_its_configuration_with_its_types() -> None:
    config = FunctionConfig({"kind": "X", "size": "3"}, typed={"kind": "X", "size": 3})
    command = "sh -c \"cat > /dev/null; echo 'kind: ResourceList'; echo 'apiVersion: config.kubernetes.io/v1'\""

    seen = ExecRunner(environment=ENVIRONMENT).run("sed -n 'w /dev/stderr'", _given(config))

    assert "functionConfig:\n  kind: X\n  size: 3" in seen.stderr
    assert ExecRunner(environment=ENVIRONMENT).run(command, _given(config)).items == []


def test_results_of_a_program_that_fails_count_and_its_items_do_not(script: Script) -> None:
    failing = script(
        "cat > /dev/null; echo trouble >&2\n"
        "printf 'apiVersion: config.kubernetes.io/v1\\nkind: ResourceList\\nitems: []\\n'\n"
        "printf 'results:\\n- message: wrong\\n  severity: error\\n'; exit 3"
    )
    given = _given()

    result = ExecRunner(environment=ENVIRONMENT).run(str(failing), given)

    assert (result.exit_code, result.stderr) == (3, "trouble")
    assert result.results == [{"message": "wrong", "severity": "error"}]
    assert result.items == given.items


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("true", "output is not usable: expected a ResourceList, got nothing"),
        ("echo '{'", "output is not usable: yaml:"),
        ("echo kind: ResourceList", "output is not usable: a ResourceList has apiVersion config.kubernetes.io/v1 or"),
        ("sed 's/index: .0./index: x/'", "must be a number"),
        (r"sed -E 's,( |internal.)(config.kubernetes.io/path:).*,\1\2 a\1,'", "mismatched legacy and internal path"),
        ("no-such-program", "cannot start 'no-such-program'"),
        ("'", "cannot read the command"),
        (" ", "the command is empty"),
        ("x" * 5000, "longer than 4096 characters"),
    ],
)  # fmt: skip
def test_program_that_gives_nothing_usable_has_failed_and_deletes_nothing(command: str, problem: str) -> None:
    given = _given()

    result = ExecRunner(environment=ENVIRONMENT).run(command, given)

    assert result.exit_code == 1
    assert problem in result.stderr
    assert result.items == given.items
    assert given.items[0].text() == TEXT


def test_command_is_split_as_a_shell_would_but_no_shell_runs_it() -> None:
    result = ExecRunner(environment=ENVIRONMENT).run("sed -e 's/bar/$(id) ; `id`/'", _given())

    assert result.items[0].data["data"]["foo"] == "$(id) ; `id`"


def test_program_over_its_limits_is_told_which() -> None:
    limits = Limits(seconds=0.3)

    result = ExecRunner(environment=ENVIRONMENT, limits=limits).run("sleep 60", _given())

    assert (result.exit_code, result.stderr) == (137, "the function ran longer than 0.3 seconds and was stopped")


def test_allowed_executable_stands_in_for_the_images_of_its_pattern(script: Script) -> None:
    allowed = [Executable("example.com/fns/edit:v1.*", script("exec sed s/bar/baz/"), ("v1.0", "v1.2", "v2.0"))]
    runner = ExecutableRunner(allowed, environment=ENVIRONMENT)

    result = runner.run(IMAGE, _given())

    assert result.items[0].data["data"]["foo"] == "baz"
    assert runner.resolve("example.com/fns/edit", "~1.0") == "example.com/fns/edit:v1.0"
    assert not runner.is_deterministic(IMAGE, None)
    with pytest.raises(NoMatchingTag):
        runner.resolve("example.com/fns/edit", "^3")
    for call in (runner.require, lambda image: runner.run(image, _given()), lambda image: runner.resolve(image, "^1")):
        with pytest.raises(FunctionNotFound, match="no executable is allowed"):
            call("example.com/other:v1.2")


def test_executable_must_be_named_by_its_whole_path() -> None:
    with pytest.raises(ValueError, match="must be an absolute path"):
        ExecutableRunner([Executable("x", Path("fn"))], environment={})


RUNTIME = """
echo "$@" >> "$(dirname "$0")/calls"
case "$1" in
run)
  for image; do :; done
  case "$image" in
  *slow*) exec sleep 60 ;;
  *missing*) echo "Unable to find image '$image' locally" >&2; echo "docker: denied" >&2; exit 125 ;;
  *) echo "v1: Pulling from fns/edit" >&2; echo "0123456789ab: Pull complete" >&2; echo note >&2
     exec sed s/bar/baz/ ;;
  esac ;;
image) printf 'v1.0\\nv1.3\\n<none>\\nlatest\\n' ;;
esac
"""


@pytest.mark.parametrize("runtime", list(ContainerRuntime))
def test_container_is_run_as_nobody_and_without_network(script: Script, runtime: ContainerRuntime) -> None:
    program = script(RUNTIME, runtime.value)
    runner = ContainerRunner(ContainerOptions(runtime), environment=_path(program))

    result = runner.run(IMAGE, _given())

    assert result.items[0].text() == TEXT.replace("bar", "baz")
    assert result.stderr == "note"
    (call,) = _calls(program)
    name = call.split()[4]
    assert name.startswith("porch-fn-")
    assert call == (
        f"run --rm -i --name {name} --network none --user nobody --security-opt=no-new-privileges --pull missing {IMAGE}"
    )


def test_container_gets_the_privileges_that_are_asked_for(script: Script) -> None:
    program = script(RUNTIME, "docker")
    options = ContainerOptions(
        allow_network=True,
        pull=PullPolicy.NEVER,
        user="1000:1000",
        mounts=(Mount.parse("type=bind,src=/a,dst=/b"), Mount.parse("type=volume,source=v,target=/c,rw=true")),
        variables=("A=b", "C"),
    )

    ContainerRunner(options, environment=_path(program)).run(IMAGE, _given())

    (call,) = _calls(program)
    assert call.partition("--network ")[2] == (
        "host --user 1000:1000 --security-opt=no-new-privileges --pull never --mount type=bind,source=/a,target=/b,readonly "
        f"--mount type=volume,source=v,target=/c -e A=b -e C {IMAGE}"
    )


def test_container_over_its_time_is_removed(script: Script) -> None:
    program = script(RUNTIME, "docker")
    started = time.monotonic()

    options = ContainerOptions(limits=Limits(seconds=3))
    result = ContainerRunner(options, environment=_path(program)).run("example.com/slow:v1", _given())

    assert "ran longer than 3 seconds" in result.stderr
    assert time.monotonic() - started < 40
    run, removal = _calls(program)
    assert removal == f"rm -f {run.split()[4]}"


def test_image_that_the_runtime_cannot_get_is_named(script: Script) -> None:
    program = script(RUNTIME, "docker")

    result = ContainerRunner(ContainerOptions(), environment=_path(program)).run("example.com/missing:v1", _given())

    assert result.exit_code == 125
    assert result.stderr.startswith("docker: denied\n")
    assert 'function image "example.com/missing:v1" did not start' in result.stderr


def test_range_is_answered_from_the_images_of_the_runtime(script: Script) -> None:
    program = script(RUNTIME, "docker")
    runner = ContainerRunner(ContainerOptions(), environment=_path(program))

    assert runner.resolve("example.com/fns/edit:v0", "^1") == "example.com/fns/edit:v1.3"
    assert _calls(program) == ["image ls --format {{.Tag}} example.com/fns/edit"]
    with pytest.raises(NoMatchingTag):
        runner.resolve("example.com/fns/edit", "^2")


def test_runtime_that_is_not_there_is_named() -> None:
    runner = ContainerRunner(ContainerOptions(ContainerRuntime.PODMAN), environment={"PATH": "/nowhere"})

    with pytest.raises(FunctionNotFound, match='the container runtime "podman" is not on the PATH'):
        runner.require(IMAGE)


@pytest.mark.parametrize("text", ["", "type=bind", "type=bind,src=/a", "type=bind,src=/a,dst=/b,magic=1"])
def test_mount_that_says_too_little_or_too_much_is_refused(text: str) -> None:
    with pytest.raises(InvalidMount):
        Mount.parse(text)


def test_pipeline_runs_builtins_executables_and_containers_each_where_it_is_known(script: Script) -> None:
    program = script("exec sed s/bar/executable/")
    runtime = script("exec sed s/executable/container/", "docker")
    kptfile = (
        "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\npipeline:\n  mutators:\n"
        f"  - image: {IMAGE}\n  - image: example.com/other:v1\n  - image: set-labels:v0.2\n    configMap: {{a: b}}\n"
        "  - exec: sed s/container/command/\n"
    )
    runner = function_runner(
        executables=[Executable("example.com/fns/*", program)], containers=ContainerOptions, environment=_path(runtime)
    )
    contents = {"Kptfile": File(kptfile.encode()), "a.yaml": File(TEXT.encode())}

    rendered = render(contents, runner, commands=ExecRunner(environment=ENVIRONMENT))

    assert rendered.error == ""
    assert b"foo:   command # of foo" in rendered.contents["a.yaml"].data
    assert b"    a: b" in rendered.contents["a.yaml"].data


def test_image_that_nothing_runs_is_refused_with_all_that_would_help() -> None:
    runner = function_runner(remedies=["ask the one who runs this server"])

    with pytest.raises(FunctionNotFound) as error:
        runner.require("example.com/unknown:v1")

    for part in ('"example.com/unknown:v1"', "not a built-in function", "no executable is allowed",
                 "no container runtime is configured", "ask the one who runs this server"):  # fmt: skip
        assert part in str(error.value)


def test_range_that_no_runner_meets_is_told_as_one(script: Script) -> None:
    runtime = script(RUNTIME, "docker")
    runner = function_runner(containers=ContainerOptions, environment=_path(runtime))

    assert runner.resolve("set-labels", "^1.3").endswith("/set-labels:v1.3")
    with pytest.raises(NoMatchingTag, match='"\\^7"'):
        runner.resolve("set-labels", "^7")


def _path(program: Path) -> dict[str, str]:
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


def _calls(program: Path) -> list[str]:
    return (program.parent / "calls").read_text().splitlines()
