#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's part of mesh-partition.sh: the cable between the two servers, and those who cut it.

The worker calls a port of ours, and we carry bytes between it and the manager. While the cable is cut
nothing is carried, not even the end of a connection, and all connections stay open; new ones are
accepted and lead nowhere, as a call into the dark does that is answered too late.
"""

import contextlib
import socket
import threading
import time

from mesh_host import barrier, gid_states, live, mesh, wait_for

PORT, MANAGER_PORT = 17479, 17480
GUESTS = ["192.168.200.11", "192.168.200.12"]
whole = threading.Event()


def carry(source, sink):
    with contextlib.suppress(OSError):
        while True:
            data = source.recv(1 << 16)
            whole.wait()
            if not data:
                break
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def connect(worker):
    whole.wait()
    manager = socket.create_connection(("127.0.0.1", MANAGER_PORT))
    for ends in ((worker, manager), (manager, worker)):
        ends[0].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=carry, args=ends, daemon=True).start()


def serve(listener):
    while True:
        worker, _ = listener.accept()
        threading.Thread(target=connect, args=(worker,), daemon=True).start()


def whole_mesh():
    """Both nodes see both live, and the manager has the GIDs of both guests."""
    states = [gid_states(mesh(1), guest) for guest in GUESTS]
    return live(mesh(1)) == live(mesh(2)) == 2 and all("live" in state for state in states)


def cut(seconds):
    """No byte passes for so long."""
    begin = time.monotonic()
    whole.clear()
    barrier(f"cut-{seconds}")
    if seconds > 20:  # more than three intervals
        wait_for("a silent node", lambda: live(mesh(1)) == 1)
        print("the manager says", [node["state"] for node in mesh(1)["nodes"]])
        if "live" in gid_states(mesh(1), GUESTS[1]):
            raise SystemExit("the GIDs of a silent node are not withdrawn")
    time.sleep(max(0, begin + seconds - time.monotonic()))
    whole.set()


def main():
    listener = socket.create_server(("127.0.0.1", PORT))
    whole.set()
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    wait_for("a mesh", lambda: live(mesh(1)) == live(mesh(2)) == 2)
    barrier("up")
    for seconds in (1, 5, 30):
        barrier(f"ready-{seconds}")
        cut(seconds)
        wait_for("a mesh that is whole again", whole_mesh)
        barrier(f"joined-{seconds}")
    barrier("end")  # the cable is ours


main()
