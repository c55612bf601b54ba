# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab: builds a guest from Debian packages and runs scripts in it, one NIC server per guest.

Modules, from the bottom:

    errors    the one exception that ends a command with a message
    cache     where things are kept, locks, the index of what is built
    recipe    which packages, programs and kernel modules go into what
    debian    a private apt: resolve, download, unpack, no root
    tools     run programs of an unpacked Debian tree
    cpio elf  file formats
    modules   pick kernel modules with what they need
    kernel    component: kernel, driver source, ionic_rdma
    image     components: QEMU, tiny, full
    build     the command lab/build
    clean     the command lab/clean

    options   the arguments of lab/vm
    network   private network namespace, TAPs, bridges
    accel     does KVM really work here
    machine   QEMU's command line, and what a guest boots with
    process   child processes that cannot outlive us
    server    one NIC server
    snapshot  boots that are saved once, for guests to go on from
    guest     one QEMU and what it says
    runner    the event loop that ties them
    vm        the command lab/vm
"""
