-- The truth: events and their payloads, one chain per ledger, one ledger per tenant.
CREATE TABLE corrigenda.tenant (
    name   text PRIMARY KEY,
    ledger text NOT NULL UNIQUE
);

CREATE TABLE corrigenda.head (
    ledger      text   PRIMARY KEY,
    seq         bigint NOT NULL CHECK (seq >= 0),
    hash        bytea  NOT NULL,
    incarnation integer NOT NULL,
    gen         bigint NOT NULL,
    projector   integer NOT NULL
);

CREATE TABLE corrigenda.event (
    ledger     text   NOT NULL,
    seq        bigint NOT NULL CHECK (seq >= 0),
    stream     text   NOT NULL,
    stream_seq bigint NOT NULL CHECK (stream_seq >= 0),
    envelope   bytea  NOT NULL,
    hash       bytea  NOT NULL,
    seal       bytea  NOT NULL,
    request    bytea,
    PRIMARY KEY (ledger, seq),
    CONSTRAINT event_stream UNIQUE (ledger, stream, stream_seq)
);

CREATE UNIQUE INDEX event_request ON corrigenda.event (ledger, request) WHERE request IS NOT NULL;

CREATE TABLE corrigenda.payload (
    ledger text   NOT NULL,
    seq    bigint NOT NULL,
    salt   bytea  NOT NULL,
    body   bytea  NOT NULL,
    PRIMARY KEY (ledger, seq)
);

-- One row per effect on a verified index, written with the event that causes it, never changed.
CREATE TABLE corrigenda.outbox (
    ledger   text   NOT NULL,
    seq      bigint NOT NULL,
    revision text   NOT NULL,
    effect   text   NOT NULL CHECK (effect IN ('put', 'remove')),
    lineage  text   NOT NULL,
    PRIMARY KEY (ledger, seq, revision)
);

-- The vectors that an index was built from. The first to store one wins; the seal shows an edited one.
CREATE TABLE corrigenda.embedding (
    ledger    text  NOT NULL,
    content   bytea NOT NULL,
    signature text  NOT NULL,
    vector    bytea NOT NULL,
    seal      bytea NOT NULL,
    PRIMARY KEY (ledger, content, signature)
);

-- Read models. Nothing here is authority: what an answer says comes from verified events.
CREATE TABLE corrigenda.revision (
    ledger      text    NOT NULL,
    gen         bigint  NOT NULL,
    revision    text    NOT NULL,
    lineage     text    NOT NULL,
    project     text    NOT NULL,
    version     integer NOT NULL,
    state       text    NOT NULL,
    trust       text    NOT NULL,
    floor       text    NOT NULL,
    content_seq bigint  NOT NULL,
    PRIMARY KEY (ledger, gen, revision)
);

-- At most one revision of a lineage is active and not revoked.
CREATE UNIQUE INDEX revision_head ON corrigenda.revision (ledger, gen, lineage)
    WHERE state = 'active' AND trust <> 'revoked';

CREATE INDEX revision_lineage ON corrigenda.revision (ledger, gen, lineage, version);

CREATE TABLE corrigenda.directory (
    ledger text   NOT NULL,
    gen    bigint NOT NULL,
    id     text   NOT NULL,
    seq    bigint NOT NULL,
    PRIMARY KEY (ledger, gen, id)
);
