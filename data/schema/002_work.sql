-- What the team makes of the evidence: scenarios, reviews, own catalogue rows. A change is a new version, never an edit.
CREATE TABLE scenarios (
    scenario_id VARCHAR NOT NULL,
    version BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    scenario VARCHAR NOT NULL,
    saved_at VARCHAR NOT NULL
);

CREATE TABLE reviews (
    review_id VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    saved_at VARCHAR NOT NULL,
    snapshot VARCHAR NOT NULL,
    snapshot_hash VARCHAR NOT NULL,
    model_version VARCHAR NOT NULL
);

CREATE TABLE own_models (
    entry_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    entry VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    added_at VARCHAR NOT NULL
);

CREATE TABLE own_gpus (
    entry_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    entry VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    added_at VARCHAR NOT NULL
);

-- Every deletion and its undoing stays on record; a row is hidden when its latest action is 'delete'.
CREATE TABLE deletions (
    action_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    acted_at VARCHAR NOT NULL
);
