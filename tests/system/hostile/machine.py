#!/usr/bin/env python3
"""The hostile jobs on a machine with cgroup v2 alone and project quotas: boots a small virtual machine under software emulation with
Debian's cloud kernel, on a disk made of this machine's own programs, and runs run.py in it.

usage: machine.py SKEPD SKEP SKEP_INIT CACHE_DIRECTORY ext4|xfs RUNTIME [ATTACK...]
ext4, xfs: the file system of skepd's data directory. RUNTIME: crun or runc.
Exit 0: all attacks failed in their aims. 77: qemu, a kernel or a program is not to be had here. 1: failed, with the console.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SYSTEM = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(SYSTEM / "engine"), str(SYSTEM / "corpus")]
import attacks  # noqa: E402
import image  # noqa: E402
import vm  # noqa: E402

MEMORY_MIB = 2048
DISKS_MIB = {"system": 1024, "data": 4096}  # sparse
PROGRAMS = ["conmon", "nft", "ip", "nsenter"]
# the first ones are needed by others that do not name them
MODULES = ["crc32c_generic", "virtio_pci", "virtio_blk", "ext4", "quota_v2", "xfs", "overlay", "loop", "veth", "nf_tables",
           "nft_chain_nat", "nft_nat", "nft_masq", "nft_fib_ipv4", "nft_reject_ipv4", "nft_ct"]
FILE_SYSTEMS = {"ext4": (["mke2fs", "-q", "-F", "-t", "ext4", "-O", "project,quota", "-E", "quotatype=prjquota"], "prjquota"),
                "xfs": (["mkfs.xfs", "-q"], "pquota")}

FIRST_INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /dev /new
/bin/busybox mount -t devtmpfs dev /dev
for module in $(/bin/busybox cat /modules/order); do /bin/busybox insmod /modules/$module; done
/bin/busybox mount -t ext4 /dev/vda /new || exec /bin/busybox poweroff -f
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
mkdir /run/netns
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t @KIND@ -o @OPTION@ /dev/vdb /data
ip link set lo up
hostname skep-vm
echo "kernel $(uname -r), controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"
export TMPDIR=/data @VARIABLES@
python3 /tests/hostile/run.py @ATTACKS@
echo "RESULT $?"
sync
poweroff -f
"""


def disk_make(path, mib, command):
    with open(path, "wb") as file:
        file.truncate(mib << 20)
    subprocess.run([*command, path], check=True)


def system_make(root, programs, runtime, kind, names):
    """The machine's own root file system: Python and what it calls, skepd, and the image of the attacks."""
    image.make(root, [])
    cases = [case for case in attacks.ATTACKS if not names or case.name in names]
    attacks.image_make(root / "images/hostile", cases)
    for folder in ("proc", "sys", "dev", "run", "data", "var/tmp"):
        (root / folder).mkdir(parents=True)
    for program in [*PROGRAMS, runtime]:
        vm.program_add(root, shutil.which(program))
    for program in programs.values():
        vm.program_add(root, program)
    vm.busybox_add(root)
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost skep-vm\n")
    shutil.copytree(SYSTEM, root / "tests", ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    folders = [f"/tests/{name}" for name in ("", "api", "corpus", "server")]
    variables = {**programs, "PYTHONPATH": ":".join(folders), "PYTHONDONTWRITEBYTECODE": "1", "SKEP_TEST_RUNTIME": runtime,
                 "SKEP_TEST_IMAGES": "/images", "SKEP_TEST_DISK": "project", "SKEP_TEST_PATIENCE": "600", "SKEP_TEST_CPU": "8",
                 "SKEP_TEST_USERS": "required"}
    text = INIT.replace("@VARIABLES@", " ".join(f"{name}={value}" for name, value in variables.items()))
    text = text.replace("@KIND@", kind).replace("@OPTION@", FILE_SYSTEMS[kind][1]).replace("@ATTACKS@", " ".join(names))
    (root / "init").write_text(text)
    (root / "init").chmod(0o755)


def first_make(root, modules):
    """What the kernel starts with: it loads modules and goes to the disk."""
    root.mkdir()
    vm.file_add(root, vm.BUSYBOX)
    order = vm.modules_add(root, modules, MODULES)
    (root / "modules/order").write_text("\n".join(order) + "\n")
    (root / "init").write_text(FIRST_INIT)
    (root / "init").chmod(0o755)


def main():
    *programs, cache, kind, runtime = sys.argv[1:7]
    names = sys.argv[7:]
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    vm.check_programs("busybox", "mke2fs", FILE_SYSTEMS[kind][0][0], runtime, *PROGRAMS)
    if reason := image.why_not():
        vm.skip(reason)
    lock = vm.cache_lock(cache)
    kernel, modules = vm.kernel_fetch(cache)
    lock.close()
    with tempfile.TemporaryDirectory(prefix="skep-vm-") as folder:
        work = pathlib.Path(folder)
        system_make(work / "system", dict(zip(("SKEPD", "SKEP", "SKEP_INIT"), programs)), runtime, kind, names)
        disk_make(work / "vda", DISKS_MIB["system"], ["mke2fs", "-q", "-F", "-t", "ext4", "-d", work / "system"])
        disk_make(work / "vdb", DISKS_MIB["data"], FILE_SYSTEMS[kind][0])
        shutil.rmtree(work / "system")
        first_make(work / "first", modules)
        vm.initrd_make(work / "first", work / "initrd")
        console = vm.boot(kernel, work / "initrd", "cgroup_no_v1=all", MEMORY_MIB, [work / "vda", work / "vdb"])
    sys.exit(0 if "RESULT 0" in console else 1)


if __name__ == "__main__":
    main()
