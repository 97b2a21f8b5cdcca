#!/usr/bin/env python3
"""The hostile jobs on a machine with cgroup v2 alone and project quotas: boots a small virtual machine
(tests/system/engine/vm.py) on a disk made of this machine's own programs, and runs run.py in it.

usage: machine.py SKEPD SKEP SKEP_INIT ext4|xfs RUNTIME [ATTACK...]
ext4, xfs: the file system of skepd's data directory. RUNTIME: crun or runc. ATTACK: instead of those that CASES names.
Exit 0: all attacks failed in their aims. 77: a program that it is made of is not installed here. 1: failed, with the console.
"""
import os
import pathlib
import shutil
import sys
import tempfile

SYSTEM = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(SYSTEM / "engine"), str(SYSTEM / "corpus")]
import attacks  # noqa: E402
import image  # noqa: E402
import vm  # noqa: E402

MEMORY_MIB = 1536
PATIENCE_S = 600  # of run.py for one thing: it says itself what did not come
DISKS_MIB = {"system": 1024, "data": 4096}  # sparse
PROGRAMS = ["conmon", "ip"]

# What stops these is another part of the kernel here. Capabilities, seccomp, namespaces, file descriptors, the door and the rules of the
# network, which stop all others, are the same on every machine, and tasks have the machine's network here; and test_fork_bomb of
# `engine-v2` has the fork bomb.
CONTROL_GROUPS = ["device-nodes", "proc", "memory", "memory-of-kernel", "memory-file-systems"]
QUOTAS = ["storage", "user-ids", "log", "log-at-once", "log-inodes", "disk-tmp", "disk-at-once", "disk-inodes"]
CASES = {
    # every folder of a task is of one project, whatever the file system, and the kernel counts processes, whatever the runtime
    "crun": [*CONTROL_GROUPS, *QUOTAS, "processes", "disk-skep-run", "disk-skep-log", "disk-run", "disk-var-tmp", "disk-hosts"],
    # what the kernel counts by user: runc needs capabilities that skepd may not have elsewhere
    "runc": [*CONTROL_GROUPS, *QUOTAS, "user-limits"],
}

FIRST_INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /dev /new
/bin/busybox mount -t devtmpfs dev /dev
for module in $(/bin/busybox cat /modules/order); do /bin/busybox insmod /modules/$module; done
/bin/busybox mount -t ext4 /dev/ubda /new || exec /bin/busybox poweroff -f
exec /bin/busybox switch_root /new /init
"""

INIT = """#!/bin/sh
export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /dev/mqueue
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t @KIND@ -o @OPTION@ /dev/ubdb /data
ip link set lo up
hostname skep-vm
sh /report.sh /dev/console &
echo "kernel $(uname -r), controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"
export TMPDIR=/data @VARIABLES@
python3 /tests/hostile/run.py @ATTACKS@
echo "RESULT $?"
sync
poweroff -f
"""


def system_make(root, programs, runtime, kind, names):
    """The machine's own root file system: Python and what it calls, skepd, and the image of the attacks."""
    image.make(root, [])
    cases = [case for case in attacks.ATTACKS if case.name in names]
    attacks.image_make(root / "images/hostile", cases)
    for folder in ("proc", "sys", "dev", "run", "data", "var/tmp"):
        (root / folder).mkdir(parents=True)
    for program in [*PROGRAMS, runtime]:
        vm.program_add(root, shutil.which(program))
    for program in programs.values():
        vm.program_add(root, program)
    vm.busybox_add(root)
    vm.report_add(root)
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost skep-vm\n")
    shutil.copytree(SYSTEM, root / "tests", ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    folders = [f"/tests/{name}" for name in ("", "api", "corpus", "server")]
    variables = {**programs, "PYTHONPATH": ":".join(folders), "PYTHONDONTWRITEBYTECODE": "1", "SKEP_TEST_RUNTIME": runtime,
                 "SKEP_TEST_IMAGES": "/images", "SKEP_TEST_DISK": "project", "SKEP_TEST_NETWORK": "host",
                 "SKEP_TEST_PATIENCE": str(PATIENCE_S), "SKEP_TEST_CPU": "8", "SKEP_TEST_USERS": "required"}
    text = INIT.replace("@VARIABLES@", " ".join(f"{name}={value}" for name, value in variables.items()))
    text = text.replace("@KIND@", kind).replace("@OPTION@", vm.FILE_SYSTEMS[kind][1]).replace("@ATTACKS@", " ".join(names))
    (root / "init").write_text(text)
    (root / "init").chmod(0o755)


def first_make(root):
    """What the kernel starts with: it loads modules and goes to the disk."""
    root.mkdir()
    vm.file_add(root, vm.BUSYBOX)
    vm.modules_add(root, vm.DISK_MODULES)
    (root / "init").write_text(FIRST_INIT)
    (root / "init").chmod(0o755)


def main():
    *programs, kind, runtime = sys.argv[1:6]
    names = sys.argv[6:] or CASES[runtime]
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    vm.check_programs("busybox", "mke2fs", vm.FILE_SYSTEMS[kind][0][0], runtime, *PROGRAMS)
    if reason := image.why_not():
        vm.skip(reason)
    with tempfile.TemporaryDirectory(prefix="skep-vm-") as folder:
        work = pathlib.Path(folder)
        system_make(work / "system", dict(zip(("SKEPD", "SKEP", "SKEP_INIT"), programs)), runtime, kind, names)
        vm.disk_make(work / "ubda", DISKS_MIB["system"], "ext4", work / "system")
        vm.disk_make(work / "ubdb", DISKS_MIB["data"], kind)
        shutil.rmtree(work / "system")
        first_make(work / "first")
        vm.initrd_make(work / "first", work / "initrd")
        console = vm.boot(work / "initrd", "cgroup_no_v1=all", MEMORY_MIB, [work / "ubda", work / "ubdb"], PATIENCE_S + vm.SILENCE_S)
    sys.exit(0 if "RESULT 0" in console else 1)


if __name__ == "__main__":
    main()
