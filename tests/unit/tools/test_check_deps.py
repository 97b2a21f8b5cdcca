"""tools/check-deps finds what breaks the layers, and nothing else, in a small tree made for it."""
import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).resolve().parents[3] / "tools/check-deps"
LOADER = importlib.machinery.SourceFileLoader("check_deps", str(CHECK))
TABLE = importlib.util.module_from_spec(importlib.util.spec_from_loader(LOADER.name, LOADER))
sys.dont_write_bytecode = True
LOADER.exec_module(TABLE)
TABLES = [table for tables in TABLE.CORE_TABLES.values() for table in tables]

TRUE = {module + "/": "" for module in TABLE.ALLOWED} | {f"core/{part}.c": "" for part in TABLE.CORE_TABLES} | {
    "core/state.h": "struct core { int %s; };\n" % ", ".join(TABLES),
    "base/text.c": '#include "base/text.h"\n',
    "core/jobs.h": '#include "job/job.h"\nint first(struct core *core) { return core->jobs.items[0]; }\n',
    "core/jobs.c": '#include "core/jobs.h"\nint second(struct core *core) { return core->jobs.items[1]; }\n',
    "core/copy.c": "/* core->jobs is copied by jobs.c */\nint third(struct rows *rows) { return rows->jobs.count; }\n",
    "server/main.c": '#include "core/core.h"\n#include "api/api.h"\n',
}

FALSE = {  # what is added to a file, and what the check must say about it
    '#include "core/core.h"': ("base/text.c", "base must not include core"),
    '#include "hived/hived.h"': ("core/jobs.c", "core must not include hived"),
    "#include <yaml.h>": ("core/jobs.c", "only doc may read YAML"),
    "int of(struct core *core) { return core->jobs.count; }": ("core/copy.c", "core->jobs: only core/jobs.c may"),
    "int to(struct core *to) { return to->task_keys.count; }": ("core/jobs.h", "to->task_keys: only core/tasks.c may"),
    "int none;": ("nobody/main.c", "src/nobody: not in the table"),
}

GONE = [  # what is not there any more, or has another text, and what the check must say about it
    ("portal/", "", "the table names portal, and there is no src/portal"),
    ("core/reserve.c", "", "reserve owns tables of the core, and there is no src/core/reserve.c"),
    ("core/state.h", TRUE["core/state.h"].replace("reservations", "shadows"), "src/core/state.h has no table reservations"),
]


def run(root):
    done = subprocess.run([sys.executable, CHECK, "--root", root], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)

        def write(name, text):
            path = root / "src" / name
            (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
            if not name.endswith("/"):
                path.write_text(text)

        for name, text in TRUE.items():
            write(name, text)
        code, said = run(root)
        assert code == 0 and said == "", said
        for added, (name, expected) in FALSE.items():
            write(name, TRUE.get(name, "") + added + "\n")
            code, said = run(root)
            assert code == 1 and len(said.splitlines()) == 1 and expected in said, (added, said)
            if name in TRUE:
                write(name, TRUE[name])
            else:
                shutil.rmtree(root / "src" / pathlib.Path(name).parent)
        for name, text, expected in GONE:
            if text:
                write(name, text)
            else:
                (root / "src" / name).rmdir() if name.endswith("/") else (root / "src" / name).unlink()
            code, said = run(root)
            assert code == 1 and len(said.splitlines()) == 1 and expected in said, (name, said)
            write(name, TRUE[name])


main()
