/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* capture.h - run the command line in this process and catch what it writes. */

struct captured {
	int code;
	char *out, *errors; /* owned */
};

/* words: of the command line, the program's name left out; NULL-terminated. */
struct captured capture_main(const char *const *words);
void captured_done(struct captured *captured); /* a cleanup function */
