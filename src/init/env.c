#include "init/env.h"

#include <assert.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "init/job_file.h"

void env_init(struct env *env, struct arena *arena)
{
    *env = (struct env){.arena = arena};
}

void env_release(struct env *env)
{
    ARRAY_FREE(env);
    text_map_release(&env->by_name);
}

struct env_entry *env_put(struct env *env, const char *name, const char *value)
{
    assert(name[0] && !strchr(name, '='));
    uint32_t at = text_map_get(&env->by_name, text_of(name));
    if (at == MAP_NONE) {
        ARRAY_ADD(env)->name = name;
        at = (uint32_t)env->count - 1;
        text_map_set(&env->by_name, text_of(name), at);
    }
    struct env_entry *entry = &env->items[at];
    *entry = (struct env_entry){.name = entry->name, .value = value};
    return entry;
}

void env_set(struct env *env, const char *name, const char *value)
{
    env_put(env, arena_copy(env->arena, text_of(name)), arena_copy(env->arena, text_of(value)));
}

const char *env_get(const struct env *env, const char *name)
{
    uint32_t at = text_map_get(&env->by_name, text_of(name));
    return at == MAP_NONE ? NULL : env->items[at].value;
}

static size_t entry_bytes(const char *name, const char *value)
{
    return strlen(name) + strlen(value) + 2 + sizeof(char *);
}

/* Does the image's value of this variable stay? */
static bool image_wins(const struct env *env, struct text name)
{
    uint32_t at = text_map_get(&env->by_name, name);
    return at == MAP_NONE || env->items[at].is_default;
}

static bool image_has(char *const *image, const char *name)
{
    size_t length = strlen(name);
    for (; *image; image++)
        if (strncmp(*image, name, length) == 0 && (*image)[length] == '=')
            return true;
    return false;
}

size_t env_merge(const struct env *env, char *const *image, char ***merged)
{
    size_t image_count = 0, out = 0, bytes = 0, left_out = 0, needed = 0;
    while (image[image_count])
        image_count++;
    char **all = ARENA_ARRAY(env->arena, char *, image_count + env->count + 1);
    for (size_t i = 0; i < image_count; i++) {
        const char *equals = strchr(image[i], '=');
        struct text name = {image[i], equals ? (size_t)(equals - image[i]) : strlen(image[i])};
        if (!image_wins(env, name))
            continue;
        all[out++] = image[i];
        bytes += strlen(image[i]) + 1 + sizeof(char *);
    }
    for (size_t i = 0; i < env->count; i++)
        needed += entry_bytes(env->items[i].name, env->items[i].value);
    bool is_crowded = bytes + needed > ENV_BYTES_MAX;
    for (size_t i = 0; i < env->count; i++) {
        const struct env_entry *entry = &env->items[i];
        if (entry->is_default && image_has(image, entry->name))
            continue;
        if ((is_crowded && entry->is_peer) || strlen(entry->value) > ENV_VALUE_MAX) {
            left_out++;
            continue;
        }
        all[out++] = arena_format(env->arena, "%s=%s", entry->name, entry->value);
    }
    *merged = all;
    return left_out;
}

static bool is_shell_name(const char *name)
{
    for (const char *c = name; *c; c++) {
        bool is_letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
        if (!is_letter && !(c > name && *c >= '0' && *c <= '9'))
            return false;
    }
    return true;
}

void env_write_script(const struct env *env, struct buf *out)
{
    for (size_t i = 0; i < env->count; i++) {
        if (!is_shell_name(env->items[i].name))
            continue;
        buf_format(out, "export %s=", env->items[i].name);
        buf_shell_word(out, text_of(env->items[i].value));
        buf_char(out, '\n');
    }
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static bool is_alphanumeric(char c)
{
    c = lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static const char *name_stripped(const char *name, struct arena *arena)
{
    char *out = arena_alloc(arena, strlen(name) + 1);
    size_t length = 0;
    for (; *name; name++)
        if (is_alphanumeric(*name))
            out[length++] = lower(*name);
    return out;
}

static const char *name_underscored(const char *name, struct arena *arena)
{
    char *out = arena_copy(arena, text_of(name));
    for (char *c = out; *c; c++)
        if (!is_alphanumeric(*c))
            *c = '_';
    return out;
}

size_t env_role_spellings(const struct job_file *job, size_t role, struct arena *arena,
                          const char *spellings[ENV_SPELLINGS])
{
    const char *name = job->roles[role].name;
    const char *all[ENV_SPELLINGS] = {
        name,
        job->format == JOB_FILE_V2 ? name_stripped(name, arena) : name,
        name_underscored(name, arena),
    };
    size_t count = 0;
    for (size_t i = 0; i < ENV_SPELLINGS; i++) {
        bool is_new = all[i][0] != '\0';
        for (size_t k = 0; k < count; k++)
            is_new = is_new && strcmp(all[i], spellings[k]) != 0;
        if (is_new)
            spellings[count++] = all[i];
    }
    assert(count > 0);
    return count;
}

unsigned env_port(const struct job_file *job, size_t role, size_t index, const char *label)
{
    const struct job_file_role *of = &job->roles[role];
    for (size_t i = 0; i < of->port_count; i++)
        if (of->ports[i].count > 0 && strcmp(of->ports[i].label, label) == 0)
            return job->tasks[job_file_first_task(job, role) + index].ports[i];
    return 0;
}

const char *env_host_list(const struct job_file *job, size_t role, const char *label,
                          struct arena *arena)
{
    cleanup_buf struct buf list = BUF_INIT;
    size_t first = job_file_first_task(job, role);
    for (uint32_t i = 0; i < job->roles[role].instances; i++) {
        const struct job_file_task *task = &job->tasks[first + i];
        if (task->address[0])
            buf_format(&list, "%s%s:%u", list.length ? "," : "", task->address,
                       env_port(job, role, i, label));
    }
    return arena_copy(arena, buf_as_text(&list));
}

bool env_job_has_task(const struct job_file *job, size_t role, size_t index)
{
    return role < job->role_count && index < job->roles[role].instances;
}
