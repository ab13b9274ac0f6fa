/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dotenv.c - env files: whatever comes in, what comes out is a list of KEY=VALUE. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "secrets/dotenv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct resoluto_err err = { 0 };
	struct strv env = { 0 };
	int r = dotenv_parse((const char *) data, size, NULL, &env, &err);

	if (r < 0) {
		require(err.code == r && err.text[0] && env.count == 0);
	} else {
		for (size_t i = 0; i < env.count; i++) {
			const char *equals = strchr(env.items[i], '=');

			require(equals && equals > env.items[i] && !strchr(env.items[i], '\n'));
		}
	}
	strv_done(&env);
	return 0;
}
