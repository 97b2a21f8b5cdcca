/* What a wall clock that was ahead leaves behind on images: last uses and checks of the future; and
 * whose pulls go on. The clocks, what is read of a reference, and pulls are the test's (`--wrap`,
 * see meson.build).
 *
 * Covers: src/engine/local/image_pull.c */
#include "folder.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "engine/local/image.h"
#include "engine/local/pull.h"
#include "engine/local/task.h"
#include "sys/clock.h"

enum { MINUTE_MS = 60 * 1000, HOUR_S = 3600, WEEK_S = 7 * 86400, FRESH_S = 300 };
#define DAYS_MS(days) ((days)*INT64_C(86400000))
static const int64_t begin = INT64_C(1700000000000);

static struct {
    int64_t wall_ms, boot_ms;
    int64_t checked_ms; /* of each reference */
} told;

int64_t __wrap_clock_unix_ms(void);
int64_t __wrap_clock_boot_ms(void);
int __real_file_read(const char *path, size_t limit, struct buf *out, struct err *err);
int __wrap_file_read(const char *path, size_t limit, struct buf *out, struct err *err);

int64_t __wrap_clock_unix_ms(void)
{
    return told.wall_ms;
}

int64_t __wrap_clock_boot_ms(void)
{
    return told.boot_ms;
}

int __wrap_file_read(const char *path, size_t limit, struct buf *out, struct err *err)
{
    if (!strstr(path, "/refs/"))
        return __real_file_read(path, limit, out, err);
    buf_format(out, "{\"image\": \"aa\", \"checked_ms\": %lld}", (long long)told.checked_ms);
    return 0;
}

/* The first `failing` pulls go on until they are given up, and end when they are let go. */
static struct {
    sem_t begun, given_up, go;
    atomic_int failing;
} pulls;

int __wrap_pull_run(struct pull *pull, struct err *err);

int __wrap_pull_run(struct pull *pull, struct err *err)
{
    enum { LONG_MS = 60000 };
    const bool is_failing = atomic_fetch_sub(&pulls.failing, 1) > 0;
    sem_post(&pulls.begun);
    pull->reason = "RegistryUnavailable";
    pull->is_final = false;
    if (!is_failing) {
        snprintf(pull->image_id, sizeof pull->image_id, "aa");
        return 0;
    }
    while (!pull->watch.is_stopping(pull->watch.context, LONG_MS))
        continue;
    sem_post(&pulls.given_up);
    sem_wait(&pulls.go);
    return err_fail(err, ERR_BUSY, "", "given up");
}

static void pass(int64_t ms)
{
    told.wall_ms += ms;
    told.boot_ms += ms;
}

static struct local_engine local;

/* An unpacked image that was used last at that time. */
static void image_put(const char *id, int64_t used_ms)
{
    char name[64];
    const struct timespec times[2] = {clock_moment(used_ms), clock_moment(used_ms)};
    snprintf(name, sizeof name, "images/%s/rootfs/file", id);
    folder_put(name, "");
    snprintf(name, sizeof name, "images/%s/image.json", id);
    folder_put(name, "{\"user\": \"\", \"cwd\": \"/\", \"env\": [], \"bytes\": 1000}");
    assert_int_equal(utimensat(AT_FDCWD, in_folder(name), times, 0), 0);
}

static int64_t image_used_ms(const char *id)
{
    char name[64];
    struct stat stat;
    snprintf(name, sizeof name, "images/%s/image.json", id);
    assert_int_equal(lstat(in_folder(name), &stat), 0);
    return (int64_t)stat.st_mtim.tv_sec * 1000;
}

static bool is_there(const char *id)
{
    char name[64];
    snprintf(name, sizeof name, "images/%s", id);
    return access(in_folder(name), F_OK) == 0;
}

static void engine_start(void)
{
    struct err err;
    memset(&local, 0, sizeof local);
    local.work.last = &local.work.first;
    local.config.image_fresh_s = FRESH_S;
    snprintf(local.directory, sizeof local.directory, "%s", in_folder(""));
    snprintf(local.run_directory, sizeof local.run_directory, "%s", in_folder("run"));
    pthread_mutex_init(&local.lock, NULL);
    pthread_cond_init(&local.has_work, NULL);
    local.images = images_new(&local, &err);
    assert_non_null(local.images);
}

static void engine_stop(void)
{
    images_stop(local.images);
    images_free(local.images);
    pthread_cond_destroy(&local.has_work);
    pthread_mutex_destroy(&local.lock);
}

static int clocks_begin(void **state)
{
    (void)state;
    told.wall_ms = begin;
    told.boot_ms = 5000;
    folder_put("run/file", "");
    return 0;
}

/* As the keeper does with a disk that is full, or short of space. */
static size_t collect(int64_t trusted_ms, uint64_t least_s, uint64_t bytes_wanted)
{
    return images_collect(local.images, trusted_ms / 1000, WEEK_S, least_s, bytes_wanted);
}

static void a_use_of_the_future_goes_when_space_is_wanted(void **state)
{
    (void)state;
    image_put("aa", begin + DAYS_MS(400));
    image_put("bb", begin + DAYS_MS(400));
    engine_start();
    assert_int_equal(collect(begin, HOUR_S, 1), 0);
    pass(30 * MINUTE_MS);
    assert_int_equal(collect(told.wall_ms, HOUR_S, 1), 0);
    assert_int_equal(collect(told.wall_ms, 0, 1), 1); /* no more than is wanted */
    pass(30 * MINUTE_MS);
    assert_int_equal(collect(told.wall_ms, HOUR_S, 1), 1);
    assert_false(is_there("aa") || is_there("bb"));
    engine_stop();
}

static void and_by_its_age_from_when_it_was_found(void **state)
{
    (void)state;
    image_put("aa", begin + DAYS_MS(400));
    engine_start();
    assert_int_equal(collect(begin, HOUR_S, 0), 0);
    pass(DAYS_MS(7));
    assert_int_equal(collect(told.wall_ms, HOUR_S, 0), 0);
    pass(MINUTE_MS);
    assert_int_equal(collect(told.wall_ms, HOUR_S, 0), 1);
    engine_stop();
}

/* A wall clock that is behind for a while makes nothing older than it is. */
static void a_clock_that_was_behind_leaves_ages_as_they_are(void **state)
{
    (void)state;
    image_put("aa", begin - DAYS_MS(6));
    engine_start();
    told.wall_ms -= DAYS_MS(400);
    assert_int_equal(collect(told.wall_ms, HOUR_S, 0), 0);
    pass(MINUTE_MS);
    assert_int_equal(collect(told.wall_ms, HOUR_S, 0), 0);
    told.wall_ms += DAYS_MS(400);
    assert_int_equal(collect(told.wall_ms, HOUR_S, 0), 0);
    pass(DAYS_MS(1));
    assert_int_equal(collect(told.wall_ms, HOUR_S, 0), 1);
    engine_stop();
}

static void nor_does_one_that_retention_does_not_believe_yet(void **state)
{
    (void)state;
    image_put("aa", begin - MINUTE_MS);
    image_put("bb", begin + DAYS_MS(400) - MINUTE_MS); /* used a minute ago, by that clock */
    engine_start();
    told.wall_ms += DAYS_MS(400);
    assert_int_equal(collect(begin, HOUR_S, 0), 0);
    assert_int_equal(collect(told.wall_ms, HOUR_S, 0), 1);
    assert_true(is_there("bb"));
    pass(DAYS_MS(8));
    assert_int_equal(collect(told.wall_ms, HOUR_S, 0), 1);
    engine_stop();
}

static void the_next_use_is_written_by_the_clock_of_then(void **state)
{
    (void)state;
    image_put("aa", begin + DAYS_MS(400));
    engine_start();
    struct image *image = images_adopt(local.images, "aa");
    assert_non_null(image);
    assert_int_equal(image_used_ms("aa"), begin);
    images_return(local.images, image);
    engine_stop();
}

/* Is the image used without a question to the registry? */
static bool is_fresh(int64_t checked_ms)
{
    struct container wanted = {.job = "alice~job",
                               .image = "registry.local/app",
                               .registry_user = "",
                               .registry_password = ""};
    struct task task = {.wanted = &wanted, .phase = TASK_WAITING};
    told.checked_ms = checked_ms;
    image_put("aa", told.wall_ms);
    engine_start();
    images_request(local.images, &task);
    const bool is_waiting = images_cancel(local.images, &task);
    assert_int_equal(is_waiting, !task.image);
    if (task.image)
        images_return(local.images, task.image);
    engine_stop();
    return !is_waiting;
}

static void a_check_of_the_future_is_not_fresh(void **state)
{
    (void)state;
    assert_true(is_fresh(begin));
    assert_true(is_fresh(begin - FRESH_S * 1000 + 1));
    assert_false(is_fresh(begin - FRESH_S * 1000));
    assert_false(is_fresh(begin + 1));
    assert_false(is_fresh(begin + DAYS_MS(400)));
}

/* Who asks for the image registry.local/NAME:latest, which has to be asked for. */
static struct container wanted_of(const char *job, const char *image)
{
    return (struct container){
        .job = job, .image = image, .registry_user = "", .registry_password = ""};
}

static void pulls_begin(int failing)
{
    told.checked_ms = 0;
    image_put("aa", told.wall_ms);
    atomic_store(&pulls.failing, failing);
    assert_int_equal(sem_init(&pulls.begun, 0, 0), 0);
    assert_int_equal(sem_init(&pulls.given_up, 0, 0), 0);
    assert_int_equal(sem_init(&pulls.go, 0, 0), 0);
    engine_start();
    local.config.pulls = 2;
}

static void await(sem_t *semaphore)
{
    while (sem_wait(semaphore) < 0)
        assert_int_equal(errno, EINTR);
}

/* Somebody wants an image whose pull is being given up: it is pulled once more for them. */
static void a_pull_that_is_given_up_is_begun_anew(void **state)
{
    (void)state;
    const struct container wanted = wanted_of("alice~job", "registry.local/app");
    struct task first = {.wanted = &wanted, .phase = TASK_WAITING}, second = first;
    pulls_begin(1);
    images_request(local.images, &first);
    await(&pulls.begun);
    assert_true(images_cancel(local.images, &first));
    await(&pulls.given_up);
    images_request(local.images, &second);
    sem_post(&pulls.go);
    await(&pulls.begun);
    images_stop(local.images); /* when the second pull has ended */
    assert_non_null(second.image);
    images_return(local.images, second.image);
    engine_stop();
}

/* Alice has all the places but one. What she waits for then is pulled for who asks for it as well.
 */
static void a_pull_begins_in_the_turn_of_whoever_waits(void **state)
{
    (void)state;
    const struct container one = wanted_of("alice~job", "registry.local/one");
    const struct container other = wanted_of("alice~job", "registry.local/other");
    const struct container same = wanted_of("bob~job", "registry.local/other");
    struct task slow = {.wanted = &one, .phase = TASK_WAITING};
    struct task waiting = {.wanted = &other, .phase = TASK_WAITING};
    struct task quick = {.wanted = &same, .phase = TASK_WAITING};
    pulls_begin(1);
    images_request(local.images, &slow);
    await(&pulls.begun);
    images_request(local.images, &waiting);
    images_request(local.images, &quick);
    await(&pulls.begun);
    assert_true(images_cancel(local.images, &slow));
    await(&pulls.given_up);
    sem_post(&pulls.go);
    images_stop(local.images);
    assert_ptr_equal(waiting.image, quick.image);
    assert_non_null(quick.image);
    images_return(local.images, waiting.image);
    images_return(local.images, quick.image);
    engine_stop();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(a_use_of_the_future_goes_when_space_is_wanted, clocks_begin),
    cmocka_unit_test_setup(and_by_its_age_from_when_it_was_found, clocks_begin),
    cmocka_unit_test_setup(a_clock_that_was_behind_leaves_ages_as_they_are, clocks_begin),
    cmocka_unit_test_setup(nor_does_one_that_retention_does_not_believe_yet, clocks_begin),
    cmocka_unit_test_setup(the_next_use_is_written_by_the_clock_of_then, clocks_begin),
    cmocka_unit_test_setup(a_check_of_the_future_is_not_fresh, clocks_begin),
    cmocka_unit_test_setup(a_pull_that_is_given_up_is_begun_anew, clocks_begin),
    cmocka_unit_test_setup(a_pull_begins_in_the_turn_of_whoever_waits, clocks_begin),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
