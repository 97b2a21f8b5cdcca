"""tools/check-tests finds a source without a test and a test without a source, in a small tree made for it."""
import pathlib
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).resolve().parents[3] / "tools/check-tests"

TRUE = {
    "src/core/queue.c": "",
    "src/core/ports.c": "",
    "src/exits/matcher.cc": "",
    "src/store/sqlite/marker.c": "",
    "src/server/main.c": "",
    "tests/unit/core/test_queue.c": "/* The queue. */\n",
    "tests/unit/core/test_walk.c": "/* Random walks.\n *\n * Covers: src/core/ports.c,\n * src/core/queue.c\n *\n * src/core/gone.c is no more */\n",
    "tests/unit/exits/test_matcher.c": "",
    "tests/unit/store/sqlite/test_marker.c": "/* Covers what it likes: src/core/no.c */\n",
    "tests/unit/meson.build": "files('core/test_queue.c', 'core/test_walk.c', 'store/sqlite/test_marker.c')\n",
    "tests/unit/exits/meson.build": "files('test_matcher.c')\n",
    "tests/system/server/crash.py": '#!/usr/bin/env python3\n"""A crash.\n\nCovers: src/server/main.c\n"""\n',
}

FALSE = [  # a file, what it becomes (None: it goes), and what the check must say
    ("src/core/start.c", "", "src/core/start.c: has no test: tests/unit/core/test_start.c"),
    ("tests/unit/exits/test_matcher.c", None, "src/exits/matcher.cc: has no test"),
    ("src/server/mail.c", "", "src/server/mail.c: has no test"),
    ("tests/unit/core/test_queue.c", "/* Covers: src/core/gone.c */", "covers src/core/gone.c, which does not exist"),
    ("tests/unit/core/test_queue.c", "/* Covers: src/exits/matcher.cc */", "which unit tests of src/exits must do"),
    ("tests/system/server/crash.py", '"""Covers: src/server/main.c, src/core/queue.c"""', "which unit tests of src/core must do"),
    ("tests/unit/meson.build", "files('core/test_queue.c', 'core/test_walk.c')",
     "tests/unit/store/sqlite/test_marker.c: stands in no meson.build"),
    ("tests/unit/exits/meson.build", "files('other_test_matcher.c')", "tests/unit/exits/test_matcher.c: stands in no meson.build"),
]
ALONE = ("tests/unit/core/test_alone.c", "/* Alone. */", "there is no src/core/alone.c, and its first comment lists nothing")

OF = {
    "src/core/queue.c": (0, "tests/unit/core/test_queue.c\ntests/unit/core/test_walk.c\n"),
    "src/core/ports.c": (0, "tests/unit/core/test_walk.c\n"),
    "src/server/main.c": (0, "tests/system/server/crash.py\n"),
    "src/core/none.c": (2, ""),
}


def run(root, *arguments):
    done = subprocess.run([sys.executable, CHECK, "--root", root, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout


def write(root, name, text):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, text in TRUE.items():
            write(root, name, text)
        assert run(root) == (0, ""), run(root)
        for source, expected in OF.items():
            assert run(root, "--of", source) == expected, (source, run(root, "--of", source))
        for name, text, expected in FALSE:
            if text is None:
                (root / name).unlink()
            else:
                write(root, name, text)
            code, said = run(root)
            assert code == 1 and expected in said and said.count("\n") == 1, (name, said)
            if name in TRUE:
                write(root, name, TRUE[name])
            else:
                (root / name).unlink()
        name, text, expected = ALONE
        write(root, name, text)
        code, said = run(root)
        assert code == 1 and expected in said and "stands in no meson.build" in said, said
        write(root, "src/core/start.c", "")
        assert run(root, "--of", "src/core/start.c") == (1, "")


main()
