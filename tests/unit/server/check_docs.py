#!/usr/bin/env python3
"""Every key of the configuration and every metric is documented, every documented one is one, and the policy that is called the default is it:
check_docs.py ROOT"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
source = (root / "src/server/config_shape.c").read_text()
page = (root / "docs/operator/configuration.md").read_text()
keys = set(re.findall(r"\b(?:INT|STRING|NAMED|REQUIRED|STRINGS|CHOICE|BOOL|MAP|MAP_LIST|FREE_MAP)\(\s*\"(\w+)\"", source))
sections = {m for heading in re.findall(r"^#+ `([\w.]+)`$", page, re.M) for m in heading.split(".")}
rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", page, re.M)
documented = {key for row in rows for key in re.findall(r"`(\w+)`", row)} | sections
for key in sorted(keys - documented):
    print(f"docs/operator/configuration.md: {key} is missing")
for key in sorted(documented - keys):
    print(f"docs/operator/configuration.md: {key} is no key")
policy = re.search(r'\.policy = "([\w-]+)"', (root / "src/core/config.c").read_text())[1]
told = re.search(r"^\| `policy` \| `([\w-]+)` \|", page, re.M)[1]
if told != policy:
    print(f"docs/operator/configuration.md: the default policy is {policy}, not {told}")
metrics = {name for file in [*root.glob("src/server/*.c"), root / "src/api/health.c"] for name in re.findall(r'"(skep_\w+)"', file.read_text())}
tables = re.findall(r"^\| (`skep_\w+`(?:, `skep_\w+`)*) \|", (root / "docs/operator/monitoring.md").read_text().split("\n## Figures\n")[1], re.M)
figures = [name for row in tables for name in re.findall(r"`(\w+)`", row)]
for name in sorted(metrics ^ set(figures)):
    print(f"docs/operator/monitoring.md: {name} {'is missing' if name in metrics else 'is no metric'}")
for name in sorted({name for name in figures if figures.count(name) > 1}):
    print(f"docs/operator/monitoring.md: {name} is there twice")
sys.exit(1 if keys ^ documented or told != policy or sorted(metrics) != sorted(figures) else 0)
