-- Engines watched over time. A line is a scrape (the parsed snapshot as JSON, never the text), a gap with its reason,
-- or what somebody did. Rows only added; lines older than the operator's keep_days are removed for good.
CREATE TABLE recordings (
    recording_id VARCHAR NOT NULL,
    engine VARCHAR NOT NULL,
    interval_s DOUBLE NOT NULL,
    started_at_s DOUBLE NOT NULL,
    note VARCHAR NOT NULL,
    made_up BOOLEAN NOT NULL
);

CREATE TABLE recorded_scrapes (
    recording_id VARCHAR NOT NULL,
    scrape_id VARCHAR NOT NULL,
    at_s DOUBLE NOT NULL,
    kind VARCHAR NOT NULL,
    content VARCHAR NOT NULL
);
