"""tools/check-declarations finds other names for a result, and declarations at the head of a function, in a small tree."""
import pathlib
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).resolve().parents[3] / "tools/check-declarations"

GOOD = """\
int first(struct err *err);

int second(const char *name, struct err *err)
{
    static const char *const words[] = {"a",
                                        "b"};
    struct table table = {0};
    int exit_code = 0;
    int code = first(err);
    if (code == 0)
        code = table_fill(&table, words, name, err);

    /* a paragraph of its own */
    int (*next)(struct err *) = first;
    return code == 0 ? next(err) : code;
}
"""

BAD = {  # a function, and what the check must say about it
    "int third(void)\n{\n    int failed = second();\n    return failed;\n}\n": "not `failed`",
    "int third(int result)\n{\n    return result;\n}\n": "not `result`",
    "int third(void)\n{\n    int code;\n\n    code = second();\n    return code;\n}\n": "first value",
    "void third(void)\n{\n    struct table *table;\n    char *const path = NULL;\n\n    use(path);\n}\n": "first value",
}


def run(root):
    done = subprocess.run([sys.executable, CHECK, "--root", root], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        (root / "src/base").mkdir(parents=True)
        (root / "src/base/text.c").write_text(GOOD)
        code, said = run(root)
        assert code == 0 and said == "", said
        for function, expected in BAD.items():
            (root / "src/base/text.c").write_text(GOOD + function)
            code, said = run(root)
            assert code == 1 and len(said.splitlines()) == 1 and expected in said, (function, said)


main()
