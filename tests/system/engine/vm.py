"""Small virtual machines under software emulation, with Debian's own kernel: what they are made of, and how they run.

Everything is built on the spot from this machine's programs and from Debian packages, which are fetched once into a
cache directory. What cannot be had here ends the test as skipped (exit 77).
"""
import fcntl
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

BUSYBOX = "/bin/busybox"


def skip(why):
    print(f"skipped: {why}", file=sys.stderr)
    sys.exit(77)


def check_programs(*names):
    if os.uname().machine != "x86_64" or not shutil.which("qemu-system-x86_64"):
        skip("qemu-system-x86_64 is not installed")
    for name in ("cpio", *names):
        if not shutil.which(name):
            skip(f"{name} is not installed")


def cache_lock(cache):
    """Held until the program ends: two tests share one cache directory."""
    os.makedirs(cache, exist_ok=True)
    lock = open(os.path.join(cache, "lock"), "w")  # pylint: disable=consider-using-with
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def kernel_of(package_root):
    images = sorted(glob.glob(f"{package_root}/boot/vmlinuz-*cloud*"))
    if not images:
        return None
    image = images[-1]
    version = re.sub(r".*/vmlinuz-", "", image)
    modules = pathlib.Path(package_root, "lib/modules", version)
    return (image, modules) if modules.is_dir() else None


def kernel_fetch(cache):
    """Debian's cloud kernel, of /boot, or unpacked once into the cache: its file, and its folder of modules."""
    found = kernel_of("/") or kernel_of(cache)
    if found:
        return found
    if not shutil.which("apt-get"):
        skip("no cloud kernel in /boot, and no apt-get to fetch one")
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


def packages_fetch(cache, name, packages):
    """A tar file with these Debian packages and all they depend on, unpacked but not configured."""
    path = os.path.join(cache, f"{name}.tar")
    if not os.path.exists(path):
        made = subprocess.run(["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", "--format=tar",
                               f"--include={','.join(packages)}", "bookworm", f"{path}~"], capture_output=True)
        if made.returncode != 0:
            skip(f"{', '.join(packages)} cannot be fetched here: {made.stderr.decode(errors='replace')[-300:]}")
        os.rename(f"{path}~", path)
    return path


def libraries_of(program):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True)
    return re.findall(r"(/\S+\.so\S*)", listed.stdout)


def file_add(root, source):
    target = pathlib.Path(root, source.lstrip("/"))
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(os.path.realpath(source), target)


def program_add(root, program):
    file_add(root, program)
    for library in libraries_of(program):
        file_add(root, library)


def busybox_add(root):
    """busybox, and its applets where nothing else has the name."""
    file_add(root, BUSYBOX)
    listed = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True)
    for applet in listed.stdout.split():
        path = pathlib.Path(root, "bin", applet)
        if not any(os.path.lexists(f"{root}/{folder}/{applet}") for folder in ("bin", "usr/bin", "sbin", "usr/sbin")):
            path.symlink_to("/bin/busybox")


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


def modules_add(root, modules, names):
    """These modules and all that they need: their file names in the order in which they must be loaded."""
    order = []

    def add(name):
        if any(module_name(path) == name for path in order):
            return
        path = next((path for path in modules.rglob("*.ko*") if module_name(path) == name), None)
        if not path:
            return  # built in, or the test will say what is missing
        bytes_read = subprocess.run(["xz", "-dc", path], capture_output=True, check=True).stdout if path.suffix == ".xz" else path.read_bytes()
        needed = re.search(rb"\0depends=([^\0]*)\0", bytes_read)
        for other in needed[1].decode().split(",") if needed and needed[1] else []:
            add(other)
        target = pathlib.Path(root, "modules", path.name.removesuffix(".xz"))
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(bytes_read)
        order.append(target)

    for name in names:
        add(name)
    return [path.name for path in order]


def module_name(path):
    return path.name.split(".")[0].replace("-", "_")


def initrd_make(root, path):
    names = subprocess.run(["find", ".", "-print0"], cwd=root, capture_output=True, check=True).stdout
    with open(path, "wb") as out:
        subprocess.run(["cpio", "--null", "-o", "-H", "newc", "--quiet"], cwd=root, input=names, stdout=out, check=True)


# It takes 90 s on an idle host, and eight times that on a busy one: only a machine that hangs takes so long.
HANG_S = 1500


def boot(image, initrd, options, memory_mib, disks=()):
    """Run it until it powers itself off; print its console as it comes, and return it. Its disks are files."""
    command = ["timeout", "--kill-after=10", str(HANG_S),
               "qemu-system-x86_64", "-accel", "tcg", "-smp", "2", "-m", str(memory_mib), "-nographic", "-no-reboot",
               "-nic", "none", "-kernel", image, "-initrd", initrd,
               "-append", f"console=ttyS0 panic=-1 quiet {options}"]
    for disk in disks:
        command += ["-drive", f"file={disk},if=virtio,format=raw,cache=unsafe"]
    console = []
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as machine:
        for line in machine.stdout:
            console.append(line.decode(errors="replace").rstrip("\r\n"))
            print(console[-1], flush=True)
    if machine.returncode in (124, 137):
        print(f"the machine did not end within {HANG_S} s")
    return "\n".join(console)
