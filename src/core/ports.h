/* ports.h — the port table of one node.
 *
 * Pure. A range is consecutive and has one owner. Free ranges are sought from where the last search
 * ended, so that a port given back is not given again at once: whoever still connects to the old
 * task meets silence rather than a stranger. Memory: 128 bytes for every 1,024 ports in use.
 * Fixed ports (portList.beginAt of early PAI) may lie outside the range of the dynamic ones.
 */
#ifndef CORE_PORTS_H
#define CORE_PORTS_H
#include <stdbool.h>
#include <stdint.h>

enum { PORTS_PAGE_BITS = 1024, PORTS_PAGES = 64 };

struct ports {
    uint64_t *pages[PORTS_PAGES]; /* NULL: all free */
    uint32_t cursor;              /* 0: not yet used */
    uint32_t taken;
};

/* A zeroed table has all ports free. */
void ports_release(struct ports *ports);
void ports_copy(struct ports *to, const struct ports *from); /* `to` is uninitialised */

/* Is the whole range free? False when it leaves 1…65535. */
bool ports_are_free(const struct ports *ports, uint32_t first, uint32_t count);

/* Take a range that is free. */
void ports_take(struct ports *ports, uint32_t first, uint32_t count);
/* Give back a range that is taken. */
void ports_give(struct ports *ports, uint32_t first, uint32_t count);

/* First port of `count` consecutive free ones within low…high; 0 when there are none. Takes nothing
 * but moves the cursor. */
uint32_t ports_find(struct ports *ports, uint32_t low, uint32_t high, uint32_t count);

#endif
