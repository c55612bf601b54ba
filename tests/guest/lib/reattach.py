#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""peer.py that also kills QEMU: GET /kill does it at once, with SIGKILL."""

import os
import signal
import sys

import peer


class Killer(peer.Peer):
    """A peer that answers /kill by nothing at all."""

    def do_GET(self):
        if self.path == "/kill":
            os.kill(int((peer.LAB / "qemu.1.pid").read_text("ascii")), signal.SIGKILL)
        else:
            super().do_GET()


if __name__ == "__main__":
    peer.Peer = Killer
    sys.exit(peer.main())
