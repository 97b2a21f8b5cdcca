/* api_socket.h — the name of the socket that skepd makes and `skep` looks for.
 *
 * Pure.
 */
#ifndef SYS_API_SOCKET_H
#define SYS_API_SOCKET_H

/* The socket for the users of the server's machine, of a server that keeps its data in
 * /var/lib/skep and is not told another. */
#define PATH_API_SOCKET "/run/skepd/api"

#endif
