/* What is known of each GPU, and of the task that has it, as metrics; what is not known is left
 * out. */
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "engine/engine.h"
#include "server/metrics.h"

static void has(const struct buf *text, const char *line)
{
    if (!strstr(buf_cstr(text), line))
        fail_msg("\"%s\" is not in %s", line, buf_cstr(text));
}

static void no_gpus_no_lines(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    gpu_metrics_write(NULL, 0, &out);
    assert_int_equal(out.length, 0);
    buf_release(&out);
}

static void each_gpu_has_its_lines(void **state)
{
    (void)state;
    static const struct engine_gpu gpus[2] = {
        {.node = "n\"1",
         .uuid = "GPU-a\\b",
         .index = 0,
         .has_use = true,
         .busy_percent = 70,
         .memory_bytes = 16,
         .memory_used_bytes = 5,
         .has_errors = true,
         .ecc_errors = 3,
         .retired_pages = 2,
         .attempt = {9},
         .job = "alice~train",
         .role = "wor\nker",
         .task_index = 4},
        {.node = "n\"1", .uuid = "", .index = 7, .is_lost = true, .job = "", .role = ""},
    };
    struct buf out = BUF_INIT;
    gpu_metrics_write(gpus, 2, &out);
    has(&out, "# TYPE skep_gpu_lost gauge\n");
    has(&out, "skep_gpu_lost{node=\"n\\\"1\",gpu=\"0\",uuid=\"GPU-a\\\\b\"} 0\n");
    has(&out, "skep_gpu_lost{node=\"n\\\"1\",gpu=\"7\",uuid=\"\"} 1\n");
    has(&out, "skep_gpu_utilization_percent{node=\"n\\\"1\",gpu=\"0\",uuid=\"GPU-a\\\\b\"} 70\n");
    has(&out, "skep_gpu_ecc_uncorrectable{node=\"n\\\"1\",gpu=\"0\",uuid=\"GPU-a\\\\b\"} 3\n");
    has(&out, "skep_task_gpu_memory_used_bytes{job=\"alice~train\",role=\"wor\\nker\",task=\"4\","
              "node=\"n\\\"1\",gpu=\"0\"} 5\n");
    /* nothing is known of the lost one but that it is lost, and no task has it */
    assert_null(strstr(buf_cstr(&out), "skep_gpu_utilization_percent{node=\"n\\\"1\",gpu=\"7\""));
    assert_null(strstr(buf_cstr(&out), "skep_gpu_memory_bytes{node=\"n\\\"1\",gpu=\"7\""));
    assert_null(strstr(buf_cstr(&out), "gpu=\"7\"} "));
    buf_release(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_gpus_no_lines),
    cmocka_unit_test(each_gpu_has_its_lines),
};
UNIT_FILE(tests, NULL, NULL);
