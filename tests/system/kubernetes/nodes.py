"""Nodes with a real kubelet and a real containerd, each in a network namespace of its own, behind one bridge.

With a pod network each node has a bridge of its own in its namespace, which the CNI plugins of Debian make, and a range of addresses for its pods;
the nodes and this machine have routes to all of them. All of that ends with the namespaces and the bridge.

Everything a node starts stands in the node's own control groups, and a guard waits for the end of the test, so nothing of it
outlives the test, however that ends. A kubelet sets some parameters of the machine's kernel: they are put back.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import cluster
import waits
from task_ports import server_port

GROUPS = pathlib.Path("/sys/fs/cgroup")
CONTROLLERS = ["cpu", "cpuset", "memory", "pids"]  # that a kubelet does not do without
CONTROLLERS_IF_THERE = ["hugetlb"]
PARAMETERS = [pathlib.Path("/proc/sys", name) for name in (
    "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")]
PARAMETERS_KEPT = pathlib.Path("/run/skep-test-kernel-parameters")  # what they were before kubelets came
PROGRAMS = {"containerd": "containerd", "runc": "runc", "ip": "iproute2", "nsenter": "util-linux", "umoci": "umoci", "skopeo": "skopeo",
            "docker-registry": "docker-registry", "busybox": "busybox-static", "openssl": "openssl"}
CNI_PLUGINS = pathlib.Path("/usr/lib/cni")  # where Debian's containernetworking-plugins are
KUBELET_STARTS = 5
KUBELET_PLUGINS = "/var/lib/kubelet/device-plugins/kubelet.sock"  # a constant of kubelet


CDI_RUNTIME = """#!{python}
import json, os, sys

if "create" in sys.argv:
    config = sys.argv[sys.argv.index("--bundle") + 1] + "/config.json"
    with open(config) as file:
        spec = json.load(file)
    note = {{key.rpartition(".")[2]: value for key, value in spec.get("annotations", {{}}).items()}}
    path = "{prepared}/" + note.get("sandbox-namespace", "") + "_" + note.get("sandbox-name", "") + ".json"
    if note.get("container-name") == "task" and os.path.exists(path):
        with open(path) as file:
            for device in json.load(file)["devices"]:
                spec["process"]["env"] += device["containerEdits"]["env"]
        with open(config, "w") as file:
            json.dump(spec, file)
os.execv("{runc}", ["runc", *sys.argv[1:]])
""".replace("{python}", sys.executable)


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}"
    return done.stdout


def skip(why):
    print(f"skipped: {why}")
    sys.exit(cluster.SKIPPED)


def need(has_pod_network=False):
    """Skips the test where no node can be made, and says what is missing."""
    if os.geteuid() != 0:
        skip("a kubelet needs root")
    missing = [f"{program} (Debian's {package})" for program, package in PROGRAMS.items() if not shutil.which(program)]
    if has_pod_network and not all((CNI_PLUGINS / name).exists() for name in ("bridge", "host-local", "loopback")):
        missing.append("the CNI plugins (Debian's containernetworking-plugins)")
    if missing:
        skip(f"not here: {', '.join(missing)}")
    if "overlay" not in pathlib.Path("/proc/filesystems").read_text():
        skip("the kernel has no overlay file system")
    probe = f"kube-{os.getpid()}"
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY))
        parameters_write(parameters_read())
        controllers_enable()
        for group in hierarchies():
            (group / probe).mkdir()
            (group / probe).rmdir()
        run("ip", "netns", "add", probe)
        run("ip", "netns", "delete", probe)
    except (OSError, AssertionError) as error:
        skip(f"the kernel refuses what a kubelet needs: {error}")


def parameters_read():
    return [path.read_text() for path in PARAMETERS]


def parameters_write(values):
    for path, value in zip(PARAMETERS, values):
        path.write_text(value)


def parameters_keep():
    """Until the file that is returned is closed others know that kubelets run here. The first of all that run notes what stood there before."""
    file = open(PARAMETERS_KEPT, "a+")
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
        file.write(json.dumps(parameters_read()))
        file.flush()
    fcntl.flock(file, fcntl.LOCK_SH)
    return file


def parameters_restore():
    """As the first found them, by the last of those that have run beside each other."""
    with open(PARAMETERS_KEPT, "a+") as file, contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.seek(0)
        parameters_write(json.load(file))


def hierarchies():
    """The roots of all control groups: one of version 2, or one for each controller of version 1."""
    if (GROUPS / "cgroup.controllers").exists():
        return [GROUPS]
    return [path for path in sorted(GROUPS.iterdir()) if path.is_dir() and not path.is_symlink() and path.name != "unified"]


def controllers_enable():
    if hierarchies() == [GROUPS]:
        there = (GROUPS / "cgroup.controllers").read_text().split()
    else:
        there = [name for name in CONTROLLERS if (GROUPS / name).exists()]
    missing = set(CONTROLLERS) - set(there)
    if missing:
        raise FileNotFoundError(f"no control groups of {', '.join(sorted(missing))}")
    if hierarchies() == [GROUPS]:
        wanted = [f"+{name}" for name in CONTROLLERS + CONTROLLERS_IF_THERE if name in there]
        (GROUPS / "cgroup.subtree_control").write_text(" ".join(wanted))


def group_make(name):
    for root in hierarchies():
        group = root / name
        group.mkdir()
        for file in ("cpuset.cpus", "cpuset.mems"):
            if (group / file).exists() and not (root / "cgroup.controllers").exists():
                (group / file).write_text((root / file).read_text())


def all_hierarchies():
    """Beside those of version 1 there may be one of version 2 without controllers, in which runc puts its containers, too."""
    beside = GROUPS / "unified"
    return hierarchies() + ([beside] if beside.is_dir() else [])


def groups_below(group):
    """The group and all below it, the deepest first. One that goes while we look is passed over, which pathlib's own walk is not."""
    return [pathlib.Path(folder) for folder, _, _ in os.walk(group, topdown=False)]


def group_processes(name):
    found = set()
    for root in all_hierarchies():
        for group in groups_below(root / name):
            with contextlib.suppress(OSError):
                found |= {int(line) for line in (group / "cgroup.procs").read_text().split()}
    return found


def group_remove(name):
    def is_gone():
        for process in group_processes(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for root in all_hierarchies():
            for group in groups_below(root / name):
                with contextlib.suppress(OSError):  # one that is ending keeps it, or it has just gone
                    group.rmdir()
        return not any((root / name).exists() for root in all_hierarchies())

    waits.until(is_gone, lambda: f"the control groups {name} do not go, nor {group_processes(name)}", waits.PATIENCE_S)


def group_enter(name):
    """For the child of a fork: all that it starts stands in the group."""
    def enter():
        for root in hierarchies():
            (root / name / "cgroup.procs").write_text("0")
    return enter


def unmount_below(folder):
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    for path in sorted((line.split()[4] for line in lines), reverse=True):
        if path.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", path], capture_output=True)  # another may have taken it along


def results_remove(group):
    """What the library of CNI remembers of the pods that were not ended: that is in one folder of the machine, whoever calls it."""
    folder = pathlib.Path("/var/lib/cni/results")
    for path in folder.glob(f"{group}-*-eth0"):
        pod = path.name.removeprefix(f"{group}-").removesuffix("-eth0")
        (folder / f"cni-loopback-{pod}-lo").unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def remains_remove(bridge, directory, groups):
    """All that nodes leave on the machine, as far as it is there."""
    for group in groups:
        group_remove(group)
    unmount_below(os.path.realpath(directory))
    for group in groups:
        subprocess.run(["ip", "netns", "delete", group], capture_output=True)
        results_remove(group)
    subprocess.run(["ip", "link", "delete", bridge], capture_output=True)
    shutil.rmtree(directory, ignore_errors=True)
    parameters_restore()


class Guard:
    """A process of its own session that removes what the test has left when that ends, also by a signal."""

    def __init__(self, *remains):
        self.process = subprocess.Popen([sys.executable, __file__, json.dumps(remains)], stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def dismiss(self):
        """When nothing is left any more."""
        self.process.kill()
        self.process.communicate()


def bridge_make():
    """A bridge that nobody else has: what it and all that belongs to it are called, its subnet, and the one of the pods behind it."""
    for number in range(250):
        if subprocess.run(["ip", "link", "add", f"kt{number}br", "type", "bridge"], capture_output=True).returncode == 0:
            return f"kt{number}", f"10.203.{number}", f"10.204.{number}"
    raise AssertionError("no bridge can be made")


class Images:
    """A registry on the bridge, with the images of the build and of the test; and one that asks for a password."""

    def __init__(self, directory, address):
        self.directory = directory
        self.address = f"{address}:{server_port()}"
        self.closed_address = f"{address}:{server_port()}"
        self.processes = []

    def serve(self, name, address, more):
        config = self.directory / f"{name}.yaml"
        config.write_text(json.dumps({
            "version": 0.1, "log": {"level": "warn"}, "http": {"addr": address},
            "storage": {"filesystem": {"rootdirectory": str(self.directory / "registry")}}} | more))
        with open(self.directory / f"{name}.log", "ab") as log:
            self.processes.append(subprocess.Popen(["docker-registry", "serve", config], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                                   preexec_fn=cluster.end_with_parent))

    def start_closed(self, user, password):
        """The same images, for who has the password."""
        users = self.directory / "registry-users"
        users.write_text(run("htpasswd", "-Bbn", user, password))
        self.serve("registry-closed", self.closed_address, {"auth": {"htpasswd": {"realm": "test", "path": str(users)}}})

    def start(self, skep_image):
        self.serve("registry", self.address, {})
        layout = f"{self.directory}/layout"
        run("skopeo", "copy", f"oci-archive:{skep_image}", f"oci:{layout}:skep")
        # what holds a pod's namespaces: it sleeps. It has some of the pod's memory, as what clusters have beside a container may
        run("umoci", "config", "--image", f"{layout}:skep", "--tag", "pause", "--config.entrypoint", "sh", "--config.cmd", "-c",
            "--config.cmd", "held=$(printf %2000000d 0); sleep 1000000; echo $held")
        for name in ("skep", "pause"):
            self.push(f"oci:{layout}:{name}", name)

    def push(self, source, name):
        run("skopeo", "copy", "--retry-times", "9", "--dest-tls-verify=false", source, f"docker://{self.name(name)}")

    def name(self, name):
        return f"{self.address}/{name}:1"

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


class Node:
    def __init__(self, nodes, number):
        self.nodes, self.name = nodes, f"n{number}"
        self.address = f"{nodes.subnet}.{10 + number}"
        self.pod_range = f"{nodes.pod_subnet}.{32 * number}/27"
        self.group = f"{nodes.prefix}-{self.name}"
        self.directory = nodes.directory / self.name
        self.has_new_runtime = number <= nodes.new_runtimes
        self.processes = {}

    def start(self):
        self.directory.mkdir()
        group_make(self.group)
        group_make(f"{self.group}/services")  # those of the pods stand beside them
        self.link()
        self.start_containerd()
        self.start_kubelet()

    def link(self):
        space, inside, outside = self.group, "eth0", f"{self.nodes.prefix}v{self.name}"
        run("ip", "netns", "add", space)
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", space)
        run("ip", "link", "set", outside, "master", self.nodes.bridge, "up")
        for command in (["address", "add", f"{self.address}/24", "dev", inside], ["link", "set", inside, "up"], ["link", "set", "lo", "up"],
                        ["route", "add", "default", "via", self.nodes.address]):
            run("ip", "-n", space, *command)
        if self.nodes.has_pod_network:
            run("nsenter", f"--net=/run/netns/{space}", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
            run("ip", "route", "add", self.pod_range, "via", self.address)
            for other in self.nodes:
                if other is not self:
                    run("ip", "-n", space, "route", "add", other.pod_range, "via", other.address)

    def run(self, name, *command):
        with open(self.directory / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self.group}", *map(str, command)], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                preexec_fn=group_enter(f"{self.group}/services"))

    def tail(self, name, lines=30):
        return "\n".join((self.directory / f"{name}.log").read_text(errors="replace").splitlines()[-lines:])

    def start_containerd(self):
        config = self.directory / "containerd.toml"
        networks, plugins = self.directory / "networks", CNI_PLUGINS if self.nodes.has_pod_network else self.directory / "networks"
        networks.mkdir()
        (networks / "pods.conflist").write_text(json.dumps({"cniVersion": "0.4.0", "name": self.group, "plugins": [self.network_plugin()]}))
        config.write_text(self.runtime_settings_new(networks, plugins) if self.has_new_runtime else self.runtime_settings(networks, plugins))
        self.run("containerd", self.program("containerd"), "--config", config)
        waits.until(self.socket().exists, lambda: f"containerd is not ready:\n{self.tail('containerd')}", waits.PATIENCE_S)

    def runtime_settings(self, networks, plugins):
        registry = self.nodes.images.address
        return f"""
version = 2
root = "{self.directory}/containerd"
state = "{self.directory}/containerd-run"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
                    "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "{self.socket()}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{self.nodes.images.name('pause')}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "{networks}"
    bin_dir = "{plugins}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = false
    BinaryName = "{self.runtime() if self.nodes.has_driver else 'runc'}"
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."{registry}"]
    endpoint = ["http://{registry}"]
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
    endpoint = ["http://{registry}"]
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."{self.nodes.images.closed_address}"]
    endpoint = ["http://{self.nodes.images.closed_address}"]
"""

    def runtime_settings_new(self, networks, plugins):
        """Those of a containerd of version 2, which has other names for most of them."""
        hosts, images, runtime = self.directory / "hosts", "plugins.'io.containerd.cri.v1.images'", "plugins.'io.containerd.cri.v1.runtime'"
        for registry, server in ((self.nodes.images.address,) * 2, ("docker.io", self.nodes.images.address), (self.nodes.images.closed_address,) * 2):
            (hosts / registry).mkdir(parents=True)
            (hosts / registry / "hosts.toml").write_text(f'[host."http://{server}"]\n  capabilities = ["pull", "resolve"]\n')
        return f"""
version = 3
root = "{self.directory}/containerd"
state = "{self.directory}/containerd-run"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]
[grpc]
  address = "{self.socket()}"
[{images}.pinned_images]
  sandbox = "{self.nodes.images.name('pause')}"
[{images}.registry]
  config_path = "{hosts}"
[{runtime}]
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
[{runtime}.cni]
  conf_dir = "{networks}"
  bin_dirs = ["{plugins}"]
[{runtime}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  runtime_path = "{self.program("containerd-shim-runc-v2")}"
[{runtime}.containerd.runtimes.runc.options]
  SystemdCgroup = false
  BinaryName = "{self.program("runc")}"
"""

    def program(self, name):
        """Debian's, or the one that build-components has made."""
        return str(self.nodes.cluster.components / name) if self.has_new_runtime else name

    def network_plugin(self):
        """What puts pods into a network. Without a pod network all are in their node's; the kubelet wants to see one for the others all the same."""
        if not self.nodes.has_pod_network:
            return {"type": "none"}
        return {"type": "bridge", "bridge": "pods", "isGateway": True, "ipam": {
            "type": "host-local", "dataDir": str(self.directory / "addresses"), "ranges": [[{"subnet": self.pod_range}]],
            "routes": [{"dst": "0.0.0.0/0"}]}}

    def runtime(self):
        """runc for nodes with a DRA driver. containerd 1.6 passes over the CDI devices that a kubelet names (1.7 knows them): what the
        driver has prepared for a pod's claim is put into the container `task` in its place."""
        path = self.directory / "runc"
        path.write_text(CDI_RUNTIME.format(runc=shutil.which("runc"), prepared=self.prepared()))
        path.chmod(0o755)
        return path

    def prepared(self):
        """The folder of what the DRA driver has prepared: a file for each claim."""
        return self.directory / "prepared"

    def socket(self):
        return self.directory / "containerd.sock"

    def start_kubelet(self, more=None):
        config, settings = self.directory / "kubelet.json", self.nodes.kubelet_settings
        config.write_text(json.dumps({
            "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "failCgroupV1": False, "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.group}", "cgroupsPerQOS": True,
            "enforceNodeAllocatable": [], "oomScoreAdj": 0, "makeIPTablesUtilChains": False,
            "failSwapOn": False, "resolvConf": "", "containerRuntimeEndpoint": f"unix://{self.socket()}",
            "address": self.address, "healthzPort": 0, "readOnlyPort": 0,
            "tlsCertFile": str(self.nodes.directory / f"{self.name}.crt"), "tlsPrivateKeyFile": str(self.nodes.directory / f"{self.name}.key"),
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": str(self.nodes.directory / "ca.crt")}},
            "authorization": {"mode": "Webhook"},
            "registerWithTaints": [{"key": "skep.internal/dedicated", "effect": "NoSchedule"}],
            "evictionHard": {"memory.available": "10Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "nodeStatusUpdateFrequency": "5s", "imageGCHighThresholdPercent": 100, "podLogsDir": str(self.directory / "pods"),
        } | settings | (more or {})))
        self.kubelet_starts = 0
        self.run_kubelet()

    def run_kubelet(self):
        log = self.directory / "kubelet.log"
        self.kubelet_starts, self.kubelet_log_from = self.kubelet_starts + 1, log.stat().st_size if log.exists() else 0
        self.run("kubelet", self.nodes.cluster.components / "kubelet", f"--config={self.directory / 'kubelet.json'}",
                 f"--root-dir={self.directory}/kubelet",
                 f"--kubeconfig={self.nodes.cluster.kubeconfig(f'{self.name}.kubeconfig', {'token': f'{self.name}-token'})}",
                 f"--hostname-override={self.name}", f"--node-ip={self.address}", "--node-labels=skep=yes",
                 f"--cert-dir={self.directory}/certs", "--v=2")

    def is_started(self):
        """Its kubelet listens for device plugins. All kubelets of a machine do so at one path: each removes first what stands there, and
        one that finds it taken again, by another that starts at the same time, ends. That one is started anew."""
        process = self.processes["kubelet"]
        if process.poll() is None:
            with contextlib.suppress(OSError):  # it ends just now
                return KUBELET_PLUGINS in pathlib.Path(f"/proc/{process.pid}/net/unix").read_text()
            return False
        said = (self.directory / "kubelet.log").read_bytes()[self.kubelet_log_from:]
        assert b"while starting device plugin registry" in said and self.kubelet_starts < KUBELET_STARTS, self.tail("kubelet")
        self.run_kubelet()
        return False

    def start_plugin(self, resource, how):
        """A device plugin with one device; `how` is good, or broken: then it refuses to hand it out."""
        self.run("plugin", self.nodes.cluster.components / "device-plugin", f"{self.directory}/kubelet/plugins_registry", resource, how)

    def set_devices(self, devices):
        """What the DRA driver offers, as a ResourceSlice has it; one that runs is told."""
        (self.directory / "devices.json").write_text(json.dumps(devices))
        if "driver" in self.processes:
            self.processes["driver"].send_signal(signal.SIGHUP)

    def start_driver(self, name):
        """A DRA driver of that name with the devices of set_devices."""
        self.prepared().mkdir(exist_ok=True)
        config = self.nodes.cluster.kubeconfig("driver.kubeconfig", {"token": "admin-token"})
        self.run("driver", self.nodes.cluster.components / "dra-driver", config, self.name, name, self.directory / "kubelet",
                 self.prepared(), self.directory / "devices.json")

    def is_ready(self):
        if not self.is_started():
            return False
        try:
            node = self.nodes.cluster.call("GET", f"/api/v1/nodes/{self.name}")
        except cluster.Refused:
            return False
        taints = [taint["key"] for taint in node["spec"].get("taints", [])]
        if "controllers" not in self.nodes.cluster.processes and "node.kubernetes.io/not-ready" in taints and self.condition(node) == "True":  # a controller would take it off
            kept = [taint for taint in node["spec"]["taints"] if taint["key"] != "node.kubernetes.io/not-ready"]
            self.nodes.cluster.merge(f"/api/v1/nodes/{self.name}", {"spec": {"taints": kept}})
        return self.condition(node) == "True"

    @staticmethod
    def condition(node):
        return next((each["status"] for each in node["status"].get("conditions", []) if each["type"] == "Ready"), None)

    def wait_ready(self):
        waits.until(self.is_ready, lambda: f"{self.name} is not ready:\n{self.tail('kubelet')}\n{self.tail('containerd', 10)}")

    def stop_one(self, name, how=signal.SIGKILL):
        process = self.processes.pop(name)
        process.send_signal(how)
        process.wait(60)

    def stop(self):
        for name in list(self.processes):
            self.stop_one(name)


class Nodes:
    """The cluster's nodes n1, n2, …; the API server listens at the bridge's address."""

    def __init__(self, count, kubelet_settings=None, has_driver=False, has_pod_network=False, new_runtimes=0):
        """`has_driver`: start_driver will be called for its nodes. `has_pod_network`: pods that do not ask for their node's network have
        addresses of their own. `new_runtimes`: so many nodes, from n1 on, have the containerd and the runc of build-components, which
        can give a pod a user namespace; the others have Debian's."""
        need(has_pod_network)
        self.has_driver, self.has_pod_network, self.new_runtimes = has_driver, has_pod_network, new_runtimes
        cluster.need("kube-apiserver", "kubelet", *(("containerd", "runc") if new_runtimes else ()))
        self.prefix, self.subnet, self.pod_subnet = bridge_make()
        self.bridge, self.address = f"{self.prefix}br", f"{self.subnet}.1"
        self.cluster = cluster.Cluster(self.address)
        self.directory = self.cluster.directory
        if new_runtimes:
            self.directory.chmod(0o711)  # root of a pod with a user namespace is not root here, and its files stand below
        self.kubelet_settings = kubelet_settings or {}
        self.images = Images(self.directory, self.address)
        self.nodes = [Node(self, 1 + each) for each in range(count)]
        self.remains = self.bridge, str(self.directory), [node.group for node in self.nodes]
        self.parameters = parameters_keep()
        self.guard = Guard(*self.remains)
        with open(self.directory / "tokens", "a") as tokens:
            for node in self.nodes:
                tokens.write(f'{node.name}-token,system:node:{node.name},{node.name},system:nodes\n')

    def __getitem__(self, index):
        return self.nodes[index]

    def __iter__(self):
        return iter(self.nodes)

    def start(self, skep_image):
        run("ip", "address", "add", f"{self.address}/24", "dev", self.bridge)
        run("ip", "link", "set", self.bridge, "up")
        self.certificates()
        self.images.start(skep_image)
        self.cluster.start(f"--client-ca-file={self.directory}/ca.crt", f"--kubelet-certificate-authority={self.directory}/ca.crt",
                           f"--kubelet-client-certificate={self.directory}/server.crt", f"--kubelet-client-key={self.directory}/server.key",
                           f"--advertise-address={self.address}", "--kubelet-preferred-address-types=InternalIP")
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.wait_ready()

    def certificates(self):
        key, ca = self.directory / "ca.key", self.directory / "ca.crt"
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", ca, "-days", "2", "-subj", "/CN=kube-test")
        subjects = {"server": ("/O=system:masters/CN=kube-apiserver", self.address)}
        for node in self.nodes:
            subjects[node.name] = (f"/O=system:nodes/CN=system:node:{node.name}", node.address)
        for name, (subject, address) in subjects.items():
            path, extra = self.directory / name, self.directory / f"{name}.ext"
            extra.write_text(f"subjectAltName=IP:{address}\n")
            run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{path}.key", "-out", f"{path}.csr", "-subj", subject)
            run("openssl", "x509", "-req", "-in", f"{path}.csr", "-CA", ca, "-CAkey", key, "-CAcreateserial", "-days", "2",
                "-extfile", extra, "-out", f"{path}.crt")

    def stop(self):
        for node in self.nodes:
            node.stop()
        self.images.stop()
        for name in list(self.cluster.processes):
            self.cluster.stop_one(name, signal.SIGKILL)
        self.parameters.close()
        remains_remove(*self.remains)
        self.guard.dismiss()


if __name__ == "__main__":  # the guard
    sys.stdin.read()
    remains_remove(*json.loads(sys.argv[1]))
