"""Real jobs of format 1 with codeDir, dataDir, outputDir and authFile: v1_files.py SKEPD"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import skepd as server
import waits

SKEPD = sys.argv.pop(1) if __name__ == "__main__" else ""
REGISTRY_TOOLS = ("docker-registry", "htpasswd")


def job(name, command, image, **fields):
    """With a comment, as the guides write them."""
    role = {"name": "main", "cpuNumber": 1, "memoryMB": 128, "command": command}
    return "// a job of format 1\n" + json.dumps({"jobName": name, "image": image, "taskRoles": [role]} | fields)


class Registry:
    """docker-registry with a password, on loopback."""

    def __init__(self, folder):
        self.port = server.server_port()
        folder.mkdir()
        subprocess.run(f"htpasswd -Bbn bob secret > {folder}/htpasswd", shell=True, check=True)
        (folder / "config.yml").write_text(
            f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder}/data}}}}\n"
            f"http: {{addr: 127.0.0.1:{self.port}}}\nauth: {{htpasswd: {{realm: x, path: {folder}/htpasswd}}}}\n")
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", folder / "config.yml"],
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        waits.file_says(folder / "log", "listening on", process=self.process)

    def push(self, source, name):
        subprocess.run(["skopeo", "--insecure-policy", "copy", "--dest-creds", "bob:secret", "--dest-tls-verify=false",
                        source, f"docker://127.0.0.1:{self.port}/{name}"], check=True, capture_output=True)
        return f"127.0.0.1:{self.port}/{name}"

    def end(self):
        self.process.kill()
        self.process.wait()


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="skepd-test-")
        config = {"engine": {"kind": "local", "cpu": 8, "memoryMB": 4096, "images": {"localRoots": [cls.folder.name]}}}
        cls.skepd = server.Skepd(SKEPD, config, cls.folder.name)
        cls.image = server.busybox_image(cls.skepd.directory)
        cls.skepd.start()
        cls.skepd.login()
        cls.files = cls.skepd.data / "files"
        cls.outside = cls.skepd.directory / "outside"
        cls.outside.mkdir()
        (cls.outside / "x").write_text("outside\n")

    @classmethod
    def tearDownClass(cls):
        cls.skepd.stop()
        cls.skepd.remove()
        cls.folder.cleanup()

    def put(self, name, text):
        path = self.files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_job(self, name, command, image=None, **fields):
        """State and log of its only task."""
        self.skepd.submit(job(name, command, image or self.image, **fields))
        state = self.skepd.wait_final([f"admin~{name}"])[f"admin~{name}"]
        task = self.skepd.job(f"admin~{name}")["taskRoles"]["main"]["taskStatuses"][0]
        return state, task

    def test_code_data_and_output(self):
        self.put("admin/code/go.sh", "echo code runs with $(cat code/lib/word); cat $1/d > $2/result\n")
        self.put("admin/code/lib/word", "word\n")
        self.put("data/d", "data\n")
        state, task = self.run_job(
            "whole", "sh code/go.sh ${PAI_DATA_DIR#file://} ${QIZHI_OUTPUT_DIR#file://} > ${PAI_OUTPUT_DIR#file://}/log && "
            "echo $PAI_DEFAULT_FS_URI $PAI_CODE_DIR > ${PAI_OUTPUT_DIR#file://}/names",
            codeDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/code", dataDir="/data")
        self.assertEqual(state, "SUCCEEDED", task)
        output = self.files / "Output/admin/whole"
        self.assertEqual((output / "result").read_text(), "data\n")
        self.assertEqual((output / "log").read_text(), "code runs with word\n")
        self.assertEqual((output / "names").read_text(), f"file://{self.files} file://{self.files}/admin/code\n")

    def test_output_of_ones_own(self):
        state, task = self.run_job("own", "echo $PAI_OUTPUT_DIR; echo here > ${PAI_OUTPUT_DIR#file://}/x",
                                   outputDir="$QIZHI_DEFAULT_FS_URI/results/$PAI_JOB_NAME")
        self.assertEqual(state, "SUCCEEDED", task)
        self.assertEqual((self.files / "results/admin~own/x").read_text(), "here\n")

    def test_an_image_with_a_user_of_its_own(self):
        """No root inside: code can be read and output written."""
        layout = self.image.removeprefix("oci:").removesuffix(":busybox")
        subprocess.run(["umoci", "config", "--image", f"{layout}:busybox", "--tag", "user", "--config.user", "1000:1000",
                        "--config.workingdir", "/dev/shm"], check=True, capture_output=True)
        self.put("shared/code/word", "word\n")
        state, task = self.run_job("user", "cd ${PAI_OUTPUT_DIR#file://}; cp /dev/shm/code/word word; { id -u; umask; } > id",
                                   f"oci:{layout}:user", codeDir="/shared/code")
        self.assertEqual(state, "SUCCEEDED", task)
        output = self.files / "Output/admin/user"
        self.assertEqual([(output / name).read_text() for name in ("word", "id")], ["word\n", "1000\n0022\n"])

    def test_without_directories_nothing_is_mounted(self):
        self.put("seen", "")
        state, task = self.run_job("unmounted", f"test ! -e {self.files}/seen")
        self.assertEqual(state, "SUCCEEDED", task)

    def test_a_link_leads_into_the_container_only(self):
        """What a job puts into the file space cannot show it the machine."""
        self.put("linked/code/run.sh", "cat code/out\n")
        (self.files / "linked/code/out").symlink_to(self.outside / "x")
        state, _ = self.run_job("linked", "sh code/run.sh", codeDir="/linked/code")
        self.assertEqual(state, "FAILED")
        (self.files / "way-out").symlink_to(self.outside)
        for name, path in (("link", "/way-out"), ("dots", "/../../outside"), ("none", "/none")):
            state, task = self.run_job(name, "true", codeDir=path)
            self.assertEqual(state, "FAILED", path)
            self.assertIn("codeDir", json.dumps(task), path)

    def test_too_much_code(self):
        path = self.put("big/code/x", "")
        os.truncate(path, 200000001)
        state, task = self.run_job("big", "true", codeDir="/big/code")
        self.assertEqual(state, "FAILED")
        self.assertIn("200000000 bytes", json.dumps(task))
        self.assertEqual((task["containerExitSpec"]["code"], task["containerExitSpec"]["type"]), (218, "USER_FAILURE"), task)

    @unittest.skipUnless(all(map(shutil.which, REGISTRY_TOOLS)), f"needs {' and '.join(REGISTRY_TOOLS)}")
    def test_private_registry(self):
        registry = Registry(self.skepd.directory / "registry")
        self.addCleanup(registry.end)
        image = registry.push(self.image, "team/app:1")
        self.put("auth/none", "")
        self.put("auth/wrong", f"127.0.0.1:{registry.port}\nbob\nwr0ng\n")
        self.put("auth/other", "127.0.0.1:1\nbob\nsecret\n")
        for name in ("none", "wrong", "other", "missing"):
            state, task = self.run_job(f"auth-{name}", "true", image, authFile=f"/auth/{name}")
            self.assertEqual(state, "FAILED", name)
            self.assertNotIn("wr0ng", json.dumps(task))
        self.put("auth/right", f"127.0.0.1:{registry.port}\r\nbob\r\nsecret\r\n")
        state, task = self.run_job("auth-right", "echo pulled", image, authFile="$PAI_DEFAULT_FS_URI/auth/right")
        self.assertEqual(state, "SUCCEEDED", task)
        self.assertNotIn(b"secret", (self.skepd.directory / "log").read_bytes())


if __name__ == "__main__":
    if not server.can_run_containers():
        print("skip: containers need root, conmon, umoci, skopeo, busybox and crun or runc")
        sys.exit(77)
    unittest.main(verbosity=2)
