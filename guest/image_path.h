/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * image_path.h - root on paths whose links are the image's, or an earlier program's.
 *
 * The caller is in the image's root.  Links are followed, since an image may have its /home elsewhere; magic ones
 * (/proc/PID/root, /proc/PID/cwd, /proc/PID/fd/N) never are: root may follow them out of the root, where the program
 * could not.  Files and directories that root opens or gives away lie in the root's own file system: not in /proc, /sys or
 * /dev.
 */

#include <sys/types.h>

/* As open(); O_CLOEXEC is added.  -EXDEV: behind a mount, -ELOOP: behind a magic link. */
int image_open(const char *path, int flags);
/* A directory, with its parents; mode for those that are made.  Returns it opened for reading. */
int image_make_dir(const char *path, mode_t mode);
/* As chdir(); a mount may be crossed. */
int image_enter(const char *path);
