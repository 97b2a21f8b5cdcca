"""tools/check-symbols finds symbols that two libraries define and functions that only tests call, in a small tree made for it."""
import pathlib
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).resolve().parents[3] / "tools/check-symbols"

TREE = {
    "src/one/one.c": """
int shared_limit(void);
int one_step(void) { return shared_limit(); }
int one_peek(void) { return 1; } /* one_peek */
const char *one_text(void) { return "one_peek"; }
static int helper(void) { return one_text() != 0; }
int one_begin(void) { return helper(); }
""",
    "src/two/two.c": "int one_begin(void);\nint one_step(void);\nint shared_limit(void) { return one_begin(); }\nint two_run(void) { return one_step(); }\n",
    "src/two/two.h": "int two_run(void); /* two_run() */\n",
    "src/sim/sim.c": "int one_peek(void);\nint sim_run(void) { return one_peek(); }\n",
    "src/two/main.c": "int two_run(void);\nint main(void) { return two_run(); }\n",
    "tests/test.c": "int one_peek(void);\nint test(void) { return one_peek(); }\n",
    "tools/check-symbols.allow": "# reasons\none_peek  tests look at it\n",
}

WRONG = {  # what is added to a file, and what is said about it
    "": None,
    "int two_spare(void) { return 2; }": ("src/two/two.c", "two_spare: nothing in src/ calls it"),
    "int one_begin(void) { return 2; }": ("src/three/three.c", "one_begin: libone.a, libthree.a"),
    "two_run  it is called": ("tools/check-symbols.allow", "two_run is no function that only tests call"),
    "one_gone  it is not there": ("tools/check-symbols.allow", "one_gone is no function that only tests call"),
    "one_bare": ("tools/check-symbols.allow", "one_bare has no reason"),
}


def check(added, place):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in TREE.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + (added + "\n" if path == place else ""))
        if place and place not in TREE:
            (root / place).parent.mkdir(parents=True)
            (root / place).write_text(added + "\n")
        for source in (root / "src").rglob("*.c"):
            built = root / "build" / source.relative_to(root).parent
            if source.name == "main.c":  # the object of a program
                built = built / "two.p"
                built.mkdir(parents=True)
                subprocess.run(["cc", "-c", "-o", built / "main.o", source], check=True)
                continue
            built.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cc", "-c", "-o", built / "part.o", source], check=True)
            subprocess.run(["ar", "rcs", built / f"lib{source.stem}.a", built / "part.o"], check=True)
        done = subprocess.run([sys.executable, CHECK, root / "build", "--root", root], capture_output=True, text=True)
        assert done.returncode == (1 if done.stdout else 0), (done.returncode, done.stderr)
        return done.stdout.splitlines()


for added, wrong in WRONG.items():
    said = check(added, wrong[0] if wrong else None)
    if wrong:
        assert len(said) == 1 and wrong[1] in said[0], (added, said)
    else:
        assert said == [], said
