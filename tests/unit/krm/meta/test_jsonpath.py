"""JSONPath as Kubernetes has it: what printer columns, scale paths and selectable fields may say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from krm.meta.jsonpath import MAX_LENGTH, MAX_NESTING, MAX_VALUES, JsonPathError, compile_path

REPOSITORY: dict[str, Any] = {
    "metadata": {"name": "r", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {"example.com/x": "dotted"}},
    "spec": {
        "type": "git",
        "content": "Package",
        "deployment": True,
        "sync": {"schedule": "*/5 * * * *"},
        "git": {"repo": "https://example.com/r.git", "branch": "main"},
    },
    "status": {
        "conditions": [
            {"type": "Stalled", "status": "Unknown", "weight": 1},
            {"type": "Ready", "status": "True", "reason": "a]b", "weight": 2},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(".spec.type", "git", id="type"),
        pytest.param(".spec.content", "Package", id="content"),
        pytest.param(".spec.sync.schedule", "*/5 * * * *", id="schedule"),
        pytest.param(".spec.deployment", True, id="deployment"),
        pytest.param(".status.conditions[?(@.type=='Ready')].status", "True", id="ready"),
        pytest.param(".spec['git','oci']['repo','registry']", "https://example.com/r.git", id="address"),
        pytest.param(".spec.git.branch", "main", id="branch"),
        pytest.param(".metadata.creationTimestamp", "2026-01-01T00:00:00Z", id="age"),
    ],
)
def test_the_columns_of_repositories_find_their_values(path: str, value: Any) -> None:
    assert compile_path(path).first(REPOSITORY) == value
    assert compile_path("{" + path + "}").first(REPOSITORY) == value


FOUND = [
    ("$.spec.type", ["git"]),
    ("{$.spec.type}", ["git"]),
    (".spec['type']", ["git"]),
    (".status.conditions[0].type", ["Stalled"]),
    (".status.conditions[-1].type", ["Ready"]),
    (".status.conditions[-1:].type", ["Ready"]),
    (".status.conditions[0:2].type", ["Stalled", "Ready"]),
    (".status.conditions[0:2:2].type", ["Stalled"]),
    (".status.conditions[0,1].type", ["Stalled", "Ready"]),
    (".status.conditions[*].status", ["Unknown", "True"]),
    (".status.conditions.*.status", ["Unknown", "True"]),
    ("..branch", ["main"]),
    ("..conditions[*].type", ["Stalled", "Ready"]),
    (".status.conditions[?(@.reason)].type", ["Ready"]),
    ('.status.conditions[?(@.reason=="a]b")].type', ["Ready"]),
    (".status.conditions[?(@.type!='Ready')].type", ["Stalled"]),
    (".status.conditions[?(@.weight>1)].type", ["Ready"]),
    (".status.conditions[?(@.weight<2)].type", ["Stalled"]),
    (".status.conditions[?(@.weight>=1)].type", ["Stalled", "Ready"]),
    (".status.conditions[?(@.weight<=1)].type", ["Stalled"]),
    (".status.conditions[?(@.status < 'U')].type", ["Ready"]),
    (".status.conditions[?(@.missing=='x')].type", []),
    (r".metadata.annotations.example\.com/x", ["dotted"]),
    (r".metadata.annotations['example\.com/x']", ["dotted"]),
    (".metadata.annotations['example.com/x']", []),
    (".spec.nothing.below", []),
    (".spec.type.below", []),
]


@pytest.mark.parametrize(("path", "values"), FOUND, ids=[path for path, _ in FOUND])
def test_a_path_finds(path: str, values: list[Any]) -> None:
    """Agrees with client-go's jsonpath package (0.34.2), with missing keys allowed."""
    assert compile_path(path).find(REPOSITORY) == values


MISFITS = [
    ".spec[0]",
    ".spec[*]",
    ".spec.type[0:1]",
    ".spec[?(@.a)]",
    ".status.conditions[2]",
    ".status.conditions[2:]",
    ".status.conditions[0:3]",
    ".status.conditions[-3]",
    ".status.conditions[?(@.weight=='1')]",
    ".status.conditions[?(@.weight==1.0)]",
    ".status.conditions[?(@.*=='Ready')]",
]


@pytest.mark.parametrize("path", MISFITS)
def test_a_path_that_does_not_fit_the_object_has_no_first_value(path: str) -> None:
    with pytest.raises(JsonPathError):
        compile_path(path).find(REPOSITORY)

    assert compile_path(path).first(REPOSITORY) is None


BROKEN = [
    ".a[",
    ".a[0",
    ".a[x]",
    ".a[]",
    ".a['b]",
    ".a[?(@.b=~'c')]",
    ".a[?(@.b==1 && @.c==2)]",
    "...a",
    "a.b",
    ".a{.b}",
    "#",
    ".a[1:2:0]",
    "." + "a" * MAX_LENGTH,
    "[?(@" * (MAX_NESTING + 2) + ")]" * (MAX_NESTING + 2),
]


@pytest.mark.parametrize("path", BROKEN, ids=range(len(BROKEN)))
def test_what_is_no_path_is_refused_when_it_is_compiled(path: str) -> None:
    with pytest.raises(JsonPathError):
        compile_path(path)


def test_only_plain_paths_tell_their_fields() -> None:
    assert compile_path(".spec.replicas").fields == ("spec", "replicas")
    assert compile_path(".spec['replicas']").fields == ("spec", "replicas")
    assert compile_path(".spec[0]").fields is None
    assert compile_path("..replicas").fields is None


def test_recursive_descents_inside_one_another_are_stopped() -> None:
    wide = {"a": [{"a": [{"a": [1] * 20}] * 20}] * 20}

    with pytest.raises(JsonPathError, match=str(MAX_VALUES)):
        compile_path("..*" * 6).find(wide)


NAMES = st.text(alphabet="abcdefgh-_", min_size=1, max_size=6).filter(lambda name: name[0] != "-")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3),
    max_leaves=15,
)


@given(st.lists(NAMES, min_size=1, max_size=5), st.integers())
def test_a_chain_of_children_finds_what_was_put_there(names: list[str], value: int) -> None:
    obj: Any = value
    for name in reversed(names):
        obj = {name: obj}

    assert compile_path("." + ".".join(names)).find(obj) == [value]
    assert compile_path("".join(f"['{name}']" for name in names)).first(obj) == value


@given(st.text(alphabet=".[]'\"?()@$*:,=<>!&\\ab01- ", max_size=30), JSON)
def test_any_text_either_compiles_or_is_refused_and_never_breaks_an_evaluation(text: str, obj: Any) -> None:
    try:
        path = compile_path(text)
    except JsonPathError:
        return

    path.first(obj)
