-- What the benchmark itself asks a server. The peers' statements are in the modules that speak for them.

-- name: settings
SELECT name, setting FROM pg_settings WHERE name = ANY(%(names)s)

-- name: wal_syncs
SELECT coalesce(sum(fsyncs), 0) FROM pg_stat_io WHERE object = 'wal' AND backend_type = 'client backend'

-- name: wal_syncs_before_18
-- Of the whole server: run nothing else beside it.
SELECT wal_sync FROM pg_stat_wal

-- name: rows_written
SELECT relname, n_tup_ins + n_tup_upd FROM pg_stat_user_tables

-- name: create_bare
CREATE TABLE bare (id bigserial PRIMARY KEY, body bytea NOT NULL)

-- name: insert_bare
INSERT INTO bare (body) VALUES (%(body)s)

-- name: write_message
SELECT write_message(
    %(id)s::varchar, %(stream)s::varchar, 'Corrected'::varchar, %(data)s::jsonb, '{}'::jsonb, %(version)s::bigint)

-- name: write_messages
-- A batch: message-db has no call for one, so its own function is called row by row in one statement.
SELECT write_message(
    u.id::varchar, %(stream)s::varchar, 'Corrected'::varchar, u.data::jsonb, '{}'::jsonb, u.place - 2)
FROM unnest(%(ids)s::text[], %(bodies)s::text[]) WITH ORDINALITY AS u(id, data, place) ORDER BY u.place

-- name: read_category
SELECT stream_name, global_position, data
FROM get_category_messages('episode'::varchar, %(position)s::bigint, %(limit)s::bigint)

-- name: create_counts
CREATE TABLE counts (stream text PRIMARY KEY, events bigint NOT NULL)

-- name: create_progress
CREATE TABLE progress (one boolean PRIMARY KEY DEFAULT true, position bigint NOT NULL)

-- name: drop_counts
DROP TABLE IF EXISTS counts, progress

-- name: upsert_counts
INSERT INTO counts SELECT * FROM unnest(%(streams)s::text[], %(events)s::bigint[])
ON CONFLICT (stream) DO UPDATE SET events = counts.events + excluded.events

-- name: upsert_progress
INSERT INTO progress (position) VALUES (%(position)s) ON CONFLICT (one) DO UPDATE SET position = excluded.position

-- name: autovacuum_off_event
-- For the look-ups only: a ledger that is filled before anything has gathered statistics.
ALTER TABLE corrigenda.event SET (autovacuum_enabled = off)

-- name: autovacuum_off_payload
ALTER TABLE corrigenda.payload SET (autovacuum_enabled = off)

-- name: sample_events
SELECT stream, request FROM corrigenda.event WHERE seq = ANY(%(seqs)s)

-- name: create_texts
-- For the quality of a search by words alone.
CREATE TABLE texts (body text PRIMARY KEY)

-- name: insert_texts
INSERT INTO texts (body) SELECT unnest(%(texts)s::text[])

-- name: drop_texts
DROP TABLE texts

-- name: rank_texts
SELECT body, ts_rank(to_tsvector('english', body), query, %(flag)s::integer) AS score
FROM texts, websearch_to_tsquery('english', %(any)s::text) query
WHERE to_tsvector('english', body) @@ query


-- name: copy_events
COPY corrigenda.event TO STDOUT (FORMAT binary)

-- name: copy_payloads
COPY corrigenda.payload TO STDOUT (FORMAT binary)
