/* Readers of the cluster's state share copies, also when their clients break off: the API over real
 * sockets, with a server behind it that answers when the test says so. */
#include "unit.h"
#include "world.h"

#include <arpa/inet.h>
#include <assert.h>
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "hived/auto.h"
#include "hived/hived.h"

enum { COPY_BYTES = 1 << 20, CLIENTS = 100, ROUNDS = 4, GROWTH_MAX = 16 * COPY_BYTES };

/* The core thread: it answers, with `code`, while it is open. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    pthread_t thread;
    struct service_snapshot *asked;
    struct service_reply reply;
    unsigned asked_count, begun; /* copies; requests that are looking for one */
    int code;
    uint64_t version;
    bool refuse, is_open, is_ending,
        is_still;              /* still: nothing changes, or each time it is asked */
    bool is_making;            /* the first cells */
    const struct hived *cells; /* that are shown, or NULL */
    unsigned made, given;      /* copies of them; those that came back, to be brought up to date */
} core = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static int on_snapshot(void *context, struct service_snapshot *snapshot, struct service_reply reply,
                       struct err *err)
{
    (void)context;
    pthread_mutex_lock(&core.lock);
    if (core.refuse) {
        pthread_mutex_unlock(&core.lock);
        return err_fail(err, ERR_BUSY, "", "refused by the test");
    }
    assert(!core.asked); /* one copy at a time */
    core.asked = snapshot;
    core.reply = reply;
    core.asked_count++;
    pthread_cond_broadcast(&core.moved);
    pthread_mutex_unlock(&core.lock);
    return 0;
}

/* Every request for the cluster's state asks this first. */
static uint64_t on_version(void *context)
{
    (void)context;
    pthread_mutex_lock(&core.lock);
    core.begun++;
    pthread_cond_broadcast(&core.moved);
    core.version += !core.is_still;
    const uint64_t version = core.version;
    pthread_mutex_unlock(&core.lock);
    return version;
}

static uint64_t counter_version(void)
{
    pthread_mutex_lock(&core.lock);
    const uint64_t version = core.version;
    pthread_mutex_unlock(&core.lock);
    return version;
}

/* The copies are stale at once: they have cost nothing, and the cluster changes. */
static void *core_run(void *context)
{
    (void)context;
    pthread_mutex_lock(&core.lock);
    while (!core.is_ending) {
        if (!core.is_open || !core.asked) {
            pthread_cond_wait(&core.moved, &core.lock);
            continue;
        }
        struct service_snapshot *snapshot = core.asked;
        struct service_reply reply = core.reply;
        struct service_answer answer = {.code = core.code, .path = "", .text = "said the test"};
        const bool is_making = core.is_making;
        struct hived *hived = snapshot->hived;
        core.given += hived != NULL;
        if (core.cells && !hived) {
            core.made++;
            hived = hived_copy(core.cells);
        }
        core.asked = NULL;
        mem_free(snapshot->nodes);
        pthread_mutex_unlock(&core.lock);
        *snapshot = (struct service_snapshot){
            .hived = hived, .nodes = mem_alloc(COPY_BYTES), .is_making = is_making};
        snapshot->version = counter_version();
        memset(snapshot->nodes, 0, COPY_BYTES);
        reply.done(reply.context, &answer);
        pthread_mutex_lock(&core.lock);
    }
    pthread_mutex_unlock(&core.lock);
    return NULL;
}

static unsigned counter_read(const unsigned *counter)
{
    pthread_mutex_lock(&core.lock);
    unsigned count = *counter;
    pthread_mutex_unlock(&core.lock);
    return count;
}

static void core_refuse(bool is_refusing)
{
    pthread_mutex_lock(&core.lock);
    core.refuse = is_refusing;
    pthread_mutex_unlock(&core.lock);
}

static void core_set(bool is_open, int code)
{
    pthread_mutex_lock(&core.lock);
    core.is_open = is_open;
    core.code = code;
    pthread_cond_broadcast(&core.moved);
    pthread_mutex_unlock(&core.lock);
}

struct served {
    struct world *world;
    struct api *api;
    const char *token;
};

static int setup(void **state)
{
    static struct served served;
    struct err err;
    served.world = world_new();
    served.token = world_login(served.world, "alice");
    served.world->service.snapshot = on_snapshot;
    served.world->service.snapshot_version = on_version;
    struct api_config config = {
        .listen = "127.0.0.1:0", .threads = 1, .service = &served.world->service};
    int failed = api_start(&config, &served.api, &err);
    assert_int_equal(failed, 0);
    core.is_ending = false;
    failed = pthread_create(&core.thread, NULL, core_run, NULL);
    assert_int_equal(failed, 0);
    *state = &served;
    return 0;
}

static int teardown(void **state)
{
    struct served *served = *state;
    pthread_mutex_lock(&core.lock);
    core.is_ending = true;
    pthread_cond_broadcast(&core.moved);
    pthread_mutex_unlock(&core.lock);
    pthread_join(core.thread, NULL);
    api_stop(served->api);
    world_free(served->world);
    return 0;
}

/* `connection`: what is to become of it after the reply. */
static int client_ask_by(const struct served *served, const char *path, const char *connection)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(api_port(served->api)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    struct buf request = BUF_INIT;
    buf_format(&request,
               "GET %s HTTP/1.1\r\nHost: x\r\nConnection: %s\r\n"
               "Authorization: Bearer %s\r\n\r\n",
               path, connection, served->token);
    assert_int_equal(send(fd, request.at, request.length, MSG_NOSIGNAL), request.length);
    buf_release(&request);
    return fd;
}

static int client_ask(const struct served *served, const char *path)
{
    return client_ask_by(served, path, "close");
}

static void client_reset(int fd)
{
    struct linger at_once = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

static int client_status(int fd)
{
    char reply[4096] = "";
    size_t length = 0;
    ssize_t got;
    int status = 0;
    while (length < sizeof reply - 1 &&
           (got = recv(fd, reply + length, sizeof reply - 1 - length, 0)) > 0)
        length += (size_t)got;
    close(fd);
    return sscanf(reply, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

#define PHYSICAL "/v1/inspect/clusterstatus/physicalcluster"

/* Clients whose requests wait for one copy. The only thread of the server that begins a request
 * handles it before it answers another. */
static void clients_ask(const struct served *served, int *clients, unsigned count)
{
    unsigned begun = counter_read(&core.begun);
    for (unsigned i = 0; i < count; i++)
        clients[i] = client_ask(served, PHYSICAL);
    pthread_mutex_lock(&core.lock);
    while (core.begun < begun + count)
        pthread_cond_wait(&core.moved, &core.lock);
    pthread_mutex_unlock(&core.lock);
    assert_int_equal(client_status(client_ask(served, "/livez")), 200);
}

static void connections_end(const struct served *served)
{
    struct http_server_counts counts;
    do {
        http_server_count(served->api->http, &counts);
    } while (counts.connections);
}

/* The only thread of the server has closed what is counted no more before it answers another
 * request; that one's connection is left, to be closed. */
static int connections_close(const struct served *served)
{
    connections_end(served);
    const int fd = client_ask_by(served, "/livez", "keep-alive");
    assert_true(recv(fd, &(char){0}, 1, 0) == 1);
    return fd;
}

static size_t bytes_used(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static unsigned descriptors_used(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void told(const struct served *served, const char *status, const char *text)
{
    char reply[4096] = "";
    size_t length = 0;
    ssize_t got;
    int fd = client_ask(served, PHYSICAL);
    while ((got = recv(fd, reply + length, sizeof reply - 1 - length, 0)) > 0)
        length += (size_t)got;
    close(fd);
    assert_non_null(strstr(reply, status));
    assert_non_null(strstr(reply, text));
}

/* Whoever waits for a copy that cannot be made is told why. */
static void test_failure_is_told(void **state)
{
    const struct served *served = *state;
    core_set(true, ERR_UNAVAILABLE);
    told(served, "HTTP/1.1 503", "said the test");
    connections_end(served);
    core_set(true, 0);
}

static void set_making(bool is_making)
{
    pthread_mutex_lock(&core.lock);
    core.is_making = is_making;
    pthread_mutex_unlock(&core.lock);
}

/* There are none under another policy, and none yet. */
static void test_why_there_are_no_cells(void **state)
{
    const struct served *served = *state;
    core_set(true, 0);
    told(served, "HTTP/1.1 400", "scheduling.policy is not hived");
    set_making(true);
    told(served, "HTTP/1.1 503", "the cells of the nodes are being made: ask again");
    set_making(false);
    told(served, "HTTP/1.1 400", "scheduling.policy is not hived");
}

/* Every client breaks off while the copy is under way. */
static void test_clients_break_off(void **state)
{
    const struct served *served = *state;
    core_set(true, 0);
    assert_int_equal(client_status(client_ask(served, PHYSICAL)), 400); /* no cells to show */
    int last = connections_close(served);
    size_t bytes = bytes_used();
    unsigned descriptors = descriptors_used();
    close(last);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned asked = counter_read(&core.asked_count);
        int clients[CLIENTS];
        core_set(false, 0);
        clients_ask(served, clients, CLIENTS);
        for (unsigned i = 0; i < CLIENTS; i++)
            client_reset(clients[i]);
        core_set(true, 0);
        connections_end(served);
        assert_int_equal(counter_read(&core.asked_count) - asked, 1);
    }
    last = connections_close(served);
    assert_true(bytes_used() < bytes + GROWTH_MAX);
    assert_int_equal(descriptors_used(), descriptors);
    close(last);
}

/* All that wait get what the one copy shows, or why there is none. */
static void test_shared(void **state)
{
    static const struct {
        int code, status;
    } CASES[] = {{0, 400}, {ERR_UNAVAILABLE, 503}, {0, 400}};
    const struct served *served = *state;
    for (size_t k = 0; k < COUNT_OF(CASES); k++) {
        int clients[8];
        unsigned asked = counter_read(&core.asked_count);
        core_set(false, 0);
        clients_ask(served, clients, COUNT_OF(clients));
        core_set(true, CASES[k].code);
        for (size_t i = 0; i < COUNT_OF(clients); i++)
            assert_int_equal(client_status(clients[i]), CASES[k].status);
        assert_int_equal(counter_read(&core.asked_count) - asked, 1);
    }
    core_refuse(true);
    assert_int_equal(client_status(client_ask(served, PHYSICAL)), 429);
    core_refuse(false);
    assert_int_equal(client_status(client_ask(served, PHYSICAL)), 400);
}

static void set_cells(const struct hived *cells)
{
    pthread_mutex_lock(&core.lock);
    core.cells = cells;
    core.made = core.given = 0;
    pthread_mutex_unlock(&core.lock);
}

/* What nobody reads any more is given with the next question, also when one has failed. */
static void test_cells_are_used_again(void **state)
{
    const struct served *served = *state;
    struct node_facts node = {.name = "n", .cpu = 4, .memory_mib = 4096, .is_healthy = true};
    struct hived_maker *maker = hived_maker_new(1, 1);
    hived_maker_add(maker, &node, NULL);
    struct hived *hived = hived_new(hived_maker_finish(maker));
    set_cells(hived);
    core_set(true, 0);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(client_status(client_ask(served, PHYSICAL)), 200);
        assert_int_equal(counter_read(&core.made), i < 2 ? i + 1 : 2); /* one is read meanwhile */
        assert_int_equal(counter_read(&core.given), i < 2 ? 0 : i - 1);
    }
    core_set(true, ERR_UNAVAILABLE);
    assert_int_equal(client_status(client_ask(served, PHYSICAL)), 503);
    core_set(true, 0);
    core_refuse(true);
    assert_int_equal(client_status(client_ask(served, PHYSICAL)), 429);
    core_refuse(false);
    assert_int_equal(client_status(client_ask(served, PHYSICAL)), 200);
    assert_int_equal(counter_read(&core.made), 2);
    assert_int_equal(counter_read(&core.given), 5);
    set_cells(NULL);
    hived_free(hived);
}

static void set_still(bool is_still)
{
    pthread_mutex_lock(&core.lock);
    core.is_still = is_still;
    pthread_mutex_unlock(&core.lock);
}

/* Of a cluster that does not change one copy serves everybody. */
static void test_what_has_not_changed_needs_no_other_copy(void **state)
{
    const struct served *served = *state;
    core_set(true, 0);
    set_still(true);
    assert_int_equal(client_status(client_ask(served, PHYSICAL)), 400);
    const unsigned asked = counter_read(&core.asked_count);
    for (int i = 0; i < 3; i++)
        assert_int_equal(client_status(client_ask(served, PHYSICAL)), 400);
    assert_int_equal(counter_read(&core.asked_count), asked);
    set_still(false);
    assert_int_equal(client_status(client_ask(served, PHYSICAL)), 400);
    assert_int_equal(counter_read(&core.asked_count), asked + 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_what_has_not_changed_needs_no_other_copy, setup, teardown),
    cmocka_unit_test_setup_teardown(test_failure_is_told, setup, teardown),
    cmocka_unit_test_setup_teardown(test_why_there_are_no_cells, setup, teardown),
    cmocka_unit_test_setup_teardown(test_cells_are_used_again, setup, teardown),
    cmocka_unit_test_setup_teardown(test_clients_break_off, setup, teardown),
    cmocka_unit_test_setup_teardown(test_shared, setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
