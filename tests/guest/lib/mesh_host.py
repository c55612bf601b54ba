# SPDX-License-Identifier: GPL-2.0-or-later
"""What host scripts of tests on a mesh share: barriers, control sockets, servers."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

LAB = Path(os.environ["LAB_DIR"])
PATIENCE = 60


def barrier(name, count=3):
    """Meets both guests, or fewer, at a barrier."""
    subprocess.run(["barrier", name, str(count)], check=True)


def wait_for(what, condition):
    """Until the condition is true; what it is, is for the message."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"not within {PATIENCE} s: {what}")
        time.sleep(0.05)


def mesh(server):
    """What a server tells of its mesh; nothing while it cannot be asked."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(LAB / f"control.{server}"))
            connection.sendall(b'{"cmd":"mesh"}\n')
            with connection.makefile("rb") as answers:
                answer = json.loads(answers.readline())
    except (ConnectionError, FileNotFoundError):
        return {"nodes": [], "gids": [], "connections": []}
    if not answer["ok"]:
        sys.exit(f"mesh: {answer}")
    return answer


def live(answer):
    """How many nodes are live."""
    return sum(node["state"] == "live" for node in answer["nodes"])


def gid_states(answer, address):
    """The states of all claims of an IPv4 address."""
    return [gid["state"] for gid in answer["gids"] if gid["gid"] == f"::ffff:{address}"]


def pid(name):
    """Of `server.N` or `qemu.N`."""
    return int((LAB / f"{name}.pid").read_text("ascii"))


def kill(process):
    """SIGKILL, and until it is gone."""
    os.kill(process, signal.SIGKILL)
    wait_for(f"the end of process {process}", lambda: not alive(process))


def state(stat):
    """The letter of a stat file in /proc; Z for what is not there any more."""
    try:
        return stat.read_text("ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def alive(process):
    return state(Path(f"/proc/{process}/stat")) != "Z"


def kill_server(number):
    """SIGKILL in the middle of traffic, but with all messages of its QEMU read, which stands still for it: a
    socket that is closed with unread messages is an error to QEMU 11.1, and the error an assertion."""
    qemu, server = pid(f"qemu.{number}"), pid(f"server.{number}")
    os.kill(qemu, signal.SIGSTOP)
    threads = [task / "stat" for task in Path(f"/proc/{qemu}/task").iterdir()]
    wait_for("QEMU to stop", lambda: all(state(thread) in "TZ" for thread in threads))
    for _ in range(10):  # an answer takes a turn, and each turn reads what is there
        mesh(number)
    kill(server)
    os.kill(qemu, signal.SIGCONT)


def command(server):
    """The command line of a server."""
    return shlex.split((LAB / f"server.{server}.cmd").read_text("utf-8"))


def start(words, log):
    """Starts a server; it ends with the run."""
    with (LAB / log).open("ab") as output:
        # pylint: disable=consider-using-with
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
