/* What a job file was read to, as text: for the golden files.
 *
 * usage: spec-dump FILE       prints the problems, then the whole structure; exit 0 valid, 1 not
 *        spec-dump --schema 2 prints the JSON Schema of a format
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "spec/spec.h"

static void text_print(const char *name, const char *text)
{
    printf(" %s=\"", name);
    for (; *text; text++) {
        if (*text == '\n')
            printf("\\n");
        else
            putchar(*text);
    }
    putchar('"');
}

static void flag_print(const char *name, bool is_set)
{
    if (is_set)
        printf(" %s", name);
}

static void names_print(const char *name, const char *const *names, size_t count)
{
    printf(" %s=[", name);
    for (size_t i = 0; i < count; i++)
        printf("%s%s", i ? " " : "", names[i]);
    printf("]");
}

static void role_print(const struct spec_role *role)
{
    printf("role %s: instances=%u cpu=%u memory=%llu gpu=%u shm=%u image=%u", role->name,
           role->instances, role->cpu, (unsigned long long)role->memory_mib, role->gpu,
           role->shm_mib, role->image);
    flag_print("infiniband", role->wants_infiniband);
    printf(" failed=%d succeeded=%d retry=%d", role->completion.min_failed,
           role->completion.min_succeeded, role->task_retry_count);
    flag_print("ssh", role->is_ssh_enabled);
    if (role->has_ssh_barrier)
        printf(" barrier=%us", role->ssh_barrier_timeout_s);
    printf("\n ");
    text_print("command", role->command);
    printf("\n  ports:");
    for (size_t i = 0; i < role->port_count; i++)
        printf(" %s:%u@%u", role->ports[i].label, role->ports[i].count, role->ports[i].begin_at);
    names_print("prerequisites", role->prerequisites, role->prerequisite_count);
    printf("\n ");
    text_print("sku", role->placement.sku_type);
    text_print("pinned", role->placement.pinned_cell_id);
    text_print("group", role->placement.affinity_group);
    text_print("within", role->placement.within_one_cell);
    printf("\n");
}

static void lists_print(const struct spec *spec)
{
    for (size_t i = 0; i < spec->image_count; i++) {
        const struct spec_image *image = &spec->images[i];
        printf("image");
        text_print("name", image->name);
        text_print("uri", image->uri);
        if (image->auth) {
            text_print("username", image->auth->username);
            text_print("password", image->auth->password);
            text_print("registry", image->auth->registry_uri);
        }
        printf("\n");
    }
    for (size_t i = 0; i < spec->role_count; i++)
        role_print(&spec->roles[i]);
    for (size_t i = 0; i < spec->plugin_count; i++) {
        const struct spec_plugin *plugin = &spec->plugins[i];
        printf("plugin %s: %s", plugin->name, plugin->parameters_json);
        flag_print("failure-ignored", plugin->is_failure_ignored);
        if (plugin->roles)
            names_print("roles", plugin->roles, plugin->role_count);
        printf("\n");
    }
    for (size_t i = 0; i < spec->storage_count; i++)
        printf("storage %s at %s\n", spec->storages[i].name, spec->storages[i].mount_path);
    for (size_t i = 0; i < spec->env_count; i++) {
        printf("env");
        text_print(spec->envs[i].name, spec->envs[i].value);
        printf("\n");
    }
}

static uint64_t gpu_count(const struct spec *spec)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < spec->role_count; i++)
        sum += (uint64_t)spec->roles[i].instances * spec->roles[i].gpu;
    return sum;
}

static void spec_print(const struct spec *spec)
{
    static const char *const formats[] = {
        [SPEC_V1] = "1", [SPEC_V2] = "2", [SPEC_MARKET] = "marketplace"};
    printf("format %s job %s vc=%s priority=%d%s retry=%d", formats[spec->format], spec->name,
           spec->virtual_cluster, spec->priority, spec->has_priority ? "" : " (default)",
           spec->retry_count);
    flag_print("gang", spec->is_gang);
    flag_print("lazy-preemptible", spec->is_lazy_preemptible);
    flag_print("ignores-suggested-nodes", spec->ignores_suggested_nodes);
    flag_print("debug", spec->is_debug);
    printf(" kill-all=%u limit=%llus hang=%llus", spec->kill_all_on_completed,
           (unsigned long long)spec->time_limit_s, (unsigned long long)spec->hang_after_s);
    flag_print("hang-retry", spec->hang_retry);
    if (spec->has_start_barrier)
        printf(" start-barrier=%us", spec->start_barrier_timeout_s);
    flag_print("default-storages", spec->wants_default_storages);
    printf("\nnotify:");
    flag_print("running", spec->notify.running);
    flag_print("succeeded", spec->notify.succeeded);
    flag_print("stopped", spec->notify.stopped);
    flag_print("failed", spec->notify.failed);
    flag_print("retried", spec->notify.retried);
    text_print("tag", spec->tag);
    text_print("code", spec->code_dir);
    text_print("data", spec->data_dir);
    text_print("output", spec->output_dir);
    text_print("auth", spec->auth_file);
    printf("\ntasks=%u gpus=%llu\n", spec_task_count(spec), (unsigned long long)gpu_count(spec));
    lists_print(spec);
}

static void file_read(const char *path, struct buf *out)
{
    FILE *file = fopen(path, "rb");
    char block[4096];
    size_t length;
    while (file && (length = fread(block, 1, sizeof block, file)) > 0)
        buf_add(out, block, length);
    if (!file || ferror(file)) {
        perror(path);
        exit(2);
    }
    fclose(file);
}

/* Print a spec that went through its binary form, so that the golden files check that too. */
static void parsed_print(const struct spec_parsed *parsed)
{
    struct buf bytes = BUF_INIT;
    struct err err = {0};
    spec_encode(parsed->spec, &bytes);
    struct spec *copy = spec_decode(buf_as_text(&bytes), &err);
    if (!copy) {
        printf("decoding: %s\n", err.text);
        exit(1);
    }
    spec_print(copy);
    for (size_t i = 0; i < parsed->secret_count; i++) {
        printf("secret");
        text_print(parsed->secrets[i].name, parsed->secrets[i].value);
        printf("\n");
    }
    spec_free(copy);
    buf_release(&bytes);
}

int main(int argc, char **argv)
{
    struct buf text = BUF_INIT, masked = BUF_INIT, report = BUF_INIT;
    struct spec_parsed parsed = {.masked = &masked};
    struct problems problems;
    struct arena scratch;
    if (argc == 3 && strcmp(argv[1], "--schema") == 0) {
        spec_schema(strcmp(argv[2], "1") == 0   ? SPEC_V1
                    : strcmp(argv[2], "2") == 0 ? SPEC_V2
                                                : SPEC_MARKET,
                    &report);
        puts(buf_cstr(&report));
        buf_release(&report);
        return 0;
    }
    if (argc != 2) {
        fprintf(stderr, "usage: spec-dump FILE\n       spec-dump --schema 1|2|marketplace\n");
        return 2;
    }
    arena_init(&scratch);
    problems_init(&problems, &scratch);
    file_read(argv[1], &text);
    int result = spec_parse(buf_as_text(&text), &scratch, &parsed, &problems);
    const char *slash = strrchr(argv[1], '/');
    problems_print(&problems, slash ? slash + 1 : argv[1], &report);
    fputs(buf_cstr(&report), stdout);
    if (parsed.spec) {
        parsed_print(&parsed);
        if (text_equal(buf_as_text(&masked), buf_as_text(&text)))
            printf("nothing masked\n");
        else
            printf("--- masked\n%s", buf_cstr(&masked));
    }
    spec_free(parsed.spec);
    problems_release(&problems);
    arena_release(&scratch);
    buf_release(&text);
    buf_release(&masked);
    buf_release(&report);
    return result ? 1 : 0;
}
