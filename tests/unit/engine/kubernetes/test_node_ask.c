/* What nodes use, from a resource metrics API that the test plays. */
#include "unit.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/utc.h"
#include "engine/kubernetes/state.h"
#include "played.h"
#include "sys/clock.h"

enum { AGAIN_MS = 10, ANSWER_MAX = 2048 };

struct world {
    struct played server;
    struct kube kube;
    atomic_int failed, answered; /* as the API server's own trouble is counted */
};

static void failed_count(void *context, const char *trouble, int64_t for_ms)
{
    (void)trouble, (void)for_ms;
    ((struct world *)context)->failed++;
}

static void answered_count(void *context)
{
    ((struct world *)context)->answered++;
}

static void node_add(struct kube *kube, const char *name)
{
    nodes_hold(kube, name); /* by which it is known */
    kube_node_find(kube, name)->is_there = true;
}

static void world_open(struct world *world)
{
    struct kube *kube = &world->kube;
    *world = (struct world){.kube = {.lock = PTHREAD_MUTEX_INITIALIZER}};
    assert_int_equal(played_open(&world->server, 8), 0);
    feed_init(&kube->follows[FOLLOW_NODES].feed, "/api/v1/nodes", "skep%3Dyes");
    kube->follows[FOLLOW_NODES].is_synced = true;
    kube->metrics.again_ms = AGAIN_MS;
    node_add(kube, "n1");
    node_add(kube, "n2");
    const struct kube_watcher watcher = {world, failed_count, answered_count};
    assert_int_equal(kube_client_new(&world->server.access, watcher, &kube->client, NULL), 0);
    kube_metrics_start(kube);
}

static void world_close(struct world *world)
{
    kube_client_free(world->kube.client);
    kube_metrics_release(&world->kube);
    nodes_free(&world->kube);
    pthread_mutex_destroy(&world->kube.lock);
    played_close(&world->server);
}

/* Whoever has heard enough hangs up before the end. */
static void say(int fd, const char *text)
{
    for (size_t length = strlen(text); length > 0;) {
        const ssize_t said = send(fd, text, length, MSG_NOSIGNAL);
        if (said < 0)
            return;
        text += said;
        length -= (size_t)said;
    }
}

/* The next request, which has these words, is answered; `more` bytes of it never come. */
static void answer(const struct world *world, const char *words, const char *status,
                   const char *body, size_t more)
{
    char request[PLAYED_REQUEST_MAX], head[256];
    const int fd = played_take(&world->server, "\r\n\r\n", request);
    if (!strstr(request, words))
        fail_msg("not \"%s\": %s", words, request);
    snprintf(head, sizeof head,
             "HTTP/1.1 %s\r\nConnection: close\r\nRetry-After: 300\r\nContent-Length: %zu\r\n\r\n",
             status, strlen(body) + more);
    say(fd, head);
    say(fd, body);
    close(fd);
}

/* A list of one node, of now. */
static const char *list_of(const char *name, int cpu, const char *next, char text[ANSWER_MAX])
{
    char instant[UTC_SIZE];
    snprintf(text, ANSWER_MAX,
             "{\"kind\":\"NodeMetricsList\",\"metadata\":{\"continue\":\"%s\"},\"items\":[{"
             "\"metadata\":{\"name\":\"%s\"},\"timestamp\":\"%s\",\"window\":\"15s\",\"usage\":{"
             "\"cpu\":\"%d\",\"memory\":\"%dMi\"}},{\"metadata\":{\"name\":\"other\"}}]}",
             next, name, utc_instant(clock_unix_ms(), instant), cpu, cpu);
    return text;
}

static struct engine_stats stats_of(struct world *world, const char *name)
{
    struct engine_stats stats;
    assert_int_equal(kube_node_stats(&world->kube.engine, name, &stats, NULL), 0);
    assert_true(stats.has_no_disk && !stats.has_only_gpus && stats.gpu_count == 0);
    return stats;
}

#define LIST "GET /apis/metrics.k8s.io/v1beta1/nodes?labelSelector=skep%3Dyes&limit=500"

static void all_nodes_are_one_list_and_its_pages(void **state)
{
    struct world world;
    struct engine_stats stats;
    struct err err;
    char text[ANSWER_MAX];
    (void)state;
    world_open(&world);
    assert_int_equal(kube_node_stats(&world.kube.engine, "n1", &stats, &err), ERR_NOT_FOUND);
    answer(&world, LIST " ", "200 OK", list_of("n1", 1000, "a/b", text), 0);
    answer(&world, LIST "&continue=a%2Fb ", "200 OK", list_of("n2", 2, "", text), 0);
    answer(&world, LIST " ", "200 OK", list_of("n2", 2, "", text), 0); /* the next list */
    answer(&world, LIST " ", "200 OK", list_of("n2", 2, "", text), 0);
    assert_int_equal(stats_of(&world, "n1").memory_bytes, 1000 << 20);
    const uint64_t before = stats_of(&world, "n1").cpu_ns;
    const int64_t before_ms = clock_monotonic_ms();
    answer(&world, LIST " ", "200 OK", list_of("n2", 2, "", text), 0);
    while (clock_monotonic_ms() == before_ms)
        sched_yield();
    assert_true(stats_of(&world, "n1").cpu_ns > before);
    assert_int_equal(stats_of(&world, "n2").memory_bytes, 2 << 20);
    assert_int_equal(kube_node_stats(&world.kube.engine, "other", &stats, &err), ERR_NOT_FOUND);
    kube_node_find(&world.kube, "n2")->is_there = false;
    assert_int_equal(kube_node_stats(&world.kube.engine, "n2", &stats, &err), ERR_NOT_FOUND);
    world_close(&world);
    assert_int_equal(world.kube.metrics.failures, 0);
}

static char large[4 << 20]; /* and nothing but one object */

/* None of these is taken for trouble of the API server, or holds it back, and each passes. */
static void a_list_that_does_not_come_is_asked_for_again(void **state)
{
    static const struct {
        const char *status, *body;
        size_t more;
        int said;
    } CASES[] = {
        {"404 Not Found", "404 page not found\n", 0, 404},
        {"403 Forbidden", "{\"message\":\"nodes.metrics.k8s.io is forbidden\"}", 0, 403},
        {"401 Unauthorized", "{\"message\":\"Unauthorized\"}", 0, 401},
        {"429 Too Many Requests", "", 0, 429},
        {"500 Internal Server Error", "{}", 0, 500},
        {"503 Service Unavailable", "service unavailable\n", 0, 503},
        {"200 OK", "{\"metadata\":{},\"items\":[", 100, 0},
        {"200 OK", "{\"metadata\":{},\"items\":[]", 0, 200},
        {"200 OK", "{\"metadata\":{},\"items\":[{}]}", 0, 0},
        {"200 OK", "{\"metadata\":{7},\"items\":[]}", 0, 200},
        {"200 OK", "<html>sign in first</html>", 0, 0},
        {"200 OK", large, 0, 0},
    };
    (void)state;
    memset(large, 'x', sizeof large - 1);
    memcpy(large, "{\"items\":[{\"", 12);
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct world world;
        char text[ANSWER_MAX], request[PLAYED_REQUEST_MAX];
        world_open(&world);
        answer(&world, LIST " ", "200 OK", list_of("n1", 7, "", text), 0);
        for (int again = 0; again < 3; again++)
            answer(&world, LIST " ", CASES[i].status, CASES[i].body, CASES[i].more);
        const int fd = played_take(&world.server, "\r\n\r\n", request);
        assert_int_equal(stats_of(&world, "n1").memory_bytes, 7 << 20); /* what was known stays */
        world_close(&world);
        close(fd);
        assert_int_equal(world.kube.metrics.failures, 3);
        if (world.kube.metrics.said_status != CASES[i].said)
            fail_msg("%s: %d", CASES[i].body, world.kube.metrics.said_status);
        assert_int_equal(world.failed + world.answered, 0);
    }
}

static void it_is_told_again_after_failures(void **state)
{
    struct world world;
    char text[ANSWER_MAX], request[PLAYED_REQUEST_MAX];
    (void)state;
    world_open(&world);
    answer(&world, LIST " ", "503 Service Unavailable", "", 0);
    answer(&world, LIST " ", "404 Not Found", "", 0);
    answer(&world, LIST " ", "200 OK", list_of("n1", 7, "", text), 0);
    const int fd = played_take(&world.server, "\r\n\r\n", request);
    assert_int_equal(stats_of(&world, "n1").memory_bytes, 7 << 20);
    world_close(&world);
    close(fd);
    assert_int_equal(world.kube.metrics.failures, 0);
    assert_int_equal(world.kube.metrics.said_status, -1);
}

/* A list whose pages do not end, or cannot be asked for. */
static void pages_without_end_are_a_failure(void **state)
{
    struct world world;
    char text[ANSWER_MAX], request[PLAYED_REQUEST_MAX];
    static char next[FEED_CONTINUE_MAX + 1], page[FEED_CONTINUE_MAX + 100];
    (void)state;
    world_open(&world);
    memset(next, 'x', sizeof next - 1);
    snprintf(page, sizeof page, "{\"metadata\":{\"continue\":\"%s\"},\"items\":[]}", next);
    answer(&world, LIST " ", "200 OK", page, 0);
    for (int i = 0; i < KUBE_METRICS_PAGES_MAX; i++)
        answer(&world, LIST, "200 OK", list_of("n1", 7, "a", text), 0);
    const int fd = played_take(&world.server, LIST " ", request);
    world_close(&world);
    close(fd);
    assert_int_equal(world.kube.metrics.failures, 2);
}

static void a_node_of_which_nothing_is_understood_is_counted(void **state)
{
    struct world world;
    char request[PLAYED_REQUEST_MAX];
    (void)state;
    world_open(&world);
    answer(&world, LIST " ", "200 OK",
           "{\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"n1\"},\"usage\":{}}]}", 0);
    const int fd = played_take(&world.server, LIST " ", request);
    world_close(&world);
    close(fd);
    assert_int_equal(world.kube.metrics.failures, 0);
    assert_true(world.kube.metrics.is_untold_said);
}

/* The API server is back: what failed with it is asked for at the next look. */
static void what_has_failed_is_hurried(void **state)
{
    struct kube kube = {.metrics = {.due_ms = 9}};
    (void)state;
    kube_metrics_hurry(&kube);
    assert_int_equal(kube.metrics.due_ms, 9);
    kube.metrics.failures = 1;
    kube_metrics_hurry(&kube);
    assert_int_equal(kube.metrics.due_ms, 0);
    kube.metrics.due_ms = INT64_MAX; /* it is being asked */
    kube_metrics_hurry(&kube);
    assert_int_equal(kube.metrics.due_ms, INT64_MAX);
}

static void nobody_is_asked_where_that_is_off(void **state)
{
    struct kube kube = {.metrics = {.is_off = true}};
    struct engine_stats stats;
    struct err err;
    static const struct engine_ops ops = {.name = "kubernetes"};
    (void)state;
    kube.engine.ops = &ops;
    kube_metrics_start(&kube); /* there is no client to ask by */
    assert_int_equal(kube_node_stats(&kube.engine, "n1", &stats, &err), ERR_UNSUPPORTED);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_nodes_are_one_list_and_its_pages),
    cmocka_unit_test(a_list_that_does_not_come_is_asked_for_again),
    cmocka_unit_test(it_is_told_again_after_failures),
    cmocka_unit_test(pages_without_end_are_a_failure),
    cmocka_unit_test(a_node_of_which_nothing_is_understood_is_counted),
    cmocka_unit_test(what_has_failed_is_hurried),
    cmocka_unit_test(nobody_is_asked_where_that_is_off),
};

UNIT_FILE(tests, NULL, NULL);
