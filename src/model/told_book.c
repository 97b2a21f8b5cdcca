#include "model/told_book.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/printable.h"
#include <assert.h>
#include <string.h>

static const char MAGIC[4] = {'t', 'l', 'd', '1'};

struct told_entry {
    struct alert_copy copy; /* ended_ms: once that is to be said */
    int64_t over_ms;        /* when it has ended; 0: it stands */
    uint32_t heard, told;   /* targets: who may have heard that it stands; who has been told */
    size_t size;            /* in bytes, as it is written */
    bool is_found;          /* this round shows that it stands */
    bool is_ripe;           /* it has stood, or has been over, for long enough */
};

struct told_book {
    char *targets[TOLD_TARGETS_MAX];
    size_t target_count;
    struct {
        struct told_entry *items; /* as they were found */
        size_t count, room;
    } entries;
    struct text_map by_key;
    size_t bytes; /* of all entries */
};

struct told_book *told_book_new(void)
{
    return mem_zero(1, sizeof(struct told_book));
}

static void entries_clear(struct told_book *book)
{
    for (size_t i = 0; i < book->entries.count; i++)
        alert_copy_release(&book->entries.items[i].copy);
    ARRAY_FREE(&book->entries);
    text_map_release(&book->by_key);
    book->bytes = 0;
}

static void targets_clear(struct told_book *book)
{
    while (book->target_count > 0)
        mem_free(book->targets[--book->target_count]);
}

void told_book_free(struct told_book *book)
{
    if (!book)
        return;
    entries_clear(book);
    targets_clear(book);
    mem_free(book);
}

static uint32_t bit_of(size_t target)
{
    assert(target < TOLD_TARGETS_MAX);
    return UINT32_C(1) << target;
}

/* --- targets --- */

/* The same set with other numbers: number_of[old] is the new one, or TOLD_TARGETS_MAX. */
static uint32_t targets_renumber(uint32_t targets, const size_t *number_of, size_t count)
{
    uint32_t renumbered = 0;
    for (size_t i = 0; i < count; i++)
        if ((targets & bit_of(i)) && number_of[i] < TOLD_TARGETS_MAX)
            renumbered |= bit_of(number_of[i]);
    return renumbered;
}

void told_book_targets(struct told_book *book, const char *const *names, size_t count)
{
    size_t number_of[TOLD_TARGETS_MAX];
    assert(count <= TOLD_TARGETS_MAX);
    const size_t old_count = book->target_count;
    for (size_t i = 0; i < old_count; i++) {
        number_of[i] = TOLD_TARGETS_MAX;
        for (size_t k = 0; k < count; k++)
            if (strcmp(book->targets[i], names[k]) == 0)
                number_of[i] = k;
    }
    targets_clear(book);
    for (size_t i = 0; i < count; i++)
        book->targets[book->target_count++] = mem_copy(names[i]);
    for (size_t i = 0; i < book->entries.count; i++) {
        struct told_entry *entry = &book->entries.items[i];
        entry->heard = targets_renumber(entry->heard, number_of, old_count);
        entry->told = targets_renumber(entry->told, number_of, old_count);
    }
    if (count == 0)
        entries_clear(book);
}

/* --- what stands --- */

struct told_taking {
    const struct told_rules *rules;
    int64_t now_ms;
    struct told_round *round;
};

static struct told_entry *entry_find(const struct told_book *book, const struct alert *alert)
{
    cleanup_buf struct buf key = BUF_INIT;
    alert_key_put(alert, &key);
    const uint32_t at = text_map_get(&book->by_key, buf_as_text(&key));
    return at == MAP_NONE ? NULL : &book->entries.items[at];
}

static void entry_write(const struct told_entry *entry, struct buf *out)
{
    buf_put_u64(out, (uint64_t)entry->copy.alert.since_ms);
    buf_put_u64(out, (uint64_t)entry->over_ms);
    buf_put_u32(out, entry->heard);
    buf_put_u32(out, entry->told);
    alert_words_write(&entry->copy.alert, out);
}

/* With what is kept of the summary. */
static void entry_fill(struct told_entry *entry, const struct alert *alert)
{
    char summary[TOLD_SUMMARY_MAX + 1];
    cleanup_buf struct buf bytes = BUF_INIT;
    struct alert kept = *alert;
    const struct text head = printable_head(text_of(alert->summary), TOLD_SUMMARY_MAX);
    memcpy(summary, head.at, head.length);
    summary[head.length] = '\0';
    kept.summary = summary;
    alert_copy_set(&entry->copy, &kept);
    entry_write(entry, &bytes);
    entry->size = bytes.length;
}

static void keys_map(struct told_book *book)
{
    text_map_release(&book->by_key);
    book->bytes = 0;
    for (size_t i = 0; i < book->entries.count; i++) {
        const struct told_entry *entry = &book->entries.items[i];
        text_map_set(&book->by_key, entry->copy.key, (uint32_t)i);
        book->bytes += entry->size;
    }
}

static void entry_add(struct told_book *book, const struct told_entry *entry)
{
    *ARRAY_ADD(&book->entries) = *entry;
    text_map_set(&book->by_key, entry->copy.key, (uint32_t)book->entries.count - 1);
    book->bytes += entry->size;
}

/* Has it been so since then for long enough? Else it will be. */
static bool ripe_check(const struct told_taking *taking, int64_t since_ms)
{
    const int64_t ripe_ms = since_ms + taking->rules->after_ms;
    if (taking->now_ms >= ripe_ms)
        return true;
    struct told_round *round = taking->round;
    if (round->next_ms == 0 || ripe_ms < round->next_ms)
        round->next_ms = ripe_ms;
    return false;
}

static void first_take(struct told_book *book, const struct told_taking *taking,
                       const struct alert *alert)
{
    const bool is_error = alert_is_error(alert);
    if ((taking->rules->is_error_only && !is_error) || !ripe_check(taking, alert->since_ms))
        return;
    struct told_entry entry = {.is_found = true, .is_ripe = true};
    entry_fill(&entry, alert);
    if (book->bytes + entry.size > (is_error ? TOLD_BYTES_MAX : TOLD_WARN_BYTES_MAX)) {
        taking->round->full++;
        alert_copy_release(&entry.copy);
        return;
    }
    entry_add(book, &entry);
}

/* A warning that has become an error is news for all. */
static void severity_raise(struct told_book *book, struct told_entry *entry,
                           const struct alert *alert)
{
    if (!alert_is_error(alert) || alert_is_error(&entry->copy.alert))
        return;
    entry->told = 0;
    entry_fill(entry, alert);
    keys_map(book);
}

static void standing_take(struct told_book *book, const struct told_taking *taking,
                          const struct alert *alert)
{
    struct told_entry *entry = entry_find(book, alert);
    if (!entry) {
        first_take(book, taking, alert);
        return;
    }
    entry->is_found = true;
    entry->copy.alert.since_ms = alert->since_ms;
    entry->copy.alert.ended_ms = entry->over_ms = 0;
    entry->is_ripe = ripe_check(taking, alert->since_ms);
    severity_raise(book, entry, alert);
}

/* When it has ended, where that is known. */
static void ended_take(struct told_book *book, const struct alert *alert)
{
    struct told_entry *entry = entry_find(book, alert);
    if (entry && !entry->is_found && !entry->over_ms &&
        alert->ended_ms >= entry->copy.alert.since_ms)
        entry->over_ms = alert->ended_ms;
}

/* Of one that does not stand: is it still needed? What began or ended later than now did so by a
 * time that was wrong: it waits no longer for that, and is not told to have ended before it began.
 */
static bool over_is_kept(const struct told_taking *taking, struct told_entry *entry)
{
    struct alert *alert = &entry->copy.alert;
    if (!entry->over_ms || entry->over_ms > taking->now_ms)
        entry->over_ms = taking->now_ms;
    entry->is_ripe = ripe_check(taking, entry->over_ms);
    alert->ended_ms = 0;
    if (entry->is_ripe)
        alert->ended_ms = entry->over_ms > alert->since_ms ? entry->over_ms : alert->since_ms;
    if (entry->heard && entry->over_ms >= taking->rules->given_up_ms)
        return true;
    taking->round->given_up += (size_t)__builtin_popcount(entry->heard);
    return false;
}

static void over_take(struct told_book *book, const struct told_taking *taking)
{
    size_t kept = 0;
    for (size_t i = 0; i < book->entries.count; i++) {
        struct told_entry *entry = &book->entries.items[i];
        if (entry->is_found || over_is_kept(taking, entry))
            book->entries.items[kept++] = *entry;
        else
            alert_copy_release(&entry->copy);
    }
    if (kept == book->entries.count)
        return;
    book->entries.count = kept;
    keys_map(book);
}

void told_book_take(struct told_book *book, const struct alert *alerts, size_t count,
                    const struct told_rules *rules, int64_t now_ms, struct told_round *round)
{
    const struct told_taking taking = {rules, now_ms, round};
    *round = (struct told_round){0};
    if (book->target_count == 0)
        return;
    for (size_t i = 0; i < book->entries.count; i++)
        book->entries.items[i].is_found = false;
    for (size_t i = count; i > 0; i--) /* the oldest first */
        if (!alerts[i - 1].ended_ms)
            standing_take(book, &taking, &alerts[i - 1]);
    for (size_t i = 0; i < count; i++)
        if (alerts[i].ended_ms)
            ended_take(book, &alerts[i]);
    over_take(book, &taking);
}

/* --- what is to be said --- */

static bool end_is_due(const struct told_entry *entry, uint32_t bit)
{
    return entry->over_ms && entry->is_ripe && (entry->heard & bit);
}

static bool beginning_is_due(const struct told_entry *entry, uint32_t bit)
{
    return !entry->over_ms && entry->is_ripe && !(entry->told & bit);
}

bool told_book_announce(struct told_book *book, size_t target)
{
    const uint32_t bit = bit_of(target);
    bool is_news = false;
    for (size_t i = 0; i < book->entries.count; i++) {
        struct told_entry *entry = &book->entries.items[i];
        if (!beginning_is_due(entry, bit) || (entry->heard & bit))
            continue;
        entry->heard |= bit;
        is_news = true;
    }
    return is_news;
}

static bool is_of(const struct told_entry *entry, const char *name)
{
    return !name || strcmp(entry->copy.alert.name, name) == 0;
}

size_t told_book_due(const struct told_book *book, size_t target, const char *name,
                     const struct alert **alerts, size_t most)
{
    const uint32_t bit = bit_of(target);
    size_t count = 0;
    for (size_t i = 0; i < book->entries.count && count < most; i++) {
        const struct told_entry *entry = &book->entries.items[i];
        if (end_is_due(entry, bit) && is_of(entry, name))
            alerts[count++] = &entry->copy.alert;
    }
    for (size_t i = 0; i < book->entries.count && count < most; i++) {
        const struct told_entry *entry = &book->entries.items[i];
        if (beginning_is_due(entry, bit) && (entry->heard & bit) && is_of(entry, name))
            alerts[count++] = &entry->copy.alert;
    }
    return count;
}

size_t told_book_standing(const struct told_book *book, size_t target, const char *name,
                          const struct alert **alerts, size_t most, size_t *left)
{
    const uint32_t bit = bit_of(target);
    size_t count = 0;
    *left = 0;
    for (size_t i = 0; i < book->entries.count; i++) {
        const struct told_entry *entry = &book->entries.items[i];
        if (entry->copy.alert.ended_ms || !(entry->told & bit) || !is_of(entry, name))
            continue;
        if (count < most)
            alerts[count++] = &entry->copy.alert;
        else
            ++*left;
    }
    return count;
}

void told_book_said(struct told_book *book, size_t target, const struct alert *const *alerts,
                    size_t count)
{
    const uint32_t bit = bit_of(target);
    for (size_t i = 0; i < count; i++) {
        struct told_entry *entry = entry_find(book, alerts[i]);
        assert(entry && (entry->heard & bit));
        if (entry->copy.alert.ended_ms) {
            entry->heard &= ~bit;
            entry->told &= ~bit;
        } else {
            entry->told |= bit;
        }
    }
}

size_t told_book_waiting(const struct told_book *book)
{
    size_t waiting = 0;
    for (size_t target = 0; target < book->target_count; target++)
        for (size_t i = 0; i < book->entries.count; i++) {
            const struct told_entry *entry = &book->entries.items[i];
            waiting += end_is_due(entry, bit_of(target)) || beginning_is_due(entry, bit_of(target));
        }
    return waiting;
}

/* --- on disk --- */

void told_book_write(const struct told_book *book, struct buf *out)
{
    bool is_empty = true;
    for (size_t i = 0; i < book->entries.count; i++) {
        const struct told_entry *entry = &book->entries.items[i];
        if (!entry->heard) /* nobody knows of it */
            continue;
        if (is_empty) {
            buf_add(out, MAGIC, sizeof MAGIC);
            buf_put_u8(out, (uint8_t)book->target_count);
            for (size_t k = 0; k < book->target_count; k++)
                buf_put_text(out, text_of(book->targets[k]));
        }
        is_empty = false;
        entry_write(entry, out);
    }
}

static bool head_read(struct told_book *book, struct cursor *cursor, struct arena *arena)
{
    const uint8_t count = cursor_u8(cursor);
    if (count > TOLD_TARGETS_MAX)
        return false;
    for (uint8_t i = 0; i < count; i++)
        book->targets[book->target_count++] = mem_copy(arena_copy(arena, cursor_text(cursor)));
    return !cursor->is_bad;
}

static bool entry_read(struct told_book *book, struct cursor *cursor, struct arena *arena)
{
    struct alert alert = {0};
    struct told_entry entry = {0};
    alert.since_ms = (int64_t)cursor_u64(cursor);
    entry.over_ms = (int64_t)cursor_u64(cursor);
    entry.heard = cursor_u32(cursor);
    entry.told = cursor_u32(cursor);
    if (!alert_words_read(cursor, arena, &alert))
        return false;
    entry_fill(&entry, &alert);
    entry_add(book, &entry);
    return true;
}

int told_book_read(struct told_book *book, struct text bytes, struct err *err)
{
    assert(book->entries.count == 0 && book->target_count == 0);
    if (bytes.length < sizeof MAGIC || memcmp(bytes.at, MAGIC, sizeof MAGIC) != 0)
        return err_fail(err, ERR_CORRUPT, "", "it is not kept as this version keeps it");
    struct cursor cursor =
        cursor_of((struct text){bytes.at + sizeof MAGIC, bytes.length - sizeof MAGIC});
    cleanup_arena struct arena arena;
    arena_init(&arena);
    bool is_good = head_read(book, &cursor, &arena);
    while (is_good && cursor.at < cursor.end)
        is_good = entry_read(book, &cursor, &arena);
    if (is_good)
        return 0;
    entries_clear(book);
    targets_clear(book);
    return err_fail(err, ERR_CORRUPT, "", "what is kept is damaged");
}
