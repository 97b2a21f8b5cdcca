#!/usr/bin/env python3
"""How the Kubernetes engine does at scale: a real API server and etcd, and kwok in the place of the kubelets.

usage: bench_kubernetes.py [--nodes N] [--pods N] [--jobs N] [--beside N] [--follow] [--peers]

Prints how fast pods come to run and go, what skepd asks of the API server for each, what memory and processor time that costs it and
every other program, and how long it takes to adopt all of them after a kill; beside it, how fast the same cluster runs as many pods as
Jobs of Kubernetes, with its own job controller and its default scheduler. With --beside a smaller number is run in both ways, as the
default scheduler takes long; 0: none. etcd writes to a folder of /tmp and without fsync, for both. The components are made by
tests/system/kubernetes/build-components; where it has made an etcd, lists are the begin of a watch. What kubelets do for logs is
played: each is asked for once, and the answer is the last line of an empty log; with --follow it goes on for as long as its pod runs,
as that of a real one does. With --peers pods have addresses of their own (network: pod), and each task is told those of its job by a
program in its pod, which is played as well; the API server hands its WebSocket on as it is, which those before 1.35 translate to SPDY
otherwise. What has become of pods is told by one watch of their names,
so that the measuring asks nothing of the API server.

Variable: SKEPD.
"""
import argparse
import asyncio
import base64
import concurrent.futures
import contextlib
import hashlib
import http.client
import json
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

CPUS, GPUS = 64, 8  # of a node; a pod has one of each
STEP = 5000  # pods, after which it says how far it is
PATIENCE_S = 3600


class Kubelets:
    """One port at which every node's kubelet answers: each log is empty, and has ended, or `follow`s its pod. With
    `peers` programs in pods end well, and `told` counts those that were told where the peers of their task are."""

    HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    ALIVE = b"2\r\n#\n\r\n"  # no line of skep-init's: it is passed over
    END = b"e\r\n. 0 0 ebcea7 \n\r\n0\r\n\r\n"
    ALIVE_S = 10
    ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\n. 0 0 ebcea7 \n"  # with its sum: init/log_line.h

    def __init__(self, directory, follow, peers):
        self.port, self.follow, self.peers, self.ends = server_port(), follow, peers, {}
        self.told, self.changed = 0, threading.Condition()
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

    def ended(self, pod):
        self.loop.call_soon_threadsafe(lambda: self.ends.pop(pod, asyncio.Event()).set())

    async def log(self, pod, writer):
        end = self.ends.setdefault(pod, asyncio.Event())
        writer.write(self.HEAD)
        while not end.is_set():
            writer.write(self.ALIVE)
            await writer.drain()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(end.wait(), self.ALIVE_S)
        writer.write(self.END)

    @staticmethod
    async def message(reader):
        """Of one input; b"": of something else."""
        head = await reader.readexactly(2)
        length = head[1] & 127
        if length > 125:
            length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8), "big")
        mask, payload = await reader.readexactly(4), await reader.readexactly(length)
        masks = (mask * (length // 4 + 1))[:length]
        payload = (int.from_bytes(payload, "big") ^ int.from_bytes(masks, "big")).to_bytes(length, "big")
        return payload[1:] if payload[:1] == b"\0" else b""

    async def program(self, request, reader, writer):
        key = re.search(rb"sec-websocket-key: *(\S+)", request, re.IGNORECASE)[1]
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept
                     + b"\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n")
        is_list, text = b"command=addresses" in request, b""
        while is_list and not text.endswith(b"\n.\n"):
            text += await self.message(reader)
        end = b'\3{"status":"Success"}'
        writer.write(bytes([0x82, len(end)]) + end + b"\x88\2\3\xe8")
        await writer.drain()
        writer.close()
        with self.changed:
            self.told += is_list
            self.changed.notify_all()

    def wait_told(self, count, what):
        with self.changed:
            assert self.changed.wait_for(lambda: self.told >= count, PATIENCE_S), f"{self.told} tasks were told, not {count}\n{what()}"

    async def serve(self, reader, writer):
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                if request.split(b" ")[1].startswith(b"/exec/") and self.peers:
                    await self.program(request, reader, writer)
                    return
                if self.follow:  # GET /containerLogs/NAMESPACE/POD/CONTAINER?…
                    await self.log(request.split(b"/")[3].decode(), writer)
                else:
                    writer.write(self.ANSWER)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            writer.close()


class Pods:
    """The names of the pods of this phase (""; all), as a watch tells them: no list is asked for, and no pod is sent as a whole."""

    FORM = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

    def __init__(self, cluster, phase, ended=lambda name: None):
        self.selector = "&fieldSelector=status.phase%3D" + phase if phase else ""
        self.ended = ended
        self.cluster, self.names, self.changed, self.version, self.trouble = cluster, set(), threading.Condition(), "0", ""
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        try:
            while True:  # the server ends a watch whose reader is slow; it goes on from the last version
                self.read()
        except (OSError, ValueError, AssertionError, http.client.HTTPException) as error:
            with self.changed:
                self.trouble = f"the pods cannot be watched: {error!r}"
                self.changed.notify_all()

    def read(self):
        connection = http.client.HTTPSConnection(self.cluster.address, self.cluster.port, context=ssl._create_unverified_context())
        connection.request("GET", f"/api/v1/namespaces/{self.cluster.NAMESPACE}/pods?watch=true&resourceVersion={self.version}"
                           f"&timeoutSeconds=86400{self.selector}",
                           headers={"Authorization": "Bearer admin-token", "Accept": self.FORM})
        reply = connection.getresponse()
        assert reply.status == 200, reply.read()
        for line in reply:
            event = json.loads(line)
            assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), line
            metadata = event["object"]["metadata"]
            with self.changed:
                (self.names.discard if event["type"] == "DELETED" else self.names.add)(metadata["name"])
                self.version = metadata["resourceVersion"]
                self.changed.notify_all()
            if event["type"] == "DELETED":
                self.ended(metadata["name"])
        connection.close()

    def wait(self, is_so, what):
        """Until it is so of their number."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.trouble or is_so(len(self.names)), PATIENCE_S), f"{len(self.names)} pods\n{what()}"
            assert not self.trouble, self.trouble


class Bench:
    def __init__(self, options):
        self.options = options
        self.cluster = api.Cluster()
        self.kwok = Kwok(self.cluster)
        self.kubelets = Kubelets(self.cluster.directory, options.follow, options.peers)
        self.skepd = self.running = self.there = None
        self.stopped = 0  # jobs

    def __enter__(self):
        gates = ["--feature-gates=TranslateStreamCloseWebsocketRequests=false"] if self.options.peers else []
        self.cluster.start("--disable-admission-plugins=TaintNodesByCondition,ServiceAccount", "--max-requests-inflight=2000", *gates)
        kubeconfig, _ = self.cluster.grant()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(self.node_make, range(self.options.nodes)))
        self.skepd = server.Skepd(os.environ["SKEPD"], {
            "engine": {"kind": "kubernetes", "kubernetes": {"kubeconfig": str(kubeconfig), "initImage": "registry.invalid/skep:1",
                                                               "network": "pod" if self.options.peers else "host"}},
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

    def figure(self, name):
        """The sum of one of skepd's own."""
        text = self.skepd.call("GET", "/metrics")
        return sum(float(value) for value in re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE))

    def memory_mib(self):
        return status_kib(self.skepd.process, "VmRSS") / 1024

    def processor_s(self):
        """Of every program that runs: {name: seconds}."""
        return {name: cpu_s(process) for name, process in (self.cluster.processes | {"skepd": self.skepd.process}).items()}

    def states(self):
        return [job["state"] for job in self.skepd.jobs()]

    def wait_states(self, state, count):
        """Of this many jobs; asked for when the cluster has done its part already."""
        waits.until(lambda: self.states().count(state) == count, lambda: f"{self.states()}\n{self.skepd.tail()}", PATIENCE_S)

    def wait_nodes(self):
        waits.until(lambda: self.figure("skep_engine_nodes_healthy") == self.options.nodes, self.skepd.tail, PATIENCE_S)

    # ---- what is measured ----

    def start(self):
        begin = time.monotonic()
        self.skepd.start(wait=False)
        self.skepd.wait_started(PATIENCE_S)
        if not self.skepd.token:
            self.skepd.login()
        return time.monotonic() - begin

    def adopted(self, pods):
        """Seconds from the start of a skepd that was killed until it has all nodes and all pods."""
        self.skepd.kill()
        begin = time.monotonic()
        answered = self.start()
        waits.until(lambda: self.figure("skep_adopted_total") == pods, self.skepd.tail, PATIENCE_S)
        self.wait_nodes()
        return answered, time.monotonic() - begin, cpu_s(self.skepd.process)

    def spent(self, before, pods):
        """What each program has used of the processor since."""
        now = self.processor_s()
        each = {name: now[name] - before.get(name, 0) for name in now}
        return ", ".join(f"{name} {seconds:.1f} s ({seconds / pods * 1000:.2f} ms a pod)" for name, seconds in sorted(each.items()))

    def run_pods(self, prefix, jobs, pods):
        """From the first submission until all run; seconds."""
        begin = time.monotonic()
        for number in range(jobs):
            job = json.loads(server.job_file(f"{prefix}{number}", {"main": (pods // jobs, "true", {})}, "registry.invalid/task:1", {}))
            job["taskRoles"]["main"]["resourcePerInstance"]["gpu"] = 1
            self.skepd.submit(json.dumps(job))
        for step in [*range(STEP, pods, STEP), pods]:
            self.running.wait(lambda count, least=step: count >= least, lambda: self.skepd.tail() + self.cluster.tail("apiserver"))
            if step < pods:
                print(f"  {step} run after {time.monotonic() - begin:.1f} s; skepd has {self.memory_mib():.1f} MiB", flush=True)
        self.wait_states("RUNNING", jobs)
        return time.monotonic() - begin

    def stop_pods(self, prefix, jobs):
        begin = time.monotonic()
        for number in range(jobs):
            self.skepd.act(f"admin~{prefix}{number}", "STOP")
        self.there.wait(lambda count: count == 0, self.skepd.tail)
        self.wait_states("STOPPED", self.stopped + jobs)
        self.stopped += jobs
        return time.monotonic() - begin

    def run_jobs(self, pods, jobs):
        """As many pods as Jobs of Kubernetes."""
        each, space = pods // jobs, f"/apis/batch/v1/namespaces/{self.cluster.NAMESPACE}/jobs"
        self.cluster.start_controllers("--controllers=job-controller", "--kube-api-qps=5000", "--kube-api-burst=10000", "--concurrent-job-syncs=20")
        self.cluster.start_scheduler()
        pod = {"restartPolicy": "Never", "hostNetwork": True, "terminationGracePeriodSeconds": 30,
               "containers": [{"name": "task", "image": "registry.invalid/task:1", "command": ["true"],
                               "resources": {"limits": {"cpu": "1", "memory": "32Mi", "nvidia.com/gpu": "1"}}}]}
        before, cpu, begin = self.requests(), self.processor_s(), time.monotonic()
        schedulers = [self.cluster.processes[name] for name in ("controllers", "scheduler")]
        for number in range(jobs):
            self.cluster.create(space, {"metadata": {"name": f"k{number}"}, "spec": {
                "parallelism": each, "completions": each, "template": {"spec": pod}}})
        self.running.wait(lambda count: count == each * jobs, lambda: self.cluster.tail("scheduler"))
        passed, spent = time.monotonic() - begin, self.spent(cpu, pods)
        print(f"{pods} pods as Jobs: submit to Running {passed:8.1f} s, {pods / passed:.0f} pods/s", flush=True)
        print(f"  processor time: {spent}")
        print(f"  memory of the controllers and the scheduler {sum(status_kib(process, 'VmRSS') for process in schedulers) / 1024:.1f} MiB")
        after = self.requests()
        asked = {key: after[key] - before.get(key, 0) for key in after if after[key] - before.get(key, 0) >= pods / 2}
        print("  requests: " + ", ".join(f"{verb} {what} {count / pods:.2f}" for (verb, what), count in sorted(asked.items())) + " a pod", flush=True)

    def run(self):
        nodes, jobs = self.options.nodes, self.options.jobs
        pods = self.options.pods // jobs * jobs
        print(f"{nodes} nodes, {nodes * GPUS} GPUs, {pods} pods in {jobs} jobs; load average {os.getloadavg()[0]:.1f}", flush=True)
        begin, served = time.monotonic(), self.start()
        self.wait_nodes()
        print(f"start, until the API is served     {served:8.1f} s; until all nodes are known {time.monotonic() - begin:.1f} s")
        self.kwok.start()
        self.running, self.there = Pods(self.cluster, "Running", self.kubelets.ended), Pods(self.cluster, "")
        before, memory, cpu = self.requests(), self.memory_mib(), self.processor_s()
        passed = self.run_pods("j", jobs, pods)
        print(f"submit to Running                  {passed:8.1f} s, {pods / passed:.0f} pods/s; load average {os.getloadavg()[0]:.1f}", flush=True)
        if self.options.peers:
            begin, told = time.monotonic(), self.kubelets.told
            self.kubelets.wait_told(pods, self.skepd.tail)
            print(f"all told where their peers are     {time.monotonic() - begin:8.1f} s later; {told} of them were told before all ran", flush=True)
        print(f"  processor time: {self.spent(cpu, pods)}")
        waits.until(lambda: self.figure("skep_commands_waiting") == 0, self.skepd.tail, PATIENCE_S)
        print(f"skepd's memory                     {self.memory_mib():8.1f} MiB, {(self.memory_mib() - memory) / pods * 10000:.1f} for 10,000 pods"
              f" above the {memory:.1f} MiB of the nodes; at most {status_kib(self.skepd.process, 'VmHWM') / 1024:.1f} MiB", flush=True)
        answered, all_known, cpu_adopted = self.adopted(pods)
        print(f"adopted after a kill               {all_known:8.1f} s, {cpu_adopted:.1f} s of processor time; the API was served after {answered:.1f} s;"
              f" then {self.memory_mib():.1f} MiB", flush=True)
        self.wait_states("RUNNING", jobs)
        cpu, passed = self.processor_s(), self.stop_pods("j", jobs)
        print(f"stop until all have gone           {passed:8.1f} s, {pods / passed:.0f} pods/s; load average {os.getloadavg()[0]:.1f}")
        print(f"  processor time: {self.spent(cpu, pods)}")
        after = self.requests()
        for key in (("POST", "pods"), ("POST", "secrets"), ("DELETE", "pods"), ("DELETE", "secrets"), ("GET", "pods"), ("CONNECT", "pods/log"), ("CONNECT", "pods/exec"),
                    ("LIST", "pods"), ("LIST", "nodes")):
            count = after.get(key, 0) - before.get(key, 0)
            print(f"requests {key[0] + ' ' + key[1]:25} {count:8.0f}, {count / pods:.2f} a pod" + ("; kwok's one a pod among them" if key == ("DELETE", "pods") else ""), flush=True)
        self.compare(pods if self.options.beside is None else self.options.beside // jobs * jobs, pods)

    def compare(self, pods, before):
        jobs = self.options.jobs
        if not pods:
            return
        if pods != before:
            cpu, passed = self.processor_s(), self.run_pods("b", jobs, pods)
            print(f"{pods} pods by skepd: submit to Running {passed:8.1f} s, {pods / passed:.0f} pods/s; load average {os.getloadavg()[0]:.1f}", flush=True)
            print(f"  processor time: {self.spent(cpu, pods)}")
            self.stop_pods("b", jobs)
        self.run_jobs(pods, jobs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="\n".join(__doc__.splitlines()[4:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000, help="how many nodes (%(default)s)")
    parser.add_argument("--pods", type=int, default=4000, help="how many pods at a time (%(default)s)")
    parser.add_argument("--jobs", type=int, default=20, help="of how many jobs (%(default)s)")
    parser.add_argument("--beside", type=int, help="how many pods are run as Jobs of Kubernetes, too (all; 0: none)")
    parser.add_argument("--follow", action="store_true", help="the logs go on for as long as their pods run")
    parser.add_argument("--peers", action="store_true", help="tasks are told the addresses of their job's")
    options = parser.parse_args()
    api.need("kube-apiserver", "kwok", *([] if options.beside == 0 else ["kube-controller-manager", "kube-scheduler"]))
    with Bench(options) as bench:
        bench.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
