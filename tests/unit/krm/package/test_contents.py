import pytest

from krm.package.contents import (
    EXECUTABLE,
    MAX_FILES,
    SUBMODULE,
    SYMLINK,
    ContentsError,
    File,
    binary_paths,
    check_contents,
    replace_texts,
    texts,
)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../x",
        "a/./x",
        "a//x",
        "a/",
        "a\\b",
        "a\0b",
        "a\nb",
        "a\x7fb",
        ".git/config",
        "a/.GIT",
        ".git . ",
        ".git::$INDEX_ALLOCATION",
        "git~1/x",
        ".g\u200cit/x",
        "x" * 256,
        "/".join(["abcdefghij"] * 100),
        "/".join(["a"] * 33),
        "...",
        "a/ /b",
        "\ufeff.",
        "a\ud800",
    ],
)
def test_path_that_could_leave_the_package_is_refused(path: str) -> None:
    with pytest.raises(ContentsError) as caught:
        check_contents({path: File(b"")})

    assert caught.value.path == path


@pytest.mark.parametrize(
    "path", ["Kptfile", ".gitignore", "a/.github/x", "é/ü.yaml", "a b", "...a", "git/x", "/".join(["a"] * 32)]
)
def test_ordinary_paths_are_accepted(path: str) -> None:
    check_contents({path: File(b"")})


@pytest.mark.parametrize("paths", [("a", "a/b"), ("a/b/c", "a"), ("\u00e9", "e\u0301")])
def test_paths_that_clash_are_refused(paths: tuple[str, str]) -> None:
    with pytest.raises(ContentsError):
        check_contents({path: File(b"") for path in paths})


def test_too_many_files_are_refused() -> None:
    with pytest.raises(ContentsError, match="more than"):
        check_contents({str(number): File(b"") for number in range(MAX_FILES + 1)})


def test_too_large_package_is_refused() -> None:
    megabyte = File(b"x" * (1 << 20))

    with pytest.raises(ContentsError, match="larger than 64 MiB"):
        check_contents({str(number): megabyte for number in range(65)})


OLD = {
    "Kptfile": File(b"old"),
    "run.sh": File(b"#!/bin/sh\n", EXECUTABLE),
    "logo.png": File(b"\x89PNG\xff"),
    "nul.txt": File(b"a\0b"),
    "link": File(b"Kptfile", SYMLINK),
    "module": File(b"", SUBMODULE),
    "empty": File(b""),
}


def test_texts_and_binary_files_are_told_apart() -> None:
    assert set(texts(OLD)) == {"Kptfile", "run.sh", "empty"}
    assert binary_paths(OLD) == ["link", "logo.png", "module", "nul.txt"]


def test_texts_replace_the_package_and_named_binary_files_stay() -> None:
    new = replace_texts(OLD, {"Kptfile": "new", "run.sh": "exit 1", "added": "x\r\n"}, ["logo.png", "link", "gone"])

    assert new == {
        "Kptfile": File(b"new"),
        "run.sh": File(b"exit 1", EXECUTABLE),
        "added": File(b"x\r\n"),
        "logo.png": OLD["logo.png"],
        "link": OLD["link"],
    }


def test_text_in_place_of_a_link_is_a_regular_file() -> None:
    assert replace_texts(OLD, {"link": "x"}, ["link"])["link"] == File(b"x")


def test_named_text_file_does_not_stay_unless_sent() -> None:
    assert replace_texts(OLD, {}, ["Kptfile"]) == {}


@pytest.mark.parametrize("text", ["a\0", "\ud800"])
def test_text_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ContentsError):
        replace_texts({}, {"a": text}, [])
