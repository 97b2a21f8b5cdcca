#!/usr/bin/env python3
"""Every row of src/api/routes.c stands in docs/openapi.yaml, and the reverse; every $ref resolves."""
import pathlib
import re
import sys

try:
    import yaml
except ImportError:
    print("skip: python3-yaml is not installed (tools/install-deps --test)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[3]
METHODS = {"get", "put", "post", "delete"}


def routes_of_table():
    text = (ROOT / "src/api/routes.c").read_text()
    macros = dict(re.findall(r'#define (\w+)\s+(?:\\\s*)?"([^"]*)"', text))
    for method, macro, path in re.findall(r'\{HTTP_(\w+),\s*(\w+)?\s*(?:"([^"]*)")?,', text):
        whole = macros.get(macro, "") + path
        yield method.lower(), re.sub(r"[:*](\w+)", r"{\1}", whole)


def routes_of_document(document):
    for path, item in document["paths"].items():
        for method in METHODS & item.keys():
            yield method, path


def references(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def resolves(document, reference):
    at = document
    for part in reference.removeprefix("#/").split("/"):
        if part not in at:
            return False
        at = at[part]
    return True


def main():
    document = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())
    table, described = set(routes_of_table()), set(routes_of_document(document))
    wrong = 0
    for method, path in sorted(table - described):
        print(f"docs/openapi.yaml lacks {method.upper()} {path}")
        wrong += 1
    for method, path in sorted(described - table):
        print(f"src/api/routes.c lacks {method.upper()} {path}")
        wrong += 1
    for reference in sorted(set(references(document))):
        if not resolves(document, reference):
            print(f"docs/openapi.yaml: {reference} leads nowhere")
            wrong += 1
    if len(table) < 40:
        print(f"only {len(table)} routes were found in src/api/routes.c")
        wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
