/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * mounts.h - the file systems the program will see, from the image's squashfs and an upper layer that is gone
 * with the machine.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "guest/disks.h"
#include "guest/users.h"
#include "resoluto/err.h"

enum {
	UPPER_PERCENT =
		50, /* of the memory that files in memory may take: beyond it -ENOSPC, not an OOM kill */
};

/* The image, read-only; independent of the job. */
int mount_image(const struct disks *disks, struct resoluto_err *err);
/* What shows the kernel in the root of the program, put together beside it: proc, sys (read-only), cgroup2, a /dev of harmless
 * nodes, shm.  Independent of the image and of every driver: /early may be here before these have started. */
int mount_views(struct resoluto_err *err);
/* The root of the program at /newroot: overlay of the image and memory (or the scratch disk), the views, pts, etc/hosts and its
 * like. */
int mount_root(const struct disks *disks, struct resoluto_err *err);
/* Make it the root of this process and of all that come after. */
int mount_enter_root(struct resoluto_err *err);

/* The image's files of users, as they are; read inside the root. */
struct image_users {
	struct buf passwd, group; /* owned */
};

int mount_read_users(struct image_users *ret, struct resoluto_err *err);
void image_users_done(struct image_users *users); /* a cleanup function */
/*
 * Who the program runs as, from these files (users.h), with the lines they lack (added here and in the image) and a home of
 * its own where it has none; call it inside the root.
 */
int mount_settle_user(const char *spec, struct image_users *users, struct user *ret_user,
                      struct resoluto_err *err);
/* Of the image, inside the root; free with buf_done().  A missing file is an empty one, and so is one that is too large, or no
 * file of the root's own: it is the image's.  -ENOMEM. */
int mount_read_image_file(const char *path, size_t max, struct buf *ret);
/* A new file in place of whatever the image has there, never through a link of the image. */
int mount_put_file(const char *path, const char *text, struct resoluto_err *err);
/* Make a directory with its parents and give it (not what is in it) to the user; returns it opened. */
int mount_make_owned(const char *path, const struct user *user, struct resoluto_err *err);

/* What was said to the kernel already; zeros: nothing. */
struct kernel_done {
	uint32_t settings; /* settings.h */
	bool rest;
};

/* Host name, kernel settings, and loopback up where the kernel does not do that on demand: what is not done yet. */
int mount_set_up_kernel(struct kernel_done *done, struct resoluto_err *err);
/* Before a program needs it, where our own kernel would have it wait for that. */
void mount_bring_up_loopback(void);
/* No space or no inodes left for files? */
bool mount_is_full(void);
/* With a scratch disk: has something that was written not reached it, at any time? */
bool mount_has_lost(void);
