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

static void world_open(struct world *world, bool has_terminal)
{
    const int small = 64 << 10;
    struct kube *kube = &world->kube;
    memset(world, 0, sizeof *world);
    world->has_terminal = has_terminal;
    assert_int_equal(played_open(&world->server, 8), 0);
    kube->access = world->server.access;
    kube->settings.space = "jobs";
    kube->settings.instance = "skep";
    assert_int_equal(kube_client_new(&kube->access, UNWATCHED, &kube->client, NULL), 0);
    assert_int_equal(pthread_create(&world->opener, NULL, open_run, world), 0);
    node_answer(&world->server, EXEC, "v5.channel.k8s.io", &world->node);
    assert_int_equal(setsockopt(world->node.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    pthread_join(world->opener, NULL);
    if (world->code < 0)
        fail_msg("%s", world->err.text);
    __atomic_store_n(&largest, 0, __ATOMIC_RELAXED);
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
    assert_int_equal(recv(exec->output, &byte, 1, 0), 0);
    exec->ops->free(exec);
    kube_client_free(world->kube.client);
    played_close(&world->server);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_caller_who_is_always_a_little_behind),
    cmocka_unit_test(a_caller_who_takes_nothing_holds_up_the_program),
    cmocka_unit_test(what_is_typed_gets_through_while_nothing_is_taken),
};

UNIT_FILE(tests, NULL, NULL);
