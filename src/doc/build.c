#include "doc/build.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/memory.h"

enum { KEY_SHOWN_MAX = 64, PATH_MAX_BYTES = 256 };

void build_init(struct builder *builder, struct arena *arena, struct problems *problems)
{
    *builder = (struct builder){.arena = arena, .problems = problems};
}

void build_release(struct builder *builder)
{
    ARRAY_FREE(builder);
}

bool build_wants_key(const struct builder *builder)
{
    if (builder->depth == 0)
        return false;
    const struct build_frame *top = &builder->frames[builder->depth - 1];
    return top->node->kind == DOC_MAP && !top->has_key;
}

static void path_write(const struct builder *builder, char *path, size_t room)
{
    size_t length = 0;
    path[0] = '\0';
    for (size_t i = 0; i < builder->depth && length < room; i++) {
        const struct build_frame *frame = &builder->frames[i];
        int added = 0;
        if (frame->node->kind == DOC_LIST) {
            size_t last = i + 1 < builder->depth ? builder->frames[i + 1].first : builder->count;
            added = snprintf(path + length, room - length, "[%zu]", last - frame->first);
        } else if (frame->has_key) {
            size_t shown = frame->key.length < KEY_SHOWN_MAX ? frame->key.length : KEY_SHOWN_MAX;
            added = snprintf(path + length, room - length, "%s%.*s", length ? "." : "", (int)shown,
                             frame->key.at);
        }
        length += (size_t)added;
    }
}

struct problem *build_problem(struct builder *builder, struct place place, const char *format, ...)
{
    char path[PATH_MAX_BYTES], text[300];
    path_write(builder, path, sizeof path);
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return problem_add(builder->problems, place, path, "%s", text);
}

struct doc *build_node(struct builder *builder, enum doc_kind kind, struct place place)
{
    struct doc *node = ARENA_NEW(builder->arena, struct doc);
    node->kind = kind;
    node->place = node->end = place;
    return node;
}

void build_key(struct builder *builder, struct text key, struct place place, bool is_merge_key)
{
    assert(build_wants_key(builder));
    struct build_frame *top = &builder->frames[builder->depth - 1];
    if (key.length > DOC_KEY_MAX) {
        build_problem(builder, place, "a key of more than %d bytes", DOC_KEY_MAX);
        builder->is_stopped = true;
    }
    top->key = key;
    top->place = place;
    top->has_key = true;
    top->is_merge_key = is_merge_key;
    top->has_merge |= is_merge_key;
}

static void item_add(struct builder *builder, const struct doc *value)
{
    if (builder->depth == 0) {
        builder->root = value;
        return;
    }
    struct build_frame *top = &builder->frames[builder->depth - 1];
    struct build_item *item = ARRAY_ADD(builder);
    item->entry = (struct doc_entry){.key = top->key, .place = top->place, .value = value};
    item->is_merge = top->is_merge_key;
    top->has_key = top->is_merge_key = false;
    if (top->height < builder->height)
        top->height = builder->height;
}

void build_value(struct builder *builder, const struct doc *value, size_t node_count,
                 unsigned height)
{
    if (builder->is_stopped)
        return;
    builder->node_count += node_count;
    if (builder->node_count > DOC_NODES_MAX) {
        builder->is_stopped = true;
        build_problem(builder, value->place, "more than %d values, aliases expanded",
                      DOC_NODES_MAX);
        return;
    }
    if (builder->depth + height > DOC_DEPTH_MAX) {
        builder->is_stopped = true;
        build_problem(builder, value->place, "more than %d levels deep", DOC_DEPTH_MAX);
        return;
    }
    builder->height = height;
    builder->value_count = node_count;
    item_add(builder, value);
}

void build_open(struct builder *builder, struct doc *node)
{
    if (builder->is_stopped)
        return;
    if (builder->depth == DOC_DEPTH_MAX) {
        builder->is_stopped = true;
        build_problem(builder, node->place, "more than %d levels deep", DOC_DEPTH_MAX);
        return;
    }
    builder->frames[builder->depth++] = (struct build_frame){
        .node = node, .first = builder->count, .count_before = builder->node_count};
    builder->node_count++;
}

/* An entry with its rank: what the map itself says stands before what it merges. */
struct ranked {
    struct doc_entry entry;
    size_t rank, position; /* position: among those that stay */
    bool is_dropped;
};

static int ranked_compare(const void *left, const void *right)
{
    const struct ranked *a = *(struct ranked *const *)left, *b = *(struct ranked *const *)right;
    int order = doc_key_compare(a->entry.key, b->entry.key);
    return order != 0 ? order : a->rank < b->rank ? -1 : 1;
}

static void repeated(struct builder *builder, const struct ranked *first, struct ranked *again)
{
    again->is_dropped = true;
    if (again->entry.is_merged)
        return;
    struct text key = again->entry.key;
    size_t shown = key.length < KEY_SHOWN_MAX ? key.length : KEY_SHOWN_MAX;
    build_problem(builder, again->entry.place, "duplicate key \"%.*s\", first on line %u",
                  (int)shown, key.at, first->entry.place.line);
}

static void few_drop(struct builder *builder, struct ranked *all, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (!all[j].is_dropped && text_equal(all[i].entry.key, all[j].entry.key)) {
                repeated(builder, &all[j], &all[i]);
                break;
            }
}

/* Of equal keys the first stays. Sorting, not hashing: keys come from outside and a pure module has
 * no secret seed. */
static void many_drop(struct builder *builder, struct ranked **sorted, size_t count)
{
    qsort(sorted, count, sizeof(struct ranked *), ranked_compare);
    const struct ranked *first = sorted[0];
    for (size_t i = 1; i < count; i++) {
        if (text_equal(first->entry.key, sorted[i]->entry.key))
            repeated(builder, first, sorted[i]);
        else
            first = sorted[i];
    }
}

static size_t merged_count(struct builder *builder, const struct build_item *item)
{
    const struct doc *value = item->entry.value;
    if (value->kind == DOC_MAP)
        return value->as.map.count;
    size_t count = 0;
    bool is_right = value->kind == DOC_LIST;
    for (size_t i = 0; is_right && i < value->as.list.count; i++) {
        const struct doc *source = value->as.list.items[i];
        is_right = source->kind == DOC_MAP;
        count += is_right ? source->as.map.count : 0;
    }
    if (is_right)
        return count;
    build_problem(builder, item->entry.place, "a merge key takes a map or a list of maps");
    return 0;
}

static size_t merged_take(struct ranked *all, size_t count, const struct doc *map)
{
    for (size_t i = 0; i < map->as.map.count; i++) {
        all[count] = (struct ranked){.entry = map->as.map.entries[i], .rank = count};
        all[count].entry.is_merged = true;
        count++;
    }
    return count;
}

/* The map's own entries, then those that its merge keys bring. */
static size_t entries_gather(struct builder *builder, const struct build_item *items, size_t count,
                             struct ranked **out)
{
    struct {
        struct ranked *items;
        size_t count, room;
    } all = {0};
    for (size_t i = 0; i < count; i++)
        if (!items[i].is_merge) {
            ARRAY_RESERVE(&all, all.count + 1);
            all.items[all.count] = (struct ranked){.entry = items[i].entry, .rank = all.count};
            all.count++;
        }
    for (size_t i = 0; i < count; i++) {
        size_t more = items[i].is_merge ? merged_count(builder, &items[i]) : 0;
        if (more == 0)
            continue;
        const struct doc *value = items[i].entry.value;
        ARRAY_RESERVE(&all, all.count + more);
        if (value->kind == DOC_MAP)
            all.count = merged_take(all.items, all.count, value);
        else
            for (size_t j = 0; j < value->as.list.count; j++)
                all.count = merged_take(all.items, all.count, value->as.list.items[j]);
    }
    *out = all.items;
    return all.count;
}

static bool has_repeated(const struct build_item *items, size_t count)
{
    if (count > DOC_FEW_KEYS)
        return true; /* perhaps: the sort will tell */
    for (size_t i = 1; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (text_equal(items[i].entry.key, items[j].entry.key))
                return true;
    return false;
}

static void entries_take(struct builder *builder, struct doc *node, struct ranked *all,
                         struct ranked *const *sorted, size_t count)
{
    struct doc_entry *entries = ARENA_ARRAY(builder->arena, struct doc_entry, count);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!all[i].is_dropped) {
            all[i].position = kept;
            entries[kept++] = all[i].entry;
        }
    node->as.map.entries = entries;
    node->as.map.count = kept;
    if (kept <= DOC_FEW_KEYS)
        return;
    node->as.map.by_key = ARENA_ARRAY(builder->arena, const struct doc_entry *, kept);
    for (size_t i = 0, next = 0; i < count; i++)
        if (!sorted[i]->is_dropped)
            node->as.map.by_key[next++] = &entries[sorted[i]->position];
}

static void map_fill(struct builder *builder, struct doc *node, const struct build_item *items,
                     size_t count, bool has_merge)
{
    if (!has_merge && !has_repeated(items, count)) {
        node->as.map.entries = ARENA_ARRAY(builder->arena, struct doc_entry, count);
        node->as.map.count = count;
        for (size_t i = 0; i < count; i++)
            node->as.map.entries[i] = items[i].entry;
        return;
    }
    node->is_shared |= has_merge;
    struct ranked *all = NULL, **sorted = NULL;
    size_t used = entries_gather(builder, items, count, &all);
    if (used <= DOC_FEW_KEYS) {
        few_drop(builder, all, used);
    } else {
        sorted = mem_zero(used, sizeof(struct ranked *));
        for (size_t i = 0; i < used; i++)
            sorted[i] = &all[i];
        many_drop(builder, sorted, used);
    }
    entries_take(builder, node, all, sorted, used);
    mem_free(sorted);
    mem_free(all);
}

void build_close(struct builder *builder)
{
    assert(builder->depth > 0 && !builder->is_stopped);
    struct build_frame *top = &builder->frames[builder->depth - 1];
    struct doc *node = top->node;
    size_t count = builder->count - top->first;
    const struct build_item *items = count ? &builder->items[top->first] : NULL;
    if (node->kind == DOC_LIST) {
        node->as.list.items = ARENA_ARRAY(builder->arena, const struct doc *, count);
        node->as.list.count = count;
        for (size_t i = 0; i < count; i++)
            node->as.list.items[i] = items[i].entry.value;
    } else if (count > 0) {
        map_fill(builder, node, items, count, top->has_merge);
    }
    builder->count = top->first;
    builder->height = top->height + 1;
    builder->value_count = builder->node_count - top->count_before;
    builder->depth--;
    item_add(builder, node);
}
