/* cleanup.h — variables that release their resource when they go out of scope; fd_steal and its
 * like hand it over instead. */
#ifndef SYS_CLEANUP_H
#define SYS_CLEANUP_H
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void cleanup_free_pointer(void *pointer)
{
    free(*(void **)pointer);
}

static inline void cleanup_close_dir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

static inline void cleanup_close_file(FILE **file)
{
    if (*file)
        fclose(*file);
}

/* Of a growing array (base/memory.h), whose first field is `items`. */
static inline void cleanup_free_array(void *array)
{
    cleanup_free_pointer(array);
}

#define cleanup_array __attribute__((cleanup(cleanup_free_array)))
#define cleanup_close __attribute__((cleanup(cleanup_close_fd)))
#define cleanup_free  __attribute__((cleanup(cleanup_free_pointer)))
#define cleanup_dir   __attribute__((cleanup(cleanup_close_dir)))
#define cleanup_file  __attribute__((cleanup(cleanup_close_file)))

static inline int fd_steal(int *fd)
{
    int value = *fd;
    *fd = -1;
    return value;
}

#endif
