/* Every value of a full job file, replaced by every kind of wrong value, one at a time and in
 * pairs: the reader must neither crash nor accept what it cannot encode.
 *
 * Covers: src/spec/v1.c, src/spec/v2.c, src/spec/codec.c */
#include "parse.h"
#include "unit.h"

#include <assert.h>

#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "doc/doc.h"

static const char full_v2[] =
    "{\"protocolVersion\": 2, \"name\": \"full\", \"type\": \"job\", \"version\": 1,"
    " \"prerequisites\": [{\"type\": \"dockerimage\", \"name\": \"i\", \"uri\": \"u\","
    " \"auth\": {\"username\": \"a\", \"password\": \"<% $secrets.p %>\"}},"
    " {\"type\": \"data\", \"name\": \"d\", \"uri\": [\"x\"], \"require\": [\"s\"],"
    " \"plugin\": \"com.microsoft.pai.runtimeplugin.cmd\","
    " \"callbacks\": [{\"event\": \"taskStarts\", \"commands\": [\"<% $data.uri[0] %>\"]}]},"
    " {\"type\": \"script\", \"name\": \"s\", \"uri\": \"y\"}],"
    " \"parameters\": {\"a\": [1, {\"b\": true}]}, \"secrets\": {\"p\": \"w\", \"q\": [1]},"
    " \"taskRoles\": {\"w\": {\"instances\": 2, \"dockerImage\": \"i\", \"data\": \"d\","
    " \"script\": \"s\", \"completion\": {\"minFailedInstances\": 1,"
    " \"minSucceededInstances\": 2}, \"taskRetryCount\": 1, \"prerequisites\": [\"d\"],"
    " \"extraContainerOptions\": {\"shmMB\": 1, \"infiniband\": true},"
    " \"resourcePerInstance\": {\"cpu\": 1, \"memoryMB\": 2, \"gpu\": 3, \"ports\": {\"a\": 1}},"
    " \"commands\": [\"x <% $parameters.a[1].b %> <% $secrets.p %> <% $script.uri %>\"]},"
    " \"v\": {\"dockerImage\": \"i\", \"commands\": [\"x\"],"
    " \"resourcePerInstance\": {\"cpu\": 1, \"memoryMB\": 2, \"gpu\": 3}}},"
    " \"deployments\": [{\"name\": \"p\", \"taskRoles\": {\"w\": {\"preCommands\": [\"a\"],"
    " \"postCommands\": [\"b\"]}}}],"
    " \"defaults\": {\"virtualCluster\": \"vc\", \"deployment\": \"p\"},"
    " \"extras\": {\"submitFrom\": \"t\", \"gangAllocation\": true,"
    " \"storages\": [{\"name\": \"n\", \"mountPath\": \"m\"}],"
    " \"hivedScheduler\": {\"jobPriorityClass\": \"prod\", \"lazyPreemptionEnable\": true,"
    " \"taskRoles\": {\"w\": {\"skuType\": \"k\", \"affinityGroupName\": \"g\","
    " \"withinOneCell\": \"r\"}, \"v\": {\"pinnedCellId\": \"c\"}}},"
    " \"com.microsoft.pai.runtimeplugin\": [{\"plugin\": \"ssh\", \"taskroles\": [\"w\"],"
    " \"parameters\": {\"jobssh\": true, \"sshbarrier\": true, \"sshbarrierTimeout\": 1}},"
    " {\"plugin\": \"cmd\", \"failurePolicy\": \"ignore\", \"parameters\":"
    " {\"preCommands\": [\"a\"]}}, {\"plugin\": \"teamwise_storage\", \"parameters\":"
    " {\"storageConfigNames\": [\"x\"]}}],"
    " \"jobStatusChangeNotification\": {\"running\": true}, \"timeLimitSeconds\": 1,"
    " \"debug\": false, \"hang\": {\"afterSeconds\": 1, \"retry\": true}}}";

static const char full_v1[] =
    "{\"jobName\": \"j\", \"image\": \"i\", \"authFile\": \"a\", \"dataDir\": \"d\","
    " \"codeDir\": \"c\", \"outputDir\": \"o\", \"virtualCluster\": \"v\", \"gpuType\": \"g\","
    " \"killAllOnCompletedTaskNumber\": 1, \"retryCount\": -1, \"isDebug\": true,"
    " \"jobEnvs\": {\"A\": \"b\", \"isDebug\": true}, \"extras\": {\"debug\": true},"
    " \"taskRoles\": [{\"name\": \"r\", \"taskNumber\": 2, \"cpuNumber\": 1,"
    " \"memoryMB\": 200, \"shmMB\": 100, \"gpuNumber\": 1, \"command\": \"x\","
    " \"portList\": [{\"label\": \"l\", \"beginAt\": 100, \"portNumber\": 2},"
    " {\"label\": \"m\", \"beginAt\": 200}], \"minFailedTaskCount\": 1,"
    " \"minSucceededTaskCount\": 2}, {\"name\": \"q\", \"command\": \"y\"}]}";

static const char *const values[] = {
    "null",
    "true",
    "false",
    "-2147483649",
    "-3",
    "0",
    "1",
    "3",
    "99999999999",
    "1.5",
    "\"\"",
    "\"x\"",
    "\"0\"",
    "\"w\"",
    "\"../x\"",
    "\"a\\u0000b\"",
    "[]",
    "[1]",
    "[\"x\", \"w\"]",
    "[{}]",
    "{}",
    "{\"x\": 1}",
    "{\"w\": {\"x\": []}}",
    NULL,
};

struct mutation {
    const struct doc *target, *other; /* nodes to be replaced */
    const char *value, *other_value;  /* NULL: the node is left out */
    struct json_writer json;
};

static void mutated_write(struct mutation *mutation, const struct doc *doc)
{
    if (doc == mutation->target || doc == mutation->other) {
        const char *value = doc == mutation->target ? mutation->value : mutation->other_value;
        json_raw(&mutation->json, text_of(value));
    } else if (doc->kind == DOC_MAP) {
        json_object(&mutation->json);
        for (size_t i = 0; i < doc->as.map.count; i++) {
            const struct doc_entry *entry = &doc->as.map.entries[i];
            if ((entry->value == mutation->target && !mutation->value) ||
                (entry->value == mutation->other && !mutation->other_value))
                continue;
            json_key(&mutation->json, entry->key.at);
            mutated_write(mutation, entry->value);
        }
        json_object_end(&mutation->json);
    } else if (doc->kind == DOC_LIST) {
        json_array(&mutation->json);
        for (size_t i = 0; i < doc->as.list.count; i++)
            if (doc->as.list.items[i] != mutation->target || mutation->value)
                if (doc->as.list.items[i] != mutation->other || mutation->other_value)
                    mutated_write(mutation, doc->as.list.items[i]);
        json_array_end(&mutation->json);
    } else {
        struct buf scalar = BUF_INIT;
        assert_int_equal(doc_to_json(doc, 1 << 16, &scalar), 0);
        json_raw(&mutation->json, buf_as_text(&scalar));
        buf_release(&scalar);
    }
}

struct nodes {
    const struct doc *items[400];
    size_t count;
};

static void nodes_gather(struct nodes *nodes, const struct doc *doc)
{
    assert_true(nodes->count < COUNT_OF(nodes->items));
    nodes->items[nodes->count++] = doc;
    for (size_t i = 0; i < doc_count(doc); i++)
        nodes_gather(nodes,
                     doc->kind == DOC_LIST ? doc->as.list.items[i] : doc->as.map.entries[i].value);
}

static bool mutated_parse(struct mutation *mutation, const struct doc *root)
{
    struct buf text = BUF_INIT, bytes = BUF_INIT;
    struct parse p;
    json_init(&mutation->json, &text);
    mutated_write(mutation, root);
    parse_text(&p, buf_as_text(&text));
    bool is_accepted = p.spec != NULL;
    assert_int_equal(is_accepted, p.problems.error_count == 0);
    if (is_accepted) {
        struct err err;
        spec_encode(p.spec, &bytes);
        struct spec *copy = spec_decode(buf_as_text(&bytes), &err);
        assert_non_null(copy);
        spec_free(copy);
    }
    parse_free(&p);
    buf_release(&text);
    buf_release(&bytes);
    return is_accepted;
}

static void mutate(const char *source, unsigned pair_step)
{
    struct arena arena;
    struct problems problems;
    struct nodes nodes = {0};
    unsigned accepted = 0, refused = 0;
    arena_init(&arena);
    problems_init(&problems, &arena);
    const struct doc *root = doc_parse(text_of(source), DOC_JSON, &arena, &problems);
    assert_non_null(root);
    assert_int_equal(problems.error_count, 0);
    nodes_gather(&nodes, root);
    assert(nodes.count > 1);
    for (size_t i = 1; i < nodes.count; i++)
        for (size_t j = 0; j < COUNT_OF(values); j++) {
            struct mutation one = {.target = nodes.items[i], .value = values[j]};
            *(mutated_parse(&one, root) ? &accepted : &refused) += 1;
        }
    for (size_t i = 0; i < nodes.count * nodes.count; i += pair_step) {
        struct mutation two = {.target = nodes.items[1 + i % (nodes.count - 1)],
                               .value = values[i % COUNT_OF(values)],
                               .other = nodes.items[1 + i / nodes.count % (nodes.count - 1)],
                               .other_value = values[(i / 7) % COUNT_OF(values)]};
        mutated_parse(&two, root);
    }
    assert_true(accepted > 100 && refused > 500);
    problems_release(&problems);
    arena_release(&arena);
}

static void test_v2(void **state)
{
    (void)state;
    mutate(full_v2, 11);
}

static void test_v1(void **state)
{
    (void)state;
    mutate(full_v1, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_v2),
    cmocka_unit_test(test_v1),
};
UNIT_FILE(tests, NULL, NULL);
