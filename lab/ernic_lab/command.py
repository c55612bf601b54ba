# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs one of the lab's commands and turns what goes wrong into a line and an exit status."""

from __future__ import annotations

import importlib
import os
import signal
import sys

from .errors import LabError

FAILED = 125
# Where chroot and others are: an ordinary user of Debian has neither in PATH.
SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")


def complete_path() -> None:
    """Let this process and all its children find the system's programs, after the user's own."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    missing = [folder for folder in SYSTEM_FOLDERS if folder not in folders]
    os.environ["PATH"] = os.pathsep.join([*folders, *missing])


def run(name: str) -> int:
    """Run the command module `name`; 125 when the lab itself fails."""
    complete_path()
    try:
        return int(importlib.import_module(f"{__package__}.{name}").main(sys.argv[1:]))
    except LabError as err:
        print(f"lab/{name}: {err}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:  # whoever read our output has gone, as in `lab/vm .. | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
