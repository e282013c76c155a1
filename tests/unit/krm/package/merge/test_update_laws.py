"""What holds for updates of any package, whatever is in it."""

from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from krm.package.contents import EXECUTABLE, REGULAR, Contents, File
from krm.package.merge.kptfile_merge import merge_kptfiles
from krm.package.merge.strategies import update_package
from krm.package.merge.update_error import SubpackageAddedTwice, UpdateError
from krm.package.yaml_edit_text import new_document
from krm.package.yaml_reader import YamlError, read_document

# Explaining a failure costs minutes on packages.
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
_FAST = settings(max_examples=50, deadline=None, phases=_PHASES)

_FILES = st.builds(
    File,
    st.one_of(st.sampled_from([b"", b"text\n", b"other\r\n", b"\0\1", b"\xff"]), st.binary(max_size=4)),
    st.sampled_from([REGULAR, EXECUTABLE]),
)
_WORDS = st.sampled_from(["a", "b", "yes", "1", "x y", "é"])


@st.composite
def _kptfile(draw: st.DrawFn) -> File:
    functions = st.lists(st.fixed_dictionaries({"image": st.sampled_from(["r/f:v1", "r/g:v1", "r/f:v2"])}), max_size=3)
    data: dict[str, Any] = {"apiVersion": "kpt.dev/v1", "kind": "Kptfile", "metadata": {"name": "pkg"}}
    if draw(st.booleans()):
        data["info"] = {"description": draw(_WORDS), "keywords": draw(st.lists(_WORDS, min_size=1, max_size=2))}
    if mutators := draw(functions):
        data["pipeline"] = {"mutators": mutators}
    return File((draw(st.sampled_from(["", "# mine\n"])) + new_document(data)).encode())


@st.composite
def _resources(draw: st.DrawFn, name: str) -> File:
    documents = []
    for suffix in draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)):
        comment = draw(st.sampled_from(["", "# why\n", "\n"]))
        data = draw(st.dictionaries(st.sampled_from("kvw"), _WORDS, min_size=1))
        documents.append(
            comment
            + new_document(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-{suffix}"}, "data": data}
            )
        )
    return File("---\n".join(documents).encode())


@st.composite
def _package(draw: st.DrawFn) -> dict[str, File]:
    files = {"Kptfile": draw(_kptfile())}
    for directory in ("", "sub/", "sub/deep/", "plain/"):
        if directory and draw(st.booleans()):
            continue
        if directory.startswith("sub"):
            files[f"{directory}Kptfile"] = draw(_kptfile())
        for name in ("one", "two"):
            if draw(st.booleans()):
                garbage = st.sampled_from([File(b"a: ["), File(b"- 1\n"), File(b"{{ x }}"), File(b"")])
                files[f"{directory}{name}.yaml"] = draw(
                    st.one_of(_resources(f"{directory}{name}".replace("/", "-")), garbage)
                )
        if draw(st.booleans()):
            files[f"{directory}file.txt"] = draw(_FILES)
    return files


@_FAST
@given(_package(), _package())
def test_an_unchanged_upstream_leaves_every_local_byte(origin: Contents, local: Contents) -> None:
    result = update_package(origin, dict(origin), local)

    assert result.contents == local
    assert result.conflicts == ()


@_FAST
@given(_package(), _package())
def test_files_that_upstream_did_not_change_keep_every_local_byte(origin: Contents, local: Contents) -> None:
    new = {"a-new.txt": File(b"1")}

    result = update_package(origin, {**origin, **new}, local)

    assert result.contents == {**local, **new}
    assert result.conflicts == ()


@_FAST
@given(_package(), _package())
def test_an_unchanged_local_package_becomes_the_new_upstream(origin: Contents, updated: Contents) -> None:
    result = update_package(origin, updated, dict(origin))

    assert sorted(result.contents) == sorted(updated)
    for path, file in updated.items():
        if path.endswith("Kptfile"):
            assert _without_empty(result.contents[path].data) == _without_empty(file.data)
        else:
            assert result.contents[path] == file, path
    assert result.conflicts == ()


@_FAST
@given(_package(), _package(), _package())
def test_merging_twice_gives_the_same_and_what_one_side_added_stays(
    origin: Contents, updated: Contents, local: Contents
) -> None:
    try:
        once = update_package(origin, updated, local).contents
    except (SubpackageAddedTwice, YamlError):
        assume(False)

    for path, file in local.items():
        if path not in origin and path not in updated:
            assert once[path] == file
    for path, file in updated.items():
        # A subpackage that was deleted here stays deleted with all that upstream adds to it.
        if path not in origin and path not in local and not path.startswith("sub/"):
            assert once[path] == file
    try:
        again = update_package(origin, updated, once).contents
    except SubpackageAddedTwice:
        assert any(path.endswith("Kptfile") and path not in origin for path in updated)
    else:
        assert _in_any_order(again) == _in_any_order(once)


@_FAST
@given(*(st.binary(max_size=60) for _ in range(3)), st.sampled_from(["resource-merge", "fast-forward"]))
def test_garbage_is_merged_as_files_or_refused_with_our_errors(
    origin: bytes, updated: bytes, local: bytes, strategy: str
) -> None:
    kptfile = File(b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: pkg\n")
    trees = ({"Kptfile": kptfile, "a.yaml": File(data), "b.txt": File(data)} for data in (origin, updated, local))
    try:
        result = update_package(*trees, strategy=strategy)
    except (UpdateError, YamlError):
        return

    assert set(result.contents) <= {"Kptfile", "a.yaml", "b.txt"}


@_FAST
@given(_kptfile(), _kptfile(), _kptfile())
def test_a_merged_kptfile_reads_as_one_and_is_stable(origin: File, updated: File, local: File) -> None:
    merged = merge_kptfiles(origin.data, updated.data, local.data, update_upstream=True).data

    assert read_document(merged)["metadata"] == {"name": "pkg"}
    again = merge_kptfiles(origin.data, updated.data, merged, update_upstream=True)
    assert read_document(again.data) == read_document(merged)
    assert merge_kptfiles(updated.data, updated.data, merged, update_upstream=True).data == merged


def _in_any_order(contents: Contents) -> dict[str, list[bytes]]:
    """Return the documents of each file: those that both sides added to one file may change places once."""
    return {path: sorted(file.data.strip().split(b"\n---\n")) for path, file in contents.items()}


def _without_empty(data: bytes) -> dict[str, Any]:
    return {key: value for key, value in read_document(data).items() if value}


@pytest.mark.parametrize("depth", [200, 300])
def test_deep_nesting_is_merged_or_refused(depth: int) -> None:
    kptfile = File(b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: pkg\n")
    texts = ("[" * depth + value + "]" * depth for value in ("1", "2", "3"))
    trees = (
        {"Kptfile": kptfile, "a.yaml": File(f"apiVersion: v1\nkind: A\nmetadata: {{name: a}}\nx: {text}\n".encode())}
        for text in texts
    )
    try:
        assert update_package(*trees).contents.keys() == {"Kptfile", "a.yaml"}
    except YamlError as error:
        assert "nested deeper" in str(error)  # noqa: PT017 - either outcome is right
