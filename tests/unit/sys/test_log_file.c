/* The newest lines of the log are written while others have filled the disk. */
#include "folder.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/log_file.h"

enum { FILE_BYTES = 16 << 10, LINE_BYTES = 64, LINES_A_FILE = FILE_BYTES / LINE_BYTES };

static void the_size_follows_the_disk(void **state)
{
    (void)state;
    assert_int_equal(log_file_bytes(0), FILE_BYTES);
    assert_int_equal(log_file_bytes(1 << 30), 2 << 20);
    assert_int_equal(log_file_bytes(UINT64_C(1) << 50), 8 << 20);
}

static void line_write(struct log_keeper *file, unsigned number)
{
    char line[LINE_BYTES + 1];
    snprintf(line, sizeof line, "%0*u\n", LINE_BYTES - 1, number);
    log_file_write(file, text_of(line));
}

static bool has_line(const char *name, unsigned number)
{
    char line[LINE_BYTES + 1];
    cleanup_buf struct buf text = BUF_INIT;
    snprintf(line, sizeof line, "%0*u\n", LINE_BYTES - 1, number);
    file_read(in_folder(name), 16 << 20, &text, NULL);
    return text_find(buf_as_text(&text), text_of(line)) != SIZE_MAX;
}

static void fill(void)
{
    static const char block[4096];
    const int fd = open(in_folder("disk/filler"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0);
    while (write(fd, block, sizeof block) > 0)
        ;
    assert_int_equal(errno, ENOSPC);
    close(fd);
}

static unsigned blocks_of(const char *name)
{
    struct stat status;
    assert_int_equal(stat(in_folder(name), &status), 0);
    return (unsigned)(status.st_blocks * 512);
}

/* All lines are there until the space of both files is used; then what was written stays. */
static void a_full_disk_takes_no_line(void)
{
    struct log_keeper *file;
    struct err err;
    char directory[300];
    snprintf(directory, sizeof directory, "%s", in_folder("disk/log"));
    assert_int_equal(log_file_open(directory, &file, &err), 0);
    assert_int_equal(blocks_of("disk/log/skepd.log"), FILE_BYTES);
    assert_int_equal(blocks_of("disk/log/skepd.log.next"), FILE_BYTES);
    line_write(file, 1);
    fill();
    for (unsigned i = 2; i <= 2 * LINES_A_FILE; i++)
        line_write(file, i);
    assert_true(has_line("disk/log/skepd.log.1", 1));
    assert_true(has_line("disk/log/skepd.log.1", LINES_A_FILE));
    assert_true(has_line("disk/log/skepd.log", LINES_A_FILE + 1));
    assert_true(has_line("disk/log/skepd.log", 2 * LINES_A_FILE));
    /* the disk is still full: the oldest file's space is what the next one has */
    for (unsigned i = 0; i < 3 * LINES_A_FILE; i++)
        line_write(file, 5000 + i);
    assert_true(has_line("disk/log/skepd.log", 5000 + 3 * LINES_A_FILE - 1));
    assert_int_equal(unlink(in_folder("disk/filler")), 0);
    log_file_close(file);
}

/* A server that starts on a full disk has no space of its own yet, and takes it when there is some.
 */
static void space_is_taken_later(void)
{
    struct log_keeper *file;
    struct err err;
    char directory[300];
    snprintf(directory, sizeof directory, "%s", in_folder("disk/late"));
    assert_int_equal(mkdir(directory, 0700), 0);
    fill();
    assert_int_equal(log_file_open(directory, &file, &err), 0);
    assert_int_equal(access(in_folder("disk/late/skepd.log.next"), F_OK), -1);
    line_write(file, 1);
    assert_int_equal(unlink(in_folder("disk/filler")), 0);
    for (unsigned i = 0; i < 4096 / LINE_BYTES; i++)
        line_write(file, i);
    assert_int_equal(blocks_of("disk/late/skepd.log.next"), FILE_BYTES);
    log_file_close(file);
}

/* On a small disk of its own, which ends with the process. */
static void lines_are_kept_on_a_full_disk(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir(in_folder("disk"), 0700), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("disk", in_folder("disk"), "tmpfs", 0, "size=1m") < 0)
            _exit(77);
        a_full_disk_takes_no_line();
        space_is_taken_later();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

static void it_goes_on_where_it_was(void **state)
{
    struct log_keeper *file;
    struct err err;
    struct stat status;
    char directory[300];
    (void)state;
    snprintf(directory, sizeof directory, "%s", in_folder("log"));
    for (unsigned i = 1; i <= 2; i++) {
        assert_int_equal(log_file_open(directory, &file, &err), 0);
        line_write(file, i);
        log_file_close(file);
    }
    assert_true(has_line("log/skepd.log", 1) && has_line("log/skepd.log", 2));
    assert_int_equal(stat(in_folder("log/skepd.log"), &status), 0);
    assert_int_equal(status.st_size, 2 * LINE_BYTES);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(log_file_open("/proc/nowhere", &file, &err), ERR_IO);
}

static void *lines_write(void *context)
{
    (void)context;
    for (unsigned i = 0; i < 500; i++)
        log_info("test", "line %u", i);
    return NULL;
}

/* What goes to standard error is there as well, whole lines of all threads. */
static void the_log_is_kept(void **state)
{
    struct log_keeper *file;
    struct err err;
    char directory[300];
    pthread_t threads[4];
    cleanup_buf struct buf text = BUF_INIT;
    (void)state;
    snprintf(directory, sizeof directory, "%s", in_folder("kept"));
    assert_int_equal(log_file_open(directory, &file, &err), 0);
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    log_to(null);
    log_keep(file);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, lines_write, NULL), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    log_keep(NULL);
    log_to(2);
    close(null);
    log_file_close(file);
    assert_int_equal(file_read(in_folder("kept/skepd.log"), 1 << 20, &text, &err), 0);
    unsigned count = 0;
    for (struct text rest = buf_as_text(&text); rest.length > 0; count++) {
        const struct text line = text_cut(&rest, '\n');
        assert_true(text_starts(line, TEXT("{\"time\":")) && line.at[line.length - 1] == '}');
    }
    assert_int_equal(count, 2000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_size_follows_the_disk),
    cmocka_unit_test(lines_are_kept_on_a_full_disk),
    cmocka_unit_test(it_goes_on_where_it_was),
    cmocka_unit_test(the_log_is_kept),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
