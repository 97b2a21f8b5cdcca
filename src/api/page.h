/* page.h — lists in pages: `limit`, `cursor`, and where the next page is. The same for every list.
 *
 * Without either a list is whole and looks as in OpenPAI. With `limit` alone it is cut and looks
 * the same; the header Link (RFC 8288) names the next page. With `cursor`, which is empty for the
 * first page, the body is {"data": […], "cursor": what begins the next page, or null}.
 *
 * A cursor holds the key of the last item of its page, not an offset: whatever is inserted or
 * removed meanwhile, no other item is skipped or comes twice. Keys are ordered as their bytes are.
 *
 * A page of items that may be large ends at PAGE_BYTES_MAX, too, so that what one reply holds in
 * memory does not grow with what users store.
 */
#ifndef API_PAGE_H
#define API_PAGE_H
#include "base/json_writer.h"
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;

enum {
    PAGE_LIMIT = 1000,
    PAGE_LIMIT_MAX = 50000,
    PAGE_BYTES_MAX = 8 << 20, /* a page of large items ends with the item that reaches it */
};
#define PAGE_WHOLE UINT64_MAX /* as a limit: none */

/* Of the items of a page. `usual`: when none is given. */
struct page_limits {
    uint64_t min, max, usual;
};

struct list_page {
    struct call *call;
    const char *list;  /* which one it is; a cursor of another list is refused */
    uint64_t limit;    /* items that are shown */
    bool is_cut;       /* limit or cursor was given */
    bool has_cursor;   /* it stands in the body, too */
    struct text after; /* key of the last item of the page before; at == NULL: the first page */
    struct text last;  /* key of the last item of this page; at == NULL: no page follows */
    const char *key;   /* the list's name in an object when it is no page; NULL: a bare list */
    int64_t total;     /* of all pages; < 0: it is not told */
    bool is_object;    /* that is being written */
};

/* What the request asks for. `list` must live as long as the call. `limits` NULL: of a list that is
 * whole unless the request has a cursor; then PAGE_LIMIT is usual. The paths of v1 have no pages.
 */
int page_parse(struct call *call, struct list_page *page, const char *list,
               const struct page_limits *limits);

/* Which of the items with these keys, each another one, are on the page: their numbers, in the
 * order to show. All, as they stand, when the list is not cut; else by key. */
size_t page_pick(struct list_page *page, const struct text *keys, size_t count, bool is_descending,
                 const size_t **rows);
/* How many items to read from page->after on: one more than is shown tells whether there are more.
 */
uint64_t page_most(const struct list_page *page);
/* Of items that were read from page->after on, one more than the limit when there are more: those
 * that are shown. `last`: key of the last of them. */
size_t page_keep(struct list_page *page, size_t count);
/* Between two items: the reply has PAGE_BYTES_MAX, so that the page ends behind the key `last`.
 * Never of a list that is not cut. */
bool page_is_full(struct list_page *page, struct text last);

/* A number as a key, in a buffer of PAGE_NUMBER_SIZE or in the call's arena; and back. */
enum { PAGE_NUMBER_SIZE = 17 };
struct text page_number(struct call *call, uint64_t number);
bool page_number_parse(struct text key, uint64_t *number);
/* The key that this page begins behind is none that the list gives: ERR_INVALID. */
int page_fail(const struct list_page *page);

/* The nodes of the page, by name; all in order of their ids when the list is not cut. */
struct store_nodes;
int page_nodes(struct list_page *page, struct store_nodes *nodes);

/* Around the items: the reply's list and what stands beside it. */
void page_begin(struct list_page *page, struct json_writer *json);
void page_end(struct list_page *page, struct json_writer *json);
/* The header alone, of a list that is written otherwise. */
void page_link(struct list_page *page);

#endif
