-- Who removed or brought back a row, and why; who added one. Rows of older versions name nobody. Rows only added.
ALTER TABLE deletions ADD COLUMN actor VARCHAR;
ALTER TABLE deletions ADD COLUMN reason VARCHAR;

CREATE TABLE additions (
    action_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    actor VARCHAR NOT NULL,
    acted_at VARCHAR NOT NULL
);
