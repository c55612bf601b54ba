#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How the guest's pyverbs runner judges a case by the list, and that it can say no."""

import contextlib
import importlib.util
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
LIB = Path(__file__).resolve().parents[1] / "guest" / "lib"
spec = importlib.util.spec_from_file_location("pyverbs_run", LIB / "pyverbs-run.py")
pyverbs_run = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = pyverbs_run
spec.loader.exec_module(pyverbs_run)


class Cases(unittest.TestCase):
    """What a suite may hold; runs only inside the tests below."""

    def passes(self):
        pass

    def skips(self):
        self.skipTest("no such hardware")

    def fails(self):
        self.assertEqual(1, 2)

    def breaks(self):
        raise OSError(22, "broken")

    def breaks_twice(self):
        self.addCleanup(self.breaks)
        self.breaks()


class Judgement(unittest.TestCase):
    def judge(self, case, text):
        """(passed, excused, wrong) of one case under a list; and what was printed."""
        with tempfile.NamedTemporaryFile("w", suffix=".list") as file:
            file.write(text)
            file.flush()
            lines = pyverbs_run.read_list(Path(file.name))
        judge = pyverbs_run.Judge(lines, 60)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            unittest.TestSuite([Cases(case)]).run(judge)
            self.status = pyverbs_run.report(judge, 1, True)
        return judge.passed, judge.excused, len(judge.faults)

    def test_case_that_passes(self):
        self.assertEqual(self.judge("passes", ""), (1, 0, 0))
        self.assertEqual(self.status, 0)

    def test_case_that_ends_as_listed(self):
        for case, line in (
            ("skips", "skip *.skips such hardware"),
            ("fails", "fail *.fails 1 != 2"),
            ("breaks", "error *.breaks [Errno 22]"),
        ):
            self.assertEqual(self.judge(case, f"[why]\n{line}\n"), (0, 1, 0))
            self.assertEqual(self.status, 1)  # none has passed

    def test_skip_that_is_not_listed(self):
        self.assertEqual(self.judge("skips", ""), (0, 0, 1))
        self.assertEqual(self.judge("skips", "[why]\nskip *.skips other words\n"), (0, 0, 1))
        self.assertEqual(self.judge("skips", "[why]\nerror *.skips such hardware\n"), (0, 0, 1))

    def test_listed_case_that_passes(self):
        self.assertEqual(self.judge("passes", "[why]\nskip *.passes x\n"), (0, 0, 1))
        self.assertEqual(self.status, 1)

    def test_failures(self):
        self.assertEqual(self.judge("fails", ""), (0, 0, 1))
        self.assertEqual(self.judge("breaks", ""), (0, 0, 1))

    def test_second_end_of_a_case_is_not_excused(self):
        listed = "[why]\nerror *.breaks_twice Errno 22\n"
        self.assertEqual(self.judge("breaks_twice", listed), (0, 1, 1))

    def test_faulty_list(self):
        for text in ("skip a b\n", "[why]\nskip a\n", "[why]\nmaybe a b\n"):
            with self.assertRaisesRegex(SystemExit, "HOW CASE WORDS"):
                self.judge("passes", text)

    def test_list_in_the_tree_is_sound(self):
        self.assertGreater(len(pyverbs_run.read_list(LIB / "pyverbs-skips")), 20)


def load_tests(loader, _tests, _pattern):
    """Only the tests of the judge, not the cases that it judges."""
    return loader.loadTestsFromTestCase(Judgement)


if __name__ == "__main__":
    unittest.main()
