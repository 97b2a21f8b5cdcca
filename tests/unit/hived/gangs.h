/* gangs.h — clusters of two kinds of quota, for the tests of gangs. */
#ifndef TESTS_HIVED_GANGS_H
#define TESTS_HIVED_GANGS_H
#include "unit.h"

#include "world.h"

#define CLUSTER                                                                                    \
    "physicalCluster:\n"                                                                           \
    "  cellTypes:\n"                                                                               \
    "    PAIR: {childCellType: G, childCellNumber: 2}\n"                                           \
    "    QUAD: {childCellType: PAIR, childCellNumber: 2}\n"                                        \
    "    BOX: {childCellType: QUAD, childCellNumber: 2, isNodeLevel: true}\n"                      \
    "    DUO: {childCellType: BOX, childCellNumber: 2}\n"                                          \
    "    ROW: {childCellType: DUO, childCellNumber: 2}\n"                                          \
    "  physicalCells:\n"                                                                           \
    "  - cellType: ROW\n"                                                                          \
    "    cellChildren:\n"                                                                          \
    "    - {cellChildren: [{cellAddress: a0}, {cellAddress: a1}], pinnedCellId: pin}\n"            \
    "    - {cellChildren: [{cellAddress: a2}, {cellAddress: a3}]}\n"                               \
    "  - cellType: ROW\n"                                                                          \
    "    cellChildren:\n"                                                                          \
    "    - {cellChildren: [{cellAddress: b0}, {cellAddress: b1}]}\n"                               \
    "    - {cellChildren: [{cellAddress: b2}, {cellAddress: b3}]}\n"

#define TWO_VCS                                                                                    \
    CLUSTER "virtualClusters:\n"                                                                   \
            "  red: {virtualCells: [{cellType: ROW.DUO.BOX, cellNumber: 3}]}\n"                    \
            "  blue: {virtualCells: [{cellType: ROW.DUO, cellNumber: 1}, {cellType: "              \
            "ROW.DUO.BOX, cellNumber: 2}]}\n"

#define SMALL                                                                                      \
    "physicalCluster:\n"                                                                           \
    "  cellTypes: {N: {childCellType: G, childCellNumber: 2, isNodeLevel: true}}\n"                \
    "  physicalCells: [{cellType: N, cellAddress: b}, {cellType: N, cellAddress: a}]\n"            \
    "virtualClusters: {x: {virtualCells: [{cellType: N, cellNumber: 1}]}, y: {}}\n"

static inline bool is_guaranteed(struct world *world, const char *group)
{
    struct hived_group_view view;
    assert_true(hived_group_find(world->hived, group, &view));
    return view.has_virtual;
}

#endif
