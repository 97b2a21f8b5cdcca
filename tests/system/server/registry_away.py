"""A registry that is down while a job starts: the job waits, its story says how to go on at once, and START does so.

    registry_away.py SKEPD
"""
import contextlib
import json
import pathlib
import subprocess
import sys

import skepd

PAUSE_S = 3600  # nobody waits for its end


def story_until(server, job, reason):
    """The story of a job up to an event with this reason."""
    with server.stream(f"/api/v2/jobs/{job}/events?follow=true", 60) as story:
        for line in story:
            if f'"{reason}"'.encode() in line:
                return line.decode()
    raise AssertionError(f"the story of {job} ends without {reason}\n{server.tail()}")


@contextlib.contextmanager
def registry(folder, port):
    config = folder / "registry.yml"
    config.write_text(json.dumps({"version": 0.1, "storage": {"filesystem": {"rootdirectory": str(folder / "registry")}},
                                  "http": {"addr": f"127.0.0.1:{port}"}}))
    log = folder / "registry.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(["docker-registry", "serve", config], stdout=subprocess.DEVNULL, stderr=output)
    try:
        skepd.waits.file_says(log, "listening on", process=process)
        yield
    finally:
        process.kill()
        process.wait()


def run(server):
    server.start()
    server.login()
    port = skepd.server_port()
    image = f"127.0.0.1:{port}/team/app:1"
    server.submit(skepd.job_file("away", {"main": (1, "true", {"minSucceededInstances": 1})}, image))
    told = story_until(server, "admin~away", "BackingOff")
    assert "-1210" in told and "skep start" in told, told
    layout = skepd.busybox_image(server.directory)
    with registry(server.directory, port):
        subprocess.run(["skopeo", "--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false", layout, f"docker://{image}"],
                       check=True)
        server.act("admin~away", "START")
        assert server.wait_final(["admin~away"], 60)["admin~away"] == "SUCCEEDED"
    try:
        server.act("admin~away", "START")
    except skepd.Refused as refused:
        assert refused.status == 409, refused
    else:
        raise AssertionError("a job that has ended by itself was started")


def main():
    if not skepd.can_run_containers() or not skepd.shutil.which("docker-registry"):
        print("skipped: this machine cannot run containers, or has no docker-registry", file=sys.stderr)
        sys.exit(77)
    init = pathlib.Path(sys.argv[1]).resolve().parents[1] / "init/skep-init"
    server = skepd.Skepd(sys.argv[1], {
        "engine": {"kind": "local", "initPath": str(init), "images": {"pullTries": 1}},
        "scheduling": {"retryPauseFirstSeconds": PAUSE_S, "retryPauseMaxSeconds": PAUSE_S}})
    try:
        run(server)
    finally:
        server.stop()
        server.remove()


main()
