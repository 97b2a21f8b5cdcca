/* container.c — see container.h. */
#include "server/container.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/peers.h"
#include "doc/doc.h"
#include "init/address_file.h"
#include "init/job_file.h"
#include "init/layout.h"
#include "init/task_file.h"
#include "server/barrier.h"
#include "server/storage.h"
#include "sys/secret.h"
#include <assert.h>
#include <string.h>

void secrets_seal(const struct spec_pair *secrets, size_t count, const uint8_t *key,
                  struct buf *sealed)
{
    cleanup_buf struct buf plain = BUF_INIT;
    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        buf_put_text(&plain, text_of(secrets[i].name));
        buf_put_text(&plain, text_of(secrets[i].value));
    }
    secret_seal(key, buf_as_text(&plain), sealed);
    secret_wipe(plain.at, plain.room);
}

int secrets_open(struct text sealed, const struct key_file *keys, struct arena *arena,
                 struct spec_pair **secrets, size_t *count, struct err *err)
{
    cleanup_buf struct buf plain = BUF_INIT;
    int code = 0;
    *secrets = NULL;
    *count = 0;
    if (sealed.length == 0)
        return 0;
    code = secret_open(keys->seal, sealed, &plain, err);
    if (code < 0 && keys->has_old) /* a rotation was ended before it came here */
        code = secret_open(keys->old_seal, sealed, &plain, err);
    if (code < 0)
        return code;
    struct cursor cursor;
    for (cursor = cursor_of(buf_as_text(&plain)); !cursor.is_bad && cursor.at < cursor.end;
         (*count)++) {
        cursor_text(&cursor);
        cursor_text(&cursor);
    }
    *secrets = arena_array(arena, *count, sizeof **secrets);
    cursor = cursor_of(buf_as_text(&plain));
    for (size_t i = 0; i < *count; i++) {
        (*secrets)[i].name = arena_copy(arena, cursor_text(&cursor));
        (*secrets)[i].value = arena_copy(arena, cursor_text(&cursor));
    }
    if (cursor.is_bad)
        code = err_fail(err, ERR_CORRUPT, "", "the job's sealed secrets are damaged");
    secret_wipe(plain.at, plain.room);
    return code;
}

/* Lines for authorized_keys from the user's extension: sshKeys[].value. */
static const char *user_keys(struct store_reader *reader, const char *name, struct arena *arena)
{
    const struct doc *doc, *keys;
    cleanup_buf struct buf lines = BUF_INIT;
    struct store_user user;
    if (store_user(reader, text_of(name), arena, &user, NULL) < 0)
        return "";
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    doc = doc_parse(text_of(user.extension_json), DOC_JSON, arena, &problems);
    keys = doc_get(doc, "sshKeys");
    for (size_t i = 0; keys && keys->kind == DOC_LIST && i < keys->as.list.count; i++) {
        const struct doc *value = doc_get(keys->as.list.items[i], "value");
        if (value && value->kind == DOC_STRING) {
            buf_text(&lines, text_trim(value->as.string));
            buf_char(&lines, '\n');
        }
    }
    return arena_copy(arena, buf_as_text(&lines));
}

static struct job_file_port *ports_of(const struct spec_role *role, struct arena *arena)
{
    struct job_file_port *ports = arena_array(arena, role->port_count, sizeof *ports);
    for (size_t i = 0; i < role->port_count; i++)
        ports[i] = (struct job_file_port){.label = role->ports[i].label,
                                          .count = role->ports[i].count,
                                          .begin_at = role->ports[i].begin_at};
    return ports;
}

static uint32_t instances_of(const struct store_tasks *tasks, size_t role)
{
    uint32_t count = 0;
    for (size_t i = 0; i < tasks->count; i++)
        count += tasks->items[i].task.role == role;
    return count;
}

static struct job_file_role *roles_of(const struct launch_job *launch, struct arena *arena)
{
    const struct spec *spec = launch->spec;
    struct job_file_role *roles = arena_array(arena, spec->role_count, sizeof *roles);
    for (size_t i = 0; i < spec->role_count; i++) {
        const struct spec_role *role = &spec->roles[i];
        roles[i] = (struct job_file_role){
            .name = role->name,
            .instances = instances_of(&launch->tasks, i),
            .cpu = role->cpu,
            .gpu = role->gpu,
            .shm_mib = role->shm_mib,
            .memory_mib = role->memory_mib,
            .min_failed = role->completion.min_failed,
            .min_succeeded = role->completion.min_succeeded,
            .is_ssh_enabled = role->is_ssh_enabled,
            .is_ssh_optional = role->is_ssh_optional,
            .ports = ports_of(role, arena),
            .port_count = role->port_count,
        };
    }
    return roles;
}

static uint16_t first_port(const struct task_record *task, const char *label)
{
    for (size_t i = 0; i < task->port_count; i++)
        if (strcmp(task->ports[i].label, label) == 0)
            return task->ports[i].first;
    return 0;
}

static const struct engine_port *engine_ports_of(const struct task_record *task,
                                                 struct arena *arena)
{
    struct engine_port *ports = arena_array(arena, task->port_count, sizeof *ports);
    for (size_t i = 0; i < task->port_count; i++)
        ports[i] = (struct engine_port){task->ports[i].first, task->ports[i].count};
    return ports;
}

static struct job_file_task *tasks_of(const struct launch_job *launch, struct arena *arena)
{
    struct job_file_task *tasks = arena_array(arena, launch->tasks.count, sizeof *tasks);
    for (size_t i = 0; i < launch->tasks.count; i++) {
        const struct task_record *task = &launch->tasks.items[i];
        const struct spec_role *role = &launch->spec->roles[task->task.role];
        uint16_t *ports = arena_array(arena, role->port_count, sizeof *ports);
        for (size_t p = 0; p < role->port_count; p++)
            ports[p] = first_port(task, role->ports[p].label);
        tasks[i] = (struct job_file_task){task->address, task->node, ports};
    }
    return tasks;
}

static int job_file_make(struct launch_job *launch, struct err *err)
{
    const struct spec *spec = launch->spec;
    struct arena *arena = &launch->arena;
    struct job_file_pair *envs = arena_array(arena, spec->env_count, sizeof *envs);
    struct job_file file = {
        .format = spec->format == SPEC_V2 ? JOB_FILE_V2 : JOB_FILE_V1,
        .name = launch->row.record.name,
        .user = launch->row.record.user,
        .virtual_cluster = launch->row.record.virtual_cluster,
        .id = launch->job.v,
        .attempt = launch->attempt,
        .is_gang = spec->is_gang,
        .is_namespaced = true,
        .kill_all_on_completed = spec->kill_all_on_completed,
        .envs = envs,
        .env_count = spec->env_count,
        .roles = roles_of(launch, arena),
        .role_count = spec->role_count,
        .tasks = tasks_of(launch, arena),
        .task_count = launch->tasks.count,
    };
    if (launch->tasks.count > JOB_FILE_TASKS_MAX) /* rows of a server that let it grow beyond */
        return err_fail(err, ERR_TOO_BIG, "", "the job has %zu tasks, and may have at most %d",
                        launch->tasks.count, JOB_FILE_TASKS_MAX);
    int code = v1_files_make(spec, launch->places.space, arena, &file, &launch->files, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < spec->env_count; i++)
        envs[i] = (struct job_file_pair){spec->envs[i].name, spec->envs[i].value};
    job_file_write(&file, &launch->job_file);
    return 0;
}

/* The rows must fit the spec: they were made from it. */
static int rows_check(const struct launch_job *launch, struct err *err)
{
    for (size_t i = 0; i < launch->tasks.count; i++)
        if (launch->tasks.items[i].task.role >= launch->spec->role_count)
            return err_fail(err, ERR_CORRUPT, "", "job %u has a task of a role that it has not",
                            launch->job.v);
    return 0;
}

int launch_job_load(struct store_reader *reader, struct job_id job,
                    const struct launch_places *places, struct launch_job *launch, struct err *err)
{
    *launch = (struct launch_job){.job = job, .places = *places};
    arena_init(&launch->arena);
    int code = store_job_read(reader, job, &launch->arena, &launch->row, err);
    if (code == 0)
        code = store_job_source(reader, job, &launch->arena, &launch->source, err);
    if (code == 0)
        code = store_tasks(reader, job, -1, &launch->arena, &launch->tasks, err);
    if (code == 0)
        code = store_accounts(reader, &launch->arena, &launch->accounts, err);
    if (code == 0) {
        launch->attempt = launch->row.record.attempt;
        launch->spec = spec_decode(launch->source.spec_bytes, err);
        code = launch->spec ? rows_check(launch, err) : ERR_CORRUPT;
    }
    if (code == 0)
        code = job_file_make(launch, err);
    if (code < 0) {
        launch_job_release(launch);
        return code;
    }
    launch->user_keys = user_keys(reader, launch->row.record.user, &launch->arena);
    return 0;
}

void launch_job_release(struct launch_job *launch)
{
    spec_free(launch->spec);
    buf_release(&launch->job_file);
    arena_release(&launch->arena);
    *launch = (struct launch_job){0};
}

const struct task_record *launch_job_task(const struct launch_job *launch, struct task_ref task,
                                          struct attempt_id attempt)
{
    for (size_t i = 0; i < launch->tasks.count; i++) {
        const struct task_record *row = &launch->tasks.items[i];
        if (row->task.role == task.role && row->task.index == task.index)
            return row->attempt.v == attempt.v ? row : NULL;
    }
    return NULL;
}

/* Some task of it may have been given a table with others, also when it has one task now. */
static bool has_peers(const struct launch_job *launch)
{
    uint64_t instances = 0;
    for (size_t i = 0; i < launch->spec->role_count; i++)
        instances += launch->spec->roles[i].instances;
    return launch->tasks.count > 1 || instances > 1;
}

bool launch_job_peers(const struct launch_job *launch, struct arena *arena, struct buf *out)
{
    const struct task_record *tasks = launch->tasks.items;
    const size_t count = launch->tasks.count;
    if (!has_peers(launch) ||
        !peers_may_be_told(tasks, count, launch->attempt, launch->spec->is_gang))
        return false;
    struct address_file_task *known = ARENA_ARRAY(arena, struct address_file_task, count);
    struct address_file file = {.tasks = known};
    for (size_t i = 0; i < count; i++)
        if (peer_is_known(&tasks[i], launch->attempt) && !strpbrk(tasks[i].address, " \n"))
            known[file.count++] = (struct address_file_task){tasks[i].task.role,
                                                             tasks[i].task.index, tasks[i].address};
    address_file_write(&file, out);
    return true;
}

static const char *rendered(const char *value, const struct spec_pair *secrets, size_t count,
                            struct arena *arena)
{
    cleanup_buf struct buf out = BUF_INIT;
    spec_render_secrets(text_of(value), secrets, count, &out);
    const char *copy = arena_copy(arena, buf_as_text(&out));
    if (out.at)
        secret_wipe(out.at, out.room);
    return copy;
}

static bool has_ssh_barrier(const struct spec *spec)
{
    for (size_t i = 0; i < spec->role_count; i++)
        if (spec->roles[i].has_ssh_barrier)
            return true;
    return false;
}

/* A task alone has nobody to wait for. */
static void barrier_make(const struct launch_job *launch, const struct task_record *task,
                         const struct container_keys *keys, struct task_file *file,
                         struct arena *arena)
{
    const struct spec *spec = launch->spec;
    file->barrier_url = file->barrier_token = "";
    if (launch->tasks.count < 2 || keys->api_url[0] == '\0')
        return;
    file->has_start_barrier = spec->has_start_barrier;
    file->barrier_timeout_s = spec->start_barrier_timeout_s;
    file->reports_ssh = has_ssh_barrier(spec) && spec->roles[task->task.role].is_ssh_enabled;
    if (!file->has_start_barrier && !file->reports_ssh)
        return;
    char token[BARRIER_TOKEN_SIZE];
    barrier_token(keys->master_key, task->attempt, token);
    file->barrier_token = arena_copy(arena, text_of(token));
    file->barrier_url = arena_format(arena, "%s/api/internal/attempts/%llu/barriers/",
                                     keys->api_url, (unsigned long long)task->attempt.v);
    secret_wipe(token, sizeof token);
}

static void task_file_make(const struct launch_job *launch, const struct task_record *task,
                           const struct spec_role *role, const struct container_keys *keys,
                           struct task_file *file, struct arena *arena)
{
    if (role->is_ssh_enabled) {
        const char *comment =
            arena_format(arena, "%s~%s", launch->row.record.user, launch->row.record.name);
        ssh_key_make(keys->epoch_key, launch->job, comment, arena, &file->ssh_private_key,
                     &file->ssh_public_key);
        file->ssh_authorized_keys =
            arena_format(arena, "%s%s", launch->user_keys, file->ssh_authorized_keys);
    } else {
        file->ssh_private_key = file->ssh_public_key = file->ssh_authorized_keys = "";
    }
    file->attempt_id = task->attempt.v;
    file->container = arena_format(arena, "skep-%llu", (unsigned long long)task->attempt.v);
    file->role = task->task.role;
    file->index = task->task.index;
    file->task_attempt = task->task_attempt;
    file->retries = task->accountable_retries;
    file->gpus = task->gpus;
    file->gpu_count = task->gpu_count;
    file->has_ssh_barrier = role->has_ssh_barrier;
    file->ssh_barrier_timeout_s = role->ssh_barrier_timeout_s;
    barrier_make(launch, task, keys, file, arena);
    file->code_path = launch->files.code_path;
}

static struct engine_file *files_make(const struct launch_job *launch, const struct task_file *task,
                                      struct arena *arena)
{
    struct engine_file *files = arena_array(arena, 2, sizeof *files);
    cleanup_buf struct buf bytes = BUF_INIT;
    task_file_write(task, &bytes);
    files[0] = (struct engine_file){LAYOUT_JOB_NAME, buf_as_text(&launch->job_file), 0444};
    files[1] = (struct engine_file){
        LAYOUT_TASK_NAME, {arena_copy(arena, buf_as_text(&bytes)), bytes.length}, 0400};
    secret_wipe(bytes.at, bytes.room);
    return files;
}

static void container_image(const struct spec_image *image, const struct spec_pair *secrets,
                            size_t count, struct arena *arena, struct container *container)
{
    container->image = image->uri;
    if (!image->auth)
        return;
    container->registry_user = rendered(image->auth->username, secrets, count, arena);
    container->registry_password = rendered(image->auth->password, secrets, count, arena);
}

/* The file space of format 1, or the storages of protocol 2. */
static int mounts_make(const struct launch_job *launch, bool has_claims, struct arena *arena,
                       const struct engine_mount **mounts, size_t *count, struct err *err)
{
    const struct spec *spec = launch->spec;
    struct engine_mount *list = ARENA_ARRAY(arena, struct engine_mount, spec->storage_count + 1);
    int code = storage_mounts_make(launch->places.storages, launch->row.record.user, has_claims,
                                   spec, arena, list, err);
    *mounts = list;
    *count = spec->storage_count;
    if (launch->files.is_mounted)
        list[(*count)++] = launch->files.mount;
    return code;
}

int container_make(const struct launch_job *launch, const struct task_record *task,
                   const struct container_keys *keys, bool is_gpu_simulated, struct arena *arena,
                   struct container *container, struct err *err)
{
    const struct spec_role *role = &launch->spec->roles[task->task.role];
    cleanup_plugin_text struct plugin_text plugins = {0};
    struct task_file file = {.is_gpu_simulated = is_gpu_simulated,
                             .segment_bytes = keys->log_segment_bytes};
    struct spec_pair *secrets;
    size_t count;
    int code = secrets_open(launch->source.sealed, keys->sealing, arena, &secrets, &count, err);
    const char *user, *password;
    const struct engine_mount *mounts = NULL;
    size_t mount_count = 0;
    if (code == 0)
        code = v1_files_login(&launch->files, launch->places.space,
                              launch->spec->images[role->image].uri, arena, &user, &password, err);
    if (code == 0)
        code = plugin_write(launch->spec, role, secrets, count, &plugins, err);
    if (code == 0)
        code = mounts_make(launch, keys->has_claims, arena, &mounts, &mount_count, err);
    if (code < 0)
        return code;
    *container = (struct container){
        .attempt = task->attempt,
        .job = arena_format(arena, "%s~%s", launch->row.record.user, launch->row.record.name),
        .role = role->name,
        .virtual_cluster = launch->row.record.virtual_cluster,
        .index = task->task.index,
        .node = task->node,
        .cpu = role->cpu,
        .memory_mib = role->memory_mib,
        .shm_mib = role->shm_mib,
        .gpus = task->gpus,
        .gpu_count = task->gpu_count,
        .is_gpu_simulated = is_gpu_simulated,
        .wants_infiniband = role->wants_infiniband,
        .may_have_host_network = store_account_is_sole(&launch->accounts, launch->job),
        .ports = engine_ports_of(task, arena),
        .port_count = task->port_count,
        .registry_user = user,
        .registry_password = password,
        .mounts = mounts,
        .mount_count = mount_count,
    };
    container_image(&launch->spec->images[role->image], secrets, count, arena, container);
    file.pre_command = arena_copy(arena, buf_as_text(&plugins.pre));
    file.post_command = arena_copy(arena, buf_as_text(&plugins.post));
    file.command = rendered(role->command, secrets, count, arena);
    file.ssh_authorized_keys = arena_copy(arena, buf_as_text(&plugins.authorized_keys));
    task_file_make(launch, task, role, keys, &file, arena);
    container->files = files_make(launch, &file, arena);
    container->file_count = 2;
    return 0;
}
