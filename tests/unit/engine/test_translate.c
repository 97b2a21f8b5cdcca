/* Each event of an engine as the core hears it, with nothing left out. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/translate.h"

static void nodes_keep_all_that_is_known(void **state)
{
    (void)state;
    static const struct {
        enum engine_event_kind from;
        enum event_kind to;
    } kinds[] = {{ENGINE_NODE, EVENT_NODE}, {ENGINE_NODE_LOST, EVENT_NODE_LOST}};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        uint16_t numa[] = {0, 1}, switches[] = {4, NODE_GPU_LOST};
        char name[] = "n1";
        const struct node_facts node = {.name = name,
                                        .address = "10.0.0.1",
                                        .gpu_type = "V100",
                                        .engine = "kube",
                                        .cpu = 8,
                                        .gpu_count = 2,
                                        .memory_mib = 4096,
                                        .gpu_numa = numa,
                                        .gpu_switch = switches,
                                        .is_gpu_simulated = true,
                                        .reason = "a GPU is lost"};
        struct arena arena;
        struct event event;
        arena_init(&arena);
        engine_event_translate(&(struct engine_event){.kind = kinds[i].from, .node = &node}, NULL,
                               &arena, &event);
        memset(name, 0, sizeof name); /* the event has copies */
        memset(numa, 0, sizeof numa);
        memset(switches, 0, sizeof switches);
        assert_int_equal(event.kind, kinds[i].to);
        assert_string_equal(event.user, "");
        assert_string_equal(event.node.name, "n1");
        assert_string_equal(event.node.address, "10.0.0.1");
        assert_string_equal(event.node.gpu_type, "V100");
        assert_string_equal(event.node.engine, "kube");
        assert_string_equal(event.node.reason, "a GPU is lost");
        assert_int_equal(event.node.cpu, 8);
        assert_int_equal(event.node.memory_mib, 4096);
        assert_int_equal(event.node.gpu_numa[1], 1);
        assert_int_equal(event.node.gpu_switch[0], 4);
        assert_true(node_gpu_is_lost(&event.node, 1));
        assert_true(event.node.is_gpu_simulated);
        assert_false(event.node.is_healthy);
        arena_release(&arena);
    }
}

static void tasks_keep_their_words(void **state)
{
    (void)state;
    static const struct {
        enum engine_event_kind from;
        enum event_kind to;
    } kinds[] = {{ENGINE_PREPARING, EVENT_TASK_PREPARING},
                 {ENGINE_NOTE, EVENT_TASK_NOTE},
                 {ENGINE_STARTED, EVENT_TASK_STARTED},
                 {ENGINE_REFUSED, EVENT_TASK_REFUSED}};
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct event event;
        engine_event_translate(&(struct engine_event){.kind = kinds[i].from,
                                                      .attempt = {7},
                                                      .reason = "Pulling",
                                                      .runs_on = i ? "n7" : NULL,
                                                      .address = i ? "10.1.0.7" : NULL,
                                                      .message = i ? "40 %" : NULL},
                               NULL, &arena, &event);
        assert_int_equal(event.kind, kinds[i].to);
        assert_int_equal(event.task.attempt.v, 7);
        assert_string_equal(event.task.reason, "Pulling");
        assert_string_equal(event.task.message, i ? "40 %" : "");
        assert_string_equal(event.task.node, i ? "n7" : "");
        assert_string_equal(event.task.address, i ? "10.1.0.7" : "");
    }
    arena_release(&arena);
}

static void an_exit_means_what_its_judge_says(void **state)
{
    (void)state;
    const struct exit_report report = {.exit_code = 1, .is_user_command = true};
    const struct exit_meaning meaning = {completion_of(CODE_NODE_LOST, "gone"), 0.5};
    struct arena arena;
    struct event event;
    arena_init(&arena);
    engine_event_translate(
        &(struct engine_event){.kind = ENGINE_EXITED, .attempt = {7}, .exit = &report}, &meaning,
        &arena, &event);
    assert_int_equal(event.kind, EVENT_TASK_EXITED);
    assert_int_equal(event.task.attempt.v, 7);
    assert_int_equal(event.task.completion.code, CODE_NODE_LOST);
    assert_string_equal(event.task.completion.diagnostics, "gone");
    assert_true(event.task.blame == 0.5);
    assert_string_equal(event.task.reason, "");
    arena_release(&arena);
}

static void what_an_engine_lacks_is_named(void **state)
{
    (void)state;
    const struct engine_ops ops = {.name = "fake"};
    struct engine engine = {.ops = &ops, .capabilities = ENGINE_CAN(ENGINE_CAN_LOG)};
    struct err err = {0};
    assert_int_equal(engine_need(&engine, ENGINE_CAN_LOG, &err), 0);
    for (int i = ENGINE_CAN_FOLLOW; i < ENGINE_CAPABILITIES; i++)
        assert_int_equal(engine_need(&engine, (enum engine_capability)i, &err), ERR_UNSUPPORTED);
    assert_string_equal(err.text,
                        "the engine \"fake\" cannot give each task an address of its own");
    engine.name = "kube-a";
    assert_int_equal(engine_need(&engine, ENGINE_CAN_EXEC, &err), ERR_UNSUPPORTED);
    assert_string_equal(err.text, "the engine \"kube-a\" cannot start a program in a running task");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_keep_all_that_is_known),
    cmocka_unit_test(tasks_keep_their_words),
    cmocka_unit_test(what_an_engine_lacks_is_named),
    cmocka_unit_test(an_exit_means_what_its_judge_says),
};
UNIT_FILE(tests, NULL, NULL);
