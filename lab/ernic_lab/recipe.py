# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes into the lab: packages, programs and kernel modules. Data only.

Nothing here is a version: the suite decides, and the kernel is the newest that it has.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from . import cache

DEFAULT_SUITE = "forky"  # the first suite with QEMU >= 10.1 and rdma-core >= 61

QEMU_PACKAGES = ["qemu-system-x86"]

# Builds kernel modules in a chroot; its kmod, binutils, zstd and erofs-utils serve as tools.
BUILDROOT_PACKAGES = """
    base-files bash dash coreutils sed grep mawk findutils make binutils diffutils
    xz-utils zstd kmod erofs-utils
""".split()

# Every program of these packages goes into `tiny`.
TINY_PACKAGES = """
    bash dash kmod iproute2 ethtool ibverbs-utils rdmacm-utils perftest qperf nvme-cli fio
    iperf3 curl tcpdump pciutils iputils-ping iputils-arping jq socat
""".split()
# Needed by those, but without programs of their own that anyone would run.
TINY_SUPPORT = "base-files busybox-static ibverbs-providers pci.ids".split()
# Programs of TINY_PACKAGES that are left out: shell patterns of paths.
TINY_WITHOUT = """
    usr/bin/raw_ethernet_* usr/bin/bashbug usr/bin/clear_console usr/sbin/pcimodules
    usr/sbin/update-pciids usr/bin/fio-btrace2fio usr/bin/genfio usr/bin/genl
    usr/bin/fio_* usr/bin/fio2gnuplot usr/bin/fio-histo-log-pctiles.py
""".split()
TINY_FILES = ["usr/share/misc/pci.ids"]
# Loaded by name at run time, so no program's library list shows them.
TINY_PLUGINS = """
    usr/lib/x86_64-linux-gnu/libibverbs/libionic-rdmav*.so
    usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav*.so
    usr/lib/x86_64-linux-gnu/fio/fio-libaio.so
    usr/lib/x86_64-linux-gnu/fio/fio-rdma.so
    usr/lib/x86_64-linux-gnu/libgcc_s.so.1
""".split()
VERBS_DRIVERS = ["ionic", "rxe"]

FULL_PACKAGES = [
    *TINY_PACKAGES,
    *TINY_SUPPORT,
    *"""
    base-passwd netbase ca-certificates coreutils findutils grep sed mawk tar gzip xz-utils
    diffutils util-linux mount procps hostname openssl strace infiniband-diags rdma-core
    python3 python3-pyverbs python3-pytest python3-boto3 awscli s3cmd s3fs fuse3
    """.split(),
]
# Left out of `full` to keep it small.
FULL_WITHOUT = ["usr/share/doc", "usr/share/bash-completion", "usr/lib/systemd", "boot", "usr/src"]
# The pyverbs tests of rdma-core's source package: no binary package has all of them.
FULL_TESTS = "usr/share/rdma-core/tests"

# Compiles rdma-core's provider for `--uc` in a chroot.
UC_PACKAGES = """
    base-files bash dash coreutils sed grep mawk findutils gcc libc6-dev linux-libc-dev
    cmake ninja-build pkgconf python3-minimal
""".split()

# Kernel modules of both flavours, with what they depend on. Those that a kernel has built in
# are fine; OPTIONAL ones may be missing without a word.
MODULES = """
    ionic ionic_rdma ib_core ib_uverbs ib_umad rdma_cm rdma_ucm rdma_rxe
    nvme_core nvme_fabrics nvme_rdma nvme_tcp nvme_loop nvmet nvmet_rdma nvmet_tcp
    null_blk brd loop configfs ext4 erofs overlay fuse
    virtio_net virtio_blk 9p 9pnet_virtio
    veth dummy bridge tun 8021q macvlan bonding vxlan sch_netem sch_ingress
""".split()
OPTIONAL_MODULES = """
    ipvlan team pktgen e1000e vmxnet3 qemu_fw_cfg
    act_mirred act_gact act_police act_vlan act_csum cls_u32 cls_flower cls_matchall sch_htb sch_tbf sch_fq
    tcp_diag udp_diag inet_diag af_packet_diag smc smc_diag rds rds_rdma 8139cp
    crc32c_cryptoapi crc32c_generic libcrc32c
""".split()

# Enough to reach a root file system on a disk.
BOOT_MODULES = "virtio_blk erofs overlay".split()

# The files of this package that decide the content of each component.
SOURCES = {
    "buildroot": ["debian"],
    "qemu": ["debian"],
    "kernel": ["kernel", "modules", "cpio", "erofs", "tools"],
    "tiny": ["image", "cpio", "erofs", "tools", "debian"],
    "full": ["image", "erofs", "tools", "debian"],
    "uc": ["uc", "kernel", "modules", "erofs", "tools", "debian"],
}


@functools.cache  # one answer for a whole build, even while somebody edits these files
def fingerprint(part: str = "") -> str:
    """Digests the recipe and the code that a component depends on; all of them by default."""
    here = Path(__file__).parent
    names = SOURCES[part] if part else sorted({n for files in SOURCES.values() for n in files})
    if names:
        names = ["recipe", *names]
    return cache.digest(*((here / f"{name}.py").read_text("utf-8") for name in names))


def suite() -> str:
    """The Debian suite to take everything from: LAB_SUITE or the default."""
    return os.environ.get("LAB_SUITE") or DEFAULT_SUITE
