/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

enum { TEXT_CLEAN_MAX = 200 }; /* bytes of a foreign name that go into a sentence */

struct clean_text {
	char text[TEXT_CLEAN_MAX + 4];
};

/* Foreign bytes as part of a message: one line, printable ASCII ('?' for the rest), "..." where cut. */
struct clean_text text_clean(const char *bytes);
