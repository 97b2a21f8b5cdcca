/* The exit table as it is now: what each code means, and which rows the operator wrote. */
#include "api/handlers.h"
#include "api/page.h"
#include "api/view.h"
#include "exits/rules.h"

/* What the row looks for: whoever may read the table is told by a failure which of them matched. */
static void patterns_json(struct json_writer *json, const struct exit_rules *rules, size_t row)
{
    json_key(json, "conditions");
    json_array(json);
    for (size_t i = 0; i < exit_rules_patterns(rules, row); i++)
        json_raw(json, exit_rules_pattern(rules, row, i));
    json_array_end(json);
}

int handle_exit_specs(struct call *call)
{
    const struct exit_rules *rules = call_rules(call);
    const size_t all = exit_rules_count(rules), *rows;
    struct list_page page;
    int code = page_parse(call, &page, "exit-specs", NULL);
    if (code)
        return code;
    struct text *codes = ARENA_ARRAY(call->arena, struct text, all + 1);
    for (size_t i = 0; i < all; i++) /* codes may be negative */
        codes[i] =
            page_number(call, (uint64_t)((int64_t)exit_rules_at(rules, i)->code - INT32_MIN));
    const size_t count = page_pick(&page, codes, all, false, &rows);
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(&page, &json);
    for (size_t n = 0; n < count; n++) {
        const size_t i = rows[n];
        const struct exit_spec *spec = exit_rules_at(rules, i);
        json_object(&json);
        json_key_int(&json, "code", spec->code);
        view_exit_fields(&json, spec);
        json_key_bool(&json, "operator", spec->is_operators);
        json_key_int(&json, "patterns", (int64_t)exit_rules_patterns(rules, i));
        patterns_json(&json, rules, i);
        json_object_end(&json);
    }
    page_end(&page, &json);
    return 0;
}
