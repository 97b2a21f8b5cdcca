/* page.h — pages of the web, opened in the user's browser. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H
#include <stdbool.h>

/* May a browser be given what a server named? NULL may not. */
bool page_is_web(const char *url);
/* By $BROWSER, or by xdg-open where there is a screen. Nothing is lost when it does not work: the
 * address is on the terminal. */
void page_open(const char *url);

#endif
