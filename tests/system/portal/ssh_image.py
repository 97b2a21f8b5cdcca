"""An image with Debian's ssh server beside busybox, for tests that log in as a person does.

The server is the one that tools/install-deps --test has unpacked: installed it would listen on this machine. No network.
"""
import pathlib
import shutil
import subprocess

from image import library_paths, put

UNPACKED = pathlib.Path("/usr/local/lib/skep-test/openssh-server")
SERVER = UNPACKED / "usr/sbin/sshd"


def make(world):
    """Its name in a job file; None where there is no server."""
    if not SERVER.exists():
        return None
    missing = [line for line in subprocess.run(["ldd", SERVER], capture_output=True, text=True, check=True).stdout.splitlines() if "not found" in line]
    assert not missing, f"{SERVER} lacks libraries: run tools/install-deps --test again: {missing}"
    root = world.images / "ssh"
    shutil.copytree(world.images / "busybox", root, symlinks=True)
    (root / "usr/sbin").mkdir(parents=True, exist_ok=True)
    shutil.copy2(SERVER, root / "usr/sbin/sshd")
    for library in library_paths(SERVER):
        put(root, library)
    with open(root / "etc/passwd", "a") as users:
        users.write("sshd:x:104:65534::/run/sshd:/bin/false\n")  # of its privilege separation
    root.chmod(0o755)
    return f"dir:{root}"
