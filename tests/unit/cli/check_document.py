#!/usr/bin/env python3
"""docs/user/cli.md names every command with its usage and options, in the program's own words; every
command has a man page in src/cli/meson.build.

usage: check_document.py SKEP
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def told(*words):
    return subprocess.run([sys.argv[1], "help", *words], capture_output=True, text=True, check=True).stdout


def main():
    text = (ROOT / "docs/user/cli.md").read_text()
    pages = (ROOT / "src/cli/meson.build").read_text()
    wrong = 0
    for name in [line.split()[0] for line in told().split("Commands:\n")[1].split("\n\n")[0].splitlines()]:
        own = told(name)
        wanted = [own.splitlines()[0].removeprefix("Usage: ")]
        options = own.split("\nOptions:\n")
        if len(options) > 1:
            wanted += options[1].split("\n\n")[0].splitlines()
        for line in wanted:
            if line not in text:
                print(f"docs/user/cli.md lacks: {line}")
                wrong += 1
        if f"'{name}'" not in pages:
            print(f"src/cli/meson.build makes no man page of {name}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
