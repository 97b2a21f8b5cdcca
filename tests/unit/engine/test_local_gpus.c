/* NVML and the thread that calls it, with a library that does as a file says. */
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/gpu_watch.h"
#include "engine/local/nvml.h"
#include "engine/local/runtime.h"
#include "sys/file.h"
#include "sys/mailbox.h"
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/skep-gpus-XXXXXX";
static char state_path[PATH_MAX], pipe_path[PATH_MAX];

static void state_put(const char *text)
{
    char beside[PATH_MAX + 1];
    snprintf(beside, sizeof beside, "%s~", state_path);
    FILE *file = fopen(beside, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(rename(beside, state_path), 0);
}

static int group_setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(state_path, sizeof state_path, "%s/state", folder);
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
    setenv("FAKE_NVML_STATE", state_path, 1);
    return mkfifo(pipe_path, 0600);
}

static int group_teardown(void **state)
{
    (void)state;
    return tree_remove(folder, NULL);
}

static int well(void **state)
{
    (void)state;
    state_put("");
    return 0;
}

/* --- the library --- */

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
    state_put("gpu 0 busy 70\ngpu 0 used 2048\ngpu 0 ecc 3\ngpu 0 retired 2\ngpu 1 lost\n"
              "gpu 2 plain\ngpu 3 reset\n");
    assert_int_equal(nvml_open(FAKE_NVML, &nvml, NULL), 0);
    assert_int_equal(nvml_list(nvml, gpus, &count, NULL), 0);
    assert_int_equal(count, 4); /* those that are lost keep their numbers */
    assert_true(gpus[1].is_lost && gpus[3].is_lost && !gpus[0].is_lost && !gpus[2].is_lost);
    nvml_sample(nvml, 0, true, &sample);
    assert_true(sample.has_use && sample.has_errors && !sample.is_lost);
    assert_int_equal(sample.busy_percent, 70);
    assert_int_equal(sample.memory_used_bytes, 2ull << 30);
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

/* --- the watch --- */

struct heard {
    pthread_mutex_t lock;
    pthread_cond_t came;
    unsigned count;
};

static void on_changed(void *context)
{
    struct heard *heard = context;
    pthread_mutex_lock(&heard->lock);
    heard->count++;
    pthread_cond_signal(&heard->came);
    pthread_mutex_unlock(&heard->lock);
}

static void heard_wait(struct heard *heard, unsigned count)
{
    pthread_mutex_lock(&heard->lock);
    while (heard->count < count)
        pthread_cond_wait(&heard->came, &heard->lock);
    pthread_mutex_unlock(&heard->lock);
}

static struct gpu_watch *watch_new(struct heard *heard, uint32_t interval_ms, int *code)
{
    *heard = (struct heard){.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
    struct gpu_watch_config config = {.library = FAKE_NVML,
                                      .interval_ms = interval_ms,
                                      .list_ms = 200,
                                      .changed = on_changed,
                                      .context = heard};
    struct err err = {0};
    return gpu_watch_new(&config, &err, code);
}

static void without_the_library_there_are_no_gpus(void **state)
{
    (void)state;
    struct gpu_watch_config config = {.library = "libno-such-nvml.so",
                                      .interval_ms = 10,
                                      .list_ms = 60000,
                                      .changed = on_changed};
    struct gpu_state gpu;
    struct err err = {0};
    int code = 0;
    struct gpu_watch *watch = gpu_watch_new(&config, &err, &code);
    assert_int_equal(code, ERR_NOT_FOUND);
    assert_int_equal(gpu_watch_count(watch), 0);
    assert_false(gpu_watch_read(watch, 0, &gpu));
    assert_false(gpu_watch_refresh(watch, 60000)); /* at once: the thread has ended */
    gpu_watch_free(watch);
    gpu_watch_free(NULL);
}

static void use_is_summed_up(void **state)
{
    (void)state;
    struct heard heard;
    struct gpu_state first, second;
    int code = 0;
    state_put("gpu 0 busy 50\ngpu 1 ecc 4\n");
    struct gpu_watch *watch = watch_new(&heard, 5, &code);
    assert_int_equal(code, 0);
    assert_int_equal(gpu_watch_count(watch), 4);
    assert_string_equal(gpu_watch_gpu(watch, 3)->uuid, "GPU-00000003");
    assert_true(gpu_watch_refresh(watch, 10000));
    assert_true(gpu_watch_read(watch, 0, &first));
    assert_true(gpu_watch_refresh(watch, 10000));
    assert_true(gpu_watch_read(watch, 0, &second));
    assert_true(second.busy_ms > first.busy_ms);
    assert_int_equal(second.busy_percent, 50);
    assert_true(gpu_watch_read(watch, 1, &first));
    assert_int_equal(first.busy_ms, 0);
    assert_int_equal(first.ecc_errors, 4);
    assert_false(gpu_watch_read(watch, 4, &first));
    /* an errors look that was asked for sees what has just happened */
    state_put("gpu 1 ecc 5\ngpu 1 retired 1\n");
    assert_true(gpu_watch_refresh(watch, 10000));
    assert_true(gpu_watch_read(watch, 1, &first));
    assert_int_equal(first.ecc_errors, 5);
    assert_int_equal(first.retired_pages, 1);
    gpu_watch_free(watch);
    assert_int_equal(heard.count, 0);
}

static void a_lost_gpu_is_told(void **state)
{
    (void)state;
    struct heard heard;
    struct gpu_state gpu;
    int code = 0;
    struct gpu_watch *watch = watch_new(&heard, 5, &code);
    gpu_watch_start(watch);
    state_put("gpu 2 lost\n");
    heard_wait(&heard, 1);
    assert_true(gpu_watch_read(watch, 2, &gpu) && gpu.is_lost && !gpu.has_use);
    assert_true(gpu_watch_read(watch, 1, &gpu) && !gpu.is_lost);
    state_put("");
    heard_wait(&heard, 2);
    assert_true(gpu_watch_read(watch, 2, &gpu) && !gpu.is_lost);
    gpu_watch_free(watch);
    assert_int_equal(heard.count, 2);
}

static void let_go(void)
{
    state_put("");
    int fd = open(pipe_path, O_WRONLY); /* when the call hangs there */
    assert_true(fd >= 0);
    close(fd);
}

static void a_hanging_call_holds_up_nobody(void **state)
{
    (void)state;
    struct heard heard;
    struct gpu_state gpu;
    char text[PATH_MAX + 16];
    int code = 0;
    state_put("gpu 0 busy 30\n");
    struct gpu_watch *watch = watch_new(&heard, 5, &code);
    assert_true(gpu_watch_refresh(watch, 10000));
    snprintf(text, sizeof text, "hang %s\n", pipe_path);
    state_put(text);
    while (gpu_watch_silent_ms(watch) < 300) /* a round may have begun before */
        gpu_watch_refresh(watch, 20);
    assert_true(gpu_watch_read(watch, 0, &gpu)); /* what was known last */
    assert_int_equal(gpu.busy_percent, 30);
    int64_t begin_ms = mailbox_now_ms();
    assert_false(gpu_watch_refresh(watch, 19)); /* is not waited for again */
    assert_true(mailbox_now_ms() - begin_ms < 5000);
    let_go();
    assert_true(gpu_watch_refresh(watch, 10000));
    gpu_watch_free(watch);
}

static void a_list_that_does_not_come_is_not_waited_for(void **state)
{
    (void)state;
    struct heard heard;
    struct gpu_state gpu;
    char text[PATH_MAX + 16];
    int code = 0;
    snprintf(text, sizeof text, "hang %s\n", pipe_path);
    state_put(text);
    struct gpu_watch *watch = watch_new(&heard, 5, &code);
    assert_int_equal(code, ERR_BUSY);
    assert_int_equal(gpu_watch_count(watch), 0);
    assert_false(gpu_watch_read(watch, 0, &gpu));
    let_go();
    gpu_watch_free(watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_library_is_listed, well),
        cmocka_unit_test_setup(a_sample_says_what_the_library_says, well),
        cmocka_unit_test_setup(without_the_library_there_are_no_gpus, well),
        cmocka_unit_test_setup(use_is_summed_up, well),
        cmocka_unit_test_setup(a_lost_gpu_is_told, well),
        cmocka_unit_test_setup(a_hanging_call_holds_up_nobody, well),
        cmocka_unit_test_setup(a_list_that_does_not_come_is_not_waited_for, well),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
