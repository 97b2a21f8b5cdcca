#include "engine/local/id_ranges.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/userns.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 16 };

/* The highest ids mean "none" to some calls, and to programs that take them as signed. */
static const uint64_t ids_end = 0xffff0000;

struct id_view { /* of folders that these own */
    struct id_owner owner;
    int userns_fd;
};

struct id_range { /* of one job */
    char *job;
    uint32_t first;
    int userns_fd; /* -1: not made yet */
    size_t member_count;
    struct {
        struct id_view *items;
        size_t count, room;
    } views;
};

struct id_member { /* a task */
    struct attempt_id attempt;
    struct id_range *range;
};

struct id_ranges {
    uint32_t first, count;
    bool is_counted_for_root;
    void (*on_taken)(void *context, uint32_t first);
    void *context;
    char *owner;
    int registry_fd;
    pthread_mutex_t lock; /* of all that follows */
    uint32_t next;        /* looked at next: one that was given back just now comes last */
    struct {
        struct id_range **items;
        size_t count, room;
    } all;
    struct {
        struct id_member *items;
        size_t count, room;
    } members;
};

int id_ranges_new(const struct id_ranges_config *config, struct id_ranges **out, struct err *err)
{
    const uint64_t end = config->first + ((uint64_t)config->count + 1) * ID_RANGE_IDS;
    assert(config->owner && config->registry);
    if (config->first < ID_RANGE_IDS || config->first % ID_RANGE_IDS != 0)
        return err_fail(err, ERR_INVALID, "engine.userNamespaces.firstId",
                        "must be a multiple of %d, got %u", ID_RANGE_IDS, config->first);
    if (config->count < 1 || config->count > ID_RANGES_COUNT_MAX || end > ids_end)
        return err_fail(err, ERR_INVALID, "engine.userNamespaces.jobs",
                        "%u jobs of %d ids each do not fit behind id %u", config->count,
                        ID_RANGE_IDS, config->first);
    int code = dir_make(config->registry, 0755, err);
    if (code < 0)
        return code;
    const int fd = open(config->registry, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, errno, "open %s", config->registry);
    struct id_ranges *ranges = mem_zero(1, sizeof *ranges);
    ranges->first = config->first;
    ranges->count = config->count;
    ranges->is_counted_for_root = config->is_counted_for_root;
    ranges->on_taken = config->on_taken;
    ranges->context = config->context;
    ranges->owner = mem_copy(config->owner);
    ranges->registry_fd = fd;
    ranges->next = (uint32_t)getpid() % config->count; /* beside another engine: elsewhere */
    pthread_mutex_init(&ranges->lock, NULL);
    *out = ranges;
    return 0;
}

static void range_free(struct id_range *range)
{
    for (size_t i = 0; i < range->views.count; i++)
        close(range->views.items[i].userns_fd);
    ARRAY_FREE(&range->views);
    if (range->userns_fd >= 0)
        close(range->userns_fd);
    mem_free(range->job);
    mem_free(range);
}

void id_ranges_free(struct id_ranges *ranges)
{
    if (!ranges)
        return;
    for (size_t i = 0; i < ranges->all.count; i++)
        range_free(ranges->all.items[i]);
    ARRAY_FREE(&ranges->all);
    ARRAY_FREE(&ranges->members);
    close(ranges->registry_fd);
    mem_free(ranges->owner);
    pthread_mutex_destroy(&ranges->lock);
    mem_free(ranges);
}

/* --- the register --- */

static void link_name(uint32_t first, char name[NAME_MAX_BYTES])
{
    snprintf(name, NAME_MAX_BYTES, "%u", first);
}

/* 1: it is ours now; 0: it is in use. */
static int link_take(const struct id_ranges *ranges, uint32_t first, struct err *err)
{
    char name[NAME_MAX_BYTES];
    link_name(first, name);
    if (symlinkat(ranges->owner, ranges->registry_fd, name) == 0)
        return 1;
    return errno == EEXIST ? 0
                           : err_errno(err, errno, "note that ids from %u on are in use", first);
}

static void link_give(const struct id_ranges *ranges, uint32_t first)
{
    char name[NAME_MAX_BYTES];
    link_name(first, name);
    if (unlinkat(ranges->registry_fd, name, 0) < 0)
        log_warning("engine", "the ids from %u on stay in use: errno %d", first, errno);
}

static bool link_read(const struct id_ranges *ranges, const char *name, char owner[PATH_MAX])
{
    const ssize_t length = readlinkat(ranges->registry_fd, name, owner, PATH_MAX - 1);
    owner[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* --- ranges; with the lock --- */

static struct id_range *range_find(const struct id_ranges *ranges, const char *job)
{
    for (size_t i = 0; i < ranges->all.count; i++)
        if (strcmp(ranges->all.items[i]->job, job) == 0)
            return ranges->all.items[i];
    return NULL;
}

static struct id_range *range_at(const struct id_ranges *ranges, uint32_t first)
{
    for (size_t i = 0; i < ranges->all.count; i++)
        if (ranges->all.items[i]->first == first)
            return ranges->all.items[i];
    return NULL;
}

static struct id_range *range_add(struct id_ranges *ranges, const char *job, uint32_t first)
{
    struct id_range *range = mem_zero(1, sizeof *range);
    assert(!range_at(ranges, first));
    range->job = mem_copy(job);
    range->first = first;
    range->userns_fd = -1;
    *ARRAY_ADD(&ranges->all) = range;
    return range;
}

static void range_drop(struct id_ranges *ranges, struct id_range *range)
{
    for (size_t i = 0; i < ranges->all.count; i++)
        if (ranges->all.items[i] == range) {
            ranges->all.items[i] = ranges->all.items[--ranges->all.count];
            break;
        }
    link_give(ranges, range->first);
    range_free(range);
}

static bool is_given_out(const struct id_ranges *ranges, uint32_t first)
{
    return first % ID_RANGE_IDS == 0 && first > ranges->first &&
           (first - ranges->first) / ID_RANGE_IDS <= ranges->count;
}

/* A link that cannot be made is told of by who looks for any range. */
static struct id_range *range_wished(struct id_ranges *ranges, const char *job,
                                     const struct id_wish *wish)
{
    for (size_t i = 0; wish && i < wish->count; i++)
        if (is_given_out(ranges, wish->firsts[i]) && link_take(ranges, wish->firsts[i], NULL) > 0)
            return range_add(ranges, job, wish->firsts[i]);
    return NULL;
}

static int range_choose(struct id_ranges *ranges, const char *job, const struct id_wish *wish,
                        struct id_range **range, struct err *err)
{
    *range = range_wished(ranges, job, wish);
    if (*range)
        return 0;
    for (uint32_t tries = 0; tries < ranges->count; tries++) {
        const uint32_t first = ranges->first + (ranges->next + 1) * ID_RANGE_IDS;
        ranges->next = (ranges->next + 1) % ranges->count;
        const int taken = link_take(ranges, first, err);
        if (taken < 0)
            return taken;
        if (taken > 0) {
            *range = range_add(ranges, job, first);
            return 0;
        }
    }
    return err_fail(err, ERR_TOO_BIG, "",
                    "all %u ranges of user ids are in use (engine.userNamespaces.jobs)",
                    ranges->count);
}

static void member_add(struct id_ranges *ranges, struct id_range *range, struct attempt_id attempt)
{
    *ARRAY_ADD(&ranges->members) = (struct id_member){attempt, range};
    range->member_count++;
}

/* --- tasks --- */

static bool member_is(const struct id_ranges *ranges, struct attempt_id attempt)
{
    for (size_t i = 0; i < ranges->members.count; i++)
        if (ranges->members.items[i].attempt.v == attempt.v)
            return true;
    return false;
}

int id_ranges_join(struct id_ranges *ranges, const char *job, struct attempt_id attempt,
                   const struct id_wish *wish, uint32_t *first, struct err *err)
{
    int code = 0;
    pthread_mutex_lock(&ranges->lock);
    struct id_range *range = range_find(ranges, job);
    if (!range) {
        code = range_choose(ranges, job, wish, &range, err);
        if (code == 0 && ranges->on_taken)
            ranges->on_taken(ranges->context, range->first);
    }
    assert(code != 0 || range);
    if (code == 0) {
        if (!member_is(ranges, attempt))
            member_add(ranges, range, attempt);
        *first = range->first;
    }
    pthread_mutex_unlock(&ranges->lock);
    return code;
}

/* Is it noted as this engine's? Then it was left so. */
static bool link_is_ours(const struct id_ranges *ranges, uint32_t first)
{
    char name[NAME_MAX_BYTES], owner[PATH_MAX];
    link_name(first, name);
    return link_read(ranges, name, owner) && strcmp(owner, ranges->owner) == 0;
}

bool id_ranges_while_free(struct id_ranges *ranges, uint32_t first, void (*act)(void *context),
                          void *context)
{
    pthread_mutex_lock(&ranges->lock);
    /* a link without a range: something of an ended task may run on it */
    const bool is_free = !range_at(ranges, first) && !link_is_ours(ranges, first);
    if (is_free)
        act(context);
    pthread_mutex_unlock(&ranges->lock);
    return is_free;
}

int id_ranges_adopt(struct id_ranges *ranges, const char *job, struct attempt_id attempt,
                    uint32_t first, struct err *err)
{
    pthread_mutex_lock(&ranges->lock);
    struct id_range *range = range_at(ranges, first);
    const bool is_of_another = range && strcmp(range->job, job) != 0;
    int code = range ? !is_of_another : link_take(ranges, first, err);
    if (code == 0 && !range && link_is_ours(ranges, first))
        code = 1;
    if (code == 0)
        code = err_fail(err, ERR_CONFLICT, "", "the ids from %u on are those of another %s", first,
                        is_of_another ? "job" : "engine");
    if (code > 0) {
        if (!range)
            range = range_add(ranges, job, first);
        member_add(ranges, range, attempt);
    }
    pthread_mutex_unlock(&ranges->lock);
    return code < 0 ? code : 0;
}

void id_ranges_leave(struct id_ranges *ranges, struct attempt_id attempt)
{
    pthread_mutex_lock(&ranges->lock);
    for (size_t i = 0; i < ranges->members.count; i++) {
        struct id_range *range = ranges->members.items[i].range;
        if (ranges->members.items[i].attempt.v != attempt.v)
            continue;
        ranges->members.items[i] = ranges->members.items[--ranges->members.count];
        assert(range->member_count > 0);
        if (--range->member_count == 0)
            range_drop(ranges, range);
        break;
    }
    pthread_mutex_unlock(&ranges->lock);
}

static bool is_left_over(const struct id_ranges *ranges, const char *name)
{
    char owner[PATH_MAX], *end;
    const unsigned long first = strtoul(name, &end, 10);
    if (*end || end == name || !link_read(ranges, name, owner))
        return false;
    if (strcmp(owner, ranges->owner) == 0)
        return !range_at(ranges, (uint32_t)first);
    return access(owner, F_OK) < 0 && errno == ENOENT;
}

void id_ranges_settle(struct id_ranges *ranges)
{
    pthread_mutex_lock(&ranges->lock);
    const int fd = openat(ranges->registry_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (is_left_over(ranges, entry->d_name))
            unlinkat(ranges->registry_fd, entry->d_name, 0);
    pthread_mutex_unlock(&ranges->lock);
}

/* --- namespaces --- */

/* It was tried when the engine was opened. What refuses one now is a limit of the kernel's, to
 * which other jobs may have brought it: nothing that this machine cannot do. */
static int namespace_make(const struct userns_map *users, const struct userns_map *groups,
                          uint32_t owner, struct err *err)
{
    struct err failure = {0};
    const int fd = userns_make(users, groups, owner, &failure);
    if (fd == ERR_UNSUPPORTED)
        return err_fail(err, ERR_UNAVAILABLE, "", "%s", failure.text);
    if (fd < 0 && err)
        *err = failure;
    return fd;
}

int id_ranges_namespace(struct id_ranges *ranges, const char *job, struct err *err)
{
    pthread_mutex_lock(&ranges->lock);
    struct id_range *range = range_find(ranges, job);
    assert(range);
    int fd = range->userns_fd;
    if (fd < 0) {
        const struct userns_map map = {.extents = {{0, range->first, ID_RANGE_IDS}}, .count = 1};
        fd = namespace_make(&map, &map, ranges->is_counted_for_root ? 0 : range->first, err);
        range->userns_fd = fd < 0 ? -1 : fd;
    }
    pthread_mutex_unlock(&ranges->lock);
    return fd;
}

/* Root of the task is `root` on the disk, who is `root` in the task is `nobody`, and all others are
 * who they are: so each id of a task is one of the disk's. The machine's root is none of the
 * task's, but one of the reserved range: nobody may write to what has an owner that is mapped to no
 * id at all, not even where all others may. */
static void view_map(uint32_t root, uint32_t nobody, uint32_t first, struct userns_map *map)
{
    const uint32_t last = ID_RANGE_IDS - 1;
    assert(root > 0 && nobody > last);
    map->count = 0;
    map->extents[map->count++] = (struct userns_extent){root, first, 1};
    map->extents[map->count++] = (struct userns_extent){0, nobody, 1};
    if (root > last) {
        map->extents[map->count++] = (struct userns_extent){1, first + 1, last};
        return;
    }
    if (root > 1)
        map->extents[map->count++] = (struct userns_extent){1, first + 1, root - 1};
    map->extents[map->count++] = (struct userns_extent){nobody, first + root, 1};
    if (root < last)
        map->extents[map->count++] =
            (struct userns_extent){root + 1, first + root + 1, last - root};
}

/* Who owns the folder with an id that no task has is ID_OWNER, so that root of the task may do in
 * it what it may do to all that its ids own. Who is that on the disk is `nobody`. */
static void owner_map(uint32_t owner, uint32_t nobody, uint32_t first, struct userns_map *map)
{
    assert(nobody >= ID_RANGE_IDS);
    map->count = 0;
    if (owner < ID_RANGE_IDS) {
        map->extents[map->count++] = (struct userns_extent){0, first, ID_RANGE_IDS};
        return;
    }
    map->extents[map->count++] = (struct userns_extent){0, first, ID_OWNER};
    map->extents[map->count++] = (struct userns_extent){owner, first + ID_OWNER, 1};
    map->extents[map->count++] = (struct userns_extent){ID_OWNER, nobody, 1};
    map->extents[map->count++] =
        (struct userns_extent){ID_OWNER + 1, first + ID_OWNER + 1, ID_RANGE_IDS - ID_OWNER - 1};
}

static int view_make(const struct id_ranges *ranges, uint32_t first, const struct id_owner *owner,
                     struct err *err)
{
    struct userns_map users, groups;
    if (owner->is_root) {
        view_map(owner->user, ranges->first, first, &users);
        view_map(owner->group, ranges->first, first, &groups);
    } else {
        owner_map(owner->user, ranges->first, first, &users);
        owner_map(owner->group, ranges->first, first, &groups);
    }
    return namespace_make(&users, &groups, 0, err);
}

static bool owner_is(const struct id_owner *a, const struct id_owner *b)
{
    return a->user == b->user && a->group == b->group && a->is_root == b->is_root;
}

int id_ranges_view(struct id_ranges *ranges, const char *job, const struct id_owner *owner,
                   struct err *err)
{
    int fd = -1;
    pthread_mutex_lock(&ranges->lock);
    struct id_range *range = range_find(ranges, job);
    assert(range);
    for (size_t i = 0; i < range->views.count && fd < 0; i++)
        if (owner_is(&range->views.items[i].owner, owner))
            fd = range->views.items[i].userns_fd;
    if (fd < 0) {
        fd = view_make(ranges, range->first, owner, err);
        if (fd >= 0)
            *ARRAY_ADD(&range->views) = (struct id_view){*owner, fd};
    }
    pthread_mutex_unlock(&ranges->lock);
    return fd;
}
