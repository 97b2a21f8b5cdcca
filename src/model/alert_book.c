#include "model/alert_book.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include <assert.h>
#include <string.h>

static const char MAGIC[4] = {'a', 'l', 't', '1'};

struct alert_entry {
    struct alert_copy copy;
    bool is_found, has_own_time;
};

struct alert_book {
    struct {
        struct alert_entry *items; /* as they began */
        size_t count, room;
    } entries;
    struct text_map by_key; /* the latest of each key */
};

struct alert_book *alert_book_new(void)
{
    return mem_zero(1, sizeof(struct alert_book));
}

static void book_clear(struct alert_book *book)
{
    for (size_t i = 0; i < book->entries.count; i++)
        alert_copy_release(&book->entries.items[i].copy);
    ARRAY_FREE(&book->entries);
    text_map_release(&book->by_key);
}

void alert_book_free(struct alert_book *book)
{
    if (!book)
        return;
    book_clear(book);
    mem_free(book);
}

/* --- what is told --- */

static struct alert_entry *entry_add(struct alert_book *book, const struct alert *alert)
{
    struct alert_entry *entry = ARRAY_ADD(&book->entries);
    alert_copy_set(&entry->copy, alert);
    text_map_remove(&book->by_key, entry->copy.key); /* the map keeps the key of who set it */
    text_map_set(&book->by_key, entry->copy.key, (uint32_t)book->entries.count - 1);
    return entry;
}

static bool goes_on(const struct alert_entry *entry, const struct alert *found, int64_t now_ms)
{
    const int64_t ended_ms = entry->copy.alert.ended_ms;
    return !ended_ms || (now_ms - ended_ms <= ALERT_AGAIN_MS && found->since_ms <= ended_ms);
}

/* What began or ended later than now did so by a time that was wrong. Whoever waits for it to have
 * stood long enough would wait for that time: it is taken as of now. */
static bool ahead_mend(struct alert_book *book, int64_t now_ms)
{
    bool has_changed = false;
    for (size_t i = 0; i < book->entries.count; i++) {
        struct alert_entry *entry = &book->entries.items[i];
        struct alert *alert = &entry->copy.alert;
        if (alert->since_ms <= now_ms && alert->ended_ms <= now_ms)
            continue;
        if (alert->ended_ms) /* how long it lasted is not known any more: it is no brief one */
            entry->has_own_time = true;
        alert->since_ms = alert->since_ms < now_ms ? alert->since_ms : now_ms;
        alert->ended_ms = alert->ended_ms < now_ms ? alert->ended_ms : now_ms;
        has_changed = true;
    }
    return has_changed;
}

/* True: it had ended, or its severity is another one. */
static bool entry_renew(struct alert_book *book, uint32_t at, const struct alert *found)
{
    struct alert_entry *entry = &book->entries.items[at];
    const struct alert *old = &entry->copy.alert;
    const bool is_news = old->ended_ms || strcmp(old->severity, found->severity) != 0;
    struct alert renewed = *found;
    renewed.since_ms = old->since_ms;
    renewed.ended_ms = 0;
    entry->is_found = true;
    if (!is_news && strcmp(old->summary, found->summary) == 0)
        return false;
    text_map_remove(&book->by_key, entry->copy.key);
    alert_copy_set(&entry->copy, &renewed);
    text_map_set(&book->by_key, entry->copy.key, at);
    return is_news;
}

static bool found_take(struct alert_book *book, const struct alert *found, int64_t now_ms)
{
    cleanup_buf struct buf key = BUF_INIT;
    alert_key_put(found, &key);
    const uint32_t at = text_map_get(&book->by_key, buf_as_text(&key));
    if (at != MAP_NONE && goes_on(&book->entries.items[at], found, now_ms))
        return entry_renew(book, at, found);
    struct alert begun = *found;
    if (begun.since_ms == 0 || begun.since_ms > now_ms)
        begun.since_ms = now_ms;
    begun.ended_ms = 0;
    struct alert_entry *entry = entry_add(book, &begun);
    entry->is_found = true;
    entry->has_own_time = found->since_ms != 0;
    return true;
}

static bool is_brief(const struct alert_entry *entry, int64_t until_ms)
{
    return !entry->has_own_time && until_ms - entry->copy.alert.since_ms < ALERT_BRIEF_MS;
}

/* Of one key the latest. */
static void keys_map(struct alert_book *book)
{
    text_map_release(&book->by_key);
    for (size_t i = 0; i < book->entries.count; i++) {
        const struct text key = book->entries.items[i].copy.key;
        text_map_remove(&book->by_key, key);
        text_map_set(&book->by_key, key, (uint32_t)i);
    }
}

/* Of those that have ended, how many are to go because there are too many: the oldest ones. */
static size_t surplus_of(const struct alert_book *book)
{
    size_t ended = 0;
    for (size_t i = 0; i < book->entries.count; i++)
        ended += book->entries.items[i].copy.alert.ended_ms != 0;
    return ended > ALERTS_KEPT ? ended - ALERTS_KEPT : 0;
}

static bool is_past(const struct alert_entry *entry, int64_t trusted_ms)
{
    const int64_t ended_ms = entry->copy.alert.ended_ms;
    return ended_ms && (is_brief(entry, ended_ms) || trusted_ms - ended_ms > ALERT_KEEP_MS);
}

static void past_drop(struct alert_book *book, int64_t trusted_ms)
{
    size_t kept = 0, surplus = surplus_of(book);
    for (size_t i = 0; i < book->entries.count; i++) {
        struct alert_entry *entry = &book->entries.items[i];
        const bool is_surplus = surplus > 0 && entry->copy.alert.ended_ms;
        if (is_surplus || is_past(entry, trusted_ms)) {
            surplus -= is_surplus;
            alert_copy_release(&entry->copy);
        } else {
            book->entries.items[kept++] = *entry;
        }
    }
    if (kept == book->entries.count)
        return;
    book->entries.count = kept;
    keys_map(book);
}

bool alert_book_take(struct alert_book *book, const struct alert *found, size_t count,
                     struct alert_time time,
                     bool (*stays)(void *context, const struct alert *alert), void *context)
{
    const int64_t now_ms = time.now_ms;
    bool has_changed = ahead_mend(book, now_ms);
    for (size_t i = 0; i < book->entries.count; i++)
        book->entries.items[i].is_found = false;
    for (size_t i = 0; i < count; i++)
        has_changed |= found_take(book, &found[i], now_ms);
    for (size_t i = 0; i < book->entries.count; i++) {
        struct alert_entry *entry = &book->entries.items[i];
        struct alert *alert = &entry->copy.alert;
        if (alert->ended_ms || entry->is_found || (stays && stays(context, alert)))
            continue;
        alert->ended_ms = now_ms;
        has_changed = true;
    }
    past_drop(book, time.trusted_ms);
    return has_changed;
}

/* --- what is told of it --- */

struct order {
    const struct alert *alert;
    size_t number;
};

static int order_compare(const void *left, const void *right)
{
    const struct order *a = left, *b = right;
    const bool a_stands = !a->alert->ended_ms, b_stands = !b->alert->ended_ms;
    if (a_stands != b_stands)
        return a_stands ? -1 : 1;
    if (a->alert->since_ms != b->alert->since_ms)
        return a->alert->since_ms > b->alert->since_ms ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

static struct order *order_make(const struct alert_book *book)
{
    struct order *order = mem_zero(book->entries.count + 1, sizeof *order);
    for (size_t i = 0; i < book->entries.count; i++)
        order[i] = (struct order){&book->entries.items[i].copy.alert, i};
    qsort(order, book->entries.count, sizeof *order, order_compare);
    return order;
}

void alert_book_list(const struct alert_book *book, struct arena *arena, struct alert **list,
                     size_t *count)
{
    struct order *order = order_make(book);
    *count = book->entries.count;
    *list = ARENA_ARRAY(arena, struct alert, *count + 1);
    for (size_t i = 0; i < *count; i++) {
        struct alert *copy = &(*list)[i];
        *copy = *order[i].alert;
        copy->name = arena_copy(arena, text_of(copy->name));
        copy->severity = arena_copy(arena, text_of(copy->severity));
        copy->summary = arena_copy(arena, text_of(copy->summary));
        for (size_t k = 0; k < ALERT_LABELS && copy->labels[k].key; k++) {
            copy->labels[k].key = arena_copy(arena, text_of(copy->labels[k].key));
            copy->labels[k].value = arena_copy(arena, text_of(copy->labels[k].value));
        }
    }
    mem_free(order);
}

/* --- on disk --- */

static void entry_write(const struct alert_entry *entry, struct buf *out)
{
    const struct alert *alert = &entry->copy.alert;
    buf_put_u64(out, (uint64_t)alert->since_ms);
    buf_put_u64(out, (uint64_t)alert->ended_ms);
    buf_put_u8(out, entry->has_own_time);
    alert_words_write(alert, out);
}

void alert_book_write(const struct alert_book *book, int64_t now_ms, size_t most, struct buf *out)
{
    const size_t begin = out->length, end = begin + most;
    struct order *order = order_make(book);
    cleanup_buf struct buf one = BUF_INIT;
    for (size_t i = 0; i < book->entries.count; i++) {
        const struct alert_entry *entry = &book->entries.items[order[i].number];
        if (!entry->copy.alert.ended_ms && is_brief(entry, now_ms))
            continue;
        buf_clear(&one);
        if (out->length == begin)
            buf_add(&one, MAGIC, sizeof MAGIC);
        entry_write(entry, &one);
        if (out->length + one.length <= end)
            buf_text(out, buf_as_text(&one));
    }
    mem_free(order);
}

static bool entry_read(struct cursor *cursor, struct arena *arena, struct alert *alert,
                       bool *has_own_time)
{
    alert->since_ms = (int64_t)cursor_u64(cursor);
    alert->ended_ms = (int64_t)cursor_u64(cursor);
    *has_own_time = cursor_u8(cursor);
    return alert_words_read(cursor, arena, alert) && alert->since_ms > 0 &&
           (alert->ended_ms == 0 || alert->ended_ms >= alert->since_ms);
}

int alert_book_read(struct alert_book *book, struct text bytes, struct err *err)
{
    assert(book->entries.count == 0);
    struct cursor cursor = cursor_of(bytes);
    if (bytes.length < sizeof MAGIC || memcmp(bytes.at, MAGIC, sizeof MAGIC) != 0)
        return err_fail(err, ERR_CORRUPT, "", "they are not alerts as this version keeps them");
    cursor.at += sizeof MAGIC;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    while (cursor.at < cursor.end) {
        struct alert alert = {0};
        bool has_own_time;
        if (!entry_read(&cursor, &arena, &alert, &has_own_time)) {
            book_clear(book);
            return err_fail(err, ERR_CORRUPT, "", "an alert that was kept is damaged");
        }
        entry_add(book, &alert)->has_own_time = has_own_time;
    }
    /* they were written the newest first: the latest of a key is to come last */
    for (size_t i = 0, k = book->entries.count; i + 1 < k; i++) {
        const struct alert_entry first = book->entries.items[i];
        book->entries.items[i] = book->entries.items[--k];
        book->entries.items[k] = first;
    }
    keys_map(book);
    return 0;
}
