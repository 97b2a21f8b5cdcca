#include "engine/kubernetes/page.h"

#include "base/err.h"

static bool space_is(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void step(struct text *rest, size_t count)
{
    rest->at += count;
    rest->length -= count;
}

static void spaces_skip(struct text *rest)
{
    while (rest->length > 0 && space_is(rest->at[0]))
        step(rest, 1);
}

static bool char_take(struct text *rest, char c)
{
    spaces_skip(rest);
    if (rest->length == 0 || rest->at[0] != c)
        return false;
    step(rest, 1);
    return true;
}

/* Bytes of the string that begins at `at`, with its quotes; 0: it does not end. */
static size_t string_length(struct text rest)
{
    for (size_t i = 1; i < rest.length; i++) {
        if (rest.at[i] == '\\')
            i++;
        else if (rest.at[i] == '"')
            return i + 1;
    }
    return 0;
}

/* Bytes of a value that is an object or a list; 0: it does not end. */
static size_t nest_length(struct text rest)
{
    size_t depth = 0;
    for (size_t i = 0; i < rest.length; i++) {
        const char c = rest.at[i];
        if (c == '"') {
            size_t length = string_length((struct text){rest.at + i, rest.length - i});
            if (length == 0)
                return 0;
            i += length - 1;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

static bool value_take(struct text *rest, struct text *value)
{
    spaces_skip(rest);
    size_t length = 0;
    if (rest->length == 0)
        return false;
    if (rest->at[0] == '"')
        length = string_length(*rest);
    else if (rest->at[0] == '{' || rest->at[0] == '[')
        length = nest_length(*rest);
    else
        while (length < rest->length && !space_is(rest->at[length]) && rest->at[length] != ',' &&
               rest->at[length] != '}' && rest->at[length] != ']')
            length++;
    *value = (struct text){rest->at, length};
    step(rest, length);
    return length > 0;
}

int page_open(struct text body, struct page *page, struct err *err)
{
    struct text key, value;
    *page = (struct page){0};
    bool is_good = char_take(&body, '{');
    while (is_good) {
        is_good = value_take(&body, &key) && key.at[0] == '"' && char_take(&body, ':') &&
                  value_take(&body, &value);
        if (is_good && text_is(key, "\"metadata\"") && value.at[0] == '{')
            page->metadata = value;
        else if (is_good && text_is(key, "\"items\"") && value.at[0] == '[')
            page->items = (struct text){value.at + 1, value.length - 2};
        else if (is_good && text_is(key, "\"items\"") && text_is(value, "null"))
            page->items = (struct text){value.at, 0};
        if (is_good && !char_take(&body, ','))
            break;
    }
    if (!is_good || !char_take(&body, '}') || !page->metadata.at || !page->items.at)
        return err_fail(err, ERR_CORRUPT, "", "the answer is no whole list of objects");
    return 0;
}

bool page_next(struct page *page, struct text *item)
{
    spaces_skip(&page->items);
    if (page->items.length == 0 || !value_take(&page->items, item))
        return false;
    char_take(&page->items, ',');
    return true;
}
