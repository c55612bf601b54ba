#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Replays recorded sessions of the unmodified Linux driver against the server.

The traces (traces/README.md) hold every message that QEMU 11.1.2 and the ionic driver of Linux
7.2.12 sent to another implementation of the device, with the answers. The same accesses are made
again, in order, over the real socket; every answer of the server must be the recorded one, or stand
in the table DIFFERENCES with the reason why it may be another.

What needs a second party is left out: received frames, and the send and receive queues of verbs.
Transmitted frames are sent again with their first 64 bytes and zeros behind. RDMA admin commands
are given again with page tables that point at scratch memory; their completions and events are
compared. A trace that has only the begin of some kinds of lines (rdma-nvme) has all commands: where
their doorbells are missing they are rung here, and where completions are missing they have to be
success.
"""

import argparse
import array
import collections
import json
import mmap
import os
import re
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SESSIONS = [  # each with a server of its own
    ["eth-probe", "eth-up-ping", "rdma-probe", "rdma-rc-pingpong", "rdma-cm-rping", "rdma-nvme",
     "eth-reset", "unload"],
    ["eth-probe", "eth-up-ping", "rdma-probe", "rdma-errors"],
]
# rdma-errors is of another guest, whose event queues have vectors 1..4 instead of 5..8.
VECTORS = {"rdma-errors": {1: 5, 2: 6, 3: 7, 4: 8}}
WAIT = 10.0  # seconds for anything that the device does on its own time

RAM_SIZE = 1 << 30          # the guest of the traces
SCRATCH = 0x80000000        # frames to send, beside its memory
SCRATCH_SIZE = 16 << 20
FAILURES_SHOWN = 30

# A NIC like the one in the traces, as far as a profile can make it.
PROFILE = """
[identity]
asic_type = salina
asic_rev = 0
fw_version = proto-0.1
[link]
speed_mbps = 100000
xcvr = copper
mtu_max = 9194
[queues]
eth = 16
intr_vectors = 64
[offload]
tx_csum = on
tso = on
sg = on
rx_csum = on
rx_hash = on
vlan = on
"""

# (kind, key, first byte, last byte): reason. Kinds: "cfg" configuration space, "reg" BAR0, "region"
# and "irqs" sizes, "data" and "comp" by device command opcode, "adm" completions by AdminQ opcode,
# "aq" those of the RDMA admin queue.
DIFFERENCES = {
    ("cfg", None, 0x2e, 0x2f): "subsystem 0x5400 names this device",
    ("cfg", None, 0x7c, 0x7f): "LNKCAP: link as the profile has it",
    ("cfg", None, 0x82, 0x83): "LNKSTA: link as the profile has it",
    ("cfg", None, 0x94, 0x97): "DEVCAP2: completion timeout may be off",
    ("cfg", None, 0x9c, 0x9f): "LNKCAP2: speeds up to that of the profile",
    ("cfg", None, 0xa0, 0xa1): "LNKCTL2: target speed of the profile",
    ("region", 2, 0, 7): "the doorbell BAR has 4 MiB",
    ("reg", None, 0x08, 0x0b): "the heartbeat moves",
    ("reg", None, 0x2c, 0x4b): "serial number",
    ("data", 1, 16, 19): "ndbpgs_per_lif follows from the doorbell BAR",
    ("data", 1, 32, 47): "hwstamp fields without timestamping",
    ("data", 20, 136, 175): "LIF config: name and state are informational",
    ("data", 20, 400, 403): "RDMA: number of memory regions",
    ("data", 20, 440, 443): "RDMA: number of send queues",
    ("data", 20, 452, 455): "RDMA: number of receive queues",
    ("data", 20, 464, 467): "RDMA: number of CQs",
    ("data", 20, 476, 479): "RDMA: event queues as in the profile",
    ("data", 10, 12, 127): "port: lists that the driver does not read",
    ("data", 10, 128, 383): "port config: MTU is the smaller of mtu_max and 9000",
    ("data", 39, 1, 1): "versions supported: not read by the driver",
    ("adm", 31, 4, 7): "filter ids are the device's choice",
    ("adm", 40, 4, 8): "queue ids and doorbell slots are the device's choice",
}


class Difference(Exception):
    """The server answered otherwise than recorded."""


class Client:
    """The vfio-user client: one request at a time."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(WAIT)
        self.sock.connect(path)
        self.ident = 0

    def receive(self, size):
        data = b""
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            if not part:
                raise ConnectionError("the server closed the connection")
            data += part
        return data

    def send(self, command, body, fds=(), posted=False):
        self.ident = (self.ident + 1) & 0xFFFF
        header = struct.pack("<HHIII", self.ident, command, 16 + len(body), 16 if posted else 0, 0)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sock.sendmsg([header + body], rights)

    def call(self, command, body=b"", fds=()):
        self.send(command, body, fds)
        ident, got, size, flags, error = struct.unpack("<HHIII", self.receive(16))
        reply = self.receive(size - 16)
        if (ident, got) != (self.ident, command):
            raise ConnectionError("a reply to something else")
        if flags & 0x20:
            raise OSError(error, os.strerror(error))
        return reply

    def read(self, region, offset, size):
        return self.call(9, struct.pack("<QII", offset, region, size))[16:]

    def write(self, region, offset, data, posted):
        body = struct.pack("<QII", offset, region, len(data)) + data
        if posted:
            self.send(10, body, posted=True)
        else:
            self.call(10, body)


class Server:
    """The server under test."""

    def __init__(self, program, folder):
        self.socket, self.control = folder + "/vfio", folder + "/control"
        profile = folder + "/trace.ini"
        with open(profile, "w", encoding="ascii") as file:
            file.write(PROFILE)
        self.process = subprocess.Popen(
            [program, "--socket", self.socket, "--control", self.control, "--nic-profile", profile,
             "--mac", "02:00:00:00:aa:01"])
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(WAIT)
        end = time.monotonic() + WAIT
        while True:
            try:
                self.sock.connect(self.control)
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if self.process.poll() is not None or time.monotonic() > end:
                    raise SystemExit("replay: the server did not start") from None
                select.select([], [], [], 0.005)
        self.lines = self.sock.makefile("rw")
        self.command(cmd="version")

    def command(self, **command):
        self.lines.write(json.dumps(command) + "\n")
        self.lines.flush()
        answer = json.loads(self.lines.readline())
        if not answer["ok"]:
            raise Difference(f"control: {command}: {answer}")

    def stop(self):
        self.process.terminate()
        return self.process.wait(WAIT)


def expand(text):
    """Bytes of "0a0b..(64)": the rest up to 64 is zero."""
    match = re.fullmatch(r"([0-9a-f]*)(?:\.\.\((\d+)\))?(?:\((\d+)\))?", text)
    data = bytes.fromhex(match[1])
    size = int(match[2] or match[3] or len(data))
    return data + bytes(size - len(data))


def load(name):
    """Lines of a trace as (line number, text), repetitions written out."""
    lines = []
    with open(f"{HERE}/traces/{name}.txt", encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            text = re.sub(r"^ *[0-9.]+ ", "", line.rstrip("\n"), count=1)
            repeated = re.match(r"\s*\(last line repeated (\d+) more times\)", text)
            if repeated:
                lines += [lines[-1]] * int(repeated[1])
            elif text and not text.startswith("#:") and not text.startswith("# "):
                lines.append((number, text))
    return lines


class Queue:
    """A ring of the recorded guest."""

    def __init__(self, fields):
        self.entries, self.ring, self.cq, self.sg = fields
        self.head = self.cq_tail = 0
        self.color = 0x80


class Replay:
    """The session: memory, interrupts, queues, and what differed."""

    def __init__(self):
        self.compared = self.failed = 0
        self.used = collections.Counter()
        self.skipped = collections.Counter()
        self.handlers = [
            (r"VFU (\w+) ?(.*)", self.vfu),
            (r"CFG R(\d+) \+0x([0-9a-f]+) ([0-9a-f]+)", self.config_read),
            (r"CFG W(\d+) \+0x([0-9a-f]+) ([0-9a-f]+)", self.config_write),
            (r"R(\d+) BAR0\+0x([0-9a-f]+) = 0x([0-9a-f]+)", self.register_read),
            (r"W(\d+) BAR0\+0x([0-9a-f]+) = 0x([0-9a-f]+)", self.register_write),
            (r"R(\d+) BAR0\+0x([0-9a-f]+)\.\.0x[0-9a-f]+ (\d+) accesses bytes (\S+)",
             self.block_read),
            (r"W(\d+) BAR0\+0x([0-9a-f]+)\.\.0x[0-9a-f]+ (\d+) accesses bytes (\S+)",
             self.block_write),
            (r"DEVCMD (\d+) \w+ req (\S+)", self.device_command),
            (r"\s+(\w+) (\d+) ver \d+ intr \d+ flags \S+ entries (\d+) ring 0x([0-9a-f]+) "
             r"cq 0x([0-9a-f]+) sg 0x([0-9a-f]+)", self.queue_init),
            (r"CQE cq 0 slot (\d+) ADMIN idx \d+ ([0-9a-f]+)", self.rdma_completion),
            (r"EQE eq (\d+) slot \d+ type (\d) code \d id (\d+) = ([0-9a-f]+)", self.rdma_event),
            (r"AQ 0 stride (\d+) op (\d+)", self.rdma_command),
            (r"DB page (\d+) slot (\d+) qid (\d+) ring (\d+) idx (\d+) \((\w+)", self.doorbell),
            (r"ADM (\d+)", lambda *_: None),  # done with its doorbell
            (r"MSIX (\d+)", self.interrupt),
            (r"NOTIFY eid (\d+) ecode (\d+) data ([0-9a-f]+)", self.event),
            (r"### (.*)", self.told),
        ]

    def begin(self, server, client):
        """A new session: nothing is left of the one before."""
        self.server, self.client = server, client
        self.ram = os.memfd_create("ram")
        os.ftruncate(self.ram, RAM_SIZE)
        self.memory = mmap.mmap(self.ram, RAM_SIZE)
        self.scratch_fd = os.memfd_create("scratch")
        os.ftruncate(self.scratch_fd, SCRATCH_SIZE)
        self.scratch = mmap.mmap(self.scratch_fd, SCRATCH_SIZE)
        self.scratch_used = 0
        self.irqs, self.queues, self.filters = {}, {}, {}
        self.rdma_queues = {}     # ("EQ", id), "CQ", "AQ": address of the ring
        self.eq_cons = {}         # entries taken, by EQ
        self.eq_expected = False  # the last event told of an admin completion
        self.armed = False        # the admin CQ
        self.rdma_posted = None   # stride of the last RDMA admin command
        self.rdma_slot = -1       # of its completion, of rdma_slots
        self.rdma_slots = self.rdma_color = 1
        self.template = b""       # the last one that an address handle was made from
        self.vectors = {}
        self.opcode = 0           # of the last device command
        self.pending_init = None  # the decoded Q_INIT before its command
        self.notify = 0
        self.index, self.lines = 0, []

    # ---- comparing ----

    def compare(self, kind, key, start, got, want):
        """Every byte is as recorded, or its place is in the table."""
        self.compared += 1
        if len(got) != len(want):
            raise Difference(f"{kind} {key}: {len(got)} bytes, recorded {len(want)}")
        for i, (one, other) in enumerate(zip(got, want)):
            if one == other:
                continue
            for place in DIFFERENCES:
                if place[0] == kind and place[1] == key and place[2] <= start + i <= place[3]:
                    self.used[place] += 1
                    break
            else:
                raise Difference(f"{kind} {'' if key is None else key} byte {start + i:#x}: "
                                 f"{got.hex()}, recorded {want.hex()}")

    # ---- messages ----

    def vfu(self, what, rest):
        fields = dict(part.split("=") for part in rest.split() if "=" in part)
        number = {k: int(v, 0) for k, v in fields.items() if re.fullmatch(r"0x[0-9a-f]+|\d+", v)}
        getattr(self, "vfu_" + what.lower())(rest.split()[0] if rest else "", number, rest)

    def vfu_version(self, _first, _number, rest):
        reply = self.client.call(1, struct.pack("<HH", 0, 0) + rest.encode() + b"\0")
        if reply[:4] != bytes(4) or reply[-1] != 0:
            raise Difference(f"VERSION: {reply!r}")

    def vfu_dma_map(self, _first, number, _rest):
        fds = [self.ram] if number["fds"] else []
        self.client.call(2, struct.pack("<IIQQQ", 32, number["flags"], number["off"],
                                        number["addr"], number["size"]), fds)

    def vfu_dma_unmap(self, _first, number, _rest):
        self.client.call(3, struct.pack("<IIQQ", 24, number["flags"], number["addr"],
                                        number["size"]))

    def vfu_get_info(self, _first, _number, _rest):
        reply = self.client.call(4, struct.pack("<IIII", 16, 0, 0, 0))
        self.compare("info", None, 0, reply[4:], struct.pack("<III", 3, 9, 5))

    def vfu_region_info(self, first, number, _rest):
        reply = self.client.call(5, struct.pack("<IIIIQQ", 32, 0, int(first), 0, 0, 0))
        self.compare("region", int(first), 0, reply[16:24], struct.pack("<Q", number["size"]))

    def vfu_irq_info(self, first, number, _rest):
        reply = self.client.call(7, struct.pack("<IIII", 16, 0, int(first), 0))
        self.compare("irqs", int(first), 0, reply[12:16], struct.pack("<I", number["count"]))

    def vfu_set_irqs(self, _first, number, _rest):
        fds = []
        for i in range(number["fds"]):
            fd = os.eventfd(0, os.EFD_NONBLOCK)
            fds.append(fd)
            if number["index"] == 2:
                old = self.irqs.get(number["start"] + i)
                self.irqs[number["start"] + i] = fd
                if old is not None:
                    # What was signalled on the old one counts for the new one.
                    if select.select([old], [], [], 0)[0]:
                        os.eventfd_write(fd, os.eventfd_read(old))
                    os.close(old)
        self.client.call(8, struct.pack("<IIIII", 20, number["flags"], number["index"],
                                        number["start"], number["count"]), fds)

    def vfu_device_reset(self, _first, _number, _rest):
        self.client.call(13)

    # ---- accesses ----

    def config_read(self, bits, offset, value):
        size, offset = int(bits) // 8, int(offset, 16)
        want = bytes.fromhex(value)[::-1]
        self.compare("cfg", None, offset, self.client.read(7, offset, size), want)

    def config_write(self, bits, offset, value):
        self.client.write(7, int(offset, 16), bytes.fromhex(value)[::-1], False)
        assert len(value) == int(bits) // 4

    def read_register(self, offset, want):
        """One read, again while the device is still busy with a command."""
        end = time.monotonic() + WAIT
        while True:
            got = self.client.read(0, offset, len(want))
            if offset != 0x804 or got == want or time.monotonic() > end:
                return got

    def compare_register(self, offset, got, want):
        if offset >= 0x888 and offset < 0x1000:
            self.compare("data", self.opcode, offset - 0x888, got, want)
        elif 0x848 <= offset < 0x858:
            self.compare("comp", self.opcode, offset - 0x848, got, want)
        else:
            self.compare("reg", None, offset, got, want)

    def register_read(self, bits, offset, value):
        offset, want = int(offset, 16), int(value, 16).to_bytes(int(bits) // 8, "little")
        self.compare_register(offset, self.read_register(offset, want), want)

    def register_write(self, bits, offset, value):
        offset, data = int(offset, 16), int(value, 16).to_bytes(int(bits) // 8, "little")
        if offset == 0x800 and data[0] == 1:
            self.note_command()
        if offset >= 0x2000:
            vector = (offset - 0x2000) // 32
            offset += 32 * (self.vectors.get(vector, vector) - vector)
        self.client.write(0, offset, data, True)

    def note_command(self):
        """The opcode of the device command that this doorbell starts: its line comes behind."""
        for _number, text in self.lines[self.index:self.index + 12]:
            match = re.match(r"DEVCMD (\d+) ", text)
            if match:
                self.opcode = int(match[1])
                return

    def block_read(self, bits, offset, count, data):
        size, offset, want = int(bits) // 8, int(offset, 16), expand(data)
        if len(want) < size * int(count):
            want += bytes(size * int(count) - len(want))
        got = b"".join(self.read_register(offset + i, want[i:i + size])
                       for i in range(0, size * int(count), size))
        self.compare_register(offset, got, want)

    def block_write(self, bits, offset, count, data):
        size, offset, data = int(bits) // 8, int(offset, 16), expand(data)
        data += bytes(size * int(count) - len(data))
        for i in range(0, size * int(count), size):
            self.client.write(0, offset + i, data[i:i + size], True)

    # ---- commands and queues ----

    def device_command(self, opcode, _req):
        self.opcode = int(opcode)
        if self.opcode == 3:
            self.queues.clear()
            self.rdma_queues.clear()
        if self.opcode == 40:
            self.created()
            self.queues["AdminQ"] = self.pending_init[1]

    def queue_init(self, kind, index, entries, ring, cq, sg):
        fields = (int(entries), int(ring, 16), int(cq, 16), int(sg, 16))
        name = kind if kind in ("AdminQ", "NotifyQ") else f"{kind} {index}"
        self.pending_init = (name, Queue(fields))

    def created(self):
        """What the driver does before a queue is initialized: the completion ring is zeroed."""
        name, queue = self.pending_init
        if name != "NotifyQ":
            self.memory[queue.cq:queue.cq + 16 * queue.entries] = bytes(16 * queue.entries)

    def completed(self, queue):
        """Whether there is a completion that was not taken."""
        return (self.memory[queue.cq + 16 * queue.cq_tail + 15] & 0x80) == queue.color

    def completion(self, queue):
        """The next completion of a queue, color taken off, or None when it does not come."""
        at = queue.cq + 16 * queue.cq_tail
        end = time.monotonic() + WAIT
        while not self.completed(queue):
            if time.monotonic() > end:
                return None
            select.select([], [], [], 0.0002)
        comp = bytearray(self.memory[at:at + 16])
        comp[15] &= 0x7F
        queue.cq_tail = (queue.cq_tail + 1) % queue.entries
        if queue.cq_tail == 0:
            queue.color ^= 0x80
        return bytes(comp)

    def ring(self, slot, qid, index):
        self.client.write(2, 8 * slot, struct.pack("<Q", qid << 24 | index), True)

    def doorbell(self, page, slot, qid, ring, index, kind):
        page, slot, qid, ring, index = int(page), int(slot), int(qid), int(ring), int(index)
        if kind == "AdminQ":
            self.admin(slot, qid, index)
        elif kind == "TXQ":
            self.transmit(slot, qid, index)
        elif kind == "RXQ":
            self.ring(slot, qid, index)
        elif kind in ("AQ", "CQ"):
            if kind == "AQ" and "AQ" in self.rdma_queues:
                self.rdma_admin(self.index)
            if (kind, qid) == ("CQ", 0):
                self.armed |= ring > 0
            self.client.write(2, 4096 * page + 8 * slot,
                              struct.pack("<Q", qid << 24 | ring << 16 | index), True)
        else:
            self.skipped["doorbells of verbs queues"] += 1

    # ---- the RDMA function ----

    def rdma_created(self, opcode, request):
        """What the driver does before EQ, CQ or AQ are created: the ring is zeroed."""
        qid, = struct.unpack_from("<I", request, 4)
        depth, stride, address = struct.unpack_from("<BBQ", request, 14)
        self.memory[address:address + (1 << depth + stride)] = bytes(1 << depth + stride)
        if opcode == 51:
            self.rdma_queues["EQ", qid] = address
            self.eq_cons[qid] = 0
        else:
            self.rdma_queues["CQ" if opcode == 52 else "AQ"] = address
        if opcode == 52:
            self.rdma_slot, self.rdma_slots, self.rdma_color = -1, 1 << depth, 1

    def rdma_table(self, count, address):
        """A page table was not recorded: any pages will do. Rings and regions are not used."""
        if count > 1:
            page = SCRATCH + SCRATCH_SIZE - 4096
            self.memory[address:address + 8 * count] = struct.pack("<Q", page) * count

    def rdma_memory(self, command, template):
        """What a command finds in memory."""
        if command[0] == 1:
            self.rdma_table(*struct.unpack_from("<IQ", command, 24))
        elif command[0] == 2:
            self.rdma_table(*struct.unpack_from("<IQ", command, 24))
            self.rdma_table(*struct.unpack_from("<IQ", command, 48))
        elif command[0] == 3:
            self.rdma_table(*struct.unpack_from("<IQ", command, 32))
        elif command[0] == 13:
            self.template = template or self.template
            address, = struct.unpack_from("<Q", command, 4)
            self.memory[address:address + len(self.template)] = self.template
        elif template:
            address, = struct.unpack_from("<Q", command, 52)
            self.memory[address:address + len(template)] = template

    def rdma_admin(self, first):
        """Writes the next command, from line FIRST on, into the ring. Returns the index behind."""
        command = None
        for _number, text in self.lines[first:first + 12]:
            match = re.match(r"AQ 0 stride (\d+) op \d+ \w+ len \d+: ([0-9a-f]+)", text)
            template = re.search(r"(?:template|hdr) ([0-9a-f]{84,})", text)
            if match and command:
                break
            if match:
                stride, command = int(match[1]), expand(match[2])
                self.rdma_memory(command, None)
            elif command and template:
                self.rdma_memory(command, bytes.fromhex(template[1]))
        if not command:
            raise Difference("an RDMA admin command was not recorded")
        for at in range(0, len(command), 64):
            place = self.rdma_queues["AQ"] + 64 * ((stride + at // 64) % 512)
            part = command[at:at + 64]
            self.memory[place:place + len(part)] = part
        self.rdma_posted = stride
        return stride + (len(command) + 63) // 64

    def rdma_command(self, stride, opcode):
        """Done with its doorbell, unless that was not recorded."""
        stride = int(stride)
        if stride != self.rdma_posted:
            index = self.rdma_admin(self.index - 1)
            self.ring(7, 0, index)
        for _number, text in self.lines[self.index:self.index + 12]:
            if re.match(rf"CQE cq 0 slot \d+ ADMIN idx {stride} ", text):
                return
            if text.startswith("AQ "):
                break
        self.skipped["completions that were not recorded: success is taken for it"] += 1
        slot = (self.rdma_slot + 1) % self.rdma_slots
        self.rdma_color ^= slot == 0
        success = struct.pack(">HB28xB", stride, int(opcode), self.rdma_color)
        self.rdma_completion(slot, success.hex())
        self.ring(5, 0, (slot + 1) % self.rdma_slots)

    def rdma_completion(self, slot, data):
        self.rdma_slot = int(slot)
        want, at = expand(data), self.rdma_queues["CQ"] + 32 * int(slot)
        self.rdma_color = want[31] & 1
        end = time.monotonic() + WAIT
        while (self.memory[at + 31] ^ want[31]) & 1:
            if time.monotonic() > end:
                raise Difference("the RDMA admin command was not completed")
            select.select([], [], [], 0.0002)
        self.compare("aq", want[2], 0, bytes(self.memory[at:at + 32]), want)

    def rdma_event(self, number, kind, ident, data):
        """Events of the admin CQ; those of others belong to traffic that is left out."""
        self.eq_expected = (kind, ident) == ("0", "0") and self.armed
        if not self.eq_expected:
            self.skipped["events of traffic, or without a recorded doorbell that asked"] += 1
            return
        self.armed = False
        number, end = int(number), time.monotonic() + WAIT
        while True:
            cons = self.eq_cons[number]
            at = self.rdma_queues["EQ", number] + 4 * (cons % 1024)
            word, = struct.unpack_from(">I", self.memory, at)
            if word & 1 != cons // 1024 % 2:
                self.eq_cons[number] += 1
                if word >> 8 == 0 and word >> 1 & 7 == 0:
                    break
            elif time.monotonic() > end:
                raise Difference("no event")
            else:
                select.select([], [], [], 0.0002)
        want, = struct.unpack(">I", bytes.fromhex(data))
        self.compare("event", "RDMA", 0, struct.pack(">I", word & ~1), struct.pack(">I", want & ~1))

    def admin(self, slot, qid, index):
        queue = self.queues.get("AdminQ")
        if queue is None:
            self.ring(slot, qid, index)  # the driver rings a dead queue
            return
        command = None
        for _number, text in self.lines[self.index:self.index + 12]:
            init = re.match(self.handlers[8][0], text)
            if init:
                self.queue_init(*init.groups())
            command = re.match(r"ADM (\d+) \w+ slot (\d+) req (\S+) -> comp (\S+)", text)
            if command or text.startswith("DB "):
                break
        if not command:
            self.ring(slot, qid, index)
            return
        opcode, at, request, want = (int(command[1]), int(command[2]), expand(command[3]),
                                     expand(command[4]))
        # The trace lacks commands of files in between: do nothing in their place.
        while queue.head != at:
            self.memory[queue.ring + 64 * queue.head:queue.ring + 64 * queue.head + 64] = bytes(64)
            queue.head = (queue.head + 1) % queue.entries
            self.ring(slot, qid, queue.head)
            self.completion(queue)
            self.client.write(0, 0x2008, struct.pack("<I", 0x30001), True)
        if opcode == 32:  # by the id that this device gave
            ident = self.filters.get(request[4:8], request[4:8])
            request = request[:4] + ident + request[8:]
        if opcode == 40:
            self.created()
        if opcode in (51, 52, 53):
            self.rdma_created(opcode, request)
        self.memory[queue.ring + 64 * at:queue.ring + 64 * at + 64] = request
        queue.head = index
        self.ring(slot, qid, index)
        got = self.completion(queue)
        if got is None:
            raise Difference(f"AdminQ command {opcode} was not completed")
        if opcode == 31:
            self.filters[want[4:8]] = got[4:8]
        self.compare("adm", opcode, 0, got, want)
        if opcode == 40:
            self.queues[self.pending_init[0]] = self.pending_init[1]
            if self.pending_init[0] == "NotifyQ":
                self.notify = self.pending_init[1].ring + 4096

    def take_scratch(self, data):
        if self.scratch_used + len(data) > SCRATCH_SIZE:
            self.scratch_used = 0
        at = self.scratch_used
        self.scratch[at:at + len(data)] = data
        self.scratch_used = at + (len(data) + 63) // 64 * 64
        return SCRATCH + at

    def post(self, queue, fields):
        """One TX descriptor as recorded, its pieces in scratch memory."""
        op, flags, nsge, size, vlan, field1, field2, total, head = fields
        first = self.take_scratch((head + bytes(size))[:size])
        rest = total - size
        for i in range(nsge):
            part = rest // (nsge - i)
            rest -= part
            piece = self.take_scratch(bytes(part))
            at = queue.sg + 256 * queue.head + 16 * i
            self.memory[at:at + 16] = struct.pack("<QH6x", piece, part)
        word = flags | op << 4 | nsge << 8 | first << 12
        at = queue.ring + 16 * queue.head
        self.memory[at:at + 16] = struct.pack("<QHHHH", word, size, vlan, field1, field2)
        queue.head = (queue.head + 1) % queue.entries

    def transmit(self, slot, qid, index):
        queue = self.queues.get(f"TXQ {qid}")
        if queue is None:
            self.ring(slot, qid, index)
            return
        pattern = (rf"TXD q {qid} idx (\d+) op (\d+) flags (0x\w+) nsge (\d+) len (\d+) "
                   r"vlan (0x\w+) f1 (\d+) f2 (\d+) total (\d+) frame ([0-9a-f]+)")
        posted = 0
        for _number, text in self.lines[self.index:self.index + 200]:
            if re.match(rf"DB page \d+ slot {slot} qid {qid} ", text):
                break
            match = re.match(pattern, text)
            if match and queue.head != index:
                slot_of = int(match[1])
                while queue.head != slot_of:  # sent by files that are not here
                    self.post(queue, (0, 0, 0, 60, 0, 0, 0, 60, b"\xff" * 6))
                    posted += 1
                fields = [int(match[i], 0) for i in range(2, 10)]
                self.post(queue, (*fields, bytes.fromhex(match[10])))
                posted += 1
        if queue.head != index:
            self.skipped["transmit doorbells without recorded descriptors"] += 1
            return
        if self.completed(queue):
            raise Difference(f"TXQ {qid}: a completion before the doorbell")
        self.ring(slot, qid, index)
        last = (index - 1) % queue.entries
        while posted:
            got = self.completion(queue)
            if got is None:
                raise Difference(f"TXQ {qid}: descriptor {last} was not completed")
            if struct.unpack_from("<H", got, 2)[0] == last:
                break
        self.compared += 1

    def interrupt(self, vector):
        """Vector 0 fires for every admin completion and event, and that of an EQ for admin
        commands; the others depend on frames that are not there."""
        vector, expected, self.eq_expected = int(vector), self.eq_expected, False
        vector = self.vectors.get(vector, vector)
        if vector != 0 and not expected:
            self.skipped["interrupts of traffic"] += 1
            return
        fd = self.irqs.get(vector)
        if fd is None or not select.select([fd], [], [], WAIT)[0]:
            raise Difference(f"vector {vector} did not fire")
        os.eventfd_read(fd)
        self.compared += 1

    def event(self, eid, ecode, data):
        eid, at = int(eid), self.notify + 64 * ((int(eid) - 1) % 64)
        end = time.monotonic() + WAIT
        while struct.unpack_from("<Q", self.memory, at)[0] != eid:
            if time.monotonic() > end:
                raise Difference(f"event {eid} did not come")
            select.select([], [], [], 0.0002)
        want = struct.pack("<QH", eid, int(ecode)) + bytes.fromhex(data)
        self.compare("event", int(ecode), 0, bytes(self.memory[at:at + len(want)]), want)

    def told(self, text):
        """What was done to the recorded device, done to this one."""
        actions = [(r"link down event", {"cmd": "link", "up": False}),
                   (r"link up event", {"cmd": "link", "up": True}),
                   (r"fw_status 0x11 -> 0x10", {"cmd": "fw", "action": "stop"}),
                   (r"fw_status -> 0x21", {"cmd": "fw", "action": "start"}),
                   (r"state dropped and generation", {"cmd": "fw", "action": "restart"})]
        for pattern, command in actions:
            if re.match(pattern, text):
                self.server.command(**command)
                if command["cmd"] == "fw":
                    self.queues.clear()

    # ---- the session ----

    def line(self, text):
        for pattern, handler in self.handlers:
            match = re.match(pattern, text)
            if match:
                handler(*match.groups())
                return
        self.skipped["lines " + text.split()[0]] += 1

    def run(self, name):
        self.lines = load(name)
        self.vectors = VECTORS.get(name, {})
        for self.index, (number, text) in enumerate(self.lines, 1):
            try:
                self.line(text)
            except Difference as error:
                self.failed += 1
                if self.failed <= FAILURES_SHOWN:
                    print(f"{name}.txt:{number}: {text[:100]}\n  {error}")
            except (ConnectionError, OSError) as error:
                raise SystemExit(f"{name}.txt:{number}: {text[:100]}\n  {error}") from None

    def add_scratch(self):
        self.client.call(2, struct.pack("<IIQQQ", 32, 3, 0, SCRATCH, SCRATCH_SIZE),
                         [self.scratch_fd])


def replay_session(program, session, replay):
    """One session with a server of its own. Returns the server's exit status."""
    with tempfile.TemporaryDirectory(prefix="ernic-replay-") as folder:
        server = Server(program, folder)
        try:
            replay.begin(server, Client(server.socket))
            for name in session:
                replay.run(name)
                if name == session[0]:
                    replay.add_scratch()
        finally:
            status = server.stop()
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verbose", action="store_true", help="list what differs as intended")
    parser.add_argument("program", help="the rocm-ernic program")
    args = parser.parse_args()
    replay = Replay()
    status = 0
    for session in SESSIONS:
        status |= replay_session(args.program, session, replay)
    print(f"{replay.compared} answers compared, {replay.failed} differ; "
          f"{sum(replay.used.values())} bytes differ as intended in {len(replay.used)} places")
    for place, reason in DIFFERENCES.items():
        if args.verbose or not replay.used[place]:
            print(f"  {place[0]} {place[1]} {place[2]:#x}..{place[3]:#x}: {reason}: "
                  f"{replay.used[place]} bytes")
    for what, count in replay.skipped.items():
        print(f"  left out: {count} {what}")
    return 1 if status or replay.failed else 0


if __name__ == "__main__":
    sys.exit(main())
