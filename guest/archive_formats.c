/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive_formats.c - keep what the runner never writes out of a static link.
 *
 * libarchive finds a writer by number or name in one object file that refers to all writers, and two of
 * these (xar, 7zip) need libraries larger than everything else.  The linker takes our definitions first, so
 * libarchive's own are not pulled in.  Only pax (with ustar beneath it) stays real.
 */
#include <archive.h>

#define WITHOUT_WRITER(name) \
	int archive_write_set_format_##name(struct archive *archive) \
	{ \
		return refuse(archive); \
	}

static int refuse(struct archive *archive)
{
	archive_set_error(archive, -1, "this format is not in the runner");
	return ARCHIVE_FATAL;
}

WITHOUT_WRITER(7zip)
WITHOUT_WRITER(ar_bsd)
WITHOUT_WRITER(ar_svr4)
WITHOUT_WRITER(cpio)
WITHOUT_WRITER(cpio_bin)
WITHOUT_WRITER(cpio_newc)
WITHOUT_WRITER(cpio_odc)
WITHOUT_WRITER(cpio_pwb)
WITHOUT_WRITER(gnutar)
WITHOUT_WRITER(iso9660)
WITHOUT_WRITER(mtree)
WITHOUT_WRITER(mtree_classic)
WITHOUT_WRITER(raw)
WITHOUT_WRITER(shar)
WITHOUT_WRITER(shar_dump)
WITHOUT_WRITER(v7tar)
WITHOUT_WRITER(warc)
WITHOUT_WRITER(xar)
WITHOUT_WRITER(zip)
