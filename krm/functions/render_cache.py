"""Remembering whole renders: a package that was rendered already is not rendered again.

What is remembered is keyed by every byte that a render can see, so that it holds for the very same package
only. Two things are: what a package was rendered to, and, because that is what clients send next, what its
output renders to. For the latter the pipeline looks ahead (``Rendered.repeats``): ``f(f(x)) = f(x)`` is never
assumed, but computed in memory and kept if nothing but the status differs. Whatever cannot be known to do the
same again (commands, containers, scripts that read the clock) is not remembered. Failures are not either.
"""

import pickle
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b

from krm.functions.rendered import Rendered
from krm.functions.size_bound import SizeBound
from krm.package.contents import Contents, File

_KPTFILE = "Kptfile"


@dataclass(frozen=True, slots=True)
class _Memory:
    """The outcome of one render, without the files that stayed as they were."""

    rendered: Rendered
    removed: tuple[str, ...]


class RenderCache:
    """The outcomes of renders with one runner, up to a size in bytes; for any number of threads."""

    def __init__(self, max_bytes: int) -> None:
        self._lock = threading.Lock()
        self._memories: SizeBound[bytes, _Memory] = SizeBound(max_bytes)

    @property
    def size(self) -> int:
        """Bytes held now."""
        return self._memories.size

    def find(self, contents: Contents) -> Rendered | None:
        """Return what rendering ``contents`` gives, None when that is not known."""
        key = _key(contents)
        with self._lock:
            memory = self._memories.get(key)
        if memory is None:
            return None
        kept = dict(contents)
        for path in memory.removed:
            del kept[path]
        return replace(memory.rendered, contents={**kept, **memory.rendered.contents})

    def add(self, given: Contents, rendered: Rendered) -> None:
        """Remember a render of ``given`` and what looking ahead found, if the same is known to come out again."""
        if not rendered.is_deterministic or rendered.failed:
            return
        self._put(given, replace(rendered, repeats=()))
        for contents, repeated in _repeated(rendered):
            self._put(contents, repeated)

    def _put(self, given: Contents, rendered: Rendered) -> None:
        changed = {path: file for path, file in rendered.contents.items() if given.get(path) != file}
        removed = tuple(path for path in given if path not in rendered.contents)
        memory = _Memory(replace(rendered, contents=changed), removed)
        key, size = _key(given), _size(memory)
        with self._lock:
            self._memories.put(key, memory, size)


def _repeated(rendered: Rendered) -> Iterator[tuple[Contents, Rendered]]:
    """Yield what is known of renders of the outcome: what is rendered, and what to."""
    contents = rendered.contents
    for repeat in rendered.repeats:
        kptfile = File(repeat.kptfile, contents[_KPTFILE].mode)
        following = contents if kptfile == contents[_KPTFILE] else {**contents, _KPTFILE: kptfile}
        yield (
            contents,
            replace(
                rendered,
                contents=following,
                results=repeat.results,
                status=repeat.status,
                steps=repeat.steps,
                repeats=(),
            ),
        )
        contents = following


def _size(memory: _Memory) -> int:
    """Return about how many bytes a memory holds; files are counted and not copied, which would take the interpreter."""
    files = sum(len(path) + len(file.data) for path, file in memory.rendered.contents.items())
    return files + len(pickle.dumps((replace(memory.rendered, contents={}), memory.removed)))


def _key(contents: Contents) -> bytes:
    digest = blake2b(digest_size=32)
    for path in sorted(contents):
        file = contents[path]
        name = path.encode(errors="surrogatepass")
        digest.update(b"%d %d %o\n" % (len(name), len(file.data), file.mode))
        digest.update(name)
        digest.update(file.data)
    return digest.digest()
