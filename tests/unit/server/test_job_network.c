/* Whose network a job gets, and which jobs are refused. */
#include "unit.h"

#include <string.h>

#include "base/memory.h"
#include "engine/local/task.h"
#include "server/job_network.h"
#include "server/state.h"
#include "spec/spec.h"
#include "world.h"

static const char *const hpc[] = {"hpc"};

/* A server whose engines are these, and whose store is the world's. */
struct machine {
    struct engine_config engines[2];
    struct server_config config;
    struct server *server;
};

static void machine_make(struct machine *machine, struct world *world, enum network_mode mode,
                         bool is_auto)
{
    *machine = (struct machine){
        .engines = {{.kind = ENGINE_KIND_FAKE},
                    {.kind = ENGINE_KIND_LOCAL,
                     .network_mode = mode,
                     .local = {.rights = {[RIGHT_HOST_NETWORK] = {hpc, COUNT_OF(hpc)}}}}},
        .server = mem_zero(1, sizeof *machine->server)};
    machine->config.engines = machine->engines;
    machine->config.engine_count = COUNT_OF(machine->engines);
    machine->server->engines.config = machine->server->config = &machine->config;
    machine->server->is_network_auto = is_auto;
    machine->server->service = *world->service;
}

static int check(struct machine *machine, struct world *world, const struct spec *spec)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    world->err = (struct err){0};
    const int code = job_network_check(machine->server, reader, spec, &world->err);
    world->service->reader_put(world->service->context, reader);
    return code;
}

static void second_user_add(struct world *world)
{
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_ADD,
                                                         .user = {.name = "bob",
                                                                  .password_hash = "",
                                                                  .email = "",
                                                                  .extension_json = "{}"}}),
                     0);
}

static void a_job_is_refused_what_it_would_not_get(void **state)
{
    struct world *world = *state;
    static const struct {
        enum network_mode mode;
        bool is_auto;
        int alone, several; /* without the right */
    } cases[] = {
        {NETWORK_MODE_AUTO, false, 0, ERR_FORBIDDEN},
        {NETWORK_MODE_UNSET, true, 0, ERR_FORBIDDEN},
        {NETWORK_MODE_UNSET, false, 0, 0}, /* a store of before */
        {NETWORK_MODE_HOST, true, 0, 0},
        {NETWORK_MODE_PRIVATE, false, ERR_FORBIDDEN, ERR_FORBIDDEN},
    };
    struct spec_role cards = {.name = "ring", .wants_infiniband = true}, plain = {.name = "p"};
    const struct spec wishes[] = {
        {.virtual_cluster = "default", .wants_host_network = true},
        {.virtual_cluster = "default", .roles = &cards, .role_count = 1},
    };
    const struct spec none = {.virtual_cluster = "default", .roles = &plain, .role_count = 1};
    for (int are_several = 0; are_several < 2; are_several++) {
        if (are_several)
            second_user_add(world);
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            struct machine machine;
            machine_make(&machine, world, cases[i].mode, cases[i].is_auto);
            for (size_t k = 0; k < COUNT_OF(wishes); k++) {
                struct spec named = wishes[k];
                assert_int_equal(check(&machine, world, &wishes[k]),
                                 are_several ? cases[i].several : cases[i].alone);
                named.virtual_cluster = "hpc";
                assert_int_equal(check(&machine, world, &named), 0);
            }
            assert_int_equal(check(&machine, world, &none), 0);
            mem_free(machine.server);
        }
    }
}

static void the_refusal_says_how_to_get_it(void **state)
{
    struct world *world = *state;
    struct machine machine;
    struct spec_role cards = {.name = "ring", .wants_infiniband = true};
    struct spec spec = {.virtual_cluster = "lab", .roles = &cards, .role_count = 1};
    machine_make(&machine, world, NETWORK_MODE_PRIVATE, false);
    assert_int_equal(check(&machine, world, &spec), ERR_FORBIDDEN);
    assert_string_equal(world->err.path, "taskRoles.ring.extraContainerOptions.infiniband");
    assert_string_equal(world->err.text,
                        "needs the machine's network, and virtual cluster lab has not the right "
                        "hostNetwork: ask the operator to name it in engine.rights.hostNetwork");
    spec.wants_host_network = true;
    assert_int_equal(check(&machine, world, &spec), ERR_FORBIDDEN);
    assert_string_equal(world->err.path, "extras.hostNetwork");
    mem_free(machine.server);
}

static void assert_says(struct world *world, enum network_mode mode, bool is_auto, const char *word)
{
    struct machine machine;
    char text[200];
    machine_make(&machine, world, mode, is_auto);
    job_network_text(machine.server, text, sizeof text);
    assert_non_null(strstr(text, word));
    mem_free(machine.server);
}

static void people_are_told_whose_it_is(void **state)
{
    struct world *world = *state;
    char text[200];
    job_network_text(world->server, text, sizeof text);
    assert_string_equal(text, "no containers on this machine");
    assert_says(world, NETWORK_MODE_HOST, true, "for all jobs");
    assert_says(world, NETWORK_MODE_PRIVATE, true, "each job's own");
    assert_says(world, NETWORK_MODE_UNSET, false, "for all jobs");
    assert_says(world, NETWORK_MODE_AUTO, false, "as long as there is one account");
    second_user_add(world);
    assert_says(world, NETWORK_MODE_UNSET, true, "several accounts");
}

/* What an engine has found out about this machine is told, not what would be there without it. */
static void a_machine_without_them_says_so(void **state)
{
    struct world *world = *state;
    struct machine machine;
    struct local_engine local = {.networks_failure = {.code = ERR_UNSUPPORTED, .text = "no veth"}};
    char text[200];
    pthread_mutex_init(&local.networks_lock, NULL);
    second_user_add(world);
    machine_make(&machine, world, NETWORK_MODE_AUTO, false);
    machine.server->engines.items[1].engine = &local.engine;
    job_network_text(machine.server, text, sizeof text);
    assert_string_equal(text, "the machine's, for all jobs, though there are several accounts: "
                              "no veth");
    local.networks_failure = (struct err){0};
    job_network_text(machine.server, text, sizeof text);
    assert_non_null(strstr(text, "each new job's own"));
    pthread_mutex_destroy(&local.networks_lock);
    mem_free(machine.server);
}

/* A server of before this mode, whose operator has not chosen, goes on as it was. */
static void only_a_new_store_has_the_new_default(void **state)
{
    struct world *world = *state;
    assert_true(world->server->is_network_auto);
    world_stop(world);
    world_start(world);
    assert_true(world->server->is_network_auto);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_SETTING,
                                                         .setting = {"network.mode", TEXT("")}}),
                     0);
    world_stop(world);
    world_start(world);
    assert_false(world->server->is_network_auto);
}

/* The second one of such a server appears without the operator. */
static void accounts_elsewhere_are_several(void **state)
{
    struct world *world = *state;
    struct store_accounts accounts;
    world_stop(world);
    world->extra = "api: {ldap: {url: 'ldaps://127.0.0.1', base: 'dc=x'}}\n";
    world_start(world);
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    assert_int_equal(store_accounts(reader, &world->arena, &accounts, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    assert_true(accounts.are_several);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
/* By the Kubernetes engine's own key, which the error names. */
static void a_job_is_refused_what_its_pods_would_not_get(void **state)
{
    struct world *world = *state;
    struct machine machine;
    struct spec spec = {.virtual_cluster = "default", .wants_host_network = true};
    machine_make(&machine, world, NETWORK_MODE_HOST, false);
    machine.engines[0] = (struct engine_config){.kind = ENGINE_KIND_KUBERNETES};
    assert_int_equal(check(&machine, world, &spec), 0);
    struct pod_network *network = &machine.engines[0].kubernetes.network;
    network->mode = KUBE_NETWORK_POD;
    assert_int_equal(check(&machine, world, &spec), ERR_FORBIDDEN);
    assert_non_null(strstr(world->err.text, "engine.kubernetes.hostNetwork"));
    network->host_clusters = hpc;
    network->host_cluster_count = COUNT_OF(hpc);
    assert_int_equal(check(&machine, world, &spec), ERR_FORBIDDEN);
    spec.virtual_cluster = "hpc";
    assert_int_equal(check(&machine, world, &spec), 0);
    mem_free(machine.server);
}

static const struct CMUnitTest tests[] = {
    WORLD(a_job_is_refused_what_it_would_not_get),
    WORLD(a_job_is_refused_what_its_pods_would_not_get),
    WORLD(the_refusal_says_how_to_get_it),
    WORLD(people_are_told_whose_it_is),
    WORLD(a_machine_without_them_says_so),
    WORLD(only_a_new_store_has_the_new_default),
    WORLD(accounts_elsewhere_are_several),
};
UNIT_FILE(tests, world_begin, NULL);
