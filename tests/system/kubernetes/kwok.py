"""kwok in the place of kubelets: it plays the pods of all nodes of a cluster, as stages say that the test writes."""

import signal

import cluster
import yaml

RUNS = """
{{ $now := Now }}
conditions:
- {lastTransitionTime: {{ $now | Quote }}, status: "True", type: Ready}
containerStatuses:
{{ range .spec.containers }}
- {image: {{ .image | Quote }}, name: {{ .name | Quote }}, ready: true, restartCount: 0, state: {running: {startedAt: {{ $now | Quote }}}}}
{{ end }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ NodeIPWith .spec.nodeName | Quote }}
phase: Running
startTime: {{ $now | Quote }}
"""
ENDS = """
{{ $now := Now }}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  restartCount: 0
  state: {terminated: {exitCode: 0, finishedAt: {{ $now | Quote }}, reason: Completed, startedAt: {{ $now | Quote }}}}
{{ end }}
phase: Succeeded
"""
IS_THERE = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}


def stage(name, wanted, after, delay_ms=0, jitter_ms=0):
    spec = {"resourceRef": {"apiGroup": "v1", "kind": "Pod"}, "selector": {"matchExpressions": wanted}, "next": after}
    if delay_ms:
        spec["delay"] = {"durationMilliseconds": delay_ms, "jitterDurationMilliseconds": jitter_ms}
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}


class Kwok:
    """A pod runs at once, and succeeds after `first_ms` to `last_ms`; without these it runs until it is deleted."""

    def __init__(self, its, first_ms=None, last_ms=None):
        self.cluster = its
        self.program = cluster.need("kwok") / "kwok"
        stages = [
            stage("run", [IS_THERE, {"key": ".status.podIP", "operator": "DoesNotExist"}], {"statusTemplate": RUNS}),
            stage("delete", [IS_THERE | {"operator": "Exists"}], {"delete": True}),
        ]
        if first_ms:
            stages.append(stage("end", [IS_THERE, {"key": ".status.phase", "operator": "In", "values": ["Running"]}],
                                {"statusTemplate": ENDS}, first_ms, last_ms))
        self.config = its.directory / "kwok.yaml"
        options = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": {"podPlayStageParallelism": 32}}
        self.config.write_text(yaml.safe_dump_all([options, *stages]))

    def start(self):
        self.cluster.run("kwok", self.program, f"--config={self.config}", "--manage-all-nodes=true", "--node-ip=127.0.0.1",
                         f"--kubeconfig={self.cluster.kubeconfig('kwok.kubeconfig', {'token': 'admin-token'})}")

    def stop(self, how=signal.SIGKILL):
        self.cluster.stop_one("kwok", how)
