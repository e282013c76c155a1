"""Memory that a long-lived process gives back."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import contextlib, sys
from apiserver import memory

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 / 2**20

with memory.loading_long_lived() if sys.argv[1] == "long-lived" else contextlib.nullcontext():
    pass
bytearray(30 * 2**20)  # once such a block was freed, glibc takes all smaller ones from its heap
before = resident()
large, small = [], []
for _ in range(400):
    large.append(bytearray(b"x") * 200_000)
    small.append(bytearray(b"x") * 2_000)  # lives on between two large ones
del large
print(round(resident() - before))
"""


def grown(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, timeout=60, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep their heap in their own way")
def test_large_blocks_go_back_to_the_system_although_small_ones_between_them_live_on() -> None:
    assert grown("long-lived") <= 10
    assert grown("plain") >= 40, "the C library gives back by itself: the settings are not needed any more"
