/* convert: no server needed */
#include "base/arena.h"
#include "base/memory.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/print.h"
#include "spec/convert.h"

int run_convert(struct cli *cli)
{
    const char *path = cli->arguments[0];
    cleanup_buf struct buf content = BUF_INIT, report = BUF_INIT, out = BUF_INIT;
    int code = file_content(path, &content);
    if (code)
        return code;
    cleanup_arena struct arena arena;
    cleanup_problems struct problems problems;
    struct spec_converted converted;
    arena_init(&arena);
    problems_init(&problems, &arena);
    code = spec_convert(buf_as_text(&content), &arena, &out, &problems, &converted);
    problems_print(&problems, path[0] == '-' && !path[1] ? "standard input" : path, &report);
    print_error("%s", buf_cstr(&report));
    if (code)
        return EXIT_REFUSED;
    if (converted.loss_count && !cli_flag(cli, "lossy"))
        return cli_fail(EXIT_REFUSED,
                        "protocol 2 cannot say all that the file says (see the warnings); with "
                        "--lossy it is left out and noted in the new file");
    fwrite(out.at, 1, out.length, stdout);
    return EXIT_OK;
}
