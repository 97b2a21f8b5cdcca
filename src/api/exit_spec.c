/* The exit table as it is now: what each code means, and which rows the operator wrote. */
#include "api/handlers.h"
#include "api/view.h"
#include "exits/rules.h"

int handle_exit_specs(struct call *call)
{
    const struct exit_rules *rules = call_rules(call);
    struct json_writer json;
    call_json(call, 200, &json);
    json_array(&json);
    for (size_t i = 0; i < exit_rules_count(rules); i++) {
        const struct exit_spec *spec = exit_rules_at(rules, i);
        json_object(&json);
        json_key_int(&json, "code", spec->code);
        view_exit_fields(&json, spec);
        json_key_bool(&json, "operator", spec->is_operators);
        json_key_int(&json, "patterns", (int64_t)exit_rules_patterns(rules, i));
        json_object_end(&json);
    }
    json_array_end(&json);
    return 0;
}
