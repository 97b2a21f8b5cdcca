/* config.h — HiveD's configuration: cell types, physical cells, virtual clusters, SKUs.
 *
 * Pure. Read from a document tree with HiveD's own YAML keys, or filled by hived_config_auto from a
 * node inventory. Every rule that HiveD enforces or only documents is checked, and each problem
 * names its place. A configuration is immutable once finished, owns its memory, and is shared by
 * the copies of a scheduler.
 *
 * Source of the rules: HiveD (OSDI'20) and hivedscheduler 0.3.4's configuration; docs/rfc/0003.
 */
#ifndef HIVED_CONFIG_H
#define HIVED_CONFIG_H
#include "base/arena.h"
#include "base/map.h"
#include "doc/problem.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct doc;
struct problems;

#define HIVED_NONE UINT32_MAX

enum {
    HIVED_LEVELS_MAX = 16,      /* of one chain, the leaf included */
    HIVED_TYPES_MAX = 4096,     /* cell types, leaf types included */
    HIVED_LEAVES_MAX = 1 << 20, /* of the physical cluster, and of all virtual clusters together */
    HIVED_NODE_LEAVES_MAX = 4096,
    HIVED_VCS_MAX = 4096,
    HIVED_INDEX_MAX = 65535, /* device index of a leaf */
    HIVED_NAME_MAX = 253,    /* of types, nodes, virtual clusters, pinned ids */
};

struct hived_type {
    const char *name;
    const char *child_name; /* NULL: a leaf type */
    uint32_t child_number;
    bool is_node_level;
    struct place place;
    /* derived by hived_config_finish */
    uint32_t child;      /* index, HIVED_NONE for a leaf type */
    uint32_t leaf_type;  /* index */
    uint32_t leaf_count; /* leaves below; 1 for a leaf type */
    uint8_t level;       /* 1: leaf */
    uint8_t node_level;  /* level of the node among this type and those below; 0: none */
    uint8_t node_level_count;
};

/* A physical cell as listed. Children not listed are made by default. */
struct hived_cell_spec {
    const char *type_name; /* top only; NULL elsewhere */
    const char *address;   /* own part; NULL: by default */
    const char *pin;       /* pinnedCellId, or NULL */
    struct hived_cell_spec *children;
    uint32_t child_count;
    struct place place;
    uint32_t type; /* derived */
};

struct hived_vc_cell {
    const char *path; /* "ROW.DUO.BOX" */
    uint32_t number;
    struct place place;
    uint32_t chain_type, type; /* derived */
};

struct hived_vc_pin {
    const char *id;
    struct place place;
    const struct hived_cell_spec *cell; /* derived */
    uint32_t chain_type;                /* derived */
};

struct hived_vc_spec {
    const char *name;
    struct hived_vc_cell *cells;
    uint32_t cell_count;
    struct hived_vc_pin *pins;
    uint32_t pin_count;
    struct place place;
};

struct hived_sku {
    const char *leaf_type;
    uint32_t gpu, cpu;
    uint64_t memory_mib;
};

struct hived_config {
    struct arena arena;
    _Atomic uint32_t users;   /* copies of a scheduler, perhaps in other threads, share it */
    struct hived_type *types; /* in the order written, leaf types behind */
    uint32_t type_count;
    struct hived_cell_spec *cells;
    uint32_t cell_count;
    struct hived_vc_spec *vcs;
    uint32_t vc_count;
    struct hived_sku *skus;
    uint32_t sku_count;
    struct text_map type_index, sku_index; /* by their names, of many, once it is finished */
};

/* Read a whole hivedscheduler configuration, or a service configuration whose `hivedscheduler`
 * holds one (as a map, or as text under `config`, as OpenPAI has it). NULL when `problems` holds an
 * error, of the document itself too. Keys that HiveD does not know are ignored. */
struct hived_config *hived_config_read(const struct doc *doc, struct problems *problems);

/* For configurations made by hand: an empty one; fill it in its arena, then finish. False: errors
 * were added to `problems`. */
struct hived_config *hived_config_new(void);
bool hived_config_finish(struct hived_config *config, struct problems *problems);
/* The same for one that a program made, and knows to be right: the types of its cells and quotas
 * are given by index, and of types only levels and leaves are derived. */
void hived_config_derive(struct hived_config *config);
/* One more user; hived_config_free gives one up and frees with the last. */
void hived_config_share(struct hived_config *config);
void hived_config_free(struct hived_config *config);

/* Index of a cell type or leaf type; HIVED_NONE. */
uint32_t hived_config_type(const struct hived_config *config, const char *name);

/* The SKU of a leaf type, or NULL: one GPU a leaf, CPU and memory not counted. */
const struct hived_sku *hived_config_sku(const struct hived_config *config, const char *leaf_type);

#endif
