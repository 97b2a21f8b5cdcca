"""The provider of provider.mjs, in a folder of its own; ended by its own process id."""
import fcntl
import http.client
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = pathlib.Path(os.environ.get("SIGNON_FOLDER", "/tmp")) / "signon-provider"
SECRET = "a secret of ours, which is long enough: 0123456789"


def missing():
    """Why it cannot run, or None."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            return f"{program} is not installed (tools/install-deps --test)"
    return None


def put(name):
    """A file of ours beside the packages: replaced at once, as the provider of another test may be reading it."""
    beside = FOLDER / f"{name}.{os.getpid()}"
    shutil.copy(HERE / name, beside)
    beside.replace(FOLDER / name)


def install():
    """Its packages, as the lock file names them: once, however many tests begin at the same time."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = (HERE / "package-lock.json").read_text()
    mark = FOLDER / "installed"
    with open(FOLDER / "lock", "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text() != wanted:
            for name in ("package.json", "package-lock.json"):
                put(name)
            mark.unlink(missing_ok=True)  # what is installed changes from here on
            done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=FOLDER, capture_output=True, text=True)
            if done.returncode:
                raise AssertionError(f"npm ci in {FOLDER} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
            mark.write_text(wanted)
        put("provider.mjs")


class Provider:
    def __init__(self, redirect_uri):
        install()
        self.log = tempfile.NamedTemporaryFile(prefix="skep-provider-", suffix=".log")
        self.process = subprocess.Popen(["node", "provider.mjs", redirect_uri], cwd=FOLDER, stdout=subprocess.PIPE, stderr=self.log,
                                        text=True)
        line = self.process.stdout.readline()
        if not line.startswith("ready "):
            raise AssertionError(f"the provider did not start, but ended with {self.process.wait(60)}:\n{line}{self.said()}")
        self.port = int(line.split()[1])
        self.issuer = f"http://127.0.0.1:{self.port}"

    def said(self):
        """The end of what it complained about."""
        return pathlib.Path(self.log.name).read_text(errors="replace")[-4000:]

    def control(self, **changes):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", "/control", json.dumps(changes))
        reply = json.loads(connection.getresponse().read())
        connection.close()
        return reply["requests"]

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(60)
            self.process.stdout.close()
            self.log.close()
        self.process = None
