/* Golden traces of the core: small stories whose every word is looked at once and kept.
 *
 * usage: test-core-golden [--update] FILE.story …
 * Each FILE.story is run and compared with FILE.trace beside it; --update writes that anew.
 * Exit 0: all equal. 1: prints the first difference of each. 2: usage, or a story that cannot be
 * read.
 *
 * A story has one step a line; `#` begins a comment:
 *   policy NAME                        before anything else; default first-fit
 *   node NAME cpu=N gpu=N [bad]        the node appeared or changed
 *   lost NAME | pardon NAME
 *   submit NAME [prio=N] [limit=S] [tasks] [debug] [retry=N] ROLE=COUNTxCPUcGPUg[@PORT] …
 *   run ATTEMPT | exit ATTEMPT CODE [transient|conflict|permanent]
 *   stop ID | delete ID | release ID | scale ID ROLE COUNT
 *   wait SECONDS                       time passes, then a timer comes
 *
 * Covers: src/core/output.c, src/core/output_text.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/core.h"
#include "core/output_text.h"
#include "core/plan.h"

enum { ORIGIN_MS = 1000000000, ROLES_MAX = 4, WORDS_MAX = 12 };

struct story {
    struct core *core;
    struct output output;
    struct arena arena;
    struct buf trace;
    int64_t now_ms;
    uint64_t request;
};

static char *words[WORDS_MAX];
static int word_count;

static const char *option(const char *name)
{
    size_t length = strlen(name);
    for (int i = 1; i < word_count; i++)
        if (strncmp(words[i], name, length) == 0 && (words[i][length] == '=' || !words[i][length]))
            return words[i] + length + (words[i][length] == '=');
    return NULL;
}

static int number(const char *name, int fallback)
{
    const char *value = option(name);
    return value ? atoi(value) : fallback;
}

static void step(struct story *story, struct event *event)
{
    event->now_ms = story->now_ms;
    event->random = 42;
    event->request = ++story->request;
    event->user = "alice";
    output_clear(&story->output);
    core_step(story->core, event, &story->output);
    core_check(story->core);
    output_write(&story->output, ORIGIN_MS, &story->trace);
}

static bool role_read(struct story *story, const char *word, struct plan_role *role)
{
    unsigned count, cpu, gpu, port = 0;
    char name[32];
    if (sscanf(word, "%31[a-z]=%ux%uc%ug@%u", name, &count, &cpu, &gpu, &port) < 4)
        return false;
    struct plan_port *ports = ARENA_ARRAY(&story->arena, struct plan_port, 2);
    ports[0] = (struct plan_port){"ssh", 1, 0};
    ports[1] = (struct plan_port){"http", 1, port};
    *role = plan_role_of(arena_copy(&story->arena, text_of(name)));
    role->instances = count;
    role->cpu = cpu;
    role->gpu = gpu;
    role->memory_mib = 100;
    role->ports = ports;
    role->port_count = 2;
    return true;
}

static bool submit(struct story *story)
{
    struct plan_role roles[ROLES_MAX];
    struct plan plan = {
        .name = words[1],
        .user = "alice",
        .virtual_cluster = "default",
        .priority = number("prio", 10),
        .retry_max = number("retry", 0),
        .time_limit_s = (uint64_t)number("limit", 0),
        .is_retry_fancy = true,
        .is_gang = !option("tasks"),
        .is_debug = option("debug"),
        .roles = roles,
    };
    for (int i = 2; i < word_count && plan.role_count < ROLES_MAX; i++)
        plan.role_count =
            (uint16_t)(plan.role_count + role_read(story, words[i], &roles[plan.role_count]));
    struct event event = {.kind = EVENT_SUBMIT, .submit = {.plan = plan_copy(&plan)}};
    step(story, &event);
    return plan.role_count > 0;
}

static void task(struct story *story, enum event_kind kind)
{
    struct event event = {.kind = kind};
    event.task.attempt.v = strtoull(words[1], NULL, 10);
    if (kind == EVENT_TASK_EXITED) {
        event.task.completion = completion_of(atoi(words[2]), "as the story says");
        if (option("transient") || option("conflict"))
            event.task.completion.attributes |= EXIT_TRANSIENT;
        if (option("conflict"))
            event.task.completion.attributes |= EXIT_CONFLICT;
        if (option("permanent"))
            event.task.completion.attributes |= EXIT_PERMANENT;
    }
    step(story, &event);
}

static void node(struct story *story, enum event_kind kind)
{
    uint32_t cpu = (uint32_t)number("cpu", 8), gpu = (uint32_t)number("gpu", 0);
    struct event event = {
        .kind = kind,
        .node = {.name = words[1],
                 .cpu = cpu,
                 .memory_mib = cpu * 1024u,
                 .gpu_count = gpu,
                 .gpu_type = gpu ? "V100" : "",
                 .is_healthy = !option("bad"),
                 .address = "10.0.0.1"},
    };
    step(story, &event);
}

static void ask(struct story *story, enum event_kind kind)
{
    struct event event = {.kind = kind};
    if (kind == EVENT_SCALE) {
        event.scale.job.v = (uint32_t)atoi(words[1]);
        event.scale.role = (uint16_t)atoi(words[2]);
        event.scale.instances = (uint32_t)atoi(words[3]);
    } else {
        event.job.v = (uint32_t)atoi(words[1]);
    }
    step(story, &event);
}

static const struct {
    const char *word;
    int words;
    void (*do_kind)(struct story *story, enum event_kind kind);
    enum event_kind kind;
} verbs[] = {
    {"node", 2, node, EVENT_NODE},          {"lost", 2, node, EVENT_NODE_LOST},
    {"pardon", 2, node, EVENT_NODE_PARDON}, {"exit", 3, task, EVENT_TASK_EXITED},
    {"stop", 2, ask, EVENT_STOP},           {"delete", 2, ask, EVENT_DELETE},
    {"release", 2, ask, EVENT_RELEASE},     {"scale", 4, ask, EVENT_SCALE},
};

static bool line_do(struct story *story)
{
    if (strcmp(words[0], "submit") == 0 && word_count > 2)
        return submit(story);
    if (strcmp(words[0], "run") == 0 && word_count > 1) {
        task(story, EVENT_TASK_PREPARING);
        task(story, EVENT_TASK_STARTED);
        return true;
    }
    if (strcmp(words[0], "wait") == 0 && word_count > 1) {
        story->now_ms += atoll(words[1]) * 1000;
        struct event event = {.kind = EVENT_TIMER};
        step(story, &event);
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(verbs); i++)
        if (strcmp(words[0], verbs[i].word) == 0 && word_count >= verbs[i].words) {
            verbs[i].do_kind(story, verbs[i].kind);
            return true;
        }
    return false;
}

static bool line_read(struct story *story, char *line)
{
    char *comment = strchr(line, '#');
    if (comment)
        *comment = '\0';
    buf_format(&story->trace, "%.*s\n", TEXT_ARG(text_trim(text_of(line))));
    word_count = 0;
    for (char *word = strtok(line, " \n"); word && word_count < WORDS_MAX;
         word = strtok(NULL, " \n"))
        words[word_count++] = word;
    if (!word_count)
        return true;
    bool is_policy = strcmp(words[0], "policy") == 0;
    if (!story->core) {
        struct core_config config;
        core_config_default(&config);
        config.policy = is_policy ? words[1] : "first-fit";
        story->core = core_new(&config, NULL);
    }
    story->now_ms += 1000;
    return is_policy || (story->core && line_do(story));
}

/* 0, or the number of the line that cannot be read. */
static int story_run(FILE *file, struct buf *trace)
{
    struct story story = {.now_ms = ORIGIN_MS};
    char line[512];
    int at = 0, wrong = 0;
    output_init(&story.output);
    arena_init(&story.arena);
    while (!wrong && fgets(line, sizeof line, file)) {
        at++;
        if (!line_read(&story, line))
            wrong = at;
    }
    core_free(story.core);
    output_release(&story.output);
    arena_release(&story.arena);
    *trace = story.trace;
    return wrong;
}

static void difference_print(const char *path, const char *want, const char *got)
{
    int line = 1;
    while (*want && *want == *got) {
        line += *want == '\n';
        want++;
        got++;
    }
    while (line > 1 && want[-1] != '\n') {
        want--;
        got--;
    }
    printf("%s:%d:\n- %.*s\n+ %.*s\n", path, line, (int)strcspn(want, "\n"), want,
           (int)strcspn(got, "\n"), got);
}

static int trace_compare(const char *path, const struct buf *trace, bool is_update)
{
    FILE *file = fopen(path, is_update ? "w" : "r");
    if (!file) {
        perror(path);
        return 2;
    }
    int code = 0;
    if (is_update) {
        code = fwrite(buf_cstr(trace), 1, trace->length, file) == trace->length ? 0 : 2;
    } else {
        struct buf want = BUF_INIT;
        char part[4096];
        size_t length;
        while ((length = fread(part, 1, sizeof part, file)) > 0)
            buf_add(&want, part, length);
        if (!text_equal(buf_as_text(&want), buf_as_text(trace))) {
            difference_print(path, buf_cstr(&want), buf_cstr(trace));
            code = 1;
        }
        buf_release(&want);
    }
    return fclose(file) ? 2 : code;
}

static int story_check(const char *path, bool is_update)
{
    FILE *file = fopen(path, "r");
    struct buf trace = BUF_INIT, trace_path = BUF_INIT;
    if (!file) {
        perror(path);
        return 2;
    }
    int wrong = story_run(file, &trace);
    fclose(file);
    int code = 2;
    if (wrong) {
        fprintf(stderr, "%s:%d: cannot be read\n", path, wrong);
    } else {
        buf_format(&trace_path, "%.*s.trace", (int)(strlen(path) - strlen(".story")), path);
        code = trace_compare(buf_cstr(&trace_path), &trace, is_update);
    }
    buf_release(&trace);
    buf_release(&trace_path);
    return code;
}

int main(int count, char **arguments)
{
    bool is_update = count > 1 && strcmp(arguments[1], "--update") == 0;
    int code = 0, first = is_update ? 2 : 1;
    if (first >= count) {
        fprintf(stderr, "usage: test-core-golden [--update] FILE.story ...\n");
        return 2;
    }
    for (int i = first; i < count; i++) {
        int one = story_check(arguments[i], is_update);
        code = one > code ? one : code;
    }
    return code;
}
