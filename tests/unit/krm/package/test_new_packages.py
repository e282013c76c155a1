import tarfile
from pathlib import Path

import pytest

from krm.package.clone import clone_package
from krm.package.contents import EXECUTABLE, Contents, File
from krm.package.documents import read_file
from krm.package.init import init_package
from krm.package.kptfile import KptfileError, parse_kptfile
from krm.package.package_context import with_package_context
from krm.package.yaml_reader import read_document

DATA = Path(__file__).parents[3] / "data"
LOCK = {"type": "git", "git": {"repo": "r.git", "directory": "d", "ref": "v1", "commit": "a" * 40}}
UPSTREAM = {"type": "git", "git": {"repo": "r.git", "directory": "d", "ref": "v1"}, "updateStrategy": "fast-forward"}


def _package(directory: Path) -> dict[str, File]:
    return {
        path.relative_to(directory).as_posix(): File(path.read_bytes())
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def _clone(contents: Contents, context_path: str | None = None) -> dict[str, File]:
    return clone_package(contents, name="new", upstream=UPSTREAM, upstream_lock=LOCK, context_path=context_path)


def test_init_gives_upstreams_kptfile_and_context() -> None:
    files = init_package("testpkg", "test package", ["test", "kpt", "pkg"], "http://kpt.dev/testpkg")
    wanted = _package(DATA / "porch" / "init" / "testpkg")

    assert set(files) == set(wanted)
    for path in ("Kptfile", "package-context.yaml"):
        assert read_document(files[path].data) == read_document(wanted[path].data)


def test_init_leaves_out_what_is_not_given() -> None:
    kptfile = parse_kptfile(init_package("a/b", "", [], "")["Kptfile"].data)

    assert (kptfile.name, kptfile.info) == ("a/b", {})


def test_context_is_generated_as_upstream_does() -> None:
    contents = _package(DATA / "porch" / "context" / "input")

    made = with_package_context(contents, "input", "parent1/parent1.2/parent1.2.3/me")

    wanted = _package(DATA / "porch" / "context" / "expected")
    assert {path: read_document(file.data) for path, file in made.items()} == {
        path: read_document(file.data) for path, file in wanted.items()
    }


def test_context_keeps_its_other_keys_and_comments() -> None:
    old = b"# mine\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kptfile.kpt.dev\ndata:\n  name: example # n\n  zone: b\n"

    new = with_package_context({"package-context.yaml": File(old)}, "app", "a/app")["package-context.yaml"].data

    assert new == old.replace(b"name: example", b"name: app") + b"  package-path: a/app\n"


def test_context_in_another_file_is_found() -> None:
    old = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kptfile.kpt.dev\ndata: {}\n"

    made = with_package_context({"ctx.yaml": File(old)}, "app", "a/app")

    assert set(made) == {"ctx.yaml"}
    assert read_document(made["ctx.yaml"].data)["data"] == {"name": "app", "package-path": "a/app"}


@pytest.mark.parametrize("name", ["bucket", "configmap"])
def test_clone_sets_upstream_name_and_merge_keys(name: str) -> None:
    contents = _package(DATA / "porch" / "clone" / name)

    clone = _clone(contents)

    kptfile = parse_kptfile(clone["Kptfile"].data)
    assert kptfile.name == "new"
    assert kptfile.upstream == {key: value for key, value in UPSTREAM.items() if key != "updateStrategy"}
    assert kptfile.upstream_lock == LOCK
    assert kptfile.annotations["internal.kpt.dev/upstream-identifier"] == "kpt.dev|Kptfile|default|new"
    text = clone[f"{name}.yaml"].data.decode()
    assert f"\nmetadata: # kpt-merge: {name}-namespace/{name}-name\n" in text
    assert f"|{name}-namespace|{name}-name" in text
    assert "package-context.yaml" not in clone


def test_merge_key_of_an_earlier_clone_stays() -> None:
    text = b"apiVersion: v1\nkind: Secret\nmetadata: # kpt-merge: prod/old\n  name: renamed\n  namespace: test\n"

    clone = _clone({"Kptfile": KPTFILE, "a.yaml": File(text)})

    assert b"# kpt-merge: prod/old\n" in clone["a.yaml"].data
    assert b"|Secret|prod|old" in clone["a.yaml"].data


KPTFILE = File(b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: x\n")


@pytest.mark.parametrize(
    "data",
    [
        b"a: [",
        b"\xff\xfe",
        b"",
        b"# only\n",
        b"just: data\n",
        b"kind: List\nitems: []\n",
        b"--- text\n",
        b"a: 1\r\n---\r\n",
    ],
)
def test_file_that_holds_no_resource_is_copied_as_it_is(data: bytes) -> None:
    file = File(data, EXECUTABLE)

    assert _clone({"Kptfile": KPTFILE, "x.yaml": file})["x.yaml"] == file


def test_large_annotations_section_is_replaced_where_it_stands() -> None:
    text = b"apiVersion: v1\nkind: Secret\nmetadata:\n  annotations: {}\n  name: a\n\ndata: # d\n  x: y"

    new = _clone({"Kptfile": KPTFILE, "a.yaml": File(text)})["a.yaml"].data

    assert new.endswith(b"  name: a\n\ndata: # d\n  x: y")
    assert b"metadata: # kpt-merge: /a\n  annotations:\n" in new


def test_package_without_kptfile_cannot_be_cloned() -> None:
    with pytest.raises(KptfileError, match='package "new" is missing Kptfile'):
        _clone({})


@pytest.fixture(scope="module")
def nephio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("nephio")
    with tarfile.open(DATA / "nephio-catalog.tar.xz") as archive:
        archive.extractall(target, filter="data")
    return target


def test_reading_the_whole_catalog_loses_no_byte(nephio: Path) -> None:
    paths = [path for path in nephio.rglob("*") if path.suffix in (".yaml", ".yml") or path.name == "Kptfile"]

    assert len(paths) > 500
    for path in paths:
        data = path.read_bytes()
        assert "".join(read_file(data)[0]).encode() == data


def test_clone_of_a_catalog_package_changes_only_merge_keys(nephio: Path) -> None:
    for kptfile in sorted(nephio.glob("nephio/core/*/Kptfile")):
        contents = _package(kptfile.parent)
        for path, file in _clone(contents).items():
            if path.endswith("Kptfile"):
                continue
            allowed = ("metadata:", "  annotations:", "    internal.kpt.dev/upstream-identifier:")
            old, new = (side[path].data.decode().splitlines() for side in (contents, {path: file}))
            kept = [line for line in new if not line.startswith(allowed)]

            assert kept == [line for line in old if not line.startswith(allowed)], path
