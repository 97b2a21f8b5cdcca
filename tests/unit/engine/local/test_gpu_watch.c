/* The thread that calls the library: lost GPUs are told, a call that hangs holds up nobody. */
#include "machine.h"
#include "unit.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/local/gpu_watch.h"
#include "sys/mailbox.h"

static char pipe_path[PATH_MAX];

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

/* `list_ms`: how long its list of GPUs may take; a busy machine takes its time. */
static struct gpu_watch *watch_new(struct heard *heard, uint32_t list_ms, int *code)
{
    *heard = (struct heard){.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
    struct gpu_watch_config config = {.library = FAKE_NVML,
                                      .interval_ms = 5,
                                      .list_ms = list_ms,
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
    struct gpu_watch *watch = watch_new(&heard, 60000, &code);
    assert_int_equal(code, 0);
    assert_int_equal(gpu_watch_count(watch), 4);
    assert_string_equal(gpu_watch_gpu(watch, 3)->uuid, "GPU-00000003");
    assert_true(gpu_watch_refresh(watch, 60000));
    assert_true(gpu_watch_read(watch, 0, &first));
    assert_true(gpu_watch_refresh(watch, 60000));
    assert_true(gpu_watch_read(watch, 0, &second));
    assert_true(second.busy_ms > first.busy_ms);
    assert_int_equal(second.busy_percent, 50);
    assert_true(gpu_watch_read(watch, 1, &first));
    assert_int_equal(first.busy_ms, 0);
    assert_int_equal(first.ecc_errors, 4);
    assert_false(gpu_watch_read(watch, 4, &first));
    /* an errors look that was asked for sees what has just happened */
    state_put("gpu 1 ecc 5\ngpu 1 retired 1\n");
    assert_true(gpu_watch_refresh(watch, 60000));
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
    struct gpu_watch *watch = watch_new(&heard, 60000, &code);
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

/* A call that hangs goes on, and none hangs until this is closed. */
static int let_go(void)
{
    state_put("");
    const int fd = open(pipe_path, O_RDWR); /* which waits for nobody */
    assert_true(fd >= 0);
    return fd;
}

static void a_hanging_call_holds_up_nobody(void **state)
{
    (void)state;
    struct heard heard;
    struct gpu_state gpu;
    char text[PATH_MAX + 16];
    int code = 0;
    state_put("gpu 0 busy 30\n");
    struct gpu_watch *watch = watch_new(&heard, 60000, &code);
    assert_true(gpu_watch_refresh(watch, 60000));
    snprintf(text, sizeof text, "hang %s\n", pipe_path);
    state_put(text);
    while (gpu_watch_silent_ms(watch) < 300) /* a round may have begun before */
        gpu_watch_refresh(watch, 20);
    assert_true(gpu_watch_read(watch, 0, &gpu)); /* what was known last */
    assert_int_equal(gpu.busy_percent, 30);
    assert_false(gpu_watch_refresh(watch, 19)); /* is not waited for again */
    const int fd = let_go();
    assert_true(gpu_watch_refresh(watch, 60000));
    gpu_watch_free(watch);
    close(fd);
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
    struct gpu_watch *watch = watch_new(&heard, 200, &code);
    assert_int_equal(code, ERR_BUSY);
    assert_int_equal(gpu_watch_count(watch), 0);
    assert_false(gpu_watch_read(watch, 0, &gpu));
    const int fd = let_go();
    gpu_watch_free(watch);
    close(fd);
}

static int setup(void **state)
{
    if (gpus_setup(state) < 0)
        return -1;
    snprintf(pipe_path, sizeof pipe_path, "%s", in_folder("pipe"));
    return mkfifo(pipe_path, 0600);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(without_the_library_there_are_no_gpus, gpus_well),
    cmocka_unit_test_setup(use_is_summed_up, gpus_well),
    cmocka_unit_test_setup(a_lost_gpu_is_told, gpus_well),
    cmocka_unit_test_setup(a_hanging_call_holds_up_nobody, gpus_well),
    cmocka_unit_test_setup(a_list_that_does_not_come_is_not_waited_for, gpus_well),
};
UNIT_FILE(tests, setup, folder_teardown);
