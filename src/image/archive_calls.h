/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive_calls.h - libarchive, loaded when the first layer is read.
 *
 * With the libraries it needs itself (libxml2, ICU, libstdc++) it takes longer to load than everything else
 * that a program of ours does before its guest boots, and a run reads no layer.
 */
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "resoluto/err.h"

/* The calls that are used, by their names: their types are libarchive's own. */
#define ARCHIVE_CALLS(CALL) \
	CALL(archive_entry_filetype) \
	CALL(archive_entry_gid) \
	CALL(archive_entry_hardlink) \
	CALL(archive_entry_mtime) \
	CALL(archive_entry_pathname) \
	CALL(archive_entry_perm) \
	CALL(archive_entry_size) \
	CALL(archive_entry_symlink) \
	CALL(archive_entry_uid) \
	CALL(archive_entry_xattr_next) \
	CALL(archive_entry_xattr_reset) \
	CALL(archive_errno) \
	CALL(archive_error_string) \
	CALL(archive_filter_bytes) \
	CALL(archive_read_data) \
	CALL(archive_read_data_block) \
	CALL(archive_read_free) \
	CALL(archive_read_new) \
	CALL(archive_read_next_header) \
	CALL(archive_read_open) \
	CALL(archive_read_open_fd) \
	CALL(archive_read_open_memory) \
	CALL(archive_read_support_filter_bzip2) \
	CALL(archive_read_support_filter_gzip) \
	CALL(archive_read_support_filter_xz) \
	CALL(archive_read_support_filter_zstd) \
	CALL(archive_read_support_format_empty) \
	CALL(archive_read_support_format_raw) \
	CALL(archive_read_support_format_tar) \
	CALL(archive_set_error)

struct archive_calls {
#define ARCHIVE_MEMBER(name) __typeof__(name) *name;
	ARCHIVE_CALLS(ARCHIVE_MEMBER)
#undef ARCHIVE_MEMBER
};

/* For the life of the process; from any thread. -ENOPKG: it is not installed. */
int archive_calls_load(const struct archive_calls **ret_calls, struct resoluto_err *err);
