/* feed.h — how a client follows all objects of one kind: list, then watch.
 *
 * Pure: it says what to ask next and takes what was answered; who asks, and when, is the caller's
 * business. The rules (Kubernetes documents no algorithm; these are client-go's):
 *
 *   - A list is the begin of a WATCH with sendInitialEvents, which goes on as the watch: one object
 *     at a time, out of the server's cache. A bookmark with a note of its own ends the list.
 *   - Where the server has no such lists (it says so, or never ends one): LIST by pages with
 *     resourceVersion unset; the version of the list is where the WATCH begins.
 *   - Each event and each bookmark moves that version; a watch that ends goes on from the last one.
 *   - 410 comes as a status or as an ERROR event in the stream: then all is listed again, with the
 *     version unset. It comes for a `continue` as well: then the list begins anew.
 *   - A list is told as a whole: its first page, each object, its end; what was not in it has gone.
 *   - An event may come twice, and of an object that was never told.
 */
#ifndef ENGINE_KUBERNETES_FEED_H
#define ENGINE_KUBERNETES_FEED_H
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct buf;
struct doc;

enum {
    FEED_PAGE_LIMIT = 500,
    FEED_VERSION_MAX = 64,
    FEED_CONTINUE_MAX = 4096,
    FEED_WATCH_MIN_S = 300, /* the server ends a watch after this to twice this, by chance */
    FEED_LIST_S = 120, /* and one that begins with a list after this: it may know no end of it */
    FEED_BACKOFF_FIRST_MS = 800,
    FEED_BACKOFF_MAX_MS = 30000,
    FEED_LIVED_MS = 10000, /* a watch that had been answered for so long has done its work */
};

enum feed_state { FEED_LISTS, FEED_WATCHES };

struct feed {
    const char *path;     /* "/api/v1/nodes" */
    const char *selector; /* of labels, "" all; encoded already */
    const char *fields;   /* likewise, of fields; NULL: all. Set after feed_init */
    enum feed_state state;
    bool is_paged;       /* the server has no lists that are the begin of a watch */
    bool is_watch_fresh; /* nothing has come by this watch */
    uint32_t failures;   /* since a watch last brought something */
    char version[FEED_VERSION_MAX];
    char next_page[FEED_CONTINUE_MAX];
};

void feed_init(struct feed *feed, const char *path, const char *selector);

/* Append path and query of the next request. */
void feed_request(const struct feed *feed, uint64_t chance, struct buf *out);

/* True: the next request is a watch, perhaps one that begins with a list; else it is a page. */
bool feed_is_stream(const struct feed *feed);
/* True: a list begins with it. */
bool feed_is_first_page(const struct feed *feed);

/* A page's "metadata" came. True: the list is complete, and a watch is next. False: another page
 * is, or (feed_is_first_page) it names neither a page nor a version that can be taken.
 */
bool feed_page_took(struct feed *feed, const struct doc *metadata);

enum feed_event {
    FEED_OBJECT,  /* ADDED or MODIFIED */
    FEED_REMOVED, /* DELETED, with the last state */
    FEED_NOTHING, /* a bookmark */
    FEED_LISTED,  /* the list is complete */
    FEED_EXPIRED, /* 410: the stream is over, and a list is next */
    FEED_BROKEN,  /* another error, or no event: the stream is over */
};

/* One line of a watch. */
enum feed_event feed_line(struct feed *feed, const struct doc *line, const struct doc **object);

/* A watch ended, or a page did not come: `status` of HTTP, 0 when there was none or the stream was
 * broken. What is next may be asked after that many ms. */
uint32_t feed_ended(struct feed *feed, int status, uint64_t chance);

/* Before that: the watch had been answered for so long. Balancers cut what is quiet after half a
 * minute: pauses begin anew with a watch that has lived for FEED_LIVED_MS. True: it has. */
bool feed_lived(struct feed *feed, int64_t lived_ms);

/* A watch that had been answered brought nothing for so long that it was given up. True: no list
 * was awaited of it; it goes on from where it was, at once. */
bool feed_was_silent(struct feed *feed);

/* What the server answered to this feed's request instead, for people: in `arena`. */
const char *feed_refusal(const struct feed *feed, int status, struct text body,
                         struct arena *arena);

/* After so many failures in a row: 0 for none, then 0.8 s, doubled up to 30 s, and by chance up to
 * a fifth more. */
uint32_t feed_backoff_ms(uint32_t failures, uint64_t chance);

#endif
