"""tools/check-names finds what is not there, and nothing else, in a small tree made for it."""
import pathlib
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).resolve().parents[3] / "tools/check-names"

TRUE = {
    "src/core/core.c": """
/* core.c — core_step() fills a `struct output`; RUNNING as in queue.h. English: a struct of functions. */
enum life { LIFE_RUNNING };
struct output { int count; };
void core_step(struct output *output) { output->count = 1; /* `output` is the caller's */ }
const char *text = "a /* string */ with stolen_name";
""",
    "src/core/queue.c": """void core_step(struct output *output);
static const int table[] = {1, 2};
int queue_step(struct output *output)
{
    core_step(output);
    return table[0];
}
""",
    "src/core/queue.h": "/* the tests: tests/unit/test_*.c; they know stolen_name and other_name */\n",
    "src/core/table.sql": "CREATE TABLE jobs (state INTEGER); -- an enum life; 'quoted' as in core_step\n",
    "tests/unit/test_core.c": "struct output { int other; }; /* a program of its own */ int main(void) { return 0; }\n",
    "docs/rfc/0001-core.md": "`core_step` (`core/core.c`), `src/core/`, src/core/core.c:core_step, docs/rfc/0001, `LIFE_RUNNING`\n"
    "src/core/queue.c:queue_step, src/core/queue.c:table, src/core/core.c:LIFE_RUNNING, src/core/core.c:life\n",
    "tools/check-names.allow": "other_name  a name of another system\n",
}

FALSE = {  # what is added to a file, and what the check must say about it
    "/* core_stop() */": ("src/core/core.c", "core_stop: there is no such name"),
    "/* see core_stop */": ("src/core/core.c", "core_stop: there is no such name"),
    "/* see `stop` */": ("src/core/core.c", "stop: there is no such name"),
    "// a `struct input`": ("src/core/core.c", "struct input: the code declares no such tag"),
    "/* an enum output */": ("src/core/core.c", "enum output: the code declares no such tag"),
    "/* see list.h */": ("src/core/core.c", "list.h: there is no such file"),
    "/* see tests/unit/core/ */": ("src/core/core.c", "tests/unit/core/: there is no such file"),
    "struct life { int state; };": ("src/core/core.c", "struct life: src/core/core.c:3 declares this tag for something else"),
    "enum output { NONE };": ("src/core/queue.h", "enum output: "),
    "-- enum state": ("src/core/table.sql", "enum state: the code declares no such tag"),
    "-- jobs that core_stop has ended": ("src/core/table.sql", "core_stop: there is no such name"),
    "`core_stop`": ("docs/rfc/0001-core.md", "core_stop: there is no such name"),
    "`core/`, `server/`": ("docs/rfc/0001-core.md", "server/: there is no such file"),
    "src/core/queue.h:core_step": ("docs/rfc/0001-core.md", "src/core/queue.h:core_step: src/core/queue.h does not have it"),
    "`core_step` (`core/queue.h`)": ("docs/rfc/0001-core.md", "core/queue.h:core_step: core/queue.h does not have it"),
    "src/core/queue.c:core_step": ("docs/rfc/0001-core.md", "src/core/queue.c does not have it"),  # it only calls it
    "docs/rfc/0002": ("docs/rfc/0001-core.md", "docs/rfc/0002: there is no such file"),
    "unused_name  of nothing": ("tools/check-names.allow", "nothing mentions unused_name any more"),
    "no_reason": ("tools/check-names.allow", "no reason is given for no_reason"),
}


def run(root):
    done = subprocess.run([sys.executable, CHECK, "--root", root], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, text in TRUE.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        code, said = run(root)
        assert code == 0 and said == "", said
        for added, (name, expected) in FALSE.items():
            (root / name).write_text(TRUE[name] + added + "\n")
            code, said = run(root)
            lines = said.splitlines()
            assert code == 1 and len(lines) == 1 and expected in lines[0], (added, said)
            (root / name).write_text(TRUE[name])


main()
