/* Variables of the containers: v0-environment.json, and what of barrier.json and
 * naming-and-injection.json concerns variables, against src/init.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "init/env.h"
#include "init/job_file.h"
#include "init/ssh_config.h"
#include "init/task_file.h"
#include "vector_job.h"

enum { V1_SHM_MIB = 64 };

static void check(const char *id, const char *wanted, const char *got)
{
    report(id, json_string(wanted), got ? json_string(got) : json_null());
}

static uint32_t number_of(const json_t *object, const char *key, uint32_t otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? (uint32_t)json_integer_value(value) : otherwise;
}

/* null: off */
static int32_t threshold(const json_t *role, const char *key, int32_t otherwise)
{
    return json_is_null(json_object_get(role, key)) ? -1 : (int32_t)int_at(role, key, otherwise);
}

/* A v1 role with the ports that every role gets. */
static void role_read(const json_t *from, struct job_file_role *role)
{
    struct job_file_port *ports =
        ARENA_ARRAY(&vector_arena, struct job_file_port,
                    json_array_size(json_object_get(from, "portList")) + 2);
    bool has_http = false, has_ssh = false;
    size_t i;
    const json_t *port;
    *role = (struct job_file_role){
        .name = string_at(from, "name"),
        .instances = number_of(from, "taskNumber", 1),
        .cpu = number_of(from, "cpuNumber", 1),
        .memory_mib = number_of(from, "memoryMB", 100),
        .gpu = number_of(from, "gpuNumber", 0),
        .shm_mib = number_of(from, "shmMB", V1_SHM_MIB),
        .min_failed = threshold(from, "minFailedTaskCount", 1),
        .min_succeeded = threshold(from, "minSucceededTaskCount", -1),
        .is_ssh_enabled = true,
        .ports = ports,
    };
    json_array_foreach (json_object_get(from, "portList"), i, port) {
        ports[role->port_count++] =
            (struct job_file_port){string_at(port, "label"), number_of(port, "portNumber", 1),
                                   number_of(port, "beginAt", 0)};
        has_http = has_http || strcmp(string_at(port, "label"), "http") == 0;
        has_ssh = has_ssh || strcmp(string_at(port, "label"), "ssh") == 0;
    }
    if (!has_http)
        ports[role->port_count++] = (struct job_file_port){"http", 1, 0};
    if (!has_ssh)
        ports[role->port_count++] = (struct job_file_port){"ssh", 1, 0};
}

static void task_read(const json_t *from, const struct job_file_role *role,
                      struct job_file_task *task)
{
    uint16_t *ports = ARENA_ARRAY(&vector_arena, uint16_t, role->port_count);
    for (size_t i = 0; i < role->port_count; i++) {
        const json_t *numbers =
            json_object_get(json_object_get(from, "ports"), role->ports[i].label);
        ports[i] = (uint16_t)json_integer_value(json_array_get(numbers, 0));
    }
    *task = (struct job_file_task){string_at(from, "ip"), "", ports};
}

static void job_read(const json_t *file, struct job_file *job)
{
    const json_t *from = json_object_get(file, "job"), *item;
    const json_t *list = json_object_get(from, "taskRoles");
    struct job_file_role *roles =
        ARENA_ARRAY(&vector_arena, struct job_file_role, json_array_size(list) + 1);
    size_t i, task_count = 0;
    json_array_foreach (list, i, item)
        task_count += number_of(item, "taskNumber", 1);
    struct job_file_task *tasks = ARENA_ARRAY(&vector_arena, struct job_file_task, task_count + 1);
    *job = (struct job_file){
        .format = JOB_FILE_V1,
        .name = string_at(from, "jobName"),
        .user = string_at(file, "user"),
        .virtual_cluster = string_at(from, "virtualCluster"),
        .kill_all_on_completed = number_of(from, "killAllOnCompletedTaskNumber", 0),
        .fs_uri = string_at(file, "fsUri"),
        .data_dir = string_at(from, "dataDir"),
        .output_dir = string_at(from, "outputDir"),
        .code_dir = string_at(from, "codeDir"),
        .roles = roles,
        .tasks = tasks,
    };
    json_array_foreach (list, i, item) {
        struct job_file_role *role = &roles[job->role_count++];
        role_read(item, role);
        const json_t *places = json_object_get(json_object_get(file, "allocation"), role->name);
        for (uint32_t k = 0; k < role->instances; k++)
            task_read(json_array_get(places, k), role, &tasks[job->task_count++]);
    }
}

static size_t role_find(const struct job_file *job, const char *name)
{
    for (size_t i = 0; i < job->role_count; i++)
        if (strcmp(job->roles[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

static void environment_make(struct env *env, const struct job_file *job, size_t role,
                             uint32_t index)
{
    const struct task_file task = {
        .container = "c", .role = (uint16_t)role, .index = (uint16_t)index, .command = "x"};
    const struct env_host host = {"<initial working directory of the container>", "", ""};
    env_init(env, &vector_arena);
    env_build(env, job, &task, &host);
}

/* The items of the port list are a set: each must be there, and nothing else. */
static void port_list_check(const char *id, const json_t *items, const char *got)
{
    size_t i, length = 0;
    const json_t *item;
    struct buf whole = BUF_INIT;
    json_array_foreach (items, i, item) {
        buf_clear(&whole);
        buf_format(&whole, "%s;", json_string_value(item));
        length += whole.length;
        bool is_there = got && strstr(got, buf_cstr(&whole));
        check(arena_format(&vector_arena, "%s/%s", id, json_string_value(item)), buf_cstr(&whole),
              is_there ? buf_cstr(&whole) : got);
    }
    check(arena_format(&vector_arena, "%s/nothing-else", id), "yes",
          got && strlen(got) == length ? "yes" : "no");
    buf_release(&whole);
}

/* One expected task; `prefix` replaces the one in the names ("QIZHI_" read as "PAI_"). */
static void task_check(const char *era, const json_t *file, const struct job_file *job,
                       const json_t *entry, const char *prefix)
{
    const char *role_name = string_at(entry, "role"), *name;
    uint32_t index = number_of(entry, "taskIndex", 0);
    size_t role = role_find(job, role_name);
    const json_t *value;
    struct env env;
    if (!env_job_has_task(job, role, index)) {
        report_skip(arena_format(&vector_arena, "%s/%s-%u", era, role_name, index),
                    "no such task in the job");
        return;
    }
    environment_make(&env, job, role, index);
    json_object_foreach (json_object_get(entry, "env"), name, value) {
        if (!json_is_string(value))
            continue;
        const char *rest = strchr(name, '_');
        const char *ours =
            prefix && rest ? arena_format(&vector_arena, "%s%s", prefix, rest + 1) : name;
        check(arena_format(&vector_arena, "%s/%s-%u/%s", era, role_name, index, ours),
              json_string_value(value), env_get(&env, ours));
    }
    const json_t *items = json_object_get(json_object_get(file, "portListItems"), role_name);
    if (items)
        port_list_check(
            arena_format(&vector_arena, "%s/%s-%u/portListItems", era, role_name, index), items,
            env_get(&env, strcmp(era, "qizhi") == 0 ? "QIZHI_CONTAINER_HOST_PORT_LIST"
                                                    : "PAI_CONTAINER_HOST_PORT_LIST"));
    env_release(&env);
}

static bool is_one_of(struct text words, const char *word)
{
    while (words.length > 0)
        if (text_is(text_cut(&words, ' '), word))
            return true;
    return false;
}

/* The value of a key in the block of `Host NAME`, which may have other names beside it. */
static const char *config_value(const char *config, const char *host, const char *key)
{
    struct text rest = text_of(config);
    bool is_inside = false;
    while (rest.length > 0) {
        struct text line = text_trim(text_cut(&rest, '\n'));
        struct text word = text_cut(&line, ' ');
        const bool is_host = text_is(word, "Host");
        if (is_host)
            is_inside = is_one_of(line, host);
        if (is_inside && is_host && strcmp(key, "Host") == 0)
            return host;
        if (is_inside && text_is(word, key))
            return arena_copy(&vector_arena, line);
    }
    return NULL;
}

static void ssh_check(const json_t *entries, const struct job_file *job)
{
    size_t i;
    const json_t *entry, *value;
    const char *key;
    struct buf config = BUF_INIT;
    const char *file = string_at(json_array_get(entries, 0), "IdentityFile");
    ssh_config_write(job, "root", file, &vector_arena, &config);
    json_array_foreach (entries, i, entry) {
        const char *host = string_at(entry, "Host");
        json_object_foreach ((json_t *)(uintptr_t)entry, key, value) {
            const char *wanted =
                json_is_integer(value)
                    ? arena_format(&vector_arena, "%d", (int)json_integer_value(value))
                    : json_string_value(value);
            check(arena_format(&vector_arena, "ssh/%s/%s", host, key), wanted,
                  config_value(buf_cstr(&config), host, key));
        }
    }
    buf_release(&config);
}

/* The ports of a label follow each other: a task is told the first one and how many there are. */
static bool places_fit(const char *id, const json_t *places)
{
    for (size_t p = 0; p < json_array_size(places); p++) {
        const char *label;
        json_t *ports;
        json_object_foreach (json_object_get(json_array_get(places, p), "ports"), label, ports)
            for (size_t i = 0; i < json_array_size(ports); i++)
                if (!json_is_integer(json_array_get(ports, i)) ||
                    json_integer_value(json_array_get(ports, i)) !=
                        json_integer_value(json_array_get(ports, 0)) + (json_int_t)i) {
                    report_skip(id, "ports of one label that do not follow each other");
                    return false;
                }
    }
    return true;
}

/* Roles and allocations with the fields that job_read takes? */
static bool environment_fits(const json_t *file)
{
    const json_t *job = json_object_get(file, "job"), *roles = json_object_get(job, "taskRoles");
    const json_t *allocation = json_object_get(file, "allocation"), *list, *item;
    const char *id = "v0-environment", *name;
    size_t i;
    if (!case_fits(id, file,
                   "job:o allocation:o fsUri:s user:s qizhi:a? pai_0_14:a? "
                   "portListItems:o? sshConfigQizhi:a?") ||
        !case_fits(id, job, "jobName:s taskRoles:a dataDir:s? codeDir:s? outputDir:s?") ||
        !cases_fit(id, roles, "name:s taskNumber:i? portList:a?") ||
        !cases_fit(id, json_object_get(file, "qizhi"), "role:s taskIndex:i env:o") ||
        !cases_fit(id, json_object_get(file, "pai_0_14"), "role:s taskIndex:i env:o") ||
        !cases_fit(id, json_object_get(file, "sshConfigQizhi"), "Host:s IdentityFile:s"))
        return false;
    json_object_foreach ((json_t *)(uintptr_t)json_object_get(file, "portListItems"), name, list)
        json_array_foreach (list, i, item)
            if (!json_is_string(item)) {
                report_skip(id, "items of a port list are strings");
                return false;
            }
    json_object_foreach ((json_t *)(uintptr_t)allocation, name, list)
        if (!places_fit(id, list))
            return false;
    json_array_foreach (roles, i, item) {
        const int64_t count = int_at(item, "taskNumber", 1);
        if (count < 1 || count > 10000 ||
            !cases_fit(id, json_object_get(item, "portList"), "label:s beginAt:i? portNumber:i?") ||
            !cases_fit(id, json_object_get(allocation, string_at(item, "name")), "ip:s ports:o"))
            return false;
    }
    return true;
}

void environment(const json_t *file)
{
    struct job_file job;
    size_t i;
    const json_t *entry;
    static const char *const apis[] = {"sshApiQizhi", "sshApiNew"};
    if (!environment_fits(file))
        return;
    job_read(file, &job);
    json_array_foreach (json_object_get(file, "qizhi"), i, entry) {
        job.is_namespaced = true;
        task_check("qizhi", file, &job, entry, NULL);
        job.is_namespaced = false; /* that era's jobs had no namespace */
        task_check("pai-0.4", file, &job, entry, "PAI_");
    }
    job.is_namespaced = true;
    json_array_foreach (json_object_get(file, "pai_0_14"), i, entry) {
        task_check("pai-0.14", file, &job, entry, NULL);
    }
    ssh_check(json_object_get(file, "sshConfigQizhi"), &job);
    for (size_t k = 0; k < 2; k++)
        if (json_object_get(file, apis[k]))
            report_skip(apis[k], "answered by the REST API, not by a container");
}

/* {"server": ["10.0.0.1", …]} as a job of one role. */
static void barrier_job(const json_t *given, const char *port_value, struct job_file *job)
{
    const char *name = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)given));
    const json_t *ips = json_object_get(given, name);
    struct job_file_role *role = ARENA_NEW(&vector_arena, struct job_file_role);
    struct job_file_task *tasks =
        ARENA_ARRAY(&vector_arena, struct job_file_task, json_array_size(ips));
    struct job_file_pair *pair = ARENA_NEW(&vector_arena, struct job_file_pair);
    *role = (struct job_file_role){.name = name, .instances = (uint32_t)json_array_size(ips)};
    for (size_t i = 0; i < json_array_size(ips); i++)
        tasks[i] = (struct job_file_task){json_string_value(json_array_get(ips, i)), "", NULL};
    char *variable =
        arena_copy(&vector_arena, text_of(arena_format(&vector_arena, "FB_%s_PORT", name)));
    for (char *c = variable; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    *pair = (struct job_file_pair){variable, port_value};
    *job = (struct job_file){.format = JOB_FILE_V2,
                             .name = "j",
                             .user = "u",
                             .virtual_cluster = "",
                             .fs_uri = "",
                             .data_dir = "",
                             .output_dir = "",
                             .code_dir = "",
                             .roles = role,
                             .role_count = 1,
                             .tasks = tasks,
                             .task_count = role->instances,
                             .envs = pair,
                             .env_count = 1};
}

static bool strings_fit(const char *id, const json_t *list)
{
    bool is_good = json_array_size(list) > 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        is_good = is_good && json_is_string(json_array_get(list, i));
    if (!is_good)
        report_skip(id, "no list of addresses");
    return is_good;
}

/* "FB_SERVER_ADDRESSES (with FB_SERVER_PORT=4001)": the port that the user's variable has. */
static const char *port_in(const json_t *expect)
{
    const char *key;
    const json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)expect, key, value) {
        const char *port = strstr(key, "_PORT=");
        if (port)
            return arena_copy(&vector_arena,
                              (struct text){port + 6, strspn(port + 6, "0123456789")});
    }
    return "4001";
}

void environment_barrier(const json_t *injected)
{
    const json_t *given = json_object_get(injected, "given"), *value;
    const char *key;
    struct job_file job;
    struct env env;
    if (!case_fits("injected", injected, "given:o expect:o") || json_object_size(given) != 1 ||
        !strings_fit("injected",
                     json_object_iter_value(json_object_iter((json_t *)(uintptr_t)given))))
        return;
    const char *port = port_in(json_object_get(injected, "expect"));
    barrier_job(given, port, &job);
    environment_make(&env, &job, 0, 0);
    json_object_foreach (json_object_get(injected, "expect"), key, value) {
        struct text name = text_of(key); /* "FB_X (with …)" */
        struct text only = text_cut(&name, ' ');
        if (!json_is_string(value))
            continue;
        check(arena_format(&vector_arena, "injected/%.*s", TEXT_ARG(only)),
              json_string_value(value), env_get(&env, arena_copy(&vector_arena, only)));
    }
    env_release(&env);
}

/* "before user env, …": a variable of the user's with such a name wins, as the later one does. */
static void naming_position(struct job_file *job, const json_t *expect)
{
    const struct job_file_pair mine = {"FC_POD_NAME", "mine"};
    struct env env;
    if (!json_is_string(expect))
        return;
    job->envs = &mine;
    job->env_count = 1;
    environment_make(&env, job, 0, 0);
    const char *value = env_get(&env, mine.name);
    const bool is_later = value && strcmp(value, mine.value) == 0;
    const bool wants_later = strncmp(json_string_value(expect), "before user env", 15) == 0;
    report_bool("naming/predefinedEnvPosition", wants_later, is_later);
    env_release(&env);
}

void environment_naming(const json_t *file)
{
    static const char *const LISTS[] = {"podAnnotationsAndEnv", "envOnly"};
    struct job_file job;
    struct env env;
    json_t *given = json_pack("{s:[s]}", "worker", "10.0.0.1");
    barrier_job(given, "1", &job);
    environment_make(&env, &job, 0, 0);
    for (size_t i = 0; i < 2; i++) {
        size_t k;
        const json_t *name;
        json_array_foreach (json_object_get(json_object_get(file, "expect"), LISTS[i]), k, name) {
            if (!json_is_string(name))
                continue;
            const char *value = env_get(&env, json_string_value(name));
            check(arena_format(&vector_arena, "naming/%s", json_string_value(name)), "set",
                  value && value[0] ? "set" : NULL);
        }
    }
    env_release(&env);
    naming_position(&job,
                    json_object_get(json_object_get(file, "expect"), "predefinedEnvPosition"));
    json_decref(given);
}
