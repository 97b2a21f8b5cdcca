#!/usr/bin/env python3
"""skepd as a service of systemd: boots a small virtual machine (vm.py) with Debian's systemd as process 1, and Skep
installed as docs/operator/install.md says, and runs systemd_host.sh in it.

usage: systemd_host.py v2|hybrid|v1 BUILD_DIRECTORY CACHE_DIRECTORY
v2: control groups v2 alone, as Debian has them. hybrid, v1: what systemd.unified_cgroup_hierarchy=0 gives, controllers on
v1, with a v2 tree beside them or without.
Exit 0: all checks passed. 77: User-mode Linux is not installed here, or systemd's packages are not to be had. 1: failed, with the console.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import vm

MEMORY_MIB = 576  # the checks of its end touch all of it
PROGRAMS = ["/usr/bin/crun", "/usr/bin/conmon"]
KERNEL_OPTIONS = {"v2": "cgroup_no_v1=all",
                  "hybrid": "systemd.unified_cgroup_hierarchy=0",
                  "v1": "systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=1"}
DROPPED = ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/i18n", "usr/share/info",
           "usr/lib/x86_64-linux-gnu/gconv", "usr/lib/udev", "usr/lib/systemd/system-generators", "lib/systemd/system-generators",
           "var/lib/dpkg", "var/cache", "dev"]
# nothing here has these devices, users or logins
MASKED = ["getty.target", "systemd-logind.service", "systemd-networkd.service", "systemd-networkd.socket", "timers.target",
          "systemd-update-utmp-runlevel.service"]
# Of what Debian's systemd does at its begin, which takes longer here than the rest.
BEGIN = ["dev-mqueue.mount", "systemd-journald.service"]

# Its root is in memory: from a disk, programs would be read again and again where the memory runs out, and it would not end.
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /new
/bin/busybox mount -t tmpfs -o size=300m,mode=755 root /new
/bin/busybox cp -a /system/. /new/
for module in $(/bin/busybox cat /modules/order); do /bin/busybox insmod /modules/$module; done
exec /bin/busybox switch_root /new /lib/systemd/systemd
"""

TEST_UNIT = """[Unit]
Description=The test
[Service]
Type=oneshot
ExecStart=/bin/sh /test.sh @KIND@
StandardOutput=file:/dev/console
StandardError=file:/dev/console
Environment=HOME=/root
"""

CONFIG = """engine:
  cpu: 16
  memoryMB: 8192          # more than the machine has: its memory can run out
  diskReserveMB: 16
log: {format: text}
scheduling: {backoffMinSeconds: 1, backoffMaxSeconds: 2}
"""


def write(root, name, text, mode=0o644):
    path = pathlib.Path(root, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def skep_install(root, build):
    """As docs/operator/install.md says."""
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", root],
                   check=True, stdout=subprocess.DEVNULL)
    for program in ("skepd", "skep"):
        installed = next(pathlib.Path(root).rglob(f"bin/{program}"))
        for library in vm.libraries_of(installed):
            vm.file_add(root, library)
        subprocess.run(["strip", installed], check=True)
    write(root, "etc/skep/skepd.yaml", CONFIG)


def image_make(root):
    """What tasks run in: busybox alone."""
    image = pathlib.Path(root, "var/lib/skep/images/busybox")
    for folder in ("etc", "tmp"):
        (image / folder).mkdir(parents=True)
    vm.busybox_add(image)


def root_make(root, kind, build, packages):
    system = os.path.join(root, "system")
    os.makedirs(system)
    subprocess.run(["tar", "-C", system, "--exclude=./dev/*", "-xf", packages], check=True)
    for folder in DROPPED:
        shutil.rmtree(os.path.join(system, folder), ignore_errors=True)
    for folder in ("proc", "sys", "dev", "run", "tmp", "root", "var/tmp", "var/log"):
        os.makedirs(os.path.join(system, folder), exist_ok=True)
    for program in PROGRAMS:
        vm.program_add(system, program)
    vm.busybox_add(system)
    skep_install(system, build)
    image_make(system)
    vm.report_add(system)
    write(system, "etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n")
    write(system, "etc/group", "root:x:0:\nnogroup:x:65534:\n")
    write(system, "etc/machine-id", "5ce95ce95ce95ce95ce95ce95ce95ce9\n")
    write(system, "etc/hostname", "skep-vm\n")
    write(system, "etc/hosts", "127.0.0.1 localhost skep-vm\n")
    write(system, "etc/fstab", "")
    write(system, "etc/systemd/system/skep-test.service", TEST_UNIT.replace("@KIND@", kind))
    units = pathlib.Path(system, "etc/systemd/system")
    for unit in pathlib.Path(system, "lib/systemd/system/sysinit.target.wants").iterdir():
        if unit.name not in BEGIN:
            unit.unlink()
    for name in MASKED:
        (units / name).symlink_to("/dev/null")
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "skep-test.service").symlink_to("/etc/systemd/system/skep-test.service")
    default = units / "default.target"
    default.unlink(missing_ok=True)
    default.symlink_to("/lib/systemd/system/multi-user.target")
    shutil.copy(pathlib.Path(__file__).parent / "systemd_host.sh", f"{system}/test.sh")
    write(root, "init", INIT, 0o755)
    vm.file_add(root, vm.BUSYBOX)
    vm.modules_add(root, ["overlay"])


def main():
    kind, build, cache = sys.argv[1:]
    vm.check_programs("busybox", "mmdebstrap", "meson", *PROGRAMS)
    if os.geteuid() != 0:
        vm.skip("needs root, to unpack systemd's packages")
    lock = vm.cache_lock(cache)
    packages = vm.packages_fetch(cache, "systemd", ["systemd"])
    lock.close()
    with tempfile.TemporaryDirectory(prefix="skep-vm-") as work:
        root = os.path.join(work, "root")
        root_make(root, kind, build, packages)
        initrd = os.path.join(work, "initrd")
        vm.initrd_make(root, initrd)
        shutil.rmtree(root)
        options = f"{KERNEL_OPTIONS[kind]} systemd.show_status=0 systemd.firstboot=off"
        console = vm.boot(initrd, options, MEMORY_MIB)
    sys.exit(0 if "RESULT 0" in console else 1)


if __name__ == "__main__":
    main()
