// Reads, with Go's own checksum database packages, a log that Corrigenda rendered into a directory. It shares no code
// with it.
//
// Arguments: verifier key, directory, an older checkpoint of the same log, and of how many entries one is to be proven.
// Tiles are fetched through tlog's TileHashReader, which believes none of them before it leads to the signed root.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const height = 8

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// directory is a tlog.TileReader: files in the layout of tlog-tiles, which leaves the height out of the names.
type directory string

func (d directory) Height() int { return height }

func (d directory) SaveTiles([]tlog.Tile, [][]byte) {}

func (d directory) read(name string, width int) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(string(d), name))
	if os.IsNotExist(err) && width < 1<<height {
		return os.ReadFile(filepath.Join(string(d), strings.Split(name, ".p/")[0])) // the full tile stands in for it
	}
	return raw, err
}

func (d directory) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var found [][]byte
	for _, tile := range tiles {
		raw, err := d.read(strings.Replace(tile.Path(), "tile/8/", "tile/", 1), tile.W)
		if err != nil {
			return nil, err
		}
		if len(raw) > tile.W*tlog.HashSize {
			raw = raw[:tile.W*tlog.HashSize]
		}
		found = append(found, raw)
	}
	return found, nil
}

func (d directory) entries(number, width int64) [][]byte {
	name := tlog.Tile{H: height, L: -1, N: number, W: int(width)}.Path()
	raw, err := d.read(strings.Replace(name, "tile/8/data/", "tile/entries/", 1), int(width))
	check(err)
	var found [][]byte
	for len(raw) > 0 && int64(len(found)) < width {
		end := 2 + int(binary.BigEndian.Uint16(raw))
		found = append(found, raw[2:end])
		raw = raw[end:]
	}
	if int64(len(found)) != width {
		check(fmt.Errorf("bundle %d has %d entries", number, len(found)))
	}
	return found
}

func open(path string, verifier note.Verifier) tlog.Tree {
	raw, err := os.ReadFile(path)
	check(err)
	opened, err := note.Open(raw, note.VerifierList(verifier))
	check(err)
	lines := strings.Split(opened.Text, "\n")
	if lines[0] != verifier.Name() {
		check(fmt.Errorf("origin %s", lines[0]))
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	check(err)
	root, err := tlog.ParseHash(lines[2])
	check(err)
	return tlog.Tree{N: size, Hash: root}
}

func main() {
	verifier, err := note.NewVerifier(os.Args[1])
	check(err)
	folder := directory(os.Args[2])
	tree, older := open(filepath.Join(os.Args[2], "checkpoint"), verifier), open(os.Args[3], verifier)
	reader := tlog.TileHashReader(tree, folder)
	stride, err := strconv.ParseInt(os.Args[4], 10, 64)
	check(err)
	for first := int64(0); first < tree.N; first += 1 << height {
		width := tree.N - first
		if width > 1<<height {
			width = 1 << height
		}
		for place, entry := range folder.entries(first>>height, width) {
			index := first + int64(place)
			if index%stride != 0 && index != tree.N-1 {
				continue
			}
			proof, err := tlog.ProveRecord(tree.N, index, reader)
			check(err)
			check(tlog.CheckRecord(proof, tree.N, tree.Hash, index, tlog.RecordHash(entry)))
		}
	}
	proof, err := tlog.ProveTree(tree.N, older.N, reader)
	check(err)
	check(tlog.CheckTree(proof, tree.N, tree.Hash, older.N, older.Hash))
	root, err := tlog.TreeHash(tree.N, reader)
	check(err)
	if root != tree.Hash {
		check(fmt.Errorf("root %s", root))
	}
	fmt.Println("ok", older.N, tree.N)
}
