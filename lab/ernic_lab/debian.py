# SPDX-License-Identifier: GPL-2.0-or-later
"""A private apt: asks a Debian suite what packages need, downloads them and unpacks them.

It has its own configuration, lists and archive inside the cache, so neither the host's packages
nor its apt state take part, and root is not needed: packages are unpacked with dpkg-deb and no
maintainer script runs. The mirror is DEBIAN_MIRROR or the one in the host's own apt sources;
signatures are checked with Debian's archive keyring. An interrupted download resumes.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from .errors import LabError
from .tools import LIBRARIES

APT_HELPER = "/usr/lib/apt/apt-helper"

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Settings of the host's apt that say how it reaches a mirror, and what clock to believe.
HOST_SETTINGS = re.compile(r"Acquire::(http|https|ftp|ForceIPv[46]|Check-(Valid-Until|Date))\b")
LISTS_FRESH_S = 24 * 3600
# Left out when packages are unpacked: nobody reads manuals in the guest.
NOT_UNPACKED = ("./usr/share/man", "./usr/share/locale", "./usr/share/info", "./usr/share/lintian")


@dataclass(frozen=True)
class Package:
    """One package file: what apt calls it, and what it must hash to."""

    file: str
    bytes: int
    hash: str

    @property
    def name(self) -> str:
        return self.file.split("_", 1)[0]

    @property
    def version(self) -> str:
        return unquote(self.file.split("_")[1])


def find_mirror() -> str:
    """DEBIAN_MIRROR, or the mirror that this machine's own apt sources name."""
    mirror = os.environ.get("DEBIAN_MIRROR", "")
    if mirror:
        return mirror
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    filters = ["Created-By: Packages", "Origin: Debian"]
    done = subprocess.run(command + filters, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if "security" not in line:
            return line
    # Lists that were never fetched have no Origin yet.
    done = subprocess.run(command + filters[:1], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if re.search(r"/debian/?$", line):
            return line
    raise LabError("no Debian mirror in the apt sources of this machine: set DEBIAN_MIRROR")


class Apt:
    """The private apt of one suite, kept in `directory`."""

    def __init__(self, suite: str, directory: Path) -> None:
        self.suite = suite
        self.directory = directory
        self.environment = {**os.environ, "APT_CONFIG": str(directory / "apt.conf"), "LC_ALL": "C"}

    def prepare(self) -> None:
        """Write the configuration. The host's own network settings are carried over."""
        if not KEYRING.exists():
            raise LabError(f"{KEYRING} is missing: install debian-archive-keyring")
        folders = "lists/partial lists-src/partial debs/partial none/partial sources empty log"
        for name in folders.split():
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        (self.directory / "status").write_text("", "ascii")
        for kind, name in (("deb", "sources.list"), ("deb-src", "sources-src.list")):
            line = f"{kind} [signed-by={KEYRING}] {find_mirror()} {self.suite} main\n"
            (self.directory / name).write_text(line, "utf-8")
        (self.directory / "apt.conf").write_text(self._settings(), "utf-8")

    def _settings(self) -> str:
        here = self.directory
        dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False)
        keep = [line for line in dump.stdout.splitlines() if HOST_SETTINGS.match(line)]
        own = {
            "Dir::Etc": here,
            "Dir::Etc::Main": here / "empty/none",
            "Dir::Etc::Parts": here / "empty",
            "Dir::Etc::SourceList": here / "sources.list",
            "Dir::Etc::SourceParts": here / "empty",
            "Dir::Etc::PreferencesParts": here / "empty",
            "Dir::Etc::TrustedParts": here / "empty",
            "Dir::State": here,
            "Dir::State::lists": here / "lists",
            "Dir::State::status": here / "status",
            "Dir::Cache": here,
            "Dir::Cache::archives": here / "debs",
            "Dir::Log": here / "log",
            "APT::Architecture": "amd64",
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Debug::NoLocking": "true",
            "pkgCacheGen::Essential": "none",
        }
        lines = [f'{key} "{value}";' for key, value in own.items()]
        return "\n".join([*keep, *lines, 'APT::Architectures { "amd64"; };', ""])

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            arguments, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            text = (done.stderr or done.stdout).strip().splitlines()
            reason = "; ".join(x for x in text if x.startswith("E:")) or "\n".join(text[-5:])
            raise LabError(f"{arguments[0]} {arguments[1]} for {self.suite}: {reason}")
        return done.stdout

    def update(self) -> None:
        """Fetch the package lists."""
        # An unsigned or half-fetched list must not count as success.
        self._run("apt-get", "update", "-qq", "-o", "APT::Update::Error-Mode=any")
        (self.directory / "updated").touch()

    def lists_age(self) -> float:
        """Seconds since the lists were fetched; infinity when they never were."""
        try:
            return time.time() - (self.directory / "updated").stat().st_mtime
        except OSError:
            return float("inf")

    def depends(self, package: str) -> list[str]:
        """The direct dependencies of a package, by name."""
        text = self._run("apt-cache", "depends", package)
        return re.findall(r"^ +Depends: (\S+)", text, re.MULTILINE)

    def exists(self, package: str) -> bool:
        """Whether the suite has this package."""
        text = self._run("apt-cache", "pkgnames", package)
        return package in text.split()

    def resolve(self, names: list[str]) -> list[Package]:
        """The named packages and everything they depend on."""
        # --print-uris leaves out what is downloaded already, so show it an empty archive.
        archives = f"Dir::Cache::archives={self.directory}/none"
        text = self._run("apt-get", "-qq", "-y", "-o", archives, "--print-uris", "install", *names)
        packages = []
        for line in text.splitlines():
            found = re.match(r"'[^']+' (\S+) (\d+) (\S+)", line)
            if found:
                packages.append(Package(found[1], int(found[2]), found[3]))
        if not packages:
            raise LabError(f"apt-get resolved nothing for {' '.join(names)}")
        return sorted(packages, key=lambda p: p.file)

    def missing(self, packages: list[Package]) -> list[Package]:
        """Those of the packages that are not downloaded yet."""
        return [p for p in packages if not (self.directory / "debs" / p.file).exists()]

    def download(self, names: list[str]) -> None:
        """Fetch what resolve(names) lists; apt checks the hashes and resumes partial files."""
        self._run("apt-get", "-qq", "-y", "--download-only", "install", *names)

    def upstream(self, package: str, version: str) -> Path:
        """The upstream tarball of a source package, downloaded if it is not here.

        The lists of source packages are fetched only for that, and kept apart: few need them.
        """
        version = re.sub(r"\+b\d+$", "", version)  # a rebuild has the source of what it rebuilds
        tarball = self.directory / "sources" / f"{package}_{version}.orig.tar"
        if tarball.exists():
            return tarball
        apart = ["-o", f"Dir::Etc::SourceList={self.directory}/sources-src.list"]
        apart += ["-o", f"Dir::State::lists={self.directory}/lists-src"]
        apart += ["-o", f"Dir::Cache::srcpkgcache={self.directory}/srcpkgcache-src.bin"]
        apart += ["-o", f"Dir::Cache::pkgcache={self.directory}/pkgcache-src.bin"]
        self._run("apt-get", "update", "-qq", "-o", "APT::Update::Error-Mode=any", *apart)
        wanted = f"{package}={version}"
        text = self._run("apt-get", "-qq", *apart, "--print-uris", "source", wanted)
        found = re.search(r"^'([^']+)' \S+\.orig\.tar\.\w+ \d+ (\S+)$", text, re.MULTILINE)
        if not found:
            raise LabError(f"the source package {wanted} of {self.suite} has no upstream tarball")
        scratch = tarball.with_suffix(".new")
        self._run(APT_HELPER, "download-file", found[1], str(scratch), found[2])
        return scratch.rename(tarball)

    def unpack(self, packages: list[Package], tree: Path) -> None:
        """Unpack downloaded packages into `tree`; base-files first, for its /bin -> usr/bin links."""
        tree.mkdir(parents=True, exist_ok=True)
        base = [p for p in packages if p.name == "base-files"]
        rest = [p for p in packages if p.name != "base-files"]
        for package in base:
            self._unpack_one(package, tree)
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(lambda p: self._unpack_one(p, tree), rest))
        link_libraries(tree)

    def _unpack_one(self, package: Package, tree: Path) -> None:
        deb = self.directory / "debs" / package.file
        tar = ["tar", "-x", "-C", str(tree), "--no-same-owner", "--keep-directory-symlink"]
        tar += [f"--exclude={path}" for path in NOT_UNPACKED]
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE
        ) as source:
            done = subprocess.run(
                tar, stdin=source.stdout, capture_output=True, text=True, check=False
            )
        if source.returncode != 0 or done.returncode != 0:
            deb.unlink(missing_ok=True)  # so that the next build fetches it again
            raise LabError(f"unpack {package.file}: {done.stderr.strip() or 'damaged package'}")


def link_libraries(tree: Path) -> None:
    """Make the links that some packages leave to ldconfig (libx.so.1 -> libx.so.1.0.0)."""
    libraries = tree / LIBRARIES
    if libraries.is_dir():
        done = subprocess.run(
            ["/sbin/ldconfig", "-n", str(libraries)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise LabError(f"ldconfig -n {libraries}: {done.stderr.strip()}")
