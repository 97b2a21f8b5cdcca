#!/usr/bin/env python3
"""The local engine on a machine with cgroup v2 alone: boots a small virtual machine under software
emulation with Debian's cloud kernel and a root file system made of this machine's own programs, and
runs the engine's tests of the life of containers in it.

usage: cgroup_v2.py TEST_PROGRAM SKEP_INIT CACHE_DIRECTORY [TEST_NAME_PATTERN...]
Exit 0: they passed. 77: qemu, or a kernel, is not to be had here. 1: failed, with the console.
The kernel is taken from /boot, else fetched with apt-get once into the cache directory.
"""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TIMEOUT_S = 420
PROGRAMS = ["/usr/bin/crun", "/usr/bin/conmon"]
TOOLS = ["/usr/bin/pgrep", "/usr/bin/ipcs"]  # busybox has none
MODULES = ["overlay"]

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
for module in /modules/*.ko; do insmod $module; done
echo "controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"
code=0
@RUNS@
echo "RESULT $code"
sync
poweroff -f
"""


def skip(why):
    print(f"skipped: {why}", file=sys.stderr)
    sys.exit(77)


def kernel_of(package_root):
    images = sorted(glob.glob(f"{package_root}/boot/vmlinuz-*cloud*"))
    if not images:
        return None
    image = images[-1]
    version = re.sub(r".*/vmlinuz-", "", image)
    modules = pathlib.Path(package_root, "lib/modules", version)
    return (image, modules) if modules.is_dir() else None


def kernel_fetch(cache):
    """Debian's cloud kernel, unpacked once into the cache."""
    found = kernel_of("/") or kernel_of(cache)
    if found:
        return found
    if not shutil.which("apt-get"):
        skip("no cloud kernel in /boot, and no apt-get to fetch one")
    os.makedirs(cache, exist_ok=True)
    depends = subprocess.run(["apt-cache", "depends", "linux-image-cloud-amd64"], capture_output=True, text=True)
    name = re.search(r"Depends: (linux-image-\S*cloud-amd64)", depends.stdout)
    if not name:
        skip("apt knows no linux-image-cloud-amd64")
    fetched = subprocess.run(["apt-get", "download", "-q", name[1]], cwd=cache, capture_output=True)
    packages = glob.glob(f"{cache}/{name[1]}_*.deb")
    if fetched.returncode != 0 or not packages:
        skip("the cloud kernel cannot be fetched here")
    subprocess.run(["dpkg-deb", "-x", packages[0], cache], check=True)
    os.unlink(packages[0])
    return kernel_of(cache) or skip("the package holds no kernel")


def libraries_of(program):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True)
    return re.findall(r"(/\S+\.so\S*)", listed.stdout)


def file_add(root, source):
    target = pathlib.Path(root, source.lstrip("/"))
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(os.path.realpath(source), target)


def module_add(root, modules, name):
    for path in modules.rglob(f"{name}.ko*"):
        target = pathlib.Path(root, "modules", f"{name}.ko")
        target.parent.mkdir(exist_ok=True)
        if path.suffix == ".xz":
            target.write_bytes(subprocess.run(["xz", "-dc", path], capture_output=True, check=True).stdout)
        else:
            shutil.copy2(path, target)
        return
    # not a module: built in, or the test will say what is missing


def root_make(root, test, skep_init, modules, patterns):
    for directory in ["bin", "usr/bin", "etc", "tests"]:
        pathlib.Path(root, directory).mkdir(parents=True, exist_ok=True)
    shutil.copy2(shutil.which("busybox"), pathlib.Path(root, "bin/busybox"))
    os.symlink("busybox", pathlib.Path(root, "bin/sh"))
    for program in PROGRAMS + [tool for tool in TOOLS if os.path.exists(tool)]:
        file_add(root, program)
        for library in libraries_of(program):
            file_add(root, library)
    for library in libraries_of(test):
        file_add(root, library)
    shutil.copy2(test, pathlib.Path(root, "tests/test"))
    # the tests were built with this path of skep-init
    file_add(root, skep_init)
    for name in MODULES:
        module_add(root, modules, name)
    pathlib.Path(root, "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    pathlib.Path(root, "etc/group").write_text("root:x:0:\n")
    runs = "\n".join(f"/tests/test '{pattern}' || code=1" for pattern in patterns)
    init = pathlib.Path(root, "init")
    # the path of skep-init may begin outside the copied folders
    top = pathlib.Path(skep_init).parts[1]
    init.write_text(INIT.replace("@RUNS@", runs).replace("init modules;", f"init modules {top};"))
    init.chmod(0o755)


def initrd_make(root, path):
    names = subprocess.run(["find", ".", "-print0"], cwd=root, capture_output=True, check=True).stdout
    with open(path, "wb") as out:
        subprocess.run(["cpio", "--null", "-o", "-H", "newc", "--quiet"], cwd=root, input=names, stdout=out, check=True)


def main():
    test, skep_init, cache, *patterns = sys.argv[1:]
    qemu = shutil.which("qemu-system-x86_64")
    if os.uname().machine != "x86_64" or not qemu:
        skip("qemu-system-x86_64 is not installed")
    for need in ["busybox", "cpio", *PROGRAMS]:
        if not shutil.which(need):
            skip(f"{need} is not installed")
    image, modules = kernel_fetch(cache)
    with tempfile.TemporaryDirectory(prefix="skep-vm-") as work:
        root = os.path.join(work, "root")
        root_make(root, test, skep_init, modules, patterns or ["*"])
        initrd = os.path.join(work, "initrd")
        initrd_make(root, initrd)
        shutil.rmtree(root)
        command = [qemu, "-accel", "tcg", "-smp", "2", "-m", "1024", "-nographic", "-no-reboot", "-nic", "none",
                   "-kernel", image, "-initrd", initrd,
                   "-append", "console=ttyS0 panic=-1 quiet cgroup_no_v1=all"]
        try:
            run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
            console = run.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            console = (late.stdout or b"").decode(errors="replace") + "\nthe machine did not end in time\n"
    print(console)
    sys.exit(0 if "RESULT 0" in console else 1)


if __name__ == "__main__":
    main()
