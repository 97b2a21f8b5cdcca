#include "engine/kubernetes/page.h"

#include "base/err.h"
#include "engine/kubernetes/json_cut.h"

int page_open(struct text body, struct page *page, struct err *err)
{
    struct text key, value;
    *page = (struct page){0};
    bool is_good = json_cut_char(&body, '{');
    while (is_good) {
        is_good = json_cut_value(&body, &key) && key.at[0] == '"' && json_cut_char(&body, ':') &&
                  json_cut_value(&body, &value);
        if (is_good && text_is(key, "\"metadata\"") && value.at[0] == '{')
            page->metadata = value;
        else if (is_good && text_is(key, "\"items\"") && value.at[0] == '[')
            page->items = (struct text){value.at + 1, value.length - 2};
        else if (is_good && text_is(key, "\"items\"") && text_is(value, "null"))
            page->items = (struct text){value.at, 0};
        if (is_good && !json_cut_char(&body, ','))
            break;
    }
    if (!is_good || !json_cut_char(&body, '}') || !page->metadata.at || !page->items.at)
        return err_fail(err, ERR_CORRUPT, "", "the answer is no whole list of objects");
    return 0;
}

bool page_next(struct page *page, struct text *item)
{
    json_cut_spaces(&page->items);
    if (page->items.length == 0 || !json_cut_value(&page->items, item))
        return false;
    json_cut_char(&page->items, ',');
    return true;
}
