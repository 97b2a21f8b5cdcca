#!/usr/bin/env python3
"""The disks of tasks by project quotas, which the kernel here may lack: boots a small virtual machine with Debian's cloud kernel,
makes a file system that has them, and runs the test of the disks of tasks on it.

usage: disk_project.py TEST_PROGRAM SKEP_INIT CACHE_DIRECTORY ext4|xfs [TEST_NAME_PATTERN...]
Exit 0: they passed. 77: qemu, or a kernel, is not to be had here. 1: failed, with the console.
"""
import os
import shutil
import sys
import tempfile

import cgroup_v2
import vm

MEMORY_MIB = 1536
MODULES = ["overlay", "loop", "crc32c_generic", "libcrc32c", "crc16", "mbcache", "jbd2", "ext4", "quota_tree", "quota_v2", "xfs"]
FILE_SYSTEMS = {
    "ext4": ("/usr/sbin/mke2fs", "-q -F -t ext4 -O project,quota,^metadata_csum,^has_journal -E quotatype=prjquota", "prjquota"),
    "xfs": ("/usr/sbin/mkfs.xfs", "-q", "pquota"),
}
PLACE = """
mkdir -p /mnt/disk /new
mount -t tmpfs -o size=700m new /new
truncate -s 600M /new/file
@MAKE@ /new/file
mount -t @KIND@ -o loop,@OPTION@ /new/file /mnt/disk
export TMPDIR=/mnt/disk
"""


def main():
    test, skep_init, cache, kind, *patterns = sys.argv[1:]
    make, words, option = FILE_SYSTEMS[kind]
    vm.check_programs("busybox", make, *cgroup_v2.PROGRAMS)
    lock = vm.cache_lock(cache)
    image, modules = vm.kernel_fetch(cache)
    lock.close()
    cgroup_v2.MODULES[:] = MODULES
    with tempfile.TemporaryDirectory(prefix="skep-vm-") as work:
        root = os.path.join(work, "root")
        vm.program_add(root, make)
        place = PLACE.replace("@MAKE@", f"{make} {words}").replace("@KIND@", kind).replace("@OPTION@", option)
        cgroup_v2.root_make(root, test, skep_init, modules, patterns or ["*"], "SKEP_TEST_DISK=project", place)
        initrd = os.path.join(work, "initrd")
        vm.initrd_make(root, initrd)
        shutil.rmtree(root)
        console = vm.boot(image, initrd, "cgroup_no_v1=all", MEMORY_MIB)
    sys.exit(0 if "RESULT 0" in console else 1)


if __name__ == "__main__":
    main()
