#include "bench.h"
#include "base/buf.h"
#include "base/err.h"
#include "doc/doc.h"
#include "hived/hived.h"
#include "placement/hived.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

const char bench_four_nodes[] =
    "physicalCluster:\n"
    "  skuTypes: {V100: {gpu: 1, cpu: 4, memory: 1024Mi}}\n"
    "  cellTypes: {NODE: {childCellType: V100, childCellNumber: 4, isNodeLevel: true}}\n"
    "  physicalCells: [{cellType: NODE, cellAddress: n0}, {cellType: NODE, cellAddress: n1},\n"
    "                  {cellType: NODE, cellAddress: n2}, {cellType: NODE, cellAddress: n3}]\n"
    "virtualClusters:\n"
    "  default: {virtualCells: [{cellType: NODE, cellNumber: 2}]}\n"
    "  other: {virtualCells: [{cellType: NODE, cellNumber: 2}]}\n";

void bench_init(struct bench *bench, const char *yaml)
{
    struct err err = {0};
    arena_init(&bench->arena);
    const struct doc *doc = NULL;
    if (yaml) {
        struct problems problems;
        problems_init(&problems, &bench->arena);
        doc = doc_parse(text_of(yaml), DOC_YAML, &bench->arena, &problems);
        problems_release(&problems);
    }
    bench->placer = placer_hived_new(doc, &err);
    if (!bench->placer)
        fail_msg("%s: %s", err.path, err.text);
}

void bench_check(struct bench *bench)
{
    struct err err = {0};
    struct hived *hived = placer_hived_state(bench->placer);
    if (hived && hived_check(hived, &err))
        fail_msg("%s", err.text);
}

void bench_release(struct bench *bench)
{
    bench_check(bench);
    bench->placer->ops->free(bench->placer);
    arena_release(&bench->arena);
}

int bench_node(struct bench *bench, uint32_t id, uint32_t cpu, uint32_t gpu, bool is_healthy)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", id);
    struct node_facts node = {.name = name,
                              .cpu = cpu,
                              .memory_mib = 1024 * cpu,
                              .gpu_count = gpu,
                              .gpu_type = gpu ? "V100" : "",
                              .is_healthy = is_healthy};
    return bench->placer->ops->node_set(bench->placer, (struct node_id){id}, &node, NULL);
}

struct placement_result bench_place(struct bench *bench, const struct placement_request *request,
                                    bool is_taken)
{
    struct placement_result result;
    struct err err = {0};
    int code = bench->placer->ops->place(bench->placer, request, &bench->arena, &result, &err);
    if (code)
        fail_msg("%s: %s", err.path, err.text);
    if (result.kind == PLACEMENT_BIND && is_taken &&
        bench->placer->ops->commit(bench->placer, request, result.slots, result.slot_count, false,
                                   &err))
        fail_msg("%s: %s", err.path, err.text);
    bench_check(bench);
    return result;
}

struct placement_request bench_ask(struct bench *bench, const char *group, uint32_t count,
                                   uint32_t gpu, uint32_t cpu)
{
    struct placement_member *member = ARENA_NEW(&bench->arena, struct placement_member);
    *member = (struct placement_member){.count = count,
                                        .gpu = gpu,
                                        .cpu = cpu,
                                        .memory_mib = 64,
                                        .sku_type = "",
                                        .within_one_cell = ""};
    return (struct placement_request){.group = group,
                                      .virtual_cluster = "default",
                                      .priority = 10,
                                      .pinned_cell_id = "",
                                      .members = member,
                                      .member_count = 1,
                                      .may_preempt = true};
}

const char *bench_cells(struct bench *bench, struct placer *placer)
{
    cleanup_buf struct buf out = BUF_INIT;
    hived_inspect_cluster(placer_hived_state(placer), &out);
    hived_inspect_groups(placer_hived_state(placer), &out);
    return arena_copy(&bench->arena, buf_as_text(&out));
}
