/* What the core is made of: queue, ports, timers, plans, stored events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/random.h"
#include "core/core.h"
#include "core/output.h"
#include "core/ports.h"
#include "core/queue.h"
#include "core/timers.h"
#include "spec/spec.h"
#include "world.h"

/* --- queue --- */

enum { SLOTS = 60 };

struct naive {
    bool is_in, is_blocked;
    struct queue_item item;
    int shape;
};

static int64_t sign(int64_t number)
{
    return (number > 0) - (number < 0);
}

/* By the words of queue.h: negative when a goes first. */
static int64_t naive_compare(const char *order, const struct queue_item *a,
                             const struct queue_item *b)
{
    int64_t by_time = 2 * sign(a->submitted_ms - b->submitted_ms) + sign((int64_t)a->id - b->id);
    int64_t by_size = 2 * sign((int64_t)(a->gpus - b->gpus)) + sign((int64_t)a->tasks - b->tasks);
    int64_t by_priority = sign((int64_t)b->priority - a->priority);
    if (!strcmp(order, "fifo"))
        return by_time;
    if (!strcmp(order, "smallest"))
        return 100 * by_priority + 10 * by_size + by_time;
    return 10 * by_priority + by_time;
}

static int naive_first(const struct naive *items, const char *order)
{
    int best = -1;
    for (int i = 0; i < SLOTS; i++)
        if (items[i].is_in && !items[i].is_blocked &&
            (best < 0 || naive_compare(order, &items[i].item, &items[best].item) < 0))
            best = i;
    return best;
}

static void naive_block(struct naive *items, int shape, bool is_blocked)
{
    for (int i = 0; i < SLOTS; i++)
        if (shape < 0 || items[i].shape == shape)
            items[i].is_blocked = is_blocked;
}

/* A job that comes into a blocked class is blocked with it; an empty class forgets. */
static bool naive_class_is_blocked(const struct naive *items, int shape)
{
    for (int i = 0; i < SLOTS; i++)
        if (items[i].is_in && items[i].shape == shape)
            return items[i].is_blocked;
    return false;
}

static void test_queue_random(void **state)
{
    (void)state;
    static const char *const orders[] = {"priority", "smallest", "fifo"};
    const char *order = orders[0];
    struct queue *queue = queue_new(queue_order_named(order));
    struct naive items[SLOTS] = {0};
    struct random random = {7};
    for (int i = 0; i < 20000; i++) {
        uint32_t slot = (uint32_t)random_below(&random, SLOTS), class;
        int shape = (int)random_below(&random, 6);
        struct queue_item item = {slot,
                                  slot + 1,
                                  shape % 3,
                                  (int64_t)random_below(&random, 50),
                                  (uint64_t)(shape / 3),
                                  (uint32_t)(shape % 2),
                                  0};
        switch (random_below(&random, 5)) {
        case 0:
        case 1:
            items[slot].is_in = false;
            items[slot] = (struct naive){true, naive_class_is_blocked(items, shape), item, shape};
            queue_push(queue, &item, &(struct queue_need){0},
                       (struct text){(char *)&shape, sizeof shape});
            break;
        case 2:
            items[slot].is_in = false;
            queue_remove(queue, slot);
            break;
        case 3:
            if (!queue_first(queue, &item, &class))
                break;
            queue_block(queue, class, "full", 7, false);
            assert_string_equal(queue_reason(queue, class), "full");
            assert_int_equal(queue_topic(queue, class), 7);
            assert_true(queue_is_blocked(queue, class));
            naive_block(items, items[item.slot].shape, true);
            break;
        default:
            if (random_below(&random, 10) == 0) {
                queue_unblock(queue);
                naive_block(items, -1, false);
            }
            if (random_below(&random, 50) == 0) {
                struct queue *copy = queue_copy(queue);
                queue_free(queue);
                queue = copy;
            }
            if (random_below(&random, 20) == 0) {
                order = orders[random_below(&random, 3)];
                queue_order_set(queue, queue_order_named(order));
            }
        }
        int best = naive_first(items, order);
        assert_int_equal(queue_first(queue, &item, &class), best >= 0);
        if (best >= 0)
            assert_int_equal(item.slot, best);
        size_t count = 0;
        for (int j = 0; j < SLOTS; j++) {
            count += items[j].is_in;
            assert_int_equal(queue_has(queue, (uint32_t)j), items[j].is_in);
        }
        assert_int_equal(queue_count(queue), count);
    }
    uint32_t slots[SLOTS];
    assert_int_equal(queue_list(queue, slots), queue_count(queue));
    assert_true(queue_memory(queue) > 0);
    assert_null(queue_order_named("random"));
    queue_free(queue);
    queue_free(NULL);
}

/* --- ports --- */

static void test_ports(void **state)
{
    (void)state;
    struct ports ports = {0};
    assert_int_equal(ports_find(&ports, 15000, 15009, 3), 15000);
    ports_take(&ports, 15000, 3);
    assert_int_equal(ports_find(&ports, 15000, 15009, 3), 15003);
    ports_take(&ports, 15003, 3);
    ports_give(&ports, 15000, 3);
    /* what was given back is taken last */
    assert_int_equal(ports_find(&ports, 15000, 15009, 2), 15006);
    ports_take(&ports, 15006, 2);
    assert_int_equal(ports_find(&ports, 15000, 15009, 3), 15000);
    assert_int_equal(ports_find(&ports, 15000, 15009, 4), 0);
    assert_false(ports_are_free(&ports, 0, 1));
    assert_false(ports_are_free(&ports, 65535, 2));
    assert_true(ports_are_free(&ports, 65535, 1));
    assert_false(ports_are_free(&ports, 65536, 1));
    ports_take(&ports, 1020, 10); /* over a page's edge */
    assert_false(ports_are_free(&ports, 1000, 21));
    assert_true(ports_are_free(&ports, 1000, 20));
    ports_release(&ports);
    assert_int_equal(ports_find(&ports, 100, 109, 8), 100);
    assert_int_equal(ports_find(&ports, 100, 109, 8), 100); /* not two more at the end */
    ports_take(&ports, 100, 8);
    assert_int_equal(ports_find(&ports, 200, 209, 2), 200); /* another range than before */
    assert_int_equal(ports_find(&ports, 100, 109, 2), 108);
    assert_int_equal(ports_find(&ports, 100, 107, 2), 0);
    ports_take(&ports, 1020, 10);
    struct ports copy;
    ports_copy(&copy, &ports);
    ports_give(&ports, 1020, 10);
    assert_false(ports_are_free(&copy, 1029, 1));
    assert_true(ports_are_free(&ports, 1029, 1));
    ports_release(&ports);
    ports_release(&copy);
}

/* --- timers --- */

enum { TIMERS = 60 };

/* The earliest of all, of equal ones the smallest key. */
static void timer_check_first(int64_t *want_ms, const struct timer *timer)
{
    assert_true(timer->key < TIMERS);
    assert_true(want_ms[timer->key] == timer->at_ms);
    for (size_t i = 0; i < TIMERS; i++)
        assert_false(want_ms[i] >= 0 &&
                     (want_ms[i] < timer->at_ms || (want_ms[i] == timer->at_ms && i < timer->key)));
    want_ms[timer->key] = -1;
}

static void timers_check_count(const struct timers *timers, const int64_t *want_ms)
{
    size_t count = 0;
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < TIMERS; i++) {
        count += want_ms[i] >= 0;
        if (want_ms[i] >= 0 && want_ms[i] < next_ms)
            next_ms = want_ms[i];
    }
    assert_int_equal(timers->count, count);
    assert_true(timers_next_ms(timers) == next_ms);
}

static void test_timers(void **state)
{
    (void)state;
    struct timers timers = {0};
    struct random random = {3};
    assert_true(timers_next_ms(&timers) == INT64_MAX);
    int64_t want_ms[TIMERS];
    memset(want_ms, -1, sizeof want_ms);
    struct timer timer;
    for (int i = 0; i < 20000; i++) {
        const size_t key = (size_t)random_below(&random, TIMERS);
        const int64_t at_ms = (int64_t)random_below(&random, 100);
        switch (random_below(&random, 5)) {
        case 0:
            timers_remove(&timers, key);
            want_ms[key] = -1;
            break;
        case 1:
            timers_set_earlier(&timers, key, at_ms);
            if (want_ms[key] < 0 || at_ms < want_ms[key])
                want_ms[key] = at_ms;
            break;
        case 2:
            if (timers_take(&timers, at_ms, &timer))
                timer_check_first(want_ms, &timer);
            break;
        default:
            timers_set(&timers, key, at_ms);
            want_ms[key] = at_ms;
        }
        timers_check_count(&timers, want_ms);
    }
    struct timers copy = {0};
    timers_copy(&copy, &timers);
    timers_release(&timers);
    while (timers_take(&copy, 1000, &timer))
        timer_check_first(want_ms, &timer);
    timers_check_count(&copy, want_ms);
    assert_int_equal(copy.count, 0);
    assert_true(copy.entries.count <= TIMERS);
    timers_release(&copy);
}

/* --- plans --- */

static void assert_plans_equal(const struct plan *a, const struct plan *b)
{
    struct buf x = BUF_INIT, y = BUF_INIT;
    plan_encode(a, &x);
    plan_encode(b, &y);
    assert_int_equal(x.length, y.length);
    assert_memory_equal(x.at, y.at, x.length);
    buf_release(&x);
    buf_release(&y);
}

static struct plan *plan_full(void)
{
    struct plan_port ports[] = {{"ssh", 1, 0}, {"grpc", 3, 9000}};
    struct plan_role roles[] = {world_role("master", 1, 2, 0), world_role("worker", 4, 1, 8)};
    roles[1].ports = ports;
    roles[1].sku_type = "V100,K80";
    roles[1].pinned_cell_id = "PIN";
    roles[1].affinity_group = "g";
    roles[1].within_one_cell = "RACK";
    roles[1].task_retry_max = 3;
    struct plan plan = world_plan("train");
    plan.is_gang = plan.is_debug = plan.is_hang_retry = plan.is_lazy_preemptible = true;
    plan.retry_max = -2;
    plan.priority = -1;
    plan.time_limit_s = 77;
    plan.hang_after_s = 66;
    plan.kill_all_on_completed = 2;
    plan.roles = roles;
    plan.role_count = 2;
    return plan_copy(&plan);
}

static void test_plan_codec(void **state)
{
    (void)state;
    struct plan *plan = plan_full();
    struct buf bytes = BUF_INIT;
    plan_encode(plan, &bytes);
    struct err err = {0};
    struct plan *back = plan_decode(buf_as_text(&bytes), &err);
    assert_non_null(back);
    assert_plans_equal(plan, back);
    assert_string_equal(back->roles[1].ports[1].label, "grpc");
    assert_int_equal(plan_task_count(back), 5);
    assert_int_equal(back->roles[1].instances * back->roles[1].gpu, 32);
    plan_free(back);
    for (size_t length = 0; length < bytes.length; length++) {
        assert_null(plan_decode((struct text){bytes.at, length}, &err));
        assert_int_equal(err.code, ERR_CORRUPT);
    }
    struct random random = {5};
    for (int i = 0; i < 5000; i++) { /* damaged in one place: read or refused, never believed */
        size_t at = (size_t)random_below(&random, bytes.length);
        char old = bytes.at[at];
        bytes.at[at] = (char)random_next(&random);
        plan_free(plan_decode(buf_as_text(&bytes), NULL));
        bytes.at[at] = old;
    }
    buf_release(&bytes);
    plan_free(plan);
}

/* What no submission could have brought is not a stored plan. */
static void test_plan_limits(void **state)
{
    (void)state;
    static struct plan_role roles[3];
    const struct plan_port none = {"none", 0, 0}, many = {"many", SPEC_PORTS_MAX + 1, 0},
                           beyond = {"beyond", 1, UINT16_MAX + 1};
    const struct plan_port *const wrong_ports[] = {&none, &many, &beyond};
    const struct plan good = world_plan_of("good", roles);
    struct plan wrong[8];
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        wrong[i] = good;
    for (size_t i = 0; i < COUNT_OF(roles); i++)
        roles[i] = world_role("worker", SPEC_INSTANCES_MAX, 1, 0);
    struct plan_role port_roles[COUNT_OF(wrong_ports)], large = roles[0];
    wrong[0].role_count = 0;
    wrong[1].role_count = 3; /* tasks in all */
    wrong[2].priority = PLACEMENT_PRIORITY_OPPO - 1;
    wrong[3].priority = PLACEMENT_PRIORITY_MAX + 1;
    wrong[4].roles = &large;
    large.instances++;
    for (size_t i = 0; i < COUNT_OF(wrong_ports); i++) {
        port_roles[i] = roles[0];
        port_roles[i].ports = wrong_ports[i];
        port_roles[i].port_count = 1;
        wrong[5 + i].roles = &port_roles[i];
    }
    for (size_t i = 0; i <= COUNT_OF(wrong); i++) {
        struct buf bytes = BUF_INIT;
        struct err err = {0};
        plan_encode(i < COUNT_OF(wrong) ? &wrong[i] : &good, &bytes);
        struct plan *plan = plan_decode(buf_as_text(&bytes), &err);
        assert_int_equal(err.code, i < COUNT_OF(wrong) ? ERR_CORRUPT : 0);
        assert_int_equal(plan != NULL, i == COUNT_OF(wrong));
        plan_free(plan);
        buf_release(&bytes);
    }
}

static void test_plan_of_spec(void **state)
{
    (void)state;
    struct spec_port ports[] = {{"http", 1, 0}, {"x", 2, 8000}};
    struct spec_role role = {
        .name = "worker",
        .instances = 3,
        .cpu = 4,
        .memory_mib = 512,
        .gpu = 2,
        .ports = ports,
        .port_count = 2,
        .completion = {1, -1},
        .task_retry_count = 5,
        .placement = {"V100", "", "", ""},
    };
    struct spec spec = {.name = "n",
                        .virtual_cluster = "vc1",
                        .priority = SPEC_PROD,
                        .retry_count = 2,
                        .is_gang = true,
                        .roles = &role,
                        .role_count = 1};
    struct plan *plan = plan_of_spec(&spec, "alice");
    assert_string_equal(plan->user, "alice");
    assert_string_equal(plan->virtual_cluster, "vc1");
    assert_int_equal(plan->priority, 100);
    assert_true(plan->is_retry_fancy);
    assert_int_equal(plan->roles[0].task_retry_max, 0); /* a gang's tasks are not tried alone */
    assert_int_equal(plan->roles[0].ports[1].begin_at, 8000);
    plan_free(plan);
    spec.is_gang = false;
    spec.retry_count = -2;
    plan = plan_of_spec(&spec, "bob");
    assert_int_equal(plan->roles[0].task_retry_max, 5);
    assert_false(plan->is_retry_fancy);
    plan_free(plan);
}

/* --- events --- */

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
    static const enum event_kind of_node[] = {EVENT_NODE, EVENT_NODE_LOST, EVENT_NODE_PARDON};
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
        assert_event_survives(&event);
    }
    event = (struct event){.kind = EVENT_TASK_REFUSED};
    event.task.attempt.v = 7;
    event.task.reason = "OutOfcpu";
    event.task.message = "4 < 8";
    assert_event_survives(&event);
    event = (struct event){.kind = EVENT_TIMER};
    assert_event_survives(&event);
    struct core_config config;
    core_config_default(&config);
    config.placement_document = TEXT("a: b\n");
    config.order = "fifo";
    event = (struct event){.kind = EVENT_CONFIG, .config = &config};
    assert_event_survives(&event);
    plan_free(plan);
}

/* The order of the queue came last, with version 5. */
static void test_event_names(void **state)
{
    (void)state;
    for (int kind = EVENT_SUBMIT; kind <= EVENT_TASK_REFUSED; kind++)
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
    assert_int_equal(bytes.at[0], 7);
    bytes.at[0] = 4;
    struct arena arena;
    arena_init(&arena);
    assert_int_equal(event_decode(buf_as_text(&bytes), &arena, &back, NULL), ERR_CORRUPT);
    struct text old = {bytes.at, bytes.length - sizeof(uint32_t) - strlen(config.order)};
    assert_int_equal(event_decode(old, &arena, &back, NULL), 0);
    assert_int_equal(back.config->kill_grace_ms, 4321);
    assert_string_equal(back.config->order, "priority");
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
    struct text old = {bytes.at, bytes.length - sizeof(uint32_t) - sizeof(uint64_t)};
    assert_int_equal(event_decode(old, &arena, &back, NULL), 0);
    assert_int_equal(back.last_job.v, 0);
    assert_string_equal(back.config->order, config.order);
    arena_release(&arena);
    buf_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_of_version_5),
        cmocka_unit_test(test_queue_random),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_timers),
        cmocka_unit_test(test_plan_codec),
        cmocka_unit_test(test_plan_limits),
        cmocka_unit_test(test_plan_of_spec),
        cmocka_unit_test(test_event_codec),
        cmocka_unit_test(test_event_names),
        cmocka_unit_test(test_event_of_version_4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
