-- Read models for lists, histories over time and corrections, written inline and rebuilt beside the live generation;
-- and the bytes of evidence, which no event holds.

-- Null in rows that the first projector wrote; the next rebuild fills them.
ALTER TABLE corrigenda.revision
    ADD COLUMN kind       text,
    ADD COLUMN visibility text,
    ADD COLUMN agent      text,
    ADD COLUMN person     text,
    ADD COLUMN session    text,
    ADD COLUMN meta_seq   bigint;

CREATE INDEX revision_project ON corrigenda.revision (ledger, gen, project, content_seq);

-- What a revision's values were, from one position up to before another; the last interval has no end. It holds what
-- the facts of a move say and no more: the project is the revision's (a join), and so is the place of its metadata.
CREATE TABLE corrigenda.revision_state (
    ledger   text   NOT NULL,
    gen      bigint NOT NULL,
    revision text   NOT NULL,
    from_seq bigint NOT NULL,
    to_seq   bigint,
    lineage  text   NOT NULL,
    state    text   NOT NULL,
    trust    text   NOT NULL,
    floor    text   NOT NULL,
    PRIMARY KEY (ledger, gen, revision, from_seq)
);

-- What supersedes, contradicts or was held to replace what, and between which positions it was so.
CREATE TABLE corrigenda.edge (
    ledger   text   NOT NULL,
    gen      bigint NOT NULL,
    kind     text   NOT NULL,
    newer    text   NOT NULL,
    older    text   NOT NULL,
    from_seq bigint NOT NULL,
    to_seq   bigint,
    PRIMARY KEY (ledger, gen, kind, newer, older, from_seq)
);

CREATE INDEX edge_older ON corrigenda.edge (ledger, gen, older);

-- `op` stands in the row of an append's first event only; it is found by its beginning too, hence byte by byte.
CREATE TABLE corrigenda.log_entry (
    ledger text   NOT NULL,
    gen    bigint NOT NULL,
    seq    bigint NOT NULL,
    at     text   NOT NULL,
    type   text   NOT NULL,
    actor  text   NOT NULL,
    op     text   COLLATE "C",
    PRIMARY KEY (ledger, gen, seq)
);

CREATE INDEX log_entry_at ON corrigenda.log_entry (ledger, gen, at, seq);
CREATE INDEX log_entry_op ON corrigenda.log_entry (ledger, gen, op) WHERE op IS NOT NULL;

CREATE TABLE corrigenda.correction (
    ledger      text   NOT NULL,
    gen         bigint NOT NULL,
    correction  text   NOT NULL,
    project     text   NOT NULL,
    agent       text,
    person      text,
    session     text,
    visibility  text   NOT NULL,
    origin      text   NOT NULL,
    revision    text,
    state       text   NOT NULL,
    content_seq bigint NOT NULL,
    PRIMARY KEY (ledger, gen, correction)
);

CREATE INDEX correction_project ON corrigenda.correction (ledger, gen, project, content_seq);

-- A generation that is being built: up to which position, by which projector.
CREATE TABLE corrigenda.rebuild (
    ledger    text    NOT NULL,
    gen       bigint  NOT NULL,
    seq       bigint  NOT NULL,
    projector integer NOT NULL,
    PRIMARY KEY (ledger, gen)
);

-- What is looked into once, by whichever process comes first: up to which position of the outbox that was done.
CREATE TABLE corrigenda.carried (
    ledger text   NOT NULL,
    task   text   NOT NULL,
    seq    bigint NOT NULL,
    PRIMARY KEY (ledger, task)
);

-- The learnings that a correction may contradict, wherever they are visible.
CREATE INDEX revision_learning ON corrigenda.revision (ledger, gen, content_seq)
    WHERE state = 'active' AND trust = 'unverified' AND (kind IS NULL OR kind = 'learning');

-- Found by a keyed digest, checked by its hash at each read; never changed.
CREATE TABLE corrigenda.evidence_object (
    ledger   text  NOT NULL,
    evidence text  NOT NULL,
    body     bytea NOT NULL,
    PRIMARY KEY (ledger, evidence)
);

-- ---------------------------------------------------------------- walls, as in step 0002

GRANT SELECT, INSERT, UPDATE
    ON corrigenda.revision_state, corrigenda.edge, corrigenda.log_entry, corrigenda.correction, corrigenda.rebuild
    TO corrigenda_writer;

GRANT SELECT, INSERT, UPDATE ON corrigenda.carried TO corrigenda_writer;

GRANT SELECT, INSERT ON corrigenda.evidence_object TO corrigenda_writer;

GRANT SELECT, DELETE
    ON corrigenda.revision_state, corrigenda.edge, corrigenda.log_entry, corrigenda.correction, corrigenda.rebuild
    TO corrigenda_maintainer;

GRANT SELECT, DELETE ON corrigenda.evidence_object TO corrigenda_eraser;

CREATE TRIGGER refuse_change BEFORE UPDATE OR TRUNCATE ON corrigenda.evidence_object
    FOR EACH STATEMENT EXECUTE FUNCTION corrigenda.refuse_change();

CREATE TRIGGER refuse_delete BEFORE DELETE ON corrigenda.evidence_object
    FOR EACH STATEMENT EXECUTE FUNCTION corrigenda.refuse_change('corrigenda_eraser');

DO $$
DECLARE
    named text;
BEGIN
    FOREACH named IN ARRAY ARRAY['revision_state', 'edge', 'log_entry', 'correction', 'rebuild', 'carried', 'evidence_object']
    LOOP
        EXECUTE format('ALTER TABLE corrigenda.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', named);
        EXECUTE format(
            'CREATE POLICY of_ledger ON corrigenda.%I '
            'USING (ledger = nullif(current_setting(''corrigenda.ledger'', true), ''''))', named);
    END LOOP;
    FOREACH named IN ARRAY ARRAY['revision_state', 'edge', 'log_entry', 'correction', 'rebuild'] LOOP
        EXECUTE format(
            'CREATE POLICY retired_only ON corrigenda.%I AS RESTRICTIVE FOR DELETE TO corrigenda_maintainer '
            'USING (gen < (SELECT h.gen FROM corrigenda.head h WHERE h.ledger = %I.ledger))', named, named);
    END LOOP;
END
$$
