"""What ``make test`` and ``make test-cluster`` do with tests that fail on a busy machine."""

from pathlib import Path

import again
import halves
import pytest

pytestmark = pytest.mark.timeout(300)

PASSES = "def test_it() -> None:\n    pass\n"
FAILS = "def test_it() -> None:\n    raise AssertionError('always')\n"
FAILS_FIRST = """
from pathlib import Path
import pytest

@pytest.mark.parametrize('how', ['a b', 'c'])
def test_it(how: str) -> None:
    seen = Path(__file__).with_suffix('.seen')
    if how == 'a b' and not seen.exists():
        seen.touch()
        raise AssertionError('a busy machine - or so')
"""


def folder(root: Path, **files: str) -> Path:
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '-p no:cacheprovider'\n")
    for name, text in files.items():
        path = root / "tests" / name / f"test_{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return root / "tests"


def run(monkeypatch: pytest.MonkeyPatch, tests: Path) -> int:
    monkeypatch.chdir(tests.parent)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # three pytests start for each test here
    monkeypatch.setattr(halves, "TESTS", tests)
    monkeypatch.setattr(halves, "FIRST", ("one",))
    return halves.main()


def test_both_halves_are_run_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, folder(tmp_path, one=PASSES, two=PASSES)) == 0
    assert capfd.readouterr().out.splitlines()[-1].startswith("2 passed in ")


@pytest.mark.parametrize("place", ["one", "two"])
def test_a_test_that_fails_alone_too_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], place: str
) -> None:
    tests = folder(tmp_path, **{"one": PASSES, "two": PASSES, place: FAILS})

    assert run(monkeypatch, tests) == 1
    out = capfd.readouterr().out
    assert "FLAKY" not in out
    assert "1 failed" in out.splitlines()[-1]


def test_a_test_that_passes_alone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, folder(tmp_path, one=FAILS_FIRST, two=PASSES)) == 0
    *lines, last = capfd.readouterr().out.splitlines()
    assert "FLAKY tests/one/test_one.py::test_it[a b]: passed alone; mend it" in lines
    assert any("a busy machine - or so" in line for line in lines)
    assert last.startswith("3 passed, 0 skipped, 1 flaky in ")


def test_many_failures_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    many = "\n".join(f"def test_{number}() -> None:\n    assert not {number}\n" for number in range(1, again.FEW + 2))

    assert run(monkeypatch, folder(tmp_path, one=PASSES, two=many)) == 1
    assert "alone" not in capfd.readouterr().out


def test_what_cannot_be_collected_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, folder(tmp_path, one="import nothing_like_it\n", two=PASSES)) != 0


def test_what_needs_a_cluster_is_left_to_the_target_that_builds_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tests = folder(tmp_path, one=PASSES, two=PASSES, **dict.fromkeys(halves.OF_CLUSTERS, FAILS))
    targets = (Path(halves.__file__).parents[1] / "Makefile").read_text()

    assert run(monkeypatch, tests) == 0
    assert capfd.readouterr().out.splitlines()[-1].startswith("2 passed in ")
    for name in halves.OF_CLUSTERS:
        assert f"$(BIN)/python tests/again.py tests/{name} " in targets


def test_options_before_the_dashes_are_for_both_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tests = folder(tmp_path, one=FAILS_FIRST, two=FAILS)
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--cluster', action='store_true')\n"
    )
    (tests / "one" / "conftest.py").write_text(
        "def pytest_runtest_setup(item):\n    assert item.config.getoption('--cluster')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    assert again.main(["--cluster", "--", "tests/one"]) == 0
    assert "FLAKY tests/one/test_one.py::test_it[a b]: passed alone; mend it" in capfd.readouterr().out.splitlines()
    assert again.main(["tests/two", "-k", "it"]) == 1
    assert again.main(["tests/three"]) > 1
