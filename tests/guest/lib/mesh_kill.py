#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's part of mesh-kill.sh: the manager, which has no guest, and all the killing."""

from mesh_host import LAB, alive, barrier, command, gid_states, kill, kill_server, live, mesh, pid, start, wait_for


def start_manager():
    """What stands before --socket in the command of a worker is how a server is run."""
    words = command(1)
    words = [*words[: words.index("--socket")], "--socket", str(LAB / "manager.sock")]
    words += ["--control", str(LAB / "control.manager"), "--backend", "tcp:manager:17477,interval=500"]
    return start(words, "manager.log")


def manager_knows(*addresses):
    """Three nodes are live, and each address leads to one of them."""
    answer = mesh("manager")
    return live(answer) == 3 and all("live" in gid_states(answer, a) for a in addresses)


def main():
    guests = ["192.168.200.11", "192.168.200.12"]
    manager = start_manager()
    wait_for("two workers", manager_knows)
    barrier("manager")

    barrier("kill-manager")
    wait_for("the GIDs of both guests", lambda: manager_knows(*guests))
    kill(manager.pid)
    manager.wait()
    barrier("manager-killed")
    barrier("start-manager")
    start_manager()
    wait_for("a new manager that knows the mesh", lambda: manager_knows(*guests))
    print("a new manager has learned", [gid["gid"] for gid in mesh("manager")["gids"]])
    barrier("manager-started")

    barrier("kill-server")
    kill_server(2)
    barrier("server-killed")
    barrier("start-server")
    start(command(2), "server.2.log")
    wait_for("the new server of guest 2", lambda: live(mesh(2)) == 3)
    print("the new server is node", mesh(2)["node"])
    barrier("server-started")

    barrier("kill-qemu")
    kill(pid("qemu.1"))
    barrier("qemu-killed", 2)
    barrier("end")
    if not alive(pid("server.1")):
        raise SystemExit("the server of guest 1 has ended")


main()
