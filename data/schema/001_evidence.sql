-- Uploaded files and the load points read from them. One row a load point; seconds, tokens, shares 0-1, per second.
-- Portable subset: text ids made by the program, rows only added, no key or index is relied on.
CREATE TABLE files (
    file_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    format VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    uploaded_at VARCHAR NOT NULL,
    runs BIGINT NOT NULL,
    problems VARCHAR NOT NULL,
    notes VARCHAR NOT NULL
);

CREATE TABLE runs (
    run_id VARCHAR NOT NULL,
    file_id VARCHAR NOT NULL,
    run_index BIGINT NOT NULL,
    uploaded_at VARCHAR NOT NULL,
    provenance VARCHAR NOT NULL,
    warnings VARCHAR NOT NULL,
    tool VARCHAR NOT NULL,
    model VARCHAR,
    backend VARCHAR,
    gpu VARCHAR,
    gpu_count BIGINT,
    date VARCHAR,
    request_rate_per_s DOUBLE,
    request_rate_is_infinite BOOLEAN NOT NULL,
    max_concurrency BIGINT,
    burstiness DOUBLE,
    num_prompts BIGINT,
    completed BIGINT,
    failed BIGINT,
    success_share DOUBLE,
    duration_s DOUBLE,
    input_tokens_total BIGINT,
    output_tokens_total BIGINT,
    input_tokens_mean DOUBLE,
    output_tokens_mean DOUBLE,
    request_throughput_per_s DOUBLE,
    input_token_throughput_per_s DOUBLE,
    output_token_throughput_per_s DOUBLE,
    total_token_throughput_per_s DOUBLE,
    ambiguous_throughput_per_s DOUBLE,
    ttft_mean_s DOUBLE,
    ttft_p50_s DOUBLE,
    ttft_p90_s DOUBLE,
    ttft_p95_s DOUBLE,
    ttft_p99_s DOUBLE,
    ttft_std_s DOUBLE,
    tpot_mean_s DOUBLE,
    tpot_p50_s DOUBLE,
    tpot_p90_s DOUBLE,
    tpot_p95_s DOUBLE,
    tpot_p99_s DOUBLE,
    tpot_std_s DOUBLE,
    itl_mean_s DOUBLE,
    itl_p50_s DOUBLE,
    itl_p90_s DOUBLE,
    itl_p95_s DOUBLE,
    itl_p99_s DOUBLE,
    itl_std_s DOUBLE,
    e2e_mean_s DOUBLE,
    e2e_p50_s DOUBLE,
    e2e_p90_s DOUBLE,
    e2e_p95_s DOUBLE,
    e2e_p99_s DOUBLE,
    e2e_std_s DOUBLE,
    prefix_hit_share DOUBLE,
    kv_usage_share DOUBLE,
    peak_concurrency BIGINT,
    extra VARCHAR NOT NULL,
    line BIGINT,
    flags VARCHAR NOT NULL
);

CREATE TABLE snapshots (
    snapshot_id VARCHAR NOT NULL,
    file_id VARCHAR NOT NULL,
    uploaded_at VARCHAR NOT NULL,
    snapshot VARCHAR NOT NULL
);

CREATE TABLE probes (
    probe_id VARCHAR NOT NULL,
    measured_at VARCHAR NOT NULL,
    stored_at VARCHAR NOT NULL,
    probe VARCHAR NOT NULL
);
