/* v0-job-config.json: job files of format 1, accepted or not and where they are wrong.
 *
 * The expectation of the newest era of a vector counts. spec-deviations.json has the rules where
 * Skep decides otherwise on purpose: a rule names a place in the job and what stands there, never a
 * vector. Where all that made our decision has a rule, the expectation must be the other decision,
 * and else the same.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "doc/problem.h"
#include "spec/spec.h"
#include "vector_job.h"

static const char *const eras[] = {"0.14", "0.7", "0.4"}; /* newest first */

static const json_t *newest(const json_t *by_era)
{
    for (size_t i = 0; i < COUNT_OF(eras); i++)
        if (json_object_get(by_era, eras[i]))
            return json_object_get(by_era, eras[i]);
    return NULL;
}

/* ---- the rules of spec-deviations.json ---- */

/* A whole number, or a text of one: rules are about ranges, not about kinds. */
static bool is_number(const json_t *value, double *number)
{
    char *end = NULL;
    const char *text = json_string_value(value);
    if (!text && !json_is_number(value))
        return false;
    *number = text ? strtod(text, &end) : json_number_value(value);
    return (!text || (text[0] != '\0' && *end == '\0')) && floor(*number) == *number;
}

static bool repeats(const json_t *list, const char *member)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(string_at(json_array_get(list, i), member),
                       string_at(json_array_get(list, j), member)) == 0)
                return true;
    return false;
}

static double tasks_of(const json_t *job)
{
    double sum = 0;
    size_t i;
    json_t *role;
    json_array_foreach (json_object_get(job, "taskRoles"), i, role) {
        double count;
        const json_t *value = json_object_get(role, "taskNumber");
        sum += is_number(value, &count) ? count : 1;
    }
    return sum;
}

static bool rule_fits(const json_t *rule, const json_t *job, const json_t *value)
{
    double number;
    const char *text = json_string_value(value);
    const json_t *below = json_object_get(rule, "below"), *above = json_object_get(rule, "above");
    const json_t *longer = json_object_get(rule, "longer"), *has = json_object_get(rule, "has");
    if (below && is_number(value, &number) && number < json_number_value(below))
        return true;
    if (above && is_number(value, &number) && number > json_number_value(above))
        return true;
    if (json_is_true(json_object_get(rule, "aboveTasks")) && is_number(value, &number) &&
        number > tasks_of(job))
        return true;
    if (longer && text && strlen(text) > (size_t)json_integer_value(longer))
        return true;
    if (has && text && strstr(text, json_string_value(has)))
        return true;
    return json_object_get(rule, "repeats") && repeats(value, string_at(rule, "repeats"));
}

/* Since 0.7 a role without tasks is refused because of its thresholds, unless they are off. */
static bool is_in_question(const json_t *rule, const json_t *role)
{
    const json_t *failed = json_object_get(role, "minFailedTaskCount");
    const json_t *succeeded = json_object_get(role, "minSucceededTaskCount");
    return !json_is_true(json_object_get(rule, "noThresholds")) ||
           (json_is_null(failed) && (!succeeded || json_is_null(succeeded)));
}

/* Does the rule hold at its place, a path whose "*" stands for each item of a list? */
static bool rule_holds(const json_t *rule, const json_t *job, const json_t *at, const char *path)
{
    if (!at)
        return false;
    if (path[0] == '\0')
        return rule_fits(rule, job, at);
    const size_t length = strcspn(path, ".");
    const char *rest = path + length + (path[length] == '.');
    if (length != 1 || path[0] != '*')
        return rule_holds(
            rule, job, json_object_get(at, arena_copy(&vector_arena, (struct text){path, length})),
            rest);
    for (size_t i = 0; i < json_array_size(at); i++)
        if (is_in_question(rule, json_array_get(at, i)) &&
            rule_holds(rule, job, json_array_get(at, i), rest))
            return true;
    return false;
}

/* `taskRoles[0].command` as the vectors write it, `taskRoles.0.command`; "*" is any item. */
static bool is_at(const char *path, const char *wanted)
{
    while (*path && *wanted) {
        if (*path == ']') {
            path++;
        } else if (*wanted == '*') {
            path += strspn(path, "0123456789");
            wanted++;
        } else if ((*path == '[' ? '.' : *path) == *wanted) {
            path++;
            wanted++;
        } else {
            return false;
        }
    }
    return *wanted == '\0' && (*path == '\0' || strchr("[.]", *path));
}

static bool has_error_at(const struct problems *problems, const char *where)
{
    for (size_t i = 0; i < problems->count; i++)
        if (!problems->items[i].is_warning && is_at(problems->items[i].path, where))
            return true;
    return false;
}

/* A rule for this decision that holds for the job; of a refusal, for the error at `path`. */
static const json_t *rule_of(const json_t *rules, const json_t *job, bool is_accepted,
                             const char *path)
{
    size_t i;
    json_t *rule;
    json_array_foreach (rules, i, rule)
        if (json_is_true(json_object_get(rule, "accepted")) == is_accepted &&
            rule_holds(rule, job, job, string_at(rule, "path")) &&
            (is_accepted || is_at(path, string_at(rule, "path"))))
            return rule;
    return NULL;
}

/* The rule by which our decision is another than the original's: for a refusal all errors must have
 * one. NULL: the original decides so, too. */
static const json_t *deviation_of(const json_t *rules, const json_t *job, bool is_accepted,
                                  const struct problems *problems)
{
    const json_t *rule = NULL;
    if (is_accepted)
        return rule_of(rules, job, true, "");
    for (size_t i = 0; i < problems->count; i++) {
        if (problems->items[i].is_warning)
            continue;
        rule = rule_of(rules, job, false, problems->items[i].path);
        if (!rule)
            return NULL;
    }
    return rule;
}

/* ---- vectors ---- */

static bool job_parse(const json_t *job, struct spec_parsed *parsed, struct problems *problems)
{
    char *text = json_dumps(job, 0);
    const bool is_accepted = spec_parse(text_of(text), &vector_arena, parsed, problems) == 0;
    free(text);
    return is_accepted;
}

static void config_vector(const json_t *rules, const json_t *vector, size_t index)
{
    const char *id = id_of(vector, "vectors", index);
    if (!case_fits(id, vector, "job:o expect:o rejectedPath:s?"))
        return;
    const json_t *expect = newest(json_object_get(vector, "expect"));
    if (!json_is_boolean(expect)) {
        report_skip(id, "it expects nothing of an era known here");
        return;
    }
    const json_t *job = json_object_get(vector, "job");
    const char *where = string_at(vector, "rejectedPath");
    struct problems problems;
    struct spec_parsed parsed = {0};
    problems_init(&problems, &vector_arena);
    const bool is_accepted = job_parse(job, &parsed, &problems);
    const json_t *rule = deviation_of(rules, job, is_accepted, &problems);
    if (rule) { /* then the original's decision must be the other one */
        fprintf(stderr, "deviates %s: %s\n", id, string_at(rule, "why"));
        report_bool(id, json_is_true(expect),
                    where[0] == '\0' || is_at(where, string_at(rule, "path"))
                        ? !is_accepted
                        : !json_is_true(expect));
    } else if (is_accepted || is_accepted != json_is_true(expect) ||
               has_error_at(&problems, where)) {
        report_bool(id, json_is_true(expect), is_accepted);
    } else {
        struct buf said = BUF_INIT;
        problems_print(&problems, "job", &said);
        report_fail(id, arena_format(&vector_arena, "a refusal of %s", where), buf_cstr(&said));
        buf_release(&said);
    }
    spec_free(parsed.spec);
    problems_release(&problems);
}

/* What the job is read to, with GPUs so that their type counts too. */
static void job_encode(const json_t *job, struct buf *bytes)
{
    struct problems problems;
    struct spec_parsed parsed = {0};
    json_t *with = json_deep_copy(job);
    json_t *role = json_array_get(json_object_get(with, "taskRoles"), 0);
    const bool has_gpus = json_integer_value(json_object_get(role, "gpuNumber")) != 0;
    problems_init(&problems, &vector_arena);
    for (int round = 0; round < 2 && !has_gpus; round++) {
        if (job_parse(with, &parsed, &problems))
            spec_encode(parsed.spec, bytes);
        spec_free(parsed.spec);
        parsed.spec = NULL;
        json_object_set_new(role, "gpuNumber", json_integer(1));
    }
    json_decref(with);
    problems_release(&problems);
}

/* A job with its defaults written out means the same as what the short one was read to. */
static void config_defaults(const json_t *vectors, const json_t *expected)
{
    const json_t *minimal = NULL;
    size_t i;
    json_t *vector;
    json_array_foreach (vectors, i, vector)
        if (strcmp(string_at(vector, "id"), "minimal") == 0)
            minimal = json_object_get(vector, "job");
    if (!minimal || !json_is_object(expected)) {
        report_skip("defaults", "the file has no minimal job");
        return;
    }
    struct buf ours = BUF_INIT, theirs = BUF_INIT;
    job_encode(minimal, &ours);
    job_encode(expected, &theirs);
    report_bool("defaults", true,
                ours.length && text_equal(buf_as_text(&ours), buf_as_text(&theirs)));
    buf_release(&ours);
    buf_release(&theirs);
}

void job_config(const json_t *file)
{
    json_error_t error;
    json_t *rules = json_load_file(spec_deviations, 0, &error);
    if (!json_is_array(rules)) {
        fprintf(stderr, "%s:%d: %s\n", spec_deviations, error.line, error.text);
        exit(2);
    }
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "vectors"), i, vector)
        config_vector(rules, vector, i);
    if (newest(json_object_get(file, "minimalWithDefaults")))
        config_defaults(json_object_get(file, "vectors"),
                        newest(json_object_get(file, "minimalWithDefaults")));
    json_decref(rules);
}
