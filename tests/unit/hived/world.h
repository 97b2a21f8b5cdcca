/* world.h — small clusters for the tests of hived. */
#ifndef TEST_HIVED_WORLD_H
#define TEST_HIVED_WORLD_H
#include "base/arena.h"
#include "base/err.h"
#include "hived/hived.h"

struct buf;

struct world {
    struct arena arena;
    struct hived *hived;
};

/* A configuration from YAML; on errors NULL and the problems printed into the arena (*problems). */
struct hived_config *world_config(struct arena *arena, const char *yaml, const char **problems);

/* For tests of configurations: each has an arena as its state. */
int arena_setup(void **state);
int arena_teardown(void **state);
#define ARENA_TEST(test) cmocka_unit_test_setup_teardown(test, arena_setup, arena_teardown)

/* It must be accepted; `says` must stand in the problems (warnings), NULL: there are none. */
struct hived_config *world_config_good(struct arena *arena, const char *yaml, const char *says);
/* It must be refused, and `says` stand in the problems. */
void world_config_wrong(struct arena *arena, const char *yaml, const char *says);

/* All nodes are healthy. */
void world_init(struct world *world, const char *yaml);
/* With another function in place of hived_new. */
void world_init_of(struct world *world, const char *yaml,
                   struct hived *new (struct hived_config *config));
void world_release(struct world *world);

/* One gang of `pods` pods of `leaves` leaves; committed whole when it binds. */
struct ask {
    const char *group, *vc, *pin, *type, *within;
    int priority;
    uint32_t pods, leaves;
    uint32_t more_pods, more_leaves; /* a second member */
    bool is_lazy, is_filtering, is_not_committed;
    const struct hived_scope *scope;
    int64_t now_ms;
};
struct hived_result world_ask(struct world *world, struct ask ask);

/* The error's code of a request that must fail. */
int world_refuse(struct world *world, struct ask ask);

/* What hived_inspect_… writes; NULL: it knows no such name. */
const char *world_inspect(struct world *world, void (*write)(struct hived *, struct buf *));
const char *world_inspect_named(struct world *world,
                                bool (*write)(struct hived *, const char *, struct buf *),
                                const char *name);

/* Their groups do: leaves, pods, states. */
bool world_groups_differ(struct hived *a, struct hived *b);
/* What readers see of a mirror that is up to date differs from a copy's? */
const char *world_mirror_differs(struct hived *mirror, const struct hived *hived);

/* The start of a configuration: a DUO of two BOXes with a pin in it, and a BOX by itself. */
#define TYPES                                                                                      \
    "physicalCluster:\n"                                                                           \
    "  cellTypes:\n"                                                                               \
    "    PAIR: {childCellType: G, childCellNumber: 2}\n"                                           \
    "    BOX: {childCellType: PAIR, childCellNumber: 2, isNodeLevel: true}\n"                      \
    "    DUO: {childCellType: BOX, childCellNumber: 2}\n"
#define CELLS                                                                                      \
    "  physicalCells:\n"                                                                           \
    "  - cellType: DUO\n"                                                                          \
    "    cellChildren:\n"                                                                          \
    "    - {cellAddress: a, pinnedCellId: pin}\n"                                                  \
    "    - {cellAddress: b}\n"                                                                     \
    "  - {cellType: BOX, cellAddress: c}\n"

#endif
