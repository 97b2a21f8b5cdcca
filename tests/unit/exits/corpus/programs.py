"""Failing programs, and what each is known to be.

(name, what it is, exit code that is right (or several), code of the verdict, shell text)
The shell text runs under `bash -c` in an empty directory of its own. `cc` and `python3` are needed.
What it is: one word for the confusion table.
"""


def python(text):
    return "cat > program.py <<'END'\n" + text + "\nEND\nexec python3 program.py"


def c(text):
    return (
        "cat > program.c <<'END'\n" + text + "\nEND\n"
        "cc -O0 -w -o program program.c && exec ./program"
    )


PROGRAMS = [
    # Python: the source itself
    ("python-bracket-open", "syntax", 1, 231, python("print('a'\nx = 1")),
    ("python-invalid-syntax", "syntax", 1, 231, python("if True print('a')")),
    ("python-indent", "syntax", 1, 231, python("def f():\nreturn 1")),
    ("python-unindent", "syntax", 1, 231, python("if True:\n        a = 1\n    b = 2")),
    ("python-tabs", "syntax", 1, 231, python("if True:\n        a = 1\n\tb = 2")),
    ("python-syntax-in-import", "syntax", 1, 231,
     "echo 'x = = 1' > broken.py\n" + python("import broken")),
    ("python-name", "source", 1, 231, python("print(undefined_name)")),
    ("python-attribute", "source", 1, 231, python("[].push(1)")),
    ("python-unpickle", "source", 1, 231, python("import pickle\npickle.loads(b'not a pickle')")),
    ("shell-token", "syntax", 2, 231, "cat > s.sh <<'END'\nif true; then )\nfi\nEND\nexec bash s.sh"),
    ("shell-quote", "syntax", 2, 231, "printf 'echo \"open\\n' > s.sh\nexec bash s.sh"),
    ("dash-quote", "syntax", 2, 231, "printf 'echo \"open\\n' > s.sh\nexec sh s.sh"),
    ("shell-end", "syntax", 2, 231, "printf 'if true; then\\n' > s.sh\nexec bash s.sh"),
    # Python: modules
    ("python-module", "import", 1, 232, python("import no_such_module_here")),
    ("python-from-import", "import", 1, 232, python("from os import no_such_name")),
    ("library-missing", "import", 127, 232,
     "echo 'int f(void){return 0;}' > l.c && cc -shared -fPIC -o libgone.so l.c\n"
     "echo 'int f(void);int main(void){return f();}' > m.c && cc -o m m.c -L. -lgone && rm libgone.so\n"
     "exec ./m"),
    # commands
    ("command-misspelt", "command", 127, 220, "trian.py --epochs 3"),
    ("command-misspelt-sh", "command", 127, 220, "exec sh -c 'nvcc-not-here --version'"),
    ("command-path-missing", "command", 127, 220, "/opt/nothing/here/run"),
    ("command-not-executable", "command", 126, 220, "echo 'echo hi' > run.sh; ./run.sh"),
    ("command-is-directory", "command", 126, 220, "mkdir d; ./d"),
    ("python-file-missing", "command", 2, 220, "exec python3 no_such_program.py"),
    ("interpreter-missing", "command", (126, 127), 220,  # bash to 5.1, from 5.2
     "printf '#!/no/such/interpreter\\n' > run; chmod +x run; ./run"),
    # signals
    ("segfault-c", "signal", 139, 139, c("int main(void){*(volatile int *)0 = 1; return 0;}")),
    ("segfault-python", "signal", 139, 139, python("import ctypes\nctypes.string_at(0)")),
    ("abort-c", "signal", 134, 134, c("#include <stdlib.h>\nint main(void){abort();}")),
    ("abort-assert", "signal", 134, 134,
     c("#include <assert.h>\nint main(void){assert(1 == 2); return 0;}")),
    ("divide-c", "signal", 136, 136,
     c("int main(int n, char **a){volatile int z = n - 1; return 7 / z;}")),
    ("illegal-instruction", "signal", 132, 132,
     c("int main(void){__builtin_trap(); return 0;}")),
    ("bus-error", "signal", 135, 135,
     c("#include <fcntl.h>\n#include <sys/mman.h>\n#include <unistd.h>\n"
       "int main(void){int f = open(\"m\", O_RDWR | O_CREAT, 0600); ftruncate(f, 4096);\n"
       "volatile char *p = mmap(0, 4096, 3, MAP_SHARED, f, 0); ftruncate(f, 0); p[0] = 1; return 0;}")),
    ("pipe", "signal", 141, 141, "set -o pipefail; yes | head -1 > /dev/null"),
    ("killed-by-itself", "killed", 137, 137, "kill -9 $$"),
    ("killed-python", "killed", 137, 137,
     python("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")),
    ("terminated", "killed", 143, 143, "kill -TERM $$"),
    ("interrupted", "killed", 130, 130, "exec sh -c 'kill -INT $$'"),
    ("quit", "killed", 131, 131,
     "ulimit -c 0\n" + python("import os, signal\nos.kill(os.getpid(), signal.SIGQUIT)")),
    ("keyboard-interrupt", "killed", 130, 130,
     python("import os, signal\nos.kill(os.getpid(), signal.SIGINT)")),
    ("child-segfault", "signal", 1, 234,
     "echo 'int main(void){*(volatile int *)0 = 1;}' > s.c; cc -w -o s s.c; ulimit -c 0; ./s; "
     "echo \"a rank died: Segmentation fault\"; exit 1"),
    # memory
    ("python-memory", "memory", 1, 237,
     "ulimit -v 600000\n" + python("x = bytearray(10 ** 12)")),
    ("python-memory-list", "memory", 1, 237,
     "ulimit -v 300000\n" + python("x = []\nwhile True:\n    x.append(bytearray(1 << 24))")),
    ("cxx-bad-alloc", "memory", 134, 237,
     "echo \"terminate called after throwing an instance of 'std::bad_alloc'\"; "
     "echo '  what():  std::bad_alloc'; kill -ABRT $$"),
    ("fork-memory", "memory", 1, 237, "echo 'bash: fork: Cannot allocate memory'; exit 1"),
    ("cuda-memory", "gpu-memory", 1, 226,
     python("raise RuntimeError('CUDA out of memory. Tried to allocate 20.00 GiB (GPU 0; 15.78 GiB)')")),
    ("cuda-memory-old", "gpu-memory", 1, 226,
     python("raise RuntimeError('cuda runtime error (2) : out of memory at THCStorage.cu:58')")),
    ("cuda-memory-new", "gpu-memory", 1, 226,
     python("class OutOfMemoryError(RuntimeError):\n    __module__ = 'torch'\n"
            "raise OutOfMemoryError('CUDA out of memory.')")),
    ("tensorflow-memory", "gpu-memory", 1, 221,
     python("class ResourceExhaustedError(Exception): pass\n"
            "raise ResourceExhaustedError('OOM when allocating tensor with shape[4096,4096]')")),
    # GPU
    ("cuda-ecc", "gpu-broken", 134, 223,
     "echo 'RuntimeError: CUDA error: uncorrectable ECC error encountered'; kill -ABRT $$"),
    ("cuda-illegal-access", "gpu-error", 1, 242,
     python("raise RuntimeError('CUDA error: an illegal memory access was encountered')")),
    ("cuda-driver", "gpu-version", 1, 224,
     python("raise RuntimeError('CUDA driver version is insufficient for CUDA runtime version')")),
    ("nccl-timeout", "peers", 134, 238,
     "echo '[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)'; kill -ABRT $$"),
    ("shm", "shm", 1, 239,
     python("raise RuntimeError('DataLoader worker (pid 7) is killed by signal: Bus error. It is "
            "possible that it hit insufficient shared memory (shm).')")),
    # files
    ("disk-full-python", "disk", 1, 236, python("open('/dev/full', 'w').write('x' * 100000)")),
    ("disk-full-shell", "disk", 1, 236, "echo data > /dev/full"),
    ("disk-full-dd", "disk", 1, 236, "dd if=/dev/zero of=/dev/full bs=4k count=1"),
    ("python-file", "path", 1, 229, python("open('/data/train.csv')")),
    ("python-directory", "path", 1, 229, python("open('/tmp')")),
    ("shell-cat", "path", 1, 246, "cat /data/train.csv"),
    ("shell-cd", "path", 1, 246, "cd /data/nothing"),
    ("c-perror", "path", 1, 246,
     c("#include <stdio.h>\nint main(void){if (!fopen(\"/data/x\", \"r\")) {perror(\"/data/x\"); return 1;} return 0;}")),
    ("python-decode", "data", 1, 229, python("b'\\xff\\xfe'.decode('utf-8')")),
    ("python-eof", "data", 1, 229, "touch empty\n" + python("import pickle\npickle.load(open('empty', 'rb'))")),
    ("permission", "permission", 1, 244,
     python("raise PermissionError(13, 'Permission denied', '/root/x')")),
    ("read-only", "permission", 1, 244, "touch /proc/version-of-mine || { echo 'touch: Read-only file system'; exit 1; }"),
    # network
    ("port-taken", "port", 1, 241,
     python("import socket\na = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen()\n"
            "b = socket.socket(); b.bind(a.getsockname())")),
    ("refused", "network", 1, 245,
     python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 0)); p = s.getsockname()[1]; "
            "s.close()\nsocket.create_connection(('127.0.0.1', p))")),
    ("host-unknown", "network", 1, 245,
     python("import socket\nraise socket.gaierror(-2, 'Name or service not known')")),
    # what the program itself says
    ("python-value", "exception", 1, 243, python("int('x')")),
    ("python-assert", "exception", 1, 243, python("assert 1 == 2")),
    ("python-key", "exception", 1, 243, python("{}['a']")),
    ("python-index", "index", 1, 233, python("[1, 2][5]")),
    ("python-recursion", "exception", 1, 243, python("def f(): f()\nf()")),
    ("python-arguments", "parameter", 2, 228,
     python("import argparse\nargparse.ArgumentParser().parse_args(['--lr', '1'])")),
    ("python-twice", "parameter", 1, 228, python("def f(a): pass\nf(1, a=2)")),
    ("option", "parameter", 2, 228, "ls --no-such-option-at-all"),
    ("timeout", "timeout", 124, 247, "timeout 0.1 sleep 5"),
    ("exit-3", "own", 3, 3, "exit 3"),
    ("exit-42", "own", 42, 42, "echo 'done, but not well'; exit 42"),
    ("exit-253", "own", 253, 255, "exit 253"),
    ("asks-transient", "asked", 200, 200, "exit 200"),
    ("asks-back-off", "asked", 201, 201, "exit 201"),
    ("asks-permanent", "asked", 210, 210, "exit 210"),
    ("success", "success", 0, 0, "echo 'SyntaxError: only a word'; exit 0"),
]
