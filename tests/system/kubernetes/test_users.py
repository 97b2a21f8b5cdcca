"""Pods whose root is nobody on the node: test_users.py SKEPD SKEP SKEP-INIT MAKE-IMAGE

Two kubelets: n1 has a containerd and a runc that can give a pod a user namespace, n2 those of Debian 12, which cannot. Skipped where
build-components has not made the former. The engine has exactly the rights of deploy/kubernetes/rights.yaml.
Covers: src/engine/kubernetes/pod_make.c, src/engine/kubernetes/pod_network.c, src/engine/kubernetes/node_object.c
"""
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import unittest

import cluster as api
import installation
import nodes
from jobs import Jobs, PODS
import waits
from waits import PATIENCE_S

PROGRAMS = [sys.argv.pop(1) for _ in range(4)] if __name__ == "__main__" else []
MAP = "sed 's/  */ /g' /proc/self/uid_map"


class Users(Jobs):
    @classmethod
    def setUpClass(cls):
        api.need("kube-apiserver", "kubelet", "kube-controller-manager", "containerd", "runc")
        cls.place = installation.Installation(PROGRAMS, 2, has_pod_network=True, new_runtimes=1)
        cls.addClassCleanup(cls.place.stop)
        cls.place.start_nodes()
        cls.place.cluster.start_controllers("--controllers=persistentvolume-binder-controller")
        cls.image_make()
        cls.folders = {name: cls.place.nodes.directory / f"volume-{name}" for name in ("claim", "folder")}
        for folder in cls.folders.values():
            folder.mkdir(mode=0o755)
        cls.place.claim_make("claim", cls.folders["claim"])
        cls.place.start_skepd(network="pod", userNamespaces="required", ready=("n1",), more={"storages": [
            {"name": "claim", "claim": "claim", "share": True}, {"name": "folder", "directory": str(cls.folders["folder"])}]})

    @classmethod
    def image_make(cls):
        """One whose tasks are root: the others' user is not."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("bin", "tmp", "etc", "root"):
                (root / name).mkdir()
            shutil.copy(shutil.which("busybox"), root / "bin/busybox")
            for applet in nodes.run("busybox", "--list").split():
                if applet != "busybox":
                    (root / "bin" / applet).symlink_to("busybox")
            installation.push_folder(cls.place.nodes.images, root, "root:1")
        cls.image = f"{cls.place.nodes.images.address}/root:1"

    def job(self, name, command, skepd=None, **more):
        return self.submit(name, {"main": command}, skepd, self.image, **more)

    # --- what the nodes say, and that it is so: what the other tests stand on ---

    def test_a_pod_that_is_not_skeps(self):
        handlers = [self.cluster.call("GET", f"/api/v1/nodes/{node.name}")["status"].get("runtimeHandlers") for node in self.nodes]
        self.assertTrue(all(each["features"]["userNamespaces"] for each in handlers[0]), handlers)
        self.assertFalse(handlers[1], handlers)
        self.cluster.create(PODS, {"metadata": {"name": "map"}, "spec": {
            "nodeName": "n1", "hostUsers": False, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}], "containers": [{
                "name": "task", "image": self.nodes.images.name("skep"), "command": ["cat", "/proc/self/uid_map"], "securityContext": {"runAsUser": 0}}]}})
        self.addCleanup(self.cluster.call, "DELETE", f"{PODS}/map", {"gracePeriodSeconds": 0})
        waits.until(lambda: self.cluster.pods()["map"]["status"]["phase"] == "Succeeded",
                    lambda: f"{json.dumps(self.cluster.pods()['map']['status'])}\n{self.place.trouble()}", PATIENCE_S)
        self.is_mapped(self.cluster.call("GET", f"{PODS}/map/log"))

    def is_mapped(self, text):
        inside, outside, count = map(int, text.split())
        self.assertEqual((inside, count), (0, 65536))
        self.assertGreaterEqual(outside, 65536)

    # --- required ---

    def process_of(self, word):
        """The process of n1 that has this word among its arguments."""
        found = []

        def look():
            for process in nodes.group_processes(self.nodes[0].group):
                try:
                    with open(f"/proc/{process}/cmdline", "rb") as line:
                        if word.encode() in line.read().split(b"\0"):
                            found.append(process)
                except OSError:
                    pass
            return found

        waits.until(look, f"no process with {word}", PATIENCE_S)
        return found[0]

    def test_root_is_nobody_on_the_node(self):
        name = self.job("root", f"id -u; {MAP}; exec sleep 100011")
        user = os.stat(f"/proc/{self.process_of('100011')}").st_uid
        self.assertGreaterEqual(user, 65536)
        self.wait_log(name, f"0\n 0 {user} 65536\n")
        (pod,) = self.pods_of(name).values()
        self.assertEqual((pod["spec"]["hostUsers"], pod["spec"]["nodeName"]), (False, "n1"))
        self.wait_state(name, "RUNNING")  # which its program may tell before its pod does
        done = self.skep("exec", "root", "--", "sh", "-c", f"id -u; {MAP}")
        self.assertEqual((done.returncode, done.stdout), (0, f"0\n 0 {user} 65536\n"), done.stderr)
        self.stop(name)

    def test_its_logs_and_its_end(self):
        name = self.job("end", "echo word; echo err >&2; exit 7")
        self.assertEqual(self.finish(name, "FAILED")["appExitCode"], 7)
        self.assertEqual(sorted(self.log(name).split()), ["err", "word"])

    def test_it_kills_itself(self):
        self.assertEqual(self.finish(self.job("kill", "kill -9 $$"), "FAILED")["appExitCode"], 137)

    def test_more_memory_than_there_is(self):
        self.assertEqual(self.finish(self.job("memory", "tail /dev/zero"), "FAILED")["appExitCode"], -1200)

    def test_a_gang(self):
        """Addresses are delivered into a pod whose files have other owners, too."""
        name = self.submit("gang", {"main": {"commands": ["echo $PAI_HOST_IP_main_0 $PAI_HOST_IP_main_1"], "instances": 2}}, image=self.image)
        self.finish(name)
        address = [task["containerIp"] for task in self.tasks(name)["main"]]
        for index in range(2):
            self.assertEqual(self.log(name, index=index), f"{address[0]} {address[1]}\n")

    def test_skepd_is_killed(self):
        name = self.job("killed", "echo begun; exec sleep 100012")
        process = self.process_of("100012")
        self.skepd.kill()
        self.skepd.start()
        os.kill(process, signal.SIGKILL)
        status = self.finish(name, "FAILED")
        self.assertEqual((status["appExitCode"], status["retries"]), (137, 0), status)

    def test_storages(self):
        """What root of a task writes is root's on the node, and what is root's there is the task's own: kubelet maps the mounts."""
        (self.folders["folder"] / "given").write_text("given\n")
        (self.folders["folder"] / "given").chmod(0o600)
        name = self.job("storages", "cat /mnt/folder/given; for i in claim folder; do echo made >/mnt/$i/made; chown 5:6 /mnt/$i/made; done",
                        extras={"storages": [{"name": "claim"}, {"name": "folder"}]})
        self.finish(name)
        self.assertEqual(self.log(name), "given\n")
        for folder in self.folders.values():
            made = folder / "made"
            self.assertEqual((made.read_text(), made.stat().st_uid, made.stat().st_gid), ("made\n", 5, 6))

    def node(self, name, skepd=None):
        return next(node for node in (skepd or self.skepd).call("GET", "/api/v2/nodes")["data"] if node["name"] == name)

    def test_a_node_that_cannot(self):
        """It gets no tasks, and says why."""
        node = self.node("n2")
        self.assertEqual(node["state"], "UNHEALTHY", node)
        self.assertIn("user ids of their own", json.dumps(node))
        self.assertEqual(self.node("n1")["state"], "READY")

    # --- auto ---

    def test_auto(self):
        """Where the runtime can; the other node's tasks run as well."""
        other = self.other(network="pod", userNamespaces="auto")
        self.place.wait_nodes(other)
        name = self.submit("both", {"main": {"commands": [MAP], "instances": 2}}, other, self.image)
        self.finish(name, skepd=other)
        maps = {task["containerNodeName"]: self.log(name, index=task["taskIndex"], skepd=other) for task in self.tasks(name, other)["main"]}
        self.is_mapped(maps["n1"])
        self.assertEqual(maps["n2"].split()[:2], ["0", "0"])


if __name__ == "__main__":
    unittest.main()
