#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's end of a guest test, at 192.168.200.1:8000.

    GET  /blob/BYTES            so many bytes, always the same ones
    GET  /sha256/BYTES          their digest
    PUT  /sum                   answers with the digest of what was sent
    POST /control/N             the body goes to the control socket of server N; answers what it says
    POST /later/N               a JSON list of such commands and of pauses in seconds, begun after
                                the answer has left
    GET  /stats/N               the stats file of server N
    POST /frames/IFNAME/COUNT   the body is a frame in hexadecimal, sent so often on the interface
    POST /run                   runs the body as a shell command; answers its output, 500 if it fails

It ends when the guests have ended.
"""

import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PORT = 8000
CHUNK = 1 << 16
LAB = Path(os.environ["LAB_DIR"])


def blob(size):
    """SIZE bytes that repeat nowhere near, in chunks."""
    block = hashlib.shake_256(b"rocm-ernic").digest(CHUNK + 251)
    for start in range(0, size, CHUNK):
        shift = (start // CHUNK) % 251
        yield block[shift : shift + min(CHUNK, size - start)]


def control(server, line):
    """One command for a server's control socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(LAB / f"control.{server}"))
        connection.sendall(line.strip() + b"\n")
        with connection.makefile("rb") as answers:
            return answers.readline()


def later(server, steps):
    """Commands and pauses, one after the other."""
    time.sleep(0.2)  # the answer to the guest leaves first
    for step in steps:
        if isinstance(step, (int, float)):
            time.sleep(step)
        else:
            print("peer:", json.dumps(step), control(server, json.dumps(step).encode()).decode(), end="")


def send_frames(interface, count, frame):
    """A frame, COUNT times."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((interface, 0))
        for _ in range(count):
            wire.send(frame)


class Peer(BaseHTTPRequestHandler):
    """One request of a guest."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Requests are not logged."""

    def _reply(self, body, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_GET(self):  # pylint: disable=invalid-name
        """blob, sha256, stats"""
        _, kind, argument = self.path.split("/")
        if kind == "blob":
            self.send_response(200)
            self.send_header("Content-Length", argument)
            self.end_headers()
            for chunk in blob(int(argument)):
                self.wfile.write(chunk)
        elif kind == "sha256":
            digest = hashlib.sha256()
            for chunk in blob(int(argument)):
                digest.update(chunk)
            self._reply(digest.hexdigest().encode())
        elif kind == "stats":
            self._reply((LAB / f"stats.{argument}").read_bytes())
        else:
            self._reply(b"no such thing\n", 404)

    def do_PUT(self):  # pylint: disable=invalid-name
        """sum"""
        digest = hashlib.sha256()
        left = int(self.headers["Content-Length"])
        while left:
            chunk = self.rfile.read(min(left, CHUNK))
            if not chunk:
                return
            digest.update(chunk)
            left -= len(chunk)
        self._reply(digest.hexdigest().encode())

    def do_POST(self):  # pylint: disable=invalid-name
        """control, later, frames, run"""
        words = self.path.split("/")[1:]
        body = self._body()
        if words[0] == "control":
            self._reply(control(words[1], body))
        elif words[0] == "later":
            steps = json.loads(body)
            self._reply(b"")
            threading.Thread(target=later, args=(words[1], steps), daemon=True).start()
        elif words[0] == "frames":
            send_frames(words[1], int(words[2]), bytes.fromhex(body.decode()))
            self._reply(b"")
        elif words[0] == "run":
            done = subprocess.run(
                ["sh", "-c", body.decode()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
            )
            self._reply(done.stdout, 200 if done.returncode == 0 else 500)
        else:
            self._reply(b"no such thing\n", 404)


class Server(ThreadingHTTPServer):
    """Answers on IPv4 and IPv6."""

    address_family = socket.AF_INET6
    daemon_threads = True
    request_queue_size = 64

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


def main():
    server = Server(("::", PORT), Peer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # Nobody else comes to this barrier: it ends, unsuccessfully, when the guests have.
    subprocess.run(
        ["barrier", "the-end", str(1000)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False
    )


if __name__ == "__main__":
    sys.exit(main())
