# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/build: makes the lab, from the Debian mirror to bootable guests, into the cache.

Each component is keyed by the packages that make it, so that a newer suite, or a changed recipe,
rebuilds only what differs. Nothing is asked of the network when the index says that all is there.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import cache, image, kernel, recipe, uc
from .arguments import Parser
from .debian import LISTS_FRESH_S, Apt, Package
from .errors import LabError

FLAVOURS = ("tiny", "full")
# What may be asked for: the flavours, and the changed RDMA driver and provider of `--uc`.
WANTED = (*FLAVOURS, "uc")
# Made from rdma-core's source package too, in the version that the guests have.
FROM_RDMA_CORE = ("full", "uc")
SUITE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")  # it names a folder of the cache too
QEMU_OLDEST = (10, 1)  # the first that is a client of vfio-user
# What apt says when the mirror has no such suite.
NO_SUITE = "does not have a Release file"


def refuse_suite(suite: str, reason: str) -> LabError:
    """The error that names who asked for the suite, and the remedy."""
    source = "LAB_SUITE" if suite == os.environ.get("LAB_SUITE") else "--suite"
    remedy = f"give a suite of Debian's, or none for {recipe.DEFAULT_SUITE}"
    return LabError(f"{source} '{suite}': {reason}; {remedy}")


def check_suite(suite: str) -> None:
    """Refuse what cannot be the name of a suite."""
    if not SUITE_NAME.fullmatch(suite):
        raise refuse_suite(suite, "no name of a suite")


@dataclass(frozen=True)
class Lab:
    """Where the parts of a finished lab are."""

    suite: str
    release: str
    buildroot: Path
    qemu: Path
    vmlinux: Path
    modules: Path
    modules_image: Path
    modules_cpio: Path
    boot_modules_cpio: Path
    driver_src: Path
    boot_cpio: Path
    tiny_cpio: Path
    tiny_image: Path
    full_image: Path | None
    uc_image: Path | None

    def as_json(self) -> dict[str, str | None]:
        return {name: str(v) if v is not None else None for name, v in vars(self).items()}


def lab_of(index: dict[str, object]) -> Lab:
    """The paths that an index stands for."""
    parts = index["components"]
    assert isinstance(parts, dict)
    at = {name: cache.root() / folder for name, folder in parts.items()}
    release = str(index["kernel"])
    return Lab(
        suite=str(index["suite"]),
        release=release,
        buildroot=at["buildroot"],
        qemu=at["qemu"],
        vmlinux=at["kernel"] / "vmlinux",
        modules=at["kernel"] / "modules/usr/lib/modules" / release,
        modules_image=at["kernel"] / "modules.erofs",
        modules_cpio=at["kernel"] / "modules.cpio",
        boot_modules_cpio=at["kernel"] / "boot.cpio",
        driver_src=at["kernel"] / "driver-src",
        boot_cpio=at["tiny"] / "boot.cpio",
        tiny_cpio=at["tiny"] / "tiny.cpio",
        tiny_image=at["tiny"] / "tiny.erofs",
        full_image=at["full"] / "full.erofs" if "full" in at else None,
        uc_image=at["uc"] / "uc.erofs" if "uc" in at else None,
    )


class Builder:
    """One run of the build, with the build lock held."""

    def __init__(self, suite: str, say: Callable[[str], None]) -> None:
        self.suite = suite
        self.say = say
        self.apt = Apt(suite, cache.root() / "apt" / suite)
        self.release = ""
        self.packages: dict[str, list[Package]] = {}
        self.names: dict[str, list[str]] = {}

    def refresh(self, force: bool) -> None:
        """Fetch the package lists when they are old; old ones will do when there is no network.

        Of a suite that is new here nothing is left when that fails.
        """
        known = self.apt.directory.exists()
        try:
            self._refresh(force)
        except LabError as err:
            if not known:
                shutil.rmtree(self.apt.directory, ignore_errors=True)
            if NO_SUITE in str(err):
                raise refuse_suite(self.suite, "the Debian mirror has no such suite") from err
            raise

    def _refresh(self, force: bool) -> None:
        self.apt.prepare()
        if not force and self.apt.lists_age() < LISTS_FRESH_S:
            return
        self.say(f"package lists of {self.suite}")
        try:
            self.apt.update()
        except LabError as err:
            if force or self.apt.lists_age() == float("inf"):
                raise
            self.say(f"warning: {err}; going on with the lists of the last time")

    def plan(self, wanted: list[str]) -> None:
        """Find the newest kernel and everything that each component is made of."""
        self.say("which packages")
        names = self.apt.depends("linux-headers-amd64")
        headers = [name for name in names if name.startswith("linux-headers-")]
        if not headers:
            raise LabError(f"{self.suite} has no linux-headers-amd64")
        self.release = headers[0].removeprefix("linux-headers-")
        version = ".".join(self.release.split(".")[:2])
        split = [f"linux-modules-{self.release}", f"linux-binary-{self.release}"]
        # Older suites keep image and modules in one package.
        whole = [f"linux-image-{self.release}"]
        source = [headers[0], f"linux-source-{version}"]
        self.names = {
            "buildroot": recipe.BUILDROOT_PACKAGES + source,
            "kernel": split if self.apt.exists(split[0]) else whole,
            "qemu": recipe.QEMU_PACKAGES,
            "tiny": recipe.TINY_PACKAGES + recipe.TINY_SUPPORT,
        }
        if "full" in wanted:
            self.names["full"] = recipe.FULL_PACKAGES
        if "uc" in wanted:
            self.names["uc"] = recipe.UC_PACKAGES
        for part, names in self.names.items():
            self.packages[part] = self.apt.resolve(names)
        self._check_qemu()
        # The closure of a kernel package holds boot loaders and such; only its own count.
        own = (self.release, "linux-base-" + self.release)
        self.packages["kernel"] = [p for p in self.packages["kernel"] if p.name.endswith(own)]

    def _check_qemu(self) -> None:
        """Refuse a suite that is too old before anything of it is downloaded."""
        version = self._version("qemu", "qemu-system-x86")
        numbers = re.match(r"(?:\d+:)?(\d+)\.(\d+)", version)
        if numbers and tuple(map(int, numbers.groups())) < QEMU_OLDEST:
            oldest = ".".join(map(str, QEMU_OLDEST))
            raise refuse_suite(self.suite, f"its QEMU, {version}, is older than {oldest}")

    def fetch(self) -> None:
        """Download what is not here yet."""
        for part, names in self.names.items():
            if self._component_path(part).is_dir():
                continue
            missing = self.apt.missing(self.packages[part])
            if missing:
                size = sum(p.bytes for p in missing) / 1e6
                self.say(f"download for {part}: {len(missing)} packages, {size:.0f} MB")
                self.apt.download(names)
            if part in FROM_RDMA_CORE:
                self._rdma_core()

    def _version(self, part: str, package: str) -> str:
        return next(p.version for p in self.packages[part] if p.name == package)

    def _rdma_core_version(self) -> str:
        return self._version("tiny", "ibverbs-providers")

    def _rdma_core(self) -> Path:
        """The source of the guests' rdma-core."""
        return self.apt.upstream("rdma-core", self._rdma_core_version())

    def key(self, part: str) -> str:
        """Digests all that decides the content of a component."""
        files = [f"{p.file} {p.hash}" for p in self.packages[part]]
        if part == "kernel":
            files.append(self.key("buildroot"))
        if part == "uc":
            files.append(self.key("kernel"))
        if part in FROM_RDMA_CORE:
            files.append(self._rdma_core_version())
        return cache.digest(part, recipe.fingerprint(part), *files)

    def _component_path(self, part: str) -> Path:
        return cache.root() / f"{part}-{self.key(part)}"

    def _component(self, part: str, make: Callable[[Path], None]) -> None:
        if not self._component_path(part).is_dir():
            self.say(f"build {part}")
        cache.component(part, self.key(part), make)

    def build(self) -> dict[str, object]:
        """Make every component that is missing; returns the index."""
        self._component("buildroot", self._make_buildroot)
        self._component("kernel", self._make_kernel)
        self._component("qemu", lambda out: self.apt.unpack(self.packages["qemu"], out))
        self._component("tiny", self._make_tiny)
        if "full" in self.names:
            self._component("full", self._make_full)
        if "uc" in self.names:
            self._component("uc", self._make_uc)
        parts = {part: self._component_path(part).name for part in self.names}
        return {"suite": self.suite, "kernel": self.release, "components": parts}

    def _make_buildroot(self, out: Path) -> None:
        self.apt.unpack(self.packages["buildroot"], out)
        (out / "usr/bin/awk").symlink_to("mawk")
        for name in ("build", "proc", "tmp"):
            (out / name).mkdir(exist_ok=True)

    def _with_tree(self, part: str, make: Callable[[Path], None]) -> None:
        tree = Path(tempfile.mkdtemp(prefix="new.", dir=cache.root()))
        try:
            tree.chmod(0o755)
            self.apt.unpack(self.packages[part], tree)
            make(tree)
        finally:
            shutil.rmtree(tree, ignore_errors=True)

    def _make_kernel(self, out: Path) -> None:
        buildroot = self._component_path("buildroot")
        self._with_tree("kernel", lambda tree: kernel.make(tree, buildroot, self.release, out))

    def _make_tiny(self, out: Path) -> None:
        packages = self.packages["tiny"]
        buildroot = self._component_path("buildroot")
        self._with_tree(
            "tiny", lambda tree: image.make_tiny(self.apt, packages, tree, buildroot, out)
        )

    def _make_full(self, out: Path) -> None:
        buildroot = self._component_path("buildroot")
        tarball = self._rdma_core()
        self._with_tree("full", lambda tree: image.make_full(tree, buildroot, tarball, out))

    def _make_uc(self, out: Path) -> None:
        parts = uc.Parts(
            self._component_path("buildroot"),
            self._component_path("kernel"),
            self.release,
            self._rdma_core(),
        )
        self._with_tree("uc", lambda tree: uc.make(parts, tree, out))


def cached(suite: str, wanted: list[str]) -> Lab | None:
    """The finished lab, when all of WANTED's that are asked for are built. Asks no network."""
    index = cache.read_index(suite, recipe.fingerprint())
    if not all(name in index.get("components", {}) for name in ["tiny", *wanted]):
        return None
    return lab_of(index)


def ensure(
    suite: str, wanted: list[str], update: bool = False, say: Callable[[str], None] | None = None
) -> Lab:
    """The finished lab, built first when it is not there or when an update is asked for."""
    check_suite(suite)
    found = None if update else cached(suite, wanted)
    if found is not None:
        return found
    say = say or progress()

    def busy() -> None:
        say("another build is running; waiting for it")

    with cache.lock("build.lock", fcntl.LOCK_EX, busy):
        found = None if update else cached(suite, wanted)
        return found or lab_of(_build(suite, wanted, update, say))


def _build(
    suite: str, wanted: list[str], update: bool, say: Callable[[str], None]
) -> dict[str, object]:
    for leftover in cache.root().glob("new.*"):
        shutil.rmtree(leftover, ignore_errors=True)
    old = cache.read_index(suite, recipe.fingerprint()).get("components", {})
    builder = Builder(suite, say)
    builder.refresh(update)
    parts = [name for name in WANTED if name in wanted or name in old]
    builder.plan(parts)
    try:
        builder.fetch()
    except LabError:
        # The suite moved on since the lists were fetched: ask again, once.
        builder.refresh(True)
        builder.plan(parts)
        builder.fetch()
    index = builder.build()
    cache.write_index(suite, recipe.fingerprint(), index)
    say(f"ready: kernel {builder.release}")
    return index


def progress() -> Callable[[str], None]:
    """A function that prints a line with the seconds since now, to stderr."""
    start = time.monotonic()

    def say(text: str) -> None:
        print(f"lab: [{time.monotonic() - start:4.0f} s] {text}", file=sys.stderr, flush=True)

    return say


def main(arguments: list[str]) -> int:
    """The command lab/build."""
    parser = Parser(
        prog="lab/build",
        description="Build the guest lab from Debian packages into the cache; instant if there.",
        epilog="environment: DEBIAN_MIRROR, LAB_SUITE, XDG_CACHE_HOME",
    )
    parser.add_argument("--flavour", choices=[*FLAVOURS, "all"], default="all", help="default: all")
    parser.add_argument("--uc", action="store_true", help="what lab/vm --uc takes, too")
    parser.add_argument("--suite", default=recipe.suite(), help="Debian suite (%(default)s)")
    parser.add_argument("--update", action="store_true", help="look for newer packages first")
    parser.add_argument("--print-paths", action="store_true", help="print NAME=PATH of every part")
    parser.add_argument("--json", action="store_true", help="print the paths as JSON")
    options = parser.parse_args(arguments)
    wanted = list(FLAVOURS) if options.flavour == "all" else [options.flavour]
    if options.uc:
        wanted.append("uc")
    paths = ensure(options.suite, wanted, options.update).as_json()
    if options.json:
        print(json.dumps(paths, indent=2))
    elif options.print_paths:
        print("\n".join(f"{name}={value}" for name, value in paths.items() if value is not None))
    return 0
