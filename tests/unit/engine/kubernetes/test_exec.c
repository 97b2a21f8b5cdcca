/* Programs beside a task's own, from an API server and a node that the test plays. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/client.h"
#include "engine/kubernetes/state.h"
#include "played.h"
#include "played_node.h"
#include "sys/clock.h"
#include "sys/websocket.h"

#define STATUS "\x03"
#define EXEC   "GET /api/v1/namespaces/jobs/pods/skep-7/exec?container=task&"

enum {
    ATTEMPT = 7,
    OUTPUT = 1,           /* its channel */
    ALL_BYTES = 16 << 20, /* more than the kernel holds for one who reads nothing */
    MEMORY_MAX = 2 << 20, /* of one block, whatever goes through */
    BEHIND = 384 << 10,   /* bytes that the caller is behind all the time */
    STALL_MS = 200,       /* too short on a slow machine it only proves less */
    PING_MS = 20,
    WAIT_MS = PLAYED_LIMIT_S * 1000,
};

/* --- the largest block of memory that grew --- */

static size_t largest;

void *__real_mem_realloc(void *memory, size_t size);
void *__wrap_mem_realloc(void *memory, size_t size);
void *__wrap_mem_realloc(void *memory, size_t size)
{
    size_t known = __atomic_load_n(&largest, __ATOMIC_RELAXED);
    while (size > known && !__atomic_compare_exchange_n(&largest, &known, size, true,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    return __real_mem_realloc(memory, size);
}

/* --- pings --- */

static size_t pings;

void __real_websocket_ping(struct websocket *websocket);
void __wrap_websocket_ping(struct websocket *websocket);
void __wrap_websocket_ping(struct websocket *websocket)
{
    __atomic_fetch_add(&pings, 1, __ATOMIC_RELAXED);
    __real_websocket_ping(websocket);
}

/* --- a program --- */

struct world {
    struct played server;
    struct kube kube;
    struct node node;
    pthread_t opener;
    bool has_terminal;
    struct engine_exec *exec;
    int code;
    struct err err;
};

static void *open_run(void *context)
{
    static const char *const argv[] = {"sh", NULL}, *const begin[] = {"/skep/init", NULL};
    struct world *world = context;
    const struct engine_exec_request request = {.argv = argv,
                                                .has_terminal = world->has_terminal,
                                                .rows = 30,
                                                .columns = 100,
                                                .terminal = "xterm"};
    world->code = kube_exec_words(&world->kube, (struct attempt_id){ATTEMPT}, begin, &request,
                                  &world->exec, &world->err);
    return NULL;
}

static void world_make(struct world *world, bool has_terminal, int ping_ms)
{
    const int small = 64 << 10;
    struct kube *kube = &world->kube;
    memset(world, 0, sizeof *world);
    world->has_terminal = has_terminal;
    assert_int_equal(played_open(&world->server, 8), 0);
    kube->access = world->server.access;
    kube->settings.space = "jobs";
    kube->settings.instance = "skep";
    kube->ping_ms = ping_ms;
    clock_condition_init(&kube->synced);
    kube_task_add(kube, (struct attempt_id){ATTEMPT}, "n1")->state = TASK_RUNS;
    assert_int_equal(kube_client_new(&kube->access, UNWATCHED, &kube->client, NULL), 0);
    assert_int_equal(pthread_create(&world->opener, NULL, open_run, world), 0);
    node_answer(&world->server, EXEC, "v5.channel.k8s.io", &world->node);
    assert_int_equal(setsockopt(world->node.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    pthread_join(world->opener, NULL);
    if (world->code < 0)
        fail_msg("%s", world->err.text);
    __atomic_store_n(&largest, 0, __ATOMIC_RELAXED);
}

static void world_open(struct world *world, bool has_terminal)
{
    world_make(world, has_terminal, KUBE_PING_MS);
}

static void world_end(struct world *world)
{
    world->exec->ops->free(world->exec);
    kube_client_free(world->kube.client);
    tasks_free(&world->kube);
    pthread_cond_destroy(&world->kube.synced);
    played_close(&world->server);
}

/* The program ends with 7, which the caller hears. */
static void world_close(struct world *world)
{
    struct engine_exec *exec = world->exec;
    struct pollfd wait = {.fd = exec->end, .events = POLLIN};
    struct engine_exec_end end;
    char byte;
    NODE_SAY(&world->node, STATUS "{\"status\":\"Failure\",\"details\":{\"causes\":[{"
                                  "\"reason\":\"ExitCode\",\"message\":\"7\"}]}}");
    node_close(&world->node);
    assert_int_equal(poll(&wait, 1, WAIT_MS), 1);
    assert_true(exec->ops->ended(exec, &end));
    assert_int_equal(end.code, 7);
    assert_false(end.is_lost);
    assert_int_equal(recv(exec->output, &byte, 1, 0), 0);
    world_end(world);
}

/* Until the node can say no more, as nobody takes it. */
static size_t stall(struct world *world)
{
    struct node *node = &world->node;
    size_t said = 0;
    for (int ready = 1; ready == 1 && said < ALL_BYTES;) {
        struct pollfd wait = {.fd = node->fd, .events = POLLOUT};
        said = node_flood(node, OUTPUT, said, ALL_BYTES);
        ready = poll(&wait, 1, STALL_MS);
    }
    assert_true(said < ALL_BYTES);
    return said;
}

/* All of it; the caller is never less behind than that while there is more to come. */
static void flood(struct world *world, size_t said, size_t behind)
{
    struct node *node = &world->node;
    size_t heard = 0;
    while (heard < ALL_BYTES) {
        const bool says = said < ALL_BYTES || websocket_is_behind(node->websocket);
        const bool takes = !says || said - heard >= behind;
        struct pollfd waits[] = {{.fd = takes ? world->exec->output : -1, .events = POLLIN},
                                 {.fd = node->fd, .events = says ? POLLIN | POLLOUT : POLLIN}};
        assert_true(poll(waits, COUNT_OF(waits), WAIT_MS) > 0);
        said = node_flood(node, OUTPUT, said, ALL_BYTES);
        if (takes)
            heard = flood_take(world->exec->output, heard);
    }
    assert_true(__atomic_load_n(&largest, __ATOMIC_RELAXED) < MEMORY_MAX);
}

/* --- tests --- */

static void a_caller_who_is_always_a_little_behind(void **state)
{
    struct world world;
    (void)state;
    world_open(&world, true);
    flood(&world, 0, BEHIND);
    world_close(&world);
}

static void a_caller_who_takes_nothing_holds_up_the_program(void **state)
{
    struct world world;
    (void)state;
    world_open(&world, false);
    flood(&world, stall(&world), 0);
    world_close(&world);
}

/* As when somebody types ^C because too much is shown. */
static void what_is_typed_gets_through_while_nothing_is_taken(void **state)
{
    struct world world;
    (void)state;
    world_open(&world, true);
    const size_t said = stall(&world);
    say(world.exec->input, "\x03");
    node_hear(&world.node, 1);
    assert_string_equal(buf_cstr(&world.node.bytes), "\x03");
    flood(&world, said, 0);
    world_close(&world);
}

/* A balancer cuts a shell to which nothing is typed. */
static void a_connection_on_which_nothing_moves_is_pinged(void **state)
{
    struct world world;
    (void)state;
    __atomic_store_n(&pings, 0, __ATOMIC_RELAXED);
    world_make(&world, true, PING_MS);
    while (__atomic_load_n(&pings, __ATOMIC_RELAXED) < 3) {
        struct pollfd wait = {.fd = world.node.fd, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, WAIT_MS), 1); /* they come */
        assert_true(websocket_work(world.node.websocket));
    }
    world_close(&world);
}

/* Nobody knows whether the program was killed, or whether it runs. */
static void a_connection_that_is_lost_is_no_end_of_the_program(void **state)
{
    struct world world;
    struct engine_exec_end end;
    (void)state;
    world_open(&world, false);
    struct pollfd wait = {.fd = world.exec->end, .events = POLLIN};
    NODE_SAY(&world.node, "\x01half");
    node_close(&world.node);
    assert_int_equal(poll(&wait, 1, WAIT_MS), 1);
    assert_true(world.exec->ops->ended(world.exec, &end));
    assert_true(end.is_lost && !end.is_task_ended);
    assert_int_equal(end.code, 255);
    /* unless its task has ended as well */
    pthread_mutex_lock(&world.kube.lock);
    kube_task_find(&world.kube, (struct attempt_id){ATTEMPT})->is_kill_wanted = true;
    pthread_mutex_unlock(&world.kube.lock);
    assert_true(world.exec->ops->ended(world.exec, &end));
    assert_true(end.is_task_ended && !end.is_lost);
    world_end(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_connection_on_which_nothing_moves_is_pinged),
    cmocka_unit_test(a_connection_that_is_lost_is_no_end_of_the_program),
    cmocka_unit_test(a_caller_who_is_always_a_little_behind),
    cmocka_unit_test(a_caller_who_takes_nothing_holds_up_the_program),
    cmocka_unit_test(what_is_typed_gets_through_while_nothing_is_taken),
};

UNIT_FILE(tests, NULL, NULL);
