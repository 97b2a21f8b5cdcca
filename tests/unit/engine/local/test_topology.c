/* Which GPUs lie at one switch. */
#include "unit.h"

#include <sys/sysinfo.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/local/topology.h"

static void test_topology(void **state)
{
    (void)state;
    struct topology_place places[] = {{.bus_id = "00000000:05:00.0"},
                                      {.bus_id = "00000000:06:00.0"},
                                      {.bus_id = "00000000:85:00.0"},
                                      {.bus_id = "00000000:95:00.0"},
                                      {.bus_id = "nonsense"}};
    assert_int_equal(topology_places(TOPOLOGY_XML, places, COUNT_OF(places), NULL), 0);
    assert_int_equal(places[0].numa, 0);
    assert_int_equal(places[1].numa, 0);
    assert_int_equal(places[2].numa, 1);
    assert_int_equal(places[3].numa, 1);
    assert_int_equal(places[0].pci_switch, places[1].pci_switch);
    assert_int_not_equal(places[0].pci_switch, places[2].pci_switch);
    assert_int_not_equal(places[2].pci_switch, places[3].pci_switch);
    assert_int_equal(places[4].numa, TOPOLOGY_UNKNOWN);
    assert_int_equal(places[4].pci_switch, TOPOLOGY_UNKNOWN);
    assert_int_equal(topology_places("/no/such.xml", places, 1, NULL), ERR_IO);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_topology),
};
UNIT_FILE(tests, NULL, NULL);
