/* nodes, pardon, cordon, drain, uncordon, exits, vc, cells */
#include "base/memory.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/nodes.h"
#include "cli/print.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- nodes ---- */

int run_nodes(struct cli *cli)
{
    struct client *client = cli_client(cli);
    json_auto_t *json = NULL;
    if (!client)
        return EXIT_REFUSED;
    int code = client_get(client, "/api/v2/nodes", &json);
    const json_t *data = json_object_get(json, "data");
    if (!code && !print_raw(cli, data)) {
        cleanup_buf struct buf out = BUF_INIT;
        nodes_print(&out, data, cli->output == OUTPUT_WIDE, cli->has_colours);
        print_flush(&out);
    }
    return code;
}

int run_pardon(struct cli *cli)
{
    return each_argument(cli, &(struct each_call){node_path, "PUT", "/pardon", "{}", "pardoned"});
}

/* The reason of --reason is the same for all of them. */
static int nodes_close(struct cli *cli, const char *rest, const char *done)
{
    const char *reason = cli_value(cli, "reason");
    json_auto_t *body = json_object();
    if (reason)
        json_object_set_new(body, "reason", json_string(reason));
    char *text = json_dumps(body, JSON_COMPACT);
    int code = each_argument(cli, &(struct each_call){node_path, "PUT", rest, text, done});
    free(text);
    return code;
}

int run_cordon(struct cli *cli)
{
    return nodes_close(cli, "/cordon", "cordoned");
}

int run_drain(struct cli *cli)
{
    return nodes_close(cli, "/drain", "draining");
}

int run_uncordon(struct cli *cli)
{
    return each_argument(cli,
                         &(struct each_call){node_path, "PUT", "/uncordon", "{}", "uncordoned"});
}

/* ---- exit codes ---- */

static const char *exit_heads[] = {"CODE", "NAME", "TYPE", "BEHAVIOR", "FROM", "REASON", NULL};

static void exit_row(struct table *table, const json_t *row)
{
    table_format(table, "%lld", (long long)field_int(row, "code"));
    table_cell(table, field_text(row, "phrase"));
    table_cell(table, field_text(row, "type"));
    table_cell(table, field_text(row, "behavior"));
    table_cell(table, json_is_true(json_object_get(row, "operator")) ? "operator" : "built in");
    table_cell(table, field_text(row, "reason"));
}

/* The rows of one code, or all of them. */
static json_t *exits_of(const json_t *rows, const int64_t *wanted)
{
    json_t *found = json_array(), *row;
    size_t i;
    json_array_foreach ((json_t *)rows, i, row)
        if (!wanted || field_int(row, "code") == *wanted)
            json_array_append(found, row);
    return found;
}

int run_exits(struct cli *cli)
{
    struct client *client = cli_client(cli);
    int64_t wanted = 0;
    if (!client)
        return EXIT_REFUSED;
    if (cli->argument_count && !text_to_int64(text_of(cli->arguments[0]), &wanted))
        return cli_fail(EXIT_USAGE, "exits: '%s' is no exit code", cli->arguments[0]);
    json_auto_t *json = NULL;
    int code = client_get(client, "/api/v2/exit-specs", &json);
    json_t *rows = exits_of(json, cli->argument_count ? &wanted : NULL);
    if (!code && !json_array_size(rows))
        code = cli_fail(EXIT_REFUSED, "the table has no row for exit code %lld", (long long)wanted);
    if (!code && !print_raw(cli, rows)) {
        cleanup_table struct table table;
        cleanup_buf struct buf out = BUF_INIT;
        json_t *row;
        size_t i;
        table_init(&table, cli->has_colours, exit_heads);
        json_array_foreach (rows, i, row)
            exit_row(&table, row);
        table_print(&table, &out);
        print_flush(&out);
    }
    json_decref(rows);
    return code;
}

/* ---- virtual clusters ---- */

static const char *cluster_heads[] = {"VC",  "SKU",           "TOTAL", "USED",
                                      "BAD", "OPPORTUNISTIC", "STATE", NULL};

/* "open", or "closed by alice since …: why". */
static void cluster_state(struct table *table, const json_t *cluster)
{
    const char *by = field_text(cluster, "closedBy"), *why = field_text(cluster, "closedReason");
    cleanup_buf struct buf text = BUF_INIT;
    if (by) {
        buf_format(&text, "closed by %s since ", by);
        print_time(&text, field_int(cluster, "closedTime"));
        buf_format(&text, "%s%s", why ? ": " : "", why ? why : "");
    }
    table_cell(table, by ? buf_cstr(&text) : "open");
}

static void cluster_rows(struct table *table, const char *name, const json_t *cluster)
{
    const char *sku;
    json_t *numbers, *skus = json_object_get(cluster, "skus");
    if (!json_object_size(skus)) {
        const json_t *total = json_object_get(cluster, "resourcesTotal");
        const json_t *used = json_object_get(cluster, "resourcesUsed");
        table_cell(table, name);
        table_cell(table, "GPU");
        table_format(table, "%lld", (long long)field_int(total, "gpu"));
        table_format(table, "%lld", (long long)field_int(used, "gpu"));
        table_cell(table, NULL);
        table_cell(table, NULL);
        cluster_state(table, cluster);
    }
    json_object_foreach (skus, sku, numbers) {
        table_cell(table, name);
        table_cell(table, sku);
        table_format(table, "%lld", (long long)field_int(numbers, "total"));
        table_format(table, "%lld", (long long)field_int(numbers, "used"));
        table_format(table, "%lld", (long long)field_int(numbers, "bad"));
        table_format(table, "%lld", (long long)field_int(numbers, "opportunistic"));
        cluster_state(table, cluster);
    }
}

/* ---- cells, as trees ---- */

struct tree {
    struct buf *out, prefix;
    bool has_colours;
};

static const char *priority_word(int64_t priority, struct buf *text)
{
    buf_clear(text);
    if (priority == -1)
        buf_string(text, "opportunistic");
    else if (priority < -1) /* a virtual cell that nobody has, on a physical one in use */
        buf_string(text, "by opportunistic jobs");
    else
        buf_format(text, "priority %lld", (long long)priority);
    return buf_cstr(text);
}

struct leaves {
    unsigned total, used, opportunistic, free, bad; /* free: not bad */
};

static void leaves_count(const json_t *cell, struct leaves *leaves)
{
    const json_t *children = json_object_get(cell, "cellChildren");
    const char *state = field_text(cell, "cellState"),
               *health = field_text(cell, "cellHealthiness");
    for (size_t i = 0; i < json_array_size(children); i++)
        leaves_count(json_array_get(children, i), leaves);
    if (json_array_size(children))
        return;
    bool is_bad = health && strcmp(health, "Healthy") != 0;
    leaves->total++;
    leaves->bad += is_bad;
    int64_t priority = field_int(cell, "cellPriority");
    if (!state || strcmp(state, "Free") == 0 || priority < -1)
        leaves->free += !is_bad;
    else if (priority == -1)
        leaves->opportunistic++;
    else
        leaves->used++;
}

/* "2 of 4 used, 2 free, 1 bad", "2 of 4 V100 used, …" */
static void leaves_print(const struct leaves *leaves, const char *type, struct buf *out)
{
    unsigned taken = leaves->used + leaves->opportunistic;
    buf_format(out, "%u of %u%s%s used", taken, leaves->total, *type ? " " : "", type);
    if (leaves->opportunistic)
        buf_format(out, " (%u by opportunistic jobs)", leaves->opportunistic);
    buf_format(out, ", %u free", leaves->free);
    if (leaves->bad)
        buf_format(out, ", %u bad", leaves->bad);
}

/* "0/1 NODE (n1) Used by vc1, priority 10, bad" */
static void cell_line(struct tree *tree, const json_t *cell)
{
    cleanup_buf struct buf word = BUF_INIT;
    const char *state = field_text(cell, "cellState");
    const json_t *physical = json_object_get(cell, "physicalCell");
    buf_format(tree->out, "%s %s", field_text(cell, "cellType"), field_text(cell, "cellAddress"));
    if (json_array_size(json_object_get(cell, "cellChildren"))) {
        struct leaves leaves = {0};
        leaves_count(cell, &leaves);
        buf_string(tree->out, ": ");
        leaves_print(&leaves, "", tree->out);
    }
    if (state && strcmp(state, "Free") != 0) {
        buf_format(tree->out, "  %s", state);
        if (field_text(cell, "vc"))
            buf_format(tree->out, " by %s", field_text(cell, "vc"));
        buf_format(tree->out, ", %s", priority_word(field_int(cell, "cellPriority"), &word));
    }
    if (physical)
        buf_format(tree->out, "  on %s", field_text(physical, "cellAddress"));
    const char *health = field_text(cell, "cellHealthiness");
    if (health && strcmp(health, "Healthy") != 0)
        buf_format(tree->out, "  %s%s%s", tree->has_colours ? "\033[31m" : "", health,
                   tree->has_colours ? "\033[0m" : "");
    buf_char(tree->out, '\n');
}

static void cells_print(struct tree *tree, const json_t *cells)
{
    size_t count = json_array_size(cells), length = tree->prefix.length;
    for (size_t i = 0; i < count; i++) {
        const json_t *cell = json_array_get(cells, i);
        bool is_last = i + 1 == count;
        buf_text(tree->out, buf_as_text(&tree->prefix));
        buf_string(tree->out, is_last ? "└─ " : "├─ ");
        cell_line(tree, cell);
        buf_string(&tree->prefix, is_last ? "   " : "│  ");
        cells_print(tree, json_object_get(cell, "cellChildren"));
        tree->prefix.length = length;
        tree->prefix.at[length] = '\0';
    }
}

/* "2 of 4 used, 2 free, 1 more by opportunistic jobs": these take none of its own cells, and
 * stand below them by their physical ones */
static void cluster_leaves_print(const struct leaves *leaves, const char *type, struct buf *out)
{
    struct leaves own = *leaves;
    own.total -= own.opportunistic;
    own.opportunistic = 0;
    leaves_print(&own, type, out);
    if (leaves->opportunistic)
        buf_format(out, ", %u more by opportunistic jobs", leaves->opportunistic);
}

struct typed {
    const char *type;
    struct leaves leaves;
};

/* "2 of 4 V100 used, 2 free; 0 of 16 CPU used, 16 free"; of one type alone without its name. */
static void types_print(const json_t *cells, bool is_physical, struct buf *out)
{
    struct typed *types = NULL;
    size_t count = 0, size = json_array_size(cells);
    for (size_t i = 0; i < size; i++) {
        const json_t *cell = json_array_get(cells, i);
        const char *type = field_text(cell, "leafCellType");
        size_t at = 0;
        while (at < count && strcmp(types[at].type, type ? type : "") != 0)
            at++;
        if (at == count) {
            types = mem_realloc(types, mem_size(++count, sizeof *types));
            types[at] = (struct typed){.type = type ? type : ""};
        }
        leaves_count(cell, &types[at].leaves);
    }
    for (size_t i = 0; i < count; i++) {
        buf_string(out, i ? "; " : ": ");
        const char *type = count > 1 ? types[i].type : "";
        if (is_physical)
            leaves_print(&types[i].leaves, type, out);
        else
            cluster_leaves_print(&types[i].leaves, type, out);
    }
    mem_free(types);
}

/* Of a virtual cluster, or (NULL) of the physical one. */
static int tree_print(struct cli *cli, struct client *client, const char *path, const char *cluster)
{
    json_auto_t *cells = NULL;
    int code = client_get(client, path, &cells);
    if (!code && !print_raw(cli, cells)) {
        cleanup_buf struct buf out = BUF_INIT;
        struct tree tree = {.out = &out, .prefix = BUF_INIT, .has_colours = cli->has_colours};
        buf_string(&out, cluster ? cluster : "physical cluster");
        types_print(cells, !cluster, &out);
        buf_char(&out, '\n');
        cells_print(&tree, cells);
        print_flush(&out);
        buf_release(&tree.prefix);
    }
    return code;
}

int run_cells(struct cli *cli)
{
    struct client *client = cli_client(cli);
    if (!client)
        return EXIT_REFUSED;
    return tree_print(cli, client, "/v1/inspect/clusterstatus/physicalcluster", NULL);
}

static int one_cluster(struct cli *cli, struct client *client, const char *name)
{
    cleanup_buf struct buf path = BUF_INIT;
    json_auto_t *cluster = NULL;
    buf_string(&path, "/api/v2/virtual-clusters/");
    client_encode(&path, name);
    int code = client_get(client, buf_cstr(&path), &cluster);
    if (!code && !print_raw(cli, cluster)) {
        cleanup_table struct table table;
        cleanup_buf struct buf out = BUF_INIT;
        table_init(&table, cli->has_colours, cluster_heads);
        cluster_rows(&table, name, cluster);
        table_print(&table, &out);
        buf_char(&out, '\n');
        print_flush(&out);
        buf_clear(&path);
        buf_string(&path, "/v1/inspect/clusterstatus/virtualclusters/");
        client_encode(&path, name);
        if (json_object_get(cluster, "skus"))
            code = tree_print(cli, client, buf_cstr(&path), name);
    }
    return code;
}

static void cluster_path(struct buf *path, const char *name, const char *rest)
{
    buf_string(path, "/api/v2/virtual-clusters/");
    client_encode(path, name);
    buf_string(path, rest);
}

/* close NAME…, open NAME… */
static int clusters_act(struct cli *cli)
{
    const char *action = cli->arguments[0], *reason = cli_value(cli, "reason");
    const bool is_closing = !strcmp(action, "close");
    if (!is_closing && strcmp(action, "open") != 0)
        return cli_fail(EXIT_USAGE, "vc: the action is close or open, not %s", action);
    if (reason && !is_closing)
        return cli_fail(EXIT_USAGE, "vc: --reason goes with close");
    json_auto_t *body = json_object();
    json_object_set_new(body, "vcStatus", json_string(is_closing ? "stopped" : "running"));
    if (reason)
        json_object_set_new(body, "reason", json_string(reason));
    char *text = json_dumps(body, JSON_COMPACT);
    cli->arguments++; /* behind the action */
    cli->argument_count--;
    int code = each_argument(cli, &(struct each_call){cluster_path, "PUT", "/status", text,
                                                      is_closing ? "closed" : "opened"});
    cli->arguments--;
    cli->argument_count++;
    free(text);
    return code;
}

int run_vc(struct cli *cli)
{
    if (cli->argument_count > 1)
        return clusters_act(cli);
    struct client *client = cli_client(cli);
    json_auto_t *clusters = NULL;
    if (!client)
        return EXIT_REFUSED;
    if (cli_value(cli, "reason"))
        return cli_fail(EXIT_USAGE, "vc: --reason goes with close");
    if (cli->argument_count)
        return one_cluster(cli, client, cli->arguments[0]);
    int code = client_get(client, "/api/v2/virtual-clusters", &clusters);
    if (!code && !print_raw(cli, clusters)) {
        cleanup_table struct table table;
        cleanup_buf struct buf out = BUF_INIT;
        const char *name;
        json_t *cluster;
        table_init(&table, cli->has_colours, cluster_heads);
        json_object_foreach (clusters, name, cluster)
            cluster_rows(&table, name, cluster);
        table_print(&table, &out);
        print_flush(&out);
    }
    return code;
}
