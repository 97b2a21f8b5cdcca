#!/usr/bin/env python3
"""Write a file as a C array: embed.py INPUT OUTPUT NAME"""
import sys

source, target, name = sys.argv[1:]
data = open(source, "rb").read()
rows = [", ".join(str(b) for b in data[i : i + 20]) for i in range(0, len(data), 20)]
with open(target, "w") as out:
    out.write("/* made from " + source.rsplit("/", 1)[-1] + " */\n#include \"exits/table.h\"\n\n")
    out.write(f"const char {name}[] = {{\n    " + ",\n    ".join(rows) + ",\n    0};\n")
    out.write(f"const size_t {name}_length = sizeof {name} - 1;\n")
