/* relay.c — all logs once more, on the container's own output: log_line.h.
 *
 * A write waits for whoever reads it, as the write of any program in a pod does: nothing is lost
 * while the node's runtime is away, and the task waits for it. What the kubelet rotates away before
 * it is read can be fetched from the segments (fetch.c) while this program runs: so it does not end
 * before all has been taken, where there is enough of it to be rotated.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "init/init.h"
#include "init/layout.h"
#include "init/log_line.h"
#include "init/own_group.h"
#include "sys/clock.h"

enum {
    /* Whoever asks what a task uses does not ask more often than twice this; and whoever reads
     * its log, but hears nothing for some times this, has been left behind (client.h). */
    USE_EVERY_MS = 10 * 1000,
    WAIT_EVERY_MS = 1000,
    /* Less than that stays in the kubelet's newest file: by default that has 10 MiB. */
    SURE_BYTES = 256 << 10,
    TAKEN_MS = 120 * 1000,        /* nobody has taken anything for so long: nobody will */
    TAKEN_STOPPED_MS = 10 * 1000, /* the same where the task is to end */
};

_Static_assert((int)PIPE_STDOUT == (int)LOG_LINE_STDOUT &&
                   (int)PIPE_STDERR == (int)LOG_LINE_STDERR &&
                   (int)PIPE_RUNTIME == (int)LOG_LINE_RUNTIME,
               "a pipe is a kind of line");

static const char *taken_path(struct init *init)
{
    return arena_format(&init->arena, "%s/run/%s", init->root, LAYOUT_TAKEN_NAME);
}

static void taken_open(struct init *init)
{
    const char *path = taken_path(init);
    /* for both: so it never ends, however many have written to it */
    if (mkfifo(path, 0600) == 0)
        init->taken_fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (init->taken_fd < 0)
        note(init, "%s: errno %d: what the node loses of a long log cannot be fetched", path,
             errno);
}

/* Where bytes are missing in the segments, what follows stands at other offsets than the relay
 * tells: nobody may fetch there. */
static void losses_see(struct init *init)
{
    bool is_lost = init->all.lost > 0;
    for (size_t i = 0; i < PIPES; i++)
        is_lost = is_lost || init->logs[i].lost > 0;
    if (init->taken_fd < 0 || !is_lost)
        return;
    close(init->taken_fd);
    init->taken_fd = -1;
    unlink(taken_path(init));
}

void relay_open(struct init *init)
{
    const char *path = arena_format(&init->arena, "%s/%s", init->root, LAYOUT_RELAY_NAME);
    init->relay_fd = -1;
    if (access(path, F_OK) == 0)
        init->relay_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (init->relay_fd >= 0)
        taken_open(init);
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
    losses_see(init);
    log_lines_write((enum log_line_kind)kind, (struct text){bytes, length},
                    &init->relay_offsets[kind], &init->relay_all_offset, &lines);
    init->relay_bytes += lines.length;
    lines_send(init, buf_as_text(&lines));
}

int64_t relay_deadline(const struct init *init)
{
    return init->relay_fd < 0 ? 0 : init->use_at_ms;
}

void relay_deadlines(struct init *init)
{
    cleanup_buf struct buf lines = BUF_INIT;
    struct log_line_use use;
    const int64_t now_ms = clock_monotonic_ms();
    if (init->relay_fd < 0 || now_ms < init->use_at_ms)
        return;
    init->use_at_ms = now_ms + USE_EVERY_MS;
    if (own_group_use(init->root, &use))
        log_line_use_write((uint64_t)(now_ms - init->began_ms), &use, &lines);
    log_line_write_told(init->relay_offsets[PIPE_STDOUT], init->relay_all_offset,
                        init->relay_offsets[PIPE_STDERR], init->relay_offsets[PIPE_RUNTIME],
                        &lines);
    lines_send(init, buf_as_text(&lines));
}

static int64_t taken_limit(const struct init *init)
{
    return clock_monotonic_ms() + (init->is_stopping ? TAKEN_STOPPED_MS : TAKEN_MS);
}

/* It is said again until somebody has heard: the kubelet may have rotated it away. */
static void end_send(struct init *init, bool waits)
{
    cleanup_buf struct buf line = BUF_INIT;
    log_line_write_end(waits, &line);
    lines_send(init, buf_as_text(&line));
}

/* Until all has been taken, or nobody has taken anything for long. */
static void taken_await(struct init *init)
{
    bool was_stopping = init->is_stopping;
    int64_t until_ms = taken_limit(init), again_ms = 0;
    while (clock_monotonic_ms() < until_ms && init->relay_fd >= 0) {
        char signs[64];
        ssize_t got = 0;
        if (clock_monotonic_ms() >= again_ms) {
            end_send(init, true);
            again_ms = clock_monotonic_ms() + WAIT_EVERY_MS;
        }
        if (loop_turn(init, init->taken_fd, POLLIN, again_ms))
            got = read(init->taken_fd, signs, sizeof signs);
        if (got > 0 && memchr(signs, LAYOUT_TAKEN_ALL, (size_t)got))
            return;
        if (got > 0 || init->is_stopping != was_stopping)
            until_ms = taken_limit(init);
        was_stopping = init->is_stopping;
    }
    note(init, "nobody has taken the end of the log");
}

void relay_close(struct init *init)
{
    if (init->relay_fd < 0)
        return;
    losses_see(init);
    if (init->taken_fd >= 0 && init->relay_bytes > SURE_BYTES)
        taken_await(init);
    else
        end_send(init, false);
    if (init->relay_fd >= 0)
        relay_end(init);
}
