/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* printable.h - a foreign file name in a message: one line, no terminal controls, never too long. */

enum { PRINTABLE_SIZE = 200 }; /* bytes, terminating 0 included */

/* Copy name with every byte that is a control or not ASCII as \xNN, and "..." where the middle of a long
 * one is left out.  Returns text. */
const char *printable(const char *name, char text[PRINTABLE_SIZE]);
