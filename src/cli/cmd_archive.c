/* archive: all that the server keeps of an ended job, into a folder
 *
 * job.json comes last: a folder that has it is whole. Only then may the job be deleted.
 */
#include "base/err.h"
#include "base/memory.h"
#include "cli/bulk.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/history.h"
#include "cli/job.h"
#include "cli/print.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct archive {
    struct client *client;
    const char *job, *folder;
    json_t *logs; /* the list in job.json */
};

/* ---- the folder ---- */

/* 0, or EXIT_USAGE after a message. */
static int folder_check_empty(const char *path)
{
    cleanup_dir DIR *dir = opendir(path);
    if (!dir)
        return cli_fail(EXIT_USAGE, "%s: %s", path, strerror(errno));
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry && errno)
            return cli_fail(EXIT_USAGE, "%s: %s", path, strerror(errno));
        if (!entry)
            return 0;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return cli_fail(EXIT_USAGE, "%s is not empty: name a new folder", path);
    }
}

static int folder_make(const char *path)
{
    cleanup_buf struct buf logs = BUF_INIT;
    int code = 0;
    if (strcmp(path, "-") == 0)
        return cli_fail(EXIT_USAGE, "an archive is a folder; standard output cannot be one");
    if (mkdir(path, 0700) < 0)
        code = errno == EEXIST ? folder_check_empty(path)
                               : cli_fail(EXIT_USAGE, "make %s: %s", path, strerror(errno));
    buf_format(&logs, "%s/logs", path);
    if (!code && mkdir(buf_cstr(&logs), 0700) < 0)
        code = cli_fail(EXIT_USAGE, "make %s: %s", buf_cstr(&logs), strerror(errno));
    return code;
}

/* The names, too, are to outlive a crash: those of the logs, and the folder's own. */
static int folder_sync(const char *path)
{
    cleanup_buf struct buf logs = BUF_INIT;
    struct err err;
    cleanup_free char *copy = mem_copy(path);
    buf_format(&logs, "%s/logs", path);
    int code = dir_sync(buf_cstr(&logs), &err);
    if (!code)
        code = dir_sync(dirname(copy), &err);
    return code ? cli_fail(EXIT_USAGE, "%s", err.text) : 0;
}

/* ---- logs ---- */

struct log_file {
    int fd;
    int error; /* errno of a write */
    uint64_t bytes;
    const struct client_stream *stream;
};

static bool log_take(void *context, const char *bytes, size_t length)
{
    struct log_file *file = context;
    if (file->stream->log[0]) /* the last lines alone; job.json has them */
        return true;
    while (length) {
        ssize_t count = write(file->fd, bytes, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            file->error = errno;
            return false;
        }
        bytes += count;
        length -= (size_t)count;
        file->bytes += (uint64_t)count;
    }
    return true;
}

/* One attempt of one task. */
struct log_name {
    const char *role;
    int64_t index, job_attempt, task_attempt;
};

/* From the server to the disk. 0 when the log is there whole or is known to be gone. */
static int log_copy(const struct archive *archive, const struct log_name *name, const char *path,
                    struct log_file *file, struct client_stream *stream)
{
    cleanup_buf struct buf rest = BUF_INIT, url = BUF_INIT;
    buf_format(&rest, "/attempts/%" PRId64 "/taskRoles/", name->job_attempt);
    client_encode(&rest, name->role);
    buf_format(&rest, "/taskIndex/%" PRId64 "/attempts/%" PRId64 "/logs/all", name->index,
               name->task_attempt);
    job_path(&url, archive->job, buf_cstr(&rest));
    int code = client_follow(archive->client, buf_cstr(&url), stream);
    int64_t length;
    if (file->error)
        return cli_fail(EXIT_USAGE, "write %s: %s", path, strerror(file->error));
    if (stream->is_broken)
        return client_unreachable(archive->client, "the connection broke");
    if (code || stream->is_absent || stream->log[0])
        return code;
    if (!text_to_int64(text_of(stream->length), &length) || (uint64_t)length != file->bytes)
        return cli_fail(EXIT_REFUSED, "%s changed while it was read: %s bytes of it were there",
                        path, stream->length[0] ? stream->length : "an unknown number of");
    if (fsync(file->fd) < 0)
        return cli_fail(EXIT_USAGE, "write %s: %s", path, strerror(errno));
    return 0;
}

/* A row of the list of logs; what is missing is told, too. */
static void log_list(const struct archive *archive, const struct log_name *name, const char *file,
                     uint64_t bytes, const struct client_stream *stream)
{
    bool is_gone = stream->is_absent || stream->log[0];
    int64_t removed = 0;
    if (!is_gone && stream->removed[0])
        text_to_int64(text_of(stream->removed), &removed);
    const char *why = !is_gone            ? NULL
                      : stream->log[0]    ? "it has been removed; its last lines are in job.json"
                      : stream->reason[0] ? stream->reason
                                          : "the server has no log of it";
    json_array_append_new(archive->logs,
                          json_pack("{s:s, s:I, s:I, s:I, s:s?, s:I, s:I, s:s?}", "taskRoleName",
                                    name->role, "taskIndex", (json_int_t)name->index,
                                    "attemptIndex", (json_int_t)name->job_attempt, "attemptId",
                                    (json_int_t)name->task_attempt, "file", is_gone ? NULL : file,
                                    "bytes", (json_int_t)bytes, "removedBytes", (json_int_t)removed,
                                    "missing", why));
    if (why)
        print_error("skep: no log of %s-%" PRId64 ", attempt %" PRId64 ".%" PRId64 ": %s\n",
                    name->role, name->index, name->job_attempt, name->task_attempt, why);
    else if (removed)
        print_error("skep: the first %" PRId64 " bytes of the log of %s-%" PRId64
                    ", attempt %" PRId64 ".%" PRId64 " have been removed: it was too long\n",
                    removed, name->role, name->index, name->job_attempt, name->task_attempt);
}

static int log_save(const struct archive *archive, const struct log_name *name)
{
    cleanup_buf struct buf file = BUF_INIT, path = BUF_INIT;
    buf_string(&file, "logs/");
    client_encode(&file, name->role); /* no slash of a server leads elsewhere */
    buf_format(&file, "-%" PRId64 "-%" PRId64 ".%" PRId64 ".log", name->index, name->job_attempt,
               name->task_attempt);
    buf_format(&path, "%s/%s", archive->folder, buf_cstr(&file));
    struct client_stream stream = {.take = log_take, .absent_code = "NoTaskLogError"};
    struct log_file out = {.stream = &stream};
    stream.context = &out;
    int code = 0;
    cleanup_close int fd = open(buf_cstr(&path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    out.fd = fd;
    if (fd < 0)
        code = cli_fail(EXIT_USAGE, "create %s: %s", buf_cstr(&path), strerror(errno));
    if (!code)
        code = log_copy(archive, name, buf_cstr(&path), &out, &stream);
    if (!code && (stream.is_absent || stream.log[0]) && unlink(buf_cstr(&path)) < 0)
        code = cli_fail(EXIT_USAGE, "remove %s: %s", buf_cstr(&path), strerror(errno));
    if (!code)
        log_list(archive, name, buf_cstr(&file), out.bytes, &stream);
    return code;
}

static int task_logs(const struct archive *archive, const json_t *task, int64_t job_attempt)
{
    const json_t *attempts = json_object_get(task, "attempts");
    struct log_name name = {.role = field_text(task, "taskRoleName"),
                            .index = field_int(task, "taskIndex"),
                            .job_attempt = job_attempt};
    int code = 0;
    for (size_t i = json_array_size(attempts); i-- > 0 && !code;) {
        const json_t *attempt = json_array_get(attempts, i);
        name.task_attempt = field_int(attempt, "attemptId");
        if (field_has(attempt, "containerId")) /* else it has never had a place */
            code = log_save(archive, &name);
    }
    return code;
}

/* Of all attempts, oldest first. */
static int logs_save(const struct archive *archive, const json_t *attempts)
{
    int code = 0;
    for (size_t i = json_array_size(attempts); i-- > 0 && !code;) {
        const json_t *attempt = json_array_get(attempts, i);
        const json_t *tasks = json_object_get(attempt, "tasks");
        for (size_t k = 0; k < json_array_size(tasks) && !code; k++)
            code = task_logs(archive, json_array_get(tasks, k), field_int(attempt, "attemptIndex"));
    }
    return code;
}

/* ---- the job ---- */

/* The file that was submitted, its secrets masked, into the detail's `config`. */
static int config_fetch(const struct archive *archive, json_t *detail)
{
    cleanup_buf struct buf path = BUF_INIT;
    cleanup_client_reply struct client_reply reply;
    int code = 0;
    job_path(&path, archive->job, "/config");
    client_ask(archive->client, &(struct client_request){.method = "GET", .path = buf_cstr(&path)},
               &reply);
    if (reply.status == 200)
        json_object_set_new(detail, "config",
                            json_stringn(buf_cstr(&reply.body), reply.body.length));
    else
        code = client_explain(archive->client, &reply, NULL);
    return code;
}

static int detail_fetch(const struct archive *archive, json_t **detail)
{
    cleanup_buf struct buf path = BUF_INIT;
    job_path(&path, archive->job, "");
    int code = client_get(archive->client, buf_cstr(&path), detail);
    const char *state = field_text(json_object_get(*detail, "jobStatus"), "subState");
    if (!code && (!state || strcmp(state, "Completed") != 0))
        code = cli_fail(EXIT_REFUSED, "job %s has not ended; stop it first", archive->job);
    if (!code)
        code = history_attempts(archive->client, archive->job, false, *detail);
    if (!code)
        code = history_events(archive->client, archive->job, *detail);
    if (!code)
        code = config_fetch(archive, *detail);
    return code;
}

static int detail_write(const struct archive *archive, const json_t *detail)
{
    cleanup_buf struct buf path = BUF_INIT;
    struct err err;
    cleanup_free char *text = json_dumps(detail, JSON_INDENT(1));
    int code = 0;
    buf_format(&path, "%s/job.json", archive->folder);
    if (!text)
        code = cli_fail(EXIT_REFUSED, "what the server keeps of the job cannot be written as JSON");
    else if (file_write(buf_cstr(&path), text_of(text), 0600, &err) < 0)
        code = cli_fail(EXIT_USAGE, "%s", err.text);
    return code;
}

static int job_delete(const struct archive *archive)
{
    cleanup_buf struct buf path = BUF_INIT;
    job_path(&path, archive->job, "");
    struct client_request request = {.method = "DELETE", .path = buf_cstr(&path)};
    return client_call(archive->client, &request, NULL);
}

static int job_archive(struct cli *cli, const char *job, const char *folder)
{
    struct archive archive = {
        .client = cli->client, .job = job, .folder = folder, .logs = json_array()};
    json_auto_t *detail = NULL;
    int code = detail_fetch(&archive, &detail);
    if (!code)
        code = folder_make(archive.folder);
    if (!code) {
        code = logs_save(&archive, json_object_get(detail, "attempts"));
        json_object_set(detail, "logs", archive.logs);
        if (!code)
            code = folder_sync(archive.folder);
        if (!code)
            code = detail_write(&archive, detail);
        if (code)
            cli_fail(code, "%s is no whole archive; job %s stays on the server", archive.folder,
                     archive.job);
    }
    if (!code && cli_flag(cli, "delete"))
        code = job_delete(&archive);
    json_decref(archive.logs);
    return code;
}

/* ---- many jobs ---- */

static int one_of_many(struct cli *cli, const char *job, const char *folder)
{
    cleanup_buf struct buf path = BUF_INIT, whole = BUF_INIT;
    buf_format(&path, "%s/", folder);
    client_encode(&path, job); /* no slash of a server leads elsewhere */
    buf_format(&whole, "%s/job.json", buf_cstr(&path));
    if (access(buf_cstr(&whole), F_OK) == 0) {
        print_error("skep: job %s is archived already\n", job);
        return 0;
    }
    int code = job_archive(cli, job, buf_cstr(&path));
    if (!code)
        printf("archived %s\n", job);
    return code;
}

/* The first failure counts, and the rest is done nevertheless, unless the server has gone. */
static int many_archive(struct cli *cli, const char *folder)
{
    json_t *names;
    size_t i;
    const json_t *name;
    int first = bulk_names(cli, &(struct bulk_call){.action = "delete"}, &names); /* have ended */
    if (!first && json_array_size(names) && mkdir(folder, 0700) < 0 && errno != EEXIST)
        first = cli_fail(EXIT_USAGE, "make %s: %s", folder, strerror(errno));
    const bool is_refused = first;
    json_array_foreach (names, i, name) {
        if (is_refused || first == EXIT_UNREACHABLE)
            break;
        int code = one_of_many(cli, json_string_value(name), folder);
        if (!first)
            first = code;
    }
    json_decref(names);
    return first;
}

int run_archive(struct cli *cli)
{
    int code = bulk_choice_check(cli, cli->argument_count - 1);
    if (code)
        return code;
    if (filter_is_given(cli))
        return many_archive(cli, cli->arguments[0]);
    return cli_client(cli) ? job_archive(cli, cli->arguments[0], cli->arguments[1]) : EXIT_REFUSED;
}
