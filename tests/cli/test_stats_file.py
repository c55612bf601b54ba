#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The stats file: its form, that it is replaced as a whole, and that trouble does not stop it."""

import os
import time

import program

SECTIONS = [
    "Instance", "Device", "LIF Statistics", "Port Statistics", "RDMA", "Per-QP", "Counters",
]  # fmt: skip


def read(path="stats"):
    with open(path, encoding="ascii") as file:
        return program.sections(file.read())


def wait_for(condition):
    """Waits for something that the server does on its interval."""
    end = time.monotonic() + program.PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


class StatsFile(program.Test):
    def test_form(self):
        with program.Server("-s", "s", "-S", "stats", "-m", "02:00:00:00:00:07") as server:
            stats = read()
            self.assertEqual(list(stats), SECTIONS)
            self.assertEqual(stats["Instance"]["pid"], str(server.process.pid))
            self.assertEqual(stats["Instance"]["mac"], "02:00:00:00:00:07")
            self.assertEqual(stats["Instance"]["socket"], os.path.join(os.getcwd(), "s"))
            for name in ["Device", "LIF Statistics", "Port Statistics", "RDMA", "Per-QP", "Counters"]:
                for value in stats[name].values():
                    self.assertRegex(value, r"\A[0-9]+\Z")
            # The names of the interface (manual, Statistics), all of them.
            for name in ["rx_ucast_bytes", "tx_bcast_drop_packets", "rx_queue_empty"]:
                self.assertIn(name, stats["LIF Statistics"])
            for name in ["frames_rx_ok", "frames_rx_64b", "frames_tx_pri_7"]:
                self.assertIn(name, stats["Port Statistics"])
            self.assertEqual(len(stats["Port Statistics"]), 89)

    def test_it_is_replaced_as_a_whole_on_the_interval(self):
        with program.Server("-s", "s", "-S", "stats", "--stats-interval-ms", "10"):
            last = 0
            for _ in range(20):
                wait_for(lambda: int(read()["Counters"]["server_stats_writes"]) > last)
                stats = read()
                self.assertEqual(list(stats), SECTIONS)
                last = int(stats["Counters"]["server_stats_writes"])
            self.assertLessEqual(set(os.listdir(".")), {"s", "stats", "stats.tmp"})
        self.assertEqual(os.listdir("."), ["stats"])

    def test_a_client_shows(self):
        with program.Server("-s", "s", "-S", "stats", "--stats-interval-ms", "10"):
            self.assertEqual(read()["Instance"]["client_attached"], "0")
            with program.connect("s") as client:
                program.attach(client)
                wait_for(lambda: read()["Instance"]["client_attached"] == "1")
            wait_for(lambda: read()["Instance"]["client_attached"] == "0")

    def test_trouble_is_counted_and_passes(self):
        os.mkdir("f")
        args = ["-s", "s", "-S", "f/stats", "--stats-interval-ms", "10", "--control", "c"]
        with program.Server(*args) as server, program.Control("c") as control:
            os.rename("f", "gone")

            def errors():
                return control.do(cmd="stats")["stats"]["Counters"]["server_stats_write_errors"]

            wait_for(lambda: errors() > 20)
            os.rename("gone", "f")
            before = read("f/stats")["Counters"]["server_stats_writes"]
            wait_for(lambda: read("f/stats")["Counters"]["server_stats_writes"] != before)
            server.stop()
            lines = server.process.stderr.read().splitlines()
            self.assertLess(len(lines), 10)  # rarely, not every interval
            self.assertIn("stats file f/stats", "".join(lines))

    def test_what_was_left_behind_is_no_obstacle(self):
        with open("stats.tmp", "w", encoding="ascii") as file:
            file.write("a killed server left this")
        os.chmod("stats.tmp", 0o400)
        with program.Server("-s", "s", "-S", "stats"):
            self.assertEqual(list(read()), SECTIONS)
        self.assertEqual(os.listdir("."), ["stats"])

    def test_a_link_at_the_temporary_name_is_not_followed(self):
        with open("victim", "w", encoding="ascii") as file:
            file.write("precious")
        os.symlink("victim", "stats.tmp")
        with program.Server("-s", "s", "-S", "stats"):
            self.assertEqual(list(read()), SECTIONS)
        with open("victim", encoding="ascii") as file:
            self.assertEqual(file.read(), "precious")


if __name__ == "__main__":
    program.main()
