/* storage: files of storages, from and to this machine */
#include "cli/account.h"
#include "cli/job.h"
#include "cli/print.h"
#include "sys/cleanup.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { PART_BYTES = 1 << 20, DEPTH_MAX = 64 /* the server takes no deeper path */ };

/* "home/data/words": the storage, and the path in it. */
struct stored_file {
    struct buf storage; /* percent-coded */
    const char *path;   /* "" is the storage's folder */
};

static void stored_file_of(const char *word, struct stored_file *place)
{
    const size_t length = strcspn(word, "/");
    cleanup_buf struct buf name = BUF_INIT;
    buf_add(&name, word, length);
    *place = (struct stored_file){.path = word[length] ? word + length + 1 : ""};
    client_encode(&place->storage, buf_cstr(&name));
}

static void stored_file_release(struct stored_file *place)
{
    buf_release(&place->storage);
}
#define cleanup_stored_file __attribute__((cleanup(stored_file_release)))

/* "/api/v2/storages/NAME/REST" */
static void storage_path(const struct stored_file *place, const char *rest, struct buf *path)
{
    buf_format(path, "/api/v2/storages/%s/%s", buf_cstr(&place->storage), rest);
}

static void file_path(const struct stored_file *place, const char *rest, struct buf *path)
{
    storage_path(place, rest, path);
    buf_string(path, "?path=");
    client_encode(path, place->path);
}

/* A request with JSON; its answer's JSON in *answer when that is not NULL. Takes `body`. */
static int json_send(struct client *client, const char *method, const char *path, json_t *body,
                     json_t **answer)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    int code =
        client_call(client,
                    &(struct client_request){.method = method,
                                             .path = path,
                                             .content_type = text ? "application/json" : NULL,
                                             .body = text_of(text ? text : "")},
                    answer);
    free(text);
    return code;
}

/* ---- ls ---- */

static void storages_print(const struct cli *cli, const json_t *storages)
{
    static const char *const HEADS[] = {"STORAGE", "DEFAULT", NULL};
    cleanup_table struct table table;
    cleanup_buf struct buf out = BUF_INIT;
    table_init(&table, cli->has_colours, HEADS);
    for (size_t i = 0; i < json_array_size(storages); i++) {
        const json_t *storage = json_array_get(storages, i);
        table_cell(&table, field_text(storage, "name"));
        table_cell(&table, json_is_true(json_object_get(storage, "default")) ? "yes" : "");
    }
    table_print(&table, &out);
    print_flush(&out);
}

static void files_print(const struct cli *cli, const json_t *files)
{
    static const char *const HEADS[] = {"NAME", "BYTES", "CHANGED", NULL};
    cleanup_table struct table table;
    cleanup_buf struct buf out = BUF_INIT;
    table_init(&table, cli->has_colours, HEADS);
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *file = json_array_get(files, i);
        const bool is_file = strcmp(field_text(file, "kind"), "file") == 0;
        cleanup_buf struct buf changed = BUF_INIT;
        print_time(&changed, field_instant(file, "changedTime"));
        table_format(&table, "%s%s", field_text(file, "name"),
                     strcmp(field_text(file, "kind"), "folder") == 0 ? "/" : "");
        if (is_file)
            table_format(&table, "%lld", (long long)field_int(file, "size"));
        else
            table_cell(&table, "");
        table_cell(&table, buf_cstr(&changed));
    }
    table_print(&table, &out);
    print_flush(&out);
}

static int storage_ls(struct cli *cli, struct client *client)
{
    cleanup_buf struct buf path = BUF_INIT;
    const bool is_folder = cli->argument_count > 1;
    json_t *json = NULL;
    if (is_folder) {
        cleanup_stored_file struct stored_file place;
        stored_file_of(cli->arguments[1], &place);
        file_path(&place, "files", &path);
    }
    int code = client_get(client, is_folder ? buf_cstr(&path) : "/api/v2/storages", &json);
    const json_t *list = json_object_get(json, is_folder ? "files" : "storages");
    if (!code && !print_raw(cli, list)) {
        if (is_folder)
            files_print(cli, list);
        else
            storages_print(cli, list);
    }
    json_decref(json);
    return code;
}

/* ---- get ---- */

struct getting {
    int fd;
    long long written;
    int number; /* errno of a write; 0: none */
};

static bool bytes_take(void *context, const char *bytes, size_t length)
{
    struct getting *getting = context;
    while (length) {
        const ssize_t wrote = write(getting->fd, bytes, length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0) {
            getting->number = errno;
            return false;
        }
        bytes += wrote;
        length -= (size_t)wrote;
        getting->written += wrote;
    }
    return true;
}

/* What the server said that comes must have come: a file may be cut off on its way. */
static int bytes_get(struct client *client, const char *path, struct getting *getting,
                     const char *file)
{
    struct client_stream stream = {.take = bytes_take, .context = getting};
    int64_t wanted = -1;
    int code = client_follow(client, path, &stream);
    if (code)
        return code == EXIT_UNREACHABLE && stream.is_broken
                   ? client_unreachable(client, "the connection was refused")
                   : code;
    if (getting->number)
        return cli_fail(EXIT_REFUSED, "write %s: %s", file, strerrordesc_np(getting->number));
    if (stream.is_broken ||
        (text_to_int64(text_of(stream.length), &wanted) && wanted != getting->written))
        return cli_fail(EXIT_UNREACHABLE,
                        "the download of %s was cut off after %lld bytes: try again", file,
                        getting->written);
    return 0;
}

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Beside the file first, so that a part never looks like the whole. */
static int file_get(const struct cli *cli, struct client *client, const struct stored_file *place,
                    const char *file)
{
    cleanup_buf struct buf path = BUF_INIT, part = BUF_INIT;
    file_path(place, "file", &path);
    struct getting getting = {.fd = STDOUT_FILENO};
    if (strcmp(file, "-") == 0)
        return bytes_get(client, buf_cstr(&path), &getting, file);
    if (!cli_flag(cli, "replace") && access(file, F_OK) == 0)
        return cli_fail(EXIT_REFUSED, "%s is there already: say --replace, or another name", file);
    buf_format(&part, "%s.part", file);
    cleanup_close int fd = open(buf_cstr(&part), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return cli_fail(EXIT_REFUSED, "open %s: %s", buf_cstr(&part), strerrordesc_np(errno));
    getting.fd = fd;
    int code = bytes_get(client, buf_cstr(&path), &getting, file);
    if (!code && rename(buf_cstr(&part), file) < 0)
        code = cli_fail(EXIT_REFUSED, "rename %s: %s", buf_cstr(&part), strerrordesc_np(errno));
    if (code)
        unlink(buf_cstr(&part));
    else
        printf("got %s, %lld bytes\n", file, getting.written);
    return code;
}

/* Another place of the same storage, which is not released. */
static struct stored_file stored_file_at(const struct stored_file *place, const struct buf *path)
{
    struct stored_file at = *place;
    at.path = buf_cstr(path);
    return at;
}

/* "folder" and "name", or "name" alone in the storage's own folder. */
static void path_join(struct buf *path, const char *folder, const char *name)
{
    const size_t length = strlen(folder);
    buf_format(path, "%s%s%s", folder, length && folder[length - 1] != '/' ? "/" : "", name);
}

/* The first failure is what a command ends with; the others are told all the same. */
static bool is_over(int code, int *first)
{
    if (code && !*first)
        *first = code;
    return code == EXIT_UNREACHABLE;
}

static bool is_local_name(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int tree_get(const struct cli *cli, struct client *client, const struct stored_file *place,
                    const char *folder, unsigned depth);

/* What stands in the folder of the storage, into the folder of this machine. */
static int entry_get(const struct cli *cli, struct client *client, const struct stored_file *place,
                     const char *folder, const json_t *file, unsigned depth)
{
    const char *name = field_text(file, "name"), *kind = field_text(file, "kind");
    cleanup_buf struct buf from = BUF_INIT, to = BUF_INIT;
    path_join(&from, place->path, name);
    path_join(&to, folder, name);
    const struct stored_file at = stored_file_at(place, &from);
    if (!is_local_name(name))
        return cli_fail(EXIT_REFUSED, "the server names a file '%s': not fetched", name);
    if (strcmp(kind, "folder") == 0)
        return tree_get(cli, client, &at, buf_cstr(&to), depth + 1);
    if (strcmp(kind, "file") == 0)
        return file_get(cli, client, &at, buf_cstr(&to));
    print_error("%s is a link or no plain file: left out", at.path);
    return 0;
}

static int tree_get(const struct cli *cli, struct client *client, const struct stored_file *place,
                    const char *folder, unsigned depth)
{
    cleanup_buf struct buf path = BUF_INIT;
    json_auto_t *reply = NULL;
    const json_t *file;
    size_t i;
    int first = 0;
    if (depth > DEPTH_MAX)
        return cli_fail(EXIT_REFUSED, "%s: more than %d folders deep", place->path, DEPTH_MAX);
    file_path(place, "files", &path);
    int code = client_get(client, buf_cstr(&path), &reply);
    if (code)
        return code;
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        return cli_fail(EXIT_REFUSED, "make %s: %s", folder, strerrordesc_np(errno));
    json_array_foreach (json_object_get(reply, "files"), i, file)
        if (is_over(entry_get(cli, client, place, folder, file, depth), &first))
            break;
    return first;
}

static int storage_get(struct cli *cli, struct client *client)
{
    cleanup_stored_file struct stored_file place;
    stored_file_of(cli->arguments[1], &place);
    const char *file = cli->argument_count > 2 ? cli->arguments[2] : last_name(place.path);
    if (cli_flag(cli, "recursive"))
        return *file && strcmp(file, "-") != 0
                   ? tree_get(cli, client, &place, file, 0)
                   : cli_fail(EXIT_USAGE, "storage get -r: name a folder for what comes");
    if (!*place.path || !*file)
        return cli_fail(EXIT_USAGE, "storage get: name a file, as STORAGE/PATH");
    return file_get(cli, client, &place, file);
}

/* ---- put ---- */

/* Reads until the part is full or the file ends. */
static ssize_t part_read(int fd, char *bytes, size_t size)
{
    size_t length = 0;
    while (length < size) {
        const ssize_t got = read(fd, bytes + length, size - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        length += (size_t)got;
    }
    return (ssize_t)length;
}

static int parts_send(struct client *client, const char *upload, int fd, const char *file,
                      int64_t size)
{
    cleanup_buf struct buf part = BUF_INIT;
    char *bytes = buf_room(&part, PART_BYTES);
    int code = 0;
    for (int64_t at = 0; !code && at < size;) {
        const int64_t left = size - at;
        const ssize_t length =
            part_read(fd, bytes, left < PART_BYTES ? (size_t)left : (size_t)PART_BYTES);
        if (length <= 0)
            return cli_fail(EXIT_REFUSED, "read %s: %s", file,
                            length ? strerrordesc_np(errno) : "it became shorter meanwhile");
        cleanup_buf struct buf path = BUF_INIT;
        buf_format(&path, "%s?offset=%lld", upload, (long long)at);
        code = client_call(client,
                           &(struct client_request){.method = "PUT",
                                                    .path = buf_cstr(&path),
                                                    .content_type = "application/octet-stream",
                                                    .body = {bytes, (size_t)length}},
                           NULL);
        at += length;
    }
    return code;
}

static int file_put(const struct cli *cli, struct client *client, const struct stored_file *place,
                    const char *to, const char *file)
{
    struct stat stat;
    cleanup_buf struct buf path = BUF_INIT;
    cleanup_close int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &stat) < 0)
        return cli_fail(EXIT_REFUSED, "open %s: %s", file, strerrordesc_np(errno));
    if (!S_ISREG(stat.st_mode))
        return cli_fail(EXIT_REFUSED, "%s is not a file", file);
    json_t *body = json_pack("{s:s,s:I,s:b}", "path", to, "size", (json_int_t)stat.st_size,
                             "replace", (int)cli_flag(cli, "replace"));
    if (!body)
        return cli_fail(EXIT_USAGE, "a name must be UTF-8");
    json_t *answer = NULL;
    storage_path(place, "uploads", &path);
    int code = json_send(client, "POST", buf_cstr(&path), body, &answer);
    if (code)
        return code;
    buf_format(&path, "/%s", field_text(answer, "id"));
    json_decref(answer);
    code = parts_send(client, buf_cstr(&path), fd, file, stat.st_size);
    if (!code)
        return json_send(client, "POST", buf_cstr(&path), NULL, NULL);
    /* what has come is of no use; should this fail as well, the server gives it up by itself */
    cleanup_client_reply struct client_reply reply;
    client_ask(client, &(struct client_request){.method = "DELETE", .path = buf_cstr(&path)},
               &reply);
    return code;
}

/* One that is there is as good; were it a file, what goes into it says so. */
static int folder_make(struct client *client, const struct stored_file *place, const char *path)
{
    cleanup_buf struct buf request = BUF_INIT;
    cleanup_client_reply struct client_reply reply;
    json_t *body = json_pack("{s:s}", "path", path);
    if (!body)
        return cli_fail(EXIT_USAGE, "a name must be UTF-8");
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    storage_path(place, "folders", &request);
    client_ask(client,
               &(struct client_request){.method = "POST",
                                        .path = buf_cstr(&request),
                                        .content_type = "application/json",
                                        .body = text_of(text)},
               &reply);
    free(text);
    return reply.status == 409 ? 0 : client_result(client, &reply, NULL);
}

static int tree_put(const struct cli *cli, struct client *client, const struct stored_file *place,
                    const char *to, const char *folder, unsigned depth);

/* A file, or a folder with -r. `to` is its place in the storage. */
static int entry_put(const struct cli *cli, struct client *client, const struct stored_file *place,
                     const char *to, const char *from, unsigned depth)
{
    struct stat stat;
    /* what is named on the command line may be a link; below it none is followed */
    if (cli_flag(cli, "recursive") &&
        fstatat(AT_FDCWD, from, &stat, depth ? AT_SYMLINK_NOFOLLOW : 0) == 0) {
        if (S_ISDIR(stat.st_mode))
            return tree_put(cli, client, place, to, from, depth);
        if (depth && !S_ISREG(stat.st_mode)) {
            print_error("%s is a link or no plain file: left out", from);
            return 0;
        }
    }
    int code = file_put(cli, client, place, to, from);
    if (!code)
        printf("put %s\n", from);
    return code;
}

static int is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int tree_put(const struct cli *cli, struct client *client, const struct stored_file *place,
                    const char *to, const char *folder, unsigned depth)
{
    struct dirent **entries;
    int first = 0;
    if (depth >= DEPTH_MAX)
        return cli_fail(EXIT_REFUSED, "%s: more than %d folders deep", folder, DEPTH_MAX);
    const int count = scandir(folder, &entries, is_entry, alphasort);
    if (count < 0)
        return cli_fail(EXIT_REFUSED, "read %s: %s", folder, strerrordesc_np(errno));
    bool is_done = is_over(folder_make(client, place, to), &first) || first;
    for (int i = 0; i < count; i++) {
        cleanup_buf struct buf from = BUF_INIT, at = BUF_INIT;
        path_join(&from, folder, entries[i]->d_name);
        path_join(&at, to, entries[i]->d_name);
        free(entries[i]);
        if (!is_done)
            is_done = is_over(
                entry_put(cli, client, place, buf_cstr(&at), buf_cstr(&from), depth + 1), &first);
    }
    free(entries);
    return first;
}

/* The name of what `path` leads to, without slashes at its end, in the buffer. */
static const char *own_name(const char *path, struct buf *name)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    buf_add(name, path, length);
    return last_name(buf_cstr(name));
}

/* `put FILE… STORAGE/FOLDER/`, or `put FILE STORAGE/PATH`; with -r folders as well. */
static int storage_put(struct cli *cli, struct client *client)
{
    cleanup_stored_file struct stored_file place;
    const int last = cli->argument_count - 1;
    stored_file_of(cli->arguments[last], &place);
    const size_t length = strlen(place.path);
    const bool is_folder = !length || place.path[length - 1] == '/';
    if (!is_folder && last > 2)
        return cli_fail(EXIT_USAGE, "storage put: several files go into a folder: end %s with /",
                        cli->arguments[last]);
    int first = 0;
    for (int i = 1; i < last; i++) {
        const char *file = cli->arguments[i];
        cleanup_buf struct buf to = BUF_INIT, name = BUF_INIT;
        const char *own = own_name(file, &name);
        if (is_folder && !is_local_name(own))
            return cli_fail(EXIT_USAGE, "storage put: %s has no name of its own: name the folder",
                            file);
        buf_format(&to, "%s%s", place.path, is_folder ? own : "");
        if (is_over(entry_put(cli, client, &place, buf_cstr(&to), file, 0), &first))
            break;
    }
    return first;
}

/* ---- mkdir, rm, mv ---- */

static int storage_mkdir(struct cli *cli, struct client *client)
{
    cleanup_stored_file struct stored_file place;
    cleanup_buf struct buf path = BUF_INIT;
    stored_file_of(cli->arguments[1], &place);
    storage_path(&place, "folders", &path);
    json_t *body = json_pack("{s:s}", "path", place.path);
    if (!body)
        return cli_fail(EXIT_USAGE, "a name must be UTF-8");
    return json_send(client, "POST", buf_cstr(&path), body, NULL);
}

static int storage_rm(struct cli *cli, struct client *client)
{
    int first = 0;
    for (int i = 1; i < cli->argument_count; i++) {
        cleanup_stored_file struct stored_file place;
        cleanup_buf struct buf path = BUF_INIT;
        stored_file_of(cli->arguments[i], &place);
        file_path(&place, "files", &path);
        int code = json_send(client, "DELETE", buf_cstr(&path), NULL, NULL);
        if (!code)
            printf("removed %s\n", cli->arguments[i]);
        if (code && !first)
            first = code;
        if (code == EXIT_UNREACHABLE)
            break;
    }
    return first;
}

static int storage_mv(struct cli *cli, struct client *client)
{
    cleanup_stored_file struct stored_file place, to;
    cleanup_buf struct buf path = BUF_INIT;
    stored_file_of(cli->arguments[1], &place);
    stored_file_of(cli->arguments[2], &to);
    if (strcmp(buf_cstr(&place.storage), buf_cstr(&to.storage)) != 0)
        return cli_fail(EXIT_USAGE, "storage mv: both names must be in one storage");
    storage_path(&place, "files", &path);
    json_t *body = json_pack("{s:s,s:s}", "path", place.path, "newPath", to.path);
    if (!body)
        return cli_fail(EXIT_USAGE, "a name must be UTF-8");
    return json_send(client, "PUT", buf_cstr(&path), body, NULL);
}

int run_storage(struct cli *cli)
{
    static const struct account_action ACTIONS[] = {
        {"ls", 0, 1, storage_ls},    {"get", 1, 2, storage_get},
        {"put", 2, -1, storage_put}, {"mkdir", 1, 1, storage_mkdir},
        {"rm", 1, -1, storage_rm},   {"mv", 2, 2, storage_mv},
        {NULL, 0, 0, NULL},
    };
    return account_run(cli, ACTIONS);
}
