#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's parts that need no guest: arguments, archives, barriers, modules, the cache."""

import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
LAB = Path(__file__).resolve().parents[2] / "lab"
sys.path.insert(0, str(LAB))

from ernic_lab import build, cache, command, debian, guest, kernel, machine, module  # noqa: E402
from ernic_lab import modules, network, options, runner, server, snapshot, uc  # noqa: E402
from ernic_lab.barrier import Barriers  # noqa: E402
from ernic_lab.cpio import Archive  # noqa: E402
from ernic_lab.errors import LabError  # noqa: E402


def parse(*words):
    """Options for a script that exists."""
    return options.parse([*words, "--", __file__])


def refusal(*words, script=__file__):
    """The one line with which lab/vm refuses these arguments."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            options.parse([*words, "--", str(script)])
        except SystemExit as end:
            assert end.code == 2, end.code
    assert said.getvalue().count("\n") == 1, said.getvalue()
    return said.getvalue()


class Arguments(unittest.TestCase):
    def test_nth_nic_serves_nth_guest_and_the_last_the_rest(self):
        asked = parse("--guests", "3", "--nic", "-b none", "--nic", "--capture 'c %n'")
        self.assertEqual(asked.nic_arguments(1), ["-b", "none"])
        self.assertEqual(asked.nic_arguments(2), ["--capture", "c 2"])
        self.assertEqual(asked.nic_arguments(3), ["--capture", "c 3"])

    def test_tap_is_found_in_every_form(self):
        for text in ("--tap x1", "-T x1", "--tap=x1", "-b none -T x%n"):
            self.assertEqual(parse("--nic", text).nic_tap(1), "x1")
        self.assertIsNone(parse("--nic", "--backend none").nic_tap(1))
        self.assertIsNone(parse("--no-nic").nic_tap(1))

    def test_abbreviated_flags_are_refused(self):
        with self.assertRaises(SystemExit), mock.patch("sys.stderr"):
            parse("--guest", "2")

    def test_text_that_looks_like_a_flag_is_a_value(self):
        asked = parse("--nic", "--verbose", "--qemu-arg", "-S", "--cmdline", "--", "--json", "-")
        self.assertEqual((asked.nic, asked.qemu_arg, asked.json), (["--verbose"], ["-S"], "-"))

    def test_uc_is_for_the_labs_own_kernel(self):
        self.assertTrue(parse("--uc").uc)
        with self.assertRaises(SystemExit), mock.patch("sys.stderr"):
            parse("--uc", "--kernel", __file__)

    def test_saved_boot_has_only_what_the_lab_gives_it(self):
        self.assertTrue(parse("--snapshot", "--uc", "--cmdline", "quiet").snapshot)
        for words in (["--share", "/tmp"], ["--virtio-tap", "t0"], ["--qemu-arg", "-S"],
                      ["--kernel", __file__], ["--qemu", "/bin/sh"]):  # fmt: skip
            wanted = f"--snapshot: a saved boot knows no {words[0]}; leave one of them out"
            self.assertIn(wanted, refusal("--snapshot", *words))

    def test_kernel_may_have_its_modules_built_in(self):
        self.assertIsNone(parse("--kernel", __file__).modules)

    def test_unbalanced_quote_is_refused(self):
        with self.assertRaises(SystemExit), mock.patch("sys.stderr"):
            parse("--nic", "--tap 'x")

    def test_refusals_name_option_value_and_remedy(self):
        for words, wanted in (
            (["--host", "/none"], "--host /none: no such file"),
            (["--file", "/none"], "--file /none: no such file"),
            (["--file", "/tmp"], "--file /tmp: is a directory; give a file"),
            (["--kernel", "/none"], "--kernel /none: no such file"),
            (["--qemu", "/none"], "--qemu /none: no such program"),
            (["--wrap-server", "none -q"], "--wrap-server none -q: no such program"),
            (["--nic", "'open"], "--nic 'open: a quote has no end"),
            (["--nic", "--tap lo"], "--nic --tap lo: the lab's network has one already"),
            (["--virtio-tap", "x" * 16], "--virtio-tap xxxxxxxxxxxxxxxx: longer than 15 bytes"),
            (["--nic", "--socket /x"], "--nic --socket /x: the lab gives the socket"),
            (["--nci", "x"], r"unknown option '--nci'; did you mean --nic\? \(lab/vm --help"),
            (["--bar", "x"], "unknown option '--bar'; lab/vm --help tells more"),
            (["--nic", "a", "--nic", "b"], "--nic: 2 given for 1 guest; .* --guests 2"),
            (["--modules", "/tmp"], "--modules /tmp: it goes with --kernel"),
            (["--kernel", "/bin/sh", "--modules", "/tmp"], "--modules /tmp: neither modules.dep"),
            (["--server", "/etc/passwd"], "--server /etc/passwd: is not executable by this user"),
            (["--server", "/etc"], "--server /etc: is a directory; give a program"),
            (["--env", "A"], "--env A: give NAME=VALUE"),
            (["--env", "1A=2"], "--env 1A=2: '1A' is no name of a variable; take letters, digits"),
            (["--suite", "a/b"], "--suite 'a/b': no name of a suite; give a suite of Debian's"),
            (["--timeout", "0"], "'0' is not a number from 1 to 1000000;"),
        ):
            self.assertRegex(refusal(*words), "^lab/vm: (.* )?" + wanted)
        self.assertIn("SCRIPT /tmp: is a directory", refusal(script="/tmp"))

    def test_what_only_one_guest_can_have_is_not_for_two(self):
        two = "guests 1 and 2 both get it; "
        for words, wanted in (
            (["--nic", "--tap t0"], f"--nic --tap t0: {two}t%n gives each its own"),
            (["--no-nic", "--virtio-tap", "v"], f"--virtio-tap v: {two}v%n gives each"),
            (["--nic", "-b tcp:manager:7471,interval=9"],
                f"--nic --backend tcp:manager:7471,interval=9: {two}give one more --nic, with"
                " --backend tcp:worker:127.0.0.1:7471\n"),
        ):  # fmt: skip
            self.assertIn(wanted, refusal("--guests", "2", *words))
            parse(*words)
        parse("--guests", "2", "--nic", "--tap t%n --backend tcp:manager:747%n")
        parse("--guests", "2", "--nic", "--tap t0", "--nic", "--backend roce")
        parse("--guests", "2", "--nic", "--tap t%n", "--virtio-tap", "v%n")

    def test_server_of_the_environment_is_an_argument_too(self):
        with mock.patch.dict(os.environ, ROCM_ERNIC="/none"):
            self.assertIn("ROCM_ERNIC /none: no such program; give a path", refusal())
            parse("--no-nic")

    def test_source_of_a_module_is_looked_at_first(self):
        for source, reason in (("/none", "no such folder"), (str(LAB), "has neither a Kbuild")):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                with self.assertRaises(SystemExit) as end:
                    module.main([source, "out"])
            self.assertEqual(end.exception.code, 2)
            self.assertIn(f"lab/module: SOURCE {source}: {reason}", said.getvalue())

    def test_place_of_output_is_looked_at_first(self):
        with tempfile.TemporaryDirectory() as folder:
            for option in ("--json", "--keep-logs"):
                self.assertIn(f"{option} /proc/x: cannot write", refusal(option, "/proc/x"))
                parse(option, f"{folder}/new")
            self.assertEqual(list(Path(folder).iterdir()), [])
            parse("--keep-logs", f"{folder}/a/b")
            self.assertIn("/a is no directory", refusal("--json", f"{folder}/a/b"))
            self.assertIn("is a directory; give a file", refusal("--json", folder))

    def test_interpreter_is_what_the_first_line_names(self):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "script")
            for line, name in (
                ("#!/usr/bin/python3", "/usr/bin/python3"),
                ("#! /bin/sh -e", "/bin/sh"),
                ("#!/usr/bin/env -S A=1 perl -w", "perl"),
                ("#!", ""),
                ("echo hi", ""),
            ):
                script.write_text(line + "\nmore\n")
                self.assertEqual(options.interpreter(script), name)
            script.write_bytes(b"#!/bin/sh\r\n")
            self.assertIn("its lines end in CRLF", refusal(script=script))
            script.write_text("#!/none\n")
            script.chmod(0o755)
            self.assertIn("host has no /none", refusal("--host", str(script)))

    def test_every_option_has_a_field(self):
        flags = {a.dest for a in options.make_parser()._actions if a.dest != "help"}
        self.assertEqual(flags, set(options.Options.__dataclass_fields__))

    def test_environment_survives_a_shell(self):
        value = "a 'b' \"c\" $d `e` \\ ;"
        text = machine.guest_environment(parse("--env", f"X={value}"), 1, 1)
        done = subprocess.run(
            ["sh", "-c", text + 'printf %s "$X"'], capture_output=True, text=True, check=True
        )
        self.assertEqual(done.stdout, value)


class Taps(unittest.TestCase):
    def refused(self, wanted, *words):
        with self.assertRaisesRegex(LabError, wanted):
            network.check(parse(*words))

    @mock.patch("os.geteuid", return_value=1000)
    def test_remedy_of_a_missing_tap_leads_to_a_network(self, _):
        one = "add dev none1 mode tap .* link set none1 up .* addr add 192.168.200.1/24 dev none1`$"
        self.refused(one, "--nic", "--tap none1")
        self.refused("192.168.201.1/24 dev none1`$", "--virtio-tap", "none1", "--no-nic")
        two = "link set none1 up`, and a bridge of all TAPs with the address 192.168.200.1/24$"
        self.refused(two, "--guests", "2", "--nic", "--tap none%n")

    @mock.patch("os.geteuid", return_value=0)
    def test_closed_device_is_named_with_its_remedy(self, _):
        with mock.patch.object(network.os, "access", return_value=False):
            with mock.patch.object(network, "TUN", Path("/dev/null")):
                with self.assertRaisesRegex(LabError, "TAP x: .* may not open .*; .* chmod 666"):
                    network._need_device(["x"])
        with mock.patch.object(network, "TUN", Path("/none")):
            self.refused("TAP none1: the host has no /none; .*modprobe tun", "--nic", "--tap none1")


class Environment(unittest.TestCase):
    def test_programs_of_the_system_are_found_without_a_path_to_them(self):
        for path in ("/usr/local/bin:/usr/bin:/bin", "/sbin:/bin"):
            with mock.patch.dict(os.environ, PATH=path):
                command.complete_path()
                folders = os.environ["PATH"].split(":")
                self.assertTrue(os.environ["PATH"].startswith(path))
                self.assertEqual(folders.count("/usr/sbin"), 1)
                self.assertEqual(folders.count("/sbin"), 1)
                self.assertIsNotNone(shutil.which("chroot"))

    def test_every_command_has_them(self):
        place = {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": "/nonexistent"}
        with mock.patch.dict(os.environ, place), mock.patch.object(sys, "argv", ["clean"]):
            self.assertEqual(command.run("clean"), 0)
            self.assertIn("/usr/sbin", os.environ["PATH"].split(":"))


class Archives(unittest.TestCase):
    def entries(self, data):
        """(name, mode, content) of a newc archive."""
        found = []
        while data:
            self.assertEqual(data[:6], b"070701")
            numbers = [int(data[6 + 8 * i : 14 + 8 * i], 16) for i in range(13)]
            name_end = 110 + numbers[11]
            name = data[110 : name_end - 1].decode()
            start = name_end + -name_end % 4
            content = data[start : start + numbers[6]]
            if name == "TRAILER!!!":
                break
            found.append((name, numbers[1], content))
            end = start + numbers[6]
            data = data[end + -end % 4 :]
        return found

    def test_files_get_their_directories_once(self):
        out = io.BytesIO()
        archive = Archive(out)
        archive.file("a/b/one", b"1", 0o755)
        archive.file("a/b/three", b"333")
        archive.symlink("a/link", "b/one")
        archive.close()
        self.assertEqual(len(out.getvalue()) % 512, 0)
        self.assertEqual(
            self.entries(out.getvalue()),
            [
                ("a", 0o040755, b""),
                ("a/b", 0o040755, b""),
                ("a/b/one", 0o100755, b"1"),
                ("a/b/three", 0o100644, b"333"),
                ("a/link", 0o120777, b"b/one"),
            ],
        )

    def test_disks_of_the_root_are_mounted_in_their_order(self):
        for disks, wanted in ((0, None), (1, ["image"]), (3, ["image", "modules", "uc"])):
            out = io.BytesIO()
            archive = Archive(out)
            machine.add_boot_files(archive, disks)
            archive.close()
            found = {name: content.decode() for name, _, content in self.entries(out.getvalue())}
            if wanted is None:
                self.assertNotIn("lab/fstab.disks", found)
                continue
            lines = found["lab/fstab.disks"].splitlines()
            mounted = [line.split()[1] for line in lines]
            self.assertEqual(mounted, [f"/{name}" for name in (*wanted, "layer")])
            self.assertEqual("uc" in found, "uc" in wanted)

    def test_tree_is_copied_without_sockets(self):
        with tempfile.TemporaryDirectory() as top:
            Path(top, "d").mkdir()
            Path(top, "d", "f").write_bytes(b"x" * 5)
            os.mkfifo(Path(top, "fifo"))
            out = io.BytesIO()
            archive = Archive(out)
            archive.tree(Path(top))
            archive.close()
        self.assertEqual([name for name, _, _ in self.entries(out.getvalue())], ["d", "d/f"])


class BarrierRules(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.barriers = Barriers(2, Path(self.folder.name, "socket"))
        self.heard = []
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(self.barriers.close)

    def arrive(self, name, count="0"):
        self.barriers.arrive(name, count, self.heard.append)

    def test_opens_when_all_have_come(self):
        self.arrive("a")
        self.assertEqual(self.heard, [])
        self.arrive("a")
        self.assertEqual(self.heard, ["go a", "go a"])

    def test_can_be_used_again(self):
        for _ in range(4):
            self.arrive("a")
        self.assertEqual(self.heard, ["go a"] * 4)

    def test_is_refused_when_a_guest_has_gone(self):
        self.arrive("a")
        self.barriers.leave()
        self.arrive("b")
        self.assertEqual(self.heard, ["gone a", "gone b"])

    def test_a_count_that_the_rest_can_meet_still_opens(self):
        self.barriers.leave()
        self.arrive("a", "1")
        self.assertEqual(self.heard, ["go a"])


class Modules(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.top = Path(self.folder.name)
        (self.top / "modules.dep").write_text("k/a-b.ko.xz: k/c.ko.xz\nk/c.ko.xz:\nk/d.ko:\n")
        (self.top / "modules.builtin").write_text("kernel/in.ko\n")
        (self.top / "modules.softdep").write_text("softdep c pre: d post: in\n")

    def test_closure_follows_hard_and_soft_dependencies(self):
        tree = modules.find(self.top)
        self.assertEqual(tree.closure(["a_b"]), ["k/a-b.ko.xz", "k/c.ko.xz", "k/d.ko"])
        self.assertEqual(tree.closure(["d", "in", "none"]), ["k/d.ko"])
        self.assertTrue(tree.has("in") and tree.has("a_b") and not tree.has("none"))

    def test_directory_without_modules_is_an_error(self):
        with self.assertRaisesRegex(LabError, "--modules"):
            modules.find(self.top / "none")


class Source(unittest.TestCase):
    """The change to the driver's and the provider's source, which their authors may make void."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)

    def changed(self, change, text):
        path = self.top / change.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        uc.apply(change, self.top)
        return path.read_text()

    def test_driver_and_provider_let_uc_pass(self):
        text = self.changed(uc.DRIVER, "a->has_ah = t->kind == IB_QPT_RC;\n")
        self.assertEqual(text, "a->has_ah = t->kind == IB_QPT_RC || t->kind == IB_QPT_UC;\n")
        text = self.changed(uc.PROVIDER, "if (ex->qp_type == IBV_QPT_RC) {\n")
        self.assertEqual(text, "if (ex->qp_type == IBV_QPT_RC || ex->qp_type == IBV_QPT_UC) {\n")

    def test_source_that_has_moved_on_is_an_error(self):
        once = "x->has_ah = y == IB_QPT_RC;\n"
        for text in ("", once + once):
            with self.assertRaisesRegex(LabError, "not once"):
                self.changed(uc.DRIVER, text)

    def test_tarball_is_unpacked_without_its_top_and_not_outside(self):
        tarball = self.top / "x.orig.tar"
        with tarfile.open(tarball, "w") as tar:
            for name in ("x-1/a/b", "x-1/../../escaped"):
                info = tarfile.TarInfo(name)
                info.size = 1
                tar.addfile(info, io.BytesIO(b"b"))
        with self.assertRaisesRegex(LabError, "escaped"):
            uc.unpack(tarball, self.top / "out")
        self.assertEqual((self.top / "out/a/b").read_bytes(), b"b")
        self.assertFalse((self.top / "escaped").exists())


class Cache(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        patch = mock.patch.dict(os.environ, {"XDG_CACHE_HOME": folder.name})
        patch.start()
        self.addCleanup(patch.stop)
        cache.root().mkdir(parents=True)

    def test_component_appears_whole_or_not_at_all(self):
        def fail(out):
            (out / "half").touch()
            raise LabError("broken")

        with self.assertRaises(LabError):
            cache.component("part", "key", fail)
        self.assertEqual(list(cache.root().iterdir()), [])
        cache.component("part", "key", lambda out: (out / "all").touch())
        # The second time it is there and is not made again.
        found = cache.component("part", "key", fail)
        self.assertEqual([p.name for p in found.iterdir()], ["all"])

    def refused_suite(self, name, words="E: The repository 'x' does not have a Release file."):
        failing = mock.patch.object(build.Apt, "update", side_effect=LabError(words))
        folder = mock.patch.object(
            build.Apt, "prepare", lambda apt: (apt.directory / "lists").mkdir(parents=True)
        )
        with failing, folder, self.assertRaises(LabError) as refused:
            build.ensure(name, ["tiny"], say=lambda text: None)
        left = [p for p in cache.root().rglob("*") if p.name not in ("apt", "build.lock")]
        self.assertEqual(left, [])
        return str(refused.exception)

    def test_suite_that_does_not_exist_is_refused_and_leaves_nothing(self):
        reason = "the Debian mirror has no such suite; give a suite"
        with mock.patch.dict(os.environ):
            os.environ.pop("LAB_SUITE", None)
            self.assertIn(f"--suite 'nosuch': {reason}", self.refused_suite("nosuch"))
            self.assertEqual(self.refused_suite("nosuch", "no network"), "no network")
            for name in ("", "..", "a/b", "a b"):
                self.assertIn(f"--suite '{name}': no name of a suite", self.refused_suite(name))
            os.environ["LAB_SUITE"] = "nosuch"
            self.assertIn(f"LAB_SUITE 'nosuch': {reason}", self.refused_suite("nosuch"))

    def plan_of(self, qemu):
        """Plans a lab of a suite with this QEMU; returns what it says."""
        files = {"qemu-system-x86": f"qemu-system-x86_{qemu}_amd64.deb"}
        apt = {
            "depends": lambda _, name: ["linux-headers-1.2.3-amd64"],
            "exists": lambda _, name: True,
            "resolve": lambda _, names: [
                debian.Package(files.get(name, f"{name}_1_all.deb"), 1, "") for name in names
            ],
        }
        with mock.patch.multiple(build.Apt, **apt), mock.patch.dict(os.environ):
            os.environ.pop("LAB_SUITE", None)
            try:
                build.Builder("suite", lambda text: None).plan(["tiny"])
            except LabError as err:
                return str(err)
        return ""

    def test_suite_with_an_old_qemu_is_refused_before_it_is_fetched(self):
        refusal = self.plan_of("1%3a10.0.13+ds-0+deb13u1")
        self.assertIn("--suite 'suite': its QEMU, 1:10.0.13+ds-0+deb13u1, is older than 10.1", refusal)
        self.assertIn("is older", self.plan_of("1%3a9.2-1"))
        for version in ("1%3a10.1.0+ds-1", "1%3a11.0.0~rc1-1", "12.0-1"):
            self.assertEqual(self.plan_of(version), "")

    def test_place_in_no_fixed_folder_is_refused(self):
        with mock.patch.dict(os.environ, XDG_CACHE_HOME="here"):
            with self.assertRaisesRegex(LabError, "^XDG_CACHE_HOME 'here': not an absolute path; "):
                build.ensure("forky", ["tiny"])
        self.assertFalse(Path("here").exists())

    def test_oldest_saved_boots_go_when_nobody_uses_them(self):
        for number in range(snapshot.KEPT + 2):
            folder = cache.root() / f"snapshot-{number:02}"
            folder.mkdir()
            day = snapshot.SAFE_SECONDS
            age = (number + 2) * day if number != snapshot.KEPT else 60
            os.utime(folder, (time.time() - age,) * 2)
        snapshot._forget_oldest()
        left = sorted(p.name for p in cache.root().iterdir())
        self.assertEqual(len(left), snapshot.KEPT)
        self.assertIn(f"snapshot-{snapshot.KEPT:02}", left)
        self.assertNotIn(f"snapshot-{snapshot.KEPT + 1:02}", left)

    def test_index_counts_only_while_its_components_exist(self):
        cache.write_index("suite", "recipe", {"components": {"part": "part-key"}})
        self.assertEqual(cache.read_index("suite", "recipe"), {})
        (cache.root() / "part-key").mkdir()
        self.assertTrue(cache.read_index("suite", "recipe"))
        self.assertEqual(cache.read_index("suite", "other"), {})


class SavedBoots(unittest.TestCase):
    def setUp(self):
        ours, self.qemu = socket.socketpair()
        self.talk = snapshot.Talk(ours, snapshot.restoring(Path("/state"), Path("/nic.sock")))
        self.addCleanup(ours.close)
        self.addCleanup(self.qemu.close)

    def say(self, *answers):
        """What QEMU says in one go; returns what it is told then."""
        self.qemu.sendall(b"".join(json.dumps(answer).encode() + b"\r\n" for answer in answers))
        self.talk.read()
        self.qemu.setblocking(False)
        try:
            return [json.loads(line)["execute"] for line in self.qemu.recv(4096).splitlines()]
        except BlockingIOError:
            return []

    def migration(self, status):
        return {"event": "MIGRATION", "data": {"status": status}}

    def test_nic_is_plugged_in_when_the_memory_is_back(self):
        self.assertEqual(self.say({"QMP": {}}), ["qmp_capabilities"])
        self.assertEqual(self.say({"return": {}}), ["migrate-set-capabilities"])
        self.assertEqual(self.say({"return": {}}), ["migrate-incoming"])
        self.assertEqual(self.say({"return": {}}, self.migration("active")), [])
        self.assertEqual(self.say(self.migration("completed")), ["device_add"])
        self.assertEqual(self.say({"return": {}}), ["cont"])
        self.assertFalse(self.talk.done)
        self.assertEqual(self.say({"event": "RESUME"}, {"return": {}}), [])
        self.assertTrue(self.talk.done)

    def test_what_qemu_refuses_is_an_error(self):
        self.say({"QMP": {}})
        with self.assertRaisesRegex(LabError, "no such thing"):
            self.say({"error": {"desc": "no such thing"}})

    def test_state_that_cannot_be_read_is_an_error(self):
        for answer in ({"QMP": {}}, {"return": {}}, {"return": {}}, {"return": {}}):
            self.say(answer)
        with self.assertRaisesRegex(LabError, "cannot be written or read"):
            self.say(self.migration("failed"))

    def test_what_was_saved_with_another_clock_is_forgotten(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name, "saved")
            folder.mkdir()
            (folder / "khz").write_text("2000000\n")
            (folder / "state").touch()
            snapshot._forget_other_rate(folder, 2000100)
            self.assertTrue(folder.exists())
            snapshot._forget_other_rate(folder, 2400000)
            self.assertFalse(folder.exists())
            snapshot._forget_other_rate(folder, 2400000)
            for text in (None, "", "2000000\n"):  # half gone
                folder.mkdir()
                if text is not None:
                    (folder / "khz").write_text(text)
                snapshot._forget_other_rate(folder, 2000000)
                self.assertFalse(folder.exists())

    def test_end_of_qemu_is_no_matter_of_the_talk(self):
        self.qemu.close()
        with self.assertRaises(EOFError):
            self.talk.read()


class Judgement(unittest.TestCase):
    def test_kernel_trouble(self):
        for text in ("WARNING: CPU: 0 PID: 1 at x", "BUG: kernel NULL pointer", "Oops: 0002 [#1]"):
            self.assertTrue(guest.TROUBLE.search(f"[ 1.0] {text}"))
        for text in ("tsc: Marking", "loading out-of-tree module taints kernel", "debug: fine"):
            self.assertFalse(guest.TROUBLE.search(f"[ 1.0] {text}"))

    def test_sanitizer_report(self):
        for text in (
            "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1",
            "==7==ERROR: LeakSanitizer: detected memory leaks",
            "WARNING: ThreadSanitizer: data race (pid=7)",
            "src/base/size.h:3:9: runtime error: left shift of 1 by 33 places",
        ):
            self.assertTrue(server.REPORT.search(text))
        for text in ("12.000001 warn  queues.intr_vectors 32 is below 1", "error: --tap: no such"):
            self.assertFalse(server.REPORT.search(text))

    def test_socket_counts_only_when_it_listens(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
            path = Path(folder, "socket")
            self.assertFalse(server.is_listening(path))
            listener.bind(str(path))
            self.assertFalse(server.is_listening(path))
            listener.listen()
            self.assertTrue(server.is_listening(path))

    def test_directory_of_a_dead_run_is_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            dead, alive = Path(folder, "dead"), Path(folder, "alive")
            for path in (dead, alive):
                path.mkdir()
                (path / "lock").touch()
                os.utime(path, (0, 0))
            with (alive / "lock").open() as lock:
                runner.fcntl.flock(lock, runner.fcntl.LOCK_EX)
                runner.remove_stale(dead)
                runner.remove_stale(alive)
            self.assertEqual([p.name for p in Path(folder).iterdir()], ["alive"])

    def test_kernel_that_is_not_zstd_is_refused(self):
        with tempfile.NamedTemporaryFile() as image:
            image.write(bytes(4096))
            image.flush()
            with self.assertRaisesRegex(LabError, "--kernel"):
                kernel.extract_vmlinux(Path(image.name), Path("/"))


if __name__ == "__main__":
    unittest.main()
