/* What is kept of a job for scheduling: its codec, its limits, and how it comes from a
 * specification. */
#include "plans.h"
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "base/memory.h"
#include "base/random.h"
#include "spec/spec.h"

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_plan_codec),
    cmocka_unit_test(test_plan_limits),
    cmocka_unit_test(test_plan_of_spec),
};
UNIT_FILE(tests, NULL, NULL);
