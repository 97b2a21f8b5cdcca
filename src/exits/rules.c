#include "exits/rules.h"
#include "base/buf.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "exits/table.h"
#include "model/completion.h"
#include <assert.h>

struct rules_reader {
    struct exit_rules *rules;
    struct problems *problems;
    struct arena *scratch; /* paths and the document */
    bool is_operators;
    uint32_t number; /* of the entry being read */
    bool drops_builtin;
    size_t own; /* rules of the operator's file, all before the built-in ones */
};

static const char *const issuers[] = {"USER_CONTAINER",    "PAI_OS",  "PAI_RUNTIME",
                                      "PAI_DOCKER",        "PAI_K8S", "PAI_FC",
                                      "PAI_DB_CONTROLLER", "UNKNOWN", NULL};
static const char *const causers[] = {
    "USER_SUBMISSION", "USER_CONTAINER", "USER_STOP",
    "USER_DELETION",   "USER_SCALEDOWN", "USER_RETRY",
    "USER_UPGRADE",    "USER_UNKNOWN",   "RESOURCE_ALLOCATION_TIMEOUT",
    "PAI_OS",          "PAI_DOCKER",     "PAI_RUNTIME",
    "PAI_K8S",         "PAI_FC",         "PAI_HW",
    "PAI_UNKNOWN",     "UNKNOWN",        NULL};
static const char *const types[] = {"USER_SUCCESS",
                                    "USER_STOP",
                                    "USER_FAILURE",
                                    "PLATFORM_FAILURE",
                                    "UNKNOWN_FAILURE",
                                    "RESOURCE_ALLOCATION_TIMEOUT",
                                    NULL};
static const char *const stages[] = {"SUBMITTING", "ALLOCATING", "LAUNCHING", "RUNNING",
                                     "COMPLETING", "UNKNOWN",    NULL};
static const char *const behaviors[] = {"TRANSIENT", "TRANSIENT_CONFLICT", "PERMANENT", "UNKNOWN",
                                        NULL};
static const char *const reactions[] = {"ALWAYS_RETRY", "ALWAYS_BACKOFF_RETRY", "NEVER_RETRY",
                                        "RETRY_TO_MAX", NULL};

/* ---- small readers; `path` is the place in the document, for messages ---- */

static const char *path_of(struct rules_reader *reader, const char *parent, const char *key)
{
    return arena_format(reader->scratch, "%s%s%s", parent, parent[0] ? "." : "", key);
}

static const char *path_at(struct rules_reader *reader, const char *parent, const char *key,
                           size_t index)
{
    return arena_format(reader->scratch, "%s%s%s[%zu]", parent, parent[0] ? "." : "", key, index);
}

static const struct doc *read_kind(struct rules_reader *reader, const struct doc *map,
                                   const char *key, const char *parent, enum doc_kind kind)
{
    const struct doc *doc = doc_get(map, key);
    if (!doc || doc->kind == DOC_NULL)
        return NULL;
    if (doc->kind == kind)
        return doc;
    problem_add(reader->problems, doc->place, path_of(reader, parent, key), "must be %s, is %s",
                doc_kind_name(kind), doc_kind_name(doc->kind));
    return NULL;
}

static const char *read_string(struct rules_reader *reader, const struct doc *map, const char *key,
                               const char *parent)
{
    const struct doc *doc = read_kind(reader, map, key, parent, DOC_STRING);
    return doc ? arena_copy(&reader->rules->arena, doc->as.string) : "";
}

static bool read_bool(struct rules_reader *reader, const struct doc *map, const char *key,
                      const char *parent)
{
    const struct doc *doc = read_kind(reader, map, key, parent, DOC_BOOL);
    return doc && doc->as.boolean;
}

static const char *read_choice(struct rules_reader *reader, const struct doc *map, const char *key,
                               const char *parent, const char *const *choices)
{
    const char *value = read_string(reader, map, key, parent);
    if (value[0] == '\0')
        return "UNKNOWN";
    for (size_t i = 0; choices[i]; i++)
        if (strcmp(choices[i], value) == 0)
            return choices[i];
    cleanup_buf struct buf known = BUF_INIT;
    for (size_t i = 0; choices[i]; i++)
        buf_format(&known, "%s%s", i > 0 ? ", " : "", choices[i]);
    problem_add(reader->problems, doc_get(map, key)->place, path_of(reader, parent, key),
                "'%s' is none of %s", value, buf_cstr(&known));
    return value;
}

static const char *const *read_strings(struct rules_reader *reader, const struct doc *map,
                                       const char *key, const char *parent, size_t *count)
{
    const struct doc *list = read_kind(reader, map, key, parent, DOC_LIST);
    *count = list ? list->as.list.count : 0;
    const char **strings = ARENA_ARRAY(&reader->rules->arena, const char *, *count + 1);
    for (size_t i = 0; i < *count; i++) {
        const struct doc *item = list->as.list.items[i];
        strings[i] = "";
        if (item->kind == DOC_STRING)
            strings[i] = arena_copy(&reader->rules->arena, item->as.string);
        else
            problem_add(reader->problems, item->place, path_at(reader, parent, key, i),
                        "must be a string, is %s", doc_kind_name(item->kind));
    }
    return strings;
}

static void warn_unknown(struct rules_reader *reader, const struct doc *map, const char *parent,
                         const char *const *known)
{
    for (size_t i = 0; i < map->as.map.count; i++) {
        const struct doc_entry *entry = &map->as.map.entries[i];
        bool is_known = false;
        for (size_t k = 0; known[k]; k++)
            is_known |= text_is(entry->key, known[k]);
        const char *key = arena_copy(reader->scratch, entry->key);
        if (!is_known)
            problem_warn(reader->problems, entry->place, path_of(reader, parent, key),
                         "unknown field, ignored");
    }
}

static uint32_t read_expression(struct rules_reader *reader, const struct doc *map, const char *key,
                                const char *parent)
{
    const struct doc *doc = read_kind(reader, map, key, parent, DOC_STRING);
    if (!doc || doc->as.string.length == 0)
        return EXPRESSION_NO;
    char reason[160];
    struct matcher *matcher = reader->rules->matcher;
    const size_t number = matcher_count(matcher);
    if (!matcher_add(matcher, doc->as.string, reason)) {
        problem_add(reader->problems, doc->place, path_of(reader, parent, key), "expression: %s",
                    reason);
        return EXPRESSION_NO;
    }
    return (uint32_t)number;
}

static bool has_value(const struct doc *map, const char *key)
{
    const struct doc *doc = doc_get(map, key);
    return doc && doc->kind != DOC_NULL;
}

static bool read_code(struct rules_reader *reader, const struct doc *map, const char *key,
                      const char *parent, int32_t min, int32_t max, int32_t *code)
{
    const struct doc *doc = read_kind(reader, map, key, parent, DOC_INT);
    if (!doc)
        return false;
    if (doc->as.integer < min || doc->as.integer > max) {
        problem_add(reader->problems, doc->place, path_of(reader, parent, key),
                    "must be in %d..%d, is %lld", min, max, (long long)doc->as.integer);
        return false;
    }
    *code = (int32_t)doc->as.integer;
    return true;
}

/* {min, max}; a missing end is open. */
static struct exit_range read_range(struct rules_reader *reader, const struct doc *map,
                                    const char *key, const char *parent, int64_t default_min)
{
    struct exit_range range = {default_min, INT64_MAX};
    const struct doc *doc = read_kind(reader, map, key, parent, DOC_MAP);
    const char *path = path_of(reader, parent, key);
    const struct doc *min = doc ? read_kind(reader, doc, "min", path, DOC_INT) : NULL;
    const struct doc *max = doc ? read_kind(reader, doc, "max", path, DOC_INT) : NULL;
    if (min)
        range.min = min->as.integer;
    if (max)
        range.max = max->as.integer;
    return range;
}

/* ---- patterns ---- */

/* For who wants to know what a rule looks for. */
static struct text pattern_text(struct rules_reader *reader, const struct doc *map,
                                const char *path)
{
    cleanup_buf struct buf json = BUF_INIT;
    if (doc_to_json(map, EXIT_PATTERN_BYTES_MAX, &json) < 0) {
        problem_add(reader->problems, map->place, path, "has more than %d bytes",
                    EXIT_PATTERN_BYTES_MAX);
        return TEXT("{}");
    }
    return text_of(arena_copy(&reader->rules->arena, buf_as_text(&json)));
}

static struct exit_pattern *pattern_add(struct rules_reader *reader, struct exit_rule *rule,
                                        const struct doc *map, const char *path)
{
    struct exit_pattern *pattern = ARRAY_ADD(&reader->rules->patterns);
    pattern->user_log = pattern->platform_log = EXPRESSION_NO;
    pattern->name = pattern->reason = pattern->message = EXPRESSION_NO;
    pattern->container = (uint32_t)reader->rules->containers.count;
    pattern->line = map->place.line;
    pattern->text = pattern_text(reader, map, path);
    rule->pattern_count++;
    return pattern;
}

/* nvidiaDoubleEccError; ours: nvidiaGpuLost */
static void read_gpu_pattern(struct rules_reader *reader, struct exit_pattern *pattern,
                             const struct doc *map, const char *path)
{
    static const char *const known[] = {"nvidiaDoubleEccError", "nvidiaGpuLost", NULL};
    warn_unknown(reader, map, path, known);
    pattern->needs_ecc = read_bool(reader, map, "nvidiaDoubleEccError", path);
    pattern->needs_gpu_lost = read_bool(reader, map, "nvidiaGpuLost", path);
}

/* exitCode, userLogRegex, platformLogRegex, gpuInfo; ours: neverRetry */
static void read_runtime_pattern(struct rules_reader *reader, struct exit_rule *rule,
                                 const struct doc *map, const char *path)
{
    static const char *const known[] = {"exitCode", "userLogRegex", "platformLogRegex",
                                        "gpuInfo",  "neverRetry",   NULL};
    warn_unknown(reader, map, path, known);
    struct exit_pattern *pattern = pattern_add(reader, rule, map, path);
    pattern->is_runtime = true;
    pattern->has_exit_code = read_code(reader, map, "exitCode", path, 0, 255, &pattern->exit_code);
    pattern->user_log = read_expression(reader, map, "userLogRegex", path);
    pattern->platform_log = read_expression(reader, map, "platformLogRegex", path);
    pattern->is_never_retried = read_bool(reader, map, "neverRetry", path);
    const struct doc *gpu = read_kind(reader, map, "gpuInfo", path, DOC_MAP);
    if (gpu)
        read_gpu_pattern(reader, pattern, gpu, path_of(reader, path, "gpuInfo"));
    if (!pattern->has_exit_code && pattern->user_log == EXPRESSION_NO &&
        pattern->platform_log == EXPRESSION_NO && !pattern->needs_ecc && !pattern->needs_gpu_lost)
        problem_add(reader->problems, map->place, path, "has no condition and would match all");
}

/* OpenPAI writes exitCode, FrameworkController codeRange and signalRange. */
static void read_container_pattern(struct rules_reader *reader, struct exit_pattern *pattern,
                                   const struct doc *map, const char *path)
{
    static const char *const known[] = {
        "nameRegex", "reasonRegex", "messageRegex", "exitCode", "codeRange", "signalRange", NULL};
    warn_unknown(reader, map, path, known);
    struct exit_container_pattern container = {
        .name = read_expression(reader, map, "nameRegex", path),
        .reason = read_expression(reader, map, "reasonRegex", path),
        .message = read_expression(reader, map, "messageRegex", path),
    };
    container.code = read_range(reader, map, "codeRange", path, 1);
    container.signal = read_range(reader, map, "signalRange", path, INT64_MIN);
    int32_t code = 0;
    if (read_code(reader, map, "exitCode", path, INT32_MIN, INT32_MAX, &code))
        container.code = (struct exit_range){code, code};
    *ARRAY_ADD(&reader->rules->containers) = container;
    pattern->container_count++;
}

static void read_pod_pattern(struct rules_reader *reader, struct exit_rule *rule,
                             const struct doc *map, const char *path)
{
    static const char *const known[] = {"nameRegex",  "reasonRegex", "messageRegex",
                                        "containers", "neverRetry",  NULL};
    warn_unknown(reader, map, path, known);
    struct exit_pattern *pattern = pattern_add(reader, rule, map, path);
    pattern->name = read_expression(reader, map, "nameRegex", path);
    pattern->reason = read_expression(reader, map, "reasonRegex", path);
    pattern->message = read_expression(reader, map, "messageRegex", path);
    pattern->is_never_retried = read_bool(reader, map, "neverRetry", path);
    const struct doc *list = read_kind(reader, map, "containers", path, DOC_LIST);
    for (size_t i = 0; list && i < list->as.list.count; i++) {
        const struct doc *item = list->as.list.items[i];
        const char *place = path_at(reader, path, "containers", i);
        if (item->kind == DOC_MAP)
            read_container_pattern(reader, pattern, item, place);
        else
            problem_add(reader->problems, item->place, place, "must be a map, is %s",
                        doc_kind_name(item->kind));
    }
    if (pattern->name == EXPRESSION_NO && pattern->reason == EXPRESSION_NO &&
        pattern->message == EXPRESSION_NO && pattern->container_count == 0)
        problem_warn(reader->problems, map->place, path, "has no condition and matches all");
}

typedef void read_pattern_function(struct rules_reader *reader, struct exit_rule *rule,
                                   const struct doc *map, const char *path);

static void read_patterns(struct rules_reader *reader, struct exit_rule *rule,
                          const struct doc *map, const char *key, const char *parent,
                          read_pattern_function *read)
{
    const struct doc *list = read_kind(reader, map, key, parent, DOC_LIST);
    for (size_t i = 0; list && i < list->as.list.count; i++) {
        const struct doc *item = list->as.list.items[i];
        const char *path = path_at(reader, parent, key, i);
        if (reader->rules->patterns.count >= EXIT_PATTERNS_MAX) {
            problem_add(reader->problems, item->place, path, "more than %d patterns in all",
                        EXIT_PATTERNS_MAX);
            return;
        }
        if (item->kind == DOC_MAP)
            read(reader, rule, item, path);
        else
            problem_add(reader->problems, item->place, path, "must be a map, is %s",
                        doc_kind_name(item->kind));
    }
}

/* ---- entries ---- */

static uint8_t attributes_of(const char *behavior)
{
    if (strcmp(behavior, "TRANSIENT") == 0)
        return EXIT_TRANSIENT;
    if (strcmp(behavior, "TRANSIENT_CONFLICT") == 0)
        return EXIT_TRANSIENT | EXIT_CONFLICT;
    return strcmp(behavior, "PERMANENT") == 0 ? EXIT_PERMANENT : 0;
}

static const char *reaction_of(uint8_t attributes)
{
    if (attributes & EXIT_CONFLICT)
        return "ALWAYS_BACKOFF_RETRY";
    if (attributes & EXIT_TRANSIENT)
        return "ALWAYS_RETRY";
    return attributes & EXIT_PERMANENT ? "NEVER_RETRY" : "RETRY_TO_MAX";
}

static struct exit_rule *rule_of_code(struct exit_rules *rules, int32_t code)
{
    for (size_t i = 0; i < rules->rules.count; i++)
        if (rules->rules.items[i].spec.code == code)
            return &rules->rules.items[i];
    return NULL;
}

static struct exit_rule *rule_add(struct rules_reader *reader, const struct doc *entry,
                                  int32_t code, const char *path)
{
    struct exit_rules *rules = reader->rules;
    const struct exit_rule *same = rule_of_code(rules, code);
    if (same && (same->spec.is_operators == reader->is_operators)) {
        problem_add(reader->problems, entry->place, path, "code %d is there twice", code);
        return NULL;
    }
    if (same) /* the operator's stands for the built-in one */
        return NULL;
    if (rules->rules.count >= EXIT_SPECS_MAX) {
        problem_add(reader->problems, entry->place, path, "more than %d codes", EXIT_SPECS_MAX);
        return NULL;
    }
    struct exit_rule *rule = ARRAY_ADD(&rules->rules);
    rule->spec = (struct exit_spec){.code = code,
                                    .phrase = "",
                                    .issuer = "UNKNOWN",
                                    .causer = "UNKNOWN",
                                    .type = "UNKNOWN_FAILURE",
                                    .stage = "UNKNOWN",
                                    .behavior = "UNKNOWN",
                                    .reaction = "RETRY_TO_MAX",
                                    .reason = "",
                                    .is_operators = reader->is_operators};
    rule->number = reader->number;
    rule->pattern = (uint32_t)rules->patterns.count;
    return rule;
}

static void check_phrase(struct rules_reader *reader, const struct doc *entry,
                         struct exit_rule *rule, const char *path)
{
    const struct doc *place = doc_get(entry, "phrase") ? doc_get(entry, "phrase") : entry;
    const size_t length = strlen(rule->spec.phrase);
    if (length == 0 || length >= sizeof((struct completion *)0)->phrase)
        problem_add(reader->problems, place->place, path_of(reader, path, "phrase"),
                    "must have 1..%zu characters", sizeof((struct completion *)0)->phrase - 1);
}

/* OpenPAI's exit specification */
static void read_spec_entry(struct rules_reader *reader, const struct doc *entry, const char *path)
{
    static const char *const known[] = {"code",     "phrase",   "issuer",   "causer", "type",
                                        "stage",    "behavior", "reaction", "reason", "repro",
                                        "solution", "pattern",  NULL};
    static const char *const known_patterns[] = {"runtimeContainerPatterns",
                                                 "controllerPodPatterns", NULL};
    warn_unknown(reader, entry, path, known);
    int32_t code = 0;
    if (!has_value(entry, "code"))
        problem_add(reader->problems, entry->place, path, "has no code");
    if (!read_code(reader, entry, "code", path, EXIT_CODE_MIN, EXIT_CODE_MAX, &code))
        return;
    struct exit_rule *rule = rule_add(reader, entry, code, path);
    if (!rule)
        return;
    struct exit_spec *spec = &rule->spec;
    spec->phrase = read_string(reader, entry, "phrase", path);
    check_phrase(reader, entry, rule, path);
    spec->issuer = read_choice(reader, entry, "issuer", path, issuers);
    spec->causer = read_choice(reader, entry, "causer", path, causers);
    if (doc_get(entry, "type"))
        spec->type = read_choice(reader, entry, "type", path, types);
    spec->stage = read_choice(reader, entry, "stage", path, stages);
    spec->behavior = read_choice(reader, entry, "behavior", path, behaviors);
    spec->attributes = attributes_of(spec->behavior);
    spec->reaction = reaction_of(spec->attributes);
    if (doc_get(entry, "reaction")) {
        const char *reaction = read_choice(reader, entry, "reaction", path, reactions);
        if (strcmp(reaction, spec->reaction) != 0 && code != CODE_SUCCEEDED)
            problem_warn(reader->problems, doc_get(entry, "reaction")->place,
                         path_of(reader, path, "reaction"),
                         "does not follow from the behavior, which decides; it would be %s",
                         spec->reaction);
        spec->reaction = reaction;
    }
    spec->reason = read_string(reader, entry, "reason", path);
    spec->repro = read_strings(reader, entry, "repro", path, &spec->repro_count);
    spec->solution = read_strings(reader, entry, "solution", path, &spec->solution_count);
    const struct doc *pattern = read_kind(reader, entry, "pattern", path, DOC_MAP);
    if (!pattern)
        return;
    const char *place = path_of(reader, path, "pattern");
    warn_unknown(reader, pattern, place, known_patterns);
    read_patterns(reader, rule, pattern, "runtimeContainerPatterns", place, read_runtime_pattern);
    read_patterns(reader, rule, pattern, "controllerPodPatterns", place, read_pod_pattern);
}

/* OpenPAI's runtime rules */
static void read_runtime_entry(struct rules_reader *reader, const struct doc *entry,
                               const char *path)
{
    static const char *const known[] = {"containerExitCode", "patterns", NULL};
    warn_unknown(reader, entry, path, known);
    int32_t code = 0;
    if (!read_code(reader, entry, "containerExitCode", path, 1, 255, &code)) {
        if (!has_value(entry, "containerExitCode"))
            problem_add(reader->problems, entry->place, path, "has no containerExitCode");
        return;
    }
    struct exit_rule *rule = rule_add(reader, entry, code, path);
    if (!rule)
        return;
    rule->spec.phrase = arena_format(&reader->rules->arena, "ContainerExitCode%d", code);
    read_patterns(reader, rule, entry, "patterns", path, read_runtime_pattern);
}

static bool is_reserved(int32_t code)
{
    return (code >= -999 && code <= 0) || (code >= 200 && code <= 219);
}

static uint8_t read_failure_type(struct rules_reader *reader, const struct doc *entry,
                                 const char *path)
{
    uint8_t attributes = 0;
    const struct doc *type = read_kind(reader, entry, "type", path, DOC_MAP);
    const char *place = path_of(reader, path, "type");
    const char *name = type ? read_string(reader, type, "name", place) : "";
    if (name[0] != '\0' && strcmp(name, "Failed") != 0)
        problem_add(reader->problems, doc_get(type, "name")->place, path_of(reader, place, "name"),
                    "must be Failed, is '%s'", name);
    size_t count = 0;
    const char *const *names =
        type ? read_strings(reader, type, "attributes", place, &count) : NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], "Transient") == 0)
            attributes |= EXIT_TRANSIENT;
        else if (strcmp(names[i], "Conflict") == 0)
            attributes |= EXIT_CONFLICT;
        else if (strcmp(names[i], "Permanent") == 0)
            attributes |= EXIT_PERMANENT;
        else
            problem_warn(reader->problems, type->place, path_at(reader, place, "attributes", i),
                         "'%s' has no meaning", names[i]);
    }
    return attributes;
}

/* FrameworkController's podFailureSpec */
static void read_failure_entry(struct rules_reader *reader, const struct doc *entry,
                               const char *path)
{
    static const char *const known[] = {"code", "phrase", "type", "podPatterns", NULL};
    warn_unknown(reader, entry, path, known);
    int32_t code = 0;
    if (!has_value(entry, "code"))
        problem_add(reader->problems, entry->place, path, "has no code");
    if (!read_code(reader, entry, "code", path, INT32_MIN, INT32_MAX, &code))
        return;
    if (is_reserved(code))
        problem_add(reader->problems, doc_get(entry, "code")->place, path_of(reader, path, "code"),
                    "must not be in -999..0 or 200..219, is %d", code);
    const struct doc *patterns = doc_get(entry, "podPatterns");
    if (!patterns || patterns->kind != DOC_LIST || patterns->as.list.count == 0)
        problem_add(reader->problems, entry->place, path, "has no podPatterns");
    struct exit_rule *rule = rule_add(reader, entry, code, path);
    if (!rule)
        return;
    struct exit_spec *spec = &rule->spec;
    spec->phrase = read_string(reader, entry, "phrase", path);
    spec->attributes = read_failure_type(reader, entry, path);
    spec->reaction = reaction_of(spec->attributes);
    if (spec->attributes & EXIT_TRANSIENT)
        spec->behavior = spec->attributes & EXIT_CONFLICT ? "TRANSIENT_CONFLICT" : "TRANSIENT";
    else if (spec->attributes & EXIT_PERMANENT)
        spec->behavior = "PERMANENT";
    if (spec->phrase[0] == '\0')
        spec->phrase = arena_format(&reader->rules->arena, "ContainerExitCode%d", code);
    check_phrase(reader, entry, rule, path);
    read_patterns(reader, rule, entry, "podPatterns", path, read_pod_pattern);
}

typedef void read_entry_function(struct rules_reader *reader, const struct doc *entry,
                                 const char *path);

static void read_entries(struct rules_reader *reader, const struct doc *list, const char *key,
                         read_entry_function *read)
{
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct doc *entry = list->as.list.items[i];
        const char *path = path_at(reader, "", key, i);
        reader->number = (uint32_t)i + 1;
        if (entry->kind == DOC_MAP)
            read(reader, entry, path);
        else
            problem_add(reader->problems, entry->place, path, "must be a map, is %s",
                        doc_kind_name(entry->kind));
    }
}

static void read_document(struct rules_reader *reader, const struct doc *doc)
{
    static const char *const known[] = {"spec",         "podFailureSpec", "builtin",
                                        "service_type", "schema",         NULL};
    if (doc->kind == DOC_LIST) {
        read_entries(reader, doc, "", read_runtime_entry);
        return;
    }
    if (doc->kind != DOC_MAP) {
        if (doc->kind != DOC_NULL)
            problem_add(reader->problems, doc->place, "", "must be a map or a list, is %s",
                        doc_kind_name(doc->kind));
        return;
    }
    warn_unknown(reader, doc, "", known);
    const struct doc *builtin = read_kind(reader, doc, "builtin", "", DOC_BOOL);
    reader->drops_builtin = builtin && !builtin->as.boolean;
    const struct doc *list = read_kind(reader, doc, "spec", "", DOC_LIST);
    if (list)
        read_entries(reader, list, "spec", read_spec_entry);
    list = read_kind(reader, doc, "podFailureSpec", "", DOC_LIST);
    if (list)
        read_entries(reader, list, "podFailureSpec", read_failure_entry);
}

static void read_text(struct rules_reader *reader, struct text source)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    reader->scratch = &arena;
    const struct doc *doc = doc_parse(source, DOC_YAML, &arena, reader->problems);
    if (doc)
        read_document(reader, doc);
    reader->scratch = NULL;
}

struct exit_rules *exit_rules_new(struct text operators_file, struct problems *problems)
{
    struct exit_rules *rules = mem_zero(1, sizeof *rules);
    arena_init(&rules->arena);
    rules->matcher = matcher_new();
    struct rules_reader reader = {.rules = rules, .problems = problems, .is_operators = true};
    const size_t errors_before = problems->error_count;
    if (operators_file.length > 0)
        read_text(&reader, operators_file);
    if (problems->error_count > errors_before) {
        exit_rules_free(rules);
        return NULL;
    }
    reader.own = rules->rules.count;
    reader.is_operators = false;
    const bool drops_builtin = reader.drops_builtin;
    read_text(&reader, (struct text){exit_specs_yaml, exit_specs_yaml_length});
    assert(problems->error_count == errors_before); /* the built-in table is ours and tested */
    for (size_t i = reader.own; drops_builtin && i < rules->rules.count; i++)
        rules->rules.items[i].pattern_count = 0;
    matcher_build(rules->matcher);
    return rules;
}

void exit_rules_free(struct exit_rules *rules)
{
    if (!rules)
        return;
    ARRAY_FREE(&rules->rules);
    ARRAY_FREE(&rules->patterns);
    ARRAY_FREE(&rules->containers);
    matcher_free(rules->matcher);
    arena_release(&rules->arena);
    mem_free(rules);
}

/* ---- questions ---- */

size_t exit_rules_count(const struct exit_rules *rules)
{
    return rules->rules.count;
}

const struct exit_spec *exit_rules_at(const struct exit_rules *rules, size_t index)
{
    assert(index < rules->rules.count);
    return &rules->rules.items[index].spec;
}

size_t exit_rules_patterns(const struct exit_rules *rules, size_t index)
{
    assert(index < rules->rules.count);
    return rules->rules.items[index].pattern_count;
}

struct text exit_rules_pattern(const struct exit_rules *rules, size_t index, size_t pattern)
{
    assert(index < rules->rules.count && pattern < rules->rules.items[index].pattern_count);
    return rules->patterns.items[rules->rules.items[index].pattern + pattern].text;
}

struct exit_source exit_rules_source(const struct exit_rules *rules, size_t rule, size_t pattern)
{
    assert(rule < rules->rules.count && pattern < rules->rules.items[rule].pattern_count);
    const struct exit_rule *found = &rules->rules.items[rule];
    return (struct exit_source){
        .number = found->number,
        .pattern = (uint32_t)pattern + 1,
        .line = rules->patterns.items[found->pattern + pattern].line,
        .is_operators = found->spec.is_operators,
    };
}

const struct exit_spec *exit_rules_exact(const struct exit_rules *rules, int32_t code)
{
    for (size_t i = 0; i < rules->rules.count; i++)
        if (rules->rules.items[i].spec.code == code)
            return &rules->rules.items[i].spec;
    return NULL;
}

const struct exit_spec *exit_rules_find(const struct exit_rules *rules, int32_t code)
{
    const struct exit_spec *spec = exit_rules_exact(rules, code);
    if (spec)
        return spec;
    const int32_t stand_in = code < 0            ? EXIT_CODE_UNDEFINED
                             : code <= UINT8_MAX ? EXIT_CODE_UNKNOWN
                                                 : EXIT_CODE_ABNORMAL;
    spec = exit_rules_exact(rules, stand_in);
    assert(spec); /* rows stay even when the built-in rules are dropped */
    return spec;
}
