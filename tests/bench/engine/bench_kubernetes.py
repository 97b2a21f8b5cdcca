#!/usr/bin/env python3
"""How the Kubernetes engine does at scale: a real API server and etcd, and kwok in the place of the kubelets.

usage: bench_kubernetes.py [--nodes N] [--pods N] [--jobs N] [--without-jobs]

Prints how fast pods come to run and go, what skepd asks of the API server for each, what memory and processor time that costs it, and
how long it takes to adopt all of them after a kill; beside it, how fast the same cluster runs as many pods as Jobs of Kubernetes, with
its own job controller and its default scheduler. etcd writes to a folder of /tmp and without fsync, for both. The components are made by tests/system/kubernetes/build-components. What kubelets
do for logs is played: each asks once, and the answer is the last line of an empty log.

Variable: SKEPD.
"""
import argparse
import asyncio
import concurrent.futures
import os
import pathlib
import re
import ssl
import subprocess
import sys
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / folder) for folder in ("system", "system/server", "system/kubernetes")]
import cluster as api  # noqa: E402
from kwok import Kwok  # noqa: E402
import skepd as server  # noqa: E402
from task_ports import server_port  # noqa: E402
import waits  # noqa: E402
from process_use import cpu_s, status_kib  # noqa: E402

CPUS, GPUS = 64, 8
PATIENCE_S = 3600


class Kubelets:
    """One port at which every node's kubelet answers: each log is empty, and has ended."""

    ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\n. 0 0 ebcea7 \n"  # with its sum: init/log_line.h

    def __init__(self, directory):
        self.port = server_port()
        key, certificate = directory / "kubelets.key", directory / "kubelets.crt"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
                        "-subj", "/CN=kubelets"], check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", self.port, ssl=self.context))
        self.loop.run_forever()

    async def serve(self, reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(self.ANSWER)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            writer.close()


class Bench:
    def __init__(self, options):
        self.options = options
        self.cluster = api.Cluster()
        self.kwok = Kwok(self.cluster)
        self.kubelets = Kubelets(self.cluster.directory)
        self.skepd = None

    def __enter__(self):
        self.cluster.start("--disable-admission-plugins=TaintNodesByCondition,ServiceAccount", "--max-requests-inflight=2000")
        kubeconfig, _ = self.cluster.grant()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(self.node_make, range(self.options.nodes)))
        self.skepd = server.Skepd(os.environ["SKEPD"], {
            "engine": {"kind": "kubernetes", "kubernetes": {"kubeconfig": str(kubeconfig), "initImage": "registry.invalid/skep:1"}},
            "scheduling": {"policy": "spread", "portFirst": 15000, "portLast": 40000}})
        return self

    def __exit__(self, *_):
        if self.skepd:
            self.skepd.stop()
            self.skepd.remove()
        self.cluster.stop()

    def node_make(self, number):
        amounts = {"cpu": str(CPUS), "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(GPUS)}
        self.cluster.create("/api/v1/nodes", {
            "metadata": {"name": f"n{number:05}", "labels": {"nvidia.com/gpu.product": "V100"}},
            "status": {"capacity": amounts, "allocatable": amounts, "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                       "daemonEndpoints": {"kubeletEndpoint": {"Port": self.kubelets.port}},
                       "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}})

    # ---- what is read ----

    def requests(self):
        """What the API server has answered so far: {(verb, resource): count}; kwok patches and deletes pods as well."""
        found = {}
        for line in self.cluster.call("GET", "/metrics").splitlines():
            match = re.match(r'apiserver_request_total\{(.*)\} (\S+)$', line)
            if match:
                labels = dict(re.findall(r'(\w+)="([^"]*)"', match[1]))
                key = labels["verb"], labels["resource"] + ("/" + labels["subresource"] if labels["subresource"] else "")
                found[key] = found.get(key, 0) + float(match[2])
        return found

    def memory_mib(self):
        return status_kib(self.skepd.process, "VmRSS") / 1024

    def cpu_s(self):
        return cpu_s(self.skepd.process)

    def states(self):
        return [job["state"] for job in self.skepd.jobs()]

    def wait_states(self, state):
        waits.until(lambda: all(each == state for each in self.states()), lambda: f"{self.states()}\n{self.skepd.tail()}", PATIENCE_S)

    # ---- what is measured ----

    def start(self):
        begin = time.monotonic()
        self.skepd.start()
        if not self.skepd.token:
            self.skepd.login()
        return time.monotonic() - begin

    def adopted(self):
        """Seconds from the start of a skepd that was killed until it has all nodes and all pods."""
        self.skepd.kill()
        begin = time.monotonic()
        answered = self.start()
        waits.until(lambda: len([node for node in self.skepd.call("GET", "/api/v2/nodes?limit=50000")["data"] if node["state"] == "READY"])
                    == self.options.nodes, self.skepd.tail, PATIENCE_S)
        return answered, time.monotonic() - begin

    def submit(self):
        each = self.options.pods // self.options.jobs
        for number in range(self.options.jobs):
            job = server.job_file(f"j{number}", {"main": (each, "true", {})}, "registry.invalid/task:1", {})
            self.skepd.submit(job)

    def wait_running(self):
        """Until all pods are there, and kwok has told of each that it runs."""
        path = f"/api/v1/namespaces/{self.cluster.NAMESPACE}/pods?limit=1"

        def all_run():
            answer = self.cluster.call("GET", path)
            if len(answer["items"]) + answer["metadata"].get("remainingItemCount", 0) < self.options.pods:
                return False
            return not self.cluster.call("GET", f"{path}&fieldSelector=status.phase%21%3DRunning")["items"]

        waits.until(all_run, lambda: self.skepd.tail() + self.cluster.tail("apiserver"), PATIENCE_S)

    def run_jobs(self):
        """As many pods as Jobs of Kubernetes."""
        nodes, pods, jobs = self.options.nodes, self.options.pods, self.options.jobs
        each, space = pods // jobs, f"/apis/batch/v1/namespaces/{self.cluster.NAMESPACE}/jobs"
        self.cluster.start_controllers("--controllers=job-controller", "--kube-api-qps=5000", "--kube-api-burst=10000", "--concurrent-job-syncs=20")
        self.cluster.start_scheduler()
        pod = {"restartPolicy": "Never", "hostNetwork": True, "terminationGracePeriodSeconds": 30,
               "containers": [{"name": "task", "image": "registry.invalid/task:1", "command": ["true"],
                               "resources": {"limits": {"cpu": "1", "memory": "32Mi"}}}]}
        before, begin = self.requests(), time.monotonic()
        schedulers = [self.cluster.processes[name] for name in ("controllers", "scheduler")]
        for number in range(jobs):
            self.cluster.create(space, {"metadata": {"name": f"k{number}"}, "spec": {
                "parallelism": each, "completions": each, "template": {"spec": pod}}})
        self.wait_running()
        passed, cpu = time.monotonic() - begin, sum(cpu_s(process) for process in schedulers)
        print(f"as Jobs: submit to Running         {passed:8.1f} s, {pods / passed:.0f} pods/s", flush=True)
        print(f"as Jobs: processor time            {cpu:8.1f} s, {cpu / pods * 1000:.2f} ms a pod; of the controllers and the scheduler")
        print(f"as Jobs: memory of both            {sum(status_kib(process, 'VmRSS') for process in schedulers) / 1024:8.1f} MiB")
        after = self.requests()
        asked = {key: after[key] - before.get(key, 0) for key in after if after[key] - before.get(key, 0) >= pods / 2}
        print("as Jobs: requests                  " + ", ".join(f"{verb} {what} {count / pods:.2f}" for (verb, what), count in sorted(asked.items())) + " a pod")

    def run(self):
        nodes, pods = self.options.nodes, self.options.pods
        print(f"{nodes} nodes, {nodes * GPUS} GPUs, {pods} pods in {self.options.jobs} jobs; load average {os.getloadavg()[0]:.1f}", flush=True)
        print(f"start, until the API is served     {self.start():8.1f} s")
        waits.until(lambda: len(self.skepd.call("GET", "/api/v2/nodes?limit=50000")["data"]) == nodes, self.skepd.tail, PATIENCE_S)
        self.kwok.start()
        before, memory, cpu, begin = self.requests(), self.memory_mib(), self.cpu_s(), time.monotonic()
        self.submit()
        self.wait_running()
        self.wait_states("RUNNING")
        passed = time.monotonic() - begin
        print(f"submit to Running                  {passed:8.1f} s, {pods / passed:.0f} pods/s", flush=True)
        print(f"skepd's processor time             {self.cpu_s() - cpu:8.1f} s, {(self.cpu_s() - cpu) / pods * 1000:.2f} ms a pod")
        print(f"skepd's memory                     {self.memory_mib():8.1f} MiB, {(self.memory_mib() - memory) / pods * 10000:.1f} for 10,000 pods;"
              f" at most {status_kib(self.skepd.process, 'VmHWM') / 1024:.1f} MiB")
        answered, all_known = self.adopted()
        print(f"adopted after a kill               {all_known:8.1f} s; the API was served after {answered:.1f} s")
        self.wait_states("RUNNING")
        begin = time.monotonic()
        for number in range(self.options.jobs):
            self.skepd.act(f"admin~j{number}", "STOP")
        self.wait_states("STOPPED")
        self.cluster.wait_pods(0, PATIENCE_S)
        passed = time.monotonic() - begin
        print(f"stop until all have gone           {passed:8.1f} s, {pods / passed:.0f} pods/s")
        after = self.requests()
        for key in (("POST", "pods"), ("POST", "secrets"), ("DELETE", "pods"), ("DELETE", "secrets"), ("GET", "pods"), ("CONNECT", "pods/log"),
                    ("LIST", "pods"), ("LIST", "nodes")):
            count = after.get(key, 0) - before.get(key, 0)
            print(f"requests {key[0] + ' ' + key[1]:25} {count:8.0f}, {count / pods:.2f} a pod" + ("; kwok's one a pod among them" if key == ("DELETE", "pods") else ""), flush=True)
        if not self.options.without_jobs:
            self.run_jobs()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="\n".join(__doc__.splitlines()[4:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000, help="how many nodes (%(default)s)")
    parser.add_argument("--pods", type=int, default=4000, help="how many pods at a time (%(default)s)")
    parser.add_argument("--jobs", type=int, default=20, help="of how many jobs (%(default)s)")
    parser.add_argument("--without-jobs", action="store_true", help="skepd alone, not Jobs of Kubernetes beside it")
    options = parser.parse_args()
    api.need("kube-apiserver", "kwok", *([] if options.without_jobs else ["kube-controller-manager", "kube-scheduler"]))
    with Bench(options) as bench:
        bench.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
