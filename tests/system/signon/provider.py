"""The provider of provider.mjs, in a folder of its own; ended by its own process id."""
import http.client
import json
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = pathlib.Path(os.environ.get("SIGNON_FOLDER", "/tmp")) / "signon-provider"
SECRET = "a secret of ours, which is long enough: 0123456789"


def missing():
    """Why it cannot run, or None."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            return f"{program} is not installed (tools/install-deps --test)"
    return None


def install():
    """Its packages, as the lock file names them; once."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    lock = (HERE / "package-lock.json").read_text()
    mark = FOLDER / "installed"
    if not mark.exists() or mark.read_text() != lock:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, FOLDER / name)
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=FOLDER, capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"npm ci: {done.stdout}{done.stderr}")
        mark.write_text(lock)
    shutil.copy(HERE / "provider.mjs", FOLDER / "provider.mjs")


class Provider:
    def __init__(self, redirect_uri):
        install()
        self.log = open(FOLDER / "provider.log", "ab")
        self.process = subprocess.Popen(["node", "provider.mjs", redirect_uri], cwd=FOLDER, stdout=subprocess.PIPE, stderr=self.log,
                                        text=True)
        line = self.process.stdout.readline()
        if not line.startswith("ready "):
            raise AssertionError("the provider did not start: " + (FOLDER / "provider.log").read_text())
        self.port = int(line.split()[1])
        self.issuer = f"http://127.0.0.1:{self.port}"

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
