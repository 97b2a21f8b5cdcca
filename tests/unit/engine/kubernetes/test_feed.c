#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/feed.h"
#include "scratch.h"

static void asks(const struct feed *feed, const char *expected)
{
    cleanup_buf struct buf url = BUF_INIT;
    feed_request(feed, 7, &url);
    assert_string_equal(buf_cstr(&url), expected);
}

static enum feed_event line(struct feed *feed, const char *text)
{
    const struct doc *object;
    return feed_line(feed, json(text), &object);
}

#define WATCH                                                                                      \
    "/api/v1/"                                                                                     \
    "pods?labelSelector=a%3Db&watch=1&allowWatchBookmarks=true&timeoutSeconds=307&"                \
    "resourceVersion="
#define LIST "/api/v1/pods?labelSelector=a%3Db&limit=500"

/* Of a server whose lists are pages. */
static void feed_paged(struct feed *feed, const char *path, const char *selector)
{
    feed_init(feed, path, selector);
    feed->is_paged = true;
}

static void feed_watching(struct feed *feed, const char *version)
{
    feed_paged(feed, "/api/v1/pods", "a%3Db");
    const char *metadata = arena_format(&arena, "{\"resourceVersion\":\"%s\"}", version);
    assert_true(feed_page_took(feed, json(metadata)));
}

#define LIST_STREAM                                                                                \
    "/api/v1/"                                                                                     \
    "pods?labelSelector=a%3Db&watch=1&allowWatchBookmarks=true&sendInitialEvents=true&"            \
    "resourceVersionMatch=NotOlderThan&timeoutSeconds=120"

static void fields_select_as_labels_do(void **state)
{
    (void)state;
    struct feed feed;
    feed_paged(&feed, "/apis/r/v1/slices", "");
    feed.fields = "spec.driver%3Dd";
    asks(&feed, "/apis/r/v1/slices?fieldSelector=spec.driver%3Dd&limit=500");
}

static void a_list_is_the_begin_of_a_watch(void **state)
{
    (void)state;
    struct feed feed;
    feed_init(&feed, "/api/v1/pods", "a%3Db");
    assert_true(feed_is_stream(&feed) && feed_is_first_page(&feed));
    asks(&feed, LIST_STREAM);
    assert_int_equal(
        line(&feed, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"39\"}}}"),
        FEED_OBJECT);
    assert_int_equal(
        line(&feed,
             "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"30\"}}}"),
        FEED_NOTHING);
    assert_true(feed_is_first_page(&feed));
    /* it breaks before its end: all of it again */
    assert_int_equal(feed_ended(&feed, 0, 0), 800);
    asks(&feed, LIST_STREAM);
    assert_int_equal(feed_ended(&feed, 429, 0), 1600);
    assert_int_equal(
        line(&feed, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"40\","
                    "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}"),
        FEED_LISTED);
    assert_false(feed_is_first_page(&feed));
    asks(&feed, WATCH "40");
    assert_int_equal(
        line(&feed, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"41\"}}}"),
        FEED_OBJECT);
    assert_int_equal(feed_ended(&feed, 200, 0), 0);
    asks(&feed, WATCH "41");
    assert_int_equal(feed_ended(&feed, 410, 0), 0);
    asks(&feed, LIST_STREAM);
}

static void a_server_without_such_lists(void **state)
{
    (void)state;
    static const int statuses[] = {400, 403, 422, 200}; /* 200: it began an ordinary watch */
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        struct feed feed;
        feed_init(&feed, "/api/v1/pods", "a%3Db");
        assert_int_equal(feed_ended(&feed, statuses[i], 0), 0);
        assert_true(feed_is_first_page(&feed) && !feed_is_stream(&feed));
        asks(&feed, LIST);
    }
    /* these say nothing of lists */
    static const int others[] = {0, 302, 401, 408, 429, 500};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct feed other;
        feed_init(&other, "/api/v1/pods", "a%3Db");
        feed_ended(&other, others[i], 0);
        asks(&other, LIST_STREAM);
    }
    /* or its etcd is too old for them */
    struct feed feed;
    feed_init(&feed, "/api/v1/pods", "a%3Db");
    assert_int_equal(line(&feed, "{\"type\":\"ERROR\",\"object\":{\"code\":500}}"), FEED_EXPIRED);
    assert_int_equal(feed_ended(&feed, 410, 0), 0);
    asks(&feed, LIST);
}

static void a_list_goes_by_pages_and_a_watch_from_its_version(void **state)
{
    (void)state;
    struct feed feed;
    feed_paged(&feed, "/api/v1/pods", "a%3Db");
    assert_true(feed_is_first_page(&feed));
    asks(&feed, LIST);
    assert_false(feed_page_took(&feed, json("{\"resourceVersion\":\"40\",\"continue\":\"x/y=\"}")));
    assert_false(feed_is_first_page(&feed));
    asks(&feed, LIST "&continue=x%2Fy%3D");
    assert_true(feed_page_took(&feed, json("{\"resourceVersion\":\"40\",\"continue\":\"\"}")));
    assert_int_equal(feed.state, FEED_WATCHES);
    asks(&feed, WATCH "40");
}

static void without_a_selector_all_is_asked_for(void **state)
{
    (void)state;
    struct feed feed;
    feed_paged(&feed, "/api/v1/nodes", "");
    asks(&feed, "/api/v1/nodes?limit=500");
}

static void each_event_moves_the_version(void **state)
{
    (void)state;
    struct feed feed;
    const struct doc *object;
    feed_watching(&feed, "40");
    assert_int_equal(feed_line(&feed,
                               json("{\"type\":\"ADDED\",\"object\":{\"metadata\":{"
                                    "\"resourceVersion\":\"41\",\"name\":\"p\"}}}"),
                               &object),
                     FEED_OBJECT);
    assert_string_equal(feed.version, "41");
    assert_non_null(doc_get(object, "metadata"));
    assert_int_equal(
        line(&feed,
             "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"resourceVersion\":\"42\"}}}"),
        FEED_OBJECT);
    assert_int_equal(
        line(&feed,
             "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"resourceVersion\":\"43\"}}}"),
        FEED_REMOVED);
    assert_int_equal(
        line(&feed,
             "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"90\"}}}"),
        FEED_NOTHING);
    asks(&feed, WATCH "90");
    /* it ended after its time: the next goes on from there, at once */
    assert_int_equal(feed_ended(&feed, 200, 0), 0);
    asks(&feed, WATCH "90");
}

static void what_has_expired_is_listed_again(void **state)
{
    (void)state;
    struct feed feed;
    /* as a status */
    feed_watching(&feed, "40");
    assert_int_equal(feed_ended(&feed, 410, 0), 0);
    assert_true(feed_is_first_page(&feed));
    asks(&feed, LIST);
    /* within the stream */
    feed_watching(&feed, "40");
    assert_int_equal(line(&feed, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                                 "\"reason\":\"Expired\"}}"),
                     FEED_EXPIRED);
    assert_int_equal(feed_ended(&feed, 200, 0), 0);
    asks(&feed, LIST);
    /* at a page that is not the first */
    feed_paged(&feed, "/api/v1/pods", "a%3Db");
    assert_false(feed_page_took(&feed, json("{\"resourceVersion\":\"40\",\"continue\":\"x\"}")));
    assert_int_equal(feed_ended(&feed, 410, 0), 0);
    assert_true(feed_is_first_page(&feed));
    asks(&feed, LIST);
}

/* kubernetes-client/java#1533: a server that always answers 410 was asked without a pause. */
static void a_server_that_always_expires_is_not_stormed(void **state)
{
    (void)state;
    struct feed feed;
    static const uint32_t pauses[] = {0, 800, 1600, 3200};
    feed_watching(&feed, "40");
    for (size_t i = 0; i < COUNT_OF(pauses); i++) {
        assert_int_equal(line(&feed, "{\"type\":\"ERROR\",\"object\":{\"code\":410}}"),
                         FEED_EXPIRED);
        assert_int_equal(feed_ended(&feed, 200, 0), pauses[i]);
        assert_true(feed_page_took(&feed, json("{\"resourceVersion\":\"40\"}")));
    }
    assert_int_equal(
        line(&feed,
             "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"41\"}}}"),
        FEED_NOTHING);
    assert_int_equal(feed_ended(&feed, 410, 0), 0);
}

/* A balancer cuts each watch while nothing happens: that is no failure after another. */
static void a_watch_that_has_lived_begins_the_pauses_anew(void **state)
{
    (void)state;
    struct feed feed;
    feed_watching(&feed, "40");
    assert_int_equal(feed_ended(&feed, 0, 0), 800);
    assert_false(feed_lived(&feed, FEED_LIVED_MS - 1));
    assert_int_equal(feed_ended(&feed, 0, 0), 1600);
    for (int i = 0; i < 3; i++) {
        assert_true(feed_lived(&feed, FEED_LIVED_MS));
        assert_int_equal(feed_ended(&feed, i % 2 ? 200 : 0, 0), 800);
    }
    /* a list that never ends is none */
    feed_init(&feed, "/api/v1/pods", "");
    assert_int_equal(feed_ended(&feed, 0, 0), 800);
    assert_false(feed_lived(&feed, FEED_LIVED_MS));
    assert_int_equal(feed_ended(&feed, 0, 0), 1600);
}

static void what_is_no_event_breaks_the_stream(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "{\"type\":\"ERROR\",\"object\":{\"code\":500}}",
        "{\"type\":\"ERROR\"}",
        "{\"type\":\"OTHER\",\"object\":{\"metadata\":{\"resourceVersion\":\"41\"}}}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}",
        "{\"type\":\"ADDED\",\"object\":3}",
        "{\"object\":{\"metadata\":{\"resourceVersion\":\"41\"}}}",
        "{}",
        "[]",
    };
    struct feed feed;
    feed_watching(&feed, "40");
    for (size_t i = 0; i < COUNT_OF(broken); i++)
        assert_int_equal(line(&feed, broken[i]), FEED_BROKEN);
    const char *long_version = arena_format(
        &arena, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"%0100d\"}}}",
        1);
    assert_int_equal(line(&feed, long_version), FEED_BROKEN);
    asks(&feed, WATCH "40");
    assert_int_equal(feed_ended(&feed, 0, 0), 800);
}

/* Nothing may have changed for hours: that is no failure, and changes nothing. */
static void a_silent_watch_goes_on_at_once(void **state)
{
    (void)state;
    struct feed feed;
    feed_watching(&feed, "40");
    for (size_t i = 0; i < 3; i++)
        assert_true(feed_was_silent(&feed));
    asks(&feed, WATCH "40");
    assert_int_equal(feed_ended(&feed, 0, 0), 800); /* the first failure */
    feed_init(&feed, "/api/v1/pods", "");
    assert_false(feed_was_silent(&feed)); /* its list was to come */
}

static void pauses_grow_until_something_comes(void **state)
{
    (void)state;
    static const uint32_t pauses[] = {800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
    struct feed feed;
    feed_watching(&feed, "40");
    for (size_t i = 0; i < COUNT_OF(pauses); i++)
        assert_int_equal(feed_ended(&feed, i % 2 ? 500 : 0, 0), pauses[i]);
    /* that it was opened does not count: nothing came */
    assert_int_equal(feed_ended(&feed, 200, 0), 30000);
    assert_int_equal(
        line(&feed,
             "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"41\"}}}"),
        FEED_NOTHING);
    assert_int_equal(feed_ended(&feed, 0, 0), 800);
    assert_int_equal(feed_backoff_ms(0, 5), 0);
    assert_in_range(feed_backoff_ms(1, UINT64_MAX), 800, 959);
}

static void a_page_without_a_version_is_asked_for_again(void **state)
{
    (void)state;
    struct feed feed;
    feed_paged(&feed, "/api/v1/pods", "a%3Db");
    const char *long_token =
        arena_format(&arena, "{\"continue\":\"%05000d\",\"resourceVersion\":\"%0100d\"}", 1, 1);
    assert_false(feed_page_took(&feed, json(long_token)));
    assert_true(feed_is_first_page(&feed));
}

/* Taken for the last page, it would say that all objects of the next ones have gone. */
static void a_page_whose_next_cannot_be_named_is_not_the_last(void **state)
{
    (void)state;
    struct feed feed;
    feed_paged(&feed, "/api/v1/pods", "a%3Db");
    const char *metadata =
        arena_format(&arena, "{\"continue\":\"%05000d\",\"resourceVersion\":\"9\"}", 1);
    assert_false(feed_page_took(&feed, json(metadata)));
    assert_int_equal(feed.state, FEED_LISTS);
    assert_true(feed_is_first_page(&feed));
}

static void a_refusal_is_told_in_the_servers_words(void **state)
{
    (void)state;
    struct feed feed;
    feed_watching(&feed, "40");
    struct text body = TEXT("{\"kind\":\"Status\",\"message\":\"pods is forbidden\"}");
    assert_string_equal(feed_refusal(&feed, 403, body, &arena),
                        "/api/v1/pods (watch) answers 403: pods is forbidden");
    feed_paged(&feed, "/api/v1/pods", "");
    assert_string_equal(feed_refusal(&feed, 502, TEXT("<html>"), &arena),
                        "/api/v1/pods answers 502");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_watch_that_has_lived_begins_the_pauses_anew),
    cmocka_unit_test(a_list_is_the_begin_of_a_watch),
    cmocka_unit_test(fields_select_as_labels_do),
    cmocka_unit_test(a_server_without_such_lists),
    cmocka_unit_test(a_list_goes_by_pages_and_a_watch_from_its_version),
    cmocka_unit_test(without_a_selector_all_is_asked_for),
    cmocka_unit_test(each_event_moves_the_version),
    cmocka_unit_test(what_has_expired_is_listed_again),
    cmocka_unit_test(a_server_that_always_expires_is_not_stormed),
    cmocka_unit_test(what_is_no_event_breaks_the_stream),
    cmocka_unit_test(a_silent_watch_goes_on_at_once),
    cmocka_unit_test(pauses_grow_until_something_comes),
    cmocka_unit_test(a_page_without_a_version_is_asked_for_again),
    cmocka_unit_test(a_page_whose_next_cannot_be_named_is_not_the_last),
    cmocka_unit_test(a_refusal_is_told_in_the_servers_words),
};

UNIT_FILE(tests, setup, teardown);
