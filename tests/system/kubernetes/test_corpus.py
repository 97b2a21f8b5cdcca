"""Failing programs as pods that real kubelets run: each end is called what it is on the local engine (tests/system/corpus).

    test_corpus.py MAKE-IMAGE [--all | CASE…]      the cases whose end an engine has a part in; all that pods can have; or these

Prints the confusion table; exit code 1 when anything was judged wrongly, 77 to skip. SKEPD, SKEP and SKEP_INIT name the programs.
Covers: src/engine/kubernetes/pod_object.c, src/engine/kubernetes/tasks.c
"""
import contextlib
import ctypes
import json
import os
import socket
import sys
import threading

import cases
import image
import installation
import platform_cases
import run
import waits

FIRST_PORT = 15000
# of a machine's files no pod can be made; and a registry that is away is waited for, for five minutes
LEFT_OUT = {"image-missing-directory", "image-missing-archive", "image-broken-archive", "image-registry-away"}
TOO_LONG = {"ssh-barrier"}  # a minute, for what no engine has a part in
CLONE_NEWNET = 0x40000000


class OnNodes:
    """A world whose engine is the cluster."""

    def configure_for(self, place, scheduling=None, **kubernetes):
        self.place = place
        self.local = True  # its jobs are ended with it
        config = place.configuration({"killGraceSeconds": 2, "blameAvoid": 100000, "blameCordon": 100000, "portFirst": FIRST_PORT} | (scheduling or {}),
                                     **kubernetes)
        (self.folder / "skepd.yaml").write_text(json.dumps(config))

    def __exit__(self, *ended):
        if ended[0]:
            print((self.folder / "skepd.log").read_text(errors="replace")[-6000:], self.place.trouble())
        super().__exit__(*ended)


class Corpus(OnNodes, run.Corpus):
    LIMIT_S = 900
    place = None

    def __init__(self, wanted):
        super().__init__(wanted, local=False)

    def configuration_write(self):
        self.configure_for(Corpus.place)

    def make_images(self):
        super().make_images()
        for name in ("corpus", "empty"):
            installation.push_folder(self.place.nodes.images, self.images / name, f"{name}:1")

    def image_of(self, case):
        address = self.place.nodes.images.address
        known = {"": f"{address}/corpus:1", "dir:IMAGES/empty": f"{address}/empty:1"}
        return known.get(case.image) or case.image.replace("REGISTRY", address)

    def remove(self, case, _):
        """As `kubectl delete pod` does."""
        the = self.place.cluster
        for pod, item in the.pods().items():
            if item["metadata"]["annotations"]["skep.internal/job"] == f"admin~{case.name}":
                the.call("DELETE", f"/api/v1/namespaces/{the.NAMESPACE}/pods/{pod}")


class Platform(OnNodes, platform_cases.PlatformWorld):
    """One of the nodes has four GPUs, as its label says."""

    def __init__(self):
        super().__init__()
        self.image = Corpus.place.nodes.images.name("skep")
        self.configure_for(Corpus.place, {"preemptionGraceSeconds": 2, "policy": "hived"}, gpus="env", instance="platform")

    @contextlib.contextmanager
    def first_port_taken(self):
        """On each node."""
        taken = []

        def take(space):
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/run/netns/{space}") as file:
                assert libc.setns(file.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            taken.append(socket.create_server(("0.0.0.0", FIRST_PORT)))

        for node in self.place.nodes:  # a thread enters a network alone, and its sockets stay there
            thread = threading.Thread(target=take, args=(node.group,))
            thread.start()
            thread.join()
        assert len(taken) == len(self.place.nodes.nodes)
        try:
            yield
        finally:
            for each in taken:
                each.close()


# The node's runtime may tell kubelet too late that memory has run out: then it is skep-init's word alone that says so
OF_MEMORY = {"py-oom", "py-oom-of-child", "py-oom-of-shell-child", "c-oom"}


def words_of(words):
    """Keeps skep-init's last word on each of these tasks."""
    def changed(pod):
        job = pod["metadata"].get("annotations", {}).get("skep.internal/job", "").partition("~")[2]
        for status in pod["status"].get("containerStatuses", ()):
            if text := status["state"].get("terminated", {}).get("message"):
                words[job] = text
    return changed


WORLDS = ((Platform, tuple(case for world, those in platform_cases.WORLDS for case in those if case.name in cases.PLATFORM_OF_ENGINES)),)


def main(names, make_image):
    wanted = [case for case in cases.CASES if case.name not in LEFT_OUT and (
        names == ["--all"] or case.name in (names or cases.OF_ENGINES))]
    Corpus.place = place = installation.Installation([os.environ[name] for name in ("SKEPD", "SKEP", "SKEP_INIT")] + [make_image], 3,
                                                     {"podPidsLimit": 150})
    rows, wrong = [], []
    try:
        place.start_nodes()
        place.cluster.merge("/api/v1/nodes/n1", {"metadata": {"labels": {"nvidia.com/gpu.count": "4"}}})
        words, said = {}, {case.name for case in wanted} & OF_MEMORY
        with place.cluster.changes(f"/api/v1/namespaces/{place.cluster.NAMESPACE}/pods", words_of(words)):
            making, running = run.programs(wanted, rows, wrong, Corpus) if wanted else (0, 0)
            waits.until(lambda: said <= words.keys(), lambda: f"skep-init has said nothing of {said - words.keys()}")
        wrong += [f"{name}: skep-init does not say that its limit was reached: {words[name]}" for name in sorted(said) if "memory limit" not in words[name]]
        of_platform = cases.PLATFORM_OF_ENGINES if names == ["--all"] else names or cases.PLATFORM_OF_ENGINES - TOO_LONG
        others = platform_cases.run(of_platform, run.judged, WORLDS)
    finally:
        place.stop()
    for case, result in others:
        run.told(case, result, wrong)
    rows += others
    run.confusion(rows)
    print(f"\n{len(rows)} ends, {len(rows) - len(wrong)} judged rightly; {making:.0f} s to make the images and start, {running:.0f} s to run the programs")
    for line in wrong:
        print("WRONG", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    reason = image.why_not()
    if reason:
        print("skip:", reason)
        sys.exit(77)
    sys.exit(main(sys.argv[2:], sys.argv[1]))
