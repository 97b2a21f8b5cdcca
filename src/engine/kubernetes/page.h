/* page.h — the answer to a LIST of the Kubernetes API, cut into its objects.
 *
 * Pure. A page holds hundreds of objects and may be larger than one document (doc.h) may be; no
 * object is: etcd takes at most 1.5 MiB. So the list itself is only scanned, and each object of it
 * is a text to be parsed by itself.
 */
#ifndef ENGINE_KUBERNETES_PAGE_H
#define ENGINE_KUBERNETES_PAGE_H
#include "base/text.h"
#include <stdbool.h>

struct err;

struct page {
    struct text metadata; /* {"resourceVersion": …, "continue": …} */
    struct text items;    /* what is left between [ and ] */
};

/* ERR_CORRUPT: it is no JSON object with "metadata" and "items", or it is cut off. Nesting is
 * counted, not checked: each part is parsed later. */
int page_open(struct text body, struct page *page, struct err *err);

/* The next object. False: there is none any more. */
bool page_next(struct page *page, struct text *item);

#endif
