/* The binary form: one walk over the structure serves both directions, so that they cannot differ.
 * Little-endian integers; texts with a 32-bit length that counts their NUL, so that a decoded spec
 * can point into one copy of the bytes. */
#include <assert.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "spec/spec.h"

enum {
    CODEC_VERSION = 4,
    CODEC_VERSION_BARRIER = 2,
    CODEC_VERSION_WITHIN = 3,
    CODEC_VERSION_SSH = 4,
    CODEC_COUNT_MAX = 1 << 20
};

struct codec {
    struct buf *out; /* NULL: reading */
    struct cursor in;
    struct arena *arena;
    uint8_t version; /* of what is read: older ones lack what came later */
};

static void code_u32(struct codec *codec, uint32_t *value)
{
    if (codec->out)
        buf_put_u32(codec->out, *value);
    else
        *value = cursor_u32(&codec->in);
}

static void code_u64(struct codec *codec, uint64_t *value)
{
    if (codec->out)
        buf_put_u64(codec->out, *value);
    else
        *value = cursor_u64(&codec->in);
}

static void code_i32(struct codec *codec, int32_t *value)
{
    uint32_t bits = (uint32_t)*value;
    code_u32(codec, &bits);
    *value = (int32_t)bits;
}

static void code_bool(struct codec *codec, bool *value)
{
    if (codec->out) {
        buf_put_u8(codec->out, *value);
        return;
    }
    uint8_t byte = cursor_u8(&codec->in);
    if (byte > 1)
        codec->in.is_bad = true;
    *value = byte == 1;
}

static void code_string(struct codec *codec, const char **string)
{
    if (codec->out) {
        buf_put_text(codec->out, (struct text){*string, strlen(*string) + 1});
        return;
    }
    struct text text = cursor_text(&codec->in);
    bool is_right = text.length > 0 && !codec->in.is_bad && text.at[text.length - 1] == '\0' &&
                    strlen(text.at) == text.length - 1;
    if (!is_right)
        codec->in.is_bad = true;
    *string = is_right ? text.at : "";
}

/* How many items follow; each takes at least `least` bytes, so that a wrong count cannot ask for
 * more memory than the input justifies. */
static void *code_array(struct codec *codec, void *items, size_t *count, size_t item_size,
                        size_t least)
{
    uint32_t number = (uint32_t)*count;
    code_u32(codec, &number);
    if (codec->out)
        return items;
    size_t left = (size_t)(codec->in.end - codec->in.at);
    if (codec->in.is_bad || number > CODEC_COUNT_MAX || number > left / least) {
        codec->in.is_bad = true;
        number = 0;
    }
    *count = number;
    return number ? arena_array(codec->arena, number, item_size) : NULL;
}
#define CODE_ARRAY(codec, items, count, least)                                                     \
    ((items) = code_array((codec), (items), &(count), sizeof *(items), (least)))

static void code_strings(struct codec *codec, const char *const **strings, size_t *count)
{
    const char **items = (const char **)(uintptr_t)*strings;
    CODE_ARRAY(codec, items, *count, 5);
    for (size_t i = 0; i < *count; i++)
        code_string(codec, &items[i]);
    *strings = items;
}

static void code_image(struct codec *codec, struct spec_image *image)
{
    bool has_auth = image->auth != NULL;
    code_string(codec, &image->name);
    code_string(codec, &image->uri);
    code_bool(codec, &has_auth);
    if (!has_auth)
        return;
    struct spec_auth auth = image->auth ? *image->auth : (struct spec_auth){0};
    code_string(codec, &auth.username);
    code_string(codec, &auth.password);
    code_string(codec, &auth.registry_uri);
    if (!codec->out) {
        struct spec_auth *copy = ARENA_NEW(codec->arena, struct spec_auth);
        *copy = auth;
        image->auth = copy;
    }
}

static void code_plugin(struct codec *codec, struct spec_plugin *plugin)
{
    bool has_roles = plugin->roles != NULL;
    code_string(codec, &plugin->name);
    code_string(codec, &plugin->parameters_json);
    code_bool(codec, &plugin->is_failure_ignored);
    code_bool(codec, &has_roles);
    if (!has_roles)
        return;
    code_strings(codec, &plugin->roles, &plugin->role_count);
    if (!plugin->roles) /* an empty list is not "all roles" */
        plugin->roles = ARENA_NEW(codec->arena, const char *);
}

static void code_ports(struct codec *codec, struct spec_role *role)
{
    CODE_ARRAY(codec, role->ports, role->port_count, 13);
    for (size_t i = 0; i < role->port_count; i++) {
        code_string(codec, &role->ports[i].label);
        code_u32(codec, &role->ports[i].count);
        code_u32(codec, &role->ports[i].begin_at);
    }
}

static void code_role(struct codec *codec, struct spec_role *role)
{
    code_string(codec, &role->name);
    code_u32(codec, &role->instances);
    code_u32(codec, &role->cpu);
    code_u64(codec, &role->memory_mib);
    code_u32(codec, &role->gpu);
    code_u32(codec, &role->shm_mib);
    code_bool(codec, &role->wants_infiniband);
    code_u32(codec, &role->image);
    code_string(codec, &role->command);
    code_strings(codec, &role->prerequisites, &role->prerequisite_count);
    code_ports(codec, role);
    code_i32(codec, &role->completion.min_failed);
    code_i32(codec, &role->completion.min_succeeded);
    code_i32(codec, &role->task_retry_count);
    code_string(codec, &role->placement.sku_type);
    code_string(codec, &role->placement.pinned_cell_id);
    code_string(codec, &role->placement.affinity_group);
    code_string(codec, &role->placement.within_one_cell);
    code_bool(codec, &role->is_ssh_enabled);
    code_bool(codec, &role->has_ssh_barrier);
    code_u32(codec, &role->ssh_barrier_timeout_s);
    if (codec->version >= CODEC_VERSION_SSH)
        code_bool(codec, &role->is_ssh_optional);
}

static void code_lists(struct codec *codec, struct spec *spec)
{
    CODE_ARRAY(codec, spec->images, spec->image_count, 11);
    for (size_t i = 0; i < spec->image_count; i++)
        code_image(codec, &spec->images[i]);
    CODE_ARRAY(codec, spec->roles, spec->role_count, 80);
    for (size_t i = 0; i < spec->role_count; i++)
        code_role(codec, &spec->roles[i]);
    CODE_ARRAY(codec, spec->plugins, spec->plugin_count, 12);
    for (size_t i = 0; i < spec->plugin_count; i++)
        code_plugin(codec, &spec->plugins[i]);
    CODE_ARRAY(codec, spec->storages, spec->storage_count, 10);
    for (size_t i = 0; i < spec->storage_count; i++) {
        code_string(codec, &spec->storages[i].name);
        code_string(codec, &spec->storages[i].mount_path);
    }
    CODE_ARRAY(codec, spec->envs, spec->env_count, 10);
    for (size_t i = 0; i < spec->env_count; i++) {
        code_string(codec, &spec->envs[i].name);
        code_string(codec, &spec->envs[i].value);
    }
}

static void code_spec(struct codec *codec, struct spec *spec)
{
    uint32_t format = (uint32_t)spec->format;
    code_u32(codec, &format);
    if (format > SPEC_MARKET)
        codec->in.is_bad = true;
    spec->format = (enum spec_format)format;
    code_string(codec, &spec->name);
    code_string(codec, &spec->virtual_cluster);
    code_i32(codec, &spec->priority);
    code_bool(codec, &spec->has_priority);
    code_i32(codec, &spec->retry_count);
    code_bool(codec, &spec->is_gang);
    code_bool(codec, &spec->is_lazy_preemptible);
    code_bool(codec, &spec->ignores_suggested_nodes);
    code_bool(codec, &spec->is_debug);
    code_u32(codec, &spec->kill_all_on_completed);
    code_u64(codec, &spec->time_limit_s);
    code_u64(codec, &spec->hang_after_s);
    code_bool(codec, &spec->hang_retry);
    code_bool(codec, &spec->wants_default_storages);
    code_string(codec, &spec->code_dir);
    code_string(codec, &spec->data_dir);
    code_string(codec, &spec->output_dir);
    code_string(codec, &spec->auth_file);
    code_bool(codec, &spec->notify.running);
    code_bool(codec, &spec->notify.succeeded);
    code_bool(codec, &spec->notify.stopped);
    code_bool(codec, &spec->notify.failed);
    code_bool(codec, &spec->notify.retried);
    code_string(codec, &spec->tag);
    code_lists(codec, spec);
    for (size_t i = 0; i < spec->role_count && codec->version < CODEC_VERSION_SSH; i++)
        spec->roles[i].is_ssh_optional = spec->format == SPEC_V1;
    if (codec->version >= CODEC_VERSION_BARRIER) {
        code_bool(codec, &spec->has_start_barrier);
        code_u32(codec, &spec->start_barrier_timeout_s);
    }
    if (codec->version >= CODEC_VERSION_WITHIN)
        code_string(codec, &spec->within_one_cell);
    else
        spec->within_one_cell = "";
}

void spec_encode(const struct spec *spec, struct buf *out)
{
    struct codec codec = {.out = out, .version = CODEC_VERSION};
    buf_put_u8(out, CODEC_VERSION);
    code_spec(&codec, (struct spec *)(uintptr_t)spec); /* writing changes nothing */
}

/* What every other part relies on without looking again. */
static bool is_sound(const struct spec *spec)
{
    uint64_t tasks = 0;
    for (size_t i = 0; i < spec->role_count; i++) {
        const struct spec_role *role = &spec->roles[i];
        if (role->image >= spec->image_count || role->instances < 1 ||
            role->instances > SPEC_INSTANCES_MAX || role->port_count > SPEC_PORTS_MAX)
            return false;
        tasks += role->instances;
    }
    return spec->role_count >= 1 && spec->role_count <= SPEC_ROLES_MAX && tasks <= SPEC_TASKS_MAX;
}

struct spec *spec_decode(struct text bytes, struct err *err)
{
    struct arena arena;
    arena_init(&arena);
    struct text copy = {arena_copy(&arena, bytes), bytes.length};
    struct codec codec = {.in = cursor_of(copy), .arena = &arena};
    uint8_t version = codec.version = cursor_u8(&codec.in);
    bool is_known = version >= 1 && version <= CODEC_VERSION;
    struct spec *spec = ARENA_NEW(&arena, struct spec);
    if (is_known)
        code_spec(&codec, spec);
    if (!is_known || codec.in.is_bad || codec.in.at != codec.in.end || !is_sound(spec)) {
        arena_release(&arena);
        if (!is_known)
            err_fail(err, ERR_CORRUPT, "", "stored job specification has version %u, not 1 to %d",
                     version, CODEC_VERSION);
        else
            err_fail(err, ERR_CORRUPT, "", "stored job specification is damaged");
        return NULL;
    }
    spec->arena = ARENA_NEW(&arena, struct arena);
    *spec->arena = arena;
    return spec;
}
