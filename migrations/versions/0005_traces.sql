-- What one retrieval saw, chose and left out. Added once and never changed, so that an event may name a trace's digest;
-- removed when its project does not keep it any longer, or by an erasure. Looked up by keyed digests of names: the body
-- has what people read. `revisions` are those that a dispatch handed to a run.
CREATE TABLE corrigenda.trace (
    ledger    text  NOT NULL,
    trace     text  COLLATE "C" NOT NULL,
    kind      text  NOT NULL CHECK (kind IN ('search', 'dispatch')),
    project   text  NOT NULL,
    session   text,
    turn      bigint,
    revisions text[] NOT NULL,
    digest    bytea NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (ledger, trace)
);

CREATE INDEX trace_project ON corrigenda.trace (ledger, project, trace);

CREATE INDEX trace_session ON corrigenda.trace (ledger, session, trace) WHERE session IS NOT NULL;

CREATE INDEX trace_dispatched ON corrigenda.trace (ledger, trace) WHERE kind = 'dispatch';

-- ---------------------------------------------------------------- walls, as in step 0002

GRANT SELECT, INSERT ON corrigenda.trace TO corrigenda_writer;

GRANT SELECT, DELETE ON corrigenda.trace TO corrigenda_maintainer, corrigenda_eraser;

CREATE TRIGGER refuse_change BEFORE UPDATE OR TRUNCATE ON corrigenda.trace
    FOR EACH STATEMENT EXECUTE FUNCTION corrigenda.refuse_change();

ALTER TABLE corrigenda.trace ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE POLICY of_ledger ON corrigenda.trace
    USING (ledger = nullif(current_setting('corrigenda.ledger', true), ''))
