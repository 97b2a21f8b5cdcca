#include "exits/judge.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "base/printable.h"
#include "exits/table.h"
#include <assert.h>
#include <stdio.h>
#include <strings.h>

enum { EXIT_SHOWN_MAX = 120 }; /* bytes of the line that matched, in the diagnostics */

struct log { /* one of the two tails; filtered when it is first asked about */
    struct text text;
    bool *candidates; /* by expression: may it match? */
};

struct judge {
    const struct exit_rules *rules;
    const struct exit_report *report;
    struct exit_verdict *verdict;
    struct exit_container single;
    const struct exit_container *containers;
    size_t container_count;
    struct log user, platform;
    struct text user_found, platform_found; /* of the pattern being tried */
};

static struct text tail_of(struct text text, size_t most)
{
    if (text.length > most)
        return (struct text){text.at + text.length - most, most};
    return text;
}

static bool search_log(const struct judge *judge, uint32_t index, struct log *log,
                       struct text *found)
{
    const struct matcher *matcher = judge->rules->matcher;
    if (!log->candidates) {
        log->candidates = mem_zero(matcher_count(matcher), sizeof *log->candidates);
        matcher_filter(matcher, log->text, log->candidates);
    }
    return log->candidates[index] && matcher_search(matcher, index, log->text, found);
}

static bool search_string(const struct judge *judge, uint32_t index, const char *string)
{
    return index == EXPRESSION_NO ||
           matcher_search(judge->rules->matcher, index, text_of(string ? string : ""), NULL);
}

static bool is_in(struct exit_range range, int64_t value)
{
    return value >= range.min && value <= range.max;
}

static bool match_container(struct judge *judge, const struct exit_container_pattern *pattern,
                            const struct exit_container *container)
{
    return container->is_terminated && is_in(pattern->code, container->exit_code) &&
           is_in(pattern->signal, container->signal) &&
           search_string(judge, pattern->name, container->name) &&
           search_string(judge, pattern->reason, container->reason) &&
           search_string(judge, pattern->message, container->message);
}

static bool match_containers(struct judge *judge, const struct exit_container_pattern *pattern)
{
    for (size_t i = 0; i < judge->container_count; i++)
        if (match_container(judge, pattern, &judge->containers[i]))
            return true;
    return false;
}

static bool match_runtime(struct judge *judge, const struct exit_pattern *pattern)
{
    const struct exit_report *report = judge->report;
    if (pattern->has_exit_code && pattern->exit_code != report->exit_code)
        return false;
    if ((pattern->needs_ecc && !report->has_gpu_ecc_error) ||
        (pattern->needs_gpu_lost && !report->has_gpu_lost))
        return false;
    if (pattern->user_log != EXPRESSION_NO &&
        !search_log(judge, pattern->user_log, &judge->user, &judge->user_found))
        return false;
    return pattern->platform_log == EXPRESSION_NO ||
           search_log(judge, pattern->platform_log, &judge->platform, &judge->platform_found);
}

static bool match(struct judge *judge, const struct exit_pattern *pattern)
{
    judge->user_found = judge->platform_found = (struct text){0};
    if (pattern->is_runtime)
        return match_runtime(judge, pattern);
    const struct exit_report *report = judge->report;
    if (!search_string(judge, pattern->name, report->name) ||
        !search_string(judge, pattern->reason, report->reason) ||
        !search_string(judge, pattern->message, report->message))
        return false;
    for (uint32_t i = 0; i < pattern->container_count; i++)
        if (!match_containers(judge, &judge->rules->containers.items[pattern->container + i]))
            return false;
    return true;
}

/* ---- whose word it is ---- */

static bool has_container_condition(const struct judge *judge, const struct exit_pattern *pattern,
                                    bool is_message)
{
    for (uint32_t i = 0; i < pattern->container_count; i++) {
        const struct exit_container_pattern *container =
            &judge->rules->containers.items[pattern->container + i];
        if ((is_message ? container->message : container->reason) != EXPRESSION_NO)
            return true;
    }
    return false;
}

/* One condition that only the platform can make true is enough, when no text of the task's was
 * needed to tell this failure from others. The engine's message is such a text: it repeats names
 * from the job and the image. */
static enum exit_evidence evidence_of(const struct judge *judge, const struct exit_pattern *pattern)
{
    if (pattern->needs_ecc || pattern->needs_gpu_lost)
        return EVIDENCE_PLATFORM;
    if (pattern->is_runtime || pattern->message != EXPRESSION_NO ||
        has_container_condition(judge, pattern, true))
        return EVIDENCE_TASK;
    const bool is_asked =
        pattern->reason != EXPRESSION_NO || has_container_condition(judge, pattern, false);
    const struct exit_report *report = judge->report;
    const bool is_told =
        report->containers || (report->reason && report->reason[0]) || report->is_oom_killed;
    return is_asked && is_told ? EVIDENCE_PLATFORM : EVIDENCE_TASK;
}

/* ---- words ---- */

static struct text last_lines(struct text text, size_t lines)
{
    size_t at = text.length;
    if (at > 0 && text.at[at - 1] == '\n')
        at--;
    while (at > 0) {
        if (text.at[at - 1] == '\n' && --lines == 0)
            break;
        at--;
    }
    return (struct text){text.at ? text.at + at : NULL, text.length - at};
}

/* The line of the log in which the match begins, else what the engine said, cut to what people
 * read. */
static void describe(struct judge *judge, struct completion *completion, const char *reason)
{
    struct text found = judge->user_found.length > 0 ? judge->user_found : judge->platform_found;
    if (found.length == 0 && judge->report->message)
        found = text_of(judge->report->message);
    cleanup_buf struct buf line = BUF_INIT, words = BUF_INIT;
    printable_put(&line, text_cut(&found, '\n'));
    const struct text shown = text_trim(printable_head(buf_as_text(&line), EXIT_SHOWN_MAX));
    buf_string(&words, reason);
    if (shown.length > 0)
        buf_format(&words, " (%.*s)", TEXT_ARG(shown));
    const struct text all = printable_head(buf_as_text(&words), sizeof completion->diagnostics - 1);
    memcpy(completion->diagnostics, all.at, all.length);
    completion->diagnostics[all.length] = '\0';
}

static void conclude(struct judge *judge, const struct exit_rule *rule,
                     const struct exit_pattern *pattern)
{
    struct exit_verdict *verdict = judge->verdict;
    struct completion *completion = &verdict->completion;
    completion->code = rule->spec.code;
    completion->attributes = rule->spec.attributes;
    if (pattern->is_never_retried)
        completion->attributes = EXIT_PERMANENT | EXIT_NEVER_RETRIED;
    snprintf(completion->phrase, sizeof completion->phrase, "%s", rule->spec.phrase);
    describe(judge, completion, rule->spec.reason);
    verdict->evidence = evidence_of(judge, pattern);
    verdict->is_matched = true;
    verdict->rule = (size_t)(rule - judge->rules->rules.items);
    verdict->pattern = (size_t)(pattern - judge->rules->patterns.items) - rule->pattern;
    verdict->user_text = judge->user_found;
    if (verdict->user_text.length > EXIT_EXCERPT_MAX)
        verdict->user_text.length = EXIT_EXCERPT_MAX;
    verdict->platform_text = judge->platform_found;
    if (verdict->platform_text.length > EXIT_EXCERPT_MAX)
        verdict->platform_text.length = EXIT_EXCERPT_MAX;
}

/* ---- the order of things ---- */

static void take_code(struct judge *judge, int32_t code, const char *words)
{
    judge->verdict->completion = completion_of(code, "%s", words);
}

static void take_vouched(struct judge *judge, int32_t code, const char *words)
{
    take_code(judge, code, words);
    judge->verdict->evidence = EVIDENCE_PLATFORM;
}

/* Codes by which a container says itself how it wants to be treated. */
static bool judge_predefined(struct judge *judge)
{
    static const int32_t codes[] = {CODE_TRANSIENT, CODE_TRANSIENT_CONFLICT, CODE_PERMANENT};
    for (size_t c = 0; c < COUNT_OF(codes); c++)
        for (size_t i = 0; i < judge->container_count; i++)
            if (judge->containers[i].is_terminated && judge->containers[i].exit_code == codes[c]) {
                take_code(judge, codes[c], "the program asked for it by its exit code");
                return true;
            }
    return false;
}

static bool judge_rules(struct judge *judge)
{
    const struct exit_rules *rules = judge->rules;
    for (size_t i = 0; i < rules->rules.count; i++) {
        const struct exit_rule *rule = &rules->rules.items[i];
        for (uint32_t p = 0; p < rule->pattern_count; p++) {
            const struct exit_pattern *pattern = &rules->patterns.items[rule->pattern + p];
            if (match(judge, pattern)) {
                conclude(judge, rule, pattern);
                return true;
            }
        }
    }
    return false;
}

static void take_unmatched(struct judge *judge, int32_t code, const char *phrase,
                           const struct exit_container *container)
{
    struct completion *completion = &judge->verdict->completion;
    completion->code = code;
    snprintf(completion->phrase, sizeof completion->phrase, "%s", phrase);
    const char *message = container->message ? container->message : "";
    snprintf(completion->diagnostics, sizeof completion->diagnostics, "exit code %d%s%s",
             container->exit_code, message[0] ? ": " : "", message);
}

static void judge_unmatched(struct judge *judge)
{
    const struct exit_container *last = NULL;
    for (size_t i = 0; i < judge->container_count; i++) {
        const struct exit_container *container = &judge->containers[i];
        if (container->is_terminated && container->exit_code != 0 &&
            (!last || container->finished_at > last->finished_at))
            last = container;
    }
    const bool is_pod = judge->report->containers != NULL;
    if (!is_pod && !judge->report->is_user_command) {
        const struct exit_spec *spec = exit_rules_find(judge->rules, EXIT_CODE_ABNORMAL);
        take_unmatched(judge, spec->code, spec->phrase, &judge->single);
    } else if (!last) {
        take_code(judge, CODE_FAILED_WITHOUT_CONTAINER,
                  "it failed, but none of its containers did");
    } else if (!is_pod && exit_rules_exact(judge->rules, last->exit_code)) {
        /* the program happened on a code by which the table means something else */
        const struct exit_spec *spec = exit_rules_find(judge->rules, EXIT_CODE_UNKNOWN);
        take_unmatched(judge, spec->code, spec->phrase, last);
    } else {
        take_unmatched(judge, last->exit_code, "ContainerUnrecognizedFailed", last);
    }
}

static bool is_success(const struct exit_report *report)
{
    return !report->containers && report->is_user_command && report->exit_code == 0 &&
           report->signal == 0;
}

static void judge_all(struct judge *judge)
{
    const struct exit_report *report = judge->report;
    if (report->is_lost)
        take_vouched(judge, CODE_NODE_LOST, "its node went away");
    else if (report->is_missing)
        take_vouched(judge, CODE_CONTAINER_DELETED, "its container was removed from outside");
    else if (is_success(report))
        take_code(judge, CODE_SUCCEEDED, "");
    else if (!judge_predefined(judge) && !judge_rules(judge))
        judge_unmatched(judge);
}

void exit_judge(const struct exit_rules *rules, const struct exit_report *report,
                struct exit_verdict *verdict)
{
    *verdict = (struct exit_verdict){0};
    struct judge judge = {
        .rules = rules,
        .report = report,
        .verdict = verdict,
        .single = {.name = report->is_user_command ? "app" : "init",
                   .reason = report->is_oom_killed ? "OOMKilled" : report->reason,
                   .message = report->message,
                   .exit_code = report->exit_code,
                   .signal = report->signal,
                   .is_terminated = true},
        .containers = report->containers,
        .container_count = report->container_count,
        .user = {.text = tail_of(report->log_tail, EXIT_TAIL_MAX)},
        .platform = {.text = tail_of(report->platform_tail, EXIT_TAIL_MAX)},
    };
    if (!report->containers) {
        judge.containers = &judge.single;
        judge.container_count = 1;
    }
    judge_all(&judge);
    verdict->completion.exit_code = report->exit_code;
    verdict->spec = exit_rules_find(rules, verdict->completion.code);
    verdict->user_lines = last_lines(judge.user.text, EXIT_USER_LINES);
    verdict->platform_lines = last_lines(judge.platform.text, EXIT_PLATFORM_LINES);
    mem_free(judge.user.candidates);
    mem_free(judge.platform.candidates);
}
