// Checks, with Go's own checksum database packages, what Corrigenda signed and proved. It shares no code with it.
//
// Its argument is a JSON file: verifier key, checkpoint, envelope and index of an entry, and its inclusion proof.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type claim struct {
	Key      string
	Note     string
	Envelope []byte
	Index    int64
	Proof    []string
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func main() {
	raw, err := os.ReadFile(os.Args[1])
	check(err)
	var said claim
	check(json.Unmarshal(raw, &said))
	verifier, err := note.NewVerifier(said.Key)
	check(err)
	opened, err := note.Open([]byte(said.Note), note.VerifierList(verifier))
	check(err)
	lines := strings.Split(opened.Text, "\n")
	if lines[0] != verifier.Name() {
		check(fmt.Errorf("origin %s", lines[0]))
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	check(err)
	root, err := tlog.ParseHash(lines[2])
	check(err)
	var proof tlog.RecordProof
	for _, one := range said.Proof {
		hash, err := tlog.ParseHash(one)
		check(err)
		proof = append(proof, hash)
	}
	check(tlog.CheckRecord(proof, size, root, said.Index, tlog.RecordHash(said.Envelope)))
	fmt.Println("ok", size)
}
