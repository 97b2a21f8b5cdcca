"""OpenPAI's JavaScript SDK against a running skepd: each method of its clients, and what it gets against the SDK's own description.

SKEP_OPENPAI_SDK names the package: npm install --ignore-scripts --prefix DIR @microsoft/openpai-js-sdk@0.1.5, then
DIR/node_modules/@microsoft/openpai-js-sdk. tools/install-deps --test puts it where it is looked for otherwise, when npm is there.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
import skepd as server  # noqa: E402

SDK = pathlib.Path(os.environ.get("SKEP_OPENPAI_SDK",
                                  "/usr/local/lib/skep-test/node_modules/@microsoft/openpai-js-sdk"))
HERE = pathlib.Path(__file__).resolve().parent

# What cannot work, and why.
FAIL = {
    "v2.authn.oidcLogin": "the server has no OpenID Connect here",
    "v2.authn.oidcLogout": "likewise",
    "v1.authn.oidcLogin": "likewise",
    "v1.authn.oidcLogout": "likewise",
    "v1.job.getConfig": "asks for /api/v1/jobs/USER/jobs/JOB/config, which no release has served",
    "v1.job.getSshInfo": "sends no token, and the answer leads to a private key",
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
        config = {
            "engine": {"kind": "fake", "fake": {"nodes": 2, "gpus": 4, "runMilliseconds": 600000, "log": "a line\n"}},
            "api": {"openReads": True},
            "storages": [{"name": "corpus", "directory": "/srv/corpus", "type": "nfs", "server": "nfs.lab", "path": "/x"}],
        }
        skepd = server.Skepd(os.environ["SKEPD"], config)
        try:
            skepd.start()
            password = (skepd.directory / "password").read_text().strip()
            done = subprocess.run(["node", HERE / "sdk.js", SDK, f"127.0.0.1:{skepd.port}", password],
                                  capture_output=True, text=True, timeout=150)
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


if __name__ == "__main__":
    unittest.main()
