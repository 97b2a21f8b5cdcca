"""Real failing programs in real containers: is each end called what it is known to be, and does what must follow, follow?

    run.py [CASE…]     all cases, or these; prints the confusion table; exit code 1 when anything was judged wrongly, 77 to skip
"""
import collections
import http.server
import json
import os
import random
import signal
import sys
import threading
import time

import image
import platform_cases
import processes
import waits
import world
from cases import ALWAYS, BUDGET, CASES, NEVER

CONFIG = """
scheduling: {{killGraceSeconds: 2, blameAvoid: 100000, blameCordon: 100000}}
engine:
  kind: local
  initPath: {init}
  images: {{localRoots: [{images}], pullTries: 1}}
  devices: {{simulatedGpus: 1, simulatedGpuType: SIM}}
  cpu: 12
  memoryMB: 6144
  pidsMax: 150
"""
UNENDED = "WAITING,RUNNING,STOPPING"


class EmptyRegistry(http.server.BaseHTTPRequestHandler):
    """A registry that has no image."""

    def do_GET(self):
        is_base = self.path == "/v2/"
        body = b"{}" if is_base else b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}'
        self.send_response(200 if is_base else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


class Corpus(world.World):
    LIMIT_S = waits.PATIENCE_S  # within which some program ends, as long as there are any

    def __init__(self, cases, local=True):
        super().__init__(local=local)
        self.cases = cases
        self.number = random.randrange(10**8, 10**9)
        self.configuration_write()
        self.registry = http.server.ThreadingHTTPServer(("127.0.0.1", 0), EmptyRegistry)
        threading.Thread(target=self.registry.serve_forever, daemon=True).start()

    def configuration_write(self):
        (self.folder / "skepd.yaml").write_text(CONFIG.format(init=os.environ["SKEP_INIT"], images=self.images))

    def make_image(self):
        pass  # when the cases are known

    def __enter__(self):
        self.make_images()
        return super().__enter__()

    def make_images(self):
        self.images.mkdir()
        self.images.chmod(0o755)
        self.folder.chmod(0o755)
        image.make(self.images / "corpus", self.cases)
        (self.images / "empty").mkdir()
        (self.images / "empty/etc").mkdir()
        (self.images / "broken.tar").write_bytes(b"this is no archive\n" * 100)

    def __exit__(self, *_):
        super().__exit__()
        self.registry.shutdown()
        self.registry.server_close()

    # ---- submission ----

    def command(self, case):
        if case.kind == "job":
            return case.text.replace("TOKEN", str(self.number))
        if case.kind == "py":
            program = f"/corpus/{case.name}.py"
            return case.run.replace("PROGRAM", program) or f"python3 {program}"
        return case.run or f"/corpus/{case.name}"

    def image_of(self, case):
        port = self.registry.server_address[1]
        text = case.image or "dir:IMAGES/corpus"
        return text.replace("IMAGES", str(self.images)).replace("REGISTRY", f"127.0.0.1:{port}")

    def submit(self, case):
        extra = case.extra if "jobRetryCount" in case.extra else case.extra + "jobRetryCount: 1\n"
        text = (f"protocolVersion: 2\nname: {case.name}\ntype: job\n{extra}prerequisites:\n"
                f"  - {{name: image, type: dockerimage, uri: {json.dumps(self.image_of(case))}}}\ntaskRoles:\n  worker:\n"
                f"    instances: 1\n    dockerImage: image\n"
                f"    resourcePerInstance: {{cpu: 1, memoryMB: {case.memory}, gpu: {case.gpu}}}\n{case.role}"
                f"    commands:\n      - {json.dumps(self.command(case))}\n")
        status, answer = self.ask("POST", "/api/v2/jobs", text.encode(), headers={"Content-Type": "text/yaml"})[::2]
        return None if status == 202 else f"refused: {answer.decode()}"

    # ---- what the runner does while a case runs ----

    def act(self, case):
        if case.action == "stop":
            self.skep("stop", case.name)
            return
        process = processes.find(self.command(case).split()[-1])
        if case.action == "kill":
            os.kill(process, signal.SIGKILL)
        elif case.action == "terminate":
            os.kill(process, signal.SIGTERM)
        elif case.action == "kill-init":
            os.kill(processes.monitor(process)[0], signal.SIGKILL)
        elif case.action == "remove":
            self.remove(case, process)

    def remove(self, _, process):
        """The container is gone, and what watched it."""
        first, conmon = processes.monitor(process)
        os.kill(conmon, signal.SIGKILL)
        os.kill(first, signal.SIGKILL)

    def attend(self, case):
        """Acts each time that the program has written "ready"; stops what is always tried again."""
        times = 0
        with processes.follow(self, "logs", "--follow", case.name) as log:
            for line in log.stdout:
                if line != "ready\n":
                    continue
                times += 1
                if case.retries == ALWAYS and times > 1:
                    self.skep("stop", case.name)
                else:
                    self.act(case)

    def attend_retry(self, case):
        with processes.follow(self, "events", "--follow", case.name) as story:
            for line in story.stdout:
                if "not counted" in line:
                    self.skep("stop", case.name)


def judged(the, case):
    """What the job's first attempt was judged, and what followed."""
    _, job = the.json("GET", f"/api/v2/jobs/admin~{case.name}")
    _, first = the.json("GET", f"/api/v2/jobs/admin~{case.name}/job-attempts/0")
    details = job["jobStatus"]["retryDetails"]
    retries = NEVER
    if details["user"]:
        retries = BUDGET if details["user"] == 1 else f"{details['user']} times"
    elif details["platform"] or details["resource"]:
        retries = ALWAYS
    text = first["exitDiagnostics"]
    if case.exit_code is not None and f"exit code {case.exit_code}" not in text:
        text += f" [not told: exit code {case.exit_code}]"
        retries += ", wrong words"
    return first["exitCode"], first["exitPhrase"], retries, text


def wait_plain(corpus, names):
    """Until all these jobs have ended."""
    while names:
        done = corpus.skep("wait", "--quiet", "--timeout", corpus.LIMIT_S, *names, timeout=2 * corpus.LIMIT_S)
        left = names & {name.removeprefix("admin~") for name in corpus.names_of(UNENDED)}
        complaints = [line for line in done.stderr.splitlines() if "the time is over" not in line]
        if complaints or len(left) == len(names):
            print(done.stderr, corpus.skep("list", "--state", UNENDED).stdout)
            raise AssertionError(f"none of {sorted(left)} has ended within {corpus.LIMIT_S} s")
        names = left


def wait_for(corpus, cases):
    plain = [case for case in cases if not case.action and case.retries != ALWAYS]
    broken = []

    def attend(case):
        try:
            (corpus.attend if case.action else corpus.attend_retry)(case)
        except Exception as error:  # the job must end all the same
            broken.append(f"{case.name}: {error}")
            corpus.skep("stop", case.name)

    threads = [threading.Thread(target=attend, args=(case,)) for case in cases if case not in plain]
    for thread in threads:
        thread.start()
    wait_plain(corpus, {case.name for case in plain})
    for thread in threads:
        thread.join(corpus.LIMIT_S)
        assert not thread.is_alive(), "a job that is attended to did not end"
    return broken


def confusion(rows):
    """Known × judged, by code; only what occurs."""
    names = {}
    table = collections.Counter()
    for case, judged in rows:
        table[case.code, judged[0]] += 1
        names[judged[0]] = judged[1] or ""
    print(f"\n{'known to be':>11}  {'judged as':>9}  programs  name")
    for (known, code), count in sorted(table.items(), key=lambda item: (item[0][0], str(item[0][1]))):
        print(f"{known:>11}  {code!s:>9}  {count:>8}  {names[code]}{'' if known == code else '   <-- WRONG'}")


def told(case, result, wrong):
    """One line; true when it was judged rightly."""
    is_right = result[0] == case.code and result[2] == case.retries
    print(f"{'ok  ' if is_right else 'FAIL'} {case.name}: {result[0]} {result[1]}, retried {result[2]}: {result[3]}")
    if not is_right:
        wrong.append(f"{case.name}: known to be {case.code}, retried {case.retries}; judged {result[0]}, retried {result[2]}")
    return is_right


def programs(cases, rows, wrong, make=Corpus):
    """Programs that fail: all at once in one world. The seconds to make it, and to run them."""
    begin = time.monotonic()
    with make(cases) as corpus:
        started = time.monotonic()
        refused = {case.name: text for case in cases if (text := corpus.submit(case))}
        for name, text in refused.items():
            wrong.append(f"{name}: {text}")
        running = [case for case in cases if case.name not in refused]
        wrong += wait_for(corpus, running)
        for case in running:
            result = judged(corpus, case)
            rows.append((case, result))
            if not told(case, result, wrong):
                print(corpus.skep("logs", "--tail", "8", case.name).stdout)
        return started - begin, time.monotonic() - started


def main(names):
    cases = [case for case in CASES if not names or case.name in names]
    assert len({case.name for case in cases}) == len(cases)
    rows, wrong = [], []
    making, running = programs(cases, rows, wrong) if cases else (0, 0)
    begin = time.monotonic()
    others = platform_cases.run(names, judged)
    for case, result in others:
        told(case, result, wrong)
    rows += others
    confusion(rows)
    print(f"\n{len(cases)} programs and {len(others)} ends that others made, {len(rows) - len(wrong)} judged rightly; {making:.0f} s to make "
          f"the image and start, {running:.0f} s to run the programs, {time.monotonic() - begin:.0f} s for the others")
    for line in wrong:
        print("WRONG", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    reason = world.can_run_containers() or image.why_not()
    if reason:
        print("skip:", reason)
        sys.exit(77)
    sys.exit(main(sys.argv[1:]))
