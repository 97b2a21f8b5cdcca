#include "server/end_watch.h"
#include "base/memory.h"
#include "sys/log.h"
#include "sys/mailbox.h"
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

struct end_watch {
    struct end_watch_config config;
    int64_t begun_ms;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    const char *stage;
    bool is_over;
};

/* Until `due_ms`, or until the server has ended: false. */
static bool moment_await(struct end_watch *watch, int64_t due_ms)
{
    const struct timespec due = {.tv_sec = (time_t)(due_ms / 1000),
                                 .tv_nsec = (long)(due_ms % 1000) * 1000000};
    while (!watch->is_over && pthread_cond_timedwait(&watch->wake, &watch->lock, &due) == 0)
        continue;
    return !watch->is_over;
}

static void *watch_run(void *context)
{
    struct end_watch *watch = context;
    const struct end_watch_config *config = &watch->config;
    const int64_t limit_ms = watch->begun_ms + config->limit_ms;
    const char *given_up = NULL;
    pthread_mutex_lock(&watch->lock);
    for (int64_t tell_ms = watch->begun_ms + config->tell_ms; !given_up;
         tell_ms += config->tell_ms) {
        if (!moment_await(watch, tell_ms < limit_ms ? tell_ms : limit_ms))
            break;
        if (tell_ms < limit_ms)
            log_warning("server", "the end takes long: waiting for %s, %lld s since its beginning",
                        watch->stage, (long long)(mailbox_now_ms() - watch->begun_ms) / 1000);
        else
            given_up = watch->stage;
    }
    pthread_mutex_unlock(&watch->lock);
    if (given_up)
        config->give_up(config->context, given_up);
    return NULL;
}

static void watch_free(struct end_watch *watch)
{
    pthread_cond_destroy(&watch->wake);
    pthread_mutex_destroy(&watch->lock);
    mem_free(watch);
}

struct end_watch *end_watch_start(const struct end_watch_config *config, const char *stage)
{
    assert(config->tell_ms > 0 && config->limit_ms > 0 && config->give_up && stage);
    struct end_watch *watch = mem_zero(1, sizeof *watch);
    pthread_condattr_t monotonic;
    watch->config = *config;
    watch->begun_ms = mailbox_now_ms();
    watch->stage = stage;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int number = pthread_create(&watch->thread, NULL, watch_run, watch);
    if (number == 0)
        return watch;
    log_warning("server", "nothing bounds the end: no thread can be made: %s", strerror(number));
    watch_free(watch);
    return NULL;
}

void end_watch_stage(struct end_watch *watch, const char *stage)
{
    assert(stage);
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->stage = stage;
    pthread_mutex_unlock(&watch->lock);
}

void end_watch_stop(struct end_watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->is_over = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    watch_free(watch);
}
