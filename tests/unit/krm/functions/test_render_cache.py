"""What is remembered of renders, and that it is what rendering would have given."""

import pickle
import tarfile

import pytest
from kpt_cases import DATA, load_package
from render_packages import CONFIG_MAP, Change, OwnFunctions, mutate, package

from krm.functions.builtins import BuiltinRunner
from krm.functions.pipeline import Rendered, render
from krm.functions.render_cache import RenderCache
from krm.functions.resource import Resource
from krm.package.contents import EXECUTABLE, Contents, File

PLENTY = 1 << 20
CASES = sorted((DATA / "kpt" / "fn-render").iterdir()) + sorted((DATA / "kpt" / "catalog").iterdir())


def _comparable(rendered: Rendered) -> object:
    return rendered.contents, rendered.results, rendered.error, rendered.failed, rendered.status


def _mark(items: list[Resource]) -> None:
    for item in items:
        if item.data["kind"] != "Kptfile":
            item.data["data"] = {"marked": "yes"}


def _grow(items: list[Resource]) -> None:
    for item in items:
        if item.data["kind"] != "Kptfile":
            item.data["metadata"]["name"] += "-x"


def _rendered(contents: Contents, runner: OwnFunctions, cache: RenderCache) -> Rendered:
    return render(contents, runner, cache=cache)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_remembered_renders_are_what_rendering_gives(case: object) -> None:
    """Three rounds of render and save, with and without a cache, for every conformance case."""
    cache = RenderCache(64 << 20)
    contents: Contents = load_package(case)  # type: ignore[arg-type]
    for _ in range(3):
        remembering = render(contents, BuiltinRunner(), cache=cache)
        plain = render(contents, BuiltinRunner())
        assert _comparable(remembering) == _comparable(plain)
        contents = plain.contents


def test_output_that_is_rendered_again_runs_no_function() -> None:
    runner, cache = OwnFunctions(_mark), RenderCache(PLENTY)
    first = _rendered(package(mutate("x"), a_yaml=CONFIG_MAP), runner, cache)
    runner.calls.clear()

    again = _rendered(first.contents, runner, cache)

    assert runner.calls == []
    assert again.contents == first.contents
    assert again.results == first.results


def test_same_package_is_not_rendered_twice() -> None:
    runner, cache = OwnFunctions(_mark), RenderCache(PLENTY)
    contents = package(mutate("x"), a_yaml=CONFIG_MAP)
    first = _rendered(contents, runner, cache)
    runner.calls.clear()

    assert _comparable(_rendered(dict(contents), runner, cache)) == _comparable(first)
    assert runner.calls == []


def test_function_whose_output_is_no_fixpoint_runs_again() -> None:
    runner, cache = OwnFunctions(_grow), RenderCache(PLENTY)
    contents: Contents = package(mutate("x"), a_yaml=CONFIG_MAP)
    for rounds in range(1, 4):
        contents = _rendered(contents, runner, cache).contents
        assert f"name: a{'-x' * rounds}\n" in contents["a.yaml"].data.decode()


def test_function_that_sees_the_status_is_not_fooled() -> None:
    """It writes down what the render before it said: no two renders in a row see the same status."""

    def copy_status(items: list[Resource]) -> None:
        items[1].data["data"] = {"steps": str(items[0].data.get("status", {}).get("renderStatus"))}

    runner, cache = OwnFunctions(copy_status), RenderCache(PLENTY)
    remembered: Contents = package(mutate("x"), a_yaml=CONFIG_MAP)
    plain = remembered
    for _ in range(3):
        remembered = _rendered(remembered, runner, cache).contents
        plain = render(plain, OwnFunctions(copy_status)).contents
        assert remembered == plain


def test_function_that_deletes_the_kptfile_the_second_time_only_is_no_fixpoint() -> None:
    def delete_last(items: list[Resource]) -> list[Resource]:
        return items[:-1]

    runner, cache = OwnFunctions(delete_last), RenderCache(PLENTY)
    first = _rendered(package(mutate("x"), a_yaml=CONFIG_MAP), runner, cache)

    assert set(first.contents) == {"Kptfile"}
    assert _rendered(first.contents, runner, cache).contents == {}


def test_what_may_come_out_differently_is_not_remembered() -> None:
    runner, cache = OwnFunctions(_mark, deterministic=False), RenderCache(PLENTY)
    contents = package(mutate("x"), a_yaml=CONFIG_MAP)

    _rendered(contents, runner, cache)
    _rendered(contents, runner, cache)

    assert runner.calls == ["x", "x"]
    assert cache.size == 0


def test_script_that_reads_the_clock_is_not_remembered() -> None:
    source = 'load("time.star", "time")\nx = time.now()\n'
    config = f"apiVersion: fn.kpt.dev/v1alpha1\nkind: StarlarkRun\nmetadata:\n  name: s\nsource: {source!r}\n"
    pipeline = "pipeline:\n  mutators:\n  - {image: starlark, configPath: s.yaml}\n"
    cache = RenderCache(PLENTY)

    render(package(pipeline, s_yaml=config), BuiltinRunner(), cache=cache)

    assert cache.size == 0


def test_failures_are_not_remembered() -> None:
    def fail(_: list[Resource]) -> None:
        raise RuntimeError

    runner, cache = OwnFunctions(fail), RenderCache(PLENTY)
    for _ in range(2):
        assert _rendered(package(mutate("x")), runner, cache).failed
    assert runner.calls == ["x", "x"]


@pytest.mark.parametrize(
    "change",
    [
        {"a.yaml": File(CONFIG_MAP.encode() + b"# more\n")},
        {"b.txt": File(b"")},
        {"a.yaml": File(CONFIG_MAP.encode(), EXECUTABLE)},
    ],
    ids=["bytes", "files", "modes"],
)
def test_any_change_of_the_package_renders(change: dict[str, File]) -> None:
    runner, cache = OwnFunctions(_mark), RenderCache(PLENTY)
    contents = package(mutate("x"), a_yaml=CONFIG_MAP)
    _rendered(contents, runner, cache)
    runner.calls.clear()

    rendered = _rendered({**contents, **change}, runner, cache)

    assert runner.calls
    assert rendered.contents.keys() == {**contents, **change}.keys()


def test_cache_keeps_to_its_size() -> None:
    cache = RenderCache(10_000)
    for number in range(50):
        _rendered(package(mutate("x"), a_yaml=CONFIG_MAP.replace("one", f"one{number}")), OwnFunctions(_mark), cache)
        assert cache.size <= 10_000
    assert cache.size > 0


def test_looking_ahead_is_not_observed() -> None:
    class Counter:
        seen = 0

        def enters(self, package: str) -> None:
            self.seen += 1

        def starts(self, record: object) -> None:
            self.seen += 1

        def ends(self, record: object) -> None:
            self.seen += 1

    counter = Counter()
    runner = OwnFunctions(_mark)
    render(package(mutate("x"), a_yaml=CONFIG_MAP), runner, cache=RenderCache(PLENTY), observer=counter)

    assert counter.seen == 3
    assert len(runner.calls) > 1


def test_another_process_can_look_ahead_for_the_one_that_remembers() -> None:
    """A pool's workers render; what they send back is enough for the parent to remember."""
    runner, cache = OwnFunctions(_mark), RenderCache(PLENTY)
    contents = package(mutate("x"), a_yaml=CONFIG_MAP)
    sent = pickle.loads(pickle.dumps(render(contents, runner, look_ahead=True)))  # noqa: S301 - our own

    cache.add(contents, sent)

    assert _comparable(cache.find(contents) or sent) == _comparable(sent)
    assert cache.find(sent.contents) is not None


def test_deleting_and_adding_files_is_remembered() -> None:
    def rewrite(items: list[Resource]) -> list[Resource]:
        made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
        return [items[0], *(item for item in items[1:] if item.data["kind"] == "Secret")] + (
            [] if any(item.data["kind"] == "Secret" for item in items) else [Resource(made)]
        )

    change: Change = rewrite
    runner, cache = OwnFunctions(change), RenderCache(PLENTY)
    contents = package(mutate("x"), a_yaml=CONFIG_MAP)
    first = _rendered(contents, runner, cache)
    runner.calls.clear()

    assert set(_rendered(contents, runner, cache).contents) == {"Kptfile", "secret_s.yaml"}
    assert set(_rendered(first.contents, runner, cache).contents) == {"Kptfile", "secret_s.yaml"}
    assert runner.calls == []


def test_looking_ahead_sees_keys_in_the_order_of_the_text() -> None:
    """A change of nothing but the order of keys is not written, so the next render sees the old order."""

    def reorder(items: list[Resource]) -> None:
        data = items[-1].data["data"]
        if next(iter(data)) == "a":
            items[-1].data["data"] = {"b": data["b"], "a": data["a"] + "!"}

    text = CONFIG_MAP.replace("  x: one\n", "  a: one\n  b: '1'\n")
    remembered: Contents = package(mutate("x"), a_yaml=text)
    plain = remembered
    runner, cache = OwnFunctions(reorder), RenderCache(PLENTY)
    for _ in range(3):
        remembered = _rendered(remembered, runner, cache).contents
        plain = render(plain, OwnFunctions(reorder)).contents
        assert remembered == plain


def _catalog() -> dict[str, dict[str, File]]:
    """Return the top packages of nephio's catalog by path."""
    files = {}
    with tarfile.open(DATA / "nephio-catalog.tar.xz") as archive:
        for member in archive:
            if member.isfile() and (stream := archive.extractfile(member)):
                files[member.name] = File(stream.read())
    packages = sorted(path.removesuffix("/Kptfile") for path in files if path.endswith("/Kptfile"))
    tops: list[str] = []
    for path in packages:
        if not tops or not path.startswith(f"{tops[-1]}/"):
            tops.append(path)
    return {
        top: {path.removeprefix(f"{top}/"): file for path, file in files.items() if path.startswith(f"{top}/")}
        for top in tops
    }


def test_packages_of_the_nephio_catalog_render_the_same_from_memory() -> None:
    rendered, missing = 0, set()
    for top, contents in _catalog().items():
        cache = RenderCache(64 << 20)
        first = render(contents, BuiltinRunner(), cache=cache)
        if first.failed:
            missing.add(first.steps[-1].image.partition(":")[0])
            continue
        rendered += 1
        again = render(first.contents, BuiltinRunner())
        assert _comparable(render(first.contents, BuiltinRunner(), cache=cache)) == _comparable(again), top
        assert {path for path in again.contents if again.contents[path] != first.contents[path]} <= {"Kptfile"}, top

    assert rendered == 56
    assert all(image.startswith("docker.io/nephio/") for image in missing), missing
