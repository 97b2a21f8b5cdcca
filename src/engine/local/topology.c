#include "engine/local/topology.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include <hwloc.h>
#include <stdio.h>

static hwloc_obj_t pci_find(hwloc_topology_t topology, const char *bus_id)
{
    unsigned domain, bus, device, function;
    if (sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
        return NULL;
    return hwloc_get_pcidev_by_busid(topology, domain, bus, device, function);
}

/* The highest PCI-to-PCI bridge above the device, below the host bridge: GPUs under the same one
 * reach each other without crossing the processor. */
static hwloc_obj_t switch_above(hwloc_obj_t device)
{
    hwloc_obj_t found = NULL;
    for (hwloc_obj_t at = device->parent; at && at->type == HWLOC_OBJ_BRIDGE; at = at->parent)
        if (at->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI)
            found = at;
    return found;
}

static uint16_t numa_of(hwloc_topology_t topology, hwloc_obj_t device)
{
    hwloc_obj_t above = hwloc_get_non_io_ancestor_obj(topology, device);
    hwloc_obj_t node = NULL;
    if (!above || !above->nodeset || hwloc_bitmap_weight(above->nodeset) != 1)
        return TOPOLOGY_UNKNOWN; /* the machine as a whole: nothing is known */
    node =
        hwloc_get_numanode_obj_by_os_index(topology, (unsigned)hwloc_bitmap_first(above->nodeset));
    return node ? (uint16_t)node->logical_index : TOPOLOGY_UNKNOWN;
}

static void places_fill(hwloc_topology_t topology, struct topology_place *places, size_t count)
{
    cleanup_free hwloc_obj_t *switches = mem_zero(count ? count : 1, sizeof *switches);
    uint16_t switch_count = 0;
    for (size_t i = 0; i < count; i++) {
        hwloc_obj_t device = pci_find(topology, places[i].bus_id);
        hwloc_obj_t above = device ? switch_above(device) : NULL;
        if (device)
            places[i].numa = numa_of(topology, device);
        uint16_t s = 0;
        while (above && s < switch_count && switches[s] != above)
            s++;
        if (above && s == switch_count)
            switches[switch_count++] = above;
        if (above)
            places[i].pci_switch = s;
    }
}

int topology_places(const char *xml, struct topology_place *places, size_t count, struct err *err)
{
    hwloc_topology_t topology;
    for (size_t i = 0; i < count; i++)
        places[i].numa = places[i].pci_switch = TOPOLOGY_UNKNOWN;
    if (hwloc_topology_init(&topology) < 0)
        return err_fail(err, ERR_IO, "", "hwloc does not start");
    int code = xml[0] ? hwloc_topology_set_xml(topology, xml) : 0;
    if (code == 0)
        code = hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (code == 0)
        code = hwloc_topology_load(topology);
    if (code == 0)
        places_fill(topology, places, count);
    hwloc_topology_destroy(topology);
    return code == 0 ? 0 : err_fail(err, ERR_IO, "", "hwloc cannot read the topology %s", xml);
}
