"""How the GPUs of a cluster are used, as DCGM's exporters say: test_gpus.py SKEPD SKEP

The exporters are played: they answer on addresses of this machine as dcgm-exporter does on its nodes, or as none should.

Covers: src/engine/kubernetes/gpu_ask.c, src/engine/kubernetes/gpu_use.c
"""
import http.server
import json
import subprocess
import sys
import threading
import unittest

import beside
import test_faults
import waits

if __name__ == "__main__":
    test_faults.SKEPD, test_faults.SKEP = sys.argv.pop(1), sys.argv.pop(1)

LARGE = b"# x\n" * (2 << 20)
UUIDS = [f"GPU-{number}a4f34ab-7715-3560-dcea-7238b9611a45" for number in range(10)]


def text(gpus, clock=1980):
    """As dcgm-exporter 4 answers; gpus: {number: {figure: value, "pod": its name}}."""
    names = {"busy": "DCGM_FI_DEV_GPU_UTIL", "used": "DCGM_FI_DEV_FB_USED", "free": "DCGM_FI_DEV_FB_FREE", "power": "DCGM_FI_DEV_POWER_USAGE",
             "ecc": "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "xid": "DCGM_FI_DEV_XID_ERRORS"}
    lines = []
    for figure, name in ({"clock": "DCGM_FI_DEV_SM_CLOCK"} | names).items():
        lines += [f"# HELP {name} of a GPU.", f"# TYPE {name} gauge"]
        for number, gpu in gpus.items():
            value = gpu.get(figure, clock if figure == "clock" else None)
            pod = f',container="task",namespace="default",pod="{gpu["pod"]}"' if "pod" in gpu else ""
            if value is not None:
                lines.append(f'{name}{{gpu="{number}",UUID="{UUIDS[number]}",pci_bus_id="00000000:0{number}:00.0",device="nvidia{number}",'
                             f'modelName="NVIDIA H200",Hostname="n",DCGM_FI_DRIVER_VERSION="570.86.15"{pod}}} {value}')
    return "\n".join(lines) + "\n"


class Exporter(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address, port=0):
        super().__init__((address, port), Handler)
        self.changed = threading.Condition()
        self.gpus = {}  # what it tells
        self.fault = None  # "500", "garbage", "large", "silent", "nothing", "elsewhere"
        self.asked = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def tell(self, gpus, fault=None):
        with self.changed:
            self.gpus, self.fault = gpus, fault
            self.changed.notify_all()

    def wait_asked(self, more):
        with self.changed:
            wanted = self.asked + more
            assert self.changed.wait_for(lambda: self.asked >= wanted, waits.PATIENCE_S), f"asked {self.asked} times, not {wanted}"

    def stop(self):
        self.tell({})
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        exporter = self.server
        with exporter.changed:
            exporter.asked += 1
            exporter.changed.notify_all()
            fault = exporter.fault
            if fault == "silent":  # until it is told something else
                exporter.changed.wait_for(lambda: exporter.fault != "silent")
            body = text(exporter.gpus)
        body = {"garbage": b"<html>sign in first</html>\n", "nothing": b"go_goroutines 7\n", "large": LARGE}.get(fault, body.encode())
        status = {"500": 500, "elsewhere": 302}.get(fault, 200 if self.path == "/metrics" else 404)
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if fault == "elsewhere":
                self.send_header("Location", self.path)
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # it was too much, or came too late


class Figures(test_faults.Base):
    WAY = "env"

    @property
    def KEYS(self):
        return {"gpus": self.WAY, "gpuMetrics": {"port": self.exporter.server_address[1]}}

    def setUp(self):
        self.exporter = Exporter("127.0.0.1")
        self.addCleanup(self.exporter.stop)
        super().setUp()
        for number in range(1, 5):
            self.api.remove("nodes", f"n{number}")
        self.api.node("n0", address="127.0.0.1", gpus=0 if self.WAY == "dra" else 4)
        if self.WAY == "dra":  # in another order than the exporter's
            self.api.slice("n0", [{"name": f"gpu-{number}", "attributes": {"uuid": {"string": UUIDS[3 - number]}}} for number in range(3)])

    def shown(self):
        """Of the GPUs of the node, by their numbers: use, memory that is used, and whether it is lost."""
        (node,) = self.skepd.call("GET", "/api/v2/nodes")["data"]
        return {gpu["index"]: (gpu["utilizationPercent"], gpu["memoryUsedMB"], gpu["isLost"]) for gpu in node["gpus"]}

    def wait_shown(self, wanted):
        waits.until(lambda: self.shown() == wanted, lambda: f"not {wanted}: {self.shown()}\n{self.skepd.tail()}", waits.PATIENCE_S)

    def wait_log(self, words):
        waits.until(lambda: words in self.skepd.tail(2000), lambda: f"not in the log: {words}\n{self.skepd.tail()}", waits.PATIENCE_S)

    def use(self, path):
        return self.skepd.call("GET", f"{path}/use?resolution=recent")["use"]

    def wait_use(self, path, busy):
        """A chart reaches so many GPUs that are busy."""
        def is_so():
            points = self.use(path).get("gpu", {}).get("points", [])
            return any(point is not None and abs(point - busy) < 0.02 for point in points)
        waits.until(is_so, lambda: f"{path} never uses {busy} GPUs: {self.use(path)}\n{self.skepd.tail()}", waits.PATIENCE_S)

    def wait_alerts(self, wanted):
        """Of which GPU which alert tells. Those who ask within a second are told the same."""
        def told():
            return {alert["labels"]["alertname"]: alert["labels"]["minor_number"]
                    for alert in self.skepd.call("GET", "/api/v2/alerts") if "minor_number" in alert["labels"]}
        waits.until(lambda: told() == wanted, lambda: f"not {wanted}: {told()}\n{self.skepd.tail()}", waits.PATIENCE_S)

    def run_job(self, name, gpus):
        job = self.submit(name, gpus=gpus)
        (pod,) = self.pods()
        return job, pod

    def begin(self, gpus=2):
        self.start()
        self.wait_nodes(1)
        return self.run_job("job", gpus)

    def metrics(self):
        return self.skepd.call("GET", "/metrics")


class ByIndex(Figures):
    """gpus: env"""

    def test_use_memory_and_errors_are_shown_where_a_machines_are(self):
        self.exporter.tell({0: {"busy": 80, "used": 1000, "free": 139000, "power": 301.527, "ecc": 0}, 1: {"busy": 40, "used": 500, "free": 139500, "power": 98.473},
                            2: {"busy": 7, "used": 3, "free": 139997, "ecc": 2}, 3: {"xid": 79}})
        job, pod = self.begin()
        self.assertEqual(self.exporter.asked, 0)  # nobody has GPUs there
        self.api.run(pod)
        self.state(job, "RUNNING")
        self.wait_shown({0: (80, 1000, False), 1: (40, 500, False), 2: (7, 3, False), 3: (None, None, True)})
        metrics = self.metrics()
        self.assertIn(f'skep_gpu_utilization_percent{{node="n0",gpu="2",uuid="{UUIDS[2]}"}} 7', metrics)
        self.assertIn(f'skep_task_gpu_utilization_percent{{job="{job}",role="main",task="0",node="n0",gpu="1"}} 40', metrics)
        self.assertNotIn('task="0",node="n0",gpu="2"', metrics)
        self.wait_alerts({"NvidiaGpuLost": "3", "NvidiaSmiDoubleEccError": "2"})
        self.wait_use(f"/api/v2/jobs/{job}", 1.2)
        use = self.use(f"/api/v2/jobs/{job}")
        self.assertEqual(use["gpuMemory"]["most"], 1500 << 20)
        self.assertAlmostEqual(use["gpuPower"]["most"], 400, delta=8)
        self.assertNotIn("memory", use)  # of which its log would tell
        self.wait_use("/api/v2/nodes/n0", 1.27)
        # a skepd that begins anew reads from the pod which GPUs it has
        self.skepd.kill()
        self.exporter.tell({0: {"busy": 10, "used": 1}, 1: {"busy": 20, "used": 1}})
        self.skepd.start()
        self.skepd.login()
        self.wait_shown({0: (10, 1, False), 1: (20, 1, False)})
        self.wait_use(f"/api/v2/jobs/{job}", 0.3)
        self.api.end(pod)
        self.finish(job)

    def test_nobody_asks_where_no_task_has_gpus(self):
        self.exporter.tell({0: {"busy": 80, "used": 1000}})
        job, pod = self.begin(gpus=1)
        self.api.run(pod)
        self.state(job, "RUNNING")
        self.exporter.wait_asked(1)
        self.api.end(pod)
        self.finish(job)
        with self.exporter.changed:
            asked = self.exporter.asked
        plain, pod = self.run_job("plain", 0)
        self.api.run(pod)
        self.state(plain, "RUNNING")
        self.wait_shown({0: (None, None, False)})  # a minute after the last answer
        third = self.submit("third", gpus=1)
        self.pods(2)
        with self.exporter.changed:
            self.assertLessEqual(self.exporter.asked - asked, 2)  # one may have been under way; once more when the task had ended
        with self.api.changed:
            (other,) = set(self.api.objects["pods"]) - {pod}
        self.api.run(other)
        self.exporter.wait_asked(1)
        for each in (pod, other):
            self.api.end(each)
        for each in (plain, third):
            self.assertEqual(self.skepd.wait_final([each], waits.PATIENCE_S)[each], "SUCCEEDED")

    def troubles(self):
        """What the log says of an exporter that fails, once until it is told of again; and whether it is."""
        lines = self.skepd.tail(2000).splitlines()
        troubles = [line for line in lines if "nothing is told of the GPUs of" in line]
        return troubles, len(troubles) == len([line for line in lines if "are told of again" in line])

    def fail_for(self, good, fault, words):
        """Until that is why. On a busy machine an answer may come too late, which is another reason: then it is told well and ill anew."""
        for _ in range(10):
            self.exporter.tell({0: {"busy": 1, "used": 1}}, fault)
            waits.until(lambda: not self.troubles()[1], lambda: f"no trouble is told\n{self.skepd.tail()}", waits.PATIENCE_S)
            if words in self.troubles()[0][-1]:
                return
            self.exporter.tell(good)
            waits.until(lambda: self.troubles()[1], lambda: f"not told of again\n{self.skepd.tail()}", waits.PATIENCE_S)
        self.fail(f"not in the log: {words}\n{self.skepd.tail()}")

    def answers_as_none_should(self, fault, words):
        """Nothing of it is taken, that is logged once, and what is right again is taken again."""
        good = {0: {"busy": 55, "used": 9}}
        self.exporter.tell(good)
        job, pod = self.begin(gpus=1)
        self.api.run(pod)
        self.wait_shown({0: (55, 9, False)})
        self.fail_for(good, fault, words)
        self.assertIn(self.shown(), ({0: (55, 9, False)}, {0: (None, None, False)}))
        self.exporter.tell(good)
        waits.until(lambda: self.troubles()[1], lambda: f"not told of again\n{self.skepd.tail()}", waits.PATIENCE_S)
        self.wait_shown({0: (55, 9, False)})
        if fault != "silent":  # which an answer that comes too late is as well
            self.assertEqual(self.skepd.tail(2000).count(words), 1)
        self.api.end(pod)
        self.finish(job)

    def test_an_exporter_that_fails(self):
        self.answers_as_none_should("500", "it answers 500")

    def test_an_exporter_that_answers_with_something_else(self):
        self.answers_as_none_should("garbage", "what it answers is not understood: line 1")

    def test_an_exporter_that_answers_too_much(self):
        self.answers_as_none_should("large", "it answers more than 4 MiB")

    def test_an_exporter_that_names_no_gpu(self):
        self.answers_as_none_should("nothing", "it names no GPU")

    def test_an_exporter_that_does_not_answer(self):
        self.answers_as_none_should("silent", "timed out")

    def test_an_exporter_that_is_elsewhere(self):
        self.answers_as_none_should("elsewhere", "it answers 302")

    def test_gpus_that_nobody_knows(self):
        self.exporter.tell({0: {"busy": 5, "used": 5}, 3: {"busy": 6, "used": 6}} | {9: {"busy": 99, "used": 99}})
        job, pod = self.begin(gpus=1)
        self.api.run(pod)
        self.wait_shown({0: (5, 5, False), 3: (6, 6, False)})
        self.api.end(pod)
        self.finish(job)

    def test_a_path_that_is_none(self):
        self.start()
        config = self.skepd.directory / "other.json"
        for metrics, words in (({"path": "metrics"}, "engine.kubernetes.gpuMetrics.path: "),
                               ({"port": 0}, "engine.kubernetes.gpuMetrics.port"), ({"host": "x"}, "host")):
            config.write_text(json.dumps({
                "dataDirectory": str(self.skepd.directory / "other"), "api": {"listen": "127.0.0.1:0"}, "engine": {"kind": "kubernetes", "kubernetes": {
                    "kubeconfig": str(self.skepd.directory / "kubeconfig"), "initImage": "skep:1", "gpuMetrics": metrics}}}))
            done = subprocess.run([test_faults.SKEPD, "--config", config], capture_output=True, text=True, timeout=120)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)


class ByPod(Figures):
    """gpus: device-plugin"""
    WAY = "device-plugin"

    def test_the_exporter_says_whose_they_are(self):
        job, pod = self.begin()
        self.exporter.tell({0: {"busy": 90, "used": 1, "pod": "other"}, 1: {"busy": 30, "used": 2, "pod": pod}, 2: {"busy": 20, "used": 3, "pod": pod},
                            3: {"busy": 0, "used": 0}})
        self.api.run(pod)
        self.state(job, "RUNNING")
        self.wait_shown({0: (90, 1, False), 1: (30, 2, False), 2: (20, 3, False), 3: (0, 0, False)})
        metrics = self.metrics()
        for gpu, value in ((1, 30), (2, 20)):
            self.assertIn(f'skep_task_gpu_utilization_percent{{job="{job}",role="main",task="0",node="n0",gpu="{gpu}"}} {value}', metrics)
        self.assertEqual(metrics.count("skep_task_gpu_utilization_percent{"), 2)
        self.wait_use(f"/api/v2/jobs/{job}", 0.5)
        self.assertEqual(self.use(f"/api/v2/jobs/{job}")["gpuMemory"]["most"], 5 << 20)
        self.api.end(pod)
        self.finish(job)


class ByUuid(Figures):
    """gpus: dra"""
    WAY = "dra"

    def test_a_device_is_the_gpu_of_its_uuid(self):
        self.exporter.tell({number: {"busy": 10 * number, "used": number} for number in range(4)})
        job, pod = self.begin()
        self.api.run(pod)
        self.state(job, "RUNNING")
        # gpu-0 is the exporter's 3; its 0 is no device of the driver's
        self.wait_shown({0: (30, 3, False), 1: (20, 2, False), 2: (10, 1, False)})
        metrics = self.metrics()
        for gpu, value in ((0, 30), (1, 20)):
            self.assertIn(f'skep_task_gpu_utilization_percent{{job="{job}",role="main",task="0",node="n0",gpu="{gpu}"}} {value}', metrics)
        self.assertEqual(metrics.count("skep_task_gpu_utilization_percent{"), 2)
        self.wait_use(f"/api/v2/jobs/{job}", 0.5)
        self.api.end(pod)
        self.assertEqual(self.skepd.wait_final([job], waits.PATIENCE_S)[job], "SUCCEEDED")


if __name__ == "__main__":
    beside.main(test_faults.SKEPD, test_faults.SKEP, first=("ByIndex.test_nobody_asks_where_no_task_has_gpus",))
