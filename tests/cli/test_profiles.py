#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--print-profile: what it prints loads back, and tells the same device as the running server."""

import re

import program

BUILT_IN = ["compat", "small-vm", "generic-100g", "generic-400g"]


def print_profile(*args):
    result = program.run("--print-profile", *args)
    assert result.returncode == 0, result.stderr
    return result.stdout


def values(text):
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def hash_of(text):
    return re.search(r"^# hash: ([0-9a-f]{16})$", text, re.M).group(1)


class Profiles(program.Test):
    def check_round_trip(self, *args):
        first = print_profile(*args)
        with open("printed.ini", "w", encoding="ascii") as file:
            file.write(first)
        second = print_profile("--nic-profile", "printed.ini")
        self.assertEqual(values(first), values(second), args)
        self.assertEqual(hash_of(first), hash_of(second), args)
        return first

    def test_round_trips(self):
        hashes = {hash_of(self.check_round_trip("--nic-profile", name)) for name in BUILT_IN}
        self.assertEqual(len(hashes), len(BUILT_IN))
        self.check_round_trip()
        self.check_round_trip("--eth-queues", "7", "--stats-interval-ms", "10")

    def test_layers_and_their_chain(self):
        with open("fast.ini", "w", encoding="ascii") as file:
            file.write("[link]\nspeed_mbps = 400000\nxcvr = fiber\n")
        text = print_profile("--nic-profile", "small-vm", "--nic-profile", "./fast.ini")
        self.assertIn("compat + small-vm + ./fast.ini", text.splitlines()[0])
        self.assertIn("speed_mbps = 400000", text)
        self.assertIn("eth = 2", text)
        self.assertEqual(
            hash_of(print_profile()), hash_of(print_profile("--nic-profile", "compat"))
        )

    def test_options_stand_above_every_layer(self):
        with open("own.ini", "w", encoding="ascii") as file:
            file.write("[queues]\neth = 9\n[stats]\ninterval_ms = 77\n")
        text = print_profile(
            "--eth-queues", "3", "--stats-interval-ms", "50", "--nic-profile", "own.ini"
        )
        self.assertIn("\neth = 3\n", text)
        self.assertIn("\ninterval_ms = 50\n", text)

    def test_log_and_stats_file_tell_the_same(self):
        args = ["--nic-profile", "generic-100g", "--eth-queues", "8"]
        printed = print_profile(*args)
        chain = re.search(r"^# NIC profile: (.*)$", printed, re.M).group(1)
        wanted = f"{chain} (hash {hash_of(printed)})"
        with program.Server("-s", "s", "-v", "-S", "stats", *args) as server:
            server.stop()
            self.assertIn(f"NIC profile {wanted}", server.process.stderr.read())
        with open("stats", encoding="ascii") as file:
            instance = program.sections(file.read())["Instance"]
        self.assertEqual(instance["nic_profile"], wanted)

    def test_too_few_vectors_are_told_at_the_start(self):
        with program.Server("-s", "s") as server:
            server.stop()
            self.assertRegex(server.process.stderr.read(), "warn.*queues.intr_vectors 32 ")
        with program.Server("-s", "s", "--nic-profile", "small-vm") as server:
            server.stop()
            self.assertEqual(server.process.stderr.read(), "")


if __name__ == "__main__":
    program.main()
