"""An image made of this machine's own bash, Python, git and libraries, with the programs of the corpus in /corpus. No network."""
import pathlib
import re
import shutil
import subprocess

PROGRAMS = ("bash", "dash", "python3", "git", "tar", "gzip", "cat", "chmod", "cp", "env", "false", "head", "ls", "printf", "sleep", "sort",
            "timeout", "touch", "true", "yes", "mkdir", "rm", "sh", "dirname", "basename", "readlink", "uname", "id", "grep", "sed")
NEEDED = ("bash", "dash", "git", "tar", "gzip", "gcc", "g++")
PYTHON = pathlib.Path("/usr/bin/python3")
LEFT_OUT = ("dist-packages", "test", "idlelib", "lib2to3", "tkinter", "ensurepip", "pydoc_data", "__pycache__", "config-*")


def why_not():
    missing = [name for name in NEEDED if not find(name)]
    if missing:
        return "not installed: " + ", ".join(missing)
    return None if PYTHON.exists() else "/usr/bin/python3 is not installed"


def find(name):
    return shutil.which(name, path="/usr/bin:/bin:/usr/local/bin")


def library_paths(program):
    """What the dynamic linker loads, itself included."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True)
    return re.findall(r"(/\S+) \(0x", done.stdout)


def put(root, path):
    """A file, at the place where it is here."""
    to = root / str(path).lstrip("/")
    if not to.exists():
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, to)  # what a link points to


def put_with_libraries(root, path):
    put(root, path)
    for library in library_paths(path):
        put(root, library)


def make(root, cases):
    """An image in the folder `root`."""
    for name in ("usr/bin", "usr/lib", "usr/lib64", "etc", "tmp", "root", "corpus"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to("usr/" + name)
    (root / "tmp").chmod(0o1777)
    (root / "root").chmod(0o700)
    (root / "root/secret").write_text("s")
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    for name in PROGRAMS:
        put_with_libraries(root, find(name))
    version = PYTHON.resolve().name
    library = pathlib.Path("/usr/lib") / version
    shutil.copytree(library, root / f"usr/lib/{version}", ignore=shutil.ignore_patterns(*LEFT_OUT))
    for module in (library / "lib-dynload").glob("*.so"):
        for path in library_paths(module):
            put(root, path)
    for path in subprocess.run(["ldconfig", "-p"], capture_output=True, text=True,
                               env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"}).stdout.split():
        if path.startswith("/") and re.search(r"/lib(nss_dns|nss_files|resolv|gcc_s)\.so", path) and "64" in path:
            put(root, path)
    for case in cases:
        put_case(root, case)
    for path in [root, *root.parents][:2]:
        path.chmod(0o755)


def compile_c(root, case, *options):
    suffix, compiler = (".cc", "g++") if case.kind == "c++" else (".c", "gcc")
    source = root / "corpus" / (case.name + suffix)
    source.write_text(case.text)
    program = root / "corpus" / case.name
    subprocess.run([compiler, "-O0", "-w", "-fstack-protector-all", "-o", program, source, *options], check=True)
    return program


def put_case(root, case):
    if case.kind == "py":
        (root / "corpus" / (case.name + ".py")).write_text(case.text)
    elif case.name == "c-library":  # linked to a library that the image does not have
        library = root / "corpus" / "libmissing.so"
        source = root / "corpus" / "missing.c"
        source.write_text("int missing(void) { return 0; }\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
        compile_c(root, case, f"-L{root}/corpus", "-lmissing")
        library.unlink()
    elif case.kind in ("c", "c++"):
        for path in library_paths(compile_c(root, case)):
            put(root, path)
