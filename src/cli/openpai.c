#include "cli/openpai.h"
#include "base/arena.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "cli/openpai_mail.h"
#include "cli/openpai_plugins.h"
#include "cli/openpai_rules.h"
#include "cli/openpai_volumes.h"
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SERVICES "services-configuration.yaml"
#define LAYOUT   "layout.yaml"
#define CONFIG   "config.yaml"

enum { SETTINGS_MAX = 64 };

struct setting {
    const char *target; /* "scheduling.portFirst" */
    const char *value;  /* as YAML */
};

struct importer {
    const struct openpai_input *input;
    struct openpai_output *output;
    struct arena *arena;
    struct setting settings[SETTINGS_MAX];
    size_t setting_count;
    const struct doc *cells; /* the parsed text of hivedscheduler.config, or NULL */
    bool has_hived, has_mail;
};

/* ---- notes and settings ---- */

void openpai_note(struct openpai_output *output, enum openpai_note_kind kind, const char *file,
                  const char *path, const char *text)
{
    output->notes =
        array_grow(output->notes, &output->note_room, output->note_count, sizeof *output->notes);
    output->notes[output->note_count++] = (struct openpai_note){kind, file, path, text};
}

static void note_add(struct importer *importer, enum openpai_note_kind kind, const char *file,
                     const char *path, const char *text)
{
    openpai_note(importer->output, kind, file, path, text);
}

/* A text as a scalar of YAML: every string of JSON is one. */
static const char *quoted(struct importer *importer, struct text text)
{
    cleanup_buf struct buf out = BUF_INIT;
    struct json_writer json;
    json_init(&json, &out);
    json_text(&json, text);
    return arena_copy(importer->arena, buf_as_text(&out));
}

static void setting_add(struct importer *importer, const char *target, const char *value)
{
    assert(importer->setting_count < SETTINGS_MAX); /* a rule sets one, and there are fewer */
    importer->settings[importer->setting_count++] = (struct setting){target, value};
}

static void setting_text(struct importer *importer, const char *target, const char *value)
{
    setting_add(importer, target, quoted(importer, text_of(value)));
}

static const char *in_folder(struct importer *importer, const char *name)
{
    return quoted(importer,
                  text_of(arena_format(importer->arena, "%s/%s", importer->input->folder, name)));
}

bool openpai_is_true(const struct doc *doc)
{
    return doc && (doc->kind == DOC_BOOL
                       ? doc->as.boolean
                       : doc->kind == DOC_STRING &&
                             (text_is(doc->as.string, "true") || text_is(doc->as.string, "True")));
}

/* ---- OpenID Connect ---- */

/* The issuer is what stands before "/.well-known/…" in the address of the description. */
static const char *issuer_of(struct importer *importer, const struct doc *aad)
{
    struct text url = doc_get_text(aad, "wellKnownURL", "");
    struct text tenant = doc_get_text(aad, "tenantID", "");
    size_t end = text_find(url, TEXT("/.well-known/"));
    cleanup_buf struct buf issuer = BUF_INIT;
    url.length = end < url.length ? end : url.length;
    size_t at = text_find(url, TEXT("{tenantID}"));
    if (at < url.length) {
        size_t behind = at + strlen("{tenantID}");
        buf_add(&issuer, url.at, at);
        buf_text(&issuer, tenant);
        buf_add(&issuer, url.at + behind, url.length - behind);
    } else {
        buf_text(&issuer, url);
    }
    return quoted(importer, buf_as_text(&issuer));
}

/* Where browsers reach the server: the address of OpenPAI's entrance, else of its master. */
static const char *master_address(struct importer *importer)
{
    const struct doc *machines = doc_get_list(importer->input->layout, "machine-list");
    for (size_t i = 0; i < machines->as.list.count; i++) {
        const struct doc *machine = machines->as.list.items[i];
        struct text address = doc_get_text(machine, "hostip", "");
        if (openpai_is_true(doc_get(machine, "pai-master")) && address.length)
            return arena_copy(importer->arena, address);
    }
    return NULL;
}

static void oidc_take(struct importer *importer, const char *path, const struct doc *doc)
{
    const struct doc *aad =
        doc_get_map(doc_get(importer->input->services, "authentication"), "AAD");
    const char *master = master_address(importer);
    struct text secret = doc_get_text(aad, "clientSecret", "");
    if (!openpai_is_true(doc)) {
        note_add(importer, NOTE_TAKEN, SERVICES, path, "users log in with passwords");
        return;
    }
    importer->output->has_signon = true;
    if (!doc_get(aad, "wellKnownURL") || !doc_get(aad, "clientID")) {
        note_add(importer, NOTE_TO_DO, SERVICES, path,
                 "authentication.AAD lacks wellKnownURL or clientID: write api.oidc yourself");
        return;
    }
    setting_add(importer, "api.oidc.issuer", issuer_of(importer, aad));
    setting_add(importer, "api.oidc.clientId", quoted(importer, doc_get_text(aad, "clientID", "")));
    setting_text(importer, "api.oidc.publicUrl",
                 master ? arena_format(importer->arena, "https://%s:9186", master)
                        : "https://skep.example.org:9186");
    setting_add(importer, "api.oidc.createUsers", "true");
    setting_add(importer, "api.oidc.adoptUsers", "true");
    if (secret.length) {
        buf_text(&importer->output->secret, secret);
        buf_char(&importer->output->secret, '\n');
        setting_add(importer, "api.oidc.clientSecretFile", in_folder(importer, "oidc-secret"));
    }
    note_add(importer, NOTE_TAKEN, SERVICES, path, "it is api.oidc");
    note_add(importer, NOTE_TO_DO, SERVICES, path,
             "look at api.oidc.publicUrl, and register it with the provider");
}

static void tls_take(struct importer *importer, const char *path, const struct doc *doc)
{
    struct text certificate = doc_get_text(doc, "crt_path", "");
    struct text key = doc_get_text(doc, "key_path", "");
    if (!certificate.length || !key.length) {
        note_add(importer, NOTE_TO_DO, SERVICES, path,
                 "it names no certificate and key: skepd makes its own at the first start");
        return;
    }
    setting_text(importer, "api.tls.mode", "on");
    setting_add(importer, "api.tls.certificateFile", quoted(importer, certificate));
    setting_add(importer, "api.tls.keyFile", quoted(importer, key));
    note_add(importer, NOTE_TAKEN, SERVICES, path, "it is api.tls");
}

/* ---- groups ---- */

static void shell_option(struct buf *out, const char *option, struct text value)
{
    if (!value.length)
        return;
    buf_format(out, " %s ", option);
    buf_shell_word(out, value);
}

static void groups_begin(struct buf *out)
{
    if (out->length)
        return;
    buf_string(out, "#!/bin/sh\n"
                    "# The groups of an OpenPAI cluster. Run it while skepd runs, logged in as an "
                    "administrator.\n"
                    "set -eu\n"
                    "group() {\n"
                    "    if skep group show \"$1\" >/dev/null 2>&1; then skep group set \"$@\"; "
                    "else skep group add \"$@\"; fi\n"
                    "}\n");
}

/* The names of a list with commas between them. */
static void joined(const struct doc *list, struct buf *out)
{
    for (size_t i = 0; i < list->as.list.count; i++) {
        if (list->as.list.items[i]->kind != DOC_STRING)
            continue;
        if (out->length)
            buf_char(out, ',');
        buf_text(out, list->as.list.items[i]->as.string);
    }
}

static void group_name_keep(struct importer *importer, struct text name)
{
    struct openpai_output *output = importer->output;
    output->group_names = array_grow(output->group_names, &output->group_room, output->group_count,
                                     sizeof *output->group_names);
    output->group_names[output->group_count++] = arena_copy(importer->arena, name);
}

static bool is_put(const struct importer *importer, struct text name)
{
    for (size_t i = 0; i < importer->output->group_count; i++)
        if (text_is(name, importer->output->group_names[i]))
            return true;
    return false;
}

static void group_put(struct importer *importer, const struct doc *group, bool is_admin)
{
    struct buf *out = &importer->output->groups;
    const struct doc *acls = doc_get_map(doc_get_map(group, "extension"), "acls");
    cleanup_buf struct buf clusters = BUF_INIT, storages = BUF_INIT;
    struct text name = doc_get_text(group, "groupname", "");
    if (!name.length || is_put(importer, name))
        return;
    group_name_keep(importer, name);
    groups_begin(out);
    joined(doc_get_list(acls, "virtualClusters"), &clusters);
    buf_string(out, "group ");
    buf_shell_word(out, name);
    shell_option(out, "--description", doc_get_text(group, "description", ""));
    shell_option(out, "--external-name", doc_get_text(group, "externalName", ""));
    shell_option(out, "--vc", buf_as_text(&clusters));
    joined(doc_get_list(acls, "storageConfigs"), &storages);
    shell_option(out, "--storages", buf_as_text(&storages));
    if (is_admin || openpai_is_true(doc_get(acls, "admin")))
        buf_string(out, " --admin yes");
    buf_char(out, '\n');
}

static void groups_take(struct importer *importer, const char *path, const struct doc *doc)
{
    const struct doc *list = doc_get_list(doc, "grouplist");
    struct text source = doc_get_text(doc, "group-data-source", "basic");
    group_put(importer, doc_get(doc, "admin-group"), true);
    group_put(importer, doc_get(doc, "default-group"), false);
    for (size_t i = 0; i < list->as.list.count; i++)
        group_put(importer, list->as.list.items[i], false);
    note_add(importer, NOTE_TAKEN, SERVICES, path, "groups.sh makes the groups");
    if (!text_is(source, "basic"))
        note_add(importer, NOTE_TO_DO, SERVICES, path,
                 arena_format(importer->arena,
                              "groups of users came from %.*s: here they come with the sign-on "
                              "(api.oidc.groupsClaim, api.ldap.groupBase)",
                              TEXT_ARG(source)));
}

/* What the cluster had beyond its configuration; of groups that stand in both the first is told. */
static void secret_groups(struct importer *importer)
{
    const struct doc *groups = importer->input->groups;
    if (!groups)
        return;
    for (size_t i = 0; i < groups->as.list.count; i++)
        group_put(importer, groups->as.list.items[i], false);
    note_add(importer, NOTE_TAKEN, "groups.json", "", "groups.sh makes the groups");
}

/* In OpenPAI each virtual cluster has a group of its name, whose members may use it. */
static void cluster_groups(struct importer *importer)
{
    const struct doc *clusters = doc_get_map(importer->cells, "virtualClusters");
    struct buf *out = &importer->output->groups;
    for (size_t i = 0; i < clusters->as.map.count; i++) {
        struct text name = clusters->as.map.entries[i].key;
        if (text_is(name, "default") || is_put(importer, name))
            continue; /* everybody has it; what was said of the other one stands */
        group_name_keep(importer, name);
        groups_begin(out);
        buf_string(out, "group ");
        buf_shell_word(out, name);
        shell_option(out, "--vc", name);
        buf_char(out, '\n');
    }
}

/* ---- cells ---- */

static void cells_take(struct importer *importer, const char *path, const struct doc *doc)
{
    struct buf *out = &importer->output->cells;
    if (!importer->has_hived) {
        note_add(importer, NOTE_GONE, SERVICES, path,
                 "config.yaml says that the scheduler was not HiveD");
        return;
    }
    if (doc->kind != DOC_STRING || !importer->cells) {
        note_add(importer, NOTE_TO_DO, SERVICES, path,
                 "it is not a text of YAML with physicalCluster: write scheduling.cellsFile "
                 "yourself; without it the cells follow the nodes");
        return;
    }
    buf_text(out, doc->as.string);
    if (out->length && out->at[out->length - 1] != '\n')
        buf_char(out, '\n');
    setting_add(importer, "scheduling.cellsFile", in_folder(importer, "cells.yaml"));
    note_add(importer, NOTE_TAKEN, SERVICES, path, "it is cells.yaml, as it was");
}

/* The name of a node in an address: what stands before the first '/', unless it is a number. */
static bool node_of(const struct doc *address, struct text *node)
{
    int64_t number;
    if (!address || address->kind != DOC_STRING)
        return false;
    struct text rest = address->as.string;
    *node = text_cut(&rest, '/');
    return node->length && !text_to_int64(*node, &number);
}

static bool cells_name(const struct doc *cells, struct text name)
{
    for (size_t i = 0; cells && cells->kind == DOC_LIST && i < cells->as.list.count; i++) {
        const struct doc *cell = cells->as.list.items[i];
        struct text node;
        if (node_of(doc_get(cell, "cellAddress"), &node) && text_equal(node, name))
            return true;
        if (cells_name(doc_get(cell, "cellChildren"), name))
            return true;
    }
    return false;
}

/* ---- layout.yaml ---- */

static void layout_take(struct importer *importer)
{
    const struct doc *machines = doc_get_list(importer->input->layout, "machine-list");
    const struct doc *cells =
        doc_get(doc_get_map(importer->cells, "physicalCluster"), "physicalCells");
    size_t workers = 0;
    for (size_t i = 0; i < machines->as.list.count; i++) {
        const struct doc *machine = machines->as.list.items[i];
        struct text name = doc_get_text(machine, "hostname", "");
        struct text node = doc_get_text(machine, "nodename", "");
        if (!openpai_is_true(doc_get(machine, "pai-worker")))
            continue;
        workers++;
        if (importer->has_hived && cells && !cells_name(cells, name) &&
            !(node.length && cells_name(cells, node)))
            note_add(importer, NOTE_TO_DO, LAYOUT,
                     arena_format(importer->arena, "machine-list: %.*s", TEXT_ARG(name)),
                     "it is a worker, but no cell names it: it will not be used");
    }
    note_add(importer, NOTE_GONE, LAYOUT, "machine-sku",
             "skepd learns of CPUs, memory and GPUs from the nodes");
    note_add(importer, NOTE_TAKEN, LAYOUT, "machine-list",
             arena_format(importer->arena,
                          "%zu workers: those that are nodes with the label pai-worker=true",
                          workers));
}

/* ---- the walk over settings ---- */

static const struct openpai_rule *rule_of(const struct openpai_rule *rules, const char *path)
{
    for (; rules->path; rules++)
        if (strcmp(rules->path, path) == 0)
            return rules;
    return NULL;
}

/* The rule of the nearest section around a path. */
static const struct openpai_rule *rule_around(struct importer *importer,
                                              const struct openpai_rule *rules, const char *path)
{
    char *section = arena_copy(importer->arena, text_of(path));
    for (char *dot; (dot = strrchr(section, '.'));) {
        *dot = '\0';
        const struct openpai_rule *rule = rule_of(rules, section);
        if (rule)
            return rule;
    }
    return NULL;
}

/* Are there rules for parts of a section? "" is the whole file. */
static bool has_rules_below(const struct openpai_rule *rules, const char *path)
{
    size_t length = strlen(path);
    for (; rules->path; rules++)
        if (!length || (strncmp(rules->path, path, length) == 0 && rules->path[length] == '.'))
            return true;
    return false;
}

static void plugins_take(struct importer *importer, const char *path, const struct doc *doc)
{
    if (doc->kind != DOC_LIST) {
        note_add(importer, NOTE_TO_DO, SERVICES, path, "it is no list: look at it yourself");
        return;
    }
    const char *value = openpai_plugins(doc, SERVICES, path, importer->arena, importer->output);
    if (value)
        setting_add(importer, "portal.plugins", value);
}

static void mail_take(struct importer *importer, const char *path, const struct doc *doc)
{
    struct openpai_mail mail;
    const char *master = master_address(importer);
    const char *password =
        arena_format(importer->arena, "%s/smtp-password", importer->input->folder);
    if (importer->has_mail) {
        note_add(importer, NOTE_GONE, SERVICES, path, "the alert handler's stand there as well");
        return;
    }
    importer->has_mail =
        openpai_mail(doc, SERVICES, path, password, importer->arena, importer->output, &mail);
    if (!importer->has_mail)
        return;
    setting_add(importer, "notifications.smtp", mail.smtp);
    if (mail.alerts)
        setting_add(importer, "notifications.alerts.mail", mail.alerts);
    if (master)
        setting_text(importer, "notifications.portalUrl",
                     arena_format(importer->arena, "https://%s:9186", master));
}

static void special_take(struct importer *importer, enum openpai_special special, const char *path,
                         const struct doc *doc)
{
    switch (special) {
    case SPECIAL_CELLS:
        cells_take(importer, path, doc);
        break;
    case SPECIAL_OIDC:
        oidc_take(importer, path, doc);
        break;
    case SPECIAL_GROUPS:
        groups_take(importer, path, doc);
        break;
    case SPECIAL_TLS:
        tls_take(importer, path, doc);
        break;
    case SPECIAL_PLUGINS:
        plugins_take(importer, path, doc);
        break;
    case SPECIAL_MAIL:
        mail_take(importer, path, doc);
        break;
    case SPECIAL_RECEIVERS:
        openpai_receivers(doc, SERVICES, path, importer->arena, importer->output);
        break;
    case SPECIAL_NONE:
        break;
    }
}

static void value_take(struct importer *importer, const struct openpai_rule *rule, const char *file,
                       const char *path, const struct doc *doc)
{
    int64_t number;
    bool is_number = doc_to_int(doc, &number) ||
                     (doc->kind == DOC_STRING && doc_text_to_int(doc->as.string, &number));
    if (rule->is_number ? !is_number : doc->kind != DOC_STRING) {
        note_add(importer, NOTE_TO_DO, file, path,
                 rule->is_number ? "it is no number: look at it yourself"
                                 : "it is no text: look at it yourself");
        return;
    }
    setting_add(importer, rule->target,
                rule->is_number ? arena_format(importer->arena, "%" PRId64, number)
                                : quoted(importer, doc->as.string));
    note_add(importer, NOTE_TAKEN, file, path,
             arena_format(importer->arena, "it is %s", rule->target));
}

static void walk(struct importer *importer, const struct openpai_rule *rules, const char *file,
                 const char *path, const struct doc *doc)
{
    const struct openpai_rule *rule = rule_of(rules, path);
    if (doc->kind == DOC_NULL)
        return; /* a section that is empty */
    if (rule && rule->special) {
        special_take(importer, rule->special, path, doc);
    } else if (rule && rule->kind == NOTE_TAKEN) {
        value_take(importer, rule, file, path, doc);
    } else if (doc->kind == DOC_MAP && has_rules_below(rules, path)) {
        for (size_t i = 0; i < doc->as.map.count; i++) {
            struct text key = doc->as.map.entries[i].key;
            walk(importer, rules, file,
                 arena_format(importer->arena, "%s%s%.*s", path, path[0] ? "." : "", TEXT_ARG(key)),
                 doc->as.map.entries[i].value);
        }
    } else {
        rule = rule ? rule : rule_around(importer, rules, path);
        note_add(importer, rule ? rule->kind : NOTE_GONE, file, path,
                 rule ? rule->text : "Skep has nothing that this would set");
    }
}

/* ---- what is written ---- */

static int setting_compare(const void *a, const void *b)
{
    const struct setting *first = a, *second = b;
    return strcmp(first->target, second->target);
}

/* How many parts, each with its dot, both have in front of their last ones. */
static size_t shared_length(const char *a, const char *b)
{
    size_t shared = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == '.')
            shared = i + 1;
    return shared;
}

/* The settings as YAML: the parts of a target are keys below each other. */
static void settings_write(struct importer *importer, struct buf *out)
{
    const char *before = "";
    qsort(importer->settings, importer->setting_count, sizeof *importer->settings, setting_compare);
    buf_string(out, "# Made of the configuration of an OpenPAI cluster by skep import openpai.\n"
                    "# Check it with: skepd --check --config FILE\n");
    for (size_t i = 0; i < importer->setting_count; i++) {
        const struct setting *setting = &importer->settings[i];
        size_t at = shared_length(before, setting->target);
        int depth = 0;
        for (size_t k = 0; k < at; k++)
            depth += setting->target[k] == '.';
        for (const char *dot; (dot = strchr(setting->target + at, '.')); depth++) {
            buf_format(out, "%*s%.*s:\n", depth * 2, "", (int)(dot - setting->target - (long)at),
                       setting->target + at);
            at = (size_t)(dot - setting->target) + 1;
        }
        buf_format(out, "%*s%s: %s\n", depth * 2, "", setting->target + at, setting->value);
        before = setting->target;
    }
}

/* With HiveD OpenPAI named the GPUs of each task in a variable and had no device plugin. */
static void gpu_settings(struct importer *importer)
{
    const struct text device = openpai_device(importer->input->layout);
    const bool is_nvidia = !device.length || text_is(device, "nvidia.com/gpu");
    const bool are_named = importer->has_hived && is_nvidia;
    setting_text(importer, "engine.kubernetes.gpus", are_named ? "env" : "device-plugin");
    if (!is_nvidia)
        setting_add(importer, "engine.kubernetes.gpuResource", quoted(importer, device));
    if (importer->has_hived && !is_nvidia)
        note_add(importer, NOTE_TO_DO, LAYOUT, "machine-sku",
                 arena_format(importer->arena,
                              "a device plugin must offer %.*s; it chooses which of a node's "
                              "devices a task gets",
                              TEXT_ARG(device)));
    if (importer->input->layout)
        openpai_nodes(importer->input->layout, are_named, importer->arena, importer->output);
}

static void engine_settings(struct importer *importer)
{
    const struct openpai_input *input = importer->input;
    setting_text(importer, "engine.kind", input->is_local ? "local" : "kubernetes");
    if (input->is_local)
        return;
    setting_text(importer, "engine.kubernetes.namespace", OPENPAI_NAMESPACE);
    setting_text(importer, "engine.kubernetes.nodeSelector", "pai-worker=true");
    gpu_settings(importer);
    if (input->init_image)
        setting_text(importer, "engine.kubernetes.initImage", input->init_image);
    else
        note_add(importer, NOTE_TO_DO, "skepd.yaml", "engine.kubernetes.initImage",
                 "name the image with skep-init (or give it here by --init-image)");
    note_add(importer, NOTE_TO_DO, "skepd.yaml", "engine.kubernetes",
             "make the namespace skep-jobs and the rights of the documentation, and take "
             "OpenPAI's own services off the nodes");
}

/* The text of HiveD's configuration, parsed; NULL when it cannot be. */
static const struct doc *cells_parse(struct importer *importer)
{
    struct text text =
        doc_get_text(doc_get(importer->input->services, "hivedscheduler"), "config", "");
    cleanup_problems struct problems problems;
    problems_init(&problems, importer->arena);
    const struct doc *cells =
        text.length ? doc_parse(text, DOC_YAML, importer->arena, &problems) : NULL;
    return problems.error_count == 0 && doc_get(cells, "physicalCluster") ? cells : NULL;
}

void openpai_import(const struct openpai_input *input, struct arena *arena,
                    struct openpai_output *output)
{
    struct importer importer = {.input = input, .output = output, .arena = arena};
    const struct doc *enabled = doc_get(input->config, "enable_hived_scheduler");
    *output = (struct openpai_output){0};
    importer.has_hived = !enabled || openpai_is_true(enabled);
    importer.cells = importer.has_hived ? cells_parse(&importer) : NULL;
    setting_text(&importer, "api.listen", "0.0.0.0:9186");
    setting_text(&importer, "scheduling.policy", importer.has_hived ? "hived" : "spread");
    engine_settings(&importer);
    walk(&importer, OPENPAI_SERVICES, SERVICES, "", input->services);
    if (importer.has_hived && !doc_get(doc_get(input->services, "hivedscheduler"), "config"))
        note_add(&importer, NOTE_TAKEN, SERVICES, "hivedscheduler.config",
                 "there is none: the cells follow the nodes");
    secret_groups(&importer);
    cluster_groups(&importer);
    if (input->layout)
        layout_take(&importer);
    if (input->config)
        walk(&importer, OPENPAI_CONFIG, CONFIG, "", input->config);
    if (!input->has_users)
        note_add(&importer, NOTE_TO_DO, "users", "",
                 "users, their passwords and groups are in the cluster's secrets: put them beside "
                 "these files as users.json and groups.json");
    settings_write(&importer, &output->skepd);
    if (input->volumes)
        openpai_storages(input->volumes, input->is_local, arena, output);
    else
        note_add(&importer, NOTE_TO_DO, "storages", "",
                 "storages are volumes of the cluster: put what kubectl get pvc,pv -n default -o "
                 "yaml prints beside these files as volumes.yaml");
}

void openpai_output_release(struct openpai_output *output)
{
    buf_release(&output->skepd);
    buf_release(&output->cells);
    buf_release(&output->groups);
    buf_release(&output->secret);
    if (output->mail_password.at)
        explicit_bzero(output->mail_password.at, output->mail_password.length);
    buf_release(&output->mail_password);
    buf_release(&output->nodes);
    buf_release(&output->claims);
    if (output->users.at)
        explicit_bzero(output->users.at, output->users.length); /* hashes of passwords */
    buf_release(&output->users);
    mem_free(output->group_names);
    mem_free(output->notes);
    *output = (struct openpai_output){0};
}
