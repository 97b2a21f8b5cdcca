/* The library that knows the GPUs: what it lists, and what it samples. */
#include "machine.h"
#include "unit.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/local/nvml.h"

static void the_library_is_listed(void **state)
{
    (void)state;
    struct nvml *nvml = NULL;
    struct nvml_gpu gpus[NVML_GPUS_MAX];
    size_t count;
    struct err err = {0};
    assert_int_equal(nvml_open(FAKE_NVML, &nvml, &err), 0);
    assert_int_equal(nvml_list(nvml, gpus, &count, &err), 0);
    assert_int_equal(count, 4);
    assert_string_equal(gpus[2].uuid, "GPU-00000002");
    assert_string_equal(gpus[2].name, "NVIDIA Test V100 16GB");
    assert_string_equal(gpus[2].bus_id, "00000000:85:00.0");
    assert_int_equal(gpus[2].minor, 2);
    assert_int_equal(gpus[2].memory_mib, 16384);
    assert_false(gpus[2].is_lost);
    nvml_close(nvml);
    assert_null(dlopen(FAKE_NVML, RTLD_NOW | RTLD_NOLOAD)); /* and is let go */
    nvml_close(NULL);
    assert_int_equal(nvml_open("libno-such-nvml.so", &nvml, &err), ERR_NOT_FOUND);
    assert_int_equal(nvml_open("libc.so.6", &nvml, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "nvmlInit_v2"));
    state_put("broken\n");
    assert_int_equal(nvml_open(FAKE_NVML, &nvml, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "999"));
}

static void a_sample_says_what_the_library_says(void **state)
{
    (void)state;
    struct nvml *nvml = NULL;
    struct nvml_gpu gpus[NVML_GPUS_MAX];
    struct nvml_sample sample;
    size_t count;
    state_put("gpu 0 busy 70\ngpu 0 used 2048\ngpu 0 power 250000\ngpu 0 ecc 3\ngpu 0 retired "
              "2\ngpu 1 lost\n"
              "gpu 2 plain\ngpu 3 reset\n");
    assert_int_equal(nvml_open(FAKE_NVML, &nvml, NULL), 0);
    assert_int_equal(nvml_list(nvml, gpus, &count, NULL), 0);
    assert_int_equal(count, 4); /* those that are lost keep their numbers */
    assert_true(gpus[1].is_lost && gpus[3].is_lost && !gpus[0].is_lost && !gpus[2].is_lost);
    nvml_sample(nvml, 0, true, &sample);
    assert_true(sample.has_use && sample.has_errors && !sample.is_lost);
    assert_int_equal(sample.busy_percent, 70);
    assert_int_equal(sample.memory_used_bytes, 2ull << 30);
    assert_int_equal(sample.power_mw, 250000);
    assert_int_equal(sample.ecc_errors, 3);
    assert_int_equal(sample.retired_pages, 2);
    nvml_sample(nvml, 0, false, &sample);
    assert_false(sample.has_errors);
    nvml_sample(nvml, 1, true, &sample);
    assert_true(sample.is_lost && !sample.has_use && !sample.has_errors);
    nvml_sample(nvml, 2, true, &sample);
    assert_true(sample.has_use && !sample.has_errors);
    /* it fell off before it could say its name: found again by its number */
    state_put("gpu 1 busy 5\n");
    assert_int_equal(nvml_reopen(nvml, gpus, count, NULL), 0);
    nvml_sample(nvml, 1, true, &sample);
    assert_true(!sample.is_lost && sample.busy_percent == 5);
    state_put("broken\n");
    assert_int_equal(nvml_reopen(nvml, gpus, count, NULL), ERR_UNAVAILABLE);
    nvml_sample(nvml, 0, true, &sample);
    assert_true(sample.is_lost);
    nvml_close(nvml);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(the_library_is_listed, gpus_well),
    cmocka_unit_test_setup(a_sample_says_what_the_library_says, gpus_well),
};
UNIT_FILE(tests, gpus_setup, folder_teardown);
