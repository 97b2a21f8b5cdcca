#!/usr/bin/env python3
"""The local engine on a machine with cgroup v2 alone, and the disks of tasks by project quotas, which the kernel here may lack: boots a
small virtual machine (vm.py) with a root file system made of this machine's own programs, and runs what depends on these of the
engine's tests in it. All others have the same way through the code on every machine.

usage: cgroup_v2.py LIFE REMAINS DISK ESCAPE SKEP_INIT [RUN…]
LIFE, REMAINS, DISK: the test programs. ESCAPE is called by REMAINS, by its path. RUN: only these of RUNS.
Exit 0: they passed. 77: a program that it is made of is not installed here. 1: failed, with the console.
"""
import os
import pathlib
import shlex
import shutil
import sys
import tempfile

import vm

MEMORY_MIB = 768
DISK_MIB = 600
PROGRAMS = ["/usr/bin/crun", "/usr/bin/conmon"]
TOOLS = ["/usr/bin/pgrep", "/usr/bin/ipcs"]  # busybox has none
KINDS = ("ext4", "xfs")
PIDS = 100  # of a task, and of the fork bomb: a virtual machine forks slowly

LIFE = [
    # what a container is given: namespaces, control groups, and devices, which a program of the kernel's filters there
    "test_hello", "test_environment_of_container", "test_cdi_devices",
    # limits and figures: other files, other words
    "test_process_limit", "test_memory_high", "test_out_of_memory", "test_stats",
    # the end of all processes of a group by one word to the kernel
    "test_fork_bomb", "test_fork_bomb_left_behind",
    # groups that are found again after a restart, or are not ours alone
    "test_container_removed", "test_adopt",
]
# Not the port and the mount that others keep: these look at no group.
REMAINS = ["by_itself", "killed", "monitor_and_first_process_killed", "while_no_engine_was_there", "of_no_folder"]
# What the file system counts, how it says that it is full, and what is left of it. All else has the same way on both.
XFS = ["test_bytes", "test_inodes", "test_restart", "test_nothing_left"]
RUNS = {
    "life": ("life", "ext4", {"SKEP_TEST_PIDS": PIDS}, LIFE),
    "remains": ("remains", "ext4", {}, REMAINS),
    "disk-ext4": ("disk", "ext4", {"SKEP_TEST_DISK": "project"}, []),
    "disk-xfs": ("disk", "xfs", {"SKEP_TEST_DISK": "project"}, XFS),
}

INIT = """#!/bin/busybox sh
export PATH=/bin:/usr/bin:/sbin:/usr/sbin
if [ "$1" != again ]; then
    /bin/busybox mkdir -p /root2
    /bin/busybox mount -t tmpfs -o mode=755 root /root2
    for part in /*; do
        case $part in /root2|/dev|/root) ;; *) /bin/busybox cp -a $part /root2/ ;; esac
    done
    exec /bin/busybox switch_root /root2 /init again
fi
mkdir -p /proc /sys /dev /run /tmp /var/tmp /root /disk/ext4 /disk/xfs
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /dev/mqueue
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
sh /report.sh /dev/console &
while read -r module; do insmod /modules/$module; done </modules/order
@MOUNTS@
echo "controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"
code=0
@RUNS@
echo "RESULT $code"
sync
poweroff -f
"""


def run_line(name):
    program, kind, variables, patterns = RUNS[name]
    words = [f"TMPDIR=/disk/{kind}", *(f"{key}={value}" for key, value in variables.items()), f"/tests/{program}", *patterns]
    return f'echo "run {name}, up for $(cut -d" " -f1 /proc/uptime) s"\n{shlex.join(words)} || code=1'


def root_make(root, programs, files, runs):
    for directory in ["bin", "usr/bin", "etc", "tests"]:
        pathlib.Path(root, directory).mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS + [tool for tool in TOOLS if os.path.exists(tool)]:
        vm.program_add(root, program)
    for name, program in programs.items():
        shutil.copy2(program, pathlib.Path(root, "tests", name))
        for library in vm.libraries_of(program):
            vm.file_add(root, library)
    for file in files:
        vm.file_add(root, file)  # the tests were built with these paths
    vm.busybox_add(root)
    vm.modules_add(root, [*vm.DISK_MODULES, "fuse"])  # whose device is that of test_cdi_devices
    vm.report_add(root)
    pathlib.Path(root, "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    pathlib.Path(root, "etc/group").write_text("root:x:0:\n")
    mounts = [f"mount -t {kind} -o {vm.FILE_SYSTEMS[kind][1]} /dev/ubd{letter} /disk/{kind}" for kind, letter in zip(KINDS, "ab")]
    init = pathlib.Path(root, "init")
    init.write_text(INIT.replace("@MOUNTS@", "\n".join(mounts)).replace("@RUNS@", "\n".join(run_line(name) for name in runs)))
    init.chmod(0o755)


def main():
    life, remains, disk, escape, skep_init, *runs = sys.argv[1:]
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    vm.check_programs("busybox", "mke2fs", "mkfs.xfs", *PROGRAMS)
    with tempfile.TemporaryDirectory(prefix="skep-vm-") as work:
        root = os.path.join(work, "root")
        root_make(root, {"life": life, "remains": remains, "disk": disk}, [escape, skep_init], runs or RUNS)
        initrd = os.path.join(work, "initrd")
        vm.initrd_make(root, initrd)
        shutil.rmtree(root)
        disks = [os.path.join(work, kind) for kind in KINDS]
        for kind, path in zip(KINDS, disks):
            vm.disk_make(path, DISK_MIB, kind)
        console = vm.boot(initrd, "cgroup_no_v1=all", MEMORY_MIB, disks)
    sys.exit(0 if "RESULT 0" in console else 1)


if __name__ == "__main__":
    main()
