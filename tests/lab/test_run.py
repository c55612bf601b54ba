#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./run and run_guest_test refuse wrong arguments at once: 2, and one line with the remedy."""

import os
import subprocess
import unittest
from pathlib import Path
from unittest import mock

TOP = Path(__file__).resolve().parents[2]
RUN = TOP / "run"
GUEST_TEST = TOP / "tests/guest/run_guest_test"


def run(*words, program=RUN):
    return subprocess.run(
        [program, *words], capture_output=True, text=True, check=False, timeout=30
    )


class Refusals(unittest.TestCase):
    def refused(self, command, wanted, program=RUN):
        done = run(*command.split(), program=program)
        self.assertEqual((done.returncode, done.stdout), (2, ""), command)
        self.assertRegex(done.stderr, r"\A.*" + wanted + r".*\n\Z", command)

    def test_commands(self):
        more = "./run help lists them"
        self.refused("hlep", f"no command 'hlep'; did you mean help\\? \\({more}\\)")
        self.refused("stop", f"no command 'stop'; {more}")
        done = run("")
        self.assertEqual((done.returncode, done.stderr), (2, f"run: no command ''; {more}\n"))
        self.refused("help nope", "no command 'nope'; ./run help lists them")

    def test_tests(self):
        self.refused("test --label foo", "no label 'foo'; there are: unit cli driver .* guest")
        for rest in ("probe", "--label unit", "--preset asan probe"):
            self.refused(f"test --fast {rest}", "--fast takes no names or labels")

    def test_words(self):
        self.refused("demo mes", "unknown argument 'mes'; did you mean mesh\\? \\(./run demo")
        self.refused("lint --qick", "unknown option '--qick'; did you mean --quick\\? \\(")
        self.refused("build --all", "unknown option '--all'; ./run build --help tells more")
        self.refused("build nope", "no preset 'nope'; there are: .* coverage; ./run build")

    def test_numbers(self):
        for command in ("fuzz", "soak"):
            for value in ("x", "0", ""):
                words = f"{command} --seconds {value}"
                self.refused(words, f"--seconds '{value}': give a number above 0; ./run {command}")
        with mock.patch.dict(os.environ, ERNIC_JOBS="x"):
            self.refused("build", "ERNIC_JOBS 'x': give a number above 0; ./run build --help")

    def test_benchmarks(self):
        for group in ("eth", "rdma", "fabric"):
            self.refused(f"bench {group} --foo", "unknown option '--foo'; ./run bench --help")
        self.refused("bench eth foo", "unknown argument 'foo'")
        self.refused("bench eth --rounds 0", "--rounds '0': give a number from 1 to 21")
        self.refused("bench eth --seconds 0", "--seconds '0': give a number above 0")

    def test_demo(self):
        self.refused("demo --profile generic-200g", "--profile 'generic-200g': .* generic-100g")

    def test_guest_tests(self):
        for words, wanted in (
            ("nope", "run_guest_test: SCRIPT nope: no such file or directory; give one such as"),
            ("/tmp", "SCRIPT /tmp: is a directory; give one"),
            ("/bin/sh", "SCRIPT /bin/sh: not a text; give one"),
            ("", "SCRIPT; run_guest_test --help tells more"),
            ("--sever x", "unknown option '--sever'; did you mean --server\\? \\(run_guest_test"),
        ):
            self.refused(words, wanted, GUEST_TEST)


class Help(unittest.TestCase):
    def test_help_of_a_command_is_its_own(self):
        for command in ("demo", "test"):
            self.assertEqual(run("help", command).stdout, run(command, "--help").stdout)
        self.assertIn("soak", run("help").stdout)


if __name__ == "__main__":
    unittest.main()
