/* Preloaded into the browser of the tests: it cannot watch the interfaces of the machine.
 *
 * Chromium drops the requests that wait for a connection when an interface comes, goes, or gets
 * another address, as those of containers and clusters do beside it.
 * Without netlink it takes the network for one that is always there.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

int socket(int domain, int type, int protocol)
{
    static int (*next)(int, int, int);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "socket");
    if (domain == AF_NETLINK) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    return next(domain, type, protocol);
}
