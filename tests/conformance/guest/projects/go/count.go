// SPDX-License-Identifier: Apache-2.0

// Package count counts words with as many goroutines as there are parts.
package count

import (
	"strings"
	"sync"
)

// Words counts the words of all parts.
func Words(parts []string) int {
	var wait sync.WaitGroup
	results := make(chan int, len(parts))
	for _, part := range parts {
		wait.Add(1)
		go func(text string) {
			defer wait.Done()
			results <- len(strings.Fields(text))
		}(part)
	}
	wait.Wait()
	close(results)
	total := 0
	for n := range results {
		total += n
	}
	return total
}
