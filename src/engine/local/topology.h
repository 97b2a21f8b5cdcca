/* topology.h — where a GPU hangs: its NUMA node and the PCIe switch above it. Edge (hwloc). */
#ifndef ENGINE_LOCAL_TOPOLOGY_H
#define ENGINE_LOCAL_TOPOLOGY_H
#include <stddef.h>
#include <stdint.h>

struct err;

enum { TOPOLOGY_UNKNOWN = UINT16_MAX };

struct topology_place {
    const char *bus_id;  /* in: "00000000:3B:00.0" */
    uint16_t numa;       /* out; TOPOLOGY_UNKNOWN */
    uint16_t pci_switch; /* out: equal numbers share a switch, from 0 in the order of the places */
};

/* `xml`: a topology saved by hwloc, "" = this machine. */
int topology_places(const char *xml, struct topology_place *places, size_t count, struct err *err);

#endif
