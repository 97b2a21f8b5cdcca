#include "sys/project.h"
#include "base/err.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { QUOTA_BLOCK_BITS = 9 }; /* of the calls below: 512 bytes */

/* These commands are XFS's, and the kernel translates them for all others. */
static long quota_call(int fd, unsigned command, uint32_t project, void *argument)
{
    return syscall(SYS_quotactl_fd, fd, QCMD(command, PRJQUOTA), project, argument);
}

bool project_is_enforced(int fd)
{
    struct fs_quota_statv state = {.qs_version = FS_QSTATV_VERSION1};
    return quota_call(fd, Q_XGETQSTATV, 0, &state) == 0 && state.qs_flags & FS_QUOTA_PDQ_ENFD;
}

int project_limit(int fd, uint32_t project, uint64_t bytes, uint64_t inodes, struct err *err)
{
    struct fs_disk_quota quota = {
        .d_version = FS_DQUOT_VERSION,
        .d_flags = FS_PROJ_QUOTA,
        .d_fieldmask = FS_DQ_BHARD | FS_DQ_BSOFT | FS_DQ_IHARD | FS_DQ_ISOFT,
        .d_id = project,
        .d_blk_hardlimit = bytes >> QUOTA_BLOCK_BITS,
        .d_blk_softlimit = bytes >> QUOTA_BLOCK_BITS,
        .d_ino_hardlimit = inodes,
        .d_ino_softlimit = inodes,
    };
    assert(project != 0); /* everything else */
    if (quota_call(fd, Q_XSETQLIM, project, &quota) < 0)
        return err_errno(err, errno, "set the quota of project %u", project);
    return 0;
}

bool project_use_read(int fd, uint32_t project, struct project_use *use)
{
    struct fs_disk_quota quota = {.d_version = 0};
    if (quota_call(fd, Q_XGETQUOTA, project, &quota) < 0)
        return false;
    *use = (struct project_use){.bytes = quota.d_bcount << QUOTA_BLOCK_BITS,
                                .inodes = quota.d_icount,
                                .bytes_max = quota.d_blk_hardlimit << QUOTA_BLOCK_BITS,
                                .inodes_max = quota.d_ino_hardlimit};
    return true;
}

int project_put(const char *path, uint32_t project, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct fsxattr attributes;
    struct stat stat;
    if (fd < 0 || fstat(fd, &stat) < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &attributes) < 0)
        return err_errno(err, errno, "read the project of %s", path);
    attributes.fsx_projid = project;
    if (S_ISDIR(stat.st_mode))
        attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
    if (ioctl(fd, FS_IOC_FSSETXATTR, &attributes) < 0)
        return err_errno(err, errno, "set the project of %s", path);
    return 0;
}
