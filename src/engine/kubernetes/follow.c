/* follow.c — keeps lists of nodes, pods and, for DRA, slices by one list and one watch each; see
 * feed.h. */
#include "base/err.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/object_read.h"
#include "engine/kubernetes/page.h"
#include "engine/kubernetes/state.h"
#include "sys/clock.h"
#include "sys/log.h"
#include <stdio.h>

enum { STATUS_UNAUTHORIZED = 401 };

static void follow_ask(struct kube *kube, uint64_t which, uint32_t delay_ms);

static const struct doc *json_read(struct text text, struct arena *arena)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    const struct doc *doc = doc_parse(text, DOC_JSON, arena, &problems);
    return problems.error_count > 0 ? NULL : doc;
}

static void object_seen(struct kube *kube, uint64_t which, const struct doc *object,
                        bool is_removed, struct tells *tells)
{
    const uint32_t mark = kube->follows[which].mark;
    if (which == FOLLOW_NODES)
        nodes_seen(kube, object, is_removed, mark, tells);
    else if (which == FOLLOW_SLICES)
        nodes_slice_seen(kube, object, is_removed, mark, tells);
    else
        tasks_seen(kube, object, is_removed, mark, tells);
}

void follow_passed(struct kube *kube, uint64_t which, const struct doc *object, const char *why)
{
    struct kube_follow *follow = &kube->follows[which];
    const int64_t now = clock_monotonic_ms();
    if (follow->passed_said_ms > 0 && now < follow->passed_said_ms + KUBE_PASSED_LOG_MS)
        return;
    follow->passed_said_ms = now;
    log_error("engine", "kubernetes: %.100s of %.100s is passed over: %s",
              object_string(object, "metadata.name"), follow->feed.path, why);
}

/* It is there, or has gone, and no more of it can be read: the others are followed all the same. */
static void object_passed(struct kube *kube, uint64_t which, const struct doc *object,
                          bool is_removed, const char *trouble, struct tells *tells)
{
    const uint32_t mark = kube->follows[which].mark;
    follow_passed(kube, which, object, trouble);
    if (which == FOLLOW_NODES)
        nodes_passed(kube, object, is_removed, mark, tells);
    else if (which == FOLLOW_SLICES)
        nodes_slice_passed(kube, object, is_removed, mark, tells);
    else
        tasks_passed(kube, object, is_removed, mark, tells);
}

static void object_take(struct kube *kube, uint64_t which, const struct doc *object,
                        bool is_removed, const char *trouble, struct tells *tells)
{
    if (trouble)
        object_passed(kube, which, object, is_removed, trouble, tells);
    else
        object_seen(kube, which, object, is_removed, tells);
}

/* Under the lock. */
static void trouble_set(struct kube *kube, const char *trouble)
{
    if (strcmp(kube->trouble, trouble) != 0 && trouble[0])
        log_warning("engine", "kubernetes: %s", trouble);
    snprintf(kube->trouble, sizeof kube->trouble, "%s", trouble);
}

/* The list is whole. */
static void list_complete(struct kube *kube, uint64_t which, struct tells *tells)
{
    struct kube_follow *follow = &kube->follows[which];
    if (which == FOLLOW_NODES)
        nodes_sweep(kube, follow->mark, tells);
    else if (which == FOLLOW_SLICES)
        nodes_slices_sweep(kube, follow->mark, tells);
    else
        tasks_sweep(kube, follow->mark, tells);
    if (which == FOLLOW_PODS && !follow->is_synced) {
        tasks_given_up(kube, tells);
        tasks_left(kube, tells);
    }
    follow->is_synced = true;
    if (kube->follows[FOLLOW_SLICES].is_synced && kube->follows[FOLLOW_PODS].is_synced)
        nodes_devices_known(kube, tells);
    pthread_cond_broadcast(&kube->synced);
}

/* One page. ERR_CORRUPT: it is none. */
static int page_take(struct kube *kube, uint64_t which, struct text body, struct tells *tells,
                     struct err *err)
{
    struct kube_follow *follow = &kube->follows[which];
    cleanup_arena struct arena arena;
    struct page page;
    struct text item;
    arena_init(&arena);
    int code = page_open(body, &page, err);
    const struct doc *metadata = code == 0 ? json_read(page.metadata, &arena) : NULL;
    if (code == 0 && !metadata)
        code = err_fail(err, ERR_CORRUPT, "", "the list's metadata is no JSON");
    if (code < 0)
        return code;
    while (page_next(&page, &item)) {
        cleanup_arena struct arena scratch;
        arena_init(&scratch);
        const char *trouble;
        const struct doc *object = object_read(item, &scratch, &trouble);
        if (!object) /* any that the list does not have may be this one */
            return err_fail(err, ERR_CORRUPT, "", "an object of the list has no name: %.150s",
                            trouble);
        object_take(kube, which, object, false, trouble, tells);
    }
    if (feed_page_took(&follow->feed, metadata))
        list_complete(kube, which, tells);
    else if (feed_is_first_page(&follow->feed))
        return err_fail(err, ERR_CORRUPT, "", "%.100s: its list names no version and no next page",
                        follow->feed.path);
    return 0;
}

/* What is wrong with it; "" nothing is. */
static const char *answer_trouble(const struct feed *feed, const struct kube_answer *answer,
                                  struct arena *arena)
{
    if (answer->trouble[0] || answer->status == 200)
        return answer->trouble;
    return feed_refusal(feed, answer->status, answer->body, arena);
}

static void list_done(void *context, uint64_t which, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct kube_follow *follow = &kube->follows[which];
    struct tells tells;
    struct err err = {0};
    uint32_t delay_ms = 0;
    kube_enter(kube, &tells);
    int code = answer->status == 200
                   ? page_take(kube, which, answer->body, &tells, &err)
                   : err_fail(&err, ERR_UNAVAILABLE, "", "%s",
                              answer_trouble(&follow->feed, answer, &tells.arena));
    if (code < 0)
        delay_ms = feed_ended(&follow->feed, answer->status, kube->chance++);
    if (answer->status != 410)
        trouble_set(kube, code < 0 ? err.text : "");
    kube_leave(kube, &tells);
    follow_ask(kube, which, delay_ms);
}

static bool watch_line(void *context, uint64_t which, struct text line)
{
    struct kube *kube = context;
    struct kube_follow *follow = &kube->follows[which];
    struct tells tells;
    cleanup_arena struct arena arena;
    const struct doc *object = NULL;
    arena_init(&arena);
    kube_enter(kube, &tells);
    const char *trouble;
    const struct doc *doc = object_event_read(line, &arena, &trouble);
    enum feed_event event = doc ? feed_line(&follow->feed, doc, &object) : FEED_BROKEN;
    if (event == FEED_OBJECT || event == FEED_REMOVED)
        object_take(kube, which, object, event == FEED_REMOVED, trouble, &tells);
    if (event == FEED_LISTED)
        list_complete(kube, which, &tells);
    if (event != FEED_EXPIRED && event != FEED_BROKEN)
        trouble_set(kube, "");
    follow->is_expired = event == FEED_EXPIRED;
    kube_leave(kube, &tells);
    return event != FEED_EXPIRED && event != FEED_BROKEN;
}

static void watch_done(void *context, uint64_t which, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct kube_follow *follow = &kube->follows[which];
    cleanup_arena struct arena arena;
    arena_init(&arena);
    pthread_mutex_lock(&kube->lock);
    /* a right that is missing, as with a server that has just begun, says nothing of lists */
    const int status = follow->is_expired         ? 410
                       : answer->is_right_missing ? STATUS_UNAUTHORIZED
                                                  : answer->status;
    const char *trouble = answer_trouble(&follow->feed, answer, &arena);
    const bool was_paged = follow->feed.is_paged;
    const bool was_silent = answer->is_silent && feed_was_silent(&follow->feed);
    const bool has_lived = feed_lived(&follow->feed, answer->lived_ms);
    uint32_t delay_ms = was_silent ? 0 : feed_ended(&follow->feed, status, kube->chance++);
    /* that it has expired is no trouble, nor that it has no lists of the one kind, nor that it ends
     * after a while; an end without one has ended none */
    if (status != 410 && !was_silent && !has_lived && was_paged == follow->feed.is_paged &&
        trouble[0])
        trouble_set(kube, trouble);
    follow->is_expired = false;
    pthread_mutex_unlock(&kube->lock);
    follow_ask(kube, which, delay_ms);
}

/* What comes while the list is made need not be in it: it has the list's mark from here on, and not
 * earlier. What comes before it is asked for, each time that it is, is in it or has gone. */
static bool list_begins(void *context, uint64_t which, struct buf *body)
{
    struct kube *kube = context;
    (void)body; /* it has none */
    pthread_mutex_lock(&kube->lock);
    kube->follows[which].mark += feed_is_first_page(&kube->follows[which].feed);
    pthread_mutex_unlock(&kube->lock);
    return true;
}

static void follow_ask(struct kube *kube, uint64_t which, uint32_t delay_ms)
{
    pthread_mutex_lock(&kube->lock);
    const struct feed *feed = &kube->follows[which].feed;
    struct kube_call call = {.method = "GET",
                             .context = kube,
                             .key = which,
                             .write = list_begins,
                             .wants_refusals = true,
                             .is_of_server = true,
                             .done = list_done};
    if (feed_is_stream(feed)) {
        call.line = watch_line;
        call.done = watch_done;
    }
    feed_request(feed, kube->chance++, &call.path);
    pthread_mutex_unlock(&kube->lock);
    kube_client_send(kube->client, &call, delay_ms);
}

void follows_start(struct kube *kube)
{
    for (uint64_t which = 0; which < kube->follow_count; which++)
        follow_ask(kube, which, 0);
}

void follow_failed(void *context, const char *trouble, int64_t for_ms)
{
    struct kube *kube = context;
    struct tells tells;
    kube_enter(kube, &tells);
    trouble_set(kube, trouble);
    if (for_ms >= KUBE_UNREACHABLE_MS && !kube->is_unreachable) {
        kube->is_unreachable = true;
        nodes_tell(kube, &tells);
    }
    kube_leave(kube, &tells);
}

void follow_answered(void *context)
{
    struct kube *kube = context;
    struct tells tells;
    kube_enter(kube, &tells);
    if (kube->is_unreachable) {
        log_info("engine", "kubernetes: the API server answers again");
        kube->is_unreachable = false;
        nodes_heard(kube);
        kube_metrics_hurry(kube);
        nodes_tell(kube, &tells);
    }
    kube_leave(kube, &tells);
}
