/* ids.h — ids of users and groups that jobs may have, and who else on this machine has them.
 *
 * Edge.
 */
#ifndef SYS_IDS_H
#define SYS_IDS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ID_RANGE_IDS = 65536, /* of a job: 0 … 65535 in its containers */
    /* between what systemd gives to containers, what SSSD and FreeIPA give to users of a directory,
     * and what systemd calls foreign */
    ID_RANGES_FIRST = 2000683008,
    ID_RANGES_COUNT = 2237,
};

/* Has somebody an id from `first` on and before `end`, by the files passwd, group, subuid or subgid
 * in `folder` (/etc)? `holder` is who: "bob in /etc/subuid". What cannot be read names nobody. */
bool ids_holder(const char *folder, uint32_t first, uint64_t end, char *holder, size_t size);

#endif
