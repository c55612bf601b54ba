# SPDX-License-Identifier: GPL-2.0-or-later
"""Barriers: points at which guests, and host scripts, wait for each other by name.

A guest comes by its control channel, a host script by a socket. A barrier opens when its count of
parties has come. Once a guest has ended, a barrier that nobody else can fill is refused, so that
a failing guest does not leave the others waiting for the time-out.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from pathlib import Path

Answer = Callable[[str], None]


class Barriers:
    """All barriers of a run."""

    def __init__(self, guests: int, path: Path) -> None:
        self.guests = guests
        self.gone = 0
        self.waiting: dict[str, list[Answer]] = {}
        self.counts: dict[str, int] = {}
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen()
        self.clients: list[socket.socket] = []

    def arrive(self, name: str, count: str, answer: Answer) -> None:
        """A party has come to `name` and hears "go NAME", or "gone NAME"."""
        parties = int(count) if count.isdigit() and int(count) > 0 else self.guests
        self.counts[name] = parties
        waiting = self.waiting.setdefault(name, [])
        waiting.append(answer)
        if len(waiting) >= parties:
            self._release(name, "go")
        elif self.gone:
            self._refuse(name)

    def leave(self) -> None:
        """A guest has ended for good."""
        self.gone += 1
        for name in list(self.waiting):
            self._refuse(name)

    def _refuse(self, name: str) -> None:
        if self.counts[name] > self.guests - self.gone:
            self._release(name, "gone")

    def _release(self, name: str, word: str) -> None:
        for answer in self.waiting.pop(name):
            answer(f"{word} {name}")

    def accept(self) -> socket.socket | None:
        """A host script has connected."""
        try:
            client, _ = self.listener.accept()
        except OSError:
            return None
        self.clients.append(client)
        return client

    def request(self, client: socket.socket) -> None:
        """Read the one line a host script sends: "barrier NAME COUNT"."""

        def answer(text: str) -> None:
            with contextlib.suppress(OSError):
                client.sendall(text.encode() + b"\n")
            client.close()

        words = client.recv(4096).decode(errors="replace").split()
        if len(words) == 3 and words[0] == "barrier":
            self.arrive(words[1], words[2], answer)
        else:
            answer("usage: barrier NAME COUNT")

    def close(self) -> None:
        """Close every socket."""
        for client in [self.listener, *self.clients]:
            client.close()
