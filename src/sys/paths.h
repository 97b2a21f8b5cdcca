/* paths.h — names of files that skepd makes and `skep` looks for.
 *
 * Pure.
 */
#ifndef SYS_PATHS_H
#define SYS_PATHS_H

/* The socket for the users of the server's machine, of a server that keeps its data in
 * /var/lib/skep and is not told another. */
#define PATH_API_SOCKET "/run/skepd/api"

#endif
