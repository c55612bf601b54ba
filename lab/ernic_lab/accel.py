# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether KVM really works here: a device node that opens proves little.

Under some hypervisors /dev/kvm opens and vCPUs are created, but kernels crawl or die in it. So
KVM counts only when the CPU has VMX or SVM and a kernel has booted to its first process within a
few seconds. The answer is kept in the cache per host kernel and QEMU.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import tempfile
from pathlib import Path

from . import cache, machine
from .build import Lab
from .cpio import Archive
from .errors import LabError
from .options import Options

KVM = Path("/dev/kvm")
PROBE_SECONDS = 10
PROBE_STATUS = 42
PROBE_INIT = """#!/bin/busybox sh
busybox mount -t devtmpfs dev /dev
printf '\\052' | busybox dd of=/dev/port bs=1 seek=244
"""


def choose(options: Options, lab: Lab) -> str:
    """ "kvm" or "tcg", as asked for or as found out."""
    if options.accel == "tcg":
        return "tcg"
    usable = os.access(KVM, os.R_OK | os.W_OK)
    if options.accel == "kvm":
        if not usable:
            raise LabError(f"--accel kvm: cannot open {KVM}; use tcg, or join the group kvm")
        return "kvm"
    has_extensions = re.search(r"^flags.*\b(vmx|svm)\b", _cpuinfo(), re.MULTILINE)
    return "kvm" if usable and has_extensions and _works(options, lab) else "tcg"


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return ""


def _works(options: Options, lab: Lab) -> bool:
    program = machine.qemu_program(options, lab)
    key = cache.digest(platform.release(), platform.version(), _cpuinfo()[:2000], *program)
    memory = cache.root() / "kvm-works" / key
    try:
        return bool(json.loads(memory.read_text("ascii")))
    except (OSError, ValueError):
        pass
    answer = _probe(program, lab)
    memory.parent.mkdir(parents=True, exist_ok=True)
    memory.write_text(json.dumps(answer), "ascii")
    return answer


def _probe(program: list[str], lab: Lab) -> bool:
    with tempfile.TemporaryDirectory(prefix="ernic-kvm.") as directory:
        initrd = Path(directory, "initrd")
        with initrd.open("wb") as file:
            file.write(lab.boot_cpio.read_bytes())
            archive = Archive(file)
            archive.file("init", PROBE_INIT.encode(), 0o755)
            archive.close()
        cmdline = " ".join(machine.KERNEL_WORDS)
        smallest = Options([], vcpus=1, mem=256)
        words = machine.base_arguments("kvm", smallest, lab.vmlinux, cmdline)
        try:
            done = subprocess.run(
                [*program, *words, "-initrd", str(initrd)],
                env={**os.environ, **machine.qemu_environment(lab)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_SECONDS,
                check=False,
            )
        except (subprocess.TimeoutExpired, OSError):
            return False
    return done.returncode == PROBE_STATUS << 1 | 1
