/* backup.c — see backup.h. */
#include "store/sqlite/backup.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "store/directory.h"
#include "store/sqlite/connection.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Folders in the data directory of a backup that is put in place: while it is copied, when it is
 * whole, and in there what it takes the place of. */
#define COMING   "restore.part"
#define COME     "restore.ready"
#define REPLACED "replaced"

enum { STEP_PAGES = 1000, KEY_BYTES_MAX = 1000, COPY_BYTES = 1 << 20, REPLACED_NAMES = 100 };

static int path_make(char path[PATH_MAX], const char *directory, const char *name, struct err *err)
{
    assert(directory && name);
    if ((size_t)snprintf(path, PATH_MAX, "%s/%s", directory, name) >= PATH_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "%.80s…: the path is too long", directory);
    return 0;
}

static int file_sync(const char *path, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return err_errno(err, errno, "fsync %s", path);
    return 0;
}

/* A file of ours beside `path`, empty; `beside` gets its name. */
static int file_begin(const char *path, char beside[PATH_MAX], struct err *err)
{
    cleanup_close int fd = -1;
    if ((size_t)snprintf(beside, PATH_MAX, "%s.XXXXXX", path) >= PATH_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "%.80s…: the path is too long", path);
    fd = mkostemp(beside, O_CLOEXEC); /* mode 0600 */
    return fd < 0 ? err_errno(err, errno, "create %s", beside) : 0;
}

static int parent_sync(const char *path, struct err *err)
{
    assert(*path);
    cleanup_free char *parent = mem_copy(path);
    char *slash = strrchr(parent, '/');
    if (!slash)
        return dir_sync(".", err);
    slash[slash == parent] = '\0';
    return dir_sync(parent, err);
}

/* --- making one --- */

/* The whole database as of now, however long it takes: others go on beside it. */
static int pages_copy(sqlite3 *from, sqlite3 *to, struct err *err)
{
    assert(from != to);
    int code = sqlite_execute(from, "BEGIN", err), step;
    int64_t tables;
    if (code == 0) /* takes the snapshot */
        code = sqlite_number(from, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (code < 0)
        return code;
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    if (!backup)
        return sqlite_fail(to, err, "backup");
    do
        step = sqlite3_backup_step(backup, STEP_PAGES);
    while (step == SQLITE_OK);
    sqlite3_backup_finish(backup);
    if (step != SQLITE_DONE)
        code = sqlite_fail(sqlite3_errcode(to) != SQLITE_OK ? to : from, err, "backup");
    sqlite3_exec(from, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

/* The key of the directory into a table of its own. */
static int key_insert(sqlite3 *db, const struct buf *key, struct err *err)
{
    assert(key->at || key->length == 0);
    int code = sqlite_execute(
        db, "CREATE TABLE backup (name TEXT PRIMARY KEY, content BLOB NOT NULL)", err);
    if (code < 0)
        return code;
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v2(db, "INSERT INTO backup VALUES ('key', ?)", -1, &stmt, NULL) !=
        SQLITE_OK)
        return sqlite_fail(db, err, "backup");
    sqlite3_bind_blob64(stmt, 1, buf_cstr(key), key->length, SQLITE_STATIC);
    if (sqlite3_step(stmt) != SQLITE_DONE)
        code = sqlite_fail(db, err, "backup");
    sqlite3_finalize(stmt);
    return code;
}

static int directory_key_read(const char *directory, struct buf *key, struct err *err)
{
    char path[PATH_MAX];
    int code = path_make(path, directory, "key", err);
    return code == 0 ? file_read(path, KEY_BYTES_MAX, key, err) : code;
}

static void key_release(struct buf *key)
{
    if (key->at)
        explicit_bzero(key->at, key->room);
    buf_release(key);
}

static int pages_and_key_copy(sqlite3 *from, sqlite3 *to, const struct buf *key, struct err *err)
{
    int code = pages_copy(from, to, err);
    if (code == 0) /* one file, without a log beside it */
        code = sqlite_execute(to, "PRAGMA journal_mode = DELETE", err);
    if (code == 0)
        code = key_insert(to, key, err);
    return code == 0 ? sqlite_check_pages(to, err) : code;
}

/* A key that is the same before and behind opens what has been copied in between. */
static int copy_make(sqlite3 *from, const char *directory, const char *beside, struct err *err)
{
    assert(from && directory && beside);
    struct buf key = BUF_INIT, after = BUF_INIT;
    struct sqlite_connection *to;
    int code = sqlite_connect(beside, true, &to, err);
    if (code < 0)
        return code;
    code = directory_key_read(directory, &key, err);
    if (code == 0)
        code = pages_and_key_copy(from, to->db, &key, err);
    if (code == 0)
        code = directory_key_read(directory, &after, err);
    if (code == 0 && !text_equal(buf_as_text(&key), buf_as_text(&after)))
        code = err_fail(err, ERR_CONFLICT, "",
                        "the key was rotated while the database was copied; do it again");
    key_release(&key);
    key_release(&after);
    sqlite_disconnect(to);
    return code == 0 ? file_sync(beside, err) : code;
}

/* Nothing is written to it, nor is its log emptied: there may be something wrong with it. */
static int source_open(const char *path, struct sqlite_connection **connection, struct err *err)
{
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return err_fail(err, ERR_NOT_FOUND, "", "%s does not exist", path);
    int code = sqlite_connect(path, true, connection, err);
    if (code == 0)
        code = sqlite_keep_log((*connection)->db, true, err);
    if (code == 0)
        code = sqlite_check_program((*connection)->db, err);
    return code;
}

int store_backup(const char *directory, const char *path, uint64_t *bytes, struct err *err)
{
    char from_path[PATH_MAX], beside[PATH_MAX], come[PATH_MAX];
    struct sqlite_connection *from = NULL;
    int code = path_make(from_path, directory, "skep.db", err);
    struct stat status;
    if (code == 0)
        code = path_make(come, directory, COME, err);
    if (code == 0 && access(come, F_OK) == 0)
        return err_fail(err, ERR_CONFLICT, "",
                        "a backup is being put in place of the database; the next start of skepd "
                        "goes on with that");
    if (code == 0 && lstat(path, &status) == 0)
        return err_fail(err, ERR_CONFLICT, "", "%s exists", path);
    if (code == 0)
        code = source_open(from_path, &from, err);
    if (code == 0)
        code = file_begin(path, beside, err);
    if (code != 0) {
        sqlite_disconnect(from);
        return code;
    }
    assert(from);
    code = copy_make(from->db, directory, beside, err);
    sqlite_disconnect(from);
    if (code == 0 && stat(beside, &status) < 0)
        code = err_errno(err, errno, "stat %s", beside);
    if (code == 0 && link(beside, path) < 0)
        code = errno == EEXIST ? err_fail(err, ERR_CONFLICT, "", "%s exists", path)
                               : err_errno(err, errno, "link %s to %s", beside, path);
    unlink(beside);
    if (code < 0)
        return code;
    *bytes = (uint64_t)status.st_size;
    return parent_sync(path, err);
}

/* --- putting one in place --- */

static int key_read(sqlite3 *db, const char *path, struct buf *key, struct err *err)
{
    int code = 0, step;
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v2(db, "SELECT content FROM backup WHERE name = 'key'", -1, &stmt, NULL) !=
        SQLITE_OK)
        return sqlite_fail(db, err, "backup");
    step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        const char *bytes = sqlite3_column_blob(stmt, 0);
        buf_text(key, (struct text){bytes, (size_t)sqlite3_column_bytes(stmt, 0)});
    } else if (step == SQLITE_DONE) {
        code = err_fail(err, ERR_CORRUPT, "", "%s holds no key", path);
    } else {
        code = sqlite_fail(db, err, "read");
    }
    sqlite3_finalize(stmt);
    return code;
}

/* The file is whole and a backup; appends its key. */
static int backup_check(const char *path, struct buf *key, struct err *err)
{
    struct sqlite_connection *connection = NULL;
    int64_t tables = 0;
    int code = source_open(path, &connection, err);
    assert(code != 0 || connection);
    if (code == 0)
        code = sqlite_check_pages(connection->db, err);
    if (code == 0)
        code =
            sqlite_number(connection->db,
                          "SELECT count(*) FROM sqlite_schema WHERE name = 'backup'", &tables, err);
    if (code == 0 && tables == 0)
        code =
            err_fail(err, ERR_CORRUPT, "", "%s is not a backup (skepd --backup makes one)", path);
    if (code == 0)
        code = key_read(connection->db, path, key, err);
    sqlite_disconnect(connection);
    return code;
}

static int bytes_copy(const char *from_path, const char *to_path, struct err *err)
{
    cleanup_close int from = open(from_path, O_RDONLY | O_CLOEXEC);
    cleanup_close int to = open(to_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    cleanup_free char *bytes = mem_alloc(COPY_BYTES);
    if (from < 0 || to < 0)
        return err_errno(err, errno, "open %s", from < 0 ? from_path : to_path);
    ssize_t count;
    while ((count = read(from, bytes, COPY_BYTES)) > 0)
        for (ssize_t at = 0, written; at < count; at += written)
            if ((written = write(to, bytes + at, (size_t)(count - at))) < 0)
                return err_errno(err, errno, "write %s", to_path);
    return count < 0 ? err_errno(err, errno, "read %s", from_path) : 0;
}

/* The key goes into its file, and stays nowhere in the database. */
static int key_remove(const char *path, struct err *err)
{
    struct sqlite_connection *connection;
    int code = sqlite_connect(path, true, &connection, err);
    if (code < 0)
        return code;
    code = sqlite_execute(connection->db, "PRAGMA secure_delete = ON; DELETE FROM backup", err);
    sqlite_disconnect(connection);
    return code;
}

/* What a restore that was cut off had not made whole: files, and a folder with nothing in it. */
static int coming_drop(const char *directory, struct err *err)
{
    char folder[PATH_MAX];
    int code = path_make(folder, directory, COMING, err);
    if (code < 0)
        return code;
    cleanup_dir DIR *dir = opendir(folder);
    if (!dir)
        return errno == ENOENT ? 0 : err_errno(err, errno, "open %s", folder);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            unlinkat(dirfd(dir), entry->d_name, 0) < 0)
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    return rmdir(folder) < 0 ? err_errno(err, errno, "rmdir %s", folder) : 0;
}

/* All that takes room on the disk. */
static int coming_fill(const char *path, const char *folder, const struct buf *key, struct err *err)
{
    char to[PATH_MAX], key_path[PATH_MAX], replaced[PATH_MAX];
    int code = path_make(to, folder, "skep.db", err);
    if (code == 0)
        code = path_make(key_path, folder, "key", err);
    if (code == 0)
        code = path_make(replaced, folder, REPLACED, err);
    if (code == 0 && (mkdir(folder, 0700) < 0 || mkdir(replaced, 0700) < 0))
        code = err_errno(err, errno, "mkdir %s", replaced);
    if (code == 0)
        code = bytes_copy(path, to, err);
    if (code == 0)
        code = key_remove(to, err);
    if (code == 0)
        code = file_sync(to, err);
    if (code == 0) /* and the names in the folder */
        code = file_write(key_path, buf_as_text(key), 0600, err);
    return code;
}

/* From its last step on the new database is the directory's, whatever happens. */
static int coming_make(const char *path, const char *directory, const struct buf *key,
                       struct err *err)
{
    char coming[PATH_MAX], come[PATH_MAX];
    int code = path_make(coming, directory, COMING, err);
    if (code == 0)
        code = path_make(come, directory, COME, err);
    if (code == 0)
        code = coming_drop(directory, err);
    if (code < 0)
        return code;
    code = coming_fill(path, coming, key, err);
    if (code == 0 && rename(coming, come) < 0)
        code = err_errno(err, errno, "rename %s to %s", coming, come);
    if (code < 0)
        coming_drop(directory, NULL);
    return code < 0 ? code : dir_sync(directory, err);
}

static int file_move(const char *directory, const char *folder, const char *name, struct err *err)
{
    char from[PATH_MAX], to[PATH_MAX];
    int code = path_make(from, directory, name, err);
    if (code == 0)
        code = path_make(to, folder, name, err);
    if (code == 0 && rename(from, to) < 0 && errno != ENOENT)
        code = err_errno(err, errno, "rename %s to %s", from, to);
    return code;
}

/* What is there, unless it is the new one already, of which the key comes first. The mark stays: it
 * knows what numbers were given. */
static int database_put_away(const char *directory, const char *come, const char *replaced,
                             struct err *err)
{
    static const char *const names[] = {"skep.db", "skep.db-wal", "skep.db-shm", "key"};
    char key_path[PATH_MAX];
    int code = path_make(key_path, come, "key", err);
    if (code < 0 || (access(key_path, F_OK) < 0 && errno == ENOENT))
        return code;
    for (size_t i = 0; code == 0 && i < COUNT_OF(names); i++)
        code = file_move(directory, replaced, names[i], err);
    if (code == 0)
        code = dir_sync(replaced, err);
    return code == 0 ? dir_sync(directory, err) : code;
}

static int database_put(const char *directory, const char *come, struct err *err)
{
    static const char *const names[] = {"key", "skep.db"};
    int code = 0;
    for (size_t i = 0; code == 0 && i < COUNT_OF(names); i++) {
        code = file_move(come, directory, names[i], err);
        if (code == 0)
            code = dir_sync(directory, err);
        if (code == 0)
            code = dir_sync(come, err);
    }
    return code;
}

/* Gets a name of its own, by the time, when there is anything in it. */
static int replaced_name(const char *directory, const char *replaced, struct err *err)
{
    char name[60], to[PATH_MAX];
    time_t now = time(NULL);
    struct tm tm;
    if (rmdir(replaced) == 0 || errno == ENOENT)
        return 0;
    size_t length = strftime(name, sizeof name, "replaced-%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
    for (int i = 2; i <= REPLACED_NAMES; i++) {
        int code = path_make(to, directory, name, err);
        if (code < 0)
            return code;
        if (rename(replaced, to) == 0)
            return 0;
        if (errno != EEXIST && errno != ENOTEMPTY)
            break;
        snprintf(name + length, sizeof name - length, "-%d", i);
    }
    return err_errno(err, errno, "rename %s to %s", replaced, to);
}

int sqlite_restore_finish(const char *directory, struct err *err)
{
    char come[PATH_MAX], replaced[PATH_MAX];
    int code = path_make(come, directory, COME, err);
    if (code < 0 || (access(come, F_OK) < 0 && errno == ENOENT))
        return code;
    code = path_make(replaced, come, REPLACED, err);
    if (code == 0 && access(replaced, F_OK) < 0) /* it goes last: nothing else may be left */
        return rmdir(come) == 0 || errno == ENOENT
                   ? dir_sync(directory, err)
                   : err_fail(err, ERR_CONFLICT, "",
                              "%.120s is in the way: no restore has left it so", come);
    if (code == 0)
        code = database_put_away(directory, come, replaced, err);
    if (code == 0)
        code = database_put(directory, come, err);
    if (code == 0)
        code = replaced_name(directory, replaced, err);
    if (code == 0 && rmdir(come) < 0)
        code = err_errno(err, errno, "rmdir %s", come);
    return code == 0 ? dir_sync(directory, err) : code;
}

static int directory_check(const char *directory, bool replaces, struct err *err)
{
    static const char *const names[] = {"skep.db", "skep.db-wal", "key"};
    char path[PATH_MAX];
    bool is_there = false;
    int code = 0;
    for (size_t i = 0; code == 0 && i < COUNT_OF(names); i++) {
        code = path_make(path, directory, names[i], err);
        is_there = is_there || access(path, F_OK) == 0 || errno != ENOENT;
    }
    if (code < 0 || !is_there || replaces)
        return code;
    return err_fail(err, ERR_CONFLICT, "",
                    "there is a database in %.120s already; --replace puts it away", directory);
}

/* What `--restore` has made whole is the directory's database: not being able to put it in place
 * right now does not take it back. */
static int restore_come(const char *directory, struct err *err)
{
    struct err why;
    int code = sqlite_restore_finish(directory, &why);
    if (code == 0)
        return 0;
    return err_fail(err, code, "", "the next start of skepd is to put it in place: %s", why.text);
}

int store_restore_backup(const char *path, const char *directory, bool replaces, struct err *err)
{
    cleanup_buf struct buf key = BUF_INIT;
    cleanup_close int lock_fd = -1;
    int code = backup_check(path, &key, err);
    if (code == 0)
        code = dir_make(directory, 0700, err);
    if (code == 0)
        code = directory_lock(directory, &lock_fd, err);
    if (code == 0) /* of one before that was cut off */
        code = sqlite_restore_finish(directory, err);
    if (code == 0)
        code = directory_check(directory, replaces, err);
    if (code == 0)
        code = coming_make(path, directory, &key, err);
    if (code == 0)
        code = restore_come(directory, err);
    if (key.at)
        explicit_bzero(key.at, key.room);
    return code;
}
