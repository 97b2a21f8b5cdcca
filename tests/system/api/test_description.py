"""schemathesis drives a skepd by what docs/openapi.yaml says of it: no answer of 500 or more, and none that is not described.

tools/install-deps --test puts it into a virtual environment of its own; SKEP_SCHEMATHESIS names the program where it is elsewhere. The
requests are the same each time; a slow machine sends fewer of them.
"""
import json
import os
import pathlib
import subprocess
import sys

import waits
import world

PROGRAM = os.environ.get("SKEP_SCHEMATHESIS", "/usr/local/lib/skep-test/schemathesis/bin/st")
DESCRIPTION = pathlib.Path(__file__).resolve().parents[3] / "docs/openapi.yaml"
EXAMPLES, LIMIT_S = 6, 60
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# They would take away the token that all the others need; the last is a stream without an end.
LEFT_OUT = r"(/logout|/tokens?/\{token\}|/api/v2/changes)$"


def main():
    if not os.access(PROGRAM, os.X_OK):
        print(f"skipped: there is no {PROGRAM}")
        return 77
    with world.World(run_ms=300) as server:
        server.skep("submit", server.file(world.job("fine", ["true"])))
        report = server.folder / "report.json"
        # a proxy would be asked for this machine's own address
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" and not name.lower().endswith("_proxy")}
        done = subprocess.run(
            [PROGRAM, "run", DESCRIPTION, "--url", f"http://127.0.0.1:{server.port}", "-H", f"Authorization: Bearer {server.token()}",
             "--phases", "fuzzing", "--max-examples", str(EXAMPLES), "--max-time", str(LIMIT_S), "--max-failures", "100", "--workers", "2",
             "--checks", CHECKS, "--exclude-path-regex", LEFT_OUT, "--no-shrink", "--generation-deterministic", "--request-timeout", str(waits.PATIENCE_S),
             "--suppress-health-check", "all",  # how long the generation of data takes is the machine's matter
             "--report", "json", "--report-json-path", report, "--no-color"],
            cwd=server.folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S + 2 * waits.PATIENCE_S)  # its modules take long to load, too
        result = json.loads(report.read_text())
        generated = result["test_cases"]["generated"]
        print(f"{generated} requests in {result['running_time']:.0f} s")
        if done.returncode or not generated:
            print(done.stdout[-20000:], done.stderr[-2000:])
            return 1
        assert server.json("GET", "/api/v2/tokens/check")[0] == 200, "the token was lost on the way"
    return 0


if __name__ == "__main__":
    sys.exit(main())
