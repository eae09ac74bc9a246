// Checks one entry of an audit bundle with Go's checksum database code:
// bundle KEY DIRECTORY POSITION, where DIRECTORY is an unpacked bundle.
package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func check(err error) {
	if err != nil {
		fmt.Println("refused:", err)
		os.Exit(1)
	}
}

func main() {
	verifier, err := note.NewVerifier(os.Args[1])
	check(err)
	read := func(name string) []byte {
		raw, err := os.ReadFile(filepath.Join(os.Args[2], name))
		check(err)
		return raw
	}
	signed, err := note.Open(read("checkpoint"), note.VerifierList(verifier))
	check(err)
	lines := strings.Split(signed.Text, "\n")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	check(err)
	raw, err := base64.StdEncoding.DecodeString(lines[2])
	check(err)
	var root tlog.Hash
	copy(root[:], raw)

	position, err := strconv.ParseInt(os.Args[3], 10, 64)
	check(err)
	head := strings.Split(string(read("proofs/"+os.Args[3]+".tlog-proof")), "\n\n")[0]
	var proof tlog.RecordProof
	for _, line := range strings.Split(head, "\n")[2:] {
		raw, err := base64.StdEncoding.DecodeString(line)
		check(err)
		var hash tlog.Hash
		copy(hash[:], raw)
		proof = append(proof, hash)
	}
	leaf := tlog.RecordHash(read("envelopes/" + os.Args[3]))
	check(tlog.CheckRecord(proof, size, root, position, leaf))
	fmt.Println("ok", lines[0], position, "of", size)
}
