/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* program.h - the programs that this part stands on: started so that they die with us, and their words. */

#include <stddef.h>

#include "base/proc.h"
#include "image/caller.h"
#include "resoluto/err.h"

enum { PROGRAM_WORDS_MAX = 320 }; /* bytes of a program's message that go into ours */

struct program_words {
	char text[PROGRAM_WORDS_MAX];
};

/* package is the Debian package to name when argv[0] is not installed. */
int program_start(const char *package, const char *const *argv, const struct proc_fd *fds,
                  size_t fd_count, struct proc *ret_proc, struct resoluto_err *err);
/* Wait for a step.  1 and the wait status: it has ended; 0: not yet; -ECANCELED: the caller asked to stop. */
int program_wait(const char *name, struct proc *proc, const struct caller *caller, int *ret_status,
                 struct resoluto_err *err);
/* The last line of what was written to log, made one printable line; of a logrus line its message. */
struct program_words program_last_words(int log);
/* The same for text in memory: pure. */
struct program_words program_words_of(const char *text);
