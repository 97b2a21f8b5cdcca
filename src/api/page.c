#include "api/page.h"
#include "api/call.h"
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>

/* A cursor is 'b' (the body is bare) or 'o' (an object), the list, LF and the key, in base64url. */
enum { CURSOR_BARE = 'b', CURSOR_OBJECT = 'o', CURSOR_MAX = 2048 };

/* ---- cursors ---- */

int page_fail(const struct list_page *page)
{
    return call_fail(page->call, ERR_INVALID, NULL, "cursor",
                     "cursor is none that this list gave: begin anew with an empty one");
}

/* Keys are text; PostgreSQL takes no other. */
static bool is_key(struct text key)
{
    for (size_t at = 0, length; at < key.length; at += length) {
        length = text_utf8_length(key, at);
        if (!length || !key.at[at])
            return false;
    }
    return true;
}

static int cursor_parse(struct list_page *page, struct text cursor)
{
    unsigned char *bytes = arena_alloc(page->call->arena, cursor.length + 1);
    size_t length;
    if (cursor.length > CURSOR_MAX ||
        sodium_base642bin(bytes, cursor.length + 1, cursor.at, cursor.length, NULL, &length, NULL,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING))
        return page_fail(page);
    struct text key = {(const char *)bytes, length};
    const struct text head = text_cut(&key, '\n');
    if (!key.at || head.length < 1 || (head.at[0] != CURSOR_BARE && head.at[0] != CURSOR_OBJECT) ||
        !text_is((struct text){head.at + 1, head.length - 1}, page->list) || !is_key(key))
        return page_fail(page);
    page->after = key;
    page->has_cursor = head.at[0] == CURSOR_OBJECT;
    return 0;
}

static const char *cursor_make(const struct list_page *page)
{
    struct arena *arena = page->call->arena;
    cleanup_buf struct buf bytes = BUF_INIT;
    buf_char(&bytes, page->has_cursor ? CURSOR_OBJECT : CURSOR_BARE);
    buf_string(&bytes, page->list);
    buf_char(&bytes, '\n');
    buf_text(&bytes, page->last);
    const size_t room =
        sodium_base64_ENCODED_LEN(bytes.length, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    assert(room <= CURSOR_MAX);
    char *cursor = arena_alloc(arena, room);
    sodium_bin2base64(cursor, room, (const unsigned char *)bytes.at, bytes.length,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return cursor;
}

int page_parse(struct call *call, struct list_page *page, const char *list,
               const struct page_limits *limits)
{
    static const struct page_limits usual = {1, PAGE_LIMIT_MAX, PAGE_WHOLE};
    *page = (struct list_page){.call = call, .list = list, .limit = PAGE_WHOLE, .total = -1};
    if (call->route->is_v1)
        return 0;
    call->is_list = true;
    limits = limits ? limits : &usual;
    const struct text cursor = exchange_query(call->exchange, "cursor");
    const bool has_limit = exchange_query(call->exchange, "limit").at;
    int64_t asked = 0;
    int code = 0;
    page->limit = limits->usual == PAGE_WHOLE && cursor.at ? PAGE_LIMIT : limits->usual;
    page->is_cut = has_limit || cursor.at;
    if (has_limit)
        code = call_number(call, "limit", cursor.at ? 1 : (int64_t)limits->min,
                           (int64_t)limits->max, 0, &asked);
    if (!code && has_limit)
        page->limit = (uint64_t)asked;
    if (!code && cursor.at && exchange_query(call->exchange, "offset").at)
        return call_fail(call, ERR_INVALID, NULL, "offset",
                         "a page begins at its cursor: give no offset with it");
    page->has_cursor = cursor.at;
    return !code && cursor.length ? cursor_parse(page, cursor) : code;
}

/* ---- items ---- */

struct text page_number(struct call *call, uint64_t number)
{
    return text_of(arena_format(call->arena, "%016llx", (unsigned long long)number));
}

bool page_number_parse(struct text key, uint64_t *number)
{
    enum { DIGITS = 16 };
    *number = 0;
    for (size_t i = 0; i < key.length; i++) {
        const char *digits = "0123456789abcdef", *at = strchr(digits, key.at[i]);
        if (!key.at[i] || !at)
            return false;
        *number = *number << 4 | (uint64_t)(at - digits);
    }
    return key.length == DIGITS;
}

static int keys_compare(struct text a, struct text b)
{
    const size_t length = a.length < b.length ? a.length : b.length;
    const int order = length ? memcmp(a.at, b.at, length) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

struct ordering {
    const struct text *keys;
    bool is_descending;
};

static int rows_compare(const void *a, const void *b, void *context)
{
    const struct ordering *ordering = context;
    const int order =
        keys_compare(ordering->keys[*(const size_t *)a], ordering->keys[*(const size_t *)b]);
    return ordering->is_descending ? -order : order;
}

size_t page_pick(struct list_page *page, const struct text *keys, size_t count, bool is_descending,
                 const size_t **rows)
{
    struct ordering ordering = {keys, is_descending};
    size_t *order = ARENA_ARRAY(page->call->arena, size_t, count + 1), kept = 0;
    for (size_t i = 0; i < count; i++) {
        const int behind = page->after.at ? keys_compare(keys[i], page->after) : 0;
        if (!page->after.at || (is_descending ? behind < 0 : behind > 0))
            order[kept++] = i;
    }
    if (page->is_cut)
        qsort_r(order, kept, sizeof *order, rows_compare, &ordering);
    *rows = order;
    const size_t shown = page_keep(page, kept);
    if (shown > 0 && shown < kept)
        page->last = keys[order[shown - 1]];
    return shown;
}

uint64_t page_most(const struct list_page *page)
{
    return page->limit == PAGE_WHOLE ? PAGE_WHOLE : page->limit + 1;
}

size_t page_keep(struct list_page *page, size_t count)
{
    return count > page->limit ? (size_t)page->limit : count;
}

bool page_is_full(struct list_page *page, struct text last)
{
    if (!page->is_cut || page->call->exchange->reply.body.length < PAGE_BYTES_MAX)
        return false;
    page->last = last;
    return true;
}

int page_nodes(struct list_page *page, struct store_nodes *nodes)
{
    struct call *call = page->call;
    int code = call_reader(call) ? 0 : call->err.code;
    if (!code && !page->is_cut)
        return store_nodes(call->reader, call->arena, nodes, &call->err);
    if (!code)
        code = store_nodes_page(call->reader, page->after, page_most(page), call->arena, nodes,
                                &call->err);
    if (code)
        return code;
    const size_t count = page_keep(page, nodes->count);
    if (count > 0 && count < nodes->count)
        page->last = text_of(nodes->items[count - 1].facts.name);
    nodes->count = count;
    return 0;
}

/* ---- around them ---- */

void page_begin(struct list_page *page, struct json_writer *json)
{
    const char *key = page->has_cursor || page->total >= 0 ? "data" : page->key;
    page->is_object = key;
    if (key)
        json_object(json);
    if (page->total >= 0)
        json_key_int(json, "totalCount", page->total);
    if (key)
        json_key(json, key);
    json_array(json);
}

/* A part of the target, without what would end the address within the header. */
static void link_part(struct buf *link, struct text part)
{
    for (size_t i = 0; i < part.length; i++) {
        if (strchr("<>\"", part.at[i]))
            buf_format(link, "%%%02X", (unsigned)part.at[i]);
        else
            buf_char(link, part.at[i]);
    }
}

/* The target as the client sent it, with another cursor: it stands first, as the first counts. */
void page_link(struct list_page *page)
{
    if (!page->last.at)
        return;
    cleanup_buf struct buf link = BUF_INIT;
    struct text query = page->call->exchange->target;
    buf_char(&link, '<');
    link_part(&link, text_cut(&query, '?'));
    buf_format(&link, "?cursor=%s", cursor_make(page));
    while (query.at) {
        const struct text pair = text_cut(&query, '&');
        if (!pair.length || text_starts(pair, TEXT("cursor=")) ||
            text_starts(pair, TEXT("offset=")))
            continue;
        buf_char(&link, '&');
        link_part(&link, pair);
    }
    buf_string(&link, ">; rel=\"next\"");
    exchange_header(page->call->exchange, "Link",
                    arena_copy(page->call->arena, buf_as_text(&link)));
}

void page_end(struct list_page *page, struct json_writer *json)
{
    json_array_end(json);
    if (page->has_cursor)
        json_key_string(json, "cursor", page->last.at ? cursor_make(page) : NULL);
    if (page->is_object)
        json_object_end(json);
    page_link(page);
}
