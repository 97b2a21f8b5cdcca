/* The early platform and FrameworkController: tables, ranges, masks, shares, documents, names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/random.h"
#include "doc/doc.h"
#include "job/retry.h"
#include "originals/early.h"
#include "originals/framework.h"
#include "originals/gpu_mask.h"
#include "originals/ranges.h"
#include "originals/vc_share.h"

/* ---- states and exits of the launcher ---- */

static void launcher_states(void **state)
{
    (void)state;
    const int32_t zero = 0, one = 1, stopped = 214, stopped_late = -7351, with_app = -7400;
    assert_int_equal(early_job_state(EARLY_A, "APPLICATION_COMPLETED", &one), PUBLIC_RUNNING);
    assert_int_equal(early_job_state(EARLY_B, "APPLICATION_COMPLETED", &one), PUBLIC_WAITING);
    assert_int_equal(early_job_state(EARLY_B, "APPLICATION_RUNNING", NULL), PUBLIC_RUNNING);
    assert_int_equal(early_job_state(EARLY_A, "FRAMEWORK_WAITING", NULL), PUBLIC_WAITING);
    assert_int_equal(early_job_state(EARLY_A, "FRAMEWORK_COMPLETED", &zero), PUBLIC_SUCCEEDED);
    assert_int_equal(early_job_state(EARLY_A, "FRAMEWORK_COMPLETED", &stopped), PUBLIC_STOPPED);
    assert_int_equal(early_job_state(EARLY_C, "FRAMEWORK_COMPLETED", &stopped), PUBLIC_FAILED);
    assert_int_equal(early_job_state(EARLY_C, "FRAMEWORK_COMPLETED", &stopped_late),
                     PUBLIC_STOPPED);
    assert_int_equal(early_job_state(EARLY_C, "FRAMEWORK_COMPLETED", NULL), PUBLIC_FAILED);
    assert_int_equal(early_job_state(EARLY_C, "ODD", NULL), PUBLIC_UNKNOWN);
    assert_int_equal(early_task_state("CONTAINER_LAUNCHED", NULL), PUBLIC_WAITING);
    assert_int_equal(early_task_state("CONTAINER_RUNNING", NULL), PUBLIC_RUNNING);
    assert_int_equal(early_task_state("TASK_COMPLETED", &with_app), PUBLIC_STOPPED);
    assert_int_equal(early_task_state("ODD", NULL), PUBLIC_UNKNOWN);
}

static void launcher_exits(void **state)
{
    (void)state;
    struct early_row rows[32];
    const size_t count = early_rows_normalise(early_default_rows, early_default_count, rows);
    assert_int_equal(count, early_default_count);
    struct early_exit end =
        early_exit_judge(-100, "xx Container EXPIRED since it was unused", rows, count);
    assert_int_equal(end.code, -7112);
    assert_int_equal(end.type, EARLY_TRANSIENT_CONFLICT);
    end = early_exit_judge(-100, "because", rows, count);
    assert_int_equal(end.code, -7110);
    end = early_exit_judge(-100,
                           "container of a completed application; container released on a "
                           "*lost* node",
                           rows, count);
    assert_int_equal(end.code, -7113); /* the smallest */
    end = early_exit_judge(77, NULL, rows, count);
    assert_int_equal(end.type, EARLY_UNKNOWN);
    assert_int_equal(early_exit_type_of("ODD"), -1);
    assert_string_equal(early_exit_type_name(EARLY_NON_TRANSIENT), "NON_TRANSIENT");
    assert_int_equal(early_exit_attributes(EARLY_TRANSIENT_CONFLICT),
                     EXIT_TRANSIENT | EXIT_CONFLICT);
    assert_int_equal(early_exit_attributes(EARLY_NON_TRANSIENT), EXIT_PERMANENT);
    assert_int_equal(early_exit_attributes(EARLY_TRANSIENT_NORMAL), EXIT_TRANSIENT);
    assert_int_equal(early_exit_attributes(EARLY_SUCCEEDED), 0);
    assert_int_equal(early_exit_attributes(EARLY_UNKNOWN), 0);
    const struct completion user = completion_of(3, "%s", ""), stop = completion_of(-210, "%s", ""),
                            odd = completion_of(-1002, "%s", ""), good = completion_of(0, "%s", "");
    assert_int_equal(early_exit_code(EARLY_A, &user), 177);
    assert_int_equal(early_exit_code(EARLY_C, &user), 3);
    assert_int_equal(early_exit_code(EARLY_A, &stop), 214);
    assert_int_equal(early_exit_code(EARLY_C, &stop), -7351);
    assert_int_equal(early_exit_code(EARLY_C, &odd), -8000);
    assert_int_equal(early_exit_code(EARLY_A, &odd), -1002);
    assert_int_equal(early_exit_code(EARLY_B, &good), 0);
}

static void rows_are_normalised(void **state)
{
    (void)state;
    const struct early_row given[] = {
        {.code = 9, .has_code = true, .has_type = true, .type = EARLY_NON_TRANSIENT},
        {.code = 5, .has_code = true},
        {.code = 9, .has_code = true, .has_type = true, .type = EARLY_TRANSIENT_NORMAL},
        {.has_type = true},
        {.code = 0, .has_code = true},
        {.code = 256, .has_code = true},
        {.code = 4, .has_code = true, .has_type = true, .type = EARLY_SUCCEEDED},
    };
    struct early_row out[8];
    assert_int_equal(early_rows_normalise(given, COUNT_OF(given), out), 2);
    assert_int_equal(out[0].code, 5);
    assert_int_equal(out[0].type, EARLY_UNKNOWN);
    assert_int_equal(out[1].type, EARLY_TRANSIENT_NORMAL);
}

static void retry_windows(void **state)
{
    (void)state;
    const struct retry_window range = {600, 3600};
    assert_int_equal(retry_window(range, 0, true).max_s, 600);
    assert_int_equal(retry_window(range, 3, true).max_s, 2100);
    assert_int_equal(retry_window(range, 6, true).max_s, 3600);
    assert_int_equal(retry_window(range, 0, false).max_s, 3600);
    assert_int_equal(retry_delay_s((struct retry_window){5, 5}, UINT64_MAX), 5);
    assert_int_equal(retry_policy_early(-2).is_fancy, false);
    assert_int_equal(retry_policy_early(4).max, 4);
}

/* ---- ranges ---- */

enum { UNIVERSE = 40 };

static void ranges_of_bits(uint64_t bits, struct ranges *ranges)
{
    for (int i = 0; i < UNIVERSE; i++)
        if (bits >> i & 1)
            ranges_add(ranges, i, i);
    ranges_coalesce(ranges);
}

static uint64_t bits_of(const struct ranges *ranges)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        assert_true(i == 0 || ranges->items[i].first > ranges->items[i - 1].last + 1);
        for (int64_t n = ranges->items[i].first; n <= ranges->items[i].last; n++)
            bits |= UINT64_C(1) << n;
    }
    return bits;
}

static void ranges_are_sets(void **state)
{
    (void)state;
    struct random random = {.state = 3};
    const uint64_t all = (UINT64_C(1) << UNIVERSE) - 1;
    for (int round = 0; round < 2000; round++) {
        const uint64_t x = random_next(&random) & random_next(&random) & all;
        const uint64_t y = (random_next(&random) | random_next(&random)) & all;
        struct ranges a = {0}, b = {0}, out = {0};
        ranges_of_bits(x, &a);
        ranges_of_bits(y, &b);
        ranges_union(&a, &b, &out);
        assert_true(bits_of(&out) == (x | y));
        out.count = 0;
        ranges_intersect(&a, &b, &out);
        assert_true(bits_of(&out) == (x & y));
        out.count = 0;
        ranges_subtract(&a, &b, &out);
        assert_true(bits_of(&out) == (x & ~y));
        assert_int_equal(ranges_contain(&a, &b), (y & ~x) == 0);
        assert_int_equal(ranges_count(&a), (uint64_t)__builtin_popcountll(x));
        ARRAY_FREE(&a);
        ARRAY_FREE(&b);
        ARRAY_FREE(&out);
    }
    struct ranges edge = {0};
    ranges_add(&edge, 5, INT64_MAX);
    ranges_add(&edge, 7, 9);
    ranges_coalesce(&edge);
    assert_int_equal(edge.count, 1);
    ARRAY_FREE(&edge);
}

static void port_strings(void **state)
{
    (void)state;
    struct port_demand demands[6] = {{"http", 0, 2}, {"ssh", 9000, 1}, {"none", 0, 0}};
    struct ranges given = {0};
    ranges_add(&given, 9000, 9000);
    ranges_add(&given, 40, 40);
    ranges_add(&given, 50, 50);
    ranges_coalesce(&given);
    struct buf text = BUF_INIT;
    assert_true(port_string(demands, 3, &given, &text));
    assert_string_equal(buf_cstr(&text), "ssh:9000;http:40,50;none:;");
    demands[0].count = 3;
    assert_false(port_string(demands, 3, &given, &text));
    demands[1].start = 9001; /* not given */
    assert_false(port_string(demands, 3, &given, &text));
    assert_int_equal(port_demands_default(demands, 3), 3);
    assert_int_equal(port_demands_default(demands + 2, 1), 3);
    buf_release(&text);
    ARRAY_FREE(&given);
}

/* ---- GPU masks ---- */

static void gpu_masks(void **state)
{
    (void)state;
    const struct gpu_node nodes[] = {
        {"a", "V100", 0xff, 0x0f, 8, 100}, {"b", "K80", 0x3, 0, 8, 100},
        {"c", "V100", 0xff, 0x0f, 4, 100}, {"d", "V100", 0xff, 0x0f, 4, 50},
        {"e", "", 0, 0, 64, 1000},         {"f", "V100", 0xffff, 0xfff0, 64, 1000},
    };
    struct gpu_choice choices[6];
    struct gpu_request request = {.gpus = 2, .gpu_types = "P40, V100"};
    assert_int_equal(gpu_mask_choose(nodes, 6, &request, choices, 6, NULL), 4);
    assert_string_equal(nodes[choices[0].node].host, "d"); /* least memory */
    assert_string_equal(nodes[choices[1].node].host, "c");
    assert_string_equal(nodes[choices[2].node].host, "a");
    assert_int_equal(choices[0].mask, 0x30);
    assert_string_equal(nodes[choices[3].node].host, "f"); /* more GPUs in all */
    assert_int_equal(gpu_mask_choose(nodes, 6, &request, choices, 2, NULL), 2);
    request = (struct gpu_request){.gpus = 2, .mask = 0x3, .gpu_types = ""};
    assert_int_equal(gpu_mask_choose(nodes, 6, &request, choices, 6, NULL), 2);
    assert_string_equal(nodes[choices[0].node].host, "b");
    request.gpus = 3;
    struct err err;
    assert_int_equal(gpu_mask_choose(nodes, 6, &request, choices, 6, &err), ERR_INVALID);
    request = (struct gpu_request){.gpu_types = "", .keeps_off_gpu_nodes = true, .cpu = 10};
    assert_int_equal(gpu_mask_choose(nodes, 6, &request, choices, 6, NULL), 1);
    request.keeps_off_gpu_nodes = false;
    assert_int_equal(gpu_mask_choose(nodes, 6, &request, choices, 6, NULL), 2);
    request.memory_mib = 2000;
    assert_int_equal(gpu_mask_choose(nodes, 6, &request, choices, 6, NULL), 0);
}

/* ---- shares of virtual clusters ---- */

static void vc_shares(void **state)
{
    (void)state;
    struct vc_share shares[5] = {
        {"default", 60, 100, false}, {"a", 40, 40, false}, {"d", 100, 100, true}};
    size_t count = 3;
    assert_int_equal(vc_share_put(shares, &count, "b", 61, -1), VC_SHARE_NO_QUOTA);
    assert_int_equal(vc_share_put(shares, &count, "b", 30, -1), VC_SHARE_OK);
    assert_int_equal(count, 4);
    assert_true(shares[0].capacity == 30 && shares[0].max == 100 && shares[3].max == 30);
    assert_int_equal(vc_share_put(shares, &count, "b", 10, 5), VC_SHARE_INVALID);
    assert_int_equal(vc_share_put(shares, &count, "b", -1, 5), VC_SHARE_INVALID);
    assert_int_equal(vc_share_put(shares, &count, "b", 101, 101), VC_SHARE_INVALID);
    assert_int_equal(vc_share_put(shares, &count, "b", 10, 101), VC_SHARE_INVALID);
    assert_int_equal(vc_share_put(shares, &count, "d", 10, -1), VC_SHARE_READ_ONLY);
    assert_int_equal(vc_share_put(shares, &count, "default", 10, -1), VC_SHARE_DEFAULT);
    assert_int_equal(vc_share_remove(shares, &count, "d", 0), VC_SHARE_READ_ONLY);
    assert_int_equal(vc_share_remove(shares, &count, "default", 0), VC_SHARE_DEFAULT);
    assert_int_equal(vc_share_remove(shares, &count, "zzz", 0), VC_SHARE_MISSING);
    assert_int_equal(vc_share_remove(shares, &count, "a", 1), VC_SHARE_RUNNING);
    assert_int_equal(vc_share_remove(shares, &count, "a", 0), VC_SHARE_OK);
    assert_int_equal(count, 3);
    assert_true(shares[0].capacity == 70);
    shares[0].max = 70; /* held to its share: stays so */
    assert_int_equal(vc_share_remove(shares, &count, "b", 0), VC_SHARE_OK);
    assert_true(shares[0].capacity == 100 && shares[0].max == 100);
    shares[0] = (struct vc_share){"x", 100, 100, false};
    assert_int_equal(vc_share_put(shares, &count, "b", 1, -1), VC_SHARE_MISSING);
    assert_string_equal(vc_share_result_name(VC_SHARE_RUNNING), "RemoveRunningVcError");
    const struct vc_resources nodes[] = {{8, 24, 1000}, {8, 24, 1000}};
    assert_true(vc_share_resources(nodes, 2, 25).gpus == 4);
}

/* ---- FrameworkController's documents ---- */

static bool config_is_taken(const char *text, struct framework_config *config)
{
    struct arena arena;
    struct problems problems;
    arena_init(&arena);
    problems_init(&problems, &arena);
    const bool is_taken = framework_config_read(text_of(text), config, &problems);
    problems_release(&problems);
    arena_release(&arena);
    return is_taken;
}

static void controller_configs(void **state)
{
    (void)state;
    struct framework_config config;
    assert_true(config_is_taken("", &config) && config.worker_count == 200);
    assert_true(config_is_taken("# nothing\n", &config));
    assert_true(config_is_taken("workerNumber: 7\nkubeClientQps: 1.5\nlogObjectSnapshot:\n  "
                                "framework: {onFrameworkRetry: false}\n  pod: {onPodDeletion: "
                                "false}\n",
                                &config));
    assert_true(config.worker_count == 7 && config.kube_client_qps == 1);
    assert_false(config.logs_framework_retry || config.logs_pod_deletion);
    assert_true(
        config_is_taken("podFailureSpec: [{code: 220, podPatterns: [{reasonRegex: x}]}]", &config));
    static const char *const bad[] = {"workerNumber: 0",
                                      "workerNumber: x",
                                      "kubeClientQps: many",
                                      "a: [",
                                      "frameworkMinRetryDelaySecForTransientConflictFailed: 1000",
                                      "frameworkMaxRetryDelaySecForTransientConflictFailed: 59",
                                      "frameworkMinRetryDelaySecForTransientConflictFailed: -1",
                                      "podFailureSpec: [{code: 1}]",
                                      ("podFailureSpec: [{code: 1, podPatterns: [{reasonRegex: "
                                       "'('}]}]")};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (config_is_taken(bad[i], &config))
            fail_msg("%s is taken", bad[i]);
}

static void framework_objects(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_good;
    } cases[] = {
        {"{metadata: {name: f}, spec: {taskRoles: [{name: a, taskNumber: 2, task: "
         "{podGracefulDeletionTimeoutSec: null}}]}}",
         true},
        {"{metadata: {name: F}}", false},
        {"{metadata: {name: 5}}", false},
        {"{metadata: {name: ''}}", false},
        {"{metadata: {}}", true},
        {"{spec: {taskRoles: [{name: a-b}]}}", false},
        {"{spec: {taskRoles: 5}}", false},
        {"{spec: {executionType: Go}}", false},
        {"{metadata: {name: "
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}",
         false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena;
        struct problems problems;
        arena_init(&arena);
        problems_init(&problems, &arena);
        const struct doc *doc = doc_parse(text_of(cases[i].text), DOC_YAML, &arena, &problems);
        if (framework_object_check(doc, &problems) != cases[i].is_good)
            fail_msg("%s", cases[i].text);
        problems_release(&problems);
        arena_release(&arena);
    }
}

static void names_and_placeholders(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    framework_attempt_name("f", &out);
    framework_pod_name("f", "r", 3, &out);
    framework_instance_uid(2, "uid", &out);
    assert_string_equal(buf_cstr(&out), "f-attemptf-r-32_uid");
    buf_clear(&out);
    const struct framework_placeholder values[] = {{"A", "1"}, {"B", "{{A}}"}};
    framework_placeholders_render(TEXT("{{A}}{{B}} {{C}} {{{A}} {{"), values, 2, &out);
    assert_string_equal(buf_cstr(&out), "1{{A}} {{C}} {{{A}} {{");
    buf_clear(&out);
    framework_placeholders_render(TEXT(""), values, 2, &out);
    framework_placeholders_render(TEXT("plain"), values, 2, &out);
    assert_string_equal(buf_cstr(&out), "plain");
    buf_release(&out);
}

static void barriers(void **state)
{
    (void)state;
    assert_int_equal(framework_barrier_check("f", NULL, NULL), BARRIER_PASSED);
    assert_int_equal(framework_barrier_check("f", "", "60"), BARRIER_PASSED);
    assert_int_equal(framework_barrier_check("", NULL, NULL), BARRIER_PERMANENT);
    assert_int_equal(framework_barrier_check("f", "4", NULL), BARRIER_PERMANENT);
    assert_int_equal(framework_barrier_check("f", "x", NULL), BARRIER_PERMANENT);
    assert_int_equal(framework_barrier_check("f", NULL, "1201"), BARRIER_PERMANENT);
    const bool ready[] = {true, false};
    struct framework_barrier_role role = {1, ready, 2};
    assert_true(framework_barrier_is_passed(&role, 1));
    role.wanted = 2;
    assert_false(framework_barrier_is_passed(&role, 1));
    role.count = 0;
    assert_false(framework_barrier_is_passed(&role, 1));
    assert_int_equal(framework_barrier_exit(true, true, false), 0);
    assert_int_equal(framework_barrier_exit(false, true, true), 210);
    assert_int_equal(framework_barrier_exit(false, false, true), 201);
    assert_int_equal(framework_barrier_exit(false, false, false), 1);
}

static void creation_errors(void **state)
{
    (void)state;
    assert_int_equal(framework_creation_code(403, "forbidden: exceeded quota: q", NULL), -120);
    assert_int_equal(framework_creation_code(403, "forbidden", NULL), -310);
    assert_int_equal(framework_creation_code(400, "bad", ""), -310);
    assert_int_equal(framework_creation_code(422, "invalid", ""), -200);
    assert_int_equal(framework_creation_code(413, "too large", NULL), -200);
    assert_int_equal(framework_creation_code(422, "invalid", "connection reset"), -310);
    assert_int_equal(framework_creation_code(500, "x", NULL), -120);
    assert_int_equal(framework_creation_code(0, "x", NULL), -120);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launcher_states),
        cmocka_unit_test(launcher_exits),
        cmocka_unit_test(rows_are_normalised),
        cmocka_unit_test(retry_windows),
        cmocka_unit_test(ranges_are_sets),
        cmocka_unit_test(port_strings),
        cmocka_unit_test(gpu_masks),
        cmocka_unit_test(vc_shares),
        cmocka_unit_test(controller_configs),
        cmocka_unit_test(framework_objects),
        cmocka_unit_test(creation_errors),
        cmocka_unit_test(names_and_placeholders),
        cmocka_unit_test(barriers),
    };
    return cmocka_run_group_tests_name("early", tests, NULL, NULL);
}
