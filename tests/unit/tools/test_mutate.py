#!/usr/bin/env python3
"""tools/mutate ends whatever a test has started, in whatever session, before it goes on or ends; its
changes are code."""
import importlib.machinery
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

TOOL = str(pathlib.Path(__file__).resolve().parents[3] / "tools/mutate")
# A test that leaves a child in its own session and one in another; each holds the pipe open.
LEAVES = 'sleep 1000 & setsid sleep 1000 & echo started >&$PIPE; '


def tool_load():
    loader = importlib.machinery.SourceFileLoader("mutate", TOOL)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
    sys.modules["mutate"] = module
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def command_in_child(command, timeout_s, pipe):
    """In a process of its own, which adopts orphans: what mutate does with one test."""
    mutate = tool_load()
    mutate.signals_exit()
    mutate.orphans_adopt()
    code = mutate.command_run(["sh", "-c", command], timeout_s, pass_fds=[pipe],
                              env=os.environ | {"PIPE": str(pipe)})
    print(code, flush=True)


class Leaves(unittest.TestCase):
    def setUp(self):
        self.reader, self.writer = os.pipe()
        self.reads = os.fdopen(self.reader)

    def tearDown(self):
        self.reads.close()

    def begin(self, command, timeout_s="None"):
        process = subprocess.Popen([sys.executable, __file__, command, timeout_s, str(self.writer)],
                                   pass_fds=[self.writer], stdout=subprocess.PIPE, text=True)
        os.close(self.writer)
        self.assertEqual(self.reads.readline(), "started\n")
        return process

    def check_nothing_left(self):
        self.assertEqual(self.reads.read(), "")  # the end comes when nobody holds the pipe

    def test_a_test_that_ends(self):
        process = self.begin(LEAVES + "exit 3")
        self.assertEqual(process.communicate()[0], "3\n")
        self.check_nothing_left()

    def test_a_test_that_is_too_slow(self):
        process = self.begin(LEAVES + "wait", "0.1")
        self.assertEqual(process.communicate()[0], "time\n")
        self.check_nothing_left()

    def test_a_test_that_is_killed(self):
        process = self.begin(LEAVES + "kill -XCPU $$")
        self.assertEqual(process.communicate()[0], "time\n")
        self.check_nothing_left()

    def test_an_interruption(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number=number):
                process = self.begin(LEAVES + "wait")
                process.send_signal(number)
                self.assertEqual(process.wait(), 2)
                process.stdout.close()
                self.check_nothing_left()
                self.reads.close()
                self.setUp()


class Changes(unittest.TestCase):
    def test_read_what_was_printed(self):
        mutate = tool_load()
        change = mutate.Change("src/a.c", 2, ["    if (at > 0)"], ["    if (at >= 0)"])
        self.assertEqual(mutate.changes_read(f"# one\n{change}\n\n{change}\n", "x"), [change, change])

    def test_the_same_text_twice_needs_its_line(self):
        mutate = tool_load()
        text = "f();\nf();\n"
        change = mutate.Change("src/a.c", 0, ["f();"], ["g();"])
        self.assertIsNone(mutate.change_apply(change, text))
        change.line = 2
        self.assertEqual(mutate.change_apply(change, text), "f();\ng();\n")

    def test_the_order_is_that_of_the_draw(self):
        mutate = tool_load()
        chosen = mutate.changes_chosen(["src/core/queue.c", "src/core/core.c"], 30, 1)
        self.assertEqual(len(chosen), 30)
        self.assertEqual(chosen, mutate.changes_chosen(["src/core/queue.c", "src/core/core.c"], 30, 1))
        places = [(change.path, change.line) for change in chosen]
        self.assertNotEqual(places, sorted(places))

    def test_draws_only_what_changes_something(self):
        mutate = tool_load()
        with tempfile.TemporaryDirectory() as folder:
            mutate.TOP = pathlib.Path(folder)
            (mutate.TOP / "a.c").write_text("static bool f(int a)\n{\n    return a > 0;\n}\n")
            found = [change.new for change in mutate.changes_of("a.c")]
            self.assertEqual(found, [["{", "    return false;"], ["    return a >= 0;"]])


class Variants(unittest.TestCase):
    def test_a_number_is_left_out_whole_or_not_at_all(self):
        variants = set(tool_load().line_variants("    end = at + 1 - 16;"))
        self.assertEqual(variants, {"    ;", "    end = at - 16;", "    end = at - 1 - 16;",
                                    "    end = at + 1 + 16;"})


if __name__ == "__main__":
    if len(sys.argv) > 3:
        command_in_child(sys.argv[1], None if sys.argv[2] == "None" else float(sys.argv[2]),
                         int(sys.argv[3]))
    else:
        unittest.main()
