#!/usr/bin/env python3
"""Job files and what they are read to; the JSON Schema and the user's reference beside them.

usage: test_golden.py SPEC_DUMP SOURCE_ROOT [--write]

valid/*     are read without error: spec-dump prints what FILE.out holds, and the schema accepts
            those of protocol 2, and market-* of the marketplace's format
invalid/*   are refused with the problems in FILE.out; the schema refuses them too, unless the name
            begins with `rule-` (a rule between fields, or of YAML)
examples/*  of the tree are valid for both
--write     writes the .out files and docs/schema instead of comparing
"""
import json
import pathlib
import re
import subprocess
import sys

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"skipped: {error}; install python3-jsonschema and python3-yaml")
    sys.exit(77)


class Core(yaml.SafeLoader):
    """PyYAML with the scalars of YAML 1.2's core schema."""


Core.yaml_implicit_resolvers = {}
for tag, pattern, first in (
    ("merge", r"^<<$", "<"),
    ("null", r"^(~|null|Null|NULL|)$", list("~nN") + [""]),
    ("bool", r"^(true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789"),
    ("float", r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$", "-+.0123456789"),
):
    Core.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


def names_of(schema):
    """All names of fields in a schema."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for value in schema.values():
            yield from names_of(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from names_of(value)


def main():
    tool, root = sys.argv[1], pathlib.Path(sys.argv[2])
    is_writing = "--write" in sys.argv
    here = root / "tests/golden/spec"
    wrong = []

    def run(*args):
        return subprocess.run([tool, *map(str, args)], capture_output=True, text=True)

    schemas = {}
    for version in ("1", "2", "marketplace"):
        schemas[version] = json.loads(run("--schema", version).stdout)
        jsonschema.Draft7Validator.check_schema(schemas[version])
        path = root / f"docs/schema/job-{'v' if version.isdigit() else ''}{version}.json"
        if is_writing:
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(schemas[version], indent=2, ensure_ascii=False) + "\n")
        elif json.loads(path.read_text()) != schemas[version]:
            wrong.append(f"{path}: not what the table of fields says; run {sys.argv[0]} … --write")
        reference = (root / "docs/user/job-files.md").read_text()
        for name in sorted(set(names_of(schemas[version]))):
            if f"`{name}`" not in reference:
                wrong.append(f"docs/user/job-files.md: says nothing of `{name}` (format {version})")

    validators = {version: jsonschema.Draft7Validator(schema) for version, schema in schemas.items()}
    files = sorted(p for p in here.glob("*valid/*") if p.suffix != ".out")
    for path in files:
        result = run(path)
        golden = path.with_name(path.name + ".out")
        is_valid = path.parent.name == "valid"
        if is_writing:
            golden.write_text(result.stdout)
        elif not golden.exists() or golden.read_text() != result.stdout:
            wrong.append(f"{path}: differs from {golden.name}, got:\n{result.stdout}")
        if result.returncode != (0 if is_valid else 1):
            wrong.append(f"{path}: exit {result.returncode}\n{result.stdout}{result.stderr}")
        if path.name.startswith(("v1-", "rule-syntax")) or path.name == "rule-market.yaml":
            continue
        if is_valid and "$$" in path.read_text():
            continue  # the schema cannot know what stands for a number
        version = "marketplace" if path.name.startswith("market-") else "2"
        accepts = validators[version].is_valid(yaml.load(path.read_text(), Core))
        if accepts != (is_valid or path.name.startswith("rule-")):
            wrong.append(f"{path}: the schema {'accepts' if accepts else 'refuses'} it")

    examples = [p for p in sorted((root / "examples").rglob("*")) if p.suffix in (".yaml", ".yml", ".json", ".jsonc")]
    for path in examples:
        text = path.read_text()
        if "protocolVersion" not in text and "jobName" not in text:
            continue
        result = run(path)
        if result.returncode != 0:
            wrong.append(f"{path}: {result.stdout}")
        if "protocolVersion" in text and not validators["2"].is_valid(yaml.load(text, Core)):
            wrong.append(f"{path}: the schema refuses it")

    print(f"{len(files)} files, {len(wrong)} wrong")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
