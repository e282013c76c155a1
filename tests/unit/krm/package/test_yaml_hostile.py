"""No input makes reading, editing or comments hang, crash or grow; every refusal says where.

The memory is limited from outside: the same inputs run in a child process that may not have more.
"""

import contextlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from corpus_documents import seeded, yaml_files
from cost import processor_seconds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from yaml_texts import file_texts

from krm.package.comments import Comment, read_comments, write_comments
from krm.package.documents import Document, read_file
from krm.package.kptfile import KptfileError, parse_kptfile
from krm.package.yaml_edit_text import edit_document
from krm.package.yaml_reader import YamlError, read_document

_SECONDS = 5.0
"""Of CPU for one bomb, which is read, edited and read again about ten times; the machine may be busy."""
_MEMORY = 512 << 20
_FUZZ = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_SPICE = ("\n", " ", "  ", "\t", "#", ": ", "- ", "[", "]", "{", "}", "&a", "*a", "!t ", "|", ">", "'", '"', "? ", ",")
_SPICE_MORE = ("---\n", "...\n", "%YAML 1.1\n", "<<: *a\n", "\r", "\x85", "\u2028", "\ufeff", "\x00", "😀", "key", "1")


def exercise(data: bytes) -> None:
    """Do with a file all that a server would; only our errors may come out."""
    with contextlib.suppress(KptfileError):
        parse_kptfile(data)
    try:
        documents = read_file(data)[1]
    except YamlError as refusal:
        error = refusal
    else:
        _exercise_documents(documents)
        return
    # libyaml's reader knows no line of what is not a character of YAML at all.
    assert error.line > 0 or "control characters" in error.problem, str(error)


def _exercise_documents(documents: list[Document]) -> None:
    for document in documents:
        edit_document(document.text, {"a": [1, {"b": "c\n"}]}, document.data)
        if isinstance(document.data, dict) and document.data:
            edit_document(document.text, {**document.data, "new": "x"}, document.data)
            edit_document(document.text, dict(list(document.data.items())[1:]), document.data)
        comments = read_comments(document.text)
        with contextlib.suppress(YamlError):
            write_comments(document.text, dict.fromkeys([*comments, (), ("a",)], Comment("# h", "# l", "# f")))


@_FUZZ
@given(st.lists(st.sampled_from(_SPICE + _SPICE_MORE), max_size=40).map("".join))
def test_any_row_of_yaml_signs_is_read_or_refused(text: str) -> None:
    exercise(text.encode())


def test_a_text_that_breaks_the_last_editor_is_written_anew() -> None:
    assert edit_document("+_", {"a": 1}) == "a: 1\n"


@_FUZZ
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    exercise(data)


@_FUZZ
@given(file_texts(), st.lists(st.tuples(st.integers(0, 400), st.sampled_from(_SPICE)), max_size=4))
def test_any_damaged_document_is_read_or_refused(text: str, damage: list[tuple[int, str]]) -> None:
    for place, spice in damage:
        text = text[:place] + spice + text[place + 1 :]
    exercise(text.encode())


def test_damaged_files_of_the_corpus_are_read_or_refused() -> None:
    chance = seeded("damage")
    files = [data for _, data in yaml_files() if 0 < len(data) < 4000]
    for data in chance.sample(files, 150):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(damaged))
            damaged[at : at + chance.randint(0, 3)] = chance.choice(_SPICE).encode()
        exercise(bytes(damaged))


_BOMBS: dict[str, Callable[[], str]] = {
    "laughs": lambda: _laughs(9, 9),
    "laughs by merging": lambda: "a: &a {x: 1}\n" + "".join(f"k{n}: {{<<: [{'*a,' * 99}*a]}}\n" for n in range(2000)),
    "deep flow": lambda: "[" * 200_000,
    "deep block": lambda: "- " * 200_000,
    "deep mappings": lambda: "".join(" " * n + "a:\n" for n in range(1500)),
    "deep question marks": lambda: "? " * 100_000,
    "one long line": lambda: "a: " + "x" * (2 << 20),
    "many anchors": lambda: "".join(f"k{n}: &a{n} v\n" for n in range(20_000)),
    "many comments": lambda: "# c\n" * 50_000 + "a: 1\n",
    "comments without a break": lambda: "a: 1\n" + "#" * (1 << 20),
    "blank lines": lambda: "a: |\n  x\n" + "\n" * 300_000 + "b: 1\n",
    "many documents": lambda: "---\n" * 100_000,
    "many keys": lambda: "".join(f"k{n}: v\n" for n in range(20_000)),
    "flow keys": lambda: "{" + ",".join(f"k{n}: v" for n in range(20_000)) + "}",
    "tags": lambda: "a: " + "!" * 100_000 + " x\n",
    "digits": lambda: "a: " + "1" * 1_000_000 + "\n",
    "underscores": lambda: "a: 1" + "_" * 1_000_000 + "x\n",
    "quotes": lambda: "a: '" + "''" * 1_000_000 + "'\n",
    "escapes": lambda: 'a: "' + "\\x41" * 500_000 + '"\n',
    "dashes in comments": lambda: "a:\n" + "- x # - - - -\n" * 10_000,
    "long flow of comments": lambda: "a: [\n" + "x, # c\n" * 10_000 + "]\n",
}


def _laughs(width: int, depth: int) -> str:
    text = "a0: &a0 [" + ",".join("x" * width) + "]\n"
    for level in range(1, depth):
        text += f"a{level}: &a{level} [" + ",".join([f"*a{level - 1}"] * width) + "]\n"
    return text


def test_bombs_neither_hang_nor_grow() -> None:
    """In a child process, so that an allocation over the limit ends it and nothing else."""
    done = subprocess.run(
        [sys.executable, "-c", "import test_yaml_hostile as here; here.run_bombs()"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )

    assert done.stdout == "done\n", done.stdout + done.stderr[-2000:]


def run_bombs() -> None:
    """Exercise every bomb in the limited memory, and name those that take too long."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    for name, make in _BOMBS.items():
        data = make().encode()
        started = time.process_time()
        try:
            exercise(data)
        except Exception:
            sys.stdout.write(f"{name} failed\n")
            raise
        if (taken := time.process_time() - started) > _SECONDS:
            sys.stdout.write(f"{name} took {taken:.1f} s\n")
    sys.stdout.write("done\n")


def test_billion_laughs_are_refused_in_a_moment() -> None:
    bomb = _laughs(9, 9)

    def refused() -> None:
        with pytest.raises(YamlError, match="excessive aliasing") as caught:
            read_document(bomb)
        assert caught.value.line > 1

    assert processor_seconds(refused, times=5) < 0.05


def test_edits_of_many_keys_are_linear() -> None:
    def seconds(count: int) -> float:
        current: dict[str, Any] = {f"k{n}": n for n in range(count)}
        text = "".join(f"k{n}: {n}\n" for n in range(count))
        wanted = {key: value + 1 for key, value in current.items() if value % 3} | {f"n{n}": "x" for n in range(count)}
        return processor_seconds(lambda: edit_document(text, wanted, current))

    seconds(200)

    assert seconds(8000) < 32 * max(seconds(1000), 0.01)
