-- The anchor's file, in SQLite's dialect. Sets of names are given as one JSON array, and hashes of streams and requests
-- are kept as hex digits for that: each statement that runs lets other threads go first, so a group of appends costs as
-- few of them as can be. Where many rows are written, the statement is one for a row, and runs with more of them.
--
-- Each row ends with a checksum of the others of its columns: SQLite has none, and a disk may give back other bytes.

-- name: make_meta
CREATE TABLE meta (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    format      TEXT    NOT NULL,
    ledger      TEXT    NOT NULL,
    origin      TEXT    NOT NULL,
    incarnation INTEGER NOT NULL,
    size        INTEGER NOT NULL,
    head        BLOB    NOT NULL,
    trust       TEXT    NOT NULL,
    crc        INTEGER NOT NULL
)

-- name: make_leaf
-- Leaf hashes side by side, 256 in a row.
CREATE TABLE leaf (place INTEGER PRIMARY KEY, hashes BLOB NOT NULL, crc INTEGER NOT NULL)

-- name: make_subtree
-- The root of each complete subtree of 2^level leaves, from a full row (level 8) up.
CREATE TABLE subtree (
    level INTEGER,
    place INTEGER,
    root  BLOB    NOT NULL,
    crc  INTEGER NOT NULL,
    PRIMARY KEY (level, place)
) WITHOUT ROWID

-- name: make_stream
CREATE TABLE stream (
    stream   TEXT PRIMARY KEY,
    version  INTEGER NOT NULL,
    position INTEGER NOT NULL,
    hash     TEXT    NOT NULL,
    crc     INTEGER NOT NULL
) WITHOUT ROWID

-- name: make_request
CREATE TABLE request (request TEXT PRIMARY KEY, position INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID

-- name: make_revision
CREATE TABLE revision (revision TEXT PRIMARY KEY, lineage TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID

-- name: make_note
CREATE TABLE note (size INTEGER PRIMARY KEY, note BLOB NOT NULL, crc INTEGER NOT NULL)

-- name: make_erasure
-- Positions whose payload was erased, and that of the entry which says so. The entry is read before that is believed, so
-- there is no checksum. A restored backup is held against it before anything is served.
CREATE TABLE erasure (position INTEGER PRIMARY KEY, certificate INTEGER NOT NULL)

-- name: insert_meta
INSERT INTO meta (one, format, ledger, origin, incarnation, size, head, trust, crc) VALUES (1, ?, ?, ?, 1, 0, ?, ?, ?)

-- name: read_format
SELECT format FROM meta

-- name: read_meta
SELECT ledger, origin, size FROM meta

-- name: read_last_leaves
SELECT place, length(hashes) FROM leaf ORDER BY place DESC LIMIT 1

-- name: read_state
SELECT size, head, incarnation, trust, crc FROM meta

-- name: read_leaves
SELECT place, hashes, crc FROM leaf WHERE place BETWEEN ? AND ? ORDER BY place

-- name: read_leaf_rows
SELECT place, hashes, crc FROM leaf WHERE place IN (SELECT value FROM json_each(?))

-- name: read_end
-- Size and hash of what is held, and the row of leaves that is being filled.
SELECT m.size, m.head, m.incarnation, m.trust, m.crc, l.hashes, l.crc
FROM meta m LEFT JOIN leaf l ON l.place = m.size / 256

-- name: read_sums
-- A stream's version grows by one with each entry, so together they are as many as there are entries.
SELECT size, (SELECT coalesce(sum(version), 0) FROM stream), (SELECT count(*) FROM request) FROM meta

-- name: read_subtree
SELECT root, crc FROM subtree WHERE level = ? AND place = ?

-- name: read_known_single
-- What `read_known` gives of one stream and one request, which most appends are about, in half the time.
SELECT m.trust, m.size, m.incarnation, m.head, m.crc, s.version, s.position, s.hash, s.crc, r.position, r.crc
FROM meta m LEFT JOIN stream s ON s.stream = ? LEFT JOIN request r ON r.request = ?

-- name: read_known
-- What `read_state` gives, in another order, comes first.
SELECT trust, size, incarnation, head, crc FROM meta
UNION ALL
SELECT stream, version, position, hash, crc FROM stream WHERE stream IN (SELECT value FROM json_each(:streams))
UNION ALL
SELECT request, NULL, position, NULL, crc FROM request WHERE request IN (SELECT value FROM json_each(:requests))

-- name: read_revisions
SELECT revision, lineage, crc FROM revision WHERE revision IN (SELECT value FROM json_each(?))

-- name: find_beginning
SELECT revision, lineage, crc FROM revision WHERE revision >= :first AND revision < :beyond
UNION ALL
SELECT stream, NULL, NULL FROM stream WHERE stream >= :first AND stream < :beyond

-- name: read_note
SELECT size, note, crc FROM note ORDER BY size DESC LIMIT 1

-- name: read_erasures
SELECT position, certificate FROM erasure WHERE position IN (SELECT value FROM json_each(?))

-- name: write_trust
UPDATE meta SET trust = ?, crc = ?

-- name: write_note
INSERT INTO note (size, note, crc) VALUES (?, ?, ?)

-- name: read_note_of
SELECT note FROM note WHERE size = ?

-- name: check_pages
PRAGMA integrity_check(1)

-- name: read_all_leaves
SELECT place, hashes, crc FROM leaf ORDER BY place

-- name: data_version
-- Another number than before where another connection has written to the file.
PRAGMA data_version

-- name: growth_view
-- What some entries change, of this connection only: the anchor's state before and after, and the rows of each table.
CREATE TEMP VIEW IF NOT EXISTS growth AS SELECT
    0 AS old_size, 0 AS old_head, 0 AS old_crc, 0 AS size, 0 AS head, 0 AS crc,
    0 AS leaves, 0 AS places,  -- side by side, from the beginning of the first row; [place, crc] of each row
    0 AS roots, 0 AS subtrees,  -- side by side; [level, place, crc] of each
    0 AS streams, 0 AS requests, 0 AS revisions, 0 AS erasures  -- the rows of these tables as JSON arrays

-- name: growth_trigger
CREATE TEMP TRIGGER IF NOT EXISTS grow INSTEAD OF INSERT ON growth BEGIN
    SELECT RAISE(ABORT, 'the anchor ends elsewhere') WHERE NOT EXISTS (
        SELECT 1 FROM meta WHERE size = NEW.old_size AND head = NEW.old_head AND crc = NEW.old_crc);
    UPDATE meta SET size = NEW.size, head = NEW.head, crc = NEW.crc;
    INSERT OR REPLACE INTO leaf (place, hashes, crc)
        SELECT json_extract(value, '$[0]'), substr(NEW.leaves, key * 8192 + 1, 8192), json_extract(value, '$[1]')
        FROM json_each(NEW.places);
    INSERT INTO subtree (level, place, root, crc)
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), substr(NEW.roots, key * 32 + 1, 32), json_extract(value, '$[2]')
        FROM json_each(NEW.subtrees);
    INSERT INTO stream (stream, version, position, hash, crc)
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
               json_extract(value, '$[3]'), json_extract(value, '$[4]')
        FROM json_each(NEW.streams) WHERE true
    ON CONFLICT (stream) DO UPDATE SET
        version = excluded.version, position = excluded.position, hash = excluded.hash, crc = excluded.crc;
    INSERT INTO request (request, position, crc)
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(NEW.requests);
    INSERT OR IGNORE INTO revision (revision, lineage, crc)
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(NEW.revisions);
    INSERT OR IGNORE INTO erasure (position, certificate)
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(NEW.erasures);
END

-- name: grow
INSERT INTO growth VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: lone_view
-- The same for one entry that neither fills up a row of leaves nor says that a payload was destroyed, without JSON.
CREATE TEMP VIEW IF NOT EXISTS lone AS SELECT
    0 AS old_size, 0 AS old_head, 0 AS old_crc, 0 AS size, 0 AS head, 0 AS crc,
    0 AS leaves, 0 AS place, 0 AS leaves_crc,
    0 AS stream, 0 AS version, 0 AS position, 0 AS hash, 0 AS stream_crc,
    0 AS request, 0 AS request_crc,
    0 AS revision, 0 AS revision_crc

-- name: lone_trigger
CREATE TEMP TRIGGER IF NOT EXISTS add_lone INSTEAD OF INSERT ON lone BEGIN
    SELECT RAISE(ABORT, 'the anchor ends elsewhere') WHERE NOT EXISTS (
        SELECT 1 FROM meta WHERE size = NEW.old_size AND head = NEW.old_head AND crc = NEW.old_crc);
    UPDATE meta SET size = NEW.size, head = NEW.head, crc = NEW.crc;
    INSERT OR REPLACE INTO leaf (place, hashes, crc) VALUES (NEW.place, NEW.leaves, NEW.leaves_crc);
    INSERT INTO stream (stream, version, position, hash, crc)
        VALUES (NEW.stream, NEW.version, NEW.position, NEW.hash, NEW.stream_crc)
    ON CONFLICT (stream) DO UPDATE SET
        version = excluded.version, position = excluded.position, hash = excluded.hash, crc = excluded.crc;
    INSERT INTO request (request, position, crc)
        SELECT NEW.request, NEW.position, NEW.request_crc WHERE NEW.request IS NOT NULL;
    INSERT OR IGNORE INTO revision (revision, lineage, crc)
        SELECT NEW.revision, NEW.stream, NEW.revision_crc WHERE NEW.revision IS NOT NULL;
END

-- name: add_lone
INSERT INTO lone VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: fold
-- Copies from the log into the file what no reader of an older state needs; who writes meanwhile does not wait for it.
PRAGMA wal_checkpoint(PASSIVE)

-- name: read_all_subtrees
SELECT level, place, root, crc FROM subtree

-- name: read_all_streams
SELECT stream, version, position, hash, crc FROM stream

-- name: read_all_requests
SELECT request, position, crc FROM request

-- name: read_all_revisions
SELECT revision, lineage, crc FROM revision

-- name: read_all_notes
SELECT size, note, crc FROM note
