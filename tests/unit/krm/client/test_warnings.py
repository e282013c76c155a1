"""What a server says besides its answer."""

import asyncio

from krm.client.warnings import MOST_WARNINGS, hear, warnings_heard


def test_texts_are_collected_inside_the_block_only_each_once_and_without_their_escapes() -> None:
    hear(['299 - "before"'])
    with warnings_heard() as heard:
        hear(['299 - "a \\"quoted\\" \\\\ text"', '299 - "two", 299 porch "three"'])
        hear(['299 - "two"'])
    hear(['299 - "after"'])

    assert heard == ['a "quoted" \\ text', "two", "three"]


def test_what_is_no_warning_is_left_out_and_there_is_an_end_to_them() -> None:
    with warnings_heard() as heard:
        hear(["", "299", '199 - "stale"', '299 - "open', *(f'299 - "{number}"' for number in range(100))])

    assert heard == [str(number) for number in range(MOST_WARNINGS)]


async def test_tasks_hear_their_own_requests_only() -> None:
    async def listen(text: str) -> list[str]:
        with warnings_heard() as heard:
            await asyncio.sleep(0)
            hear([f'299 - "{text}"'])
            await asyncio.sleep(0)
        return heard

    assert list(await asyncio.gather(listen("a"), listen("b"))) == [["a"], ["b"]]
