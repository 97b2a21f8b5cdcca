"""Hostile jobs beside a neighbour's: does each fail in its aim, and does the neighbour run to its normal end?

    run.py [NAME…]     all attacks, or these; exit code 1 when one got what it must not get, 77 to skip

SKEP_TEST_RUNTIME: crun or runc instead of the first that works.
"""
import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "corpus"))
import attacks  # noqa: E402
import image  # noqa: E402
import processes  # noqa: E402
import world  # noqa: E402

CONFIG = """
scheduling: {{killGraceSeconds: 2}}
engine:
  kind: local
  initPath: {init}
  {runtime}
  images: {{localRoots: [{images}]}}
  cpu: 32
  memoryMB: 8192
  pidsMax: 300
"""
LIMIT_S = 120

# Two tasks that talk to each other all the time. They end when each has had its say and the first one has read a line.
NEIGHBOUR = '''
import os, socket, sys
me = int(os.environ["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"])
address, port = os.environ["PAI_HOST_IP_worker_0"], int(os.environ["PAI_PORT_LIST_worker_0_talk"])
if me == 0:
    listener = socket.create_server(("", port))
    other, _ = listener.accept()
else:
    while True:
        try:
            other = socket.create_connection((address, port))
            break
        except ConnectionRefusedError:
            continue
stream = other.makefile("rw")
print("talking", flush=True)
rounds = 0
while True:
    is_over = me == 0 and os.path.exists("/skep/run/over")
    if me == 0:
        stream.write("over\\n" if is_over else f"{rounds}\\n")
        stream.flush()
    if is_over or (line := stream.readline()) == "over\\n":
        break
    assert line == f"{rounds}\\n", line
    if me == 1:
        stream.write(line)
        stream.flush()
    rounds += 1
print("rounds", rounds, flush=True)
'''


class Hostile(world.World):
    def __init__(self, cases):
        super().__init__(local=True)
        self.cases = cases
        runtime = os.environ.get("SKEP_TEST_RUNTIME")
        runtime = f"runtime: {shutil.which(runtime)}" if runtime else ""
        (self.folder / "skepd.yaml").write_text(CONFIG.format(init=os.environ["SKEP_INIT"], images=self.images, runtime=runtime))

    def make_image(self):
        pass  # when the attacks are known

    def __enter__(self):
        self.images.mkdir()
        for path in (self.folder, self.images):
            path.chmod(0o755)
        image.make(self.images / "hostile", [*self.cases, attacks.Attack("neighbour", NEIGHBOUR)])
        return super().__enter__()

    def submit(self, name, command, instances=1, ports=""):
        text = (f"protocolVersion: 2\nname: {name}\ntype: job\njobRetryCount: 0\nprerequisites:\n"
                f"  - {{name: image, type: dockerimage, uri: {json.dumps(f'dir:{self.images}/hostile')}}}\ntaskRoles:\n  worker:\n"
                f"    instances: {instances}\n    dockerImage: image\n"
                f"    completion: {{minFailedInstances: 1, minSucceededInstances: {instances}}}\n"
                f"    resourcePerInstance: {{cpu: 1, memoryMB: 128, gpu: 0{ports}}}\n    commands:\n      - {json.dumps(command)}\n")
        done = self.skep("submit", self.file(text, f"{name}.yaml"))
        assert done.returncode == 0, done.stderr

    def logs(self, name, index=0):
        return self.skep("logs", "--role", "worker", "--index", index, name).stdout

    def neighbour_begin(self):
        self.submit("neighbour", "python3 /corpus/neighbour.py", instances=2, ports=", ports: {talk: 1}")
        with processes.follow(self, "logs", "--follow", "neighbour") as log:
            processes.until(log, "^talking$")

    def neighbour_end(self):
        """By its normal end: a file in the folder of its first task, which only the machine's root and the task can write."""
        folder = next(path for path in (self.folder / "data/engine/containers").iterdir()
                      if json.loads((path / "state").read_text())["job"] == "admin~neighbour"
                      and json.loads((path / "state").read_text())["index"] == 0)
        (folder / "run/over").touch()
        self.skep("wait", "--quiet", "--timeout", LIMIT_S, "neighbour", timeout=LIMIT_S + 30)


def judge(the, case):
    """What is wrong with the end of an attack, or None."""
    log = the.logs(case.name)
    state = the.json("GET", f"/api/v2/jobs/admin~{case.name}")[1]["jobStatus"]["state"]
    if "GOT" in log:
        return log
    if "tried" not in log.splitlines():
        return f"did not try ({state}):\n{log}"
    return None


def main(names):
    cases = [case for case in attacks.ATTACKS if not names or case.name in names]
    wrong = []
    with Hostile(cases) as the:
        the.neighbour_begin()
        for case in cases:
            the.submit(case.name, f"python3 /corpus/{case.name}.py")
        done = the.skep("wait", "--quiet", "--timeout", LIMIT_S, *[case.name for case in cases], timeout=LIMIT_S + 30)
        print(done.stdout, done.stderr)
        for case in cases:
            problem = judge(the, case)
            print("ok  " if problem is None else "FAIL", case.name, problem or "")
            wrong += [case.name] if problem else []
        the.neighbour_end()
        job = the.json("GET", "/api/v2/jobs/admin~neighbour")[1]
        print("neighbour:", job["jobStatus"]["state"], [the.logs("neighbour", index).split("\n")[-2:] for index in (0, 1)])
        if job["jobStatus"]["state"] != "SUCCEEDED" or job["jobStatus"]["retries"] != 0:
            wrong.append("neighbour")
    return 1 if wrong else 0


if __name__ == "__main__":
    reason = world.can_run_containers() or image.why_not()
    if reason:
        print("skip:", reason)
        sys.exit(77)
    sys.exit(main(sys.argv[1:]))
