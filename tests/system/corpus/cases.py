"""Programs that fail, and what each failure is known to be.

A case is a real program: it is put into the image and run in a container by skepd; nothing is fed to the judge by hand. Texts of
programs that do not run here (CUDA, NCCL, TensorFlow, MPI) are printed by small programs that then fail as those do.

`code` is what the end must be called; `retries` says what must follow when the job allows one retry of its own:
  NEVER    not tried again
  BUDGET   tried again once, on the job's account
  ALWAYS   tried again, not on the job's account; the runner stops the job then
"""
import dataclasses
import os

NEVER, BUDGET, ALWAYS = "never", "budget", "always"


@dataclasses.dataclass
class Case:
    name: str
    code: int
    retries: str
    kind: str  # py, sh, c, c++: a program in the image; job: the commands of the job itself
    text: str
    image: str = ""  # "" the corpus' own; else what is written into the job file
    run: str = ""  # how the program is called, when not by its path alone
    memory: int = 64
    extra: str = ""  # lines of the job file
    action: str = ""  # what the runner does once the program has written "ready"
    exit_code: int | None = None  # of the container, when it must be kept beside `code`
    gpu: int = 0
    role: str = ""  # further lines of the role


CASES = []


def add(name, code, retries, kind, text, **more):
    CASES.append(Case(name, code, retries, kind, text, **more))


def py(name, code, retries, text, **more):
    add("py-" + name, code, retries, "py", text, **more)


def sh(name, code, retries, text, **more):
    add("sh-" + name, code, retries, "job", text, **more)


def c(name, code, retries, text, **more):
    add("c-" + name, code, retries, "c", text, **more)


def says(name, code, retries, text, exit_code=1, ending=None):
    """A program whose last words are known, on standard error."""
    ending = ending or f"sys.exit({exit_code})"
    add("says-" + name, code, retries, "py", f"import os, signal, sys\nsys.stderr.write({text!r} + '\\n')\nsys.stderr.flush()\n{ending}\n")


# ---- Python: its own errors ----
py("syntax", 231, NEVER, "print('a'\n")
py("syntax-always", 231, NEVER, "def f(:\n    pass\n", extra="jobRetryCount: 100\n")
py("indentation", 231, NEVER, "def f():\nreturn 1\n")
py("tab", 231, NEVER, "if True:\n        a = 1\n\tb = 2\n")
py("syntax-of-module", 231, NEVER, "open('/tmp/broken.py', 'w').write('x = = 1\\n')\nimport sys\nsys.path.insert(0, '/tmp')\nimport broken\n")
py("name", 231, NEVER, "print(undefined)\n")
py("attribute", 231, NEVER, "[].push(1)\n")
py("module", 232, NEVER, "import torch\n")
py("import-name", 232, NEVER, "from json import no_such_thing\n")
py("relative-import", 232, NEVER, "from . import sibling\n")
py("module-by-m", 232, NEVER, "", run="python3 -m no_such_module")
py("key", 243, BUDGET, "{}['missing']\n")
py("index", 233, NEVER, "[1, 2, 3][9]\n")
py("pop-of-empty", 233, NEVER, "[].pop()\n")
py("type", 243, BUDGET, "1 + '1'\n")
py("argument-twice", 228, NEVER, "def f(a):\n    pass\nf(1, a=2)\n")
py("argument-unknown", 228, NEVER, "def f(a):\n    pass\nf(b=2)\n")
py("argument-missing", 228, NEVER, "def f(a, b):\n    pass\nf(1)\n")
py("value", 243, BUDGET, "int('ten')\n")
py("zero", 243, BUDGET, "1 / 0\n")
py("assert", 243, BUDGET, "assert 1 == 2, 'no'\n")
py("recursion", 243, BUDGET, "def f():\n    f()\nf()\n")
py("json", 229, NEVER, "import json\njson.loads('{\"a\": }')\n")
py("pickle-cut", 229, NEVER, "import pickle\npickle.loads(b'')\n")
py("pickle-other", 231, NEVER, "import pickle\npickle.loads(b'hello')\n")
py("decode", 229, NEVER, "open('/tmp/x', 'wb').write(b'\\xff\\xfe\\xfa')\nopen('/tmp/x', encoding='utf-8').read()\n")
py("encode", 229, NEVER, "'\\u00e9'.encode('ascii')\n")
py("gzip", 229, NEVER, "import gzip\nopen('/tmp/x.gz', 'wb').write(b'plain')\ngzip.open('/tmp/x.gz').read()\n")
py("file", 229, NEVER, "open('/data/train.csv')\n")
py("directory", 229, NEVER, "open('/tmp')\n")
py("exception-of-own", 243, BUDGET, "class Diverged(Exception):\n    pass\nraise Diverged('loss is nan')\n")
py("exception-chain", 243, BUDGET, "try:\n    {}['a']\nexcept KeyError as e:\n    raise RuntimeError('bad configuration') from e\n")
py("subprocess", 243, BUDGET, "import subprocess\nsubprocess.run(['false'], check=True)\n")
py("broken-pool", 243, BUDGET, "import concurrent.futures, os\n"
   "def die():\n    os._exit(9)\n"
   "with concurrent.futures.ProcessPoolExecutor(1) as pool:\n    pool.submit(die).result()\n")
py("argparse", 228, NEVER, "import argparse\nargparse.ArgumentParser().parse_args(['--no-such-option'])\n")
py("wrong-path", 220, NEVER, "", run="python3 /no/such/train.py")
py("wrong-directory", 220, NEVER, "", run="python3 /etc")
py("exit-message", 1, BUDGET, "import sys\nsys.exit('give me data')\n")
py("exit-3", 3, BUDGET, "raise SystemExit(3)\n")
py("interrupt", 130, BUDGET, "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n")
py("colours", 232, NEVER, "import sys\nsys.stderr.write('\\x1b[31mModuleNotFoundError: No module named x\\x1b[0m\\n')\nsys.exit(1)\n")
py("succeeds", 0, NEVER, "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()\n")
py("succeeds-after-child", 0, NEVER, "import subprocess\nsubprocess.run(['sh', '-c', 'kill -SEGV $$'])\n")
py("long-log", 226, NEVER, "import sys\nfor i in range(160000):\n    print('step', i, '.' * 60)\nsys.stdout.flush()\n"
   "raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 10.76 GiB total capacity)')\n")

# ---- Python: the machine's limits ----
py("memory-limit", 237, NEVER, "import resource\nresource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))\nx = bytearray(1 << 30)\n")
py("oom", -1200, NEVER, "x = []\nwhile True:\n    x.append(b'x' * (4 << 20))\n")
py("oom-of-child", -1200, NEVER, "import subprocess, sys\n"
   "subprocess.run([sys.executable, '-c', 'x = []\\nwhile True: x.append(b\"x\" * (4 << 20))'], check=True)\n")
py("oom-of-shell-child", -1200, NEVER, "x = []\nwhile True:\n    x.append(b'x' * (4 << 20))\n", run="sh -c 'python3 PROGRAM; exit 1'")
py("shm-full", 236, BUDGET, "f = open('/dev/shm/x', 'wb')\nwhile True:\n    f.write(b'x' * (1 << 20))\n", memory=128,
   role="    extraContainerOptions: {shmMB: 8}\n")
py("shm-mapped-full", 135, NEVER, "import mmap, os\nfd = os.open('/dev/shm/x', os.O_RDWR | os.O_CREAT)\nos.ftruncate(fd, 64 << 20)\n"
   "m = mmap.mmap(fd, 64 << 20)\nfor i in range(0, 64 << 20, 4096):\n    m[i] = 1\n", memory=128,
   role="    extraContainerOptions: {shmMB: 8}\n")
py("quota", 236, BUDGET, "import errno, os\nraise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), '/data/checkpoint.pt')\n")
py("file-size", 243, BUDGET, "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\nf = open('/tmp/x', 'wb', 0)\nwhile True:\n    f.write(b'x' * 500)\n")
py("open-files", 227, BUDGET, "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))\nf = [open('/etc/passwd') for i in range(100)]\n")
py("threads", 227, BUDGET, "import threading, time\nevent = threading.Event()\nthreading.stack_size(64 << 10)\n"
   "try:\n    while True:\n        threading.Thread(target=event.wait, daemon=True).start()\nfinally:\n    event.set()\n")
py("processes", 227, BUDGET, "import os, resource, time\nwhile True:\n    if os.fork() == 0:\n        time.sleep(60)\n        os._exit(0)\n", memory=256)
py("read-only", 244, NEVER, "open('/skep/job.json', 'w')\n")
py("permission", 244, NEVER, "import os\nos.setuid(65534)\nopen('/root/secret')\n")

# ---- Python: the network ----
py("port", 241, BUDGET, "import socket\na = socket.socket()\na.bind(('127.0.0.1', 0))\na.listen()\nb = socket.socket()\nb.bind(a.getsockname())\n")
py("refused", 245, BUDGET, "import socket\na = socket.socket()\na.bind(('127.0.0.1', 0))\nsocket.create_connection(a.getsockname())\n")
py("name-lookup", 245, BUDGET, "import socket\nsocket.create_connection(('no-such-host.invalid', 80))\n")
py("url", 245, BUDGET, "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:1/data.tar')\n")
py("socket-timeout", 245, BUDGET, "import socket\na = socket.socket()\na.bind(('127.0.0.1', 0))\na.listen()\n"
   "b = socket.create_connection(a.getsockname(), timeout=0.1)\nb.recv(1)\n")
py("reset", 245, BUDGET, "import socket, struct\na = socket.socket()\na.bind(('127.0.0.1', 0))\na.listen()\nb = socket.create_connection(a.getsockname())\n"
   "d, _ = a.accept()\nd.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))\nd.close()\nb.recv(1)\n")
py("broken-pipe", 243, BUDGET, "import socket\na, b = socket.socketpair()\nb.close()\na.send(b'x')\n")

# ---- Python: signals ----
py("segfault", 139, BUDGET, "import ctypes\nctypes.string_at(0)\n")
py("abort", 134, BUDGET, "import os\nos.abort()\n")
py("kill", 137, BUDGET, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
py("terminate", 143, BUDGET, "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
py("quit", 131, BUDGET, "import os, signal\nos.kill(os.getpid(), signal.SIGQUIT)\n")

# ---- shell ----
# the file is there in a network of the job's own only: the corpus runs in the kind of network that it was told to
sh("network", 0, NEVER, "test ! -e /skep/network" if os.environ.get("SKEP_TEST_NETWORK", "host") == "host" else "test -s /skep/network")
# and with the user ids: the first of 0 … 65535 is not the machine's 0
sh("user-ids", 0, NEVER, "read inside outside count < /proc/self/uid_map; " +
   ("test $outside = 0" if os.environ.get("SKEP_TEST_USERS") == "off" else "test $outside -gt 65535 && test $count = 65536"))
sh("not-found", 220, NEVER, "pyhton3 train.py")
sh("no-such-program", 220, NEVER, "/opt/no/such/program --train")
sh("not-executable", 220, NEVER, "printf 'echo hi' > /tmp/run.sh; chmod 644 /tmp/run.sh; /tmp/run.sh")
sh("is-directory", 220, NEVER, "/etc")
sh("interpreter", 220, NEVER, "printf '#!/no/such/interpreter\\n' > /tmp/run; chmod 755 /tmp/run; /tmp/run")
sh("carriage-return", 220, NEVER, "printf '#!/bin/sh\\r\\necho hi\\r\\n' > /tmp/run; chmod 755 /tmp/run; /tmp/run")
sh("other-processor", 220, NEVER, "printf '\\177ELF\\002\\001\\001\\000\\000\\000\\000\\000\\000\\000\\000\\000\\002\\000\\267\\000\\001' > /tmp/run; chmod 755 /tmp/run; /tmp/run")
sh("syntax", 231, NEVER, "if true; then; fi")
sh("open-quote", 231, NEVER, "echo \"unfinished")
sh("open-if", 231, NEVER, "if true; then echo a")
sh("syntax-always", 231, NEVER, "for in do", extra="jobRetryCount: 100\n")
sh("dash-syntax", 231, NEVER, "sh -c 'if true; then'")
sh("dash-unexpected", 231, NEVER, "sh -c 'echo a; fi'")
sh("unbound", 231, NEVER, "echo $DATA_DIRECTORY_OF_MINE")
sh("exit-1", 1, BUDGET, "exit 1")
sh("exit-2", 2, BUDGET, "exit 2")
sh("exit-42", 42, BUDGET, "exit 42")
sh("exit-255", 255, BUDGET, "exit 255")
sh("exit-254", 255, BUDGET, "exit 254", exit_code=254)
sh("errexit", 1, BUDGET, "false; echo not reached")
sh("says-transient", 200, ALWAYS, "exit 200")
sh("says-permanent", 210, NEVER, "exit 210")
sh("cat-missing", 246, NEVER, "cat /data/list.txt")
sh("cd-missing", 246, NEVER, "cd /data/imagenet")
sh("ls-missing", 246, NEVER, "ls /data/imagenet")
sh("redirect-missing", 246, NEVER, "sort < /data/list.txt")
sh("read-only", 244, NEVER, "touch /skep/x")
sh("disk-full", 236, BUDGET, "cat /dev/zero > /dev/shm/x", memory=128, role="    extraContainerOptions: {shmMB: 8}\n")
sh("dev-full", 236, BUDGET, "echo data > /dev/full")
sh("pipe", 141, NEVER, "yes | head -1")
sh("timeout", 247, BUDGET, "timeout 0.1 sleep 60")
sh("kill-self", 137, BUDGET, "kill -9 $$")
sh("kill-child", 137, BUDGET, "sh -c 'kill -9 $$'")
sh("terminate-child", 143, BUDGET, "sh -c 'kill -15 $$'")
sh("cpu-limit", 152, BUDGET, "ulimit -S -t 1; while true; do :; done")
sh("file-limit", 153, BUDGET, "ulimit -f 1; cat /dev/zero > /tmp/x")
sh("hidden-segfault", 234, NEVER, "/corpus/c-segfault || exit 1")
sh("hidden-abort", 235, NEVER, "/corpus/c-abort || exit 1")
sh("git-missing", 246, NEVER, "git clone /srv/git/no-such-project.git /tmp/x")
sh("git-refused", 245, BUDGET, "git clone git://127.0.0.1:1/project.git /tmp/x")
sh("tar-broken", 229, NEVER, "echo plain > /tmp/x.tar; tar -xf /tmp/x.tar")
sh("gzip-broken", 229, NEVER, "echo plain > /tmp/x.gz; gzip -d /tmp/x.gz")
sh("processes", 227, BUDGET, "while true; do sleep 60 & done", memory=256)
sh("option", 228, NEVER, "ls --no-such-option")
sh("sourced-missing", 246, NEVER, "source /opt/conda/etc/profile.d/conda.sh")
sh("cp-missing", 246, NEVER, "cp /data/model.pt /tmp/")
sh("python-after-pipe", 232, NEVER, "python3 -c 'import torch' | cat")

# ---- C and C++ ----
MAIN = "#include <assert.h>\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nint main(void)\n{\n"
c("segfault", 139, BUDGET, MAIN + "volatile int *p = 0; *p = 1; return 0; }")
c("stack", 139, BUDGET, "int f(volatile int *p) { volatile char room[4096]; room[0] = 1; return f(&(volatile int){room[0]}) + *p; }\nint main(void) { return f(0); }")
c("abort", 134, BUDGET, MAIN + "abort(); }")
c("assert", 134, BUDGET, MAIN + "assert(getpid() == 0); return 0; }")
c("double-free", 134, BUDGET, MAIN + "char *volatile p = malloc(10); free(p); free(p); return 0; }")
c("stack-smash", 134, BUDGET, MAIN + "char room[8]; volatile int n = 64; memset(room, 1, (size_t)n); return room[3]; }")
c("divide", 136, NEVER, MAIN + "volatile int zero = 0; return 7 / zero; }")
c("illegal", 132, NEVER, MAIN + "__builtin_trap(); }")
c("bus", 135, NEVER, MAIN + "raise(SIGBUS); return 0; }")
c("trap", 133, BUDGET, MAIN + "raise(SIGTRAP); return 0; }")
c("pipe", 141, NEVER, MAIN + "int p[2]; signal(SIGPIPE, SIG_DFL); if (pipe(p)) return 1; close(p[0]); return (int)write(p[1], \"x\", 1); }")
c("oom", -1200, NEVER, MAIN + "for (;;) memset(malloc(1 << 20), 1, 1 << 20); }")
# more than there are addresses: it fails also where the kernel promises memory that nobody has, as a kubelet has it do
c("malloc", 237, NEVER, MAIN + "char *p = malloc((size_t)1 << 47); if (!p) { perror(\"malloc\"); return 1; } return p[0]; }")
c("open", 246, NEVER, MAIN + "FILE *f = fopen(\"/data/weights.bin\", \"r\"); if (!f) { perror(\"/data/weights.bin\"); return 1; } return 0; }")
c("exit-77", 77, BUDGET, MAIN + "return 77; }")
add("c-library", 232, NEVER, "c", "int missing(void);\nint main(void) { return missing(); }", run="/corpus/c-library")
add("cxx-bad-alloc", 237, NEVER, "c++", "#include <vector>\nint main() { std::vector<char> v((std::size_t)1 << 47); return v[0]; }")
add("cxx-throw", 134, BUDGET, "c++", "#include <stdexcept>\nint main() { throw std::runtime_error(\"no model\"); }")

# ---- GPUs and frameworks: what their programs say ----
says("torch-oom", 226, NEVER, "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
     "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB (GPU 0; 15.78 GiB total capacity; 1.2 GiB already allocated)")
says("torch-oom-old", 226, NEVER, "RuntimeError: cuda runtime error (2) : out of memory at /opt/conda/conda-bld/pytorch/THCStorage.cu:58")
says("cuda-oom-abort", 226, NEVER, "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: out of memory", ending="os.abort()")
says("tensorflow-oom", 221, NEVER, "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[4096,4096]"
     " and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc")
says("tensorflow-bfc", 221, NEVER, "W tensorflow/core/common_runtime/bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB")
says("ecc", 223, ALWAYS, "RuntimeError: CUDA error: uncorrectable ECC error encountered")
says("gpu-lost", 240, ALWAYS, "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU")
says("nccl-timeout", 238, BUDGET, "[rank1]: [E ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42,"
     " OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600005 milliseconds before timing out.", ending="os.abort()")
says("nccl-remote", 238, BUDGET, "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1691,"
     " remote process exited or there was a network error\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.")
says("gloo-peer", 238, BUDGET, "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:4242")
says("cudnn", 225, NEVER, "Loaded runtime CuDNN library: 7.1.2 but source was compiled with: 7.4.2.  CuDNN library needs to have matching major version", 134,
     ending="os.abort()")
says("driver", 224, NEVER, "RuntimeError: The NVIDIA driver on your system is too old (found version 10010)")
says("driver-runtime", 224, NEVER, "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version")
says("illegal-access", 242, BUDGET, "RuntimeError: CUDA error: an illegal memory access was encountered")
says("device-assert", 242, BUDGET, "Assertion `t >= 0 && t < n_classes` failed.\nRuntimeError: CUDA error: device-side assert triggered")
says("dataloader-shm", 239, NEVER, "RuntimeError: DataLoader worker (pid 31) is killed by signal: Bus error. It is possible that dataloader's workers are"
     " out of shared memory. Please try to raise your shared memory limit.\nERROR: Unexpected bus error encountered in worker. This might be caused by"
     " insufficient shared memory (shm).")
says("mpi-segv", 222, NEVER, "[node1:00042] *** Process received signal ***\n[node1:00042] Signal: Segmentation fault (11)\n"
     "[node1:00042] Signal code: Address not mapped (1)\n[node1:00042] Failing at address: (nil)")
says("numpy-memory", 237, NEVER, "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array with shape (100000, 100000) and data type float64")
says("glibc", 232, NEVER, "./train: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by ./train)")
says("java-oom", 237, NEVER, "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space")
says("no-gpu", 242, BUDGET, "RuntimeError: No CUDA GPUs are available")
says("save-path", 230, NEVER, "ValueError: Restore called with invalid save path: '/models/none'. File path is: '/models/none'")
says("shape", 243, BUDGET, "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n"
     "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x784 and 512x10)")

# ---- images ----
add("image-missing-directory", 254, NEVER, "job", "true", image="dir:IMAGES/no-such-image")
add("image-missing-archive", 254, NEVER, "job", "true", image="docker-archive:IMAGES/no-such.tar")
add("image-broken-archive", 254, NEVER, "job", "true", image="docker-archive:IMAGES/broken.tar")
add("image-malformed", 254, NEVER, "job", "true", image="registry.example/UPPER/Case:tag")
add("image-registry-away", -1210, ALWAYS, "job", "true", image="127.0.0.1:1/team/image:1")
add("image-not-in-registry", 254, NEVER, "job", "true", image="REGISTRY/team/image:1")
add("image-without-shell", -1203, NEVER, "job", "true", image="dir:IMAGES/empty")

# ---- the platform, its users, its operators ----
READY = "python3 -c 'import time; print(\"ready\", flush=True); time.sleep(600)' "
sh("killed-from-outside", 137, BUDGET, READY + "kill-TOKEN", action="kill")
sh("terminated-from-outside", 143, BUDGET, READY + "terminate-TOKEN", action="terminate")
sh("first-process-killed", 137, BUDGET, READY + "init-TOKEN", action="kill-init")
sh("removed-from-outside", -101, ALWAYS, READY + "remove-TOKEN", action="remove")
sh("stopped", -210, NEVER, READY + "stop-TOKEN", action="stop")
sh("stopped-deaf", -210, NEVER, "trap '' TERM; echo ready; while true; do sleep 0.1; done", action="stop")
sh("time-limit", -1004, NEVER, "sleep 600", extra="extras: {timeLimitSeconds: 1}\n")
sh("before-command", 5, BUDGET, "true",
   extra="extras:\n  com.microsoft.pai.runtimeplugin:\n    - plugin: cmd\n      parameters: {callbacks: [{event: taskStarts, commands: [exit 5]}]}\n")
sh("before-command-missing", 220, NEVER, "true",
   extra="extras:\n  com.microsoft.pai.runtimeplugin:\n    - plugin: cmd\n      parameters: {callbacks: [{event: taskStarts, commands: [no-such-tool]}]}\n")

# ---- for engines other than the local one ----

# The cases whose end is not only the judge's business but the engine's: how it starts a program, limits it, sees its end and reads its log.
OF_ENGINES = {
    "py-syntax", "py-succeeds", "py-long-log", "py-oom", "py-oom-of-child", "py-oom-of-shell-child", "c-oom", "py-shm-full",
    "py-shm-mapped-full", "sh-disk-full", "py-open-files", "py-threads", "py-processes", "py-read-only", "py-permission",
    "py-name-lookup", "py-segfault", "py-kill", "py-terminate", "c-library", "sh-network", "sh-user-ids", "sh-not-found",
    "sh-exit-42", "sh-exit-254", "sh-exit-255", "sh-says-transient", "sh-cpu-limit", "sh-kill-child", "sh-pipe", "says-ecc",
    "image-malformed", "image-not-in-registry", "image-without-shell", "sh-killed-from-outside", "sh-terminated-from-outside",
    "sh-first-process-killed", "sh-removed-from-outside", "sh-stopped", "sh-stopped-deaf", "sh-time-limit", "sh-before-command",
    "sh-before-command-missing"}
# The same of those that the platform makes (platform_cases.py), where no driver and no disk of the machine has to be stood in for.
PLATFORM_OF_ENGINES = {"port-taken", "preempted", "scaled-down", "ssh-barrier", "ssh-missing"}
