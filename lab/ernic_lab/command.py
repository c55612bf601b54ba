# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs one of the lab's commands and turns what goes wrong into a line and an exit status."""

from __future__ import annotations

import importlib
import os
import signal
import sys

from .errors import LabError

FAILED = 125


def run(name: str) -> int:
    """Run the command module `name`; 125 when the lab itself fails."""
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
