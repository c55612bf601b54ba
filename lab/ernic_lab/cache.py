# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the lab keeps what it built, and how two builds stay out of each other's way.

    $XDG_CACHE_HOME/rocm-ernic/lab/
        build.lock              held by the one build or clean that may change anything
        use.lock                shared by every running guest, taken by clean before it removes
        apt/SUITE/              package lists and downloaded packages
        index/SUITE.RECIPE      JSON: which components make up this suite for this recipe
        NAME-KEY/               a finished component; KEY digests its packages and its recipe
        new.XXXX/               a component being built; renamed when complete

A finished component never changes, so a reader needs no lock to use one. The index names the
recipe that made it: two work trees with different recipes share a cache and every component
that happens to be equal.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .errors import LabError


def root() -> Path:
    """The cache directory of the lab; not created here."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # The XDG specification has it ignored; the user would look for the lab in another place.
    if not os.path.isabs(base):
        remedy = f"give all of it, such as {os.path.abspath(base)}, or unset it"
        raise LabError(f"XDG_CACHE_HOME '{base}': not an absolute path; {remedy}")
    return Path(base) / "rocm-ernic" / "lab"


def digest(*parts: str) -> str:
    """A short digest of texts, for directory names."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@contextlib.contextmanager
def lock(name: str, mode: int, busy: Callable[[], None] | None = None) -> Iterator[int]:
    """Hold the lock file NAME (fcntl.LOCK_SH or LOCK_EX); `busy` is called once before a wait.

    Gives the descriptor that has the lock.
    """
    directory = root()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = open(directory / name, "a", encoding="ascii")  # noqa: SIM115
    except OSError as err:
        raise LabError(f"cache {directory}: {err.strerror}; set XDG_CACHE_HOME") from err
    with handle:
        try:
            fcntl.flock(handle, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            if busy is not None:
                busy()
            fcntl.flock(handle, mode)
        yield handle.fileno()


def component(name: str, key: str, make: Callable[[Path], None]) -> Path:
    """The component NAME-KEY, made by `make(directory)` if it is missing. Needs build.lock."""
    final = root() / f"{name}-{key}"
    if final.is_dir():
        return final
    scratch = Path(tempfile.mkdtemp(prefix="new.", dir=root()))
    try:
        make(scratch)
        scratch.chmod(0o755)
        scratch.rename(final)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return final


def index_path(suite: str, recipe: str) -> Path:
    """The file that lists the components of SUITE for RECIPE."""
    return root() / "index" / f"{suite}.{recipe}"


def read_index(suite: str, recipe: str) -> dict[str, Any]:
    """The index, or {} when there is none or a component of it is gone."""
    try:
        index: dict[str, Any] = json.loads(index_path(suite, recipe).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    whole = all((root() / name).is_dir() for name in index.get("components", {}).values())
    return index if whole else {}


def write_index(suite: str, recipe: str, index: dict[str, Any]) -> None:
    """Replace the index in one step."""
    path = index_path(suite, recipe)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(json.dumps(index, indent=2) + "\n", "utf-8")
    scratch.rename(path)
