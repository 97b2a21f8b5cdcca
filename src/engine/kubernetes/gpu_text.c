#include "engine/kubernetes/gpu_text.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"

enum { DIGITS_MAX = 17, EXPONENT_MAX = 99 };

/* What is told of each field, its unit in ours, and the most that it can be. */
static const struct {
    const char *name;
    uint32_t scale;
    uint64_t most;
} fields[GPU_FIELDS] = {
    [GPU_FIELD_BUSY] = {"DCGM_FI_DEV_GPU_UTIL", 1, 100},
    [GPU_FIELD_USED] = {"DCGM_FI_DEV_FB_USED", 1, 1 << 24},
    [GPU_FIELD_FREE] = {"DCGM_FI_DEV_FB_FREE", 1, 1 << 24},
    [GPU_FIELD_RESERVED] = {"DCGM_FI_DEV_FB_RESERVED", 1, 1 << 24},
    [GPU_FIELD_POWER] = {"DCGM_FI_DEV_POWER_USAGE", 1000, 100 * 1000 * 1000},
    [GPU_FIELD_XID] = {"DCGM_FI_DEV_XID_ERRORS", 1, 65535},
    [GPU_FIELD_ECC] = {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 1, UINT64_C(1) << 53},
    [GPU_FIELD_RETIRED] = {"DCGM_FI_DEV_RETIRED_DBE", 1, UINT64_C(1) << 53},
    [GPU_FIELD_REMAPPED] = {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 1, UINT64_C(1) << 53},
};

struct labels {
    struct text gpu, uuid, space, pod, instance; /* at == NULL: there is none */
};

/* --- tokens --- */

static void blanks_skip(struct text *rest)
{
    while (rest->length > 0 && (rest->at[0] == ' ' || rest->at[0] == '\t')) {
        rest->at++;
        rest->length--;
    }
}

static bool char_take(struct text *rest, char c)
{
    if (rest->length == 0 || rest->at[0] != c)
        return false;
    rest->at++;
    rest->length--;
    return true;
}

static bool is_name_char(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
           (!is_first && c >= '0' && c <= '9');
}

/* Empty: none stands there. */
static struct text name_take(struct text *rest)
{
    size_t length = 0;
    while (length < rest->length && is_name_char(rest->at[length], length == 0))
        length++;
    const struct text name = {rest->at, length};
    rest->at += length;
    rest->length -= length;
    return name;
}

/* Without its quotes, as it stands there. */
static bool quoted_take(struct text *rest, struct text *value)
{
    if (!char_take(rest, '"'))
        return false;
    size_t length = 0;
    while (length < rest->length && rest->at[length] != '"')
        length += rest->at[length] == '\\' ? 2 : 1;
    if (length >= rest->length)
        return false;
    *value = (struct text){rest->at, length};
    rest->at += length + 1;
    rest->length -= length + 1;
    return true;
}

/* With what its escapes stand for; NULL: one of them is none. */
static const char *unescaped(struct text value, struct arena *arena)
{
    char *out = arena_alloc(arena, value.length + 1);
    size_t length = 0;
    for (size_t i = 0; i < value.length; i++) {
        char c = value.at[i];
        if (c == '\\') {
            c = value.at[++i];
            if (c != '\\' && c != '"' && c != 'n')
                return NULL;
            if (c == 'n')
                c = '\n';
        }
        out[length++] = c;
    }
    return out;
}

static bool is_digit(const struct text *text)
{
    return text->length > 0 && text->at[0] >= '0' && text->at[0] <= '9';
}

/* True: at least one stands there. Those behind the first DIGITS_MAX count as 0. */
static bool digits_take(struct text *rest, uint64_t *value, unsigned *taken, unsigned *passed)
{
    const size_t before = rest->length;
    for (; is_digit(rest); rest->at++, rest->length--) {
        if (*taken >= DIGITS_MAX) {
            ++*passed;
            continue;
        }
        *value = *value * 10 + (uint64_t)(rest->at[0] - '0');
        *taken += *value > 0;
    }
    return rest->length < before;
}

static bool exponent_take(struct text *rest, int *exponent)
{
    uint64_t value = 0;
    unsigned taken = 0, passed = 0;
    if (!char_take(rest, 'e') && !char_take(rest, 'E'))
        return true;
    const bool is_negative = char_take(rest, '-');
    if (!is_negative)
        char_take(rest, '+');
    if (!digits_take(rest, &value, &taken, &passed))
        return false;
    const int size = value > EXPONENT_MAX || passed > 0 ? EXPONENT_MAX : (int)value;
    *exponent += is_negative ? -size : size;
    return true;
}

/* A number as Go writes it. False: it is none. *is_known: it is one that can be counted with. */
static bool number_read(struct text word, double *value, bool *is_known)
{
    uint64_t mantissa = 0;
    unsigned taken = 0, whole_passed = 0, part_passed = 0;
    int exponent = 0;
    *is_known = false;
    const bool is_negative = char_take(&word, '-');
    if (!is_negative)
        char_take(&word, '+');
    if (text_is(word, "NaN") || text_is(word, "Inf"))
        return true;
    bool has_digits = digits_take(&word, &mantissa, &taken, &whole_passed);
    if (char_take(&word, '.')) {
        const size_t before = word.length;
        has_digits |= digits_take(&word, &mantissa, &taken, &part_passed);
        exponent -= (int)(before - word.length) - (int)part_passed;
    }
    exponent += (int)whole_passed;
    if (!has_digits || !exponent_take(&word, &exponent) || word.length > 0)
        return false;
    double result = (double)mantissa;
    for (int i = 0; i < exponent && i < 2 * EXPONENT_MAX; i++)
        result *= 10;
    for (int i = 0; i > exponent && i > -2 * EXPONENT_MAX; i--)
        result /= 10;
    *value = result;
    *is_known = !is_negative || mantissa == 0;
    return true;
}

/* --- a line --- */

static struct text *label_wanted(struct labels *labels, struct text name)
{
    const struct {
        const char *name;
        struct text *label;
    } wanted[] = {
        {"gpu", &labels->gpu},
        {"UUID", &labels->uuid},
        {"namespace", &labels->space},
        {"pod", &labels->pod},
        /* of an exporter that keeps the names of Kubernetes before 1.16 */
        {"pod_namespace", &labels->space},
        {"pod_name", &labels->pod},
        {"GPU_I_ID", &labels->instance},
    };
    for (size_t i = 0; i < COUNT_OF(wanted); i++)
        if (text_is(name, wanted[i].name))
            return wanted[i].label;
    return NULL;
}

/* From behind the brace to behind the other. NULL, or what is wrong with them. */
static const char *labels_take(struct text *rest, struct labels *labels)
{
    for (size_t count = 0;; count++) {
        struct text value;
        blanks_skip(rest);
        if (char_take(rest, '}'))
            return NULL;
        const struct text name = name_take(rest);
        blanks_skip(rest);
        if (name.length == 0 || !char_take(rest, '='))
            return "a label and = are expected";
        blanks_skip(rest);
        if (!quoted_take(rest, &value))
            return "the value of a label is not in quotes";
        if (count >= GPU_TEXT_LABELS_MAX || value.length > GPU_TEXT_WORD_MAX)
            return "its labels are too many, or too long";
        struct text *wanted = label_wanted(labels, name);
        if (wanted)
            *wanted = value;
        blanks_skip(rest);
        if (!char_take(rest, ',') && !(rest->length > 0 && rest->at[0] == '}'))
            return "a comma or } is expected behind a label";
    }
}

/* The value, and perhaps when it was taken, which is the exporter's business. */
static const char *value_take(struct text rest, double *value, bool *is_known)
{
    int64_t moment;
    rest = text_trim(rest);
    const struct text word = text_cut(&rest, ' ');
    if (!number_read(word, value, is_known))
        return "the value is no number";
    rest = text_trim(rest);
    if (rest.length > 0 && !text_to_int64(rest, &moment))
        return "behind the value is more than a time";
    return NULL;
}

struct readings {
    struct arena *arena;
    struct gpu_reading *items;
    size_t count;
};

/* That of this GPU, which is made when it comes for the first time; NULL: there are too many. */
static struct gpu_reading *reading_of(struct readings *readings, uint16_t index, const char *uuid)
{
    for (size_t i = 0; i < readings->count; i++)
        if (readings->items[i].index == index && strcmp(readings->items[i].uuid, uuid) == 0)
            return &readings->items[i];
    if (readings->count == GPU_TEXT_GPUS_MAX)
        return NULL;
    struct gpu_reading *reading = &readings->items[readings->count++];
    *reading = (struct gpu_reading){.index = index, .uuid = uuid, .space = "", .pod = ""};
    return reading;
}

static const char *labels_read(struct readings *readings, const struct labels *labels,
                               struct gpu_reading **reading)
{
    struct arena *arena = readings->arena;
    int64_t index;
    if (!text_to_int64(labels->gpu, &index) || index < 0 || index > GPU_TEXT_INDEX_MAX)
        return "the label gpu is no number of a GPU";
    const char *uuid = unescaped(labels->uuid, arena);
    const char *space = unescaped(labels->space, arena), *pod = unescaped(labels->pod, arena);
    if (!uuid || !space || !pod)
        return "an escape of a label is none";
    *reading = reading_of(readings, (uint16_t)index, uuid);
    if (!*reading)
        return "it is of more GPUs than a node can have";
    if (pod[0]) {
        (*reading)->space = space;
        (*reading)->pod = pod;
    }
    return NULL;
}

static const char *field_read(struct text rest, enum gpu_field field, struct readings *readings)
{
    struct labels labels = {0};
    struct gpu_reading *reading;
    double value = 0;
    bool is_known;
    if (!char_take(&rest, '{'))
        return "it has no labels";
    const char *trouble = labels_take(&rest, &labels);
    if (!trouble)
        trouble = value_take(rest, &value, &is_known);
    if (trouble || labels.instance.length > 0)
        return trouble;
    trouble = labels_read(readings, &labels, &reading);
    if (trouble)
        return trouble;
    value *= fields[field].scale;
    if (is_known && value <= (double)fields[field].most) {
        reading->known |= 1u << field;
        reading->values[field] = (uint64_t)(value + 0.5);
    }
    return NULL;
}

static const char *line_read(struct text line, struct readings *readings)
{
    blanks_skip(&line);
    if (line.length == 0 || line.at[0] == '#')
        return NULL;
    const struct text name = name_take(&line);
    if (name.length == 0)
        return "it does not begin with the name of a figure";
    blanks_skip(&line);
    for (size_t i = 0; i < GPU_FIELDS; i++)
        if (text_is(name, fields[i].name))
            return field_read(line, (enum gpu_field)i, readings);
    return NULL;
}

int gpu_text_read(struct text text, struct arena *arena, const struct gpu_reading **readings,
                  size_t *count, struct err *err)
{
    struct readings all = {arena, ARENA_ARRAY(arena, struct gpu_reading, GPU_TEXT_GPUS_MAX), 0};
    for (unsigned number = 1; text.length > 0; number++) {
        const char *trouble = line_read(text_cut(&text, '\n'), &all);
        if (trouble)
            return err_fail(err, ERR_INVALID, "", "line %u: %s", number, trouble);
    }
    assert(all.count <= GPU_TEXT_GPUS_MAX);
    *readings = all.items;
    *count = all.count;
    return 0;
}
