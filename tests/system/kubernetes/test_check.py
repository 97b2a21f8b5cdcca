"""skep kube check, and kubeconfigs of every kind, against a real API server: test_check.py SKEPD SKEP

Covers: src/cli/cmd_kube.c, src/cli/findings.c, src/cli/kube_ask.c, src/cli/kube_check.c, src/cli/kube_nodes.c, src/cli/kube_wants.c
"""
import base64
import json
import os
import subprocess
import sys
import unittest

import yaml

from cluster import Cluster, Refused
from metrics_server import MetricsServer
import skepd as server
import waits

SKEPD, SKEP = (sys.argv.pop(1) for _ in range(2)) if __name__ == "__main__" else ("", "")
TAINT = {"key": "skep.internal/dedicated", "effect": "NoSchedule"}


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


class Check(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.stop)
        cls.folder = cls.cluster.directory
        cls.certificates()
        cls.cluster.start_etcd()
        cls.cluster.start_server(f"--client-ca-file={cls.folder / 'users.pem'}")
        cls.admin = cls.cluster.kubeconfig("admin.kubeconfig", {"token": "admin-token"})

    @classmethod
    def certificates(cls):
        """Of the user `cert` in the group system:masters, and the authority that has made it."""
        ca, key, made = (str(cls.folder / name) for name in ("users.pem", "users.key", "cert.pem"))
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=users", "-keyout", key, "-out", ca)
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/O=system:masters/CN=cert", "-keyout", str(cls.folder / "cert.key"),
                "-out", str(cls.folder / "cert.csr"))
        openssl("x509", "-req", "-in", str(cls.folder / "cert.csr"), "-CA", ca, "-CAkey", key, "-CAcreateserial", "-days", "2", "-out", made)

    def check(self, *words, kubeconfig=None, code=None, **environment):
        """The findings by their names; the exit code as well, unless it must be `code`."""
        done = subprocess.run([SKEP, "kube", "check", "--kubeconfig", str(kubeconfig or self.admin), "-o", "json", *words],
                              env=os.environ | environment, capture_output=True, text=True, timeout=300)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = {row["check"]: row for row in json.loads(done.stdout)}
        if code is not None:
            self.assertEqual(done.returncode, code, json.dumps(found, indent=1))
        for row in found.values():
            self.assertEqual(bool(row["meaning"]), row["state"] != "good", row)
        return found

    def check_until(self, is_so, *words, code):
        """The API server decides by what it has heard of its own objects, which may be what they were a moment ago."""
        found = {}

        def look():
            found.clear()
            found.update(self.check(*words))
            return is_so(found)
        waits.until(look, lambda: json.dumps(found, indent=1))
        return self.check(*words, code=code)

    def state(self, found, name):
        return found[name]["state"] if name in found else None

    def test_1_a_cluster_without_skep(self):
        found = self.check("--account", "skep/skep", code=1)
        self.assertEqual(self.state(found, "API server"), "good")
        self.assertEqual(self.state(found, "version"), "good")
        self.assertEqual(self.state(found, "clock"), "good")
        self.assertEqual(self.state(found, "namespace"), "missing")
        self.assertIn("rights.yaml", found["namespace"]["meaning"])
        self.assertEqual(self.state(found, "nodes"), "missing")
        self.assertEqual(self.state(found, "storage class"), "less")
        rights = {name: row for name, row in found.items() if name.startswith("right ")}
        spare = {"right nodes.metrics.k8s.io", "right pods/portforward"}  # tasks run without them
        self.assertEqual({name for name, row in rights.items() if row["state"] != "missing"}, spare)
        for name in spare:
            self.assertEqual(self.state(found, name), "less")
            self.assertIn("rights.yaml", rights[name]["meaning"])
        self.assertEqual((self.state(found, "node metrics"), found["node metrics"]["found"]), ("less", "there is no metrics.k8s.io/v1beta1"))
        self.assertIn("get list watch create delete", rights["right pods"]["found"])

    def test_2_what_skep_makes_is_enough(self):
        cluster = self.cluster
        cluster.apply("rights.yaml")
        found = self.check(code=1)
        self.assertEqual(self.state(found, "namespace"), "good")
        self.assertIn("privileged", found["namespace"]["found"])
        self.assertEqual(self.state(found, "pods"), "missing")  # nobody makes the account `default` here
        cluster.create("/api/v1/namespaces/skep-jobs/serviceaccounts", {"metadata": {"name": "default"}})
        cluster.add_node("n1", {"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "4"}, labels={"skep": "yes"}, taints=[TAINT])
        cluster.create("/apis/storage.k8s.io/v1/storageclasses", {
            "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "none"})
        metrics = MetricsServer(cluster, {"n1": ("1", "1Gi", {"skep": "yes"}), "n2": ("1", "1Gi", {})})
        self.addCleanup(metrics.stop)
        found = self.check("--account", "skep/skep", "--node-selector", "skep=yes")
        good = {name for name, row in found.items() if row["state"] == "good"}
        self.assertLessEqual({"pods", "nodes", "own nodes", "GPUs", "storage class", "WatchList", "right pods", "right pods/log", "right pods/exec", "right pods/portforward",
                              "right secrets", "right nodes", "right nodes.metrics.k8s.io", "node metrics"}, good, found)
        self.assertEqual(found["node metrics"]["found"], "of 1 node")
        self.assertEqual(self.check("--node-selector", "skep=no")["node metrics"]["found"], "of no node")
        metrics.nodes = None
        found = self.check()
        self.assertEqual(self.state(found, "node metrics"), "less")
        self.assertIn("see that metrics-server runs", found["node metrics"]["meaning"])
        self.assertIn("4 on 1 of 1 nodes", found["GPUs"]["found"])
        self.assertEqual(self.state(found, "kubelets"), "missing")  # nobody listens there
        self.assertIn("10250", found["kubelets"]["meaning"])

    def test_3_as_skep_itself(self):
        kubeconfig, _ = self.cluster.grant()
        found = self.check("--node-selector", "skep=yes", kubeconfig=kubeconfig, code=0)
        self.assertEqual({name for name, row in found.items() if row["state"] not in ("good", "unknown", "less")}, set())
        for name in ("namespace", "kubelets", "storage class"):
            self.assertEqual(self.state(found, name), "unknown", found)
        self.assertEqual(self.state(found, "right nodes"), "good")
        self.assertEqual(self.state(self.check("--account", "skep/skep", kubeconfig=kubeconfig), "right pods"), "unknown")

    def test_4_what_is_lacking_is_named(self):
        role = "/apis/rbac.authorization.k8s.io/v1/namespaces/skep-jobs/roles/skep"
        rules = self.cluster.call("GET", role)["rules"]
        self.cluster.merge(role, {"rules": [rules[0] | {"verbs": ["get", "list", "watch", "create"]}, *rules[1:]]})
        found = self.check_until(lambda found: self.state(found, "right pods") == "missing", "--account", "skep/skep", code=1)
        self.assertEqual((self.state(found, "right pods"), found["right pods"]["found"]), ("missing", "not in skep-jobs: delete"))
        self.assertEqual(self.state(found, "right pods/log"), "good")
        self.cluster.merge(role, {"rules": rules})

        space = "/api/v1/namespaces/skep-jobs"
        self.cluster.merge(space, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}})
        found = self.check_until(lambda found: self.state(found, "pods") == "missing", code=1)
        self.assertIn("enforce=privileged", found["pods"]["meaning"])
        found = self.check("--network", "pod", "--node-selector", "skep=yes")
        self.assertEqual(self.state(found, "pods"), "good", found["pods"])
        self.assertIn("userNamespaces is off", found["hostUsers"]["found"])
        self.cluster.merge(space, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
        found = self.check_until(lambda found: self.state(found, "pods") == "missing", "--network", "pod", code=1)
        self.assertIn("enforce=baseline", found["pods"]["meaning"])
        self.cluster.merge(space, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}})

        found = self.check("--runtime-class", "nvidia", "--gpus", "env", "--node-selector", "other=yes", code=1)
        self.assertEqual((self.state(found, "runtime class"), self.state(found, "nodes")), ("missing", "missing"))
        found = self.check("--gpus", "dra", code=1)
        self.assertIn("driver", found["GPUs"]["meaning"])
        found = self.check("--gpus", "dra", "--account", "skep/skep", code=1)
        names = ("right resourceclaims", "right resourceclaims/status", "right resourceclaims/binding", "right resourceslices")
        self.assertEqual({self.state(found, name) for name in names}, {"missing"})
        self.assertIn("rights-dra.yaml", found["right resourceslices"]["meaning"])
        self.cluster.apply("rights-dra.yaml")
        self.check_until(lambda found: {self.state(found, name) for name in names} == {"good"},
                         "--gpus", "dra", "--account", "skep/skep", code=1)
        self.cluster.create("/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": "n1"}, "spec": {
            "driver": "other.test", "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "gpu-0"}]}})
        config = self.folder / "skepd.yaml"
        for driver, state in (("other.test", "missing"), ("gpu.skep.test", "missing")):
            config.write_text(yaml.safe_dump({"engine": {"kind": "kubernetes", "kubernetes": {
                "kubeconfig": str(self.admin), "namespace": "skep-jobs", "initImage": "x", "gpus": "dra", "deviceDriver": driver, "deviceClass": "gpus",
                "nodeMetrics": "off"}}}))
            found = self.check("--config", str(config), code=1)
            self.assertEqual({"node metrics", "right nodes.metrics.k8s.io"} & found.keys(), set())
            self.assertEqual(self.state(found, "device class"), state)
            self.assertEqual(self.state(found, "GPUs"), "good" if driver == "other.test" else "missing", found)
        self.cluster.create("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "gpus"}, "spec": {}})
        self.assertEqual(self.state(self.check("--config", str(config), code=1), "device class"), "good")
        found = self.check("--gpu-resource", "lab.example/gpu", "--gpus", "device-plugin", "--taint", "lab.example/own", code=1)
        self.assertEqual((self.state(found, "GPUs"), self.state(found, "taints"), self.state(found, "own nodes")), ("missing", "missing", "less"))

    def test_5_what_is_meant_may_stand_in_the_configuration(self):
        config = self.folder / "skepd.yaml"
        config.write_text(yaml.safe_dump({"engine": {"kind": "kubernetes", "kubernetes": {
            "kubeconfig": str(self.admin), "namespace": "nowhere", "nodeSelector": "skep=yes", "initImage": "x"}}}))
        done = subprocess.run([SKEP, "kube", "check", "--config", str(config)], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^namespace +missing +there is no nowhere")
        self.assertRegex(done.stdout, r"(?m)^nodes +good +1, 1 ready")
        self.assertNotIn("InfiniBand", done.stdout)

    def test_6_what_only_the_configuration_says_is_looked_at(self):
        for resource, state in (("nvidia.com/gpu", "good +1 of 1"), ("rdma/hca", "missing +0 of 1")):
            config = self.folder / "skepd.yaml"
            config.write_text(yaml.safe_dump({"engine": {"kind": "kubernetes", "kubernetes": {
                "kubeconfig": str(self.admin), "namespace": "skep-jobs", "nodeSelector": "skep=yes", "initImage": "x",
                "infinibandResource": resource, "podTemplate": "/etc/skep/pod.yaml"}}}))
            done = subprocess.run([SKEP, "kube", "check", "--config", str(config)], capture_output=True, text=True, timeout=300)
            self.assertRegex(done.stdout, rf"(?m)^InfiniBand +{state} nodes offer {resource}")
            self.assertIn("without podTemplate", done.stdout)
        for words in (["--config", "/nonexistent"], ["--kubeconfig", "/nonexistent"], ["--account", "skep"], ["--gpus", "some"]):
            done = subprocess.run([SKEP, "kube", "check", *words], capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertTrue(done.stderr.startswith("skep: "), done.stderr)

    def test_6_what_daemon_sets_request_is_summed_up(self):
        config = self.folder / "skepd.yaml"

        def found(**reserve):
            config.write_text(yaml.safe_dump({"engine": {"kind": "kubernetes", "kubernetes": {
                "kubeconfig": str(self.admin), "namespace": "skep-jobs", "nodeSelector": "skep=yes", "initImage": "x", "nodeReserve": reserve}}}))
            return self.check("--config", str(config))["node reserve"]

        self.assertEqual(found()["state"], "good")
        sets = "/apis/apps/v1/namespaces/skep-jobs/daemonsets"
        for name, tolerations in (("network", [{"operator": "Exists"}]), ("kept-away", [])):
            self.cluster.create(sets, {"metadata": {"name": name}, "spec": {
                "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}, "spec": {
                    "tolerations": tolerations, "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}}}})
            self.cluster.merge(f"{sets}/{name}/status", {"status": {"desiredNumberScheduled": 1, "currentNumberScheduled": 1, "numberMisscheduled": 0, "numberReady": 1}})
            self.addCleanup(self.cluster.call, "DELETE", f"{sets}/{name}")
        row = found()
        self.assertEqual((row["state"], row["found"]), ("less", "DaemonSets: at most 1 pod, 100m CPU, 64 MiB on a node"))
        self.assertIn("nodeReserve: {cpu: 1, memoryMB: 64, pods: 0}", row["meaning"])
        self.assertEqual(found(cpu=1, memoryMB=64)["state"], "good")
        self.assertEqual(found(cpu=1, memoryMB=63)["state"], "less")

    def test_6_user_namespaces(self):
        config = self.folder / "skepd.yaml"
        status = "/api/v1/nodes/n1/status"

        def found(users):
            config.write_text(yaml.safe_dump({"engine": {"kind": "kubernetes", "kubernetes": {
                "kubeconfig": str(self.admin), "namespace": "skep-jobs", "nodeSelector": "skep=yes", "initImage": "x", "network": "pod",
                "userNamespaces": users}}}))
            return self.check("--config", str(config))

        self.assertNotIn("user namespaces", found("off"))
        self.assertEqual(self.state(found("auto"), "user namespaces"), "less")
        self.assertEqual(self.state(found("required"), "user namespaces"), "missing")
        self.assertEqual(self.state(found("required"), "hostUsers"), "good")
        self.cluster.merge(status, {"status": {"runtimeHandlers": [{"name": "", "features": {"userNamespaces": True}}]}})
        for users in ("auto", "required"):
            row = found(users)["user namespaces"]
            self.assertEqual((row["state"], row["found"]), ("good", "the runtime of 1 of 1 nodes has them"))

    def server_state(self, user, cluster=None, **environment):
        """Of the API server, with a kubeconfig that has this user."""
        path = self.cluster.kubeconfig("some.kubeconfig", user)
        config = json.loads(path.read_text())
        config["clusters"][0]["cluster"] |= cluster or {}
        path.write_text(json.dumps(config))
        row = self.check(kubeconfig=path, **environment)["API server"]
        return row["state"], row["found"]

    def test_6_who_asks(self):
        def is_good(*arguments, **more):
            self.assertEqual(self.server_state(*arguments, **more)[0], "good")

        is_good({"client-certificate": "cert.pem", "client-key": "cert.key"})
        is_good({"token": "admin-token"}, {"tls-server-name": "kubernetes.default.svc"})
        is_good({"token": "admin-token"}, HTTPS_PROXY="http://127.0.0.1:1")  # not towards this machine
        self.assertEqual(self.server_state({"token": "admin-token"}, {"proxy-url": "http://127.0.0.1:1"})[0], "missing")
        self.assertEqual(self.server_state({"token": "admin-token"}, {"tls-server-name": "other.example"})[0], "missing")
        state, found = self.server_state({"token": "nobody"})
        self.assertEqual(state, "missing")
        self.assertIn("Unauthorized", found)

    def plugin(self, status, **more):
        """A user whose plugin says what the file `says` has, and counts how often it does."""
        (self.folder / "says").write_text(json.dumps({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status}))
        (self.folder / "runs").write_text("")
        script = self.folder / "login"
        script.write_text(f"#!/bin/sh\ncd {self.folder} && printf x >>runs && printf '%s' \"$KUBERNETES_EXEC_INFO\" >info && cat says\n")
        script.chmod(0o700)
        return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./login", "interactiveMode": "Never", **more}}

    def runs(self):
        return len((self.folder / "runs").read_text())

    def test_7_plugins(self):
        user = self.plugin({"token": "admin-token"}, provideClusterInfo=True)
        self.assertEqual(self.server_state(user)[0], "good")
        self.assertEqual(self.runs(), 1)  # once for all requests
        told = json.loads((self.folder / "info").read_text())["spec"]["cluster"]
        self.assertEqual(told["server"], f"https://127.0.0.1:{self.cluster.port}")
        self.assertIn(b"BEGIN CERTIFICATE", base64.b64decode(told["certificate-authority-data"]))
        user = self.plugin({"clientCertificateData": (self.folder / "cert.pem").read_text(), "clientKeyData": (self.folder / "cert.key").read_text()})
        self.assertEqual(self.server_state(user)[0], "good")
        state, found = self.server_state({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-login",
                                                   "interactiveMode": "Never"}})
        self.assertEqual(state, "missing")
        self.assertIn("no-such-login", found)

    def is_refused(self, token):
        try:
            self.cluster.call("GET", "/api/v1/namespaces/skep-jobs/pods", token=token)
            return False
        except Refused as refused:
            return refused.status == 401

    def test_8_an_engine_that_logs_in_by_a_plugin(self):
        old = self.cluster.token("plugin")
        user = self.plugin({"token": old, "expirationTimestamp": "2101-01-01T00:00:00Z"})
        skepd = server.Skepd(SKEPD, {"engine": {"kind": "kubernetes", "kubernetes": {
            "kubeconfig": str(self.cluster.kubeconfig("plugin.kubeconfig", user)), "nodeSelector": "skep=yes", "initImage": "registry.invalid/skep:1"}}})
        self.addCleanup(skepd.remove)
        skepd.start()
        self.addCleanup(skepd.stop)
        skepd.login()

        def submit(name):
            skepd.submit(server.job_file(name, {"main": (1, "true", {})}, "registry.invalid/task:1", {}))

        def finish(name):
            (pod,) = self.cluster.wait_pods(1)
            self.cluster.play_running(pod)
            self.cluster.play_end(pod)
            self.assertEqual(skepd.wait_final([f"admin~{name}"], 120)[f"admin~{name}"], "SUCCEEDED", skepd.tail())
            self.cluster.wait_pods(0)  # a job may have ended before its pod is deleted, and no other skepd would do that

        submit("first")
        finish("first")
        self.assertEqual(self.runs(), 1)
        # the token is taken back long before it expires; the plugin fails first, and is asked again
        (self.folder / "says").unlink()
        self.cluster.call("DELETE", "/api/v1/namespaces/skep/secrets/plugin")
        waits.until(lambda: self.is_refused(old), "the old token is still taken", 120)
        submit("second")
        waits.until(lambda: "the exec plugin" in skepd.tail() and "login" in skepd.tail(), lambda: f"its failure is not told: {skepd.tail()}", 120)
        self.plugin({"token": self.cluster.token()})
        finish("second")

    def test_9_pods_in_the_pod_network_need_no_privileges(self):
        """The API server lets in what the engine makes, with and without user ids of its own."""
        space = "/api/v1/namespaces/skep-jobs"
        self.cluster.merge(space, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}})
        self.addCleanup(lambda: self.cluster.merge(space, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}))
        self.cluster.merge("/api/v1/nodes/n1/status", {"status": {"runtimeHandlers": [{"name": "", "features": {"userNamespaces": True}}]}})
        for users in ("off", "required"):
            with self.subTest(users=users):
                skepd = server.Skepd(SKEPD, {"engine": {"kind": "kubernetes", "kubernetes": {
                    "kubeconfig": str(self.admin), "namespace": "skep-jobs", "nodeSelector": "skep=yes", "initImage": "registry.invalid/skep:1",
                    "instance": f"net-{users}", "network": "pod", "userNamespaces": users}}})
                self.addCleanup(skepd.remove)
                skepd.start()
                self.addCleanup(skepd.stop)
                skepd.login()
                skepd.submit(server.job_file("job", {"main": (1, "true", {})}, "registry.invalid/task:1", {}))
                (pod,) = self.cluster.wait_pods(1)
                spec = self.cluster.call("GET", f"{space}/pods/{pod}")["spec"]
                self.assertNotIn("hostNetwork", spec)
                self.assertEqual(spec.get("hostUsers"), False if users == "required" else None)
                self.cluster.play_running(pod, "10.1.0.7")
                self.cluster.play_end(pod)
                self.assertEqual(skepd.wait_final(["admin~job"], 120)["admin~job"], "SUCCEEDED", skepd.tail())
                self.cluster.wait_pods(0)
                skepd.stop()


if __name__ == "__main__":
    unittest.main()
