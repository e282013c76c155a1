"""The laws of merging, on generated packages, and that no text whatever makes it hang or crash."""

import random
from typing import Any

import pytest
from cost import metered
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from krm.package.comments import read_comments
from krm.package.contents import File
from krm.package.merge.associative_lists import ListKeys
from krm.package.merge.document_merge import merge_documents
from krm.package.merge.field_merge import merge
from krm.package.merge.resource_files import UnreadableFile
from krm.package.merge.resource_merge import merge_resources
from krm.package.merge.update_error import UpdateError
from krm.package.yaml_edit_text import new_document
from krm.package.yaml_reader import YamlError, read_document, read_documents, same

LAWS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
Files = dict[str, File]

# Few names and values, so that the three states meet often.
scalars = st.one_of(st.integers(0, 3), st.booleans(), st.sampled_from(["", "a", "b", "1", "yes", "x y", "l1\nl2\n"]))
names = st.sampled_from(["name", "image", "env", "x", "y", "true", "1"])
plain = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=4
)
containers = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcd")}, optional={"image": scalars, "args": plain, "env": plain}),
    max_size=4,
    unique_by=lambda container: str(container["name"]),
)
specs = st.dictionaries(names, plain, max_size=3)


@st.composite
def resources(draw: st.DrawFn, name: str | None = None) -> dict[str, Any]:
    pod_spec = {"containers": draw(containers), **draw(specs)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name or draw(st.sampled_from("pqr")),
            "labels": draw(st.dictionaries(names, scalars, max_size=2)),
        },
        "spec": {"template": {"spec": pod_spec}, **draw(specs)},
    }


three_resources = st.tuples(*(resources(name="p") for _ in range(3)))


def decorated(resource: dict[str, Any], seed: int) -> str:
    """Write a resource with comments at the ends of some lines."""
    chance = random.Random(seed)  # noqa: S311 - a test's data
    lines = new_document(resource).splitlines()
    is_in_block = False
    for place, line in enumerate(lines):
        is_in_block = line.endswith("|") or (is_in_block and line.startswith(" ") and ":" not in line)
        if not is_in_block and '"' not in line and chance.randrange(5) == 0:
            lines[place] = f"{line} # {chance.choice(['one', 'two', 'kpt-set: ${a}'])}"
    return "\n".join(lines) + chance.choice(["\n", "\n", ""])


seeds = st.integers(0, 1000)
located = st.tuples(st.sampled_from(["a.yaml", "b.yaml", "d/c.yml"]), resources())


def package(found: list[tuple[str, dict[str, Any]]], seed: int) -> Files:
    """Lay resources out in files, each identity once in a file."""
    chance = random.Random(seed)  # noqa: S311 - a test's data
    by_path: dict[str, dict[str, str]] = {}
    for path, resource in found:
        text = decorated(resource, chance.randrange(1000)).rstrip("\n") + "\n"
        by_path.setdefault(path, {})[resource["metadata"]["name"]] = text
    separators = ["---\n", "--- # next\n", "---\n# between\n---\n"]
    return {
        path: File(
            (chance.choice(["", "---\n", "# top\n---\n"]) + chance.choice(separators).join(texts.values())).encode()
        )
        for path, texts in by_path.items()
    }


packages = st.builds(package, st.lists(located, max_size=4), seeds)


def data_of(files: Files) -> dict[str, list[Any]]:
    return {path: read_documents(file.data) for path, file in files.items()}


@LAWS
@given(three_resources)
def test_an_unchanged_upstream_changes_nothing(states: tuple[Any, Any, Any]) -> None:
    origin, _, local = states

    assert merge(origin, origin, local, lists=ListKeys()) is local


@LAWS
@given(three_resources)
def test_an_unchanged_local_gives_the_new_upstream(states: tuple[Any, Any, Any]) -> None:
    """But for elements that local had in another order, which is kept."""
    origin, updated, _ = states

    result = merge(origin, updated, origin, lists=ListKeys())

    assert same(by_name(result), by_name(updated))


def by_name(resource: Any) -> Any:
    spec = resource["spec"]["template"]["spec"]
    ordered = sorted(spec.get("containers", []), key=lambda container: str(container["name"]))
    inner = {**spec, "containers": [with_sorted_env(container) for container in ordered]}
    return {**resource, "spec": {**resource["spec"], "template": {"spec": inner}}}


def with_sorted_env(container: Any) -> Any:
    env = container.get("env")
    return {**container, "env": sorted(env, key=repr)} if isinstance(env, list) else container


@LAWS
@given(three_resources)
def test_merging_again_changes_nothing(states: tuple[Any, Any, Any]) -> None:
    origin, updated, local = states
    once = merge(origin, updated, local, lists=ListKeys())

    assert merge(updated, updated, once, lists=ListKeys()) is once
    assert merge(origin, updated, updated, lists=ListKeys()) == updated


@LAWS
@given(three_resources, plain)
def test_nothing_that_only_one_side_added_is_lost(states: tuple[Any, Any, Any], value: Any) -> None:
    origin, updated, local = states
    updated = {**updated, "fromUpstream": value, "spec": {**updated["spec"], "upstreamToo": value}}
    local = {**local, "fromLocal": value, "spec": {**local["spec"], "localToo": value}}

    result = merge(origin, updated, local, lists=ListKeys())

    assert same(result["fromUpstream"], value)
    assert same(result["fromLocal"], value)
    assert (
        same((result["spec"]["upstreamToo"], result["spec"]["localToo"]), (value, value))
        or result["spec"]["upstreamToo"] == result["spec"]["localToo"]
    )


@LAWS
@given(three_resources)
def test_containers_that_only_one_side_added_are_there(states: tuple[Any, Any, Any]) -> None:
    def found(resource: Any) -> set[str]:
        return {container["name"] for container in resource["spec"]["template"]["spec"].get("containers", [])}

    origin, updated, local = map(found, states)

    assert (updated - origin) | (local - origin) <= found(merge(*states, lists=ListKeys()))


@LAWS
@given(three_resources, seeds)
def test_the_text_reads_as_the_merged_data_and_keeps_local_comments(states: tuple[Any, ...], seed: int) -> None:
    texts = [decorated(state, seed + place) for place, state in enumerate(states)]

    result = merge_documents(*texts)

    wanted = merge(*(read_document(text) for text in texts), lists=ListKeys())
    assert result.text is not None
    assert same(read_document(result.text), wanted)
    assert merge_documents(texts[1], texts[1], result.text).text == result.text
    assert merge_documents(texts[0], texts[0], texts[2]).text == texts[2]
    top = {
        path: comment.line for path, comment in read_comments(texts[2]).items() if path in {("kind",), ("apiVersion",)}
    }
    kept = read_comments(result.text)
    for path, line in top.items():
        if all(path not in read_comments(text) for text in texts[:2]):
            assert kept[path].line == line


@LAWS
@given(packages, packages)
def test_a_package_whose_upstream_did_not_change_stays_byte_for_byte(origin: Files, local: Files) -> None:
    assert merge_resources(origin, origin, local).files == local


@LAWS
@given(packages, packages)
def test_a_package_nobody_edited_becomes_the_new_upstream_byte_for_byte(origin: Files, updated: Files) -> None:
    assert merge_resources(origin, updated, origin).files == updated


@LAWS
@given(packages, packages, packages)
def test_merging_a_package_again_changes_nothing(origin: Files, updated: Files, local: Files) -> None:
    once = merge_resources(origin, updated, local).files

    assert merge_resources(updated, updated, once).files == once


@LAWS
@given(packages, packages, packages)
def test_resources_that_only_one_side_added_are_in_the_package(origin: Files, updated: Files, local: Files) -> None:
    def found(files: Files) -> set[str]:
        return {document["metadata"]["name"] for documents in data_of(files).values() for document in documents}

    result = merge_resources(origin, updated, local).files

    assert (found(updated) - found(origin)) | (found(local) - found(origin)) <= found(result)


junk = st.text("ab:-# \n\t[]{}&*!|>'\"%@`,?~0\r\ufeff", max_size=60) | st.text(max_size=40)


@settings(max_examples=300, deadline=None)
@given(junk, junk, junk)
def test_no_text_makes_a_merge_crash(origin: str, updated: str, local: str) -> None:
    try:
        result = merge_documents(origin, updated, local)
    except YamlError:
        return
    if result.text is not None:
        read_document(result.text)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40))
def test_no_bytes_make_a_merge_of_files_crash(origin: bytes, updated: bytes, local: bytes) -> None:
    head = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    try:
        merge_resources(*({"a.yaml": File(head + data), "b.yaml": File(data)} for data in (origin, updated, local)))
    except UnreadableFile as error:
        assert error.path in {"a.yaml", "b.yaml"}  # noqa: PT017 - not every refusal is expected
        assert error.line > 0  # noqa: PT017 - the same
    except UpdateError:
        pass


@pytest.mark.parametrize("seed", range(40))
def test_damaged_resources_are_merged_or_refused(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test's data
    text = new_document(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "a", "labels": {"k": "v"}},
            "spec": {
                "template": {
                    "spec": {
                        "containers": [{"name": n, "image": f"{n}:1", "ports": [{"containerPort": 80}]} for n in "abc"]
                    }
                }
            },
        }
    )
    for _ in range(10):
        states = []
        for _ in range(3):
            damaged = list(text)
            for _ in range(chance.randrange(4)):
                place = chance.randrange(len(damaged))
                damaged[place] = chance.choice(
                    ["", "\n", "-", ":", " ", "#", "[", "}", "&a ", "*a", "\t", "'", damaged[place] * 2]
                )
            states.append({"f.yaml": File("".join(damaged).encode())})
        try:
            merge_resources(*states)
        except UnreadableFile as error:
            assert error.line > 0  # noqa: PT017 - not every refusal is expected
        except UpdateError:
            pass


def hostile_list(element: str, count: int = 4000) -> str:
    return "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n" + "".join(element % (n % 7, n) for n in range(count))


@pytest.mark.parametrize(
    "element",
    [
        pytest.param("  - {name: same%d, x: %d}\n", id="few-names"),
        pytest.param("  - {name: a, ports: [{containerPort: %d, protocol: p%d}]}\n", id="one-name"),
        pytest.param("  - {x: %d%d}\n", id="no-name"),
        pytest.param("  - [%d, %d]\n", id="lists"),
    ],
)
def test_large_lists_take_time_in_proportion(element: str) -> None:
    origin = hostile_list(element)
    updated, local = origin.replace("1", "2"), origin.replace("3", "4")
    with metered() as cost:
        merge(*map(read_document, (origin, updated, local)), lists=ListKeys())

    assert cost.seconds < 5


def test_incomplete_keys_are_matched_in_time() -> None:
    ports = (
        "".join(f"      - {{containerPort: 1, protocol: p{n}}}\n" for n in range(4000))
        + "      - {containerPort: 1}\n" * 4000
    )
    text = f"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: i\n    ports:\n{ports}"
    states = [read_document(text.replace("p0", replaced)) for replaced in ("p0", "q0", "r0")]
    with metered() as cost:
        result = merge(*states, lists=ListKeys())

    assert cost.seconds < 5
    assert len(result["spec"]["containers"][0]["ports"]) == 8001


def test_comments_in_large_lists_are_merged_in_time() -> None:
    elements = "".join(f"  - name: c{n} # of {n}\n    image: i # at {n}\n" for n in range(3000))
    origin = f"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n{elements}"
    updated = origin.replace("  - name: c7 # of 7\n    image: i # at 7\n", "").replace("# of 9", "# for 9")
    with metered() as cost:
        result = merge_documents(origin, updated, origin + "  hostname: h # local\n").text

    assert cost.seconds < 5
    assert result == updated + "  hostname: h # local\n"
