"""A process that writes until it is killed, and says what was acknowledged; run by ``test_object_store_kill``."""

import asyncio
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import structlog  # noqa: E402  (the tests' folder is on the path only now)
from object_store_cases import create, open_store, update  # noqa: E402

from storage.outbox import GitObject, OutboxChange  # noqa: E402


async def main(target: str) -> None:
    where = target if target.startswith("postgresql") else Path(target)

    async with open_store(where) as store:

        async def work(worker: int) -> None:
            name = f"w{worker}"
            entry = store.get(create(name).key)
            number = 0
            while True:
                number += 1
                mutation = create(name, number=0) if entry is None else update(entry, number=number)
                parcel = OutboxChange("ns/repo", name, [GitObject("blob", b"x", f"{number:040}")], {"n": str(number)})
                entry, pair = await store.write([mutation, create(f"{name}-{entry.rv if entry else 0}")], [parcel])
                sys.stdout.write(f"{entry.name} {entry.rv} {pair.name}\n")
                sys.stdout.flush()

        await asyncio.gather(*[work(worker) for worker in range(4)])


# What is acknowledged is all that is read from the other stream.
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
asyncio.run(main(sys.argv[1]))
