#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks who may include whom under src/, and that unit tests have no threads. Arguments: the files.

A room includes its own headers and the doors of the floors below that are named here. Headers
called *_internal.h stay in their room.
"""

import re
import sys
from pathlib import PurePath

# Room: the rooms whose doors it may open.
MAY_USE = {
    "base": set(),
    "vfio": {"base"},
    "net": {"base"},
    "rdma": {"base", "net"},
    "fabric": {"base", "net", "rdma"},
    "ionic": {"base", "vfio", "net", "rdma"},
    "p4": {"base", "net", "rdma"},
    "target": {"base", "net", "rdma", "fabric"},
    "server": {"base", "vfio", "net", "rdma", "fabric", "ionic", "p4", "target"},
}
# The device sees the guest through guest_mem.h and pci_irq.h, the outside through net.h and
# rdma.h; how those reach it is not its business.
FORBIDDEN = {"ionic": re.compile(r"<(sys/socket|sys/un|sys/epoll)\.h>")}
# The server is one thread, which is why `./run test` leaves the unit tests out of its thread
# sanitizer stage. Who brings a thread in lets them run there, and then takes this out.
THREADS = re.compile(r"<(pthread|threads)\.h>")
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|(<[^>]+>))')


def problem(room, local, system):
    """What is wrong with one include line of a file in `room`, or None; a test is in no room."""
    if system and THREADS.match(system):
        return f"{system}: the server has one thread; see THREADS in check_rooms.py"
    if room is None:
        return None
    if system:
        forbidden = FORBIDDEN.get(room)
        return f"{system} has no place in {room}" if forbidden and forbidden.match(system) else None
    other = PurePath(local).parts[0] if "/" in local else room
    if other == room:
        return None
    if other not in MAY_USE:
        return f"{local} is no room"
    if other not in MAY_USE.get(room, set()):
        return f"{room} must not know {other}"
    if local.endswith("_internal.h"):
        return f"{local} stays inside {other}"
    return None


def first_include_is_own(path, includes):
    """A .c file includes its own header first, where it has one."""
    own = path.with_suffix(".h")
    names = {str(PurePath(*own.parts[1:])), own.name}
    if path.suffix != ".c" or not names & set(includes):
        return True
    return includes[0] in names


def check(path):
    """Yield the problems of one file."""
    room = path.parts[1] if path.parts[0] == "src" else None
    includes = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            includes.append(found[1] or found[2])
            text = problem(room, found[1], found[2])
            if text:
                yield f"{path}:{number}: {text}"
    if room and not first_include_is_own(path, includes):
        yield f"{path}: includes something before its own header"


def main(arguments):
    problems = [text for name in arguments for text in check(PurePath(name))]
    for text in problems:
        print(text)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
