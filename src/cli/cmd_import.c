/* import: the configuration of another platform, said in Skep's words */
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/openpai.h"
#include "cli/openpai_users.h"
#include "cli/print.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SECRETS_MAX = 256 << 20 };

static void json_release(json_t **json)
{
    json_decref(*json);
}

static const char *const NOTE_NAMES[] = {
    [NOTE_TAKEN] = "taken", [NOTE_TO_DO] = "to do", [NOTE_GONE] = "left out"};

/* Read one file of the folder. *doc is NULL when there is none and none is needed. */
static int document_read(const char *folder, const char *name, bool is_needed, struct arena *arena,
                         const struct doc **doc)
{
    cleanup_buf struct buf path = BUF_INIT, content = BUF_INIT, report = BUF_INIT;
    cleanup_problems struct problems problems;
    struct err err;
    *doc = NULL;
    buf_format(&path, "%s/%s", folder, name);
    problems_init(&problems, arena);
    int code = file_read(buf_cstr(&path), DOC_BYTES_MAX, &content, &err);
    if (code == ERR_NOT_FOUND && !is_needed)
        return 0;
    if (code)
        return cli_fail(EXIT_USAGE, "%s", err.text);
    *doc = doc_parse(buf_as_text(&content), DOC_YAML, arena, &problems);
    if (*doc && (*doc)->kind != DOC_MAP)
        problem_add(&problems, (*doc)->place, "", "must be a map, this is %s",
                    doc_kind_name((*doc)->kind));
    if (!problems.error_count)
        return 0;
    problems_print(&problems, buf_cstr(&path), &report);
    print_error("%s", buf_cstr(&report));
    return EXIT_REFUSED;
}

static int file_put(const char *folder, const char *name, mode_t mode, const struct buf *content)
{
    cleanup_buf struct buf path = BUF_INIT;
    struct err err;
    if (!content->length)
        return 0;
    buf_format(&path, "%s/%s", folder, name);
    if (file_create(buf_cstr(&path), buf_as_text(content), mode, &err))
        return cli_fail(EXIT_REFUSED, "%s", err.text);
    return 0;
}

static json_t *notes_json(const struct openpai_output *output)
{
    json_t *list = json_array();
    for (size_t i = 0; i < output->note_count; i++) {
        const struct openpai_note *note = &output->notes[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "kind",
                                              NOTE_NAMES[note->kind], "file", note->file, "setting",
                                              note->path, "text", note->text));
    }
    return list;
}

/* What is to be done first, as that is what people must read. */
static void notes_table(const struct openpai_output *output, bool has_colours, struct buf *out)
{
    static const char *const HEADS[] = {"WHAT", "FILE", "SETTING", "WHY", NULL};
    static const enum openpai_note_kind ORDER[] = {NOTE_TO_DO, NOTE_TAKEN, NOTE_GONE};
    cleanup_table struct table table;
    table_init(&table, has_colours, HEADS);
    for (size_t k = 0; k < COUNT_OF(ORDER); k++)
        for (size_t i = 0; i < output->note_count; i++) {
            const struct openpai_note *note = &output->notes[i];
            if (note->kind != ORDER[k])
                continue;
            table_cell(&table, NOTE_NAMES[note->kind]);
            table_cell(&table, note->file);
            table_cell(&table, note->path);
            table_cell(&table, note->text);
        }
    table_print(&table, out);
}

static int output_write(const char *folder, const struct openpai_output *output)
{
    cleanup_buf struct buf report = BUF_INIT;
    notes_table(output, false, &report);
    int code = file_put(folder, "skepd.yaml", 0600, &output->skepd);
    if (!code)
        code = file_put(folder, "cells.yaml", 0600, &output->cells);
    if (!code)
        code = file_put(folder, "groups.sh", 0700, &output->groups);
    if (!code)
        code = file_put(folder, "oidc-secret", 0600, &output->secret);
    if (!code)
        code = file_put(folder, "smtp-password", 0600, &output->mail_password);
    if (!code)
        code = file_put(folder, "nodes.sh", 0700, &output->nodes);
    if (!code)
        code = file_put(folder, "claims.yaml", 0600, &output->claims);
    if (!code)
        code = file_put(folder, "users.csv", 0600, &output->users);
    return code ? code : file_put(folder, "report.txt", 0600, &report);
}

static int report_print(const struct cli *cli, const char *folder,
                        const struct openpai_output *output)
{
    cleanup_buf struct buf out = BUF_INIT;
    json_auto_t *list = notes_json(output);
    if (!print_raw(cli, list)) {
        notes_table(output, cli->has_colours, &out);
        buf_format(&out, "\nWritten to %s. Next: skepd --check --config %s/skepd.yaml\n", folder,
                   folder);
        print_flush(&out);
    }
    return 0;
}

/* The secrets of a file of the folder, as `kubectl get secrets -o json` prints them; NULL: there is
 * none. */
static int secrets_read(const char *folder, const char *name, json_t **secrets)
{
    cleanup_buf struct buf path = BUF_INIT, content = BUF_INIT;
    struct err err;
    *secrets = NULL;
    buf_format(&path, "%s/%s", folder, name);
    int code = file_read(buf_cstr(&path), SECRETS_MAX, &content, &err);
    if (code == ERR_NOT_FOUND)
        return 0;
    if (code)
        return cli_fail(EXIT_USAGE, "%s", err.text);
    code = openpai_secrets_read(buf_as_text(&content), secrets, &err);
    if (content.at)
        explicit_bzero(content.at, content.length);
    return code ? cli_fail(EXIT_REFUSED, "%s: %s", buf_cstr(&path), err.text) : 0;
}

/* Groups are told as services-configuration.yaml tells them. */
static int groups_read(const char *folder, struct arena *arena, const struct doc **groups)
{
    json_t *secrets;
    cleanup_buf struct buf report = BUF_INIT;
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    int code = secrets_read(folder, "groups.json", &secrets);
    if (code || !secrets)
        return code;
    char *text = json_dumps(secrets, JSON_COMPACT);
    json_decref(secrets);
    *groups = doc_parse(text_of(text), DOC_JSON, arena, &problems);
    free(text);
    if (!problems.error_count)
        return 0;
    problems_print(&problems, "groups.json", &report);
    print_error("%s", buf_cstr(&report));
    return EXIT_REFUSED;
}

static int import_openpai(const struct cli *cli, const char *from, const char *to)
{
    cleanup_arena struct arena arena;
    cleanup_openpai struct openpai_output output = {0};
    struct openpai_input input = {.init_image = cli_value(cli, "init-image")};
    const char *engine = cli_value(cli, "engine");
    input.is_local = engine && strcmp(engine, "local") == 0;
    arena_init(&arena);
    int code = document_read(from, "services-configuration.yaml", true, &arena, &input.services);
    if (!code)
        code = document_read(from, "layout.yaml", false, &arena, &input.layout);
    if (!code)
        code = document_read(from, "config.yaml", false, &arena, &input.config);
    if (!code)
        code = document_read(from, "volumes.yaml", false, &arena, &input.volumes);
    if (!code)
        code = groups_read(from, &arena, &input.groups);
    json_t *users __attribute__((cleanup(json_release))) = NULL;
    if (!code)
        code = secrets_read(from, "users.json", &users);
    if (code)
        return code;
    input.has_users = users != NULL;
    if (mkdir(to, 0700) < 0)
        return cli_fail(EXIT_USAGE, "%s: %s%s", to, strerror(errno),
                        errno == EEXIST ? ": name a new folder with --to" : "");
    cleanup_free char *folder = realpath(to, NULL);
    if (!folder)
        return cli_fail(EXIT_USAGE, "%s: %s", to, strerror(errno));
    input.folder = folder;
    openpai_import(&input, &arena, &output);
    if (users)
        openpai_users_take(users, &arena, &output);
    code = output_write(folder, &output);
    return code ? code : report_print(cli, folder, &output);
}

int run_import(struct cli *cli)
{
    const char *to = cli_value(cli, "to");
    if (strcmp(cli->arguments[0], "openpai") != 0)
        return cli_fail(EXIT_USAGE, "import: openpai, not '%s'", cli->arguments[0]);
    return import_openpai(cli, cli->arguments[1], to ? to : "skep-import");
}
