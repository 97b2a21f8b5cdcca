/* login_oidc.h — logs in with the account of the organisation: by a browser of this machine, or,
 * with
 * --device, by any other.
 */
#ifndef CLI_LOGIN_OIDC_H
#define CLI_LOGIN_OIDC_H

struct cli;
struct client;

/* `client` shows no token. The name and the token that the server gave: free both. */
int login_oidc(const struct cli *cli, struct client *client, char **name, char **token);

#endif
