/* reason.c — why the task is about to be ended, in a container that the engine cannot write to. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "init/exit_file.h"
#include "init/init.h"
#include "init/layout.h"

enum { FAILED = 1, GRACE_MAX_MS = 1 << 30 };

static int fail(const char *why)
{
    dprintf(STDERR_FILENO, "skep-init: reason: %s\n", why);
    return FAILED;
}

/* Whoever reads it reads all of it, or nothing. */
int reason(struct init *init, int count, char **arguments)
{
    struct reason_file file = {0};
    struct err err = {0};
    int64_t grace_ms;
    cleanup_buf struct buf text = BUF_INIT;
    if (count != 3)
        return fail("it needs a folder, a reason, and a time in ms");
    if (!text_to_int64(text_of(arguments[2]), &grace_ms) || grace_ms < 0 || grace_ms > GRACE_MAX_MS)
        return fail("the last is no time in ms");
    if (!arguments[1][0] || strlen(arguments[1]) >= sizeof file.reason ||
        strpbrk(arguments[1], "\t\n"))
        return fail("the reason must be a few words on one line");
    snprintf(file.reason, sizeof file.reason, "%s", arguments[1]);
    file.grace_ms = (uint32_t)grace_ms;
    reason_file_write(&file, &text);
    const char *path = arena_format(&init->arena, "%s/run/%s", arguments[0], LAYOUT_REASON_NAME);
    const char *aside = arena_format(&init->arena, "%s.new", path);
    if (file_write(aside, buf_as_text(&text), 0644, &err) < 0)
        return fail(err.text);
    return rename(aside, path) == 0 ? 0 : fail("it cannot be put in its place");
}
