-- Beside the outbox, whose rows are only ever added: what of it could not be embedded, which replicas there are and how
-- far they are, and who may carry it into a target that processes share.

-- An effect that one embedder failed on. Failing, it is tried again; parked, it waits for a person; skipped, a person
-- has said that it stays out; settled, it is in after all, or not wanted any more: replicas that had passed it take it up.
CREATE TABLE corrigenda.outbox_failure (
    ledger    text        NOT NULL,
    seq       bigint      NOT NULL,
    revision  text        NOT NULL,
    signature text        NOT NULL,
    state     text        NOT NULL CHECK (state IN ('failing', 'parked', 'skipped', 'settled')),
    attempts  integer     NOT NULL,
    code      text        NOT NULL,
    at        timestamptz NOT NULL,
    PRIMARY KEY (ledger, seq, revision, signature)
);

-- The durable generation of one home: which incarnation of the ledger it is of, and up to where it holds the outbox.
CREATE TABLE corrigenda.replica (
    ledger      text        NOT NULL,
    id          text        NOT NULL,
    incarnation integer     NOT NULL,
    cursor      bigint      NOT NULL,
    seen_at     timestamptz NOT NULL,
    PRIMARY KEY (ledger, id)
);

-- Who carries the outbox into a shared target, until when, and how far that has come. The fence grows with each holder.
CREATE TABLE corrigenda.lease (
    ledger     text        NOT NULL,
    target     text        NOT NULL,
    owner      text        NOT NULL,
    fence      bigint      NOT NULL,
    cursor     bigint      NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (ledger, target)
);

-- ---------------------------------------------------------------- walls, as in step 0002

GRANT SELECT, INSERT, UPDATE ON corrigenda.outbox_failure, corrigenda.replica, corrigenda.lease TO corrigenda_writer;

-- What is swept is marked first, so that whoever had not got that far makes the rows again from the events.
GRANT SELECT, INSERT, UPDATE ON corrigenda.carried TO corrigenda_maintainer;

GRANT SELECT, DELETE ON corrigenda.replica TO corrigenda_maintainer;

DO $$
DECLARE
    named text;
BEGIN
    FOREACH named IN ARRAY ARRAY['outbox_failure', 'replica', 'lease'] LOOP
        EXECUTE format('ALTER TABLE corrigenda.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', named);
        EXECUTE format(
            'CREATE POLICY of_ledger ON corrigenda.%I '
            'USING (ledger = nullif(current_setting(''corrigenda.ledger'', true), ''''))', named);
    END LOOP;
END
$$
