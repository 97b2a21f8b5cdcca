"""A skepd whose tasks real kubelets run: the nodes, the registry that they pull from, and the server's configuration."""

import contextlib
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile

from nodes import Nodes, run
import skepd as server
import waits
from waits import PATIENCE_S


def write_blob(layout, data):
    """Into an OCI layout; what names it there."""
    digest = hashlib.sha256(data).hexdigest()
    (layout / "blobs/sha256" / digest).write_bytes(data)
    return {"digest": f"sha256:{digest}", "size": len(data)}


def write_layer(layout, root):
    """The whole folder as one layer, without compression: it is read a few times on this machine, and thrown away."""
    path = layout / "layer"
    run("tar", "--create", "--numeric-owner", "--sort=name", f"--file={path}", f"--directory={root}", ".")
    digest = run("sha256sum", path).split()[0]
    path.rename(layout / "blobs/sha256" / digest)
    return {"digest": f"sha256:{digest}", "size": (layout / "blobs/sha256" / digest).stat().st_size}


def push_folder(images, root, name):
    """A root file system as the image `name` ("team/image:tag") of the nodes' registry."""
    kind = "application/vnd.oci.image"
    with tempfile.TemporaryDirectory(prefix="kube-image-", dir=images.directory) as folder:
        layout = pathlib.Path(folder)
        (layout / "blobs/sha256").mkdir(parents=True)
        (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        layer = write_layer(layout, root)
        config = write_blob(layout, json.dumps({
            "architecture": os.environ.get("GOARCH", "amd64"), "os": "linux",
            "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}).encode())
        manifest = write_blob(layout, json.dumps({
            "schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json", "config": config | {"mediaType": f"{kind}.config.v1+json"},
            "layers": [layer | {"mediaType": f"{kind}.layer.v1.tar"}]}).encode())
        (layout / "index.json").write_text(json.dumps({
            "schemaVersion": 2, "manifests": [manifest | {"mediaType": f"{kind}.manifest.v1+json",
                                                          "annotations": {"org.opencontainers.image.ref.name": "this"}}]}))
        run("skopeo", "copy", "--preserve-digests", "--retry-times", "9", "--dest-tls-verify=false", f"oci:{layout}:this",
            f"docker://{images.address}/{name}")


class Installation:
    """`programs`: skepd, skep, skep-init and make-image. The engine has exactly the rights of deploy/kubernetes/rights.yaml."""

    def __init__(self, programs, count, kubelet_settings=None, has_driver=False, **more):
        self.programs = programs
        self.nodes = Nodes(count, kubelet_settings, has_driver, **more)
        self.cluster = self.nodes.cluster
        self.skepd = None
        self.kubeconfig = None

    def start_nodes(self):
        with tempfile.TemporaryDirectory(prefix="skep-image-") as folder:
            image = f"{folder}/skep.tar"
            subprocess.run([self.programs[3], *self.programs[:3], image], check=True)
            self.nodes.start(image)
        self.kubeconfig, _ = self.cluster.grant()

    def claim_make(self, name, folder):
        """A claim of tasks that is bound to a folder of the nodes; needs the controller persistentvolume-binder-controller."""
        amount = {"storage": "1Gi"}
        self.cluster.create("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": {
            "capacity": amount, "accessModes": ["ReadWriteMany"], "storageClassName": "", "hostPath": {"path": str(folder)},
            "claimRef": {"namespace": "skep-jobs", "name": name}}})
        claims = "/api/v1/namespaces/skep-jobs/persistentvolumeclaims"
        self.cluster.create(claims, {"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": name, "resources": {"requests": amount}}})
        waits.until(lambda: self.cluster.call("GET", f"{claims}/{name}")["status"].get("phase") == "Bound", f"the claim {name} is bound", PATIENCE_S)

    def configuration(self, scheduling=None, **kubernetes):
        return {
            "engine": {"kind": "kubernetes", "kubernetes": {
                "kubeconfig": str(self.kubeconfig), "nodeSelector": "skep=yes", "initImage": self.nodes.images.name("skep")} | kubernetes},
            "scheduling": {"policy": "spread", "portFirst": 15000, "portLast": 40000, "retryPauseFirstSeconds": 1,
                           "retryPauseMaxSeconds": 1} | (scheduling or {}),
        }

    def start_skepd(self, scheduling=None, more=None, ready=None, **kubernetes):
        """It has these nodes (None: all) before it is used."""
        self.skepd = server.Skepd(self.programs[0], self.configuration(scheduling, **kubernetes) | (more or {}))
        self.skepd.start()
        self.skepd.login()
        self.wait_nodes(self.skepd, ready)

    def wait_nodes(self, skepd, names=None):
        wanted = set(names or (node.name for node in self.nodes))

        def rows():
            return skepd.call("GET", "/api/v2/nodes")["data"]
        waits.until(lambda: wanted <= {row["name"] for row in rows() if row["state"] == "READY"},
                    lambda: f"not all of {wanted} are ready: {rows()}\n{self.trouble()}", PATIENCE_S)

    def environment(self):
        """For `skep`."""
        return os.environ | {"SKEP_SERVER": f"http://127.0.0.1:{self.skepd.port}", "SKEP_TOKEN": self.skepd.token}

    def trouble(self, lines=15):
        return "\n".join([self.skepd.tail() if self.skepd else "", *(node.tail("kubelet", lines) for node in self.nodes)])

    def stop(self):
        with contextlib.ExitStack() as stack:
            stack.callback(self.nodes.stop)
            if self.skepd:
                code, tail = self.skepd.stop(), self.skepd.tail()
                self.skepd.remove()
                assert code == 0, tail
