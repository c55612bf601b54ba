#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures as tshark reads them: nothing malformed, every opcode, both directions, right CRCs."""

import collections
import glob
import os
import shutil
import struct
import subprocess
import time
import unittest
import zlib

import program

BUILD = os.environ.get("ERNIC_BUILD", "build/release")
INBOUND, OUTBOUND = 1, 2
ROCE_PORT = 4791
ACK, CNP = 0x11, 0x81

# Opcodes of requests on RC: SENDs and WRITEs of one packet and of several, READ, atomics, SEND with
# invalidate; their answers; UC has the first dozen; UD one packet with and without immediate.
REQUESTS = {*range(0x00, 0x0D), 0x13, 0x14, 0x16, 0x17, *range(0x20, 0x2C), 0x64, 0x65}
ANSWERS = {*range(0x0D, 0x13)}

FIELDS = [
    "frame.time_epoch",
    "frame.packet_flags_direction",
    "udp.dstport",
    "infiniband.bth.opcode",
    "infiniband.aeth.syndrome",
    "infiniband.invariant.crc",
    "ip.checksum.status",
    "_ws.malformed",
    "_ws.expert.severity",
    "_ws.expert.message",
]
EXPERT_WARNING = 0x600000
# RoCEv2 has no UDP checksum (spec rocev2 1), which tshark calls illegal over IPv6.
TOLERATED = "Illegal checksum value (0)"

# What tshark guesses payload to be; ours is nothing of the kind.
GUESSES = ["smc", "smb_direct", "rpcordma", "nvme-rdma", "lnet", "iser", "infiniband.eoib"]
GUESSES += ["infiniband_sdp", "fcoib", "drbd"]

Packet = collections.namedtuple("Packet", "frame time direction port opcode syndrome crc")


def frames(file):
    """The frames of a pcapng file, all sections."""
    with open(file, "rb") as stream:
        data = stream.read()
    at, result = 0, []
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 6:
            captured, original = struct.unpack_from("<II", data, at + 20)
            assert captured == original
            result.append(data[at + 28 : at + 28 + captured])
        at += size
    return result


def icrc(frame):
    """The invariant CRC that a RoCEv2 frame has to have (spec rocev2 5): by another CRC-32."""
    at = 14
    while frame[at - 2 : at] == b"\x81\0":
        at += 4
    packet = bytearray(frame[at:-4])
    if packet[0] >> 4 == 4:
        header = 20
        for byte in 1, 8, 10, 11:
            packet[byte] = 0xFF
    else:
        header = 40
        packet[0] |= 0x0F
        for byte in 1, 2, 3, 7:
            packet[byte] = 0xFF
    for byte in header + 6, header + 7, header + 8 + 4:
        packet[byte] = 0xFF
    return zlib.crc32(b"\xff" * 8 + packet).to_bytes(4, "little")


def tshark(file):
    """What tshark says of each frame, a list of FIELDS."""
    command = ["tshark", "-n", "-r", file, "-o", "ip.check_checksum:TRUE", "-T", "fields"]
    command += ["-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"]
    for field in FIELDS:
        command += ["-e", field]
    for name in GUESSES:
        command += ["--disable-protocol", name]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return [line.split("\t") for line in result.stdout.splitlines()]


def number(text):
    return int(text.split(",")[0], 0) if text else None


@unittest.skipUnless(shutil.which("tshark"), "tshark is not installed; ./run setup test does it")
class Capture(program.Test):
    def setUp(self):
        super().setUp()
        self.begin = time.time()

    def capture(self, fabric):
        """Captures of every operation between the NICs of a fabric."""
        command = [os.path.join(BUILD, "tests/driver/driver_capture"), fabric, self.folder]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode == program.SKIPPED:
            self.skipTest(result.stdout.strip())
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        captures = self.read(sorted(glob.glob("?.pcapng")))
        self.assertTrue(all(captures))
        return captures

    def read(self, files, ours_only=False):
        """The packets of each capture, after what every capture has to be. tshark reads them as one,
        for sections may follow each other: it takes a second to start."""
        raw = [frames(file) for file in files]
        with open("all.pcapng", "wb") as whole:
            for file in files:
                with open(file, "rb") as part:
                    shutil.copyfileobj(part, whole)
        told = tshark("all.pcapng")
        self.assertEqual(sum(map(len, raw)), len(told), files)
        rest = iter(told)
        return [self.packets(*pair, rest, ours_only) for pair in zip(files, raw)]

    def packets(self, file, raw, told, ours_only):
        packets = []
        for index, frame in enumerate(raw, 1):
            fields = next(told)
            packet = Packet(frame, fields[0], number(fields[1]), *map(number, fields[2:6]))
            if ours_only and packet.direction == INBOUND:
                continue
            self.check(f"{file}, packet {index}: {fields}", packet, fields[6:])
            packets.append(packet)
        return packets

    def check(self, where, packet, verdicts):
        checksum, malformed, severity, message = verdicts
        self.assertIn(packet.direction, (INBOUND, OUTBOUND), where)
        self.assertEqual(malformed, "", where)
        self.assertIn(checksum, ("", "1"), where)  # 1: good
        if (packet.port, message) != (ROCE_PORT, TOLERATED):
            for level in filter(None, severity.split(",")):
                self.assertLess(int(level, 0), EXPERT_WARNING, where)
        if packet.port == ROCE_PORT:
            self.assertIsNotNone(packet.opcode, where)
            self.assertEqual(packet.frame[-4:], icrc(packet.frame), where)
            if packet.opcode != CNP:  # which tshark does not take apart
                self.assertEqual(packet.crc, int.from_bytes(packet.frame[-4:], "big"), where)

    def check_times(self, packets):
        stamps = [packet.time.split(".") for packet in packets]
        self.assertTrue(all(len(fraction) == 9 for _, fraction in stamps))
        self.assertTrue(any(int(fraction) % 1000 for _, fraction in stamps))
        ns = [int(seconds) * 10**9 + int(fraction) for seconds, fraction in stamps]
        self.assertEqual(ns, sorted(ns))
        self.assertGreaterEqual(ns[0], int((self.begin - 1) * 1e9))
        self.assertLessEqual(ns[-1], int((time.time() + 1) * 1e9))

    @staticmethod
    def opcodes(packets, direction):
        return {p.opcode for p in packets if p.direction == direction and p.port == ROCE_PORT}

    @staticmethod
    def syndromes(packets):
        return {packet.syndrome for packet in packets if packet.opcode == ACK}

    @staticmethod
    def frames(packets, opcodes):
        return collections.Counter(p.frame for p in packets if p.opcode in opcodes)

    def check_pair(self, captures, besides=()):
        """Two NICs that did the same to each other."""
        self.assertEqual(len(captures), 2)
        for packets in captures:
            self.check_times(packets)
            for direction in INBOUND, OUTBOUND:
                seen = self.opcodes(packets, direction)
                self.assertEqual(seen, REQUESTS | ANSWERS | set(besides))
                ports = {p.port for p in packets if p.direction == direction}
                self.assertGreater(len(ports), 1)  # Ethernet, too
            self.assertIn(0x62, self.syndromes(packets))  # access refused
            self.assertTrue(self.syndromes(packets) & set(range(0x20, 0x40)))  # not ready

    def test_loopback(self):
        (packets,) = self.capture("loopback")
        self.check_times(packets)
        self.assertEqual(self.opcodes(packets, OUTBOUND), REQUESTS | ANSWERS)
        self.assertEqual(self.opcodes(packets, INBOUND), set())
        self.assertIn(0x62, self.syndromes(packets))
        self.assertTrue(any(packet.opcode is None for packet in packets))

    def test_mesh(self):
        captures = self.capture("tcp")
        self.check_pair(captures)
        # What one node shows as sent the other shows as received; but the PSNs of datagrams, and
        # the payload of what is refused at its first packet, do not cross the mesh.
        for sender, receiver in (0, 1), (1, 0):
            sent = [p for p in captures[sender] if p.direction == OUTBOUND]
            received = [p for p in captures[receiver] if p.direction == INBOUND]
            self.assertEqual(self.frames(sent, ANSWERS), self.frames(received, ANSWERS))
            rest = {op for op in REQUESTS if op & 0x1F in (1, 2, 3, 7, 8, 9)}
            self.assertTrue(self.frames(received, rest))
            self.assertEqual(self.frames(received, rest) - self.frames(sent, rest), {})

    def test_roce(self):
        self.check_pair(self.capture("roce"), besides={CNP})

    def test_addresses_tags_and_faults(self):
        """What the unit tests of the fabric send: IPv6, VLAN, all MTUs, packets sent again."""
        command = [os.path.join(BUILD, "tests/unit/fabric/unit_fabric_roce")]
        environment = dict(os.environ, ERNIC_TEST_PCAP=self.folder)
        result = subprocess.run(command, capture_output=True, env=environment, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        captures = self.read(sorted(glob.glob("rig-*.pcapng")), ours_only=True)
        packets = [packet for capture in captures for packet in capture]
        self.assertTrue(packets)
        self.assertLessEqual(ANSWERS | {CNP}, self.opcodes(packets, OUTBOUND))
        types = {packet.frame[12:14] for packet in packets}
        inner = {packet.frame[16:18] for packet in packets if packet.frame[12:14] == b"\x81\0"}
        self.assertLessEqual({b"\x08\0", b"\x81\0"}, types)
        self.assertIn(b"\x86\xdd", types | inner)


if __name__ == "__main__":
    program.main()
