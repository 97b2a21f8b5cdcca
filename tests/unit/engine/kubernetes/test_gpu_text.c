#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/gpu_text.h"
#include "scratch.h"

static size_t count;
static const struct gpu_reading *gpus;
static struct err err;

static int read_text(const char *text)
{
    return gpu_text_read(text_of(text), &arena, &gpus, &count, &err);
}

/* As dcgm-exporter 4 with the pods of a device plugin writes it, shortened by other figures. */
#define LABELS(gpu, uuid)                                                                          \
    "{gpu=\"" gpu "\",UUID=\"" uuid "\",pci_bus_id=\"00000000:0" gpu ":00.0\",device=\"nvidia" gpu \
    "\",modelName=\"NVIDIA H200\",Hostname=\"n1\",DCGM_FI_DRIVER_VERSION=\"570.86.15\"}"
#define POD(gpu, uuid, pod)                                                                        \
    "{gpu=\"" gpu "\",UUID=\"" uuid "\",device=\"nvidia" gpu "\",modelName=\"NVIDIA "              \
    "H200\",Hostname=\"n1\",container=\"task\",namespace=\"skep\",pod=\"" pod "\"}"

static const char REAL[] =
    "# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).\n"
    "# TYPE DCGM_FI_DEV_SM_CLOCK gauge\n"
    "DCGM_FI_DEV_SM_CLOCK" LABELS(
        "0",
        "GPU-a") " 345\n"
                 "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n"
                 "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
                 "DCGM_FI_DEV_GPU_UTIL" POD(
                     "0", "GPU-a",
                     "skep-7") " 97\n"
                               "DCGM_FI_DEV_GPU_UTIL" POD(
                                   "1", "GPU-b",
                                   "") " 0\n"
                                       "DCGM_FI_DEV_POWER_USAGE" LABELS(
                                           "0",
                                           "GPU-a") " 301.527000\n"
                                                    "DCGM_FI_DEV_POWER_USAGE" LABELS(
                                                        "1",
                                                        "GPU-b") " 7.5e+01\n"
                                                                 "DCGM_FI_DEV_FB_USED" LABELS(
                                                                     "0",
                                                                     "GPU-a") " 70211\n"
                                                                              "DCGM_FI_DEV_FB_"
                                                                              "FREE" LABELS(
                                                                                  "0",
                                                                                  "GPU-a") " 72560"
                                                                                           "\n"
                                                                                           "DCGM_"
                                                                                           "FI_DEV_"
                                                                                           "FB_"
                                                                                           "RESERVE"
                                                                                           "D" LABELS(
                                                                                               "0",
                                                                                               "GPU"
                                                                                               "-a") " 1000\n"
                                                                                                     "DCGM_FI_DEV_XID_ERRORS" LABELS(
                                                                                                         "1",
                                                                                                         "GPU-b") " 79\n"
                                                                                                                  "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL" LABELS(
                                                                                                                      "1",
                                                                                                                      "GPU-b") " 3\n"
                                                                                                                               "DCGM_FI_DEV_RETIRED_DBE" LABELS(
                                                                                                                                   "1",
                                                                                                                                   "GPU-b") " 2\n"
                                                                                                                                            "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS" LABELS(
                                                                                                                                                "1",
                                                                                                                                                "GPU-b") " 1\n"
                                                                                                                                                         "\n"
                                                                                                                                                         "go_goroutines 42\n";

static bool is_known(size_t gpu, enum gpu_field field)
{
    return gpus[gpu].known & 1u << field;
}

static void what_an_exporter_says_is_read(void **state)
{
    (void)state;
    assert_int_equal(read_text(REAL), 0);
    assert_int_equal(count, 2);
    assert_int_equal(gpus[0].index, 0);
    assert_string_equal(gpus[0].uuid, "GPU-a");
    assert_string_equal(gpus[0].space, "skep");
    assert_string_equal(gpus[0].pod, "skep-7");
    assert_int_equal(gpus[0].values[GPU_FIELD_BUSY], 97);
    assert_int_equal(gpus[0].values[GPU_FIELD_USED], 70211);
    assert_int_equal(gpus[0].values[GPU_FIELD_FREE], 72560);
    assert_int_equal(gpus[0].values[GPU_FIELD_RESERVED], 1000);
    assert_int_equal(gpus[0].values[GPU_FIELD_POWER], 301527);
    assert_false(is_known(0, GPU_FIELD_ECC));
    assert_int_equal(gpus[1].index, 1);
    assert_string_equal(gpus[1].pod, "");
    assert_true(is_known(1, GPU_FIELD_BUSY));
    assert_int_equal(gpus[1].values[GPU_FIELD_BUSY], 0);
    assert_int_equal(gpus[1].values[GPU_FIELD_POWER], 75000);
    assert_int_equal(gpus[1].values[GPU_FIELD_XID], 79);
    assert_int_equal(gpus[1].values[GPU_FIELD_ECC], 3);
    assert_int_equal(gpus[1].values[GPU_FIELD_RETIRED], 2);
    assert_int_equal(gpus[1].values[GPU_FIELD_REMAPPED], 1);
}

static void a_text_without_gpus_is_one(void **state)
{
    (void)state;
    assert_int_equal(read_text(""), 0);
    assert_int_equal(count, 0);
    assert_int_equal(read_text("# EOF\n\n \t\nprocess_cpu_seconds_total 7\n:own{a=\"}\"} x\n"), 0);
    assert_int_equal(count, 0);
}

static void all_forms_of_a_line_are_read(void **state)
{
    static const char *const lines[] = {
        "DCGM_FI_DEV_GPU_UTIL{gpu=\"3\",UUID=\"GPU-c\",pod_name=\"p\",pod_namespace=\"s\"} 50",
        "  DCGM_FI_DEV_GPU_UTIL { gpu = \"3\" , UUID=\"GPU-c\",pod=\"p\",namespace=\"s\" , } 50 ",
        "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-c\",gpu=\"3\",pod=\"p\",namespace=\"s\"}\t5e1 "
        "1700000000\r",
        "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-c\",gpu=\"3\",pod=\"p\",namespace=\"s\"} +50.00 -1\n",
        "DCGM_FI_DEV_GPU_UTIL{m=\"\\\"\\\\\\n\",UUID=\"GPU-c\",gpu=\"3\",pod=\"p\",namespace=\"s\"}"
        " "
        "500E-1",
        "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-c\",gpu=\"3\",pod=\"p\",namespace=\"s\"} "
        "50.00000000000000000000000001",
        "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-c\",gpu=\"3\",pod=\"p\",namespace=\"s\"} "
        "500000000000000000000000e-22",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        assert_int_equal(read_text(lines[i]), 0);
        assert_int_equal(count, 1);
        assert_int_equal(gpus[0].index, 3);
        assert_string_equal(gpus[0].uuid, "GPU-c");
        assert_string_equal(gpus[0].space, "s");
        assert_string_equal(gpus[0].pod, "p");
        assert_true(is_known(0, GPU_FIELD_BUSY));
        assert_int_equal(gpus[0].values[GPU_FIELD_BUSY], 50);
    }
}

static void escapes_stand_for_what_they_say(void **state)
{
    (void)state;
    assert_int_equal(read_text("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"a\\\"b\\\\c\\nd\"} 1\n"), 0);
    assert_string_equal(gpus[0].uuid, "a\"b\\c\nd");
}

static void values_that_cannot_be_are_not_known(void **state)
{
    static const char *const values[] = {
        "NaN", "+Inf", "-Inf", "-1", "101", "9223372036854775794", "1e99", "1e999", "1e99999999",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        assert_int_equal(
            read_text(arena_format(&arena, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} %s\n", values[i])), 0);
        assert_int_equal(count, 1);
        assert_int_equal(gpus[0].known, 0);
        assert_string_equal(gpus[0].uuid, "");
    }
    assert_int_equal(read_text("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} -0\n"), 0);
    assert_true(is_known(0, GPU_FIELD_BUSY));
    assert_int_equal(read_text("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 7e-999\n"), 0);
    assert_int_equal(gpus[0].values[GPU_FIELD_BUSY], 0);
    assert_int_equal(read_text("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} "
                               "1e99999999999999999999\n"),
                     0);
    assert_int_equal(gpus[0].known, 0);
    /* as many digits as a double has no room for */
    char digits[400];
    memset(digits, '9', sizeof digits - 1);
    digits[sizeof digits - 1] = '\0';
    assert_int_equal(
        read_text(arena_format(&arena, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} %s\n", digits)), 0);
    assert_int_equal(gpus[0].known, 0);
    memset(digits + 2, '0', sizeof digits - 4);
    digits[0] = '0', digits[1] = '.';
    assert_int_equal(
        read_text(arena_format(&arena, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} %s\n", digits)), 0);
    assert_true(is_known(0, GPU_FIELD_BUSY));
    assert_int_equal(gpus[0].values[GPU_FIELD_BUSY], 0);
}

static void a_number_with_two_uuids_is_two_gpus(void **state)
{
    (void)state;
    assert_int_equal(read_text("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\"} 1\n"
                               "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-b\"} 2\n"),
                     0);
    assert_int_equal(count, 2);
    assert_int_equal(gpus[1].values[GPU_FIELD_BUSY], 2);
}

static void instances_of_a_divided_gpu_are_passed_over(void **state)
{
    (void)state;
    assert_int_equal(read_text("DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-a\",GPU_I_PROFILE=\"1g."
                               "10gb\",GPU_I_ID=\"7\"} 5\n"
                               "DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-a\",GPU_I_ID=\"\"} 9\n"),
                     0);
    assert_int_equal(count, 1);
    assert_int_equal(gpus[0].values[GPU_FIELD_USED], 9);
}

static void one_line_that_is_none_makes_all_of_it_garbage(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"<html>bad gateway</html>", "name of a figure"},
        {"{gpu=\"0\"} 1", "name of a figure"},
        {"\x7f"
         "ELF",
         "name of a figure"},
        {"DCGM_FI_DEV_GPU_UTIL 1", "no labels"},
        {"DCGM_FI_DEV_GPU_UTIL", "no labels"},
        {"DCGM_FI_DEV_GPU_UTIL{", "a label and ="},
        {"DCGM_FI_DEV_GPU_UTIL{,} 1", "a label and ="},
        {"DCGM_FI_DEV_GPU_UTIL{gpu} 1", "a label and ="},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=0} 1", "in quotes"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0} 1", "in quotes"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\\", "in quotes"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"", "a comma or }"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\" UUID=\"a\"} 1", "a comma or }"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"}", "no number"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} x", "no number"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 1x", "no number"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} .", "no number"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 1e", "no number"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} -", "no number"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 1 x", "more than a time"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 1 2 3", "more than a time"},
        {"DCGM_FI_DEV_GPU_UTIL{UUID=\"a\"} 1", "no number of a GPU"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"\"} 1", "no number of a GPU"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"-1\"} 1", "no number of a GPU"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"4096\"} 1", "no number of a GPU"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"\\x\"} 1", "an escape"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",pod=\"\\x\"} 1", "an escape"},
        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",namespace=\"\\x\"} 1", "an escape"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        err = (struct err){0};
        assert_int_equal(read_text(arena_format(&arena, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 1\n%s\n",
                                                cases[i].line)),
                         ERR_INVALID);
        if (!strstr(err.text, cases[i].says) || strncmp(err.text, "line 2: ", 8) != 0)
            fail_msg("%s: %s", cases[i].line, err.text);
    }
}

static void there_are_limits(void **state)
{
    struct buf text = BUF_INIT;
    (void)state;
    for (int i = 0; i < GPU_TEXT_GPUS_MAX; i++)
        buf_format(&text, "DCGM_FI_DEV_GPU_UTIL{gpu=\"%d\"} 1\n", i);
    assert_int_equal(read_text(buf_cstr(&text)), 0);
    assert_int_equal(count, GPU_TEXT_GPUS_MAX);
    buf_format(&text, "DCGM_FI_DEV_GPU_UTIL{gpu=\"%d\"} 1\n", GPU_TEXT_GPUS_MAX);
    assert_int_equal(read_text(buf_cstr(&text)), ERR_INVALID);
    buf_clear(&text);
    buf_string(&text, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"");
    for (int i = 1; i < GPU_TEXT_LABELS_MAX; i++)
        buf_format(&text, ",l%d=\"x\"", i);
    assert_int_equal(read_text(arena_format(&arena, "%s} 1", buf_cstr(&text))), 0);
    assert_int_equal(read_text(arena_format(&arena, "%s,m=\"x\"} 1", buf_cstr(&text))),
                     ERR_INVALID);
    buf_clear(&text);
    buf_string(&text, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",m=\"");
    for (int i = 0; i < GPU_TEXT_WORD_MAX; i++)
        buf_char(&text, 'x');
    assert_int_equal(read_text(arena_format(&arena, "%s\"} 1", buf_cstr(&text))), 0);
    assert_int_equal(read_text(arena_format(&arena, "%sx\"} 1", buf_cstr(&text))), ERR_INVALID);
    buf_release(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_an_exporter_says_is_read),
    cmocka_unit_test(a_text_without_gpus_is_one),
    cmocka_unit_test(all_forms_of_a_line_are_read),
    cmocka_unit_test(escapes_stand_for_what_they_say),
    cmocka_unit_test(values_that_cannot_be_are_not_known),
    cmocka_unit_test(a_number_with_two_uuids_is_two_gpus),
    cmocka_unit_test(instances_of_a_divided_gpu_are_passed_over),
    cmocka_unit_test(one_line_that_is_none_makes_all_of_it_garbage),
    cmocka_unit_test(there_are_limits),
};

UNIT_FILE(tests, setup, teardown);
