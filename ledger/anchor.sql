-- The anchor's file, in SQLite's dialect. Sets of names and of rows are given as one JSON array, and hashes of streams
-- and requests are kept as hex digits for that: each statement that runs lets other threads go first, so a group of
-- appends costs as few of them as can be.

-- name: make_meta
CREATE TABLE meta (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    format      TEXT    NOT NULL,
    ledger      TEXT    NOT NULL,
    origin      TEXT    NOT NULL,
    incarnation INTEGER NOT NULL,
    size        INTEGER NOT NULL,
    head        BLOB    NOT NULL,
    trust       TEXT    NOT NULL
)

-- name: make_leaf
-- Leaf hashes side by side, 256 in a row.
CREATE TABLE leaf (place INTEGER PRIMARY KEY, hashes BLOB NOT NULL)

-- name: make_subtree
-- The root of each complete subtree of 2^level leaves, from a full row (level 8) up.
CREATE TABLE subtree (level INTEGER, place INTEGER, root BLOB NOT NULL, PRIMARY KEY (level, place)) WITHOUT ROWID

-- name: make_stream
CREATE TABLE stream (
    stream   TEXT PRIMARY KEY,
    version  INTEGER NOT NULL,
    position INTEGER NOT NULL,
    hash     TEXT    NOT NULL
) WITHOUT ROWID

-- name: make_request
CREATE TABLE request (request TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID

-- name: make_revision
CREATE TABLE revision (revision TEXT PRIMARY KEY, lineage TEXT NOT NULL) WITHOUT ROWID

-- name: make_note
CREATE TABLE note (size INTEGER PRIMARY KEY, note BLOB NOT NULL)

-- name: make_erasure
-- Positions whose payload was erased. A restored backup is held against it before anything is served.
CREATE TABLE erasure (position INTEGER PRIMARY KEY, certificate INTEGER NOT NULL)

-- name: insert_meta
INSERT INTO meta (one, format, ledger, origin, incarnation, size, head, trust) VALUES (1, ?, ?, ?, 1, 0, ?, ?)

-- name: read_meta
SELECT format, ledger, origin, size FROM meta

-- name: read_last_leaves
SELECT place, length(hashes) FROM leaf ORDER BY place DESC LIMIT 1

-- name: read_state
SELECT size, head, incarnation, trust FROM meta

-- name: read_leaves
SELECT hashes FROM leaf WHERE place BETWEEN ? AND ? ORDER BY place

-- name: read_end
-- Size and hash of what is held, and the row of leaves that is being filled.
SELECT size, head, (SELECT hashes FROM leaf WHERE place = size / 256) FROM meta

-- name: read_subtree
SELECT root FROM subtree WHERE level = ? AND place = ?

-- name: read_known
SELECT stream, version, position, hash FROM stream WHERE stream IN (SELECT value FROM json_each(:streams))
UNION ALL
SELECT request, NULL, position, NULL FROM request WHERE request IN (SELECT value FROM json_each(:requests))

-- name: read_revisions
SELECT revision, lineage FROM revision WHERE revision IN (SELECT value FROM json_each(?))

-- name: find_beginning
SELECT revision, lineage FROM revision WHERE revision >= :first AND revision < :beyond
UNION ALL
SELECT stream, stream FROM stream WHERE stream >= :first AND stream < :beyond

-- name: read_note
SELECT note FROM note ORDER BY size DESC LIMIT 1

-- name: write_leaves
INSERT OR REPLACE INTO leaf (place, hashes) VALUES (?, ?)

-- name: insert_subtree
INSERT INTO subtree (level, place, root) VALUES (?, ?, ?)

-- name: write_streams
INSERT INTO stream (stream, version, position, hash)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?) WHERE true
ON CONFLICT (stream) DO UPDATE SET version = excluded.version, position = excluded.position, hash = excluded.hash

-- name: insert_requests
INSERT INTO request (request, position) SELECT value ->> 0, value ->> 1 FROM json_each(?)

-- name: insert_revisions
INSERT OR IGNORE INTO revision (revision, lineage) SELECT value ->> 0, value ->> 1 FROM json_each(?)

-- name: write_state
UPDATE meta SET size = ?, head = ?

-- name: write_trust
UPDATE meta SET trust = ?

-- name: write_note
INSERT OR REPLACE INTO note (size, note) VALUES (?, ?)
