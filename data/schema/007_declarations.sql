-- What somebody declared about a load point that its file does not say, and who confirmed one that the checks refuse.
-- Rows are only added: the newest of a run counts, older ones stay as its history.
CREATE TABLE run_declarations (
    declaration_id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    declared_by VARCHAR NOT NULL,
    declared_at VARCHAR NOT NULL,
    gpu VARCHAR,
    gpu_count BIGINT,
    model VARCHAR,
    engine VARCHAR,
    engine_version VARCHAR,
    engine_flags VARCHAR,
    strategy VARCHAR,
    repetition VARCHAR,
    session_group VARCHAR,
    note VARCHAR
);

-- "codes" are those the person knew of; "stands" is false where a confirmation was taken back.
CREATE TABLE run_confirmations (
    confirmation_id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    codes VARCHAR NOT NULL,
    stands BOOLEAN NOT NULL,
    confirmed_by VARCHAR NOT NULL,
    confirmed_at VARCHAR NOT NULL,
    reason VARCHAR NOT NULL
);
