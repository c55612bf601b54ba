# SPDX-License-Identifier: GPL-2.0-or-later
"""The rate of the CPU's time stamp counter, which the guest's kernel is told.

Under emulation the guest reads the host's counter. Its kernel finds the rate by comparing with an
emulated timer; when the host is busy and the guest loses its CPU in between, it finds a rate that
is wrong by any factor, and its clock with all time-outs runs that much too fast. Told the rate, it
does not measure.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import time

# rdtsc; shl rdx, 32; or rax, rdx; ret
CODE = bytes.fromhex("0f31 48c1e220 4809d0 c3")
MEASURE_NS = 20_000_000


def rate_khz() -> int | None:
    """Ticks per millisecond, to about 10 ppm; None where it cannot be read."""
    if platform.machine() != "x86_64":
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:  # a hardened kernel
        return None
    page.write(CODE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(address)

    def sample() -> tuple[int, int]:
        """A counter value and its time; the closest of a few, as we may be interrupted between."""
        tries = []
        for _ in range(16):
            before = time.monotonic_ns()
            ticks = read()
            after = time.monotonic_ns()
            tries.append((after - before, ticks, (before + after) // 2))
        _, ticks, now = min(tries)
        return ticks, now

    start_ticks, start = sample()
    time.sleep(MEASURE_NS / 1e9)
    end_ticks, end = sample()
    return round((end_ticks - start_ticks) * 1_000_000 / (end - start))
