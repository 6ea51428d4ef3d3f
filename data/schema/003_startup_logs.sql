-- Start-up logs of engines as they were read: figures and the words they came from, never the log itself.
-- "measured" is the start as a case carries it. Portable subset, rows only added.
CREATE TABLE startup_logs (
    log_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    stored_at VARCHAR NOT NULL,
    engine VARCHAR NOT NULL,
    engine_version VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    read VARCHAR NOT NULL,
    measured VARCHAR NOT NULL
);
