/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "base/filter.h"

const char *const filter_plain_calls[] = {
	"brk",  "munmap",     "mremap", "madvise", "futex",        "clock_gettime",  "gettimeofday",
	"time", "getrandom",  "getpid", "gettid",  "rt_sigreturn", "rt_sigprocmask", "rt_sigaction",
	"exit", "exit_group", NULL,
};

void filter_done(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

int filter_add_names(scmp_filter_ctx filter, uint32_t action, const char *const *names)
{
	for (size_t i = 0; names[i]; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);
		int r;

		if (number == __NR_SCMP_ERROR)
			continue;
		r = seccomp_rule_add(filter, action, number, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

int filter_add_if(scmp_filter_ctx filter, uint32_t action, int number, unsigned arg,
                  enum scmp_compare op, scmp_datum_t a, scmp_datum_t b)
{
	const struct scmp_arg_cmp compare = { .arg = arg, .op = op, .datum_a = a, .datum_b = b };

	return seccomp_rule_add_array(filter, action, number, 1, &compare);
}

int filter_add_values(scmp_filter_ctx filter, uint32_t action, int number, unsigned arg,
                      const uint32_t *values, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = filter_add_if(filter, action, number, arg, SCMP_CMP_MASKED_EQ, UINT32_MAX,
		                  values[i]);
	return r;
}

int filter_load(scmp_filter_ctx filter)
{
	int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	if (r == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return r < 0 ? r : seccomp_load(filter);
}
