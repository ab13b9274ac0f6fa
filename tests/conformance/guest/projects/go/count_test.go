// SPDX-License-Identifier: Apache-2.0

package count

import (
	"io"
	"net"
	"os/exec"
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	parts := make([]string, 1000)
	for i := range parts {
		parts[i] = "two words"
	}
	if n := Words(parts); n != 2000 {
		t.Fatalf("%d words", n)
	}
}

func TestSocketAndTimer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			time.Sleep(10 * time.Millisecond)
			io.WriteString(conn, "hello")
			conn.Close()
		}
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil || string(text) != "hello" {
		t.Fatal(string(text), err)
	}
}

func TestProgram(t *testing.T) {
	out, err := exec.Command("echo", "there").Output()
	if err != nil || string(out) != "there\n" {
		t.Fatal(string(out), err)
	}
}
