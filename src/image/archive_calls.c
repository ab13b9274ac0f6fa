/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "image/archive_calls.h"

/* The one whose headers this was built with. */
static const char library[] = "libarchive.so.13";

static const struct {
	const char *name;
	size_t at; /* in struct archive_calls */
} names[] = {
#define ARCHIVE_NAME(name) { #name, offsetof(struct archive_calls, name) },
	ARCHIVE_CALLS(ARCHIVE_NAME)
#undef ARCHIVE_NAME
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct archive_calls calls;
static struct resoluto_err failure;

static void load(void)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	bool is_whole = handle;

	for (size_t i = 0; is_whole && i < sizeof(names) / sizeof(names[0]); i++) {
		void *call = dlsym(handle, names[i].name);

		is_whole = call;
		memcpy((char *) &calls + names[i].at, &call, sizeof(call));
	}
	if (!is_whole)
		(void) resoluto_fail(&failure, -ENOPKG, "load %s, which reads images: %s", library,
		                     dlerror());
}

int archive_calls_load(const struct archive_calls **ret_calls, struct resoluto_err *err)
{
	(void) pthread_once(&once, load);
	if (failure.code < 0)
		return resoluto_fail(err, failure.code, "%s", failure.text);
	*ret_calls = &calls;
	return 0;
}
