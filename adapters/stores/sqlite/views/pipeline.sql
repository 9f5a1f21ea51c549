-- The tables of the document "pipeline": workstreams, steps, and the moves of workstreams.
CREATE TEMP VIEW workstreams AS
SELECT id AS ws_id, {workstream_state} AS state, datetime(created_at / 1000000, 'unixepoch') AS created_at,
    datetime(updated_at / 1000000, 'unixepoch') AS updated_at,
    coalesce(json_extract(snapshot, '$.retry_count'), 0) AS retry_count
FROM main.workstreams;

CREATE TEMP VIEW steps AS
SELECT json_extract(snapshot, '$.key') AS step_id, workstream_id AS ws_id, {task_state} AS state, retry_count,
    datetime(created_at / 1000000, 'unixepoch') AS created_at,
    datetime(updated_at / 1000000, 'unixepoch') AS updated_at
FROM main.tasks;

CREATE TEMP VIEW state_transitions AS
SELECT transition_id, ws_id, from_state, to_state, transitioned_at, metadata FROM (
    SELECT sequence AS transition_id, record_id AS ws_id, {workstream_from} AS from_state, {workstream_to} AS to_state,
        datetime(at / 1000000, 'unixepoch') AS transitioned_at,
        json_patch(coalesce(metadata, '{{}}'), json_object('reason', coalesce(reason, "trigger"))) AS metadata
    FROM (SELECT *, lag(from_state) OVER (PARTITION BY record_id ORDER BY sequence) AS before
        FROM main.state_transitions WHERE entity = 'workstream')
    WHERE from_state <> '*')
WHERE from_state <> to_state;
