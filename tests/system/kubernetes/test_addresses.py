"""Tasks in the pod network are told where their peers are, by an API server that misbehaves: test_addresses.py SKEPD SKEP

Covers: src/engine/kubernetes/addresses.c, src/engine/kubernetes/kubernetes.c, src/server/launch.c
"""
import json
import sys
import unittest

import skepd as server
import test_faults
import waits

if __name__ == "__main__":
    test_faults.SKEPD, test_faults.SKEP = sys.argv.pop(1), sys.argv.pop(1)


class Pods(test_faults.Base):
    KEYS = {"network": "pod"}

    def setUp(self):
        super().setUp()
        self.api.runs_programs = True

    def begin(self, name, instances, **extra):
        """A job whose pods are there; they do not run yet."""
        job = json.loads(server.job_file(name, {"main": (instances, "true", {})}, "task:1"))
        job.update(extra)
        self.skepd.submit(json.dumps(job))
        return f"admin~{name}", self.pods(instances)

    def run_at(self, pod, number):
        self.api.run(pod, f"10.1.0.{number}")

    def told(self, count, what="not told"):
        """What so many deliveries brought."""
        self.api.wait(lambda api: len(api.programs) >= count, f"{what}; {self.skepd.tail()}")
        with self.api.changed:
            self.assertEqual(len(self.api.programs), count, self.api.programs)
            return list(self.api.programs)

    def addresses(self, job):
        """As the API shows them."""
        return [task["containerIp"] for task in self.skepd.job(job)["taskRoles"]["main"]["taskStatuses"]]

    def end(self, job, *pods):
        for pod in pods:
            self.api.end(pod)
        self.finish(job)

    def notes(self):
        return sorted(path.name for path in self.skepd.directory.glob("**/kubernetes-*/addresses/*"))

    def test_a_task_alone_is_told_nothing(self):
        self.start()
        self.wait_nodes(5)
        job, (pod,) = self.begin("job", 1)
        with self.api.changed:
            spec = json.loads(json.dumps(self.api.objects["pods"][pod]))["spec"]
        self.assertNotIn("hostNetwork", spec)
        self.assertIn("/skep/network", spec["initContainers"][0]["command"][2])
        self.run_at(pod, 7)
        self.state(job, "RUNNING")
        self.assertEqual(self.addresses(job), ["10.1.0.7"])
        self.end(job, pod)
        self.assertEqual(self.told(0), [])

    def test_a_gang_is_told_when_all_of_it_runs(self):
        self.start()
        self.wait_nodes(5)
        job, pods = self.begin("job", 3)
        self.run_at(pods[0], 1)
        self.run_at(pods[2], 3)
        waits.until(lambda: sorted(filter(None, self.addresses(job)))[1:] == ["10.1.0.1", "10.1.0.3"], self.skepd.tail)
        self.assertEqual(self.told(0), [])
        self.run_at(pods[1], 2)
        programs = self.told(3)
        self.assertEqual({pod for pod, _, _ in programs}, set(pods))
        for _, words, text in programs:
            self.assertEqual(words, ["/skep/init", "addresses", "/skep"])
            self.assertEqual(text, "0 0 10.1.0.1\n0 1 10.1.0.2\n0 2 10.1.0.3\n.\n")
        self.assertEqual(self.addresses(job), ["10.1.0.1", "10.1.0.2", "10.1.0.3"])
        waits.until(lambda: len(self.notes()) == 3, self.notes)
        self.end(job, *pods)
        waits.until(lambda: not self.notes(), self.notes)
        self.told(3)

    def test_what_fails_is_tried_again(self):
        for fault in ("exec-500", "exec-fails", "exec-cut"):
            with self.subTest(fault=fault):
                self.api.programs.clear()
                if fault == "exec-500":
                    self.start()
                    self.wait_nodes(5)
                job, pods = self.begin(fault, 2)
                self.api.fault(fault)
                self.run_at(pods[0], 1)
                self.run_at(pods[1], 2)
                programs = self.told(2 if fault == "exec-500" else 3)
                self.assertEqual({pod for pod, _, _ in programs}, set(pods))
                waits.until(lambda: "is not told where its peers are" in self.skepd.tail(), self.skepd.tail)
                waits.until(lambda: len(self.notes()) == 2, self.notes)
                self.end(job, *pods)

    def test_a_skepd_that_begins_anew_goes_on(self):
        """One pod has been told before skepd is killed, the other has not."""
        self.start()
        self.wait_nodes(5)
        job, pods = self.begin("job", 2)
        with self.api.changed:
            self.api.programs_left = 1
        self.run_at(pods[0], 1)
        self.run_at(pods[1], 2)
        (first, _, _), = self.told(1)
        waits.until(lambda: len(self.notes()) == 1, self.notes)
        self.skepd.kill()
        with self.api.changed:
            self.api.programs_left = None
        (second,) = set(pods) - {first}
        self.skepd.start()
        self.skepd.login()
        programs = self.told(2)
        self.assertEqual([pod for pod, _, _ in programs], [first, second])
        self.assertEqual(programs[0][2], programs[1][2])
        self.assertEqual(self.addresses(job), ["10.1.0.1", "10.1.0.2"])
        waits.until(lambda: len(self.notes()) == 2, self.notes)
        self.end(job, *pods)
        self.told(2)

    def test_skepd_is_killed_before_all_run(self):
        self.start()
        self.wait_nodes(5)
        job, pods = self.begin("job", 2)
        self.run_at(pods[0], 1)
        waits.until(lambda: "10.1.0.1" in self.addresses(job), self.skepd.tail)
        self.skepd.kill()
        self.run_at(pods[1], 2)
        self.skepd.start()
        self.skepd.login()
        self.assertEqual({text for _, _, text in self.told(2)}, {"0 0 10.1.0.1\n0 1 10.1.0.2\n.\n"})
        self.end(job, *pods)

    def test_a_task_that_is_tried_again_alone(self):
        """It is told all; those that run keep what they know."""
        self.start()
        self.wait_nodes(5)
        job = json.loads(server.job_file("job", {"main": (2, "true", {})}, "task:1"))
        job["taskRoles"]["main"]["taskRetryCount"] = 1
        job["extras"] = {"gangAllocation": False}  # a gang is tried again as a whole
        self.skepd.submit(json.dumps(job))
        pods = self.pods(2)
        self.run_at(pods[0], 1)
        self.told(1)
        self.run_at(pods[1], 2)
        self.told(2)
        self.api.end(pods[1], 1)
        self.api.wait(lambda api: len(api.objects["pods"]) == 2 and pods[1] not in api.objects["pods"], f"no other pod; {self.skepd.tail()}")
        (again,) = set(self.pods(2)) - {pods[0]}
        self.run_at(again, 5)
        programs = self.told(3)
        self.assertEqual(programs[2][0], again)
        self.assertEqual(programs[2][2], "0 0 10.1.0.1\n0 1 10.1.0.5\n.\n")
        self.end("admin~job", pods[0], again)

    def test_tasks_without_a_gang_do_not_wait(self):
        self.start()
        self.wait_nodes(5)
        job, pods = self.begin("job", 2, extras={"gangAllocation": False})
        self.run_at(pods[0], 1)
        (program,) = self.told(1)
        self.assertEqual(program[::2], (pods[0], "0 0 10.1.0.1\n.\n"))
        self.run_at(pods[1], 2)
        self.assertEqual(self.told(2)[1][::2], (pods[1], "0 0 10.1.0.1\n0 1 10.1.0.2\n.\n"))
        self.end(job, *pods)

    def test_a_task_that_ends_while_it_waits(self):
        self.start()
        self.wait_nodes(5)
        job, pods = self.begin("job", 2)
        self.run_at(pods[0], 1)
        waits.until(lambda: "10.1.0.1" in self.addresses(job), self.skepd.tail)
        self.skepd.act(job, "STOP")
        self.state(job, "STOPPED")
        self.pods(0)
        self.assertEqual([words[1] for _, words, _ in self.told(0)], [])


class HostNetwork(test_faults.Base):
    KEYS = {"network": "pod", "hostNetwork": ["default"]}

    def test_a_right_to_the_network_of_the_node(self):
        self.start()
        self.wait_nodes(5)
        job = json.loads(server.job_file("job", {"main": (1, "true", {})}, "task:1"))
        job["extras"] = {"hostNetwork": True}
        self.skepd.submit(json.dumps(job))
        (pod,) = self.pods()
        with self.api.changed:
            self.assertTrue(self.api.objects["pods"][pod]["spec"]["hostNetwork"])
        self.api.run(pod, "10.0.0.1")
        self.state("admin~job", "RUNNING")
        self.api.end(pod)
        self.finish("admin~job")


class UserNamespaces(test_faults.Base):
    KEYS = {"network": "pod", "userNamespaces": "auto"}

    def can(self, name):
        """Its runtime gives pods user ids of their own, as kubelets tell it."""
        with self.api.changed:
            node = json.loads(json.dumps(self.api.objects["nodes"][name]))
        node["status"]["runtimeHandlers"] = [{"name": "", "features": {"userNamespaces": True}}]
        self.api.put("nodes", node)

    def test_nodes_that_can_and_others(self):
        self.can("n1")
        self.start()
        self.wait_nodes(5)
        job = json.loads(server.job_file("job", {"main": (5, "true", {})}, "task:1"))
        self.skepd.submit(json.dumps(job))
        pods = self.pods(5)
        with self.api.changed:
            users = {self.api.objects["pods"][pod]["spec"]["nodeName"]: self.api.objects["pods"][pod]["spec"].get("hostUsers") for pod in pods}
        self.assertEqual(users, {"n0": None, "n1": False, "n2": None, "n3": None, "n4": None})
        for number, pod in enumerate(pods):
            self.api.run(pod, f"10.1.0.{number + 1}")
        self.state("admin~job", "RUNNING")
        for pod in pods:
            self.api.end(pod)
        self.finish("admin~job")


class RequiredUserNamespaces(UserNamespaces):
    KEYS = {"network": "pod", "userNamespaces": "required"}

    def test_nodes_that_can_and_others(self):
        self.can("n1")
        self.start()
        self.wait_nodes(1)
        self.assertEqual(self.nodes(), ["n1"])
        reasons = {node["name"]: node.get("reason") for node in self.skepd.call("GET", "/api/v2/nodes")["data"]}
        self.assertIn("no user ids of their own", reasons["n0"])
        self.can("n2")
        self.wait_nodes(2)

    def test_a_server_that_drops_the_field(self):
        """Nothing runs with the node's user ids: the task goes back to the queue."""
        self.api.knows_users = False
        self.can("n1")
        self.start()
        self.wait_nodes(1)
        job = self.submit("job")
        waits.until(lambda: "UserNamespaceMissing" in json.dumps(self.skepd.call("GET", f"/api/v2/jobs/{job}/events")), self.skepd.tail)
        self.assertNotIn(self.skepd.job(job)["jobStatus"]["state"], ("RUNNING", "FAILED"))
        self.api.knows_users = True
        self.api.wait(lambda api: any(pod["spec"].get("hostUsers") is False for pod in api.objects["pods"].values()), self.skepd.tail())
        (pod,) = self.pods()
        self.api.run(pod, "10.1.0.1")
        self.state(job, "RUNNING")
        self.api.end(pod)
        self.finish(job)


class Refused(test_faults.Base):
    KEYS = {"network": "pod"}

    def test_a_job_that_needs_the_network_of_its_node(self):
        self.start()
        self.wait_nodes(5)
        job = json.loads(server.job_file("job", {"main": (1, "true", {})}, "task:1"))
        job["extras"] = {"hostNetwork": True}
        with self.assertRaises(server.Refused) as refused:
            self.skepd.submit(json.dumps(job))
        self.assertIn("engine.kubernetes.hostNetwork", str(refused.exception))


if __name__ == "__main__":
    unittest.main()
