#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the program prints and exits: help, version, limits, and capabilities in JSON."""

import json

import program


class Print(program.Test):
    def output(self, *args):
        result = program.run(*args)
        self.assertEqual((result.returncode, result.stderr), (0, ""), args)
        return result.stdout

    def test_capabilities_are_json_whatever_else_is_given(self):
        """Conventions for backend programs: other options are ignored."""
        plain = json.loads(self.output("--print-capabilities"))
        self.assertEqual(plain["type"], "net")
        self.assertIsInstance(plain["features"], list)
        self.assertEqual(
            json.loads(self.output("--fd=1", "--nonsense", "--print-capabilities", "x")), plain
        )

    def test_help_and_version(self):
        self.assertIn("--nic-profile", self.output("--help"))
        self.assertEqual(self.output("-h"), self.output("--help"))
        self.assertRegex(self.output("--version"), r"\Arocm-ernic [0-9]+\.[0-9]+\.[0-9]+\n\Z")

    def test_limits(self):
        for line in self.output("--limits").splitlines():
            self.assertRegex(line, r"\A[\w ]+ : [0-9]+\Z")

    def test_default_addresses_are_stable(self):
        macs = []
        for name in ["a", "a", "b"]:
            with program.Server("-s", name, "-v", "--nic-profile", "small-vm") as server:
                server.stop()
                text = server.process.stderr.read()
            macs.append(text.split("MAC address ")[1].split()[0])
        self.assertEqual(macs[0], macs[1])
        self.assertNotEqual(macs[0], macs[2])


if __name__ == "__main__":
    program.main()
