/* Who follows a log is woken when it grows. */
#include "folder.h"
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/log_watch.h"
#include "sys/file.h"

/* How many inotify instances we hold, and how many watches are in them. */
static void inotify_count(size_t *instances, size_t *watches)
{
    *instances = *watches = 0;
    for (int fd = 0; fd < 4096; fd++) {
        char path[64];
        struct buf text = BUF_INIT;
        snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
        struct text rest;
        if (file_read(path, 1 << 20, &text, NULL) == 0) {
            snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
            char target[64] = "";
            if (readlink(path, target, sizeof target - 1) > 0 && strstr(target, "inotify"))
                ++*instances;
            for (rest = buf_as_text(&text); rest.length;)
                *watches += text_starts(text_cut(&rest, '\n'), TEXT("inotify wd:"));
        }
        buf_release(&text);
    }
}

/* Who is to be awake is waited for: on a busy machine the thread that wakes may come late. */
static void assert_awake(int fd, bool is_awake)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, is_awake ? -1 : 0), is_awake);
}

static void append(const char *name)
{
    int fd = open(in_folder(name), O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
}

static void test_log_watch(void **state)
{
    (void)state;
    struct err err = {0};
    char byte[8];
    folder_put("watch/all.000000000000000", "");
    folder_put("watch2/all.000000000000000", "");
    struct log_watch *watch = log_watch_new(&err);
    assert_non_null(watch);
    const int first = log_watch_add(watch, in_folder("watch"), &err);
    const int second = log_watch_add(watch, in_folder("watch"), &err);
    const int other = log_watch_add(watch, in_folder("watch2"), &err);
    assert_true(first >= 0 && second >= 0 && other >= 0);
    assert_awake(first, false);
    append("watch/all.000000000000000");
    assert_awake(first, true);
    assert_awake(second, true);
    assert_awake(other, false);
    close(first);
    assert_int_equal(read(second, byte, sizeof byte) > 0, true);
    append("watch/all.000000000000000");
    assert_awake(second, true);
    assert_int_equal(log_watch_add(watch, in_folder("nowhere"), &err), ERR_NOT_FOUND);
    close(second);
    close(other);
    log_watch_free(watch);
}

/* Root has 128 inotify instances for all of its programs. */
static void test_log_watch_of_many(void **state)
{
    (void)state;
    enum { FOLLOWERS = 500, FOLDERS = 50 };
    int fds[FOLLOWERS];
    char name[64];
    struct err err = {0};
    size_t instances, watches, instances_before, watches_before;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &files);
    inotify_count(&instances_before, &watches_before);
    struct log_watch *watch = log_watch_new(&err);
    assert_non_null(watch);
    for (int i = 0; i < FOLLOWERS; i++) {
        snprintf(name, sizeof name, "many/%d/all.000000000000000", i % FOLDERS);
        if (i < FOLDERS)
            folder_put(name, "");
        snprintf(name, sizeof name, "many/%d", i % FOLDERS);
        fds[i] = log_watch_add(watch, in_folder(name), &err);
        assert_true(fds[i] >= 0);
    }
    inotify_count(&instances, &watches);
    assert_int_equal(instances - instances_before, 1);
    assert_int_equal(watches - watches_before, FOLDERS);
    append("many/7/all.000000000000000");
    for (int i = 7; i < FOLLOWERS; i += FOLDERS)
        assert_awake(fds[i], true);
    for (int i = 0; i < FOLLOWERS; i++)
        close(fds[i]);
    while (watches > watches_before) /* with the last reader goes the watch of a folder */
        inotify_count(&instances, &watches);
    log_watch_free(watch);
}

/* In a process of its own: watch two folders, be stopped, and be woken for both. */
static int watch_through_a_flood(void)
{
    struct err err = {0};
    struct log_watch *watch = log_watch_new(&err);
    if (!watch)
        return 1;
    const int loud = log_watch_add(watch, in_folder("loud"), &err);
    const int quiet = log_watch_add(watch, in_folder("quiet"), &err);
    if (loud < 0 || quiet < 0)
        return 2;
    raise(SIGSTOP);
    struct pollfd both[] = {{.fd = loud, .events = POLLIN}, {.fd = quiet, .events = POLLIN}};
    for (size_t i = 0; i < COUNT_OF(both); i++)
        if (poll(&both[i], 1, -1) != 1)
            return 3;
    close(loud);
    close(quiet);
    log_watch_free(watch);
    return 0;
}

/* The kernel keeps a number of events, and says only that others are lost. */
static void test_log_watch_when_events_are_lost(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    int64_t most = 0;
    int status;
    assert_int_equal(file_read("/proc/sys/fs/inotify/max_queued_events", 64, &text, NULL), 0);
    assert_true(text_to_int64(text_trim(buf_as_text(&text)), &most));
    buf_release(&text);
    folder_put("loud/all.000000000000000", "");
    folder_put("loud/stdout.000000000000000", "");
    folder_put("quiet/all.000000000000000", "");
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(watch_through_a_flood());
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    for (int64_t i = 0; i <= most / 2; i++) { /* two files in turn: equal events in a row are one */
        append("loud/all.000000000000000");
        append("loud/stdout.000000000000000");
    }
    append("quiet/all.000000000000000");
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* In a process of its own: how often the follower of a folder that was written to while this was
 * stopped is woken. */
static int wakes_count(void)
{
    char bytes[64];
    struct err err = {0};
    struct log_watch *watch = log_watch_new(&err);
    if (!watch)
        return 0;
    const int follower = log_watch_add(watch, in_folder("long"), &err);
    const int last = log_watch_add(watch, in_folder("last"), &err);
    raise(SIGSTOP);
    struct pollfd poll_fd = {.fd = last, .events = POLLIN};
    if (poll(&poll_fd, 1, -1) != 1) /* then all before is told */
        return 0;
    const ssize_t got = read(follower, bytes, sizeof bytes);
    close(follower);
    close(last);
    log_watch_free(watch);
    return (int)got;
}

/* What is read at once is told once. A later read may find what was written after the follower had
 * looked: it is told anew, though the folder is the same. */
static void test_log_watch_tells_each_read(void **state)
{
    (void)state;
    int status;
    folder_put("long/a", "");
    folder_put("long/b", "");
    folder_put("last/a", "");
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(wakes_count());
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    for (int i = 0; i < 1024; i++) { /* more than one read takes */
        append("long/a");
        append("long/b");
    }
    append("last/a");
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_in_range(WEXITSTATUS(status), 2, 64);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_log_watch),
    cmocka_unit_test(test_log_watch_when_events_are_lost),
    cmocka_unit_test(test_log_watch_of_many),
    cmocka_unit_test(test_log_watch_tells_each_read),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
