/* validate: no server needed */
#include "base/arena.h"
#include "base/memory.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/print.h"
#include "spec/spec.h"

static int validate(const char *path)
{
    cleanup_buf struct buf content = BUF_INIT, report = BUF_INIT;
    int code = file_content(path, &content);
    if (code)
        return code;
    cleanup_arena struct arena arena;
    cleanup_problems struct problems problems;
    struct spec_parsed parsed = {0};
    arena_init(&arena);
    problems_init(&problems, &arena);
    if (spec_parse(buf_as_text(&content), &arena, &parsed, &problems))
        code = EXIT_REFUSED;
    const char *name = path[0] == '-' && !path[1] ? "standard input" : path;
    problems_print(&problems, name, &report);
    print_error("%s", buf_cstr(&report));
    if (!code)
        printf("%s: valid\n", name);
    spec_free(parsed.spec);
    return code;
}

int run_validate(struct cli *cli)
{
    int worst = 0;
    for (int i = 0; i < cli->argument_count; i++) {
        int code = validate(cli->arguments[i]);
        if (code > worst)
            worst = code;
    }
    return worst;
}
