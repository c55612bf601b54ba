#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Adds up the results that ctest wrote as JUnit files: NAME=FILE...

Prints why tests were skipped, which failed, and as the last line "N passed, N failed, N skipped".
Exits with 1 when a test failed or none ran.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def last_line(case):
    """The last line that a test printed: a skipped one ends with its reason."""
    text = (case.findtext("system-out") or "").strip()
    return text.splitlines()[-1].strip().removeprefix("skipped: ") if text else "no reason given"


def classify(case):
    """passed, failed or skipped. ctest's status: run, fail, notrun (skipped or no program)."""
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    # A test whose program does not exist counts as "not run" too, but it is no skip.
    return "skipped" if skipped.get("message", "").startswith("SKIP") else "failed"


def read(argument):
    """Yield (build, test case) of one NAME=FILE."""
    build, _, path = argument.partition("=")
    if not Path(path).exists():
        return
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        yield build, case


def main(arguments):
    found = {"passed": [], "failed": [], "skipped": []}
    for argument in arguments:
        for build, case in read(argument):
            found[classify(case)].append((build, case))
    for build, case in found["skipped"]:
        print(f"skipped  {build} {case.get('name')}: {last_line(case)}")
    for build, case in found["failed"]:
        print(f"FAILED   {build} {case.get('name')}")
    counts = {kind: len(cases) for kind, cases in found.items()}
    if counts["passed"] + counts["failed"] == 0:
        print("no test ran")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
