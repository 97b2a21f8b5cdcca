#include "unit.h"

#include <stdio.h>

#include "cli/kube_daemons.h"

#define TAINT "skep.internal/dedicated"

/* The pods of one set: `more` of their spec, and how many the cluster wants. */
static struct kube_daemons daemons_of(const char *more, int wanted, const char *taint)
{
    char text[1000];
    snprintf(text, sizeof text,
             "[{\"spec\": {\"template\": {\"spec\": {%s}}}, \"status\": "
             "{\"desiredNumberScheduled\": %d}}]",
             more, wanted);
    json_t *sets = json_loads(text, 0, NULL), *labels = json_pack("{ss}", "pool", "gpu");
    assert_non_null(sets);
    const struct kube_daemons daemons = kube_daemons_of(sets, labels, taint);
    json_decref(sets);
    json_decref(labels);
    return daemons;
}

#define ALL "\"tolerations\": [{\"operator\": \"Exists\"}]"

static void who_tolerates_every_taint_comes_to_the_node(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        size_t pods;
    } cases[] = {
        {ALL, 1},
        {"\"tolerations\": [{\"operator\": \"Exists\", \"effect\": \"NoSchedule\"}]", 1},
        {"\"tolerations\": [{\"operator\": \"Exists\", \"effect\": \"NoExecute\"}]", 0},
        {"\"tolerations\": [{\"key\": \"" TAINT "\", \"operator\": \"Exists\"}]", 1},
        {"\"tolerations\": [{\"key\": \"other\", \"operator\": \"Exists\"}]", 0},
        {"\"tolerations\": []", 0},
        {"", 0},
        {ALL ", \"nodeSelector\": {\"pool\": \"gpu\"}", 1},
        {ALL ", \"nodeSelector\": {\"pool\": \"cpu\"}", 0},
        {ALL ", \"nodeSelector\": {\"zone\": \"a\"}", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(daemons_of(cases[i].spec, 3, TAINT).pods, cases[i].pods);
    assert_int_equal(daemons_of("", 3, NULL).pods, 1); /* the node has no taint */
    assert_int_equal(daemons_of(ALL, 0, TAINT).pods, 0);
}

#define ASKS(what, cpu, memory)                                                                    \
    "\"resources\": {\"" what "\": {\"cpu\": \"" cpu "\", \"memory\": \"" memory "\"}}"

static void what_its_containers_request_is_summed_up(void **state)
{
    (void)state;
    struct kube_daemons daemons =
        daemons_of(ALL ", \"containers\": [{" ASKS("requests", "100m", "100Mi") "}, {" ASKS(
                       "limits", "1", "1Gi") "}, {}]",
                   3, TAINT);
    assert_int_equal(daemons.cpu_milli, 1100);
    assert_int_equal(daemons.memory, (100 << 20) + (1 << 30));
    daemons =
        daemons_of(ALL ", \"containers\": [{" ASKS(
                       "requests", "100m",
                       "100Mi") "}], "
                                "\"initContainers\": [{" ASKS(
                                    "requests", "50m",
                                    "1Gi") "}, "
                                           "{\"restartPolicy\": \"Always\", " ASKS(
                                               "requests", "10m",
                                               "1Mi") "}, "
                                                      "{" ASKS("requests", "300m", "1Mi") "}]",
                   3, TAINT);
    assert_int_equal(daemons.cpu_milli, 310);
    assert_int_equal(daemons.memory, 1 << 30);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_tolerates_every_taint_comes_to_the_node),
    cmocka_unit_test(what_its_containers_request_is_summed_up),
};

UNIT_FILE(tests, NULL, NULL);
