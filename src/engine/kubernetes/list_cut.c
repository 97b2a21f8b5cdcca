#include "engine/kubernetes/list_cut.h"

#include "base/err.h"

void list_cut_clear(struct list_cut *cut)
{
    buf_release(&cut->part);
    buf_release(&cut->metadata);
    *cut = (struct list_cut){.context = cut->context, .item = cut->item};
}

/* Spaces pass in all states in which this is asked. */
static enum list_cut_state next_of(const struct list_cut *cut, char c)
{
    switch (cut->state) {
    case LIST_CUT_BEGIN:
        return c == '{' ? LIST_CUT_KEYS : LIST_CUT_BROKEN;
    case LIST_CUT_KEYS:
        return c == '"'   ? LIST_CUT_KEY
               : c == ',' ? LIST_CUT_KEYS
               : c == '}' ? LIST_CUT_END
                          : LIST_CUT_BROKEN;
    case LIST_CUT_COLON:
        return c == ':' ? LIST_CUT_VALUE : LIST_CUT_BROKEN;
    case LIST_CUT_VALUE:
        if (c == '[' && cut->is_items)
            return LIST_CUT_ITEMS;
        if (c == '{' || c == '[' || c == '"')
            return LIST_CUT_NEST;
        return c == ',' || c == '}' || c == ']' || c == ':' ? LIST_CUT_BROKEN : LIST_CUT_SCALAR;
    case LIST_CUT_ITEMS:
        return c == '{'   ? LIST_CUT_ITEM
               : c == ',' ? LIST_CUT_ITEMS
               : c == ']' ? LIST_CUT_KEYS
                          : LIST_CUT_BROKEN;
    case LIST_CUT_KEY:
    case LIST_CUT_SCALAR:
    case LIST_CUT_NEST:
    case LIST_CUT_ITEM:
    case LIST_CUT_END:
    case LIST_CUT_BROKEN:
        break;
    }
    return LIST_CUT_BROKEN;
}

static bool is_nested(enum list_cut_state state)
{
    return state == LIST_CUT_KEY || state == LIST_CUT_NEST || state == LIST_CUT_ITEM;
}

/* A key, a value or an item has come to its end. */
static void nest_over(struct list_cut *cut)
{
    const struct text part = buf_as_text(&cut->part);
    if (cut->state == LIST_CUT_ITEM) {
        cut->state = cut->item(cut->context, part) ? LIST_CUT_ITEMS : LIST_CUT_BROKEN;
    } else if (cut->state == LIST_CUT_KEY) {
        cut->is_metadata = text_is(part, "\"metadata\"");
        cut->is_items = text_is(part, "\"items\"");
        cut->state = LIST_CUT_COLON;
    } else {
        if (cut->is_metadata && part.length > 0 && part.at[0] == '{') {
            buf_clear(&cut->metadata);
            buf_text(&cut->metadata, part);
        }
        cut->state = LIST_CUT_KEYS;
    }
    buf_clear(&cut->part);
}

static void nest_take(struct list_cut *cut, struct text *rest)
{
    bool is_over;
    const bool is_kept = cut->state != LIST_CUT_NEST || cut->is_metadata;
    const size_t length = json_nest_take(&cut->nest, *rest, &is_over);
    if (is_kept && cut->part.length + length > LIST_CUT_BYTES_MAX) {
        cut->is_too_big = true;
        cut->state = LIST_CUT_BROKEN;
        return;
    }
    if (is_kept)
        buf_add(&cut->part, rest->at, length);
    *rest = (struct text){rest->at + length, rest->length - length};
    if (is_over)
        nest_over(cut);
}

/* "null", "12": it ends before what follows it. */
static void scalar_take(struct list_cut *cut, struct text *rest)
{
    for (; rest->length > 0; rest->at++, rest->length--)
        if (rest->at[0] == ',' || rest->at[0] == '}') {
            cut->state = LIST_CUT_KEYS;
            return;
        }
}

static void state_take(struct list_cut *cut, struct text *rest)
{
    json_cut_spaces(rest);
    if (rest->length == 0)
        return;
    cut->state = next_of(cut, rest->at[0]);
    if (cut->state == LIST_CUT_ITEMS || cut->state == LIST_CUT_SCALAR)
        cut->has_items = cut->has_items || cut->is_items;
    if (is_nested(cut->state)) {
        cut->nest = (struct json_nest){0}; /* it begins with this very byte */
        return;
    }
    rest->at++;
    rest->length--;
}

bool list_cut_take(struct list_cut *cut, struct text bytes)
{
    while (bytes.length > 0 && cut->state != LIST_CUT_BROKEN) {
        if (is_nested(cut->state))
            nest_take(cut, &bytes);
        else if (cut->state == LIST_CUT_SCALAR)
            scalar_take(cut, &bytes);
        else
            state_take(cut, &bytes);
    }
    return cut->state != LIST_CUT_BROKEN;
}

int list_cut_end(const struct list_cut *cut, struct text *metadata, struct err *err)
{
    *metadata = buf_as_text(&cut->metadata);
    if (cut->is_too_big)
        return err_fail(err, ERR_TOO_BIG, "", "an object of the answer is larger than %d MiB",
                        LIST_CUT_BYTES_MAX >> 20);
    if (cut->state != LIST_CUT_END || !cut->has_items || metadata->length == 0)
        return err_fail(err, ERR_CORRUPT, "", "the answer is no whole list of objects");
    return 0;
}
