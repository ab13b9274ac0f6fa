/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* err_word.h - what the system calls a failure, for people. */

/* The word for code (negative) to stand behind text; NULL where the text says it already, or says more. */
const char *err_word(int code, const char *text);
