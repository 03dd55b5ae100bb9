/*
 * mpiox_layout_beegfs.h - the ioctls of BeeGFS' client (beegfs_ioctl.h of beegfs-client-devel), as far as used here.
 */
#ifndef MPIOX_LAYOUT_BEEGFS_H
#define MPIOX_LAYOUT_BEEGFS_H

#include <stdint.h>
#include <sys/ioctl.h>

enum { MPIOX_BEEGFS_RAID0 = 1, MPIOX_BEEGFS_RAID10 = 2, MPIOX_BEEGFS_BUDDY = 3, MPIOX_BEEGFS_NAME_BYTES = 256 };

typedef struct mpiox_beegfs_stripes {
    unsigned pattern;     /* MPIOX_BEEGFS_RAID0... */
    unsigned chunk_bytes; /* bytes of a stripe */
    uint16_t targets;     /* number of targets */
} mpiox_beegfs_stripes;

typedef struct mpiox_beegfs_target {
    uint16_t index;                      /* input; the other fields are output */
    uint16_t target;                     /* its number */
    uint16_t node;                       /* number of the server that has it */
    char alias[MPIOX_BEEGFS_NAME_BYTES]; /* name of that server */
} mpiox_beegfs_target;

typedef struct mpiox_beegfs_target2 {              /* since release 6 */
    uint32_t index;                                /* input; the other fields are output */
    uint32_t target_or_group;                      /* number of the target; under BUDDY of the group of two targets */
    uint32_t primary;                              /* under BUDDY: number of the primary target, else 0 */
    uint32_t secondary;                            /* under BUDDY: number of the secondary target, else 0 */
    uint32_t primary_node;                         /* number of the server that has the target, or the primary target */
    uint32_t secondary_node;                       /* under BUDDY: that of the secondary target, else 0 */
    char primary_alias[MPIOX_BEEGFS_NAME_BYTES];   /* name of the server `primary_node` */
    char secondary_alias[MPIOX_BEEGFS_NAME_BYTES]; /* name of the server `secondary_node` */
} mpiox_beegfs_target2;

typedef struct mpiox_beegfs_file { /* for a new file in the folder of the descriptor */
    const char *name;              /* in the folder */
    unsigned mode;                 /* permissions */
    unsigned targets;              /* 0: as in the folder */
    unsigned chunk_bytes;          /* a power of two, at least 64 KiB; 0: as in the folder */
} mpiox_beegfs_file;

#define MPIOX_BEEGFS_GET_STRIPES _IOR('f', 25, mpiox_beegfs_stripes)
#define MPIOX_BEEGFS_GET_TARGET _IOR('f', 26, mpiox_beegfs_target)
#define MPIOX_BEEGFS_GET_TARGET2 _IOR('f', 26, mpiox_beegfs_target2)
#define MPIOX_BEEGFS_MAKE_FILE _IOW('f', 27, mpiox_beegfs_file)

#endif
