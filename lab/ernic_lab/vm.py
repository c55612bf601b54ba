# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/vm: boots guests with their NIC servers and runs scripts in them."""

from __future__ import annotations

import fcntl
import json
import sys
from pathlib import Path

from . import accel, build, cache, network, options, snapshot
from .runner import Interrupted, Run


def main(arguments: list[str]) -> int:
    """The command lab/vm."""
    asked = options.parse(arguments)
    # Both are told before a long build.
    if not asked.no_nic:
        options.find_server(asked.server)
    network.check(asked)
    with cache.lock("use.lock", fcntl.LOCK_SH):
        wanted = [asked.flavour, *(["uc"] if asked.uc else [])]
        lab = build.ensure(asked.suite, wanted)
        chosen = accel.choose(asked, lab)
        saved = snapshot.ensure(asked, lab) if snapshot.wanted(asked, chosen) else None
        network.prepare(asked)
        return execute(asked, lab, chosen, saved)


def execute(asked: options.Options, lab: build.Lab, chosen: str, saved: Path | None) -> int:
    """Run, and keep what is to be kept even of a run that failed."""
    with Run(asked, lab, chosen, saved) as run:
        try:
            run.start()
            run.loop()
            run.finish()
        except Interrupted:
            pass
        finally:
            if asked.keep_logs:
                with run.keeping(f"--keep-logs {asked.keep_logs}"):
                    run.keep_logs(asked.keep_logs)
        if asked.json:
            with run.keeping(f"--json {asked.json}"):
                write_summary(run.summary(), asked.json)
        return run.status


def write_summary(summary: dict[str, object], target: str) -> None:
    """Write the summary of --json."""
    text = json.dumps(summary, indent=2) + "\n"
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        Path(target).write_text(text, "utf-8")
