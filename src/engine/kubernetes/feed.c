#include "engine/kubernetes/feed.h"

#include <assert.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"

enum {
    STATUS_OK = 200,
    STATUS_BAD = 400,
    STATUS_UNAUTHORIZED = 401,
    STATUS_TIMEOUT = 408,
    STATUS_GONE = 410,
    STATUS_TOO_MANY = 429,
    STATUS_SERVER = 500,
    FAILURES_MAX = 1000
};

#define LIST_END "k8s.io/initial-events-end"

void feed_init(struct feed *feed, const char *path, const char *selector)
{
    *feed = (struct feed){.path = path, .selector = selector};
}

void feed_request(const struct feed *feed, uint64_t chance, struct buf *out)
{
    buf_format(out, "%s?", feed->path);
    if (feed->selector[0])
        buf_format(out, "labelSelector=%s&", feed->selector);
    if (feed->fields)
        buf_format(out, "fieldSelector=%s&", feed->fields);
    if (feed->state == FEED_WATCHES) {
        buf_format(out, "watch=1&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=",
                   (unsigned)(FEED_WATCH_MIN_S + chance % FEED_WATCH_MIN_S));
        object_encode(out, feed->version);
        return;
    }
    if (!feed->is_paged) {
        buf_format(out,
                   "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&"
                   "resourceVersionMatch=NotOlderThan&timeoutSeconds=%d",
                   FEED_LIST_S);
        return;
    }
    buf_format(out, "limit=%d", FEED_PAGE_LIMIT);
    if (feed->next_page[0]) {
        buf_string(out, "&continue=");
        object_encode(out, feed->next_page);
    }
}

bool feed_is_stream(const struct feed *feed)
{
    return feed->state == FEED_WATCHES || !feed->is_paged;
}

bool feed_is_first_page(const struct feed *feed)
{
    return feed->state == FEED_LISTS && !feed->next_page[0];
}

static void list_again(struct feed *feed)
{
    feed->state = FEED_LISTS;
    feed->version[0] = feed->next_page[0] = '\0';
}

/* False: it does not fit, and is not taken. */
static bool string_take(char *to, size_t room, const char *from)
{
    if (strlen(from) >= room)
        return false;
    memcpy(to, from, strlen(from) + 1);
    return true;
}

bool feed_page_took(struct feed *feed, const struct doc *metadata)
{
    assert(feed->state == FEED_LISTS);
    const char *next = object_string(metadata, "continue");
    if (next[0]) {
        if (!string_take(feed->next_page, sizeof feed->next_page, next))
            feed->next_page[0] = '\0'; /* what follows is not known: from the beginning */
        return false;
    }
    feed->next_page[0] = '\0';
    if (!string_take(feed->version, sizeof feed->version,
                     object_string(metadata, "resourceVersion")))
        return false;
    feed->state = FEED_WATCHES;
    feed->is_watch_fresh = true;
    return true;
}

static bool has_list_end(const struct doc *object)
{
    return strcmp(object_note(object, LIST_END), "true") == 0;
}

enum feed_event feed_line(struct feed *feed, const struct doc *line, const struct doc **object)
{
    const char *type = object_string(line, "type");
    *object = doc_get_kind(line, "object", DOC_MAP);
    if (strcmp(type, "ERROR") == 0) {
        const bool is_gone = doc_get_int(*object, "code", 0) == STATUS_GONE;
        if (!is_gone && (feed->state == FEED_WATCHES || feed->is_paged))
            return FEED_BROKEN;
        /* what stands behind the server may be too old for such lists (an etcd of 3.4) */
        feed->is_paged = feed->is_paged || !is_gone;
        list_again(feed);
        return FEED_EXPIRED;
    }
    const char *version = object_string(*object, "metadata.resourceVersion");
    const bool is_bookmark = strcmp(type, "BOOKMARK") == 0;
    const bool is_removed = strcmp(type, "DELETED") == 0;
    if (!is_bookmark && !is_removed && strcmp(type, "ADDED") != 0 && strcmp(type, "MODIFIED") != 0)
        return FEED_BROKEN;
    const bool is_list_end = feed->state == FEED_LISTS && is_bookmark && has_list_end(*object);
    if (feed->state == FEED_LISTS && !is_list_end) /* in no order: none is where a watch begins */
        return is_bookmark ? FEED_NOTHING : is_removed ? FEED_REMOVED : FEED_OBJECT;
    if (!version[0] || !string_take(feed->version, sizeof feed->version, version))
        return FEED_BROKEN;
    feed->state = FEED_WATCHES;
    feed->failures = 0;
    feed->is_watch_fresh = false;
    return is_list_end   ? FEED_LISTED
           : is_bookmark ? FEED_NOTHING
           : is_removed  ? FEED_REMOVED
                         : FEED_OBJECT;
}

const char *feed_refusal(const struct feed *feed, int status, struct text body, struct arena *arena)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    const char *message = object_string(doc_parse(body, DOC_JSON, arena, &problems), "message");
    return arena_format(arena, "%.100s%s answers %d%s%.120s", feed->path,
                        feed->state == FEED_WATCHES ? " (watch)" : "", status,
                        message[0] ? ": " : "", message);
}

uint32_t feed_backoff_ms(uint32_t failures, uint64_t chance)
{
    uint32_t ms = FEED_BACKOFF_FIRST_MS;
    if (failures == 0)
        return 0;
    for (uint32_t i = 1; i < failures && ms < FEED_BACKOFF_MAX_MS; i++)
        ms *= 2;
    if (ms > FEED_BACKOFF_MAX_MS)
        ms = FEED_BACKOFF_MAX_MS;
    return ms + (uint32_t)(chance % (ms / 5));
}

/* A watch that was to begin with a list has ended without one: the server has none of that kind. */
static bool is_no_list(int status)
{
    return status == STATUS_OK ||
           (status >= STATUS_BAD && status < STATUS_SERVER && status != STATUS_UNAUTHORIZED &&
            status != STATUS_TIMEOUT && status != STATUS_GONE && status != STATUS_TOO_MANY);
}

bool feed_was_silent(struct feed *feed)
{
    if (feed->state != FEED_WATCHES)
        return false;
    feed->is_watch_fresh = true;
    return true;
}

bool feed_lived(struct feed *feed, int64_t lived_ms)
{
    if (feed->state != FEED_WATCHES || lived_ms < FEED_LIVED_MS)
        return false;
    feed->failures = 0;
    return true;
}

uint32_t feed_ended(struct feed *feed, int status, uint64_t chance)
{
    if (feed->state == FEED_LISTS && !feed->is_paged && is_no_list(status)) {
        feed->is_paged = true;
        return 0;
    }
    const bool is_useful = feed->state == FEED_WATCHES && !feed->is_watch_fresh;
    if (status == STATUS_GONE)
        list_again(feed);
    if (feed->state == FEED_WATCHES)
        feed->is_watch_fresh = true;
    if (status == STATUS_OK && is_useful)
        return 0;
    feed->failures += feed->failures < FAILURES_MAX;
    /* what has expired is listed at once; a server that always says so is not asked without pauses
     */
    const bool is_first_free =
        feed->state == FEED_LISTS && (status == STATUS_GONE || status == STATUS_OK);
    return feed_backoff_ms(feed->failures - is_first_free, chance);
}
