"""The Helm chart draws the manifests, and what its values say: test_chart.py

Skipped without helm; tests/system/kubernetes/build-components helm makes it.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import yaml

HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = HERE.parents[2] / "deploy/kubernetes"
SKIPPED = 77
VERSION = "--kube-version", "1.34.2"  # one that is built by `go install` takes an old one for granted


def helm_find():
    build = HERE / "build-components"
    if subprocess.run([build, "--missing", "helm"], check=True, capture_output=True, text=True).stdout.strip():
        print(f"skipped: helm is not here; {build} helm makes it")
        sys.exit(SKIPPED)
    return pathlib.Path(subprocess.run([build, "--print"], check=True, capture_output=True, text=True).stdout.strip()) / "helm"


def by_name(text):
    """Objects by kind, namespace and name; the configuration in the ConfigMap is compared as what it means."""
    objects = {}
    for item in yaml.safe_load_all(text):
        if not item:
            continue
        if item["kind"] == "ConfigMap":
            item["data"] = {name: yaml.safe_load(content) for name, content in item["data"].items()}
        key = item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]
        assert key not in objects, key
        objects[key] = item
    return objects


def manifests(*more):
    return by_name("\n---\n".join((DEPLOY / name).read_text() for name in ("rights.yaml", "skepd.yaml", *more)))


class Chart(unittest.TestCase):
    maxDiff = None

    def run_helm(self, *words):
        with tempfile.TemporaryDirectory(prefix="helm-") as home:
            names = {f"HELM_{name}_HOME": home for name in ("CACHE", "CONFIG", "DATA")}
            return subprocess.run([HELM, *words], env=names, capture_output=True, text=True, timeout=120)

    def draw(self, values=None, namespace="skep"):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(values or {}, file)
            file.flush()
            done = self.run_helm("template", "skep", str(DEPLOY / "helm"), "--namespace", namespace, "--values", file.name, *VERSION)
        self.assertEqual(done.returncode, 0, done.stderr)
        return by_name(done.stdout)

    def test_without_values_it_is_the_manifests(self):
        wanted = manifests()
        self.assertEqual(self.draw({"namespace": {"create": True}}), wanted)
        del wanted["Namespace", None, "skep"]  # which whoever installs it makes
        self.assertEqual(self.draw(), wanted)

    def test_the_level_of_the_tasks_follows_their_network(self):
        def level(config, **jobs):
            labels = self.draw({"config": config, "jobs": jobs})["Namespace", None, "skep-jobs"]["metadata"]["labels"]
            return labels["pod-security.kubernetes.io/enforce"]

        pods = {"kubernetes": {"network": "pod"}}
        self.assertEqual(level({}), "privileged")
        self.assertEqual(level({"engine": pods}), "baseline")
        self.assertEqual(level({"engine": {"kubernetes": {"network": "pod", "hostNetwork": ["hpc"]}}}), "privileged")
        self.assertEqual(level({"engine": pods}, podSecurity="privileged"), "privileged")
        one, other = {"name": "a", "kind": "kubernetes"} | pods, {"name": "b", "kind": "local"}
        self.assertEqual(level({"engines": [one, other]}), "baseline")
        self.assertEqual(level({"engines": [one, other | {"kind": "kubernetes"}]}), "privileged")

    def test_rights_to_claims_come_with_them(self):
        wanted = set(manifests("rights-dra.yaml"))
        engine = {"kubernetes": {"gpus": "dra"}}
        for config in ({"engine": engine}, {"engines": [{"name": "a"}, {"name": "b"} | engine]}):
            self.assertEqual(set(self.draw({"namespace": {"create": True}, "config": config})), wanted)
        binding = self.draw({"config": {"engine": engine}}, "lab")["ClusterRoleBinding", None, "skep-slices-lab"]
        self.assertEqual((binding["roleRef"]["name"], binding["subjects"][0]["namespace"]), ("skep-slices-lab", "lab"))

    def test_lint(self):
        done = self.run_helm("lint", "--strict", str(DEPLOY / "helm"), *VERSION)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_another_namespace(self):
        objects = self.draw({"namespace": {"create": True}, "jobs": {"namespace": "lab-jobs"}}, "lab")
        self.assertEqual({space for _, space, _ in objects}, {None, "lab", "lab-jobs"})
        self.assertEqual(sorted(name for kind, _, name in objects if kind == "Namespace"), ["lab", "lab-jobs"])
        self.assertNotIn("skep-jobs", json.dumps(list(objects.values())))
        binding = objects["ClusterRoleBinding", None, "skep-nodes-lab"]
        self.assertEqual((binding["roleRef"]["name"], binding["subjects"][0]["namespace"]), ("skep-nodes-lab", "lab"))
        self.assertIn(("ClusterRole", None, "skep-nodes-lab"), objects)
        self.assertEqual(objects["RoleBinding", "lab-jobs", "skep"]["subjects"][0]["namespace"], "lab")
        engine = objects["ConfigMap", "lab", "skepd"]["data"]["skepd.yaml"]["engine"]["kubernetes"]
        self.assertEqual((engine["namespace"], engine["apiUrl"]), ("lab-jobs", "https://skepd.lab.svc:9186"))

    def pod(self, values):
        objects = self.draw(values)
        return objects, objects["StatefulSet", "skep", "skepd"]["spec"]["template"]

    def test_values_go_where_they_belong(self):
        objects, template = self.pod({
            "image": "lab/skep:2", "initImage": "lab/init:2", "imagePullPolicy": "Always", "imagePullSecrets": ["pull"],
            "config": {"adminName": "root", "engine": {"kubernetes": {"gpus": "env", "nodeSelector": "lab=yes"}}},
            "persistence": {"size": "5Gi", "storageClass": "fast"}, "service": {"type": "LoadBalancer", "annotations": {"a": "b"}},
            "resources": {"limits": {"memory": "8Gi"}}, "nodeSelector": {"role": "control"}, "tolerations": [{"operator": "Exists"}],
            "affinity": {"nodeAffinity": {}}, "priorityClassName": "high", "podAnnotations": {"c": "d"}})
        pod = template["spec"]
        container = pod["containers"][0]
        self.assertEqual((container["image"], container["imagePullPolicy"], pod["imagePullSecrets"]), ("lab/skep:2", "Always", [{"name": "pull"}]))
        self.assertEqual(container["resources"], {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "8Gi"}})
        self.assertEqual((pod["nodeSelector"], pod["tolerations"], pod["priorityClassName"]), ({"role": "control"}, [{"operator": "Exists"}], "high"))
        self.assertEqual((pod["affinity"], template["metadata"]["annotations"]), ({"nodeAffinity": {}}, {"c": "d"}))
        settings = objects["ConfigMap", "skep", "skepd"]["data"]["skepd.yaml"]
        self.assertEqual((settings["adminName"], settings["dataDirectory"]), ("root", "/var/lib/skep"))
        self.assertEqual(settings["engine"]["kubernetes"] | {"apiUrl": None}, {
            "namespace": "skep-jobs", "nodeSelector": "lab=yes", "initImage": "lab/init:2", "gpus": "env", "apiUrl": None})
        claim = objects["PersistentVolumeClaim", "skep", "skepd"]["spec"]
        self.assertEqual((claim["storageClassName"], claim["resources"]["requests"]["storage"]), ("fast", "5Gi"))
        service = objects["Service", "skep", "skepd"]
        self.assertEqual((service["spec"]["type"], service["metadata"]["annotations"]), ("LoadBalancer", {"a": "b"}))

    def test_secrets_are_folders(self):
        objects, template = self.pod({"tlsSecret": "certificate", "secrets": ["ldap", "oidc"]})
        pod = template["spec"]
        mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        secrets = {mounts[volume["name"]]: volume["secret"] for volume in pod["volumes"] if "secret" in volume}
        self.assertEqual({path: secret["secretName"] for path, secret in secrets.items()},
                         {"/etc/skep-tls": "certificate", "/etc/skep-secrets/ldap": "ldap", "/etc/skep-secrets/oidc": "oidc"})
        self.assertEqual({secret["defaultMode"] for secret in secrets.values()}, {0o400})
        tls = objects["ConfigMap", "skep", "skepd"]["data"]["skepd.yaml"]["api"]["tls"]
        self.assertEqual(tls, {"certificateFile": "/etc/skep-tls/tls.crt", "keyFile": "/etc/skep-tls/tls.key"})

    def test_what_is_not_wanted_is_not_there(self):
        objects, template = self.pod({"networkPolicy": {"enabled": False}, "jobs": {"create": False}, "persistence": {"existingClaim": "mine"}})
        self.assertEqual({kind for kind, _, _ in objects} & {"NetworkPolicy", "Namespace", "PersistentVolumeClaim"}, set())
        claims = [volume["persistentVolumeClaim"]["claimName"] for volume in template["spec"]["volumes"] if "persistentVolumeClaim" in volume]
        self.assertEqual(claims, ["mine"])

    def test_a_change_of_the_configuration_starts_it_anew(self):
        notes = [self.pod({"restartOnChange": True, "config": {"adminName": name}})[1]["metadata"]["annotations"]["skep.internal/config"]
                 for name in ("one", "one", "two")]
        self.assertEqual(notes[0], notes[1])
        self.assertNotEqual(notes[0], notes[2])

    def test_a_value_that_is_none_is_refused(self):
        done = self.run_helm("template", "skep", str(DEPLOY / "helm"), "--set", "imgae=x", *VERSION)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("imgae", done.stderr)

    def test_every_value_is_explained(self):
        text = (HERE.parents[2] / "docs/operator/kubernetes.md").read_text()

        def names(values, before=""):
            for key, value in values.items():
                if isinstance(value, dict) and value:
                    yield from names(value, f"{before}{key}.")
                else:
                    yield before + key

        missing = [name for name in names(yaml.safe_load((DEPLOY / "helm/values.yaml").read_text())) if f"`{name}`" not in text]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    HELM = helm_find()
    unittest.main()
