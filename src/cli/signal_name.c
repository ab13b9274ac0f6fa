/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/signal_name.h"

enum { SIGNAL_MAX = 63, SHOWN = 40 };

static int from_number(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);

	return *end || number < 1 || number > SIGNAL_MAX ? 0 : (int) number;
}

int signal_from_name(const char *name, int *ret_signo, struct resoluto_err *err)
{
	const char *bare = strncasecmp(name, "SIG", 3) == 0 ? name + 3 : name;

	*ret_signo = from_number(name);
	for (int signo = 1; *ret_signo == 0 && signo <= SIGNAL_MAX; signo++) {
		const char *known = sigabbrev_np(signo);

		if (known && strcasecmp(known, bare) == 0)
			*ret_signo = signo;
	}
	if (*ret_signo == 0)
		return resoluto_fail(err, -EINVAL,
		                     "'%.*s' is no signal: give a name such as TERM or INT, or a "
		                     "number from 1 to %d",
		                     SHOWN, name, SIGNAL_MAX);
	return 0;
}
