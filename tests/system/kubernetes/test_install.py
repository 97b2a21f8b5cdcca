"""skepd itself as a pod that a real kubelet runs, out of deploy/kubernetes/{rights,skepd}.yaml: test_install.py SKEPD SKEP SKEP-INIT MAKE-IMAGE

The test is what the cluster's controllers would be: it makes the pod of the StatefulSet, the volume of the claim, and the pod's network.
Covers: src/engine/kubernetes/kubernetes.c
"""
import http.client
import json
import ssl
import subprocess
import sys
import tempfile
import unittest

import yaml

from cluster import Refused
from nodes import Nodes
import skepd as server
import waits
from waits import PATIENCE_S

SKEPD, SKEP, INIT, MAKE_IMAGE = (sys.argv.pop(1) for _ in range(4)) if __name__ == "__main__" else ("", "", "", "")
SPACE = "/api/v1/namespaces/skep"

# One pod of the node gets an address of the bridge's subnet, for which the node answers.
NETWORK = """#!/bin/sh
set -e
case $CNI_COMMAND in
VERSION) echo '{"cniVersion":"0.4.0","supportedVersions":["0.3.1","0.4.0"]}'; exit ;;
ADD) ;;
*) exit 0 ;;
esac
if [ "$CNI_IFNAME" = lo ]; then
    nsenter --net="$CNI_NETNS" ip link set lo up
    echo '{"cniVersion":"0.3.1"}'
    exit
fi
ip link add vpod type veth peer name "$CNI_IFNAME" netns "$CNI_NETNS"
ip link set vpod up
ip route add ADDRESS/32 dev vpod
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv4/conf/all/proxy_arp
inside() { nsenter --net="$CNI_NETNS" ip "$@"; }
inside address add ADDRESS/32 dev "$CNI_IFNAME"
inside link set "$CNI_IFNAME" up
inside route add 169.254.1.1 dev "$CNI_IFNAME"
inside route add default via 169.254.1.1
echo '{"cniVersion":"0.4.0","interfaces":[{"name":"'"$CNI_IFNAME"'","sandbox":"'"$CNI_NETNS"'"}],"ips":[{"version":"4","address":"ADDRESS/32","interface":0}]}'
"""


class Pod(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = Nodes(1)
        cls.cluster, cls.node = cls.nodes.cluster, cls.nodes[0]
        cls.addClassCleanup(cls.nodes.stop)
        with tempfile.TemporaryDirectory(prefix="skep-image-") as folder:
            image = f"{folder}/skep.tar"
            subprocess.run([MAKE_IMAGE, SKEPD, SKEP, INIT, image], check=True)
            cls.nodes.start(image)
        cls.image = cls.nodes.images.name("skep")
        cls.address = f"{cls.nodes.subnet}.200"
        cls.volume = cls.cluster.directory / "volume"

    def network_make(self):
        for name in ("none", "loopback"):
            program = self.node.directory / "networks" / name
            program.write_text(NETWORK.replace("ADDRESS", self.address))
            program.chmod(0o755)

    def volume_make(self):
        """As a provisioner and the cluster's binder would."""
        self.volume.mkdir()
        uid = self.cluster.call("GET", f"{SPACE}/persistentvolumeclaims/skepd")["metadata"]["uid"]
        self.cluster.create("/api/v1/persistentvolumes", {"metadata": {"name": "skepd"}, "spec": {
            "capacity": {"storage": "100Gi"}, "accessModes": ["ReadWriteOncePod"], "local": {"path": str(self.volume)},
            "claimRef": {"namespace": "skep", "name": "skepd", "uid": uid},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [self.node.name]}]}]}}}})
        self.cluster.merge(f"{SPACE}/persistentvolumeclaims/skepd", {"spec": {"volumeName": "skepd"}})
        self.cluster.merge(f"{SPACE}/persistentvolumeclaims/skepd/status", {"status": {
            "phase": "Bound", "capacity": {"storage": "100Gi"}, "accessModes": ["ReadWriteOncePod"]}})

    def pod_make(self):
        """The StatefulSet's own, on the only node; there is no service network, so that it is told where the API server is."""
        template = self.cluster.call("GET", "/apis/apps/v1/namespaces/skep/statefulsets/skepd")["spec"]["template"]
        spec = template["spec"] | {"nodeName": self.node.name, "tolerations": [{"operator": "Exists"}]}
        spec["containers"][0]["env"] = [{"name": "KUBERNETES_SERVICE_HOST", "value": self.cluster.address},
                                        {"name": "KUBERNETES_SERVICE_PORT", "value": str(self.cluster.port)}]
        self.cluster.create(f"{SPACE}/pods", {"metadata": {"name": "skepd-0", "labels": template["metadata"]["labels"]}, "spec": spec})

    def pod(self):
        return self.cluster.call("GET", f"{SPACE}/pods/skepd-0")

    def trouble(self):
        try:
            log = self.cluster.call("GET", f"{SPACE}/pods/skepd-0/log")
        except Refused as refused:
            log = str(refused)
        return f"{json.dumps(self.pod()['status'], indent=1)}\n{log}\n{self.node.tail('kubelet', 20)}"

    def is_ready(self):
        return any(each["type"] == "Ready" and each["status"] == "True" for each in self.pod()["status"].get("conditions", []))

    def is_gone(self):
        try:
            self.pod()
            return False
        except Refused as refused:
            return refused.status == 404

    def call(self, method, path, body=None, token=None, kind="application/json"):
        connection = http.client.HTTPSConnection(self.address, 9186, timeout=PATIENCE_S, context=ssl._create_unverified_context())
        try:
            connection.request(method, path, body, {"Content-Type": kind} | ({"Authorization": f"Bearer {token}"} if token else {}))
            reply = connection.getresponse()
            data = reply.read().decode()
        finally:
            connection.close()
        self.assertEqual(reply.status // 100, 2, data)
        return json.loads(data) if "json" in (reply.getheader("Content-Type") or "") else data

    def login(self):
        password = (self.volume / "admin-password").read_text().strip()
        return self.call("POST", "/api/v2/authn/basic/login", json.dumps({"username": "admin", "password": password}))["token"]

    def run_job(self, name):
        token = self.login()
        job = yaml.safe_load(server.job_file(name, {"main": (1, "echo hello", {})}, self.image, {}))
        job["taskRoles"]["main"]["resourcePerInstance"]["memoryMB"] = 64
        self.call("POST", "/api/v2/jobs", yaml.safe_dump(job), token, "text/yaml")
        path = f"/api/v2/jobs/admin~{name}"
        waits.until(lambda: self.call("GET", path, token=token)["jobStatus"]["state"] == "SUCCEEDED",
                    lambda: f"{self.call('GET', path, token=token)}\n{self.trouble()}", PATIENCE_S)
        self.assertEqual(self.call("GET", f"{path}/logs?index=0", token=token), "hello\n")

    def end(self):
        self.cluster.call("DELETE", f"{SPACE}/pods/skepd-0", {})
        waits.until(self.is_gone, self.trouble, PATIENCE_S)

    def test_it_starts_runs_jobs_and_is_moved(self):
        ca = (self.cluster.directory / "certs/apiserver.crt").read_text()
        self.cluster.create(f"{SPACE}/configmaps", {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ca}})
        self.cluster.apply("skepd.yaml", self.image)
        self.network_make()
        self.volume_make()
        self.pod_make()
        waits.until(self.is_ready, self.trouble, PATIENCE_S)
        (status,) = self.pod()["status"]["containerStatuses"]
        self.assertEqual(status["restartCount"], 0, self.trouble())
        self.run_job("first")
        self.end()  # as when its node is drained
        subprocess.run(["nsenter", f"--net=/run/netns/{self.node.group}", "ip", "link", "delete", "vpod"], capture_output=True)  # it may have gone with the pod
        self.pod_make()
        waits.until(self.is_ready, self.trouble, PATIENCE_S)
        self.run_job("second")
        jobs = self.call("GET", "/api/v2/jobs", token=self.login())
        self.assertEqual(sorted(job["name"] for job in (jobs["data"] if isinstance(jobs, dict) else jobs)), ["first", "second"])
        self.end()


if __name__ == "__main__":
    unittest.main()
