/* What a configuration wants of a machine, and what is said of it where the machine cannot. */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "cli/admin_config.h"

enum { ROOM = 40 };

static struct arena arena;
static struct machine_finding findings[ROOM];

static int read_it(const char *text, struct admin_config *config, struct err *err)
{
    char path[300];
    folder_put("skepd.yaml", text);
    snprintf(path, sizeof path, "%s", in_folder("skepd.yaml"));
    return admin_config_read(path, &arena, config, err);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct err err = {0};
    struct admin_config *config = ARENA_NEW(&arena, struct admin_config);
    assert_int_equal(read_it("dataDirectory: /srv/skep\n"
                             "engines:\n"
                             "- {kind: kubernetes, rights: {sysAdmin: [x]}}\n"
                             "- kind: local\n"
                             "  runtime: /r\n"
                             "  network: {mode: private}\n"
                             "  userNamespaces: {mode: required}\n"
                             "  disk: {quota: off}\n"
                             "  rights: {hostNetwork: [hpc, lab], fuse: ['*']}\n"
                             "storages:\n"
                             "- {name: home, directory: /home, rootSquash: true}\n"
                             "- {name: data, directory: /data}\n",
                             config, &err),
                     0);
    assert_true(config->is_local);
    assert_string_equal(config->data_directory, "/srv/skep");
    assert_string_equal(config->runtime, "/r");
    assert_string_equal(config->network, "private");
    assert_string_equal(config->users, "required");
    assert_string_equal(config->quota, "off");
    assert_string_equal(config->rights[0], "hpc, lab");
    assert_string_equal(config->rights[1], "");
    assert_string_equal(config->rights[2], "*");
    assert_int_equal(config->storage_count, 2);
    assert_string_equal(config->storages[0].name, "home");
    assert_true(config->storages[0].is_squashed && !config->storages[1].is_squashed);
}

static void an_empty_file_has_the_defaults(void **state)
{
    static const char *const empty[] = {"", "{}\n", "# nothing\n", "engine: {}\n"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(empty); i++) {
        struct err err = {0};
        struct admin_config *config = ARENA_NEW(&arena, struct admin_config);
        assert_int_equal(read_it(empty[i], config, &err), 0);
        assert_true(config->is_local && !config->data_directory);
        assert_string_equal(config->network, "auto");
        assert_string_equal(config->users, "auto");
        assert_string_equal(config->quota, "possible");
        assert_int_equal(config->storage_count, 0);
    }
}

static void what_is_no_configuration_is_told(void **state)
{
    (void)state;
    struct err err = {0};
    struct admin_config *config = ARENA_NEW(&arena, struct admin_config);
    assert_int_equal(read_it("engine: {mode\n", config, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "skepd.yaml:"));
    assert_int_equal(read_it("- a list\n", config, &err), ERR_INVALID);
    assert_int_equal(admin_config_read(in_folder("none"), &arena, config, &err), ERR_NOT_FOUND);
}

/* Of a machine of which this was found, with this configuration. */
static const struct machine_finding *judged(const char *text, const struct machine_finding *machine,
                                            size_t count, const char *name)
{
    struct err err = {0};
    struct admin_config *config = ARENA_NEW(&arena, struct admin_config);
    assert_int_equal(read_it(text, config, &err), 0);
    for (size_t i = 0; i < config->storage_count; i++) {
        config->storages[i].can_map = strcmp(config->storages[i].name, "nfs") != 0;
        snprintf(config->storages[i].why_not, sizeof config->storages[i].why_not, "it is not ours");
    }
    for (size_t i = 0; i < count; i++)
        findings[i] = machine[i];
    const size_t all = admin_config_judge(config, &arena, findings, count, ROOM);
    size_t storages = 0;
    for (size_t i = count; i < all; i++)
        storages += strncmp(findings[i].name, "storage ", 8) == 0;
    assert_int_equal(storages, config->storage_count);
    for (size_t i = count; i < all; i++) {
        assert_int_equal(findings[i].state == MACHINE_GOOD, findings[i].meaning[0] == '\0');
        if (strcmp(findings[i].name, name) == 0)
            return &findings[i];
    }
    return NULL;
}

static void what_is_wanted_is_held_against_what_is_there(void **state)
{
    (void)state;
    static const struct machine_finding good[] = {{.name = "job networks"},
                                                  {.name = "idmapped mounts"},
                                                  {.name = "project quotas"},
                                                  {.name = "mke2fs"}},
                                        layered[] = {{"idmapped mounts", MACHINE_LESS, "", "x"},
                                                     {.name = "metadata layers"}},
                                        poor[] = {{"job networks", MACHINE_LESS, "", "x"},
                                                  {"idmapped mounts", MACHINE_LESS, "", "x"},
                                                  {"metadata layers", MACHINE_LESS, "", "x"},
                                                  {"project quotas", MACHINE_LESS, "", "x"},
                                                  {"mke2fs", MACHINE_LESS, "", "x"}};
    static const struct {
        const char *text, *name;
        enum machine_state on_good, on_poor;
    } cases[] = {
        {"", "engine.network", MACHINE_GOOD, MACHINE_LESS},
        {"engine: {network: {mode: private}}\n", "engine.network", MACHINE_GOOD, MACHINE_MISSING},
        {"engine: {network: {mode: host}}\n", "engine.network", MACHINE_LESS, MACHINE_LESS},
        {"", "engine.userNamespaces", MACHINE_GOOD, MACHINE_LESS},
        {"engine: {userNamespaces: {mode: required}}\n", "engine.userNamespaces", MACHINE_GOOD,
         MACHINE_MISSING},
        {"engine: {userNamespaces: {mode: 'off'}}\n", "engine.userNamespaces", MACHINE_LESS,
         MACHINE_LESS},
        {"engine: {userNamespaces: {mode: required, images: idmapped}}\n", "engine.userNamespaces",
         MACHINE_GOOD, MACHINE_MISSING},
        {"", "engine.disk", MACHINE_GOOD, MACHINE_LESS},
        {"engine: {disk: {quota: required}}\n", "engine.disk", MACHINE_GOOD, MACHINE_MISSING},
        {"engine: {disk: {quota: 'off'}}\n", "engine.disk", MACHINE_LESS, MACHINE_LESS},
        {"engine: {rights: {sysAdmin: [hpc]}}\n", "right sysAdmin", MACHINE_LESS, MACHINE_LESS},
        {"engine: {runtime: /bin/sh}\n", "engine.runtime", MACHINE_GOOD, MACHINE_GOOD},
        {"engine: {runtime: /nowhere}\n", "engine.runtime", MACHINE_MISSING, MACHINE_MISSING},
        {"storages: [{name: disk, directory: /d}]\n", "storage disk", MACHINE_GOOD, MACHINE_GOOD},
        {"storages: [{name: nfs, directory: /n}]\n", "storage nfs", MACHINE_LESS, MACHINE_LESS},
        {"engine: {kind: fake}\n", "engine", MACHINE_GOOD, MACHINE_GOOD},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct machine_finding *found =
            judged(cases[i].text, good, COUNT_OF(good), cases[i].name);
        assert_non_null(found);
        assert_int_equal(found->state, cases[i].on_good);
        assert_true(found->found[0]);
        found = judged(cases[i].text, poor, COUNT_OF(poor), cases[i].name);
        assert_int_equal(found->state, cases[i].on_poor);
    }
    /* one of two ways is enough, unless the other one is asked for */
    static const struct {
        const char *text;
        enum machine_state state;
    } ways[] = {
        {"", MACHINE_GOOD},
        {"engine: {userNamespaces: {mode: required, images: metadata}}\n", MACHINE_GOOD},
        {"engine: {userNamespaces: {images: idmapped}}\n", MACHINE_LESS},
        {"engine: {userNamespaces: {mode: required, images: idmapped}}\n", MACHINE_MISSING},
    };
    for (size_t i = 0; i < COUNT_OF(ways); i++)
        assert_int_equal(
            judged(ways[i].text, layered, COUNT_OF(layered), "engine.userNamespaces")->state,
            ways[i].state);
    /* what nobody could try is not said to be missing; nothing is said of rights that nobody has */
    assert_int_equal(
        judged("engine: {network: {mode: private}}\n", NULL, 0, "engine.network")->state,
        MACHINE_UNKNOWN);
    assert_null(judged("", good, COUNT_OF(good), "right sysAdmin"));
    assert_null(judged("engine: {kind: fake}\n", good, COUNT_OF(good), "engine.network"));
}

/* Of each engine whose tasks are pods, whether the file that says where its cluster is is there. */
static void a_cluster_without_its_file_is_told(void **state)
{
    struct err err = {0};
    struct admin_config *config = ARENA_NEW(&arena, struct admin_config);
    (void)state;
    folder_put("kubeconfig", "{}");
    const char *text =
        arena_format(&arena,
                     "engines:\n- {kind: local}\n"
                     "- {name: lab, kind: kubernetes, kubernetes: {kubeconfig: %s}}\n"
                     "- {name: far, kind: kubernetes, kubernetes: {kubeconfig: /no/such}}\n"
                     "- {kind: kubernetes}\n",
                     in_folder("kubeconfig"));
    assert_int_equal(read_it(text, config, &err), 0);
    assert_true(config->is_local);
    assert_int_equal(config->cluster_count, 3);
    admin_config_try(config);
    const size_t count = admin_config_judge(config, &arena, findings, 0, ROOM);
    assert_true(count > 3);
    assert_string_equal(findings[0].name, "engine lab");
    assert_int_equal(findings[0].state, MACHINE_GOOD);
    assert_string_equal(findings[1].name, "engine far");
    assert_int_equal(findings[1].state, MACHINE_MISSING);
    assert_string_equal(findings[1].found, "/no/such: No such file or directory");
    assert_string_equal(findings[2].name, "engine kubernetes");
    assert_string_equal(findings[2].found, "as a pod of the cluster");
    assert_int_equal(
        judged("engine: {kind: kubernetes, name: one}\n", NULL, 0, "engine one")->state,
        MACHINE_GOOD);
}

static void a_relay_in_the_clear_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum machine_state state;
    } cases[] = {
        {"api: {webPorts: {listen: 'h:1'}}\n", MACHINE_GOOD},
        {"api: {webPorts: {listen: 'h:1', origin: 'http://*.localhost:1'}}\n", MACHINE_GOOD},
        {"api: {webPorts: {listen: 'h:1', origin: 'https://*.jobs.example.org'}}\n", MACHINE_GOOD},
        {"api: {webPorts: {listen: 'h:1', origin: 'http://*.jobs.example.org'}}\n", MACHINE_LESS},
        {"api: {webPorts: {listen: 'h:1', origin: 'http://*.localhost.example.org'}}\n"
         "engine: {kind: fake}\n",
         MACHINE_LESS},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(judged(cases[i].text, NULL, 0, "api.webPorts")->state, cases[i].state);
    assert_null(judged("", NULL, 0, "api.webPorts"));
}

static void a_storage_that_cannot_be_mounted_says_what_follows(void **state)
{
    (void)state;
    static const struct {
        const char *text, *meaning;
    } cases[] = {
        {"storages: [{name: nfs, directory: /n}]\n", "is root of the machine"},
        {"storages: [{name: nfs, directory: /n, rootSquash: true}]\n", "do not start"},
        {"engine: {userNamespaces: {mode: required}}\nstorages: [{name: nfs, directory: /n}]\n",
         "do not start"},
        {"engine: {userNamespaces: {mode: 'off'}}\n"
         "storages: [{name: nfs, directory: /n, rootSquash: true}]\n",
         "rootSquash has no effect"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_non_null(
            strstr(judged(cases[i].text, NULL, 0, "storage nfs")->meaning, cases[i].meaning));
}

static void storages_are_tried(void **state)
{
    (void)state;
    struct admin_config *config = ARENA_NEW(&arena, struct admin_config);
    config->storage_count = 1;
    config->storages[0] =
        (struct admin_storage){.name = "s", .directory = "/proc", .can_map = true};
    admin_config_try(config);
    assert_int_equal(config->storages[0].can_map, geteuid() != 0);
    assert_int_equal(config->storages[0].why_not[0] != '\0', geteuid() == 0);
}

static int begin(void **state)
{
    arena_init(&arena);
    return folder_setup(state);
}

static int end(void **state)
{
    arena_release(&arena);
    return folder_teardown(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_written_is_read),
    cmocka_unit_test(an_empty_file_has_the_defaults),
    cmocka_unit_test(what_is_no_configuration_is_told),
    cmocka_unit_test(what_is_wanted_is_held_against_what_is_there),
    cmocka_unit_test(a_cluster_without_its_file_is_told),
    cmocka_unit_test(a_relay_in_the_clear_is_told),
    cmocka_unit_test(a_storage_that_cannot_be_mounted_says_what_follows),
    cmocka_unit_test(storages_are_tried),
};
UNIT_FILE(tests, begin, end);
