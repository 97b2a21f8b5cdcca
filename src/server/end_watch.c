#include "server/end_watch.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/mailbox.h"
#include "sys/watcher.h"
#include <assert.h>
#include <stdbool.h>

struct end_watch {
    struct end_watch_config config;
    int64_t begun_ms;
    struct watcher watcher;
    const char *stage; /* under the watcher's lock */
};

/* Until `due_ms`, or until the server has ended: false. */
static bool moment_await(struct end_watch *watch, int64_t due_ms)
{
    while (!watch->watcher.is_ending && watcher_await(&watch->watcher, due_ms))
        continue;
    return !watch->watcher.is_ending;
}

static void *watch_run(void *context)
{
    struct end_watch *watch = context;
    const struct end_watch_config *config = &watch->config;
    const int64_t limit_ms = watch->begun_ms + config->limit_ms;
    const char *given_up = NULL;
    pthread_mutex_lock(&watch->watcher.lock);
    for (int64_t tell_ms = watch->begun_ms + config->tell_ms; !given_up;
         tell_ms += config->tell_ms) {
        if (!moment_await(watch, tell_ms < limit_ms ? tell_ms : limit_ms))
            break;
        if (tell_ms < limit_ms)
            log_warning("server", "the end takes long: waiting for %s, %lld s since its beginning",
                        watch->stage, (long long)(clock_monotonic_ms() - watch->begun_ms) / 1000);
        else
            given_up = watch->stage;
    }
    pthread_mutex_unlock(&watch->watcher.lock);
    if (given_up)
        config->give_up(config->context, given_up);
    return NULL;
}

static void watch_free(struct end_watch *watch)
{
    watcher_release(&watch->watcher);
    mem_free(watch);
}

struct end_watch *end_watch_start(const struct end_watch_config *config, const char *stage)
{
    assert(config->tell_ms > 0 && config->limit_ms > 0 && config->give_up && stage);
    struct end_watch *watch = mem_zero(1, sizeof *watch);
    struct err err;
    watch->config = *config;
    watch->begun_ms = clock_monotonic_ms();
    watch->stage = stage;
    watcher_init(&watch->watcher);
    if (watcher_start(&watch->watcher, watch_run, watch, "the thread that bounds the end", &err) ==
        0)
        return watch;
    log_warning("server", "nothing bounds the end: %s", err.text);
    watch_free(watch);
    return NULL;
}

void end_watch_stage(struct end_watch *watch, const char *stage)
{
    assert(stage);
    if (!watch)
        return;
    pthread_mutex_lock(&watch->watcher.lock);
    watch->stage = stage;
    pthread_mutex_unlock(&watch->watcher.lock);
}

void end_watch_stop(struct end_watch *watch)
{
    if (!watch)
        return;
    watcher_stop(&watch->watcher);
    watch_free(watch);
}
