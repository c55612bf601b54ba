#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs rdma-core's pyverbs tests against one RDMA device and judges every case by a list.

A case must pass, unless the list says how else it ends and why that is right. It is a failure
when a case ends otherwise, when one that is not listed is skipped, and when a listed one passes.
The list (pyverbs-skips) has a reason in brackets and, under it, the cases with that reason:

    [REASON]
    HOW  CASE  WORDS        HOW: skip, error or fail; CASE: a shell pattern; WORDS: what the
                            case says when it ends so, at least a part of it
"""

import argparse
import faulthandler
import fnmatch
import random
import sys
import time
import unittest
import warnings
from dataclasses import dataclass
from pathlib import Path

TESTS = Path("/usr/share/rdma-core/tests")
ENDINGS = ("skip", "error", "fail")
INIT_ATTR_PD = 1  # IBV_QP_INIT_ATTR_PD


@dataclass
class Line:
    """One line of the list."""

    ending: str
    case: str
    words: str
    reason: str
    cases: int = 0

    def __str__(self):
        return f"{self.ending} {self.case} {self.words}"

    def explains(self, ending, words):
        return ending == self.ending and self.words in words


def read_list(path):
    """The lines of the list; exits when one has a fault."""
    lines, reason = [], ""
    for number, text in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not text.strip() or text.startswith("#"):
            continue
        if text.startswith("[") and text.endswith("]"):
            reason = text[1:-1]
            continue
        words = text.split(None, 2)
        if len(words) != 3 or words[0] not in ENDINGS or not reason:
            sys.exit(f"{path}:{number}: not 'HOW CASE WORDS' under a [REASON]: {text}")
        lines.append(Line(*words, reason))
    return lines


class Judge(unittest.TestResult):
    """Holds the end of every case against the list."""

    def __init__(self, lines, limit):
        super().__init__()
        self.lines = lines
        self.limit = limit
        self.passed = self.excused = 0
        self.faults = []
        self.ended = False

    def startTest(self, test):
        super().startTest(test)
        self.ended = False
        # A case that hangs may be inside C code: say where, and end the process.
        faulthandler.dump_traceback_later(self.limit, exit=True, file=sys.__stdout__)

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)

    def addSuccess(self, test):
        self.judge(test, "pass", "")

    def addSkip(self, test, reason):
        self.judge(test, "skip", reason)

    def addError(self, test, err):
        self.judge(test, "error", str(err[1]), err)

    def addFailure(self, test, err):
        self.judge(test, "fail", str(err[1]), err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            ending = "fail" if issubclass(err[0], test.failureException) else "error"
            self.judge(test, ending, str(err[1]), err)

    def addExpectedFailure(self, test, err):
        self.judge(test, "expected failure", str(err[1]), err)

    def addUnexpectedSuccess(self, test):
        self.judge(test, "unexpected success", "")

    def judge(self, test, ending, words, err=None):
        case = test.id().removeprefix("tests.")
        words = " ".join(words.split())
        listed = [line for line in self.lines if fnmatch.fnmatchcase(case, line.case)]
        reason = next((line for line in listed if line.explains(ending, words)), None)
        if reason and not self.ended:
            reason.cases += 1
            self.excused += 1
        elif ending == "pass" and not listed:
            self.passed += 1
            print(f"ok: {case}", flush=True)
        else:
            self.fault(test, case, ending, words, listed, err)
        self.ended = True  # one that ends again, in its tidying up, is not excused twice

    def fault(self, test, case, ending, words, listed, err):
        self.faults.append(case)
        print(f"FAIL: {case}: {ending}: {words}", flush=True)
        for line in listed:
            print(f"  but the list has: {line}")
        if err:
            print(self._exc_info_to_string(err, test), flush=True)


def load(device, gid):
    """The suite, with its own options set."""
    sys.path[:0] = [str(TESTS), str(TESTS.parent)]
    sys.argv[1:] = ["--dev", device, *(["--gid", gid] if gid else [])]
    from args_parser import parser

    parser.parse_args()
    import tests
    import tests.utils

    # The suite draws whether to ask for creation flags, which this provider refuses: never ask,
    # so that what is to be shown of such queue pairs is shown each time.
    tests.utils.random_qp_create_mask = lambda qp_type, attributes: INIT_ATTR_PD
    return unittest.defaultTestLoader.loadTestsFromModule(tests)


def chosen(suite, patterns):
    """The cases whose name fits one of the patterns."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test, patterns)
        elif any(fnmatch.fnmatchcase(test.id().removeprefix("tests."), p) for p in patterns):
            yield test


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", type=Path, required=True, help="the cases that do not apply")
    parser.add_argument("--gid", help="index of the GID to use")
    parser.add_argument("--limit", type=float, default=120, help="seconds for a case, %(default)s")
    parser.add_argument("--seed", type=int, help="of an earlier run, to draw the same values")
    parser.add_argument("device")
    parser.add_argument("case", nargs="*", default=["*"], help="shell patterns; default: all")
    options = parser.parse_args()
    lines = read_list(options.list)
    warnings.simplefilter("ignore", ResourceWarning)  # the suite leaves temporary files open
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    print(f"pyverbs: --seed {seed}", flush=True)
    suite = load(options.device, options.gid)
    random.seed(seed)
    begin = time.monotonic()
    judge = Judge(lines, options.limit)
    unittest.TestSuite(chosen(suite, options.case)).run(judge)
    return report(judge, time.monotonic() - begin, options.case == ["*"])


def report(judge, seconds, whole):
    """Print what came out; returns the exit status."""
    reasons = {}
    for line in judge.lines:
        reasons[line.reason] = reasons.get(line.reason, 0) + line.cases
        if whole and not line.cases:
            print(f"note: the suite has no case for: {line}")
    for reason, cases in reasons.items():
        if cases:
            print(f"{cases:4} do not apply: {reason}")
    print(
        f"pyverbs: {judge.passed} cases passed, {judge.excused} do not apply,"
        f" {len(judge.faults)} wrong, {seconds:.0f} s"
    )
    if not judge.passed:
        print("FAIL: no case has passed")
    return 0 if judge.passed and not judge.faults else 1


if __name__ == "__main__":
    sys.exit(main())
