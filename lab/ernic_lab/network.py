# SPDX-License-Identifier: GPL-2.0-or-later
"""A network namespace of our own with the TAPs that a run needs; it goes away with the run.

    guest NICs       TAP                          host end 192.168.200.1/24
                     TAP, TAP .. -> br-ernic      the same on the bridge
    virtio devices   the same with br-virtio and  192.168.201.1/24

Needs root. Without it, TAPs that were made for the user beforehand are used where they are; their
host end must have its address.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from .errors import LabError
from .options import Options
from .process import LIBC

CLONE_NEWNET = 0x40000000
TUN = Path("/dev/net/tun")


def taps_of(options: Options) -> tuple[list[str], list[str]]:
    """The TAPs of the NICs and those of the virtio devices, each once."""
    numbers = range(1, options.guests + 1)
    nics = [options.nic_tap(guest) for guest in numbers]
    virtio = [options.virtio_tap_name(guest) for guest in numbers]
    return list(dict.fromkeys(t for t in nics if t)), list(dict.fromkeys(t for t in virtio if t))


def check(options: Options) -> None:
    """Whether there can be the TAPs that are asked for; told before a long build."""
    nics, virtio = taps_of(options)
    if os.geteuid() != 0:
        _need_existing(nics, "200", options)
        _need_existing(virtio, "201", options)
    elif nics or virtio:
        _need_device(nics + virtio)


def prepare(options: Options) -> None:
    """Move this process into a fresh namespace with the TAPs, when TAPs are asked for."""
    nics, virtio = taps_of(options)
    if os.geteuid() != 0 or not (nics or virtio):
        return
    if LIBC.unshare(CLONE_NEWNET) != 0:
        raise LabError("no private network namespace: unshare(CLONE_NEWNET) failed")
    _ip("link set lo up")
    _segment(nics, "br-ernic", "200", options)
    _segment(virtio, "br-virtio", "201", options)


def _need_existing(taps: list[str], subnet: str, options: Options) -> None:
    """Without root: TAPs made beforehand, or how to make one."""
    for tap in taps:
        if Path("/sys/class/net", tap).exists():
            continue
        steps = [
            f"tuntap add dev {tap} mode tap user $USER{_queues(options)}",
            f"link set {tap} up",
        ]
        address, bridged = f"192.168.{subnet}.1/24", ""
        if len(taps) == 1:
            steps.append(f"addr add {address} dev {tap}")
        else:
            bridged = f", and a bridge of all TAPs with the address {address}"
        commands = " && ".join(f"sudo ip {step}" for step in steps)
        raise LabError(
            f"TAP {tap} does not exist: only root can make it; run as root, or first"
            f" `{commands}`{bridged}"
        )


def _need_device(taps: list[str]) -> None:
    """As root of a user namespace, the device node may still be closed."""
    if not TUN.exists():
        raise LabError(f"TAP {taps[0]}: the host has no {TUN}; load it with `sudo modprobe tun`")
    if not os.access(TUN, os.R_OK | os.W_OK):
        raise LabError(
            f"TAP {taps[0]}: this user may not open {TUN}; run as the host's root, or open it to"
            f" all with `sudo chmod 666 {TUN}`"
        )


def _queues(options: Options) -> str:
    return " multi_queue" if options.multi_queue_taps else ""


def _segment(taps: list[str], bridge: str, subnet: str, options: Options) -> None:
    """One or more TAPs with a host end at 192.168.SUBNET.1/24 and fd00:SUBNET::1/64."""
    if not taps:
        return
    host = taps[0]
    if len(taps) > 1:
        host = bridge
        _ip(f"link add {bridge} type bridge forward_delay 0 mcast_snooping 0")
        # Fixed, or it would follow the TAPs' addresses around.
        address = f"02:00:00:00:{int(subnet) - 200:02x}:01"
        _ip(f"link set {bridge} address {address} mtu {options.tap_mtu}")
    for tap in taps:
        _ip(f"tuntap add dev {tap} mode tap{_queues(options)}")
        master = f" master {bridge}" if len(taps) > 1 else ""
        _ip(f"link set {tap} mtu {options.tap_mtu}{master} up")
    dad = Path("/proc/sys/net/ipv6/conf", host, "accept_dad")
    if dad.exists():
        dad.write_text("0", "ascii")
    _ip(f"link set {host} up")
    _ip(f"addr add 192.168.{subnet}.1/24 dev {host}")
    if dad.exists():
        _ip(f"addr add fd00:{subnet}::1/64 dev {host} nodad")


def _ip(arguments: str) -> None:
    try:
        done = subprocess.run(
            ["ip", *arguments.split()], capture_output=True, text=True, check=False
        )
    except FileNotFoundError as err:
        raise LabError("ip(8) is missing: install iproute2") from err
    if done.returncode != 0:
        reason = " ".join(done.stderr.split())
        raise LabError(f"the network of the TAPs: ip {arguments}: {reason}")
