/* An engine as the configuration wants it. */
#include "unit.h"

#include <string.h>

#include "base/err.h"
#include "server/config.h"
#include "server/engines.h"

static void never(void *context, const struct engine_event *event)
{
    (void)context;
    (void)event;
    fail_msg("an engine that cannot be opened speaks");
}

/* Only where no skep-init is named it is looked for beside skepd. */
static void a_named_init_is_taken(void **state)
{
    static const struct {
        const char *init_path;
        bool is_missing;
    } cases[] = {{"/bin/true", false}, {"/nowhere/skep-init", true}, {NULL, true}};
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct engine_config config = {.kind = ENGINE_KIND_LOCAL,
                                       .local = {.init_path = cases[i].init_path}};
        struct engine *engine = NULL;
        struct err err = {0};
        /* a data directory in which nothing can be made: the engine is never opened */
        assert_true(engine_of_config(&config, "/dev/null/data", "",
                                     (struct engine_sink){.post = never}, &engine, &err) < 0);
        assert_int_equal(strstr(err.text, "is not beside skepd") != NULL, cases[i].is_missing);
    }
}

/* What is wrong with a cluster's configuration is said before its API server is asked. */
static void a_cluster_must_be_named_well(void **state)
{
    static const struct {
        struct engine_kubernetes_config cluster;
        const char *says;
    } cases[] = {
        {{.kubeconfig = "/nowhere/kubeconfig", .init_image = "i"}, "/nowhere/kubeconfig"},
        {{.init_image = "i"}, "KUBERNETES_SERVICE_HOST"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct engine_config config = {.kind = ENGINE_KIND_KUBERNETES,
                                       .kubernetes = cases[i].cluster};
        struct engine *engine = NULL;
        struct err err = {0};
        assert_true(engine_of_config(&config, "/dev/null/data", "",
                                     (struct engine_sink){.post = never}, &engine, &err) < 0);
        assert_non_null(strstr(err.text, cases[i].says));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_cluster_must_be_named_well),
    cmocka_unit_test(a_named_init_is_taken),
};
UNIT_FILE(tests, NULL, NULL);
