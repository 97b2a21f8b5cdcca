/* What a resource metrics API answers: cut in pieces it has the same objects as whole; each is
 * read, and taken as what a node uses over time.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/kubernetes/list_cut.h"
#include "engine/kubernetes/node_metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t NOW_MS = 1795456800000;

struct seen {
    struct buf items;
    struct node_use use;
    int64_t now_ms;
};

static bool item_see(void *context, struct text item)
{
    struct seen *seen = context;
    struct node_metrics metrics;
    bool is_told;
    buf_text(&seen->items, item);
    buf_char(&seen->items, '\n');
    if (!node_metrics_read(item, &metrics, &is_told))
        return false;
    assert(metrics.name.at >= item.at && metrics.name.length > 0 &&
           metrics.name.at + metrics.name.length < item.at + item.length);
    if (!is_told)
        return true;
    assert(metrics.at_ms > 0 && metrics.memory_bytes >= 0);
    assert(metrics.cpu_milli >= 0 && metrics.cpu_milli <= NODE_METRICS_CPU_MAX);
    const uint64_t before = node_use_cpu_ns(&seen->use, seen->now_ms);
    node_use_take(&seen->use, &metrics, seen->now_ms, NOW_MS);
    assert(node_use_cpu_ns(&seen->use, seen->now_ms) == before);
    seen->now_ms += 10000;
    assert(node_use_cpu_ns(&seen->use, seen->now_ms) >= before);
    return true;
}

/* In pieces of `step` bytes; `step` grows, so that the cuts are everywhere. */
static int cut_run(struct text list, size_t step, struct buf *out)
{
    struct seen seen = {.items = BUF_INIT};
    struct list_cut cut = {.context = &seen, .item = item_see};
    struct text metadata;
    struct err err = {0};
    bool goes_on = true;
    while (goes_on && list.length > 0) {
        const size_t length = list.length < step ? list.length : step;
        goes_on = list_cut_take(&cut, (struct text){list.at, length});
        list = (struct text){list.at + length, list.length - length};
    }
    const int code = list_cut_end(&cut, &metadata, &err);
    assert(code == 0 || ((code == ERR_CORRUPT || code == ERR_TOO_BIG) && err.text[0]));
    buf_text(out, buf_as_text(&seen.items));
    if (code == 0)
        buf_text(out, metadata);
    buf_release(&seen.items);
    list_cut_clear(&cut);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = BUF_INIT, pieces = BUF_INIT;
    if (size < 1)
        return 0;
    const struct text list = {(const char *)data + 1, size - 1};
    const int code = cut_run(list, SIZE_MAX, &whole);
    assert(cut_run(list, 1 + data[0] % 31, &pieces) == code);
    assert(text_equal(buf_as_text(&whole), buf_as_text(&pieces)));
    buf_release(&whole);
    buf_release(&pieces);
    return 0;
}
