/* relay.c — all logs once more, on the container's own output: log_line.h.
 *
 * A write waits for whoever reads it, as the write of any program in a pod does: nothing is lost
 * while the node's runtime is away, and the task waits for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "init/init.h"
#include "init/layout.h"
#include "init/log_line.h"
#include "init/own_group.h"

/* Whoever asks what a task uses does not ask more often than twice this. */
enum { USE_EVERY_MS = 10 * 1000 };

_Static_assert((int)PIPE_STDOUT == (int)LOG_LINE_STDOUT &&
                   (int)PIPE_STDERR == (int)LOG_LINE_STDERR &&
                   (int)PIPE_RUNTIME == (int)LOG_LINE_RUNTIME,
               "a pipe is a kind of line");

void relay_open(struct init *init)
{
    const char *path = arena_format(&init->arena, "%s/%s", init->root, LAYOUT_RELAY_NAME);
    init->relay_fd = -1;
    if (access(path, F_OK) == 0)
        init->relay_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    init->began_ms = init->use_at_ms = clock_monotonic_ms();
}

/* Nobody reads it any more: the segments are all there is. */
static void relay_end(struct init *init)
{
    close(init->relay_fd);
    init->relay_fd = -1;
}

static void lines_send(struct init *init, struct text lines)
{
    while (lines.length > 0) {
        ssize_t written = write(init->relay_fd, lines.at, lines.length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            relay_end(init);
            return;
        }
        lines = (struct text){lines.at + written, lines.length - (size_t)written};
    }
}

void relay_write(struct init *init, enum pipe_kind kind, const char *bytes, size_t length)
{
    cleanup_buf struct buf lines = BUF_INIT;
    if (init->relay_fd < 0)
        return;
    log_lines_write((enum log_line_kind)kind, (struct text){bytes, length},
                    &init->relay_offsets[kind], &init->relay_all_offset, &lines);
    lines_send(init, buf_as_text(&lines));
}

int64_t relay_deadline(const struct init *init)
{
    return init->relay_fd < 0 ? 0 : init->use_at_ms;
}

void relay_deadlines(struct init *init)
{
    cleanup_buf struct buf line = BUF_INIT;
    struct log_line_use use;
    const int64_t now_ms = clock_monotonic_ms();
    if (init->relay_fd < 0 || init->use_at_ms == 0 || now_ms < init->use_at_ms)
        return;
    if (!own_group_use(init->root, &use)) {
        init->use_at_ms = 0;
        return;
    }
    init->use_at_ms = now_ms + USE_EVERY_MS;
    log_line_use_write((uint64_t)(now_ms - init->began_ms), &use, &line);
    lines_send(init, buf_as_text(&line));
}

void relay_close(struct init *init)
{
    cleanup_buf struct buf line = BUF_INIT;
    if (init->relay_fd < 0)
        return;
    log_line_write_end(&line);
    lines_send(init, buf_as_text(&line));
    if (init->relay_fd >= 0)
        relay_end(init);
}
