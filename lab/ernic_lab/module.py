# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/module: compiles a kernel module of your own for the lab's kernel."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from . import build, kernel, recipe
from .arguments import Parser


def main(arguments: list[str]) -> int:
    """The command lab/module."""
    parser = Parser(
        prog="lab/module",
        description="Compile the out-of-tree module in SOURCE (with a Kbuild file or Makefile)"
        " for the lab's kernel and put its .ko files into OUT. SOURCE is not changed. The"
        " headers of the lab's Ethernet driver are at ../ionic.",
        epilog="The driver source of the lab: lab/build --print-paths | grep driver_src",
    )
    parser.add_argument("source", type=Path, metavar="SOURCE")
    parser.add_argument("out", type=Path, metavar="OUT")
    options = parser.parse_args(arguments)
    source: Path = options.source.resolve()
    if not source.is_dir():
        parser.error(f"SOURCE {options.source}: no such folder; give the one with your module")
    if not any((source / name).exists() for name in ("Kbuild", "Makefile")):
        parser.error(f"SOURCE {options.source}: has neither a Kbuild file nor a Makefile")
    lab = build.ensure(recipe.suite(), ["tiny"])
    with tempfile.TemporaryDirectory(prefix="ernic-module.") as directory:
        work = Path(directory)
        shutil.copytree(lab.driver_src / "ionic", work / "ionic")
        shutil.copytree(source, work / source.name, dirs_exist_ok=True)
        built = kernel.build_module(lab.buildroot, lab.release, work, source.name)
        options.out.mkdir(parents=True, exist_ok=True)
        for module in built:
            shutil.copyfile(module, options.out / module.name)
            print(options.out / module.name)
    return 0
