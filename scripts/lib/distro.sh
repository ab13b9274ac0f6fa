# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# distro.sh - whose archive has this system's cloud kernel.

# "ubuntu" or "debian" for them and what derives from them; else what it calls itself.
distro_of() { # os-release file
	local ids=unknown
	if [ -r "$1" ]; then
		# shellcheck disable=SC1090 # a file of the system
		ids=$(. "$1" && echo "${ID:-unknown} ${ID_LIKE:-}")
	fi
	case " $ids " in
	*" ubuntu "*) echo ubuntu ;;
	*" debian "*) echo debian ;;
	*) echo "${ids%% *}" ;;
	esac
}

# The package that always means the newest one; fails where none is known.
distro_kernel_package() { # distro, architecture as dpkg says it
	case "$1" in
	debian) echo "linux-image-cloud-$2" ;;
	ubuntu) echo linux-image-virtual ;;
	*) return 1 ;;
	esac
}
