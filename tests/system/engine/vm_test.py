#!/usr/bin/env python3
"""A virtual machine that says nothing more: is it ended soon, and does it say what it was doing?

Exit 0: it did. 77: User-mode Linux is not installed here. 1: it did not, with the console.
"""
import pathlib
import sys
import tempfile

import vm

SILENCE_S = 90  # its boot is one, too
INIT = """#!/bin/busybox sh
export PATH=/bin
mkdir -p /proc /sys /dev
mount -t proc proc /proc
mount -t devtmpfs dev /dev
@REPORT@
echo begun
mkfifo /never
read line </never
"""
# The way to say it, and what must be in it.
CASES = {
    "a machine whose programs run": ("sh /report.sh /dev/console &", ["--- processes", "wait_for_partner+", vm.REPORT_END]),
    "a machine whose kernel runs": ("", ["sysrq: Show Blocked State", "task:init"]),
}


def main():
    vm.check_programs("busybox")
    wrong = []
    for name, (report, wanted) in CASES.items():
        with tempfile.TemporaryDirectory(prefix="skep-vm-") as work:
            root = pathlib.Path(work, "root")
            root.mkdir()
            vm.busybox_add(root)
            vm.report_add(root)
            (root / "init").write_text(INIT.replace("@REPORT@", report))
            (root / "init").chmod(0o755)
            vm.initrd_make(root, f"{work}/initrd")
            console = vm.boot(f"{work}/initrd", "", 256, silence_s=SILENCE_S)
        wrong += [f"{name}: no {words!r}" for words in [*wanted, "begun", "the machine was ended"] if words not in console]
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
