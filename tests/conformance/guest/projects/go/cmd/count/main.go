// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"example.com/count"
)

func main() {
	println(count.Words(os.Args[1:]))
}
