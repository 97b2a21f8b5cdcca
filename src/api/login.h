/* login.h — brakes on guessing passwords. Any thread. */
#ifndef API_LOGIN_H
#define API_LOGIN_H
#include "base/text.h"
#include <stdint.h>

struct err;
struct login_table;

struct login_table *login_table_new(void); /* nobody has failed yet */
void login_table_free(struct login_table *table);

/* May this be tried now? ERR_BUSY: too many passwords are being checked at this moment
 * (API_LOGINS_MAX), or too many were wrong (API_LOGIN_FAILURES of one user from one address within
 * API_LOGIN_WINDOW_S). After 0, login_end must follow. */
int login_begin(struct login_table *table, struct text user, struct text address, int64_t now_s,
                struct err *err);
void login_end(struct login_table *table, struct text user, struct text address, int64_t now_s,
               bool is_right);

#endif
