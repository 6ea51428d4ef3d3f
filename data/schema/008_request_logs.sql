-- Request logs and traces: one row a log, and its requests in the order of the file. Absent = not known.
CREATE TABLE request_logs (
    log_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    format VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    first_at VARCHAR,
    duration_s DOUBLE,
    block_size_tokens BIGINT,
    problem_rows BIGINT NOT NULL,
    problems VARCHAR NOT NULL,
    notes VARCHAR NOT NULL,
    declared VARCHAR NOT NULL,
    stored_at VARCHAR NOT NULL
);

CREATE TABLE log_requests (
    log_id VARCHAR NOT NULL,
    request BIGINT NOT NULL,
    arrival_s DOUBLE NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    session_id VARCHAR,
    turn BIGINT,
    tenant VARCHAR,
    model VARCHAR,
    business_line VARCHAR,
    status VARCHAR,
    cancelled BOOLEAN,
    retries BIGINT,
    streaming BOOLEAN,
    ttft_s DOUBLE,
    e2e_s DOUBLE,
    itl_s DOUBLE,
    cached_tokens BIGINT,
    system_prompt_id VARCHAR,
    block_hashes BIGINT[]
);
