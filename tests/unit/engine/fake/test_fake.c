/* The fake engine: the life of a container, each fault, virtual and real time.
 *
 * Covers: src/engine/fake/life.c */
#include "unit.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/fake/fake.h"

struct heard {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t count;
    struct {
        enum engine_event_kind kind;
        uint64_t attempt;
        struct exit_report exit;
        char node[64], tail[64], reason[64];
        uint16_t numa[8], switches[8]; /* of the GPUs; 0 when not known */
    } events[64];
};

static void hear(void *context, const struct engine_event *event)
{
    struct heard *heard = context;
    pthread_mutex_lock(&heard->lock);
    assert_true(heard->count < COUNT_OF(heard->events));
    heard->events[heard->count].kind = event->kind;
    heard->events[heard->count].attempt = event->attempt.v;
    if (event->kind == ENGINE_REFUSED)
        snprintf(heard->events[heard->count].reason, 64, "%s", event->reason);
    if (event->runs_on)
        snprintf(heard->events[heard->count].node, 64, "%s", event->runs_on);
    if (event->exit) {
        heard->events[heard->count].exit = *event->exit;
        snprintf(heard->events[heard->count].tail, 64, "%.*s", TEXT_ARG(event->exit->log_tail));
        snprintf(heard->events[heard->count].reason, 64, "%s", event->exit->reason);
    }
    if (event->node) {
        snprintf(heard->events[heard->count].node, 64, "%s", event->node->name);
        const struct node_facts *node = event->node;
        for (uint32_t i = 0; i < node->gpu_count; i++) {
            heard->events[heard->count].numa[i] = node->gpu_numa ? node->gpu_numa[i] : 0;
            heard->events[heard->count].switches[i] = node->gpu_switch ? node->gpu_switch[i] : 0;
        }
    }
    heard->count++;
    pthread_cond_signal(&heard->changed);
    pthread_mutex_unlock(&heard->lock);
}

static struct heard heard;

static struct engine *engine_make(const struct engine_fake_rule *rules, size_t count,
                                  bool is_virtual)
{
    heard = (struct heard){0};
    pthread_mutex_init(&heard.lock, NULL);
    pthread_cond_init(&heard.changed, NULL);
    struct engine_fake_config config = {
        .node_count = 2,
        .cpu = 4,
        .memory_mib = 1000,
        .gpu_count = 2,
        .create_ms = 5,
        .start_ms = 10,
        .run_ms = 100,
        .is_time_virtual = is_virtual,
        .rules = rules,
        .rule_count = count,
    };
    struct engine_sink sink = {.context = &heard, .post = hear};
    struct engine *engine;
    assert_int_equal(engine_fake_new(&config, &sink, &engine, NULL), 0);
    return engine;
}

static int create(struct engine *engine, uint64_t attempt, const char *job, uint32_t index)
{
    struct container container = {
        .attempt = {attempt},
        .job = job,
        .role = "worker",
        .index = index,
        .node = "fake0",
    };
    return engine->ops->create(engine, &container, NULL);
}

static void test_life(void **state)
{
    (void)state;
    struct engine *engine = engine_make(NULL, 0, true);
    engine_fake_advance(engine, 0);
    assert_int_equal(heard.count, 2);
    assert_int_equal(heard.events[1].kind, ENGINE_NODE);
    assert_string_equal(heard.events[1].node, "fake1");
    assert_int_equal(create(engine, 7, "alice~x", 0), 0);
    assert_int_equal(create(engine, 7, "alice~x", 0), 0); /* repeating is harmless */
    assert_int_equal(engine_fake_container_count(engine), 1);
    assert_int_equal(engine_fake_next_ms(engine), 5);
    engine_fake_advance(engine, 14);
    assert_int_equal(heard.count, 3);
    assert_int_equal(heard.events[2].kind, ENGINE_PREPARING);
    engine_fake_advance(engine, 15);
    assert_int_equal(heard.events[3].kind, ENGINE_STARTED);
    assert_int_equal(heard.events[3].attempt, 7);
    struct engine_stats stats;
    assert_int_equal(engine->ops->stats(engine, (struct attempt_id){7}, &stats, NULL), 0);
    assert_int_equal(stats.pids, 1);
    assert_int_equal(engine->ops->forget(engine, (struct attempt_id){7}, NULL), ERR_CONFLICT);
    engine_fake_advance(engine, 200);
    assert_int_equal(heard.count, 5);
    assert_int_equal(heard.events[4].kind, ENGINE_EXITED);
    assert_int_equal(heard.events[4].exit.exit_code, 0);
    assert_string_equal(heard.events[4].tail, "started\n");
    assert_int_equal(engine->ops->forget(engine, (struct attempt_id){7}, NULL), 0);
    assert_int_equal(engine->ops->forget(engine, (struct attempt_id){7}, NULL), ERR_NOT_FOUND);
    assert_int_equal(engine_fake_next_ms(engine), INT64_MAX);
    engine->ops->free(engine);
}

/* What is refused stays known until it is forgotten, and is told again to whoever asks. */
static void test_refusals(void **state)
{
    (void)state;
    const struct engine_fake_rule rules[] = {
        {.job = "picky", .index = -1, .refusal = "NodeAffinity", .times = 1},
        {.job = "moved", .index = -1, .is_moved = true},
    };
    struct engine *engine = engine_make(rules, COUNT_OF(rules), true);
    struct attempt_id *attempts;
    size_t count;
    assert_int_equal(engine_fake_node_refuse(engine, "fake9", "x", 0, NULL), ERR_NOT_FOUND);
    assert_int_equal(engine_fake_node_refuse(engine, "fake0", "OutOfcpu", 1, NULL), 0);
    assert_int_equal(create(engine, 1, "alice~x", 0), 0);
    engine_fake_advance(engine, 1000);
    assert_int_equal(heard.events[heard.count - 1].kind, ENGINE_REFUSED);
    assert_string_equal(heard.events[heard.count - 1].reason, "OutOfcpu");
    assert_int_equal(engine->ops->list(engine, &attempts, &count, NULL), 0);
    assert_int_equal(count, 1);
    mem_free(attempts);
    size_t before = heard.count;
    engine_fake_advance(engine, 1000);
    assert_int_equal(heard.count, before + 3); /* two nodes, and once more */
    assert_int_equal(engine->ops->forget(engine, (struct attempt_id){1}, NULL), 0);
    assert_int_equal(create(engine, 2, "alice~picky", 0), 0);
    engine_fake_advance(engine, 2000);
    assert_string_equal(heard.events[heard.count - 1].reason, "NodeAffinity");
    assert_int_equal(create(engine, 3, "alice~picky", 0), 0);
    engine_fake_advance(engine, 3000);
    assert_int_equal(heard.events[heard.count - 1].kind, ENGINE_EXITED); /* both were once */
    assert_int_equal(create(engine, 4, "alice~moved", 0), 0);
    engine_fake_advance(engine, 3050);
    assert_int_equal(heard.events[heard.count - 1].kind, ENGINE_STARTED);
    assert_string_equal(heard.events[heard.count - 1].node, "fake1");
    engine->ops->free(engine);
}

static void test_rules(void **state)
{
    (void)state;
    const struct engine_fake_rule rules[] = {
        {.job = "bad-image", .index = -1, .create_failure = "ImageNotFound"},
        {.role = "worker", .index = 3, .exit_code = 9, .log = "oh\n", .times = 1},
        {.job = "oom", .index = -1, .signal = 9, .is_oom_killed = true},
        {.job = "lost", .index = -1, .is_exit_lost = true},
    };
    struct engine *engine = engine_make(rules, COUNT_OF(rules), true);
    create(engine, 1, "a~bad-image", 0);
    create(engine, 2, "a~b", 3);
    create(engine, 3, "a~b", 3); /* the rule is used up */
    create(engine, 4, "a~oom", 0);
    create(engine, 5, "a~lost", 0);
    engine_fake_advance(engine, 1000);
    int codes[6] = {-1, -1, -1, -1, -1, -1};
    for (size_t i = 0; i < heard.count; i++) {
        if (heard.events[i].kind != ENGINE_EXITED)
            continue;
        codes[heard.events[i].attempt] = heard.events[i].exit.exit_code;
        if (heard.events[i].attempt == 1) {
            assert_string_equal(heard.events[i].reason, "ImageNotFound");
            assert_false(heard.events[i].exit.is_user_command);
        }
        if (heard.events[i].attempt == 2)
            assert_string_equal(heard.events[i].tail, "started\noh\n");
        if (heard.events[i].attempt == 4)
            assert_true(heard.events[i].exit.is_oom_killed);
    }
    assert_int_equal(codes[1], 0);
    assert_int_equal(codes[2], 9);
    assert_int_equal(codes[3], 0);
    assert_int_equal(codes[4], 137);
    assert_int_equal(codes[5], -1);
    /* who lists hears again of all that has ended */
    struct attempt_id *attempts;
    size_t count, before = heard.count;
    assert_int_equal(engine->ops->list(engine, &attempts, &count, NULL), 0);
    assert_int_equal(count, 5);
    mem_free(attempts);
    engine_fake_advance(engine, 1001);
    assert_int_equal(heard.count, before + 5 + 2); /* and the nodes */
    engine->ops->free(engine);
}

static void test_kill(void **state)
{
    (void)state;
    const struct engine_fake_rule rules[] = {
        {.job = "deaf", .index = -1, .is_deaf = true, .runs_for_ever = true},
    };
    struct engine *engine = engine_make(rules, 1, true);
    create(engine, 1, "a~deaf", 0);
    create(engine, 2, "a~b", 0);
    engine_fake_advance(engine, 20);
    size_t before = heard.count;
    for (uint64_t i = 1; i <= 2; i++)
        assert_int_equal(
            engine->ops->kill(engine, (struct attempt_id){i}, 500, "stopped", false, NULL), 0);
    assert_int_equal(engine->ops->kill(engine, (struct attempt_id){9}, 0, "", false, NULL),
                     ERR_NOT_FOUND);
    engine_fake_advance(engine, 21);
    assert_int_equal(heard.count, before + 1);
    assert_int_equal(heard.events[before].attempt, 2);
    assert_int_equal(heard.events[before].exit.exit_code, 143);
    engine_fake_advance(engine, 519);
    assert_int_equal(heard.count, before + 1);
    engine_fake_advance(engine, 520);
    assert_int_equal(heard.events[before + 1].exit.exit_code, 137);
    create(engine, 3, "a~c", 0);
    engine_fake_advance(engine, 540);
    assert_int_equal(engine_fake_remove(engine, (struct attempt_id){3}, NULL), 0);
    engine_fake_advance(engine, 541);
    assert_true(heard.events[heard.count - 1].exit.is_missing);
    engine->ops->free(engine);
}

static void test_finish(void **state)
{
    (void)state;
    struct engine_fake_rule rule = {.index = -1, .runs_for_ever = true, .exit_code = 3};
    struct engine *engine = engine_make(&rule, 1, true);
    create(engine, 1, "a~b", 0);
    assert_int_equal(engine_fake_finish(engine, (struct attempt_id){1}, NULL), 0);
    engine_fake_advance(engine, 1); /* it does not run yet: nothing happens */
    engine_fake_advance(engine, 100000);
    assert_int_equal(heard.events[heard.count - 1].kind, ENGINE_STARTED);
    assert_int_equal(engine_fake_finish(engine, (struct attempt_id){1}, NULL), 0);
    engine_fake_advance(engine, 100000);
    assert_int_equal(heard.events[heard.count - 1].kind, ENGINE_EXITED);
    assert_int_equal(heard.events[heard.count - 1].exit.exit_code, 3);
    size_t before = heard.count;
    assert_int_equal(engine_fake_finish(engine, (struct attempt_id){1}, NULL), 0);
    engine_fake_advance(engine, 100001); /* once is enough */
    assert_int_equal(heard.count, before);
    assert_int_equal(engine_fake_finish(engine, (struct attempt_id){2}, NULL), ERR_NOT_FOUND);
    engine->ops->free(engine);
}

static void test_nodes(void **state)
{
    (void)state;
    struct engine *engine = engine_make(NULL, 0, true);
    create(engine, 1, "a~b", 0);
    engine_fake_advance(engine, 50);
    assert_int_equal(engine_fake_node_lose(engine, "fake0", NULL), 0);
    assert_int_equal(engine_fake_node_lose(engine, "nowhere", NULL), ERR_NOT_FOUND);
    engine_fake_advance(engine, 1000);
    assert_int_equal(heard.events[heard.count - 1].kind, ENGINE_NODE_LOST);
    assert_int_equal(engine_fake_container_count(engine), 0);
    assert_int_equal(create(engine, 2, "a~b", 0), 0);
    engine_fake_advance(engine, 1000);
    assert_int_equal(heard.events[heard.count - 1].kind, ENGINE_EXITED);
    assert_true(heard.events[heard.count - 1].exit.is_lost);
    assert_int_equal(engine_fake_node_return(engine, "fake0", NULL), 0);
    engine_fake_advance(engine, 1001);
    assert_int_equal(heard.events[heard.count - 1].kind, ENGINE_NODE);
    engine->ops->free(engine);
}

static void test_node_that_goes_and_comes(void **state)
{
    (void)state;
    struct engine_fake_config config = {.node_count = 1,
                                        .cpu = 1,
                                        .memory_mib = 1,
                                        .run_ms = 100000,
                                        .lose_every_ms = 100,
                                        .is_time_virtual = true};
    struct engine_sink sink = {.context = &heard, .post = hear};
    struct engine *engine = NULL;
    heard.count = 0;
    assert_int_equal(engine_fake_new(&config, &sink, &engine, NULL), 0);
    engine_fake_advance(engine, 99);
    assert_int_equal(heard.events[heard.count - 1].kind, ENGINE_NODE);
    engine_fake_advance(engine, 149);
    assert_int_equal(heard.events[heard.count - 1].kind, ENGINE_NODE_LOST);
    engine_fake_advance(engine, 160);
    assert_int_equal(heard.events[heard.count - 1].kind, ENGINE_NODE);
    engine_fake_advance(engine, 220);
    assert_int_equal(heard.events[heard.count - 1].kind, ENGINE_NODE_LOST);
    engine->ops->free(engine);
}

static void test_real_time(void **state)
{
    (void)state;
    const struct engine_fake_rule rules[] = {{.index = -1, .run_ms = 1, .log = "bye\n"}};
    struct engine *engine = engine_make(rules, 1, false);
    struct attempt_id *attempts;
    size_t count;
    assert_int_equal(engine->ops->list(engine, &attempts, &count, NULL), 0);
    mem_free(attempts);
    create(engine, 1, "a~b", 0);
    int watch = engine->ops->log_watch(engine, (struct attempt_id){1}, LOG_ALL, NULL);
    assert_true(watch >= 0);
    struct log_part part = {0};
    while (!part.is_ended) {
        struct pollfd poll_fd = {.fd = watch, .events = POLLIN};
        uint64_t end = UINT64_MAX;
        char news[256];
        assert_int_equal(engine->ops->log_read(engine, (struct attempt_id){1}, LOG_ALL, &end, news,
                                               sizeof news, &part, NULL),
                         0);
        if (!part.is_ended) {
            assert_int_equal(poll(&poll_fd, 1, -1), 1);
            assert_true(read(watch, news, sizeof news) > 0);
        }
    }
    pthread_mutex_lock(&heard.lock);
    while (heard.count < 5) /* two nodes, preparing, started, exited */
        pthread_cond_wait(&heard.changed, &heard.lock);
    pthread_mutex_unlock(&heard.lock);
    close(watch);
    char text[64];
    uint64_t offset = 3;
    ssize_t length = engine->ops->log_read(engine, (struct attempt_id){1}, LOG_ALL, &offset, text,
                                           sizeof text, &part, NULL);
    assert_int_equal(length, 9);
    assert_memory_equal(text, "rted\nbye\n", 9);
    assert_true(part.is_ended);
    offset = 0;
    assert_int_equal(engine->ops->log_read(engine, (struct attempt_id){1}, LOG_STDERR, &offset,
                                           text, sizeof text, &part, NULL),
                     0);
    assert_int_equal(engine->ops->log_read(engine, (struct attempt_id){8}, LOG_ALL, &offset, text,
                                           sizeof text, &part, NULL),
                     ERR_NOT_FOUND);
    engine->ops->free(engine);
    assert_int_equal(heard.count, 5); /* the nodes were told once */
}

static bool is_woken(int fd)
{
    struct pollfd follower = {.fd = fd, .events = POLLIN};
    char news[256];
    bool is_readable = poll(&follower, 1, 0) == 1;
    if (is_readable)
        assert_true(read(fd, news, sizeof news) > 0);
    return is_readable;
}

/* Each who follows is woken, whoever of the others has read its own news or gone. */
static void test_followers(void **state)
{
    (void)state;
    const struct engine_fake_rule rules[] = {{.index = -1, .run_ms = 50, .log = "bye\n"}};
    struct engine *engine = engine_make(rules, 1, true);
    const struct attempt_id attempt = {1};
    struct err err = {0};
    int followers[3];
    assert_int_equal(create(engine, 1, "a~b", 0), 0);
    engine_fake_advance(engine, 20);
    for (size_t i = 0; i < COUNT_OF(followers); i++) {
        followers[i] = engine->ops->log_watch(engine, attempt, LOG_ALL, &err);
        assert_true(followers[i] >= 0);
        assert_false(is_woken(followers[i]));
    }
    close(followers[0]);
    engine_fake_advance(engine, 100); /* the last line, and the end */
    assert_true(is_woken(followers[1]));
    assert_false(is_woken(followers[1]));
    assert_true(is_woken(followers[2]));
    assert_int_equal(engine->ops->forget(engine, attempt, &err), 0);
    char byte;
    assert_int_equal(read(followers[1], &byte, 1), 0); /* nobody watches any more */
    close(followers[1]);
    close(followers[2]);
    engine->ops->free(engine);
}

static void test_limits(void **state)
{
    (void)state;
    struct engine *engine;
    struct engine_sink sink = {.context = &heard, .post = hear};
    struct engine_fake_config config = {0};
    assert_int_equal(engine_fake_new(&config, &sink, &engine, NULL), ERR_INVALID);
    config = (struct engine_fake_config){.node_count = 1, .cpu = 1, .memory_mib = 1};
    config.rule_count = ENGINE_FAKE_RULES_MAX + 1;
    assert_int_equal(engine_fake_new(&config, &sink, &engine, NULL), ERR_TOO_BIG);
    engine = engine_make(NULL, 0, true);
    struct container container = {.attempt = {1}, .job = "", .role = "", .node = "nowhere"};
    assert_int_equal(engine->ops->create(engine, &container, NULL), ERR_INVALID);
    assert_int_equal(engine->ops->log_watch(engine, (struct attempt_id){1}, LOG_ALL, NULL),
                     ERR_NOT_FOUND);
    struct engine_stats stats;
    assert_int_equal(engine->ops->stats(engine, (struct attempt_id){1}, &stats, NULL),
                     ERR_NOT_FOUND);
    engine->ops->free(engine);
}

static void gpus_lie_at_switches_and_get_lost(void **state)
{
    (void)state;
    heard = (struct heard){0};
    pthread_mutex_init(&heard.lock, NULL);
    pthread_cond_init(&heard.changed, NULL);
    struct engine_fake_config config = {.node_count = 1,
                                        .cpu = 4,
                                        .memory_mib = 1000,
                                        .gpu_count = 8,
                                        .gpus_per_numa = 4,
                                        .gpus_per_switch = 2,
                                        .is_time_virtual = true};
    struct err err = {0};
    struct engine *engine;
    assert_int_equal(engine_fake_new(&config,
                                     &(struct engine_sink){.context = &heard, .post = hear},
                                     &engine, &err),
                     0);
    engine_fake_advance(engine, 0);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.events[0].numa[3], 0);
    assert_int_equal(heard.events[0].numa[4], 1);
    assert_int_equal(heard.events[0].switches[5], 2);
    assert_int_equal(engine_fake_gpu_set(engine, "fake0", 5, true, &err), 0);
    engine_fake_advance(engine, 1);
    assert_int_equal(heard.events[1].switches[5], NODE_GPU_LOST);
    assert_int_equal(heard.events[1].switches[4], 2);
    assert_int_equal(engine_fake_gpu_set(engine, "fake0", 5, false, &err), 0);
    engine_fake_advance(engine, 2);
    assert_int_equal(heard.events[2].switches[5], 2);
    assert_int_equal(engine_fake_gpu_set(engine, "fake0", 8, true, &err), ERR_NOT_FOUND);
    assert_int_equal(engine_fake_gpu_set(engine, "fake1", 0, true, &err), ERR_NOT_FOUND);
    engine->ops->free(engine);
    config.gpu_count = ENGINE_FAKE_GPUS_MAX + 1;
    assert_int_equal(engine_fake_new(&config,
                                     &(struct engine_sink){.context = &heard, .post = hear},
                                     &engine, &err),
                     ERR_TOO_BIG);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(gpus_lie_at_switches_and_get_lost),
    cmocka_unit_test(test_life),
    cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_rules),
    cmocka_unit_test(test_kill),
    cmocka_unit_test(test_finish),
    cmocka_unit_test(test_nodes),
    cmocka_unit_test(test_node_that_goes_and_comes),
    cmocka_unit_test(test_followers),
    cmocka_unit_test(test_limits),
    cmocka_unit_test(test_real_time),
};
UNIT_FILE(tests, NULL, NULL);
