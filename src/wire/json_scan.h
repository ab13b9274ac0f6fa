/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * json_scan.h - a strict reader of JSON that builds no tree: for lines of which there are a million, from
 * somebody hostile.  Pure; no allocation but in the caller's buffers; depth is bounded.
 *
 * It takes what jansson takes (tests/fuzz/fuzz_event.c compares the two), but for NUL bytes, numbers of 1e300 and more,
 * and depth over JSON_DEPTH_MAX.  Keys that are given twice are the caller's to notice.
 *
 * All functions return 0 or more, or -EBADMSG, or what a full buffer says.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/json_text.h"

struct json_scan {
	const char *at, *end;
	unsigned depth; /* objects and arrays that are open */
	bool has_nul;   /* the last string stood for a NUL somewhere */
};

struct json_number {
	double real;
	bool is_integer; /* written without point and exponent */
	int64_t integer;
};

/* The next character that is no white space, -1 at the end; it stays. */
int json_scan_peek(struct json_scan *scan);
/* Go into an object. */
int json_scan_object(struct json_scan *scan);
struct json_name {
	const char *text; /* in what is scanned, or in `scratch`; no NUL in it and none behind it */
	size_t len;
};

/* 1: *ret_key is a key, and its value comes next.  0: the object is over.  is_first: of the first call
 * for an object. */
int json_scan_key(struct json_scan *scan, bool is_first, struct buf *scratch,
                  struct json_name *ret_key);
/* Go into an array. */
int json_scan_array(struct json_scan *scan);
/* 1: a value comes next.  0: the array is over.  is_first: of the first call for an array. */
int json_scan_item(struct json_scan *scan, bool is_first);
/* Append the text that a string stands for (perhaps with NUL in it); NULL: only check it. */
int json_scan_string(struct json_scan *scan, struct buf *text);
int json_scan_number(struct json_scan *scan, struct json_number *ret_number);
/* Any value. */
int json_scan_skip(struct json_scan *scan);
/* Nothing but white space is left. */
int json_scan_end(struct json_scan *scan);
