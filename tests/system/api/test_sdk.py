"""OpenPAI's JavaScript SDK against a running skepd: each method of its clients, and what it gets against the SDK's own description; the API tests
that the package brings, as they are; and each command of its command line, pai.

SKEP_OPENPAI_SDK names the package: npm install --ignore-scripts --prefix DIR @microsoft/openpai-js-sdk@0.1.5, then
DIR/node_modules/@microsoft/openpai-js-sdk. Its tests need mocha, chai, dirty-chai, ajv and nock beside it. tools/install-deps --test puts all of
them where they are looked for otherwise, when npm is there.
"""
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
import skepd as server  # noqa: E402

SDK = pathlib.Path(os.environ.get("SKEP_OPENPAI_SDK",
                                  "/usr/local/lib/skep-test/node_modules/@microsoft/openpai-js-sdk"))
HERE = pathlib.Path(__file__).resolve().parent
ALL_S = 2 * server.PATIENCE_S  # for all methods, and for all tests of its own

CONFIG = {
    "engine": {"kind": "fake", "fake": {"nodes": 2, "gpus": 4, "runMilliseconds": 600000, "log": "a line\n"}},
    "storages": [{"name": "corpus", "directory": "/srv/corpus", "type": "nfs", "server": "nfs.lab", "path": "/x"}],
}

# What cannot work, and why.
FAIL = {
    "v2.authn.oidcLogin": "the server has no OpenID Connect here",
    "v2.authn.oidcLogout": "likewise",
    "v1.authn.oidcLogin": "likewise",
    "v1.authn.oidcLogout": "likewise",
    "v1.job.getConfig": "asks for /api/v1/jobs/USER/jobs/JOB/config, which no release has served",
    "v1.job.getSshInfo": "sends no token, and the answer leads to a private key",
}
# Of its own tests; the others pass. Some of them ask for nothing, because the package leaves them out: signing on by OpenID Connect, the events of a
# job, its task attempts and logs.
TESTS = 72
TESTS_FAIL = {
    "post /api/v2/authn/basic/login login with non-existent username": "who may log in is not told: the answer is that to a wrong password",
    "get /api/v2/jobs/{user}~{job} Get a job detail": "the description calls taskUid a number; the original's answers have a text",
    "get /api/v2/jobs/{user}~{job}/attempts/{jobAttemptId} Get a job detail with specified job attempt": "likewise",
}
# Where the description and the original's own answers differ, the answers are followed: this is a text there.
UNLIKE = "taskUid"


def nullable(schema):
    """OpenAPI 3.0's nullable as JSON Schema says it."""
    if isinstance(schema, list):
        return [nullable(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if str(schema.get("$ref", "")).startswith("http"):
        return {}  # elsewhere: nothing is fetched
    out = {key: nullable(value) for key, value in schema.items() if key not in ("example", "nullable")}
    if schema.get("nullable") and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
        if "enum" in out:
            out["enum"] = out["enum"] + [None]
    return out


class Description:
    """The SDK's swagger.yaml."""

    def __init__(self, path):
        self.document = nullable(yaml.safe_load(path.read_text()))
        self.schemas = {}
        for item in self.document["paths"].values():
            for operation in item.values():
                if not isinstance(operation, dict) or "operationId" not in operation:
                    continue
                good = [code for code in operation["responses"] if str(code).startswith("20")]
                for content in operation["responses"][good[0]].get("content", {}).values() if good else ():
                    if "schema" in content:
                        self.schemas.setdefault(operation["operationId"], content["schema"])

    def errors(self, operation, value):
        import jsonschema
        schema = self.schemas.get({"listEvents": "getEvents"}.get(operation, operation))
        if schema is None:
            return []
        whole = dict(schema, components=self.document["components"])
        return [f"{'/'.join(map(str, error.path))}: {error.message[:160]}"
                for error in jsonschema.Draft7Validator(whole).iter_errors(value) if UNLIKE not in error.path]


@unittest.skipUnless(SDK.is_dir() and shutil.which("node"), "the SDK is not installed")
class Sdk(unittest.TestCase):
    def test_every_method(self):
        skepd = server.Skepd(os.environ["SKEPD"], CONFIG | {"api": {"openReads": True}})
        try:
            skepd.start()
            password = (skepd.directory / "password").read_text().strip()
            done = subprocess.run(["node", HERE / "sdk.js", SDK, f"127.0.0.1:{skepd.port}", password],
                                  capture_output=True, text=True, timeout=ALL_S)
        finally:
            skepd.stop()
            skepd.remove()
        self.assertEqual(done.returncode, 0, done.stderr)
        results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name"')]
        self.judge(results)

    def judge(self, results):
        description = Description(SDK / "lib/src/api/v2/swagger.yaml")
        works, alike, wrong = {}, {}, []
        for result in results:
            name, family = result["name"], result["name"][:2]
            works.setdefault(family, [0, 0])[1] += 1
            works[family][0] += result["ok"]
            if result["ok"] == (name in FAIL):
                wrong.append(f"{name}: {'works' if result['ok'] else result['why']}")
            if not result["ok"] or family != "v2":
                continue
            errors = description.errors(result["operation"], result.get("value"))
            alike.setdefault(family, [0, 0])[1] += 1
            alike[family][0] += not errors
            wrong += [f"{name}: {error}" for error in errors]
        for family, (count, whole) in sorted(works.items()):
            print(f"{family}: {count} of {whole} methods work", file=sys.stderr)
        for family, (count, whole) in sorted(alike.items()):
            print(f"{family}: {count} of {whole} answers as described", file=sys.stderr)
        self.assertFalse(wrong, "\n" + "\n".join(wrong))
        self.assertEqual(len(results), 61)


@unittest.skipUnless(SDK.is_dir() and shutil.which("node") and (SDK.parents[1] / "mocha").is_dir(), "the SDK or what its tests need is not installed")
class OwnTests(unittest.TestCase):
    """They speak https, and use the address, the account and the token that stand in a file of the package: so a copy of it is run."""

    def setUp(self):
        self.skepd = server.Skepd(os.environ["SKEPD"], CONFIG | {"api": {"tls": {"mode": "on"}}})
        self.addCleanup(self.skepd.remove)
        self.addCleanup(self.skepd.stop)
        self.skepd.start()
        self.certificate = self.skepd.directory / "data/tls/certificate.pem"
        self.copy = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="skep-sdk-")))

    def ask(self, path, body, token=None):
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        asked = urllib.request.Request(f"https://127.0.0.1:{self.skepd.port}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(asked, context=ssl.create_default_context(cafile=self.certificate)) as reply:
            return json.load(reply)

    def login(self, username, password):
        return self.ask("/api/v2/authn/basic/login", {"username": username, "password": password})["token"]

    def prepare(self):
        """The copy, with an account of an admin in it, and with one test for each operation of the description."""
        user = {"username": "sdk_test", "password": "sdk-test-password"}
        admin = self.login("admin", (self.skepd.directory / "password").read_text().strip())
        self.ask("/api/v2/users", user | {"admin": True, "virtualCluster": ["default"]}, admin)
        shutil.copytree(SDK / "lib", self.copy / "lib")
        (self.copy / "node_modules").symlink_to(SDK.parents[1])
        cluster = user | {"alias": "own", "rest_server_uri": f"127.0.0.1:{self.skepd.port}", "token": self.login(**user), "https": True}
        (self.copy / "lib/.tests/clusters.json").write_text(json.dumps([cluster]))
        description = self.copy / "lib/src/api/v2/swagger.yaml"
        # the schema of job files stands elsewhere, and nothing is fetched
        description.write_text(re.sub(r"\$ref: \"?https://.*", "type: object", description.read_text()))
        done = self.node("lib/tests/common/apiTestCaseGenerator.js", "--", "lib/src/api/v2/swagger.yaml", "lib/.tests/apiTestCase.json")
        self.assertIn("Success.", done.stdout, done.stderr)

    def node(self, *words):
        return subprocess.run(["node", *words], cwd=self.copy, capture_output=True, text=True, timeout=ALL_S,
                              env=os.environ | {"NODE_EXTRA_CA_CERTS": str(self.certificate)})

    def test_all(self):
        self.prepare()
        done = self.node("node_modules/mocha/bin/mocha.js", "--timeout", str(1000 * server.PATIENCE_S), "--require", HERE / "after_stop.js", "--reporter", "json",
                         "--reporter-option", "output=results.json", "lib/tests/api_tests/v2/api.v2.spec.js")
        self.assertTrue((self.copy / "results.json").is_file(), done.stderr)
        results = json.loads((self.copy / "results.json").read_text())
        failed = {test["fullTitle"]: test["err"].get("message", "") for test in results["failures"]}
        print(f"the SDK's own API tests: {len(results['passes'])} of {results['stats']['tests']} pass", file=sys.stderr)
        self.assertEqual(failed.keys(), TESTS_FAIL.keys(), f"{failed}\n{done.stdout[-4000:]}")
        self.assertEqual(results["stats"]["tests"], TESTS)


@unittest.skipUnless(SDK.is_dir() and shutil.which("node"), "the SDK is not installed")
class CommandLine(unittest.TestCase):
    def setUp(self):
        self.skepd = server.Skepd(os.environ["SKEPD"], CONFIG)
        self.addCleanup(self.skepd.remove)
        self.addCleanup(self.skepd.stop)
        self.skepd.start()
        self.skepd.login()

    def pai(self, *words):
        """What it prints. It always exits with 0; what went wrong stands in the other stream."""
        done = subprocess.run(["node", SDK / "lib/src/cli.js", *words], capture_output=True, text=True, timeout=server.PATIENCE_S,
                              env=os.environ | {"HOME": str(self.skepd.directory)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_each_command(self):
        job = self.skepd.directory / "job.yaml"
        job.write_text(server.job_file("pai-job", {"worker": (1, "sleep 1", {})}))
        self.pai("addc", f"http://127.0.0.1:{self.skepd.port}", "admin", self.skepd.token, "-a", "own")
        self.assertIn("own", self.pai("listc")[0])
        out, errors = self.pai("subj", "own", job)
        self.assertEqual((json.loads(out)["status"], errors), (202, ""))
        server.waits.until(lambda: self.skepd.job("admin~pai-job")["jobStatus"]["state"] == "RUNNING", self.skepd.tail, server.PATIENCE_S)
        for words in (("own",), ("own", "-a"), ("own", "-u", "admin")):
            out, errors = self.pai("listj", *words)
            self.assertRegex(out, r"pai-job \| admin \|")
            self.assertEqual(errors, "")
        self.assertNotIn("pai-job", self.pai("listj", "own", "-u", "nobody")[0])
        for words in ((), ("--user", "admin")):
            out, errors = self.pai("getj", *words, "own", "pai-job")
            self.assertEqual(json.loads(out)["jobStatus"]["virtualCluster"], "default")
            self.assertRegex(self.pai("ssh", *words, "own", "pai-job")[0], r"^ssh .*-p \d+ [\d.]+\n$")
        self.assertIn("there is no job", self.pai("getj", "own", "none")[1])
        for words in ((), ("--skip-cache",)):
            self.assertEqual(json.loads(self.pai("lists", "own", *words)[0])["storages"][0]["name"], "corpus")
        # the package lacks the method that this one calls
        self.assertIn("getStorageByName is not a function", self.pai("getinfo", "own", "corpus")[1])
        self.pai("delc", "own")
        self.assertNotIn("own", self.pai("listc")[0])


if __name__ == "__main__":
    unittest.main()
