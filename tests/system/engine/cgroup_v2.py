#!/usr/bin/env python3
"""The local engine on a machine with cgroup v2 alone: boots a small virtual machine under software
emulation with Debian's cloud kernel and a root file system made of this machine's own programs, and
runs the engine's tests of the life of containers in it.

usage: cgroup_v2.py TEST_PROGRAM SKEP_INIT CACHE_DIRECTORY [--with FILE] [TEST_NAME_PATTERN...]
FILE is another program that the test calls by its path.
Exit 0: they passed. 77: qemu, or a kernel, is not to be had here. 1: failed, with the console.
The kernel is taken from /boot, else fetched with apt-get once into the cache directory.
"""
import os
import pathlib
import shutil
import sys
import tempfile

import vm

PROGRAMS = ["/usr/bin/crun", "/usr/bin/conmon"]
TOOLS = ["/usr/bin/pgrep", "/usr/bin/ipcs"]  # busybox has none
MODULES = ["overlay"]
PIDS = 200  # of a task, and of the fork bomb: an emulated machine forks slowly

INIT = """#!/bin/busybox sh
export PATH=/bin:/usr/bin:/sbin:/usr/sbin
if [ "$1" != again ]; then
    /bin/busybox mkdir -p /root2
    /bin/busybox mount -t tmpfs -o size=400m,mode=755 root /root2
    for part in bin usr lib lib64 etc tests init modules; do
        [ -e /$part ] && /bin/busybox cp -a /$part /root2/
    done
    exec /bin/busybox switch_root /root2 /init again
fi
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /run /tmp /var/tmp /root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /dev/mqueue
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
mount -t tmpfs -o size=200m tmp /var/tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
# some need others
for again in 1 2 3 4; do for module in /modules/*.ko; do insmod $module 2>/dev/null; done; done
@PLACE@
echo "controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"
code=0
@RUNS@
echo "RESULT $code"
sync
poweroff -f
"""


def root_make(root, test, skep_init, modules, patterns, variables=f"SKEP_TEST_PIDS={PIDS}", place=""):
    for directory in ["bin", "usr/bin", "etc", "tests"]:
        pathlib.Path(root, directory).mkdir(parents=True, exist_ok=True)
    shutil.copy2(shutil.which("busybox"), pathlib.Path(root, "bin/busybox"))
    os.symlink("busybox", pathlib.Path(root, "bin/sh"))
    for program in PROGRAMS + [tool for tool in TOOLS if os.path.exists(tool)]:
        vm.program_add(root, program)
    for library in vm.libraries_of(test):
        vm.file_add(root, library)
    shutil.copy2(test, pathlib.Path(root, "tests/test"))
    # the tests were built with this path of skep-init
    vm.file_add(root, skep_init)
    for name in MODULES:
        vm.module_add(root, modules, name)
    pathlib.Path(root, "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    pathlib.Path(root, "etc/group").write_text("root:x:0:\n")
    runs = "\n".join(f"{variables} /tests/test '{pattern}' || code=1" for pattern in patterns)
    init = pathlib.Path(root, "init")
    # the path of skep-init may begin outside the copied folders
    top = pathlib.Path(skep_init).parts[1]
    init.write_text(INIT.replace("@RUNS@", runs).replace("@PLACE@", place).replace("init modules;", f"init modules {top};"))
    init.chmod(0o755)


def main():
    test, skep_init, cache, *patterns = sys.argv[1:]
    others = []
    if patterns[:1] == ["--with"]:
        others, patterns = patterns[1:2], patterns[2:]
    vm.check_programs("busybox", *PROGRAMS)
    lock = vm.cache_lock(cache)
    image, modules = vm.kernel_fetch(cache)
    lock.close()
    with tempfile.TemporaryDirectory(prefix="skep-vm-") as work:
        root = os.path.join(work, "root")
        for program in others:
            vm.file_add(root, program)
        root_make(root, test, skep_init, modules, patterns or ["*"])
        initrd = os.path.join(work, "initrd")
        vm.initrd_make(root, initrd)
        shutil.rmtree(root)
        console = vm.boot(image, initrd, "cgroup_no_v1=all", 1024)
    sys.exit(0 if "RESULT 0" in console else 1)


if __name__ == "__main__":
    main()
