/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/cleanup.h"
#include "check.h"
#include "wire/base64.h"

static void base64_of_rfc_4648(void)
{
	static const char *const pairs[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT(64), bytes = BUF_INIT(64);

		CHECK(base64_add(&text, pairs[i][0], strlen(pairs[i][0])) == 0);
		CHECK_STR(text.data, pairs[i][1]);
		CHECK(base64_add_decoded(&bytes, text.data, text.len) == 0);
		CHECK_STR(bytes.data, pairs[i][0]);
	}
}

static void base64_refuses_all_else(void)
{
	static const char *const bad[] = { "Z",        "Zg",   "Zg=",  "Zh==", "Zm9=", "=Zg=",
		                           "Zg==Zg==", "Z===", "====", "Zm 9", "Zm9-", "Zm9\n" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CLEANUP(buf_done) struct buf bytes = BUF_INIT(64);

		CHECK(buf_add_str(&bytes, "kept") == 0);
		CHECK(base64_add_decoded(&bytes, bad[i], strlen(bad[i])) == -EBADMSG);
		CHECK_STR(bytes.data, "kept");
	}
}

static void base64_keeps_the_bound(void)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(7);

	CHECK(base64_add(&text, "foob", 4) == -E2BIG);
	CHECK(text.len == 0);
}

int main(void)
{
	RUN(base64_of_rfc_4648);
	RUN(base64_refuses_all_else);
	RUN(base64_keeps_the_bound);
	return check_done();
}
