"""The Git remotes of the demo: three bare repositories, served over HTTP on loopback by dulwich.

Needs no ``git`` binary. Reading is open and pushing needs a password, as with most hosting services.
"""

import base64
import os
import tarfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from socketserver import ThreadingMixIn
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from wsgiref.simple_server import WSGIServer, make_server

from dulwich.bundle import read_bundle
from dulwich.objects import Blob, Commit, ObjectID, Tree
from dulwich.protocol import CAPABILITY_THIN_PACK
from dulwich.refs import Ref
from dulwich.repo import Repo
from dulwich.server import Backend, UploadPackHandler
from dulwich.web import WSGIRequestHandlerLogger, make_wsgi_chain

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

USER, PASSWORD = "porch", "demo"
BLUEPRINTS_BUNDLE = "test-blueprints.bundle"
CATALOG_ARCHIVE = "nephio-catalog.tar.xz"
MAIN = Ref(b"refs/heads/main")
AUTHOR = b"Porch demo <demo@example.com>"


class _ThreadedServer(ThreadingMixIn, WSGIServer):
    """Several clients at once: the server under demonstration and the story's own ``git clone``."""

    daemon_threads = True


class _Folder(Backend):
    """The repositories in one folder; the path of an address is a name in it and nothing more."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def open_repository(self, path: str | bytes) -> Repo:
        return Repo(str(self._root / Path(os.fsdecode(path)).name))


class _AnyClient(UploadPackHandler):
    """dulwich serves only clients that take thin packs; git itself does not ask that, and Porch takes none."""

    @classmethod
    def required_capabilities(cls) -> tuple[bytes, ...]:
        return tuple(capability for capability in super().required_capabilities() if capability != CAPABILITY_THIN_PACK)


class GitHttp:
    """Serves every bare repository below ``root``; use as a context manager."""

    def __init__(self, root: Path) -> None:
        application = _require_password_for_pushes(make_wsgi_chain(_Folder(root), handlers=HANDLERS))
        self._server = make_server(
            "127.0.0.1", 0, application, server_class=_ThreadedServer, handler_class=WSGIRequestHandlerLogger
        )
        self._thread = Thread(target=self._server.serve_forever, name="demo git server", daemon=True)

    def url(self, name: str) -> str:
        """Return the address of a repository."""
        return f"http://127.0.0.1:{self._server.server_port}/{name}.git"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _require_password_for_pushes(application: "WSGIApplication") -> "WSGIApplication":
    expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    def guard(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        pushes = "git-receive-pack" in environ["PATH_INFO"] + environ.get("QUERY_STRING", "")
        if pushes and environ.get("HTTP_AUTHORIZATION") != expected:
            start_response("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="demo"'), ("Content-Length", "0")])
            return [b""]
        return application(environ, start_response)

    return guard


HANDLERS: dict[bytes, Callable[..., Any]] = {b"git-upload-pack": _AnyClient}


def make_remotes(root: Path, data: Path) -> None:
    """Create ``blueprints``, ``catalog`` and ``deployments`` below ``root`` from the packages in ``data``.

    Raises:
        FileNotFoundError: the bundle or the archive is not in ``data``.
    """
    _from_bundle(_init(root / "blueprints.git"), data / BLUEPRINTS_BUNDLE)
    _from_archive(_init(root / "catalog.git"), data / CATALOG_ARCHIVE)
    with _init(root / "deployments.git") as repo:
        repo.refs[MAIN] = _commit(repo, {"README.md": b"# Deployments\n"}, "Initial commit")


def _init(path: Path) -> Repo:
    repo = Repo.init_bare(str(path), mkdir=True)
    repo.refs.set_symbolic_ref(Ref(b"HEAD"), MAIN)
    return repo


def _from_bundle(repo: Repo, bundle_path: Path) -> None:
    with repo, bundle_path.open("rb") as file, read_bundle(file) as bundle:
        bundle.store_objects(repo.object_store)
        for ref, oid in bundle.references.items():
            if ref == MAIN or ref.startswith(b"refs/tags/"):
                repo.refs[ref] = oid


def _from_archive(repo: Repo, archive_path: Path) -> None:
    """Put a tree of packages on main and tag each package as its first revision, ``<package>/v1``."""
    with repo:
        files = _read_archive(archive_path)
        commit = _commit(repo, files, "Nephio catalog")
        repo.refs[MAIN] = commit
        for package in _top_packages(files):
            repo.refs[Ref(f"refs/tags/{package}/v1".encode())] = commit


def _read_archive(path: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                files[member.name.removeprefix("./")] = content.read()
    return files


def _top_packages(files: Iterable[str]) -> list[str]:
    """Return the folders with a Kptfile that are not inside another such folder."""
    folders = sorted(path.removesuffix("/Kptfile") for path in files if path.endswith("/Kptfile"))
    found: list[str] = []
    for folder in folders:  # sorted: an outer folder comes before what it contains
        if not any(folder.startswith(f"{outer}/") for outer in found):
            found.append(folder)
    return found


def _commit(repo: Repo, files: Mapping[str, bytes], message: str) -> ObjectID:
    now = int(time.time())
    commit = Commit()
    commit.tree = _write_tree(repo, files)
    commit.author = commit.committer = AUTHOR
    commit.author_time = commit.commit_time = now
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = message.encode()
    repo.object_store.add_object(commit)
    return commit.id


def _write_tree(repo: Repo, files: Mapping[str, bytes]) -> ObjectID:
    tree, folders = Tree(), dict[str, dict[str, bytes]]()
    for path, data in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(name, {})[rest] = data
            continue
        blob = Blob.from_string(data)
        repo.object_store.add_object(blob)
        tree.add(name.encode(), 0o100644, blob.id)
    for name, inner in folders.items():
        tree.add(name.encode(), 0o040000, _write_tree(repo, inner))
    repo.object_store.add_object(tree)
    return tree.id


def read_refs(root: Path, name: str) -> dict[str, str]:
    """Return every branch and tag of one of the remotes."""
    with Repo(str(root / f"{name}.git")) as repo:
        return {
            ref.decode(): oid.decode()
            for ref, oid in sorted(repo.get_refs().items())
            if ref.startswith((b"refs/heads/", b"refs/tags/"))
        }


def read_file(root: Path, name: str, ref: str, path: str) -> bytes | None:
    """Return a file at a branch or tag of one of the remotes, or None."""
    with Repo(str(root / f"{name}.git")) as repo:
        commit = repo[repo.refs[Ref(ref.encode())]]
        try:
            _mode, oid = repo[commit.tree].lookup_path(repo.__getitem__, path.encode())  # type: ignore[attr-defined]
        except KeyError:
            return None
        return repo[oid].as_raw_string()
