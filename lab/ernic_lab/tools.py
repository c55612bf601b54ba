# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs programs of an unpacked Debian tree: with the tree's own loader, or inside a chroot.

With its own loader and libraries a program of a newer Debian runs on an older host, sees the
host's files and sockets as they are, and needs no root. A compiler starts other programs by
path and so needs the chroot, which takes root or user namespaces.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from .errors import LabError

LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADER = f"{LIBRARIES}/ld-linux-x86-64.so.2"


def command(tree: Path, program: str, *arguments: str, name: str = "") -> list[str]:
    """The command line that runs `program` (a path inside `tree`), called `name`."""
    libraries = tree / LIBRARIES
    return [
        str(tree / LOADER),
        "--argv0",
        name or os.path.basename(program),
        "--library-path",
        str(libraries),
        str(tree / program),
        *arguments,
    ]


def run(tree: Path, program: str, *arguments: str, name: str = "", data: bytes = b"") -> bytes:
    """Run a program of the tree and return what it printed."""
    done = subprocess.run(
        command(tree, program, *arguments, name=name),
        input=data,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip()[-400:]
        raise LabError(f"{name or program} failed ({done.returncode}): {reason}")
    return done.stdout


def shared_objects(tree: Path, binary: Path) -> set[Path]:
    """Every library that `binary` loads at start, with its place in the tree."""
    # Not the loader's --list: that gives up at the first library it cannot find.
    done = subprocess.run(
        [str(tree / LOADER), "--library-path", str(tree / LIBRARIES), str(binary)],
        env={"LD_TRACE_LOADED_OBJECTS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LabError(f"cannot tell what {binary.name} loads: {done.stderr.strip()}")
    found = {Path(path) for path in re.findall(r" => (/\S+)", done.stdout)}
    for name in re.findall(r"(\S+) => not found", done.stdout):
        # Libraries in a private directory that an absolute run path names.
        places = sorted((tree / "usr/lib").rglob(name))
        if not places:
            raise LabError(f"{binary.name} needs {name}, which no package provides")
        found |= {places[0]} | shared_objects(tree, places[0])
    for path in found:
        if not path.is_relative_to(tree):  # the host has it, the guest would not
            raise LabError(f"{binary.name} needs {path.name}, which no package provides")
    return found


def chroot(tree: Path, work: Path, *arguments: str) -> None:
    """Run a command in a chroot of `tree`, with `work` mounted as /build, /proc and /dev/null.

    Mounts live in a namespace of their own, so nothing is left behind and `tree` stays as it is.
    """
    script = (
        'mount --bind "$2" "$1/build" && mount -t proc proc "$1/proc" && : >>"$1/dev/null" &&'
        ' mount --bind /dev/null "$1/dev/null" && tree=$1 && shift 2 &&'
        ' exec chroot "$tree" /usr/bin/env -i PATH=/usr/sbin:/usr/bin HOME=/ LC_ALL=C "$@"'
    )
    isolate = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    if os.geteuid() != 0:
        isolate += ["--user", "--map-root-user"]
    done = subprocess.run(
        [*isolate, "sh", "-c", script, "sh", str(tree), str(work), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return
    text = (done.stdout + done.stderr).strip()
    if "unshare" in text.splitlines()[-1:] or "unshare failed" in text:
        raise LabError(
            f"compiling needs a chroot: {text}; run lab/build once as root, "
            "or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)"
        )
    raise LabError(f"{' '.join(arguments)} failed:\n{text[-3000:]}")
