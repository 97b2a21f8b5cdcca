/* Stored events: read back as they were, also those of earlier versions. */
#include "plans.h"
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/random.h"
#include "core/core.h"
#include "core/output.h"
#include "spec/spec.h"

static void assert_event_survives(struct event *event)
{
    event->now_ms = 123456789;
    event->random = 99;
    event->request = 7;
    event->user = "alice";
    struct buf bytes = BUF_INIT, again = BUF_INIT;
    struct arena arena;
    struct event back;
    arena_init(&arena);
    event_encode(event, &bytes);
    assert_int_equal(event_decode(buf_as_text(&bytes), &arena, &back, NULL), 0);
    assert_int_equal(back.kind, event->kind);
    event_encode(&back, &again);
    assert_int_equal(bytes.length, again.length);
    assert_memory_equal(bytes.at, again.at, bytes.length);
    if (back.kind == EVENT_SUBMIT)
        plan_free(back.submit.plan);
    if (back.kind == EVENT_START)
        plan_free(back.start.plan);
    for (size_t length = 0; length < bytes.length; length++)
        assert_int_equal(event_decode((struct text){bytes.at, length}, &arena, &back, NULL),
                         ERR_CORRUPT);
    struct random random = {bytes.length};
    for (size_t i = 0; i < 20 * bytes.length; i++) { /* damaged: read or refused, never believed */
        size_t at = i / 20;
        char old = bytes.at[at];
        bytes.at[at] = i % 20 ? (char)random_next(&random) : 0;
        int code = event_decode(buf_as_text(&bytes), &arena, &back, NULL);
        assert_true(code == 0 || code == ERR_CORRUPT);
        if (code == 0 && back.kind == EVENT_SUBMIT)
            plan_free(back.submit.plan);
        if (code == 0 && back.kind == EVENT_START)
            plan_free(back.start.plan);
        bytes.at[at] = old;
    }
    buf_char(&bytes, 'x');
    assert_int_equal(event_decode(buf_as_text(&bytes), &arena, &back, NULL), ERR_CORRUPT);
    arena_release(&arena);
    buf_release(&bytes);
    buf_release(&again);
}

static void test_event_codec(void **state)
{
    (void)state;
    struct plan *plan = plan_full();
    struct event event = {.kind = EVENT_SUBMIT, .submit = {.plan = plan, .format = SPEC_V2}};
    assert_event_survives(&event);
    static const enum event_kind of_job[] = {EVENT_STOP, EVENT_DELETE, EVENT_RELEASE, EVENT_START};
    for (size_t i = 0; i < COUNT_OF(of_job); i++) {
        event = (struct event){.kind = of_job[i]};
        event.start = (struct recall){.job = {5}};
        assert_event_survives(&event);
    }
    struct job_record record = {.id = {5}, .extra = TEXT("abc\0d")};
    event = (struct event){.kind = EVENT_START};
    event.start = (struct recall){{5}, &record, plan};
    assert_event_survives(&event);
    event = (struct event){.kind = EVENT_SCALE, .scale = {{5}, 2, 7}};
    assert_event_survives(&event);
    const uint16_t numa[] = {0, 0, 1, 1}, places[] = {0, 1, 2, 3};
    static const enum event_kind of_node[] = {EVENT_NODE,        EVENT_NODE_LOST,
                                              EVENT_NODE_PARDON, EVENT_NODE_CORDON,
                                              EVENT_NODE_DRAIN,  EVENT_NODE_UNCORDON};
    for (size_t i = 0; i < COUNT_OF(of_node); i++) {
        event = (struct event){
            .kind = of_node[i],
            .node = {.name = "n1",
                     .cpu = 3,
                     .memory_mib = 1 << 20,
                     .gpu_count = 4,
                     .gpu_type = "V100",
                     .gpu_numa = i ? NULL : numa,
                     .gpu_switch = i ? NULL : places,
                     .is_healthy = true,
                     .address = "10.0.0.1",
                     .engine = "kube",
                     .reason = "so"},
        };
        assert_event_survives(&event);
    }
    for (int kind = EVENT_TASK_PREPARING; kind <= EVENT_TASK_IDLE; kind++) {
        event = (struct event){.kind = (enum event_kind)kind};
        event.task.attempt.v = 1ull << 40;
        event.task.completion = completion_of(CODE_NODE_LOST, "gone");
        event.task.blame = 0.5;
        event.task.reason = "Pulling";
        event.task.message = "40 %";
        event.task.node = "n7";
        event.task.address = "10.1.0.7";
        assert_event_survives(&event);
    }
    event = (struct event){.kind = EVENT_TASK_REFUSED};
    event.task.attempt.v = 7;
    event.task.reason = "OutOfcpu";
    event.task.message = "4 < 8";
    assert_event_survives(&event);
    for (int kind = EVENT_CLUSTER_CLOSE; kind <= EVENT_CLUSTER_OPEN; kind++) {
        event = (struct event){.kind = (enum event_kind)kind, .cluster = {"vc1", "a course"}};
        assert_event_survives(&event);
    }
    event = (struct event){.kind = EVENT_TIMER};
    assert_event_survives(&event);
    struct core_config config;
    core_config_default(&config);
    config.placement_document = TEXT("a: b\n");
    config.order = "fifo";
    config.gangs_span_engines = true;
    event = (struct event){.kind = EVENT_CONFIG, .config = &config};
    assert_event_survives(&event);
    plan_free(plan);
}

/* The order of the queue came last, with version 5. */
static void test_event_names(void **state)
{
    (void)state;
    for (int kind = EVENT_SUBMIT; kind <= EVENT_CLUSTER_OPEN; kind++)
        assert_non_null(event_name((enum event_kind)kind));
    assert_string_equal(event_name(EVENT_SUBMIT), "submit");
    assert_string_equal(event_name(EVENT_TASK_EXITED), "task exited");
}

static void test_event_of_version_4(void **state)
{
    (void)state;
    struct core_config config;
    core_config_default(&config);
    config.kill_grace_ms = 4321;
    config.order = "fifo";
    struct event event = {.kind = EVENT_CONFIG, .config = &config, .user = ""}, back;
    struct buf bytes = BUF_INIT;
    event_encode(&event, &bytes);
    assert_int_equal(bytes.at[0], 9);
    bytes.at[0] = 4;
    struct arena arena;
    arena_init(&arena);
    assert_int_equal(event_decode(buf_as_text(&bytes), &arena, &back, NULL), ERR_CORRUPT);
    struct text old = {bytes.at, bytes.length - sizeof(uint32_t) - strlen(config.order) - 1};
    assert_int_equal(event_decode(old, &arena, &back, NULL), 0);
    assert_int_equal(back.config->kill_grace_ms, 4321);
    assert_string_equal(back.config->order, "priority");
    arena_release(&arena);
    buf_release(&bytes);
}

/* Up to version 7 a gang could have tasks on several engines, with nothing that said so. */
static void test_event_of_version_7(void **state)
{
    (void)state;
    struct core_config config;
    core_config_default(&config);
    assert_false(config.gangs_span_engines);
    struct event event = {.kind = EVENT_CONFIG, .config = &config, .user = ""}, back;
    struct buf bytes = BUF_INIT;
    event_encode(&event, &bytes);
    bytes.at[0] = 7;
    struct arena arena;
    arena_init(&arena);
    assert_int_equal(event_decode(buf_as_text(&bytes), &arena, &back, NULL), ERR_CORRUPT);
    struct text old = {bytes.at, bytes.length - 1};
    assert_int_equal(event_decode(old, &arena, &back, NULL), 0);
    assert_true(back.config->gangs_span_engines);
    arena_release(&arena);
    buf_release(&bytes);
}

/* Up to version 8 tasks had the address of their node. */
static void test_event_of_version_8(void **state)
{
    (void)state;
    struct event event = {.kind = EVENT_TASK_STARTED, .user = ""}, back;
    event.task.attempt.v = 7;
    event.task.node = "n7";
    event.task.address = "10.1.0.7";
    struct buf bytes = BUF_INIT;
    event_encode(&event, &bytes);
    bytes.at[0] = 8;
    struct arena arena;
    arena_init(&arena);
    assert_int_equal(event_decode(buf_as_text(&bytes), &arena, &back, NULL), ERR_CORRUPT);
    struct text old = {bytes.at, bytes.length - sizeof(uint32_t) - strlen(event.task.address)};
    assert_int_equal(event_decode(old, &arena, &back, NULL), 0);
    assert_string_equal(back.task.node, "n7");
    assert_string_equal(back.task.address, "");
    arena_release(&arena);
    buf_release(&bytes);
}

/* The numbers of a restart came with version 6. */
static void test_event_of_version_5(void **state)
{
    (void)state;
    struct core_config config;
    core_config_default(&config);
    struct event event = {.kind = EVENT_RESTORE, .user = ""}, back;
    event.config = &config;
    event.last_job.v = 1000007;
    event.last_attempt.v = 1ull << 40;
    struct buf bytes = BUF_INIT;
    event_encode(&event, &bytes);
    struct arena arena;
    arena_init(&arena);
    assert_int_equal(event_decode(buf_as_text(&bytes), &arena, &back, NULL), 0);
    assert_int_equal(back.last_job.v, 1000007);
    assert_true(back.last_attempt.v == 1ull << 40);
    bytes.at[0] = 5;
    assert_int_equal(event_decode(buf_as_text(&bytes), &arena, &back, NULL), ERR_CORRUPT);
    struct text old = {bytes.at, bytes.length - 1 - sizeof(uint32_t) - sizeof(uint64_t)};
    assert_int_equal(event_decode(old, &arena, &back, NULL), 0);
    assert_int_equal(back.last_job.v, 0);
    assert_string_equal(back.config->order, config.order);
    arena_release(&arena);
    buf_release(&bytes);
}

/* The event without its last bytes, as of a version before they came. */
static void decode_cut(struct buf *bytes, uint8_t version, size_t cut, struct arena *arena,
                       struct event *back)
{
    bytes->at[0] = (char)version;
    assert_int_equal(event_decode(buf_as_text(bytes), arena, back, NULL), ERR_CORRUPT);
    assert_int_equal(event_decode((struct text){bytes->at, bytes->length - cut}, arena, back, NULL),
                     0);
}

/* Up to version 6 there was one engine: nodes had no name of theirs, and tasks no node. */
static void test_event_of_version_6(void **state)
{
    (void)state;
    struct event event = {.kind = EVENT_TASK_STARTED, .user = ""}, back;
    event.task.attempt.v = 7;
    event.task.node = "n7";
    event.task.address = "10.1.0.7";
    struct buf bytes = BUF_INIT;
    struct arena arena;
    arena_init(&arena);
    event_encode(&event, &bytes);
    decode_cut(&bytes, 6,
               2 * sizeof(uint32_t) + strlen(event.task.node) + strlen(event.task.address), &arena,
               &back);
    assert_string_equal(back.task.node, "");
    assert_true(back.task.attempt.v == 7);
    buf_clear(&bytes);
    event = (struct event){.kind = EVENT_NODE, .user = "", .node = {.name = "n7", .engine = "far"}};
    event_encode(&event, &bytes);
    decode_cut(&bytes, 6, sizeof(uint32_t) + strlen(event.node.engine), &arena, &back);
    assert_string_equal(back.node.name, "n7");
    assert_string_equal(back.node.engine, "");
    arena_release(&arena);
    buf_release(&bytes);
}

/* Version 3 brought the pauses of retries, version 4 how long a gang waits; both stand in the
 * middle, behind the first of these pauses. */
static void test_event_of_versions_2_and_3(void **state)
{
    (void)state;
    struct core_config config, usual;
    core_config_default(&config);
    core_config_default(&usual);
    config.retry_pause_first_s = 0x77777777;
    config.gang_timeout_s = usual.gang_timeout_s + 1;
    config.kill_grace_ms = 4321;
    const struct event event = {.kind = EVENT_CONFIG, .config = &config, .user = ""};
    const size_t behind = sizeof(uint32_t) + strlen(config.order) + 1;
    for (uint8_t version = 2; version <= 3; version++) {
        struct event back;
        struct buf bytes = BUF_INIT;
        struct arena arena;
        arena_init(&arena);
        event_encode(&event, &bytes);
        bytes.at[0] = (char)version;
        char *pauses = memmem(bytes.at, bytes.length, "\x77\x77\x77\x77", 4);
        assert_non_null(pauses);
        char *from = version == 2 ? pauses : pauses + 3 * sizeof(uint32_t);
        const char *to = pauses + 4 * sizeof(uint32_t) + 1;
        memmove(from, to, (size_t)(bytes.at + bytes.length - to));
        const struct text old = {bytes.at, bytes.length - (size_t)(to - from) - behind};
        assert_int_equal(event_decode(old, &arena, &back, NULL), 0);
        assert_int_equal(back.config->kill_grace_ms, 4321);
        assert_int_equal(back.config->retry_pause_first_s == 0x77777777, version == 3);
        assert_int_not_equal(back.config->gang_timeout_s, config.gang_timeout_s);
        arena_release(&arena);
        buf_release(&bytes);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_event_of_version_6), cmocka_unit_test(test_event_of_versions_2_and_3),
    cmocka_unit_test(test_event_of_version_5), cmocka_unit_test(test_event_codec),
    cmocka_unit_test(test_event_names),        cmocka_unit_test(test_event_of_version_4),
    cmocka_unit_test(test_event_of_version_7), cmocka_unit_test(test_event_of_version_8),
};
UNIT_FILE(tests, NULL, NULL);
