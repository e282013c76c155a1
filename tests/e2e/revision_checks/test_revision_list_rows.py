# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""Rows 29 to 42 of ``kube-api.md`` 7.2 on package revisions: lists, selectors and forms."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event, Thread

from checked_draft import Drafts
from eventually import eventually
from porch_process import PorchProcess
from remotes import Remote, git
from revision_fixtures import drafts  # noqa: F401 # found by name

MANY = 1200
PATIENCE = 120.0


def tag_many(remote: Remote, count: int) -> None:
    """Publish so many revisions of one package, as somebody else would: each is a tag on the same commit."""
    kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: many\n"
    blob = git("hash-object", "-w", "--stdin", cwd=remote.path, stdin=kptfile.encode())
    package = git("mktree", cwd=remote.path, stdin=f"100644 blob {blob}\tKptfile\n".encode())
    root = git("mktree", cwd=remote.path, stdin=f"040000 tree {package}\tmany\n".encode())
    commit = git("commit-tree", root, "-m", "many revisions", cwd=remote.path)
    lines = "".join(f"create refs/tags/many/v{number} {commit}\n" for number in range(1, count + 1))
    git("update-ref", "--stdin", cwd=remote.path, stdin=lines.encode())


def create_some(server: PorchProcess, drafts: Drafts, count: int) -> None:
    def some(first: int) -> None:
        with closing(server.client(drafts.porch.namespace)) as client:
            own = Drafts(drafts.kubectl, client)
            for number in range(first, count, 4):
                own.of(f"m{number:03}").create()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(some, range(4)))


def test_row_29_a_get_of_1200_revisions_reads_three_pages(drafts: Drafts, empty_remote: Remote) -> None:
    tag_many(empty_remote, MANY)

    def found() -> None:
        assert len(drafts.listed()["items"]) == MANY

    eventually(found, timeout=PATIENCE)
    done = drafts.kubectl("get", "packagerevisions", "--no-headers", "-v=7")

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == MANY
    # The second is how newer kubectls log a request.
    asked = (" GET http", '"Request" verb="GET"')
    pages = [line for line in done.stderr.splitlines() if "limit=500" in line and any(one in line for one in asked)]
    assert len(pages) == 3
    assert sum("continue=" in line for line in pages) == 2


def test_row_30_small_chunks_show_one_state_while_others_write(porch_server: PorchProcess, drafts: Drafts) -> None:
    create_some(porch_server, drafts, 50)
    written: list[str] = []
    stop = Event()

    def write() -> None:
        with closing(porch_server.client(drafts.porch.namespace)) as client:
            own = Drafts(drafts.kubectl, client)
            while not stop.is_set():
                package = f"m{len(written):03}-new"
                own.of(package).create()
                written.append(package)

    def begun() -> None:
        assert len(written) > 2

    writer = Thread(target=write)
    writer.start()
    try:
        eventually(begun, timeout=PATIENCE)
        packages = drafts.packages("--chunk-size=7")
    finally:
        stop.set()
        writer.join()

    new = [package for package in packages if package.endswith("-new")]
    assert [package for package in packages if package not in new] == [f"m{number:03}" for number in range(50)]
    assert sorted(new) == sorted(written[: len(new)]), "what is shown of the new ones is a state that was"


def test_row_31_label_selectors_choose_by_set_inequality_and_number(drafts: Drafts) -> None:
    drafts.of("both").create(a="x", z="1", n="6")
    drafts.of("first").create(a="x", n="5")
    drafts.of("second").create(a="y", n="50")
    drafts.of("third").create(a="w", n="many")

    assert drafts.packages("-l", "a in (x,y),!z") == ["first", "second"]
    assert drafts.packages("-l", "a!=x,a") == ["second", "third"]
    assert drafts.packages("-l", "n>5") == ["both", "second"]
    assert drafts.packages("-l", "n<6") == ["first"]


def test_row_32_a_selector_that_cannot_be_read_is_a_bad_request(drafts: Drafts) -> None:
    refused = drafts.kubectl("get", "packagerevisions", "-l", "a in x")

    assert refused.returncode == 1
    assert refused.stderr.startswith("Error from server (BadRequest): ")
    assert "unable to parse requirement: found 'x'" in refused.stderr


def test_row_33_one_revision_is_chosen_by_its_name(drafts: Drafts) -> None:
    for package in ("a", "b"):
        drafts.of(package).create()

    assert drafts.packages(f"--field-selector=metadata.name={drafts.of('a').name}") == ["a"]
    assert drafts.packages("--field-selector=spec.packageName=b") == ["b"]


def test_row_36_labels_are_shown_as_one_column_or_as_several_and_headers_can_be_left_out(drafts: Drafts) -> None:
    drafts.of("one").create(app="web", tier="front")
    drafts.of("two").create()

    def rows(*arguments: str) -> list[list[str]]:
        return [line.split() for line in drafts.kubectl.ok("get", "packagerevisions", *arguments).splitlines()]

    shown, column, bare = rows("--show-labels"), rows("-L", "app"), rows("--no-headers")

    assert (shown[0][-1], column[0][-1]) == ("LABELS", "APP")
    assert [row[-1] for row in shown[1:]] == ["app=web,tier=front", "<none>"]
    assert [row[-1] for row in column[1:]] == ["web", "deployments"], "nothing after the last column of its own"
    assert [row[1] for row in bare] == ["one", "two"]


def test_row_38_a_page_tells_how_many_remain_unless_a_selector_is_used(drafts: Drafts) -> None:
    for _ in range(4):
        drafts.new().create(app="x")

    page = json.loads(drafts.kubectl.ok("get", "--raw", drafts.path("limit=1")))["metadata"]
    selected = json.loads(drafts.kubectl.ok("get", "--raw", drafts.path("limit=1&labelSelector=app%3Dx")))["metadata"]

    assert page["continue"]
    assert page["remainingItemCount"] == 3
    assert selected["continue"]
    assert "remainingItemCount" not in selected


def test_row_41_yaml_is_served_to_who_accepts_it(drafts: Drafts) -> None:
    drafts.new().create()

    answer = drafts.porch.request("GET", drafts.path(), accept="application/yaml")

    assert answer.headers["content-type"] == "application/yaml"
    assert b"kind: PackageRevisionList\n" in answer.body
    assert re.search(rb"^ +packageName: p1$", answer.body, re.MULTILINE)


def test_row_42_cbor_is_refused_in_both_directions(drafts: Drafts) -> None:
    read = drafts.porch.request("GET", drafts.path(), accept="application/cbor")
    written = drafts.porch.request("POST", drafts.path(), b"\xa0", content_type="application/cbor")

    assert (read.code, read.reason) == (406, "NotAcceptable")
    assert (written.code, written.reason) == (415, "UnsupportedMediaType")
    assert "only the following media types are accepted" in read.message
