/* exit-doc [FILE]: print docs/user/exit-codes.md, made from the built-in table; with a file, check
 * that it is the same. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "doc/problem.h"
#include "exits/rules.h"

static const char head[] =
    "# Exit codes\n"
    "\n"
    "<!-- made from src/exits/specs.yaml by `build/tests/unit/exits/exit-doc`; do not edit -->\n"
    "\n"
    "Every end of a task and of a job has a code. Codes 1 to 255 belong to your program or to a "
    "rule "
    "that recognised its\n"
    "failure; the exit code as the program gave it is always shown as well. Negative codes are the "
    "platform's. A code that is not\n"
    "listed here is your program's own; Skep retries it while the job's budget lasts.\n"
    "\n"
    "What follows from a failure:\n"
    "\n"
    "| reaction | meaning |\n"
    "| --- | --- |\n"
    "| `ALWAYS_RETRY` | tried again at once, then after pauses that grow from a second to five "
    "minutes "
    "while attempts end quickly; does not use up `jobRetryCount` |\n"
    "| `ALWAYS_BACKOFF_RETRY` | tried again after a pause of 1 to 15 minutes; does not use up "
    "`jobRetryCount` |\n"
    "| `RETRY_TO_MAX` | tried again `jobRetryCount` times |\n"
    "| `NEVER_RETRY` | not tried again |\n"
    "\n"
    "A program may choose for itself: exit code 200 asks to be tried again, 201 to be tried again "
    "after a pause, 210 not to be\n"
    "tried again. A syntax error in Python or shell is never tried again, whatever the job asks "
    "for.\n"
    "\n"
    "Your administrator can add codes: see [exit specifications](../operator/exit-specs.md).\n"
    "\n"
    "| code | name | why | what to do | reaction |\n"
    "| ---: | --- | --- | --- | --- |\n";

static void row(struct buf *out, const struct exit_spec *spec)
{
    buf_format(out, "| %d | %s | %s | ", spec->code, spec->phrase, spec->reason);
    for (size_t i = 0; i < spec->solution_count; i++)
        buf_format(out, "%s%s", i > 0 ? "; " : "", spec->solution[i]);
    buf_format(out, " | `%s` |\n", spec->reaction);
}

/* Success, the program's, the platform's. */
static int order(int32_t code)
{
    return code == 0 ? 0 : code > 0 ? 1000 + code : 10000 - code;
}

static void table(struct buf *out, const struct exit_rules *rules)
{
    int last = -1;
    for (size_t done = 0; done < exit_rules_count(rules); done++) {
        const struct exit_spec *next = NULL;
        for (size_t i = 0; i < exit_rules_count(rules); i++) {
            const struct exit_spec *spec = exit_rules_at(rules, i);
            if (order(spec->code) > last && (!next || order(spec->code) < order(next->code)))
                next = spec;
        }
        row(out, next);
        last = order(next->code);
    }
}

int main(int argc, char **argv)
{
    struct arena arena;
    arena_init(&arena);
    struct problems problems;
    problems_init(&problems, &arena);
    struct exit_rules *rules = exit_rules_new((struct text){0}, &problems);
    struct buf out = BUF_INIT;
    buf_string(&out, head);
    table(&out, rules);
    int result = 0;
    if (argc < 2) {
        fputs(buf_cstr(&out), stdout);
    } else {
        FILE *file = fopen(argv[1], "r");
        static char text[1 << 20];
        const size_t length = file ? fread(text, 1, sizeof text, file) : 0;
        if (file)
            fclose(file);
        if (length != out.length || memcmp(text, buf_cstr(&out), length) != 0) {
            fprintf(stderr, "%s is not what the table gives: run %s > %s\n", argv[1], argv[0],
                    argv[1]);
            result = 1;
        }
    }
    buf_release(&out);
    exit_rules_free(rules);
    problems_release(&problems);
    arena_release(&arena);
    return result;
}
