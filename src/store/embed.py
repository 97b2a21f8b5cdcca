#!/usr/bin/env python3
"""Turn numbered migrations into one C table: embed.py OUTPUT DATABASE FILE…"""
import pathlib
import sys

output, database, *files = sys.argv[1:]
paths = sorted(pathlib.Path(f) for f in files)
for number, path in enumerate(paths, 1):
    if int(path.name.split("-")[0]) != number:
        sys.exit(f"{path}: migrations must be numbered 1, 2, 3 … without a gap")
with open(output, "w") as out:
    out.write('#include "store/migrations.h"\n')
    out.write(f"const struct migration {database}_migrations[] = {{\n")
    for path in paths:
        data = path.read_bytes() + b"\0"
        # an array, not a literal: literals longer than 4095 bytes are not portable
        out.write(f'{{"{path.name}", (const char[]){{{",".join(str(b) for b in data)}}}}},\n')
    out.write("};\n")
    out.write(f"const unsigned {database}_migration_count = {len(paths)};\n")
