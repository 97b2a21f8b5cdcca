#include "originals/early.h"
#include "base/memory.h"
#include <assert.h>
#include <string.h>
#include <strings.h>

static bool is_one_of(const char *word, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return false;
}

static enum public_state final_state(const int32_t *code, int32_t stopped)
{
    if (!code)
        return PUBLIC_FAILED;
    if (*code == 0)
        return PUBLIC_SUCCEEDED;
    return *code == stopped ? PUBLIC_STOPPED : PUBLIC_FAILED;
}

enum public_state early_job_state(enum early_era era, const char *framework_state,
                                  const int32_t *code)
{
    static const char *const waiting[] = {"FRAMEWORK_WAITING", "APPLICATION_CREATED",
                                          "APPLICATION_LAUNCHED", "APPLICATION_WAITING", NULL};
    /* an attempt that has ended, and of which a retry may follow */
    static const char *const between[] = {"APPLICATION_RETRIEVING_DIAGNOSTICS",
                                          "APPLICATION_COMPLETED", NULL};
    if (is_one_of(framework_state, waiting))
        return PUBLIC_WAITING;
    if (is_one_of(framework_state, between))
        return era == EARLY_A ? PUBLIC_RUNNING : PUBLIC_WAITING;
    if (strcmp(framework_state, "APPLICATION_RUNNING") == 0)
        return PUBLIC_RUNNING;
    if (strcmp(framework_state, "FRAMEWORK_COMPLETED") == 0)
        return final_state(code, era == EARLY_C ? -7351 : 214);
    return PUBLIC_UNKNOWN;
}

enum public_state early_task_state(const char *task_state, const int32_t *code)
{
    /* CONTAINER_LAUNCHED was forgotten by the original, which said UNKNOWN */
    static const char *const waiting[] = {"TASK_WAITING",        "CONTAINER_REQUESTED",
                                          "CONTAINER_ALLOCATED", "CONTAINER_LAUNCHED",
                                          "CONTAINER_COMPLETED", NULL};
    if (is_one_of(task_state, waiting))
        return PUBLIC_WAITING;
    if (strcmp(task_state, "CONTAINER_RUNNING") == 0)
        return PUBLIC_RUNNING;
    if (strcmp(task_state, "TASK_COMPLETED") == 0)
        return final_state(code, -7400);
    return PUBLIC_UNKNOWN;
}

int32_t early_exit_code(enum early_era era, const struct completion *completion)
{
    if (completion->code > 0 && era != EARLY_C)
        return 177; /* the host's script turned every failure into one the launcher did not know */
    static const struct {
        int32_t code, early, late;
    } rows[] = {
        {CODE_SUCCEEDED, 0, 0},
        {CODE_STOP_REQUESTED, 214, -7351},
        {CODE_ATTEMPT_COMPLETION, 195, -7400},
        {CODE_CONTAINER_DELETED, 189, -7110},
        {CODE_NODE_LOST, 189, -7111},
        {CODE_PREEMPTED, 192, -7120},
        {-1200, 200, 196},
        {CODE_CREATION_PERMANENT, 181, -7300},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].code == completion->code)
            return era == EARLY_C ? rows[i].late : rows[i].early;
    return era == EARLY_C && completion->code < 0 ? -8000 : completion->code;
}

/* ---- exits ---- */

static const char *const type_names[] = {
    [EARLY_SUCCEEDED] = "SUCCEEDED",
    [EARLY_TRANSIENT_NORMAL] = "TRANSIENT_NORMAL",
    [EARLY_TRANSIENT_CONFLICT] = "TRANSIENT_CONFLICT",
    [EARLY_NON_TRANSIENT] = "NON_TRANSIENT",
    [EARLY_UNKNOWN] = "UNKNOWN",
};

const char *early_exit_type_name(enum early_exit_type type)
{
    assert((unsigned)type <= EARLY_UNKNOWN);
    return type_names[type];
}

int early_exit_type_of(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(type_names); i++)
        if (strcmp(type_names[i], name) == 0)
            return (int)i;
    return -1;
}

uint8_t early_exit_attributes(enum early_exit_type type)
{
    switch (type) {
    case EARLY_TRANSIENT_NORMAL:
        return EXIT_TRANSIENT;
    case EARLY_TRANSIENT_CONFLICT:
        return EXIT_TRANSIENT | EXIT_CONFLICT;
    case EARLY_NON_TRANSIENT:
        return EXIT_PERMANENT;
    case EARLY_SUCCEEDED:
    case EARLY_UNKNOWN:
        return 0;
    }
    return 0;
}

#define ROW(number, kind)                                                                          \
    {                                                                                              \
        .code = (number), .has_code = true, .has_type = true, .type = (kind)                       \
    }
const struct early_row early_default_rows[] = {
    ROW(130, EARLY_TRANSIENT_NORMAL), ROW(132, EARLY_NON_TRANSIENT),
    ROW(134, EARLY_UNKNOWN),          ROW(135, EARLY_NON_TRANSIENT),
    ROW(136, EARLY_NON_TRANSIENT),    ROW(137, EARLY_TRANSIENT_NORMAL),
    ROW(139, EARLY_NON_TRANSIENT),    ROW(141, EARLY_NON_TRANSIENT),
    ROW(143, EARLY_TRANSIENT_NORMAL), ROW(154, EARLY_TRANSIENT_NORMAL),
    ROW(193, EARLY_TRANSIENT_NORMAL), ROW(194, EARLY_NON_TRANSIENT),
};
const size_t early_default_count = COUNT_OF(early_default_rows);

size_t early_rows_normalise(const struct early_row *rows, size_t count, struct early_row *out)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        struct early_row row = rows[i];
        if (!row.has_code || row.code < 1 || row.code > 255 ||
            (row.has_type && row.type == EARLY_SUCCEEDED))
            continue;
        if (!row.has_type)
            row.type = EARLY_UNKNOWN;
        row.has_type = true;
        size_t at = 0;
        while (at < used && out[at].code < row.code)
            at++;
        if (at == used || out[at].code != row.code) {
            memmove(&out[at + 1], &out[at], (used - at) * sizeof *out);
            used++;
        }
        out[at] = row;
    }
    return used;
}

/* Rising by launcher code, so that the first that matches is the smallest. `raw` is the cluster
 * manager's status; the launcher's own codes stand for themselves. */
static const struct {
    int32_t code, raw;
    const char *diagnostics;
    enum early_exit_type type;
} platform_rows[] = {
    {-7400, -7400, NULL, EARLY_NON_TRANSIENT},
    {-7353, -7353, NULL, EARLY_TRANSIENT_NORMAL},
    {-7352, -7352, NULL, EARLY_TRANSIENT_NORMAL},
    {-7351, -7351, NULL, EARLY_NON_TRANSIENT},
    {-7350, -7350, NULL, EARLY_TRANSIENT_NORMAL},
    {-7303, -7303, NULL, EARLY_TRANSIENT_NORMAL},
    {-7302, -7302, NULL, EARLY_UNKNOWN},
    {-7301, -7301, NULL, EARLY_TRANSIENT_NORMAL},
    {-7300, -7300, NULL, EARLY_NON_TRANSIENT},
    {-7252, -7252, NULL, EARLY_TRANSIENT_CONFLICT},
    {-7251, -7251, NULL, EARLY_NON_TRANSIENT},
    {-7250, -7250, NULL, EARLY_TRANSIENT_NORMAL},
    {-7203, -7203, NULL, EARLY_TRANSIENT_NORMAL},
    {-7202, -7202, NULL, EARLY_TRANSIENT_NORMAL},
    {-7201, -7201, NULL, EARLY_TRANSIENT_NORMAL},
    {-7200, -7200, NULL, EARLY_NON_TRANSIENT},
    {-7154, -7154, NULL, EARLY_TRANSIENT_NORMAL},
    {-7153, -7153, NULL, EARLY_TRANSIENT_NORMAL},
    {-7152, -7152, NULL, EARLY_NON_TRANSIENT},
    {-7151, -7151, NULL, EARLY_TRANSIENT_NORMAL},
    {-7150, -7150, NULL, EARLY_TRANSIENT_NORMAL},
    {-7126, -200, NULL, EARLY_TRANSIENT_NORMAL},
    {-7125, -107, NULL, EARLY_TRANSIENT_NORMAL},
    {-7124, -106, NULL, EARLY_TRANSIENT_NORMAL},
    {-7123, -105, NULL, EARLY_TRANSIENT_NORMAL},
    {-7122, -104, NULL, EARLY_NON_TRANSIENT},
    {-7121, -103, NULL, EARLY_NON_TRANSIENT},
    {-7120, -102, NULL, EARLY_TRANSIENT_NORMAL},
    {-7113, -100, "container of a completed application", EARLY_TRANSIENT_CONFLICT},
    {-7112, -100, "container expired since it was unused", EARLY_TRANSIENT_CONFLICT},
    {-7111, -100, "container released on a *lost* node", EARLY_TRANSIENT_NORMAL},
    {-7110, -100, NULL, EARLY_TRANSIENT_NORMAL},
    {-7103, -210, NULL, EARLY_TRANSIENT_NORMAL},
    {-7102, -101, NULL, EARLY_TRANSIENT_NORMAL},
    {-7101, -2517, NULL, EARLY_TRANSIENT_NORMAL},
    {-7100, -1000, NULL, EARLY_TRANSIENT_NORMAL},
    {0, 0, NULL, EARLY_SUCCEEDED},
};

static bool contains(const char *text, const char *part)
{
    const size_t length = strlen(part);
    for (; *text; text++)
        if (strncasecmp(text, part, length) == 0)
            return true;
    return false;
}

struct early_exit early_exit_judge(int32_t raw_code, const char *diagnostics,
                                   const struct early_row *rows, size_t count)
{
    for (size_t i = 0; i < COUNT_OF(platform_rows); i++)
        if (platform_rows[i].raw == raw_code &&
            (!platform_rows[i].diagnostics ||
             (diagnostics && contains(diagnostics, platform_rows[i].diagnostics))))
            return (struct early_exit){platform_rows[i].code, platform_rows[i].type};
    for (size_t i = 0; i < count; i++)
        if (rows[i].code == raw_code)
            return (struct early_exit){raw_code, rows[i].type};
    return (struct early_exit){raw_code, EARLY_UNKNOWN};
}
