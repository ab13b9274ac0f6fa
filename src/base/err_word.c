/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/err_word.h"

const char *err_word(int code, const char *text)
{
	switch (-code) {
	case 0:
	case EINVAL:
	case EBADMSG:
	case EPROTO:
	case EEXIST:
	case EBUSY:
	case ESRCH:
	case ENODATA:
	case EOPNOTSUPP:
	case ERANGE:
	case EFBIG:
	case ECANCELED:
	case EHOSTUNREACH: /* "No route to host" is one cause of many */
		return NULL;
	case ENOENT: /* what is not there need be no file, and what to do about it is said behind a ';' */
		return strstr(text, "; ") ? NULL : strerrordesc_np(ENOENT);
	default:
		return strerrordesc_np(-code);
	}
}
