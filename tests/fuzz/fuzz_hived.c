/* Any bytes as HiveD's configuration, and, after a line of "---", as a request: no crash, no leak;
 * what is accepted keeps every invariant, and a gang that fits is placed and taken. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "doc/doc.h"
#include "hived/hived.h"
#include "hived_view.h"
#include "pod_request.h"

enum { LEAVES_MAX = 4096 }; /* larger clusters are good, but slow to try */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct doc *parse(struct text source, struct arena *arena, struct problems *problems)
{
    return source.at ? doc_parse(source, DOC_YAML, arena, problems) : NULL;
}

static bool is_large(const struct hived_config *config)
{
    uint64_t leaves = 0;
    for (uint32_t i = 0; i < config->cell_count; i++)
        leaves += config->types[config->cells[i].type].leaf_count;
    for (uint32_t i = 0; i < config->vc_count; i++)
        for (uint32_t k = 0; k < config->vcs[i].cell_count; k++)
            leaves += (uint64_t)config->types[config->vcs[i].cells[k].type].leaf_count *
                      config->vcs[i].cells[k].number;
    return leaves > LEAVES_MAX;
}

static void check(struct hived *hived)
{
    struct err err;
    assert(hived_check(hived, &err) == 0);
}

static void request_run(struct hived *hived, const struct doc *doc, struct arena *arena)
{
    struct hived_request request;
    struct hived_result result;
    struct err err;
    if (pod_request_read(doc, "t/pod", arena, &request, &err))
        return;
    request.leaves = 0;
    struct hived_ask ask = {.request = &request, .pod = "pod", .phase = HIVED_PREEMPTING};
    if (hived_schedule(hived, &ask, arena, &result, &err))
        return;
    assert(result.kind == HIVED_WAIT || result.kind == HIVED_BIND);
    if (result.kind == HIVED_BIND)
        assert(hived_commit_gang(hived, &request, &result.placement, 0, &err) == 0);
    check(hived);
    hived_group_end(hived, request.group);
    check(hived);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct problems problems;
    struct text source = {(const char *)data, size}, request = {NULL, 0};
    size_t cut = text_find(source, TEXT("\n---\n"));
    if (cut != SIZE_MAX) {
        request = (struct text){source.at + cut + 5, size - cut - 5};
        source.length = cut;
    }
    arena_init(&arena);
    problems_init(&problems, &arena);
    struct hived_config *config = hived_config_read(parse(source, &arena, &problems), &problems);
    assert((config != NULL) == (problems.error_count == 0));
    if (config && is_large(config)) {
        hived_config_free(config);
    } else if (config) {
        struct hived *hived = hived_new(config);
        check(hived);
        for (uint32_t i = 0; i < hived_node_count(hived); i++)
            hived_node_set(hived, hived_node_name(hived, i), true);
        check(hived);
        const struct doc *doc = parse(request, &arena, &problems);
        if (doc)
            request_run(hived, doc, &arena);
        hived_free(hived);
    }
    problems_release(&problems);
    arena_release(&arena);
    return 0;
}
