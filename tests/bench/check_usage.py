#!/usr/bin/env python3
"""Every benchmark says how it is used, and refuses what it does not know. usage: check_usage.py PROGRAM…"""
import subprocess
import sys

wrong = []
for program in sys.argv[1:]:
    command = [sys.executable, program] if program.endswith(".py") else [program]
    helped = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=20)
    if helped.returncode != 0 or "usage:" not in helped.stdout:
        wrong.append(f"{program} --help: {helped.returncode} {helped.stdout}")
    refused = subprocess.run([*command, "--nonsense"], capture_output=True, text=True, timeout=20)
    if refused.returncode != 2 or "usage:" not in refused.stderr:
        wrong.append(f"{program} --nonsense: {refused.returncode} {refused.stderr}")
print("\n".join(wrong))
sys.exit(bool(wrong))
