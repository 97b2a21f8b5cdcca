/* A backup is whole whatever goes on beside it, and a restore gives it back. */
#include "../world.h"
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "store/read.h"
#include "store/sqlite/backup.h"
#include "store/store.h"
#include "sys/file.h"
#include "sys/log.h"

#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"

static char *in(struct world *world, const char *name)
{
    return arena_format(&world->arena, "%s/%s", world->directory, name);
}

static int setup_key(void **state)
{
    int code = setup(state);
    struct world *world = *state;

    assert_int_equal(file_write(in(world, "key"), TEXT(KEY), 0600, &world->err), 0);
    return code;
}

static void job_store(struct world *world, uint32_t id)
{
    add_submitted(world, id, "alice", arena_format(&world->output.arena, "j%u", id));
    add_task(world, task_of(id, 1, 1, id));
    assert_int_equal(commit(world, NULL, 0), 0);
}

static int backup(struct world *world, const char *name)
{
    uint64_t bytes = 0;
    int code = store_backup(world->directory, in(world, name), &bytes, &world->err);

    assert_true(code < 0 || bytes > 4096);
    return code;
}

static int restore(struct world *world, const char *name, const char *to, bool replaces)
{
    return store_restore_backup(in(world, name), in(world, to), replaces, &world->err);
}

/* Files of the folder that begin with `name`. */
static int file_count(struct world *world, const char *name)
{
    char command[300];
    int count = -1;
    FILE *pipe;

    snprintf(command, sizeof command, "ls -d %s/%s* 2>/dev/null | wc -l", world->directory, name);
    pipe = popen(command, "r");
    assert_int_equal(fscanf(pipe, "%d", &count), 1);
    pclose(pipe);
    return count;
}

static void open_at(struct world *other, struct world *world, const char *name)
{
    assert_true((size_t)snprintf(other->directory, sizeof other->directory, "%s/%s",
                                 world->directory, name) < sizeof other->directory);
    arena_init(&other->arena);
    output_init(&other->output);
    world_open(other);
}

static void close_at(struct world *other)
{
    world_close(other);
    arena_release(&other->arena);
    output_release(&other->output);
}

static void check_jobs(struct world *world, uint32_t last)
{
    struct store_job row;
    struct store_tasks tasks;

    for (uint32_t i = 1; i <= last; i++) {
        assert_int_equal(
            store_job_read(world->reader, (struct job_id){i}, &world->arena, &row, &world->err), 0);
        assert_int_equal(
            store_tasks(world->reader, (struct job_id){i}, -1, &world->arena, &tasks, &world->err),
            0);
        assert_int_equal(tasks.items[2].attempt.v, i);
    }
    assert_int_equal(
        store_job_read(world->reader, (struct job_id){last + 1}, &world->arena, &row, &world->err),
        ERR_NOT_FOUND);
}

static void a_backup_is_restored_elsewhere(void **state)
{
    struct world *world = *state, other = {0};
    struct buf key = BUF_INIT;
    struct stat status;

    for (uint32_t i = 1; i <= 5; i++)
        job_store(world, i);
    assert_int_equal(backup(world, "copy"), 0);
    assert_int_equal(stat(in(world, "copy"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(file_count(world, "copy"), 1); /* no log and nothing half made beside it */
    /* by its header it needs no log: it can be read where nobody can write */
    assert_int_equal(file_read(in(world, "copy"), 64 << 20, &key, &world->err), 0);
    assert_true(key.at[18] == 1 && key.at[19] == 1);
    buf_clear(&key);
    job_store(world, 6);
    assert_int_equal(restore(world, "copy", "new", false), 0);
    open_at(&other, world, "new");
    check_jobs(&other, 5);
    assert_int_equal(store_check(other.store, &other.err), 0);
    assert_int_equal(store_epoch_of(other.store, (struct job_id){1000001}).number, 1);
    assert_int_equal(file_read(in(&other, "key"), 100, &key, &other.err), 0);
    assert_true(text_is(buf_as_text(&key), KEY));
    assert_int_equal(stat(in(&other, "key"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    buf_release(&key);
    close_at(&other);
    /* the key stands in its file only */
    assert_int_equal(file_read(in(world, "new/skep.db"), 64 << 20, &key, &world->err), 0);
    assert_null(memmem(key.at, key.length, KEY, 64));
    buf_release(&key);
    open_at(&other, world, "new"); /* like any other database */
    assert_int_equal(store_epoch_of(other.store, (struct job_id){1000001}).number, 1);
    close_at(&other);
}

/* What was restored is a database like any other: also for the next backup. */
static void a_restored_database_is_backed_up(void **state)
{
    struct world *world = *state, other = {0};
    uint64_t bytes;

    job_store(world, 1);
    assert_int_equal(backup(world, "copy"), 0);
    assert_int_equal(restore(world, "copy", "new", false), 0);
    open_at(&other, world, "new");
    job_store(&other, 1000001);
    assert_int_equal(store_backup(in(world, "new"), in(world, "second"), &bytes, &world->err), 0);
    close_at(&other);
    assert_int_equal(restore(world, "second", "newer", false), 0);
    open_at(&other, world, "newer");
    assert_int_equal(store_check(other.store, &other.err), 0);
    job_store(&other, 2000001);
    close_at(&other);
}

/* As after a kill: the folder holds a log that no server has open any more. */
static void killed_make(struct world *world, const char *name)
{
    assert_int_equal(system(arena_format(&world->arena,
                                         "cd %s && mkdir %s && cp skep.db skep.db-wal key mark %s",
                                         world->directory, name, name)),
                     0);
}

static int64_t file_size(struct world *world, const char *name)
{
    struct stat status;
    return stat(in(world, name), &status) == 0 ? status.st_size : -1;
}

/* A backup looks, and changes nothing: what is wrong with a database can still be examined. What
 * stands in its log only is in the backup. */
static void a_backup_leaves_the_log_of_a_killed_server(void **state)
{
    struct world *world = *state, other = {0};
    uint64_t bytes;
    int64_t before;

    job_store(world, 1);
    killed_make(world, "killed");
    before = file_size(world, "killed/skep.db-wal");
    assert_true(before > 0);
    assert_int_equal(store_backup(in(world, "killed"), in(world, "copy"), &bytes, &world->err), 0);
    assert_int_equal(file_size(world, "killed/skep.db-wal"), before);
    assert_int_equal(restore(world, "copy", "new", false), 0);
    open_at(&other, world, "new");
    check_jobs(&other, 1);
    close_at(&other);
}

/* The log of what was there belongs to what was there, and so does a log or a key alone. */
static void a_restore_puts_a_log_away(void **state)
{
    struct world *world = *state, other = {0};

    job_store(world, 1);
    assert_int_equal(backup(world, "copy"), 0);
    job_store(world, 2);
    killed_make(world, "killed");
    assert_int_equal(restore(world, "copy", "killed", true), 0);
    assert_int_equal(file_size(world, "killed/skep.db-wal"), -1);
    assert_int_equal(file_count(world, "killed/replaced-*/skep.db-wal"), 1);
    open_at(&other, world, "killed");
    check_jobs(&other, 1);
    close_at(&other);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "with-key" : "with-log";
        assert_int_equal(
            system(arena_format(&world->arena, "cd %s && mkdir %s && cp %s %s", world->directory,
                                name, i ? "key" : "skep.db-wal", name)),
            0);
        assert_int_equal(restore(world, "copy", name, false), ERR_CONFLICT);
        assert_int_equal(restore(world, "copy", name, true), 0);
    }
}

/* A damaged database, or one of another program, gives no backup. */
static void what_is_damaged_is_not_backed_up(void **state)
{
    struct world *world = *state;
    struct buf bytes = BUF_INIT;
    uint64_t size;

    for (uint32_t i = 1; i <= 50; i++)
        job_store(world, i);
    world_close(world);
    assert_int_equal(system(arena_format(&world->arena,
                                         "cd %s && mkdir torn other && cp key torn "
                                         "&& cp key other",
                                         world->directory)),
                     0);
    assert_int_equal(file_read(in(world, "skep.db"), 64 << 20, &bytes, &world->err), 0);
    memset(bytes.at + bytes.length / 2, 0x5a, 12288);
    assert_int_equal(file_write(in(world, "torn/skep.db"), buf_as_text(&bytes), 0600, NULL), 0);
    buf_release(&bytes);
    assert_int_equal(store_backup(in(world, "torn"), in(world, "copy"), &size, &world->err),
                     ERR_CORRUPT);
    assert_int_equal(file_count(world, "copy"), 0);
    {
        sqlite3 *db;
        assert_int_equal(sqlite3_open(in(world, "other/skep.db"), &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, "CREATE TABLE t (a)", NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
    }
    assert_true(store_backup(in(world, "other"), in(world, "copy"), &size, &world->err) < 0);
    assert_int_equal(file_count(world, "copy"), 0);
    world_open(world);
}

static uint32_t job_count(struct world *world)
{
    uint32_t count = 0;

    while (store_job_summary(world->store, (struct job_id){count + 1}, &world->arena,
                             &(struct store_job){0}, &world->err) == 0)
        count++;
    return count;
}

struct writer {
    struct world *world;
    _Atomic bool is_ending;
    uint32_t last;
};

static void *writer_run(void *argument)
{
    struct writer *writer = argument;

    while (!atomic_load(&writer->is_ending))
        job_store(writer->world, ++writer->last);
    return NULL;
}

static void backups_are_whole_while_others_write(void **state)
{
    struct world *world = *state;
    struct writer writer = {.world = world};
    struct arena names;
    uint32_t last = 0;
    pthread_t thread;

    arena_init(&names); /* the world's is the writer's */
    assert_int_equal(pthread_create(&thread, NULL, writer_run, &writer), 0);
    for (int i = 0; i < 8; i++) {
        char *path = arena_format(&names, "%s/copy%d", world->directory, i);
        char *to = arena_format(&names, "%s/new%d", world->directory, i);
        struct world other = {0};
        uint64_t bytes;
        uint32_t jobs;
        assert_int_equal(store_backup(world->directory, path, &bytes, &other.err), 0);
        assert_int_equal(store_restore_backup(path, to, false, &other.err), 0);
        snprintf(other.directory, sizeof other.directory, "%s", to);
        arena_init(&other.arena);
        output_init(&other.output);
        world_open(&other);
        /* a state between two commits, with a try for each job */
        jobs = job_count(&other);
        assert_true(jobs >= last);
        last = jobs;
        check_jobs(&other, jobs);
        close_at(&other);
    }
    atomic_store(&writer.is_ending, true);
    pthread_join(thread, NULL);
    arena_release(&names);
}

static void what_is_there_is_not_overwritten(void **state)
{
    struct world *world = *state;
    pid_t child;
    int status;

    job_store(world, 1);
    assert_int_equal(backup(world, "copy"), 0);
    assert_int_equal(backup(world, "copy"), ERR_CONFLICT);
    job_store(world, 2);
    if ((child = fork()) == 0) /* the lock is of this process */
        _exit(restore(world, "copy", ".", true) == ERR_CONFLICT && strstr(world->err.text, "in use")
                  ? 0
                  : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    world_close(world);
    assert_int_equal(restore(world, "copy", ".", false), ERR_CONFLICT);
    assert_non_null(strstr(world->err.text, "--replace"));
    world_open(world);
    check_jobs(world, 2); /* nothing has changed */
    world_close(world);
    assert_int_equal(restore(world, "copy", ".", true), 0);
    assert_int_equal(file_count(world, "replaced-*/skep.db"), 1);
    assert_int_equal(file_count(world, "replaced-*/key"), 1);
    world_open(world);
    check_jobs(world, 1);
    job_store(world, 1000001);
    world_close(world);
    /* a second restore of the same backup gives no number of the first again */
    assert_int_equal(system(arena_format(&world->arena, "rm -r %s/replaced-*", world->directory)),
                     0);
    assert_int_equal(restore(world, "copy", ".", true), 0);
    world_open(world);
    job_store(world, 2000001);
}

static void what_is_no_backup_is_refused(void **state)
{
    struct world *world = *state;
    struct buf bytes = BUF_INIT;

    job_store(world, 1);
    assert_int_equal(restore(world, "nowhere", "new", false), ERR_NOT_FOUND);
    assert_int_equal(file_write(in(world, "text"), TEXT("hello, this is a text"), 0600, NULL), 0);
    assert_int_equal(restore(world, "text", "new", false), ERR_CORRUPT);
    assert_int_equal(backup(world, "copy"), 0);
    world_close(world);
    assert_int_equal(restore(world, "skep.db", "new", false), ERR_CORRUPT); /* without a key */
    assert_non_null(strstr(world->err.text, "not a backup"));
    assert_int_equal(file_read(in(world, "copy"), 64 << 20, &bytes, &world->err), 0);
    memset(bytes.at + bytes.length / 2, 0x5a, 12288);
    assert_int_equal(file_write(in(world, "torn"), buf_as_text(&bytes), 0600, NULL), 0);
    assert_int_equal(restore(world, "torn", "new", false), ERR_CORRUPT);
    buf_release(&bytes);
    assert_int_equal(file_count(world, "new"), 0);
    /* a backup that somebody copied by hand is not started from: its key is not in place */
    assert_int_equal(system(arena_format(&world->arena,
                                         "cd %s && cp skep.db kept && cp copy "
                                         "skep.db",
                                         world->directory)),
                     0);
    assert_int_equal(store_open(world->directory, &world->store, &world->err), ERR_CORRUPT);
    assert_non_null(strstr(world->err.text, "--restore"));
    assert_int_equal(
        system(arena_format(&world->arena, "cd %s && mv kept skep.db", world->directory)), 0);
    world_open(world);
}

static void a_backup_that_cannot_be_made_leaves_nothing(void **state)
{
    struct world *world = *state;
    uint64_t bytes;

    job_store(world, 1);
    assert_int_equal(backup(world, "nowhere/copy"), ERR_IO);
    assert_int_equal(unlink(in(world, "key")), 0);
    assert_int_equal(backup(world, "copy"), ERR_NOT_FOUND);
    assert_int_equal(file_count(world, "copy"), 0);
    assert_int_equal(store_backup("/nonexistent", in(world, "copy"), &bytes, &world->err),
                     ERR_NOT_FOUND);
}

/* --- a restore that is cut off --- */

enum { CUT = 77 };
static int
    cut_after; /* so many more of the calls below are made in this process; then it is gone */

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path);

static void cut_count(void)
{
    if (cut_after > 0 && --cut_after == 0)
        _exit(CUT);
}

int __wrap_rename(const char *from, const char *to)
{
    cut_count();
    return __real_rename(from, to);
}

int __wrap_fsync(int fd)
{
    cut_count();
    return __real_fsync(fd);
}

int __wrap_rmdir(const char *path)
{
    cut_count();
    return __real_rmdir(path);
}

/* How a process ends that restores `copy` over `to`, and is cut off before the call of that number,
 * or may write `most` bytes into a file. */
static int restore_beside(struct world *world, const char *to, int cut, rlim_t most)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct err err;
        cut_after = cut;
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, most});
        _exit(-store_restore_backup(in(world, "copy"), in(world, to), true, &err));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The jobs that the next start finds, and whether the key is the one beside which they were. */
static uint32_t jobs_found(struct world *world, const char *name)
{
    struct world other = {0};
    cleanup_buf struct buf key = BUF_INIT;
    open_at(&other, world, name);
    const uint32_t jobs = job_count(&other);
    assert_int_equal(file_read(in(&other, "key"), 100, &key, &other.err), 0);
    assert_int_equal(text_is(buf_as_text(&key), KEY), jobs == 1);
    close_at(&other);
    return jobs;
}

/* A backup of one job with one key, and a directory with two jobs and another key. */
static void old_and_new_make(struct world *world)
{
    job_store(world, 1);
    assert_int_equal(backup(world, "copy"), 0);
    job_store(world, 2);
    assert_int_equal(file_write(in(world, "key"), TEXT("another\n"), 0600, &world->err), 0);
}

/* Whatever it is that is done last, the directory has the old database or the new one, whole and
 * with its key, and the old one is there in either case. */
static void a_restore_that_is_cut_off_leaves_the_old_or_the_new(void **state)
{
    struct world *world = *state;
    int code = CUT;
    uint32_t last = 2, found;

    old_and_new_make(world);
    for (int cut = 1; code == CUT; cut++) {
        char *name = arena_format(&world->arena, "cut%d", cut);
        killed_make(world, name);
        code = restore_beside(world, name, cut, RLIM_INFINITY);
        assert_true(code == 0 || code == CUT);
        found = jobs_found(world, name);
        assert_true(found == 2 ? last == 2 : found == 1); /* once it is new it stays */
        last = found;
        assert_int_equal(file_count(world, arena_format(&world->arena, "%s/replaced-*/key", name)),
                         found == 1);
        assert_int_equal(restore_beside(world, name, 0, RLIM_INFINITY), 0);
        assert_int_equal(jobs_found(world, name), 1);
        assert_int_equal(file_count(world, arena_format(&world->arena, "%s/restore.ready", name)),
                         0);
    }
    assert_int_equal(last, 1);
}

/* The next start is to go on with it: until then nobody takes what lies there for the database. */
static void nothing_is_backed_up_while_a_restore_is_cut_off(void **state)
{
    struct world *world = *state;
    uint64_t bytes;
    int cut = 1;

    old_and_new_make(world);
    do {
        assert_int_equal(
            system(arena_format(&world->arena, "cd %s && rm -rf cut", world->directory)), 0);
        killed_make(world, "cut");
        assert_int_equal(restore_beside(world, "cut", cut++, RLIM_INFINITY), CUT);
    } while (access(in(world, "cut/skep.db"), F_OK) == 0);
    assert_int_equal(store_backup(in(world, "cut"), in(world, "second"), &bytes, &world->err),
                     ERR_CONFLICT);
    assert_int_equal(file_count(world, "second"), 0);
    assert_int_equal(jobs_found(world, "cut"), 1);
}

static void a_restore_without_room_changes_nothing(void **state)
{
    struct world *world = *state;

    old_and_new_make(world);
    for (rlim_t most = 4096; most < (rlim_t)file_size(world, "copy"); most *= 2) {
        char *name = arena_format(&world->arena, "full%d", (int)most);
        killed_make(world, name);
        assert_true(restore_beside(world, name, 0, most) != 0);
        assert_int_equal(file_count(world, arena_format(&world->arena, "%s/restore.ready", name)),
                         0);
        assert_int_equal(jobs_found(world, name), 2);
    }
}

/* Somebody has put a backup there under this name: it is not put in place of what runs. */
static void what_no_restore_has_made_is_left_alone(void **state)
{
    struct world *world = *state;

    old_and_new_make(world);
    killed_make(world, "own");
    assert_int_equal(system(arena_format(&world->arena,
                                         "cd %s && mkdir own/restore.ready && cp copy "
                                         "own/restore.ready/skep.db",
                                         world->directory)),
                     0);
    assert_int_equal(store_restore_backup(in(world, "copy"), in(world, "own"), true, &world->err),
                     ERR_CONFLICT);
    assert_non_null(strstr(world->err.text, "restore.ready"));
    assert_int_equal(
        system(arena_format(&world->arena, "rm -r %s/own/restore.ready", world->directory)), 0);
    assert_int_equal(jobs_found(world, "own"), 2);
}

static int quiet(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, LOG_TEXT);
    return 0;
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup_key, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(a_backup_is_restored_elsewhere),
    WORLD(backups_are_whole_while_others_write),
    WORLD(what_is_there_is_not_overwritten),
    WORLD(what_is_no_backup_is_refused),
    WORLD(a_restored_database_is_backed_up),
    WORLD(a_backup_leaves_the_log_of_a_killed_server),
    WORLD(a_restore_puts_a_log_away),
    WORLD(what_is_damaged_is_not_backed_up),
    WORLD(a_backup_that_cannot_be_made_leaves_nothing),
    WORLD(a_restore_that_is_cut_off_leaves_the_old_or_the_new),
    WORLD(nothing_is_backed_up_while_a_restore_is_cut_off),
    WORLD(a_restore_without_room_changes_nothing),
    WORLD(what_no_restore_has_made_is_left_alone),
};
UNIT_FILE(tests, quiet, NULL);
