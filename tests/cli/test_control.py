#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The control socket: every command, every way to get one wrong, and clients that mean no good."""

import os
import random
import signal
import socket
import time

import program

HOSTILE = [
    b"garbage",
    b"{",
    b'{"cmd":',
    b"[]",
    b"null",
    b"17",
    b'"version"',
    b"{}",
    b'{"cmd":1}',
    b'{"cmd":null}',
    b'{"cmd":"version"} {"cmd":"version"}',
    b'{"cmd":"version"}x',
    b'{"cmd":"' + b"x" * 5000 + b'"}',
    b'{"cmd":"version","a":[[[[[[[[[1]]]]]]]]]}',
    b"[" * 10000,
    b'{"cmd":"version\xff"}',
    b'{"cmd":"version"\0}',
    b'{"cmd":"nonsense"}',
    b'{"cmd":"version","up":true}',
    b'{"cmd":"link","up":1}',
    b'{"cmd":"link","up":"true"}',
    b'{"cmd":"link","up":null}',
    b'{"cmd":"link","down":true}',
    b'{"cmd":"fw"}',
    b'{"cmd":"fw","action":"explode"}',
    b'{"cmd":"fw","action":["stop"]}',
    b'{"cmd":"log","level":"loud"}',
    b'{"cmd":"log","level":3}',
    b'{"cmd":"fault","set":"loss=1"}',
    b'{"cmd":"fault","set":1}',
    b'{"cmd":"fault","set":"off\\u0000x"}',
    b'{"cmd":"capture","file":"no/such/folder/f"}',
    b'{"cmd":"capture","file":""}',
    b'{"cmd":"mesh"}',
    b'{"cmd":"mesh","node":1}',
]


class ControlSocket(program.Test):
    def setUp(self):
        super().setUp()
        self.server = program.Server("-s", "s", "--control", "c", "--nic-profile", "small-vm")
        self.server.__enter__()

    def tearDown(self):
        status = self.server.stop()
        self.assertEqual(self.server.process.stderr.read(), "")
        self.server.__exit__()
        super().tearDown()
        self.assertEqual(status, 0)

    def test_every_command_of_help_works(self):
        with program.Control("c") as control:
            version = program.run("--version").stdout.split()[1]
            self.assertEqual(
                control.do(cmd="version"), {"ok": True, "program": "rocm-ernic", "version": version}
            )
            for entry in control.do(cmd="help")["commands"]:
                name = entry.pop("cmd")
                self.assertTrue(entry.pop("help"))
                for argument, choices in entry.items():
                    for choice in choices:
                        if choice == "debug":  # would write to stderr, which is watched
                            continue
                        if argument == "file":  # the example's folder is everybody's
                            choice = os.path.basename(choice)
                        self.assertTrue(control.do(cmd=name, **{argument: choice})["ok"])
                if name == "mesh":  # this server is in none
                    self.assertIn("--backend tcp", control.do(cmd=name)["remedy"])
                elif not entry:
                    self.assertTrue(control.do(cmd=name)["ok"], name)
            control.do(cmd="log", level="warn")
        self.assertIn("nic.pcapng", os.listdir())

    def test_status_and_stats(self):
        with program.Control("c") as control:
            status = control.do(cmd="status")
            self.assertEqual(status["pid"], self.server.process.pid)
            self.assertIs(status["link_up"], True)
            self.assertIn("small-vm", status["nic_profile"])
            stats = control.do(cmd="stats")["stats"]
            self.assertEqual(
                list(stats),
                ["Instance", "Device", "LIF Statistics", "Port Statistics", "RDMA", "Per-QP", "Counters"],
            )
            self.assertEqual(stats["Counters"]["server_control_clients"], 1)

    def test_the_link_goes_down_and_up(self):
        with program.Control("c") as control:
            for up in [False, True, True]:
                self.assertIs(control.do(cmd="link", up=up)["up"], up)
                self.assertIs(control.do(cmd="link")["up"], up)
                self.assertEqual(control.do(cmd="stats")["stats"]["Device"]["link_up"], int(up))

    def test_firmware(self):
        def device(control):
            return control.do(cmd="stats")["stats"]["Device"]

        with program.Control("c") as control:
            generation = device(control)["fw_generation"]
            self.assertTrue(control.do(cmd="fw", action="stop")["ok"])
            self.assertEqual(device(control)["fw_running"], 0)
            self.assertTrue(control.do(cmd="fw", action="start")["ok"])
            self.assertEqual(device(control)["fw_running"], 1)
            self.assertNotEqual(device(control)["fw_generation"], generation)
            self.assertTrue(control.do(cmd="fw", action="stall")["ok"])
            self.assertEqual(device(control)["fw_heartbeat_stalled"], 1)

    def test_the_log_level(self):
        with program.Control("c") as control:
            self.assertEqual(control.do(cmd="log")["level"], "warn")
            self.assertEqual(control.do(cmd="log", level="none")["level"], "none")
            self.assertEqual(control.do(cmd="log")["level"], "none")

    def test_faults(self):
        with program.Control("c") as control:
            self.assertEqual(control.do(cmd="fault")["faults"], "off")
            self.assertIn("loss=1%", control.do(cmd="fault", set="loss=1%,delay=2ms")["faults"])
            self.assertIn("delay=2000us", control.do(cmd="fault")["faults"])
            self.assertEqual(control.do(cmd="fault", set="off")["faults"], "off")

    def test_a_capture_begins_and_ends(self):
        with program.Control("c") as control:
            self.assertIs(control.do(cmd="capture")["capturing"], False)
            self.assertIs(control.do(cmd="capture", file="f")["capturing"], True)
            answer = control.do(cmd="capture", file="g")
            self.assertIs(answer["ok"], False)
            self.assertIn("off", answer["remedy"])
            self.assertFalse(os.path.exists("g"))
            self.assertIs(control.do(cmd="capture", file="off")["capturing"], False)
        with open("f", "rb") as file:
            self.assertEqual(file.read(4), b"\x0a\x0d\x0d\x0a")

    def test_bad_lines_are_refused_and_the_next_is_served(self):
        with program.Control("c") as control:
            for line in HOSTILE:
                answer = control.say(line)
                self.assertIs(answer["ok"], False, line)
                self.assertTrue(answer["error"] and answer["remedy"], line)
                self.assertTrue(control.do(cmd="version")["ok"], line)
            self.assertIn("link", control.do(cmd="lnk")["remedy"])
            counters = control.do(cmd="stats")["stats"]["Counters"]
            self.assertEqual(counters["server_control_refused"], len(HOSTILE) + 1)

    def test_random_bytes(self):
        source = random.Random(1)
        for _ in range(20):
            with program.connect("c") as client:
                client.sendall(source.randbytes(3000))
                client.shutdown(socket.SHUT_WR)
                while client.recv(65536):
                    pass
        with program.Control("c") as control:
            self.assertTrue(control.do(cmd="version")["ok"])

    def test_lines_arrive_in_pieces_and_in_heaps(self):
        with program.Control("c") as control:
            for byte in b'{"cmd":"link"}\r\n':
                control.socket.sendall(bytes([byte]))
            self.assertIs(control.answer()["up"], True)
            control.socket.sendall(b'\n \n{"cmd":"link"}\n' * 100)
            for _ in range(100):
                self.assertIs(control.answer()["up"], True)

    def test_the_last_line_needs_no_newline(self):
        with program.Control("c") as control:
            control.socket.sendall(b'{"cmd":"link","up":false}')
            control.socket.shutdown(socket.SHUT_WR)
            self.assertIs(control.answer()["up"], False)
            self.assertEqual(control.file.read(), b"")

    def test_a_client_that_does_not_wait_for_the_answer_is_obeyed(self):
        client = program.connect("c")
        client.sendall(b'\n\n{"cmd":"link","up":false}\n')
        client.close()
        with program.Control("c") as control:
            while control.do(cmd="link")["up"]:
                pass

    def test_a_line_without_end_is_cut_off(self):
        with program.Control("c") as control:
            try:
                control.socket.sendall(b" " * 200000)
            except OSError:
                pass  # closed in the middle, as it should be
            try:
                self.assertIn("too long", control.answer()["error"])
            except ConnectionResetError:
                pass  # the answer was lost because the rest of the line was not read
        with program.Control("c") as control:
            counters = control.do(cmd="stats")["stats"]["Counters"]
            self.assertEqual(counters["server_control_line_too_long"], 1)

    def test_a_client_that_never_reads_delays_nobody(self):
        flood = program.connect("c")
        flood.setblocking(False)
        try:
            while True:
                flood.send(b'{"cmd":"stats"}\n' * 100)
        except BlockingIOError:
            pass
        with program.Control("c") as control:
            for _ in range(10):
                self.assertTrue(control.do(cmd="version")["ok"])
        flood.close()

    def test_too_many_clients_are_told(self):
        clients = [program.Control("c") for _ in range(16)]
        for client in clients:
            self.assertTrue(client.do(cmd="version")["ok"])
        with program.Control("c") as late:
            self.assertIn("too many", late.answer()["error"])
            self.assertEqual(late.file.read(), b"")
        clients.pop().__exit__()
        self.assertTrue(clients[0].do(cmd="version")["ok"])
        with program.Control("c") as control:
            self.assertTrue(control.do(cmd="version")["ok"])
        for client in clients:
            client.__exit__()


class MeshCommand(program.Test):
    """What a node tells of its mesh."""

    def setUp(self):
        super().setUp()
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.servers = {}
        self.start("m", f"tcp:manager:{self.port},interval=100")

    def tearDown(self):
        for server in self.servers.values():
            server.__exit__()
        super().tearDown()

    def start(self, name, backend, *args):
        server = program.Server("-s", name, "--control", f"{name}.ctl", "--backend", backend, *args)
        self.servers[name] = server.__enter__()

    def worker(self, name, *args):
        self.start(name, f"tcp:worker:127.0.0.1:{self.port}", *args)

    def until(self, name, condition):
        """The answer of a server, as soon as it fulfils the condition."""
        end = time.monotonic() + program.PATIENCE
        with program.Control(f"{name}.ctl") as control:
            while True:
                answer = control.do(cmd="mesh")
                if condition(answer):
                    return answer
                self.assertLess(time.monotonic(), end, answer)
                time.sleep(0.02)

    @staticmethod
    def states(answer, kind):
        return sorted(entry["state"] for entry in answer[kind])

    def test_alone(self):
        answer = self.until("m", lambda answer: True)
        self.assertIs(answer.pop("ok"), True)
        (node,) = answer.pop("nodes")
        (gid,) = answer.pop("gids")
        self.assertEqual(
            answer,
            {
                "node": 0,
                "role": "manager",
                "registered": True,
                "address": f"127.0.0.1:{self.port}",
                "manager": f"127.0.0.1:{self.port}",
                "interval_ms": 100,
                "node_count": 1,
                "gid_count": 1,
                "connection_count": 0,
                "connections": [],
            },
        )
        self.assertEqual((node["node"], node["state"], node["self"]), (0, "live", True))
        self.assertIsNone(node["silent_ms"])
        self.assertEqual((gid["node"], gid["state"]), (0, "live"))
        self.assertTrue(gid["gid"].startswith("fe80::"))

    def test_a_worker_joins_contests_a_gid_and_is_killed(self):
        self.worker("w", "--gid", "10.0.0.9")
        joined = self.until("m", lambda answer: len(answer["gids"]) == 3)
        self.assertEqual(self.states(joined, "nodes"), ["live", "live"])
        self.assertEqual(self.states(joined, "gids"), ["live"] * 3)
        self.assertIn("::ffff:10.0.0.9", [entry["gid"] for entry in joined["gids"]])
        (connection,) = joined["connections"]
        self.assertEqual(
            (connection["node"], connection["state"], connection["tls"], connection["called"]),
            (1, "up", False, False),
        )
        self.assertGreater(connection["sent_bytes"], 0)
        self.assertGreater(connection["received_bytes"], 0)

        worker = self.until("w", lambda answer: len(answer["nodes"]) == 2)
        self.assertEqual((worker["node"], worker["role"]), (1, "worker"))
        self.assertEqual(worker["manager"], f"127.0.0.1:{self.port}")
        address = [entry["address"] for entry in worker["nodes"] if entry["self"]]
        self.assertEqual([worker["address"]], address)
        self.assertEqual(address, [e["address"] for e in joined["nodes"] if e["node"] == 1])

        self.worker("x", "--gid", "10.0.0.9")
        contest = self.until("m", lambda answer: "contested" in self.states(answer, "gids"))
        contested = [entry for entry in contest["gids"] if entry["state"] == "contested"]
        self.assertEqual([entry["node"] for entry in contested], [1, 2])

        self.servers["w"].stop(signal.SIGKILL)
        after = self.until("m", lambda answer: "silent" in self.states(answer, "nodes"))
        states = {(entry["node"], entry["gid"]): entry["state"] for entry in after["gids"]}
        self.assertEqual(states[1, "::ffff:10.0.0.9"], "withdrawn")
        self.assertEqual(states[2, "::ffff:10.0.0.9"], "live")
        (silent,) = [entry for entry in after["nodes"] if entry["state"] == "silent"]
        self.assertIsNotNone(silent["silent_ms"])

    def test_without_a_manager(self):
        self.servers["m"].stop(signal.SIGKILL)
        self.worker("w")
        lost = self.until("w", lambda answer: True)
        self.assertEqual((lost["node"], lost["registered"], lost["address"]), (None, False, None))
        self.assertEqual([entry["node"] for entry in lost["nodes"] + lost["gids"]], [None, None])


if __name__ == "__main__":
    program.main()
