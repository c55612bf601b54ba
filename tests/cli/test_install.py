#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What is installed under any prefix runs from there: program, manual page, completion, JSON."""

import json
import os
import shutil
import subprocess
import unittest

import program

BUILD = os.environ.get("ERNIC_BUILD", "")


@unittest.skipUnless(BUILD, "ERNIC_BUILD does not name the build folder")
class Install(program.Test):
    def setUp(self):
        super().setUp()
        self.prefix = os.path.join(self.folder, "a prefix")
        subprocess.run(
            ["cmake", "--install", BUILD, "--prefix", self.prefix],
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def test_everything_is_there_and_runs(self):
        binary = os.path.join(self.prefix, "bin/rocm-ernic")
        self.assertTrue(os.access(binary, os.X_OK))
        result = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(result.stdout, program.run("--version").stdout)

        path = os.path.join(self.prefix, "share/vfio-user/50-rocm-ernic.json")
        with open(path, encoding="ascii") as file:
            description = json.load(file)
        self.assertEqual(description["binary"], binary)
        capabilities = subprocess.run(
            [description["binary"], "--print-capabilities"], capture_output=True, check=True
        )
        self.assertEqual(description["type"], json.loads(capabilities.stdout)["type"])
        self.check_manual(os.path.join(self.prefix, "share/man/man1/rocm-ernic.1"))
        self.check_completion(
            os.path.join(self.prefix, "share/bash-completion/completions/rocm-ernic")
        )

    def check_manual(self, path):
        with open(path, encoding="ascii") as file:
            page = file.read().replace("\\-", "-")
        for option in self.options():
            self.assertIn(option, page)
        self.assertIn("queues.intr_vectors", page)
        if shutil.which("groff"):
            result = subprocess.run(
                ["groff", "-man", "-Tutf8", "-ww", "-z", path], capture_output=True, check=True
            )
            self.assertNotIn(b"error", result.stderr)

    def check_completion(self, path):
        def complete(*words):
            script = (
                f"source '{path}'; COMP_WORDS=({' '.join(words)}); "
                f"COMP_CWORD={len(words) - 1}; _rocm_ernic; echo \"${{COMPREPLY[@]}}\""
            )
            result = subprocess.run(
                ["bash", "-c", script], capture_output=True, text=True, check=True
            )
            return result.stdout.split()

        self.assertEqual(complete("rocm-ernic", "--nic"), ["--nic-profile"])
        self.assertEqual(set(complete("rocm-ernic", "--")), self.options())
        self.assertEqual(complete("rocm-ernic", "--backend", "l"), ["loopback"])
        self.assertEqual(complete("rocm-ernic", "-L", "in"), ["info"])
        self.assertIn("generic-400g", complete("rocm-ernic", "--nic-profile", "gen"))
        if os.path.exists("/sys/class/net/lo"):
            self.assertIn("lo", complete("rocm-ernic", "-T", "lo"))

    @staticmethod
    def options():
        words = program.run("--help").stdout.split()
        return {word.rstrip(",") for word in words if word.startswith("--")}


if __name__ == "__main__":
    program.main()
