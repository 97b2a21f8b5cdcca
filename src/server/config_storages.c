#include "server/config_storages.h"
#include "base/arena.h"
#include "base/memory.h"
#include "base/text.h"
#include "doc/doc.h"
#include "doc/problem.h"
#include "server/config.h"
#include "server/config_shape.h"
#include "server/config_values.h"
#include "sys/clock.h"
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { LINKS_MAX = 40 }; /* on one way, as the kernel has it */

void config_storages_read(struct server_config *config, const struct doc *doc)
{
    const struct doc *list = doc_get_list(doc, "storages");
    struct storage *storages = ARENA_ARRAY(&config->arena, struct storage, list->as.list.count);
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct doc *item = list->as.list.items[i];
        struct storage *storage = &storages[i];
        *storage = (struct storage){.directory = "", .claim = "", .server = "", .path = ""};
        config_string(config, item, "name", &storage->name);
        config_string(config, item, "directory", &storage->directory);
        config_string(config, item, "claim", &storage->claim);
        config_string(config, item, "server", &storage->server);
        config_string(config, item, "path", &storage->path);
        storage->type = config_storage_types[config_choice(item, "type", config_storage_types, 0)];
        storage->is_shared = doc_get_bool(item, "share", true);
        storage->is_read_only = doc_get_bool(item, "readOnly", false);
        storage->is_root_squashed = doc_get_bool(item, "rootSquash", false);
    }
    config->storages = (struct storage_list){storages, list->as.list.count};
}

/* --- the ways to folders --- */

struct folder_way {
    const char *directory; /* as it is configured */
    const char *end;       /* without links, . and ..; "" is the root, as in the next */
    struct {
        const char **items; /* in which its names are looked up */
        size_t count, room;
    } passed;
};

/* By a thread of its own, which keeps it when nobody waits for it any more. */
struct look {
    pthread_mutex_t lock;
    pthread_cond_t has_ended;
    bool is_over, is_left;
    struct arena arena;
    struct folder_way *ways;
    size_t count;
};

/* What is not there, or no link, is taken by its name. */
static void way_find(struct folder_way *way, bool follows_links, struct arena *arena)
{
    struct text rest = text_of(way->directory);
    int links = follows_links ? LINKS_MAX : 0;
    char target[PATH_MAX];
    way->end = "";
    while (rest.length > 0) {
        const struct text name = text_cut(&rest, '/');
        if (name.length == 0 || text_is(name, "."))
            continue;
        if (text_is(name, "..")) {
            const char *last = strrchr(way->end, '/');
            const size_t length = last ? (size_t)(last - way->end) : 0;
            way->end = arena_copy(arena, (struct text){way->end, length});
            continue;
        }
        *ARRAY_ADD(&way->passed) = way->end;
        const char *next = arena_format(arena, "%s/%.*s", way->end, TEXT_ARG(name));
        const ssize_t length = links > 0 ? readlink(next, target, sizeof target - 1) : -1;
        if (length < 0) {
            way->end = next;
            continue;
        }
        links--;
        target[length] = '\0';
        rest = text_of(arena_format(arena, "%s/%.*s", target, TEXT_ARG(rest)));
        if (target[0] == '/')
            way->end = "";
    }
}

static bool is_in(const char *path, const char *folder)
{
    const size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static bool leads_through(const struct folder_way *way, const char *folder)
{
    for (size_t i = 0; i < way->passed.count; i++)
        if (is_in(way->passed.items[i], folder))
            return true;
    return false;
}

static struct look *look_new(const char *const *directories, size_t count)
{
    struct look *look = mem_zero(1, sizeof *look);
    pthread_mutex_init(&look->lock, NULL);
    clock_condition_init(&look->has_ended);
    arena_init(&look->arena);
    look->count = count;
    look->ways = ARENA_ARRAY(&look->arena, struct folder_way, count);
    for (size_t i = 0; i < count; i++)
        look->ways[i].directory = arena_copy(&look->arena, text_of(directories[i]));
    return look;
}

static void look_free(struct look *look)
{
    for (size_t i = 0; i < look->count; i++)
        ARRAY_FREE(&look->ways[i].passed);
    arena_release(&look->arena);
    pthread_cond_destroy(&look->has_ended);
    pthread_mutex_destroy(&look->lock);
    mem_free(look);
}

static void *look_run(void *context)
{
    struct look *look = context;
    for (size_t i = 0; i < look->count; i++)
        way_find(&look->ways[i], true, &look->arena);
    pthread_mutex_lock(&look->lock);
    look->is_over = true;
    const bool is_left = look->is_left;
    pthread_cond_signal(&look->has_ended);
    pthread_mutex_unlock(&look->lock);
    if (is_left)
        look_free(look);
    return NULL;
}

/* False: it is the thread's from now on. */
static bool look_await(struct look *look, uint32_t patience_ms)
{
    const struct timespec until = clock_moment(clock_monotonic_ms() + patience_ms);
    pthread_mutex_lock(&look->lock);
    while (!look->is_over &&
           pthread_cond_timedwait(&look->has_ended, &look->lock, &until) != ETIMEDOUT)
        continue;
    const bool is_over = look->is_over;
    look->is_left = !is_over;
    pthread_mutex_unlock(&look->lock);
    return is_over;
}

/* A disk of another machine may hang for ever: neither a start nor a reload waits for that. NULL:
 * that long, or there is no thread. */
static struct look *look_links(const char *const *directories, size_t count, uint32_t patience_ms)
{
    struct look *look = look_new(directories, count);
    pthread_t thread;
    if (pthread_create(&thread, NULL, look_run, look) != 0) {
        look_free(look);
        return NULL;
    }
    pthread_detach(thread);
    return look_await(look, patience_ms) ? look : NULL;
}

static struct look *look_names(const char *const *directories, size_t count)
{
    struct look *look = look_new(directories, count);
    for (size_t i = 0; i < count; i++)
        way_find(&look->ways[i], false, &look->arena);
    return look;
}

/* --- the check --- */

struct folder {
    const char *what;
    struct place place;
    bool is_written; /* by users */
    bool is_storage;
};

/* Could who writes in the other one have something else mounted in its place? Of two storages that
 * are one folder no name in it leads to either: the operator offers it in two ways. */
static bool lies_in(const struct look *look, const struct folder *folders, size_t inner,
                    size_t outer)
{
    const struct folder_way *way = &look->ways[inner];
    const char *folder = look->ways[outer].end;
    const bool is_twice =
        strcmp(way->end, folder) == 0 && folders[inner].is_storage && folders[outer].is_storage;
    return folders[outer].is_written &&
           (leads_through(way, folder) || (!is_twice && is_in(way->end, folder)));
}

static void pair_check(const struct look *look, const struct folder *folders, size_t i, size_t j,
                       struct problems *problems)
{
    const size_t inner = lies_in(look, folders, i, j) ? i : j, outer = i + j - inner;
    if (lies_in(look, folders, inner, outer))
        problem_add(problems, folders[i].place, "storages.directory",
                    "%s, %s, lies in %s, %s: who writes there could put a link in its place",
                    folders[inner].what, look->ways[inner].directory, folders[outer].what,
                    look->ways[outer].directory);
}

static void check_folders(const struct server_config *config, const struct doc *doc,
                          uint32_t patience_ms, struct problems *problems)
{
    const struct storage_list list = config->storages;
    const struct doc *files = doc_get(doc, "filesDirectory");
    struct folder *folders = ARENA_ARRAY(problems->arena, struct folder, list.count + 1);
    const char **directories = ARENA_ARRAY(problems->arena, const char *, list.count + 1);
    size_t count = 1;
    folders[0] = (struct folder){"filesDirectory", files ? files->place : (struct place){1, 1},
                                 .is_written = true};
    directories[0] = config->files_directory;
    if (!directories[0][0])
        directories[0] = arena_format(problems->arena, "%s/files", config->data_directory);
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i].directory[0] == '/') {
            folders[count] =
                (struct folder){arena_format(problems->arena, "storage %s", list.items[i].name),
                                doc_get_list(doc, "storages")->as.list.items[i]->place,
                                .is_written = !list.items[i].is_read_only, .is_storage = true};
            directories[count++] = list.items[i].directory;
        }
    if (count == 1)
        return;
    struct look *look = look_links(directories, count, patience_ms);
    if (!look) {
        problem_warn(problems, folders[1].place, "storages",
                     "a disk does not answer: whether folders lie in one another is told by their "
                     "names, without links");
        look = look_names(directories, count);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            pair_check(look, folders, i, j, problems);
    look_free(look);
}

void config_storages_check(const struct server_config *config, const struct doc *doc,
                           uint32_t patience_ms, struct problems *problems)
{
    const struct doc *list = doc_get_list(doc, "storages");
    for (size_t i = 0; i < config->storages.count; i++) {
        const struct storage *storage = &config->storages.items[i];
        const struct place place = list->as.list.items[i]->place;
        if (!storage->directory[0] && !storage->claim[0])
            problem_add(problems, place, "storages",
                        "%s has neither a directory nor a claim: it is nowhere", storage->name);
        if (storage->directory[0] && storage->directory[0] != '/')
            problem_add(problems, place, "storages.directory", "must begin with /");
        for (size_t j = 0; j < i; j++)
            if (strcmp(storage->name, config->storages.items[j].name) == 0)
                problem_add(problems, place, "storages.name", "storage %zu is called %s as well",
                            j + 1, storage->name);
    }
    check_folders(config, doc, patience_ms, problems);
}
