/* list_cut.h — the answer to a LIST of the Kubernetes API that comes in pieces, cut into objects.
 *
 * Pure. As page.h, where the answer may be larger than what should be kept of it: nothing is kept
 * but the list's metadata and the object that is under way. What is between the parts is checked,
 * the parts are not.
 */
#ifndef ENGINE_KUBERNETES_LIST_CUT_H
#define ENGINE_KUBERNETES_LIST_CUT_H
#include "base/buf.h"
#include "engine/kubernetes/json_cut.h"

struct err;

/* Of an object, and of the list's metadata. No object is larger: etcd takes at most 1.5 MiB. */
enum { LIST_CUT_BYTES_MAX = 2 << 20 };

enum list_cut_state {
    LIST_CUT_BEGIN,
    LIST_CUT_KEYS,   /* between two members */
    LIST_CUT_KEY,    /* in the key of one */
    LIST_CUT_COLON,  /* behind it */
    LIST_CUT_VALUE,  /* before its value */
    LIST_CUT_SCALAR, /* in a value that is a number or a word */
    LIST_CUT_NEST,   /* in any other that is none of the items */
    LIST_CUT_ITEMS,  /* between two of the items */
    LIST_CUT_ITEM,   /* in one */
    LIST_CUT_END,
    LIST_CUT_BROKEN,
};

struct list_cut { /* a zeroed one awaits the first byte */
    enum list_cut_state state;
    struct json_nest nest;
    struct buf part; /* the key, the metadata or the item that is under way */
    struct buf metadata;
    bool is_metadata, is_items; /* the key that was read last */
    bool has_items;
    bool is_too_big;
    void *context;
    /* An object, whole. False: no more of them is wanted. */
    bool (*item)(void *context, struct text item);
};

/* The next bytes. False: it is no list, or an object of it is too big, or no more is wanted. */
bool list_cut_take(struct list_cut *cut, struct text bytes);
/* All has come. *metadata is the list's, until it is cleared. ERR_CORRUPT: it is no whole list;
 * ERR_TOO_BIG. */
int list_cut_end(const struct list_cut *cut, struct text *metadata, struct err *err);
/* For another answer; the reader stays. */
void list_cut_clear(struct list_cut *cut);

#endif
