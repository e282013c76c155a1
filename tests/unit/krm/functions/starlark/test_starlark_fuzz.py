"""No script makes the server hang or crash, or its own process take more than its share."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlark_runs import CONFIG_MAP, resources, starlark_run

from krm.functions.catalog.starlark.function import run_script
from krm.functions.catalog.starlark.worker_process import Limits, WorkerProcess
from krm.functions.runner import FunctionResult, ResourceList

SECONDS = 0.5
FUZZ = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ATOMS = ("x", "items", "items[0]", "1", "0", "-1", "1 << 60", "1e308", "None", '"a"', "[]", "{}", "(1,)", "fail", "len")
GROWING = (
    "x = x + x",
    "x = x * x",
    "x = [x, x]",
    "x = str(x) * 1000",
    "x = {str(x): x}",
    "items.append(x)",
    "items[0][str(x)] = x",
    "items[0] = items",
    "x = 1 << 100000",
    "print(x)",
    'print("%s" % x)',
    "x = f(x)",
)
BINARY = ("+", "-", "*", "/", "//", "%", "<<", "|", "in", "==", "<", "and")


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    worker = WorkerProcess(Limits(seconds=SECONDS, memory=256 << 20))
    yield worker
    worker.close()


def _expressions() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(ATOMS),
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from(BINARY), inner),
            st.builds("{}[{}]".format, inner, inner),
            st.builds("{}({})".format, inner, inner),
            st.builds("[{} for x in {}]".format, inner, inner),
        ),
        max_leaves=6,
    )


def _statements() -> st.SearchStrategy[list[str]]:
    simple = st.one_of(st.sampled_from(GROWING), st.builds("x = {}".format, _expressions()))
    return st.recursive(
        st.lists(simple, min_size=1, max_size=3),
        lambda block: st.one_of(
            st.builds(lambda body: ["while True:", *(f"  {line}" for line in body)], block),
            st.builds(
                lambda count, body: [f"for _ in range({count}):", *(f"  {line}" for line in body)],
                st.sampled_from([3, 60, 1 << 30]),
                block,
            ),
            st.builds(lambda body: ["def f(x):", *(f"  {line}" for line in body), "  return f(x)", "f(x)"], block),
        ),
        max_leaves=4,
    )


def _check(worker: WorkerProcess, source: str) -> FunctionResult:
    began = time.monotonic()

    result = run_script(worker, ResourceList(resources(CONFIG_MAP), starlark_run(source)), (0, 5, 5))

    assert time.monotonic() - began < SECONDS + 60
    assert result.exit_code in {0, 1}
    assert bool(result.results) == bool(result.exit_code)
    return result


@FUZZ
@given(_statements())
def test_no_program_hangs_or_crashes_its_caller(worker: WorkerProcess, program: list[str]) -> None:
    _check(worker, "\n".join(['items = ctx.resource_list["items"]', "x = [1]", *program]))


@FUZZ
@given(st.text(alphabet=st.sampled_from("while def():[]{}\"'\\\n\t #x=1,.+-lambda\0é")))
def test_no_text_hangs_or_crashes_its_caller(worker: WorkerProcess, source: str) -> None:
    if source:
        _check(worker, source)


@FUZZ
@given(st.text(max_size=30), st.text(max_size=30))
def test_no_load_reaches_outside(worker: WorkerProcess, module: str, name: str) -> None:
    assert _check(worker, f"load({module!r}, {name!r})").exit_code == 1


@pytest.mark.parametrize(
    "path", ["../secret.star", "/etc/passwd", "file:///etc/passwd", "http://localhost/a.star", "krmfn", "./krmfn.star"]
)
def test_no_file_or_address_can_be_loaded(worker: WorkerProcess, path: str) -> None:
    result = _check(worker, f'load("{path}", "x")')

    assert f"cannot load {path}: no such module" in result.results[0]["message"]
