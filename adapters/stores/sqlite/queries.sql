-- Every statement of the store, by name.

-- name: put_workstream
-- The last snapshot of a workstream.
INSERT OR REPLACE INTO workstreams (id, state, previous_state, generation, parent_id, created_at, updated_at, snapshot, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: put_task
-- The last snapshot of a task.
INSERT INTO tasks (id, workstream_id, state, previous_state, generation, retry_count, created_at, updated_at, snapshot, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, previous_state = excluded.previous_state, generation = excluded.generation,
    retry_count = excluded.retry_count, created_at = excluded.created_at, updated_at = excluded.updated_at, snapshot = excluded.snapshot,
    checksum = excluded.checksum

-- name: put_worker
-- The last snapshot of a worker.
INSERT OR REPLACE INTO workers (id, state, previous_state, generation, has_run, created_at, updated_at, snapshot, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: put_breaker
-- The last snapshot of a breaker.
INSERT OR REPLACE INTO breakers (id, state, previous_state, generation, created_at, updated_at, snapshot, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_transition
-- One line of the audit trail. The same batch may be tried twice.
INSERT OR REPLACE INTO state_transitions (sequence, entity, record_id, generation, from_state, to_state, "trigger", at, severity,
    workstream_id, reason, who, worker_id, attempt, correlation_id, metadata, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_attempt
-- How an attempt ended. The same attempt can end once, and once more as late.
INSERT OR REPLACE INTO attempts (task_id, generation, attempt, workstream_id, started_at, ended_at, success, outcome,
    worker_id, correlation_id, exit_code, error, output_bytes, cause, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_check
-- How a check ended.
INSERT OR REPLACE INTO checks (task_id, generation, attempt, position, name, passed, started_at, ended_at, detail, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: checks
-- The results of a task's checks, oldest first.
SELECT * FROM checks WHERE task_id = ? ORDER BY generation, attempt, position

-- name: page_of_checks
-- Every result, in pages: after (task, generation, attempt, position).
SELECT *, CAST(task_id AS BLOB), generation, attempt, position FROM checks
WHERE (task_id, generation, attempt, position) > (CAST(? AS TEXT), ?, ?, ?)
ORDER BY task_id, generation, attempt, position LIMIT ?

-- name: put_answer
-- What a request was answered.
INSERT OR REPLACE INTO idempotency_keys (request_id, operation, body_digest, answer, created_at, expires_at, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: select_workstream
-- The start of every query for a workstream; its conditions follow.
SELECT id, state, generation, snapshot, checksum FROM workstreams

-- name: select_task
-- The start of every query for a task; its conditions follow.
SELECT id, state, generation, snapshot, checksum FROM tasks

-- name: select_worker
-- The start of every query for a worker; its conditions follow.
SELECT id, state, generation, snapshot, checksum FROM workers

-- name: select_breaker
-- The start of every query for a breaker; its conditions follow.
SELECT id, state, generation, snapshot, checksum FROM breakers

-- name: select_attempts
-- The start of every query for attempts; its conditions follow.
SELECT * FROM attempts

-- name: last_sequence
-- The newest line of the trail.
SELECT max((SELECT coalesce(max(sequence), 0) FROM state_transitions),
    coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'last_sequence'), 0))

-- name: keep_last_sequence
-- Before moves are removed: a sequence is never given twice.
INSERT OR REPLACE INTO meta (name, value)
SELECT 'last_sequence', CAST(max(coalesce((SELECT max(sequence) FROM state_transitions), 0),
    coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'last_sequence'), 0)) AS TEXT)

-- name: history
-- One record's moves in order.
SELECT * FROM state_transitions WHERE record_id = ? AND entity = ? AND sequence > ? ORDER BY sequence LIMIT ?

-- name: last_move
-- What led to how a record is now.
SELECT * FROM state_transitions WHERE record_id = ? AND entity = ? ORDER BY sequence DESC LIMIT 1

-- name: trail
-- Everybody's moves in order.
SELECT * FROM state_transitions WHERE sequence > ? ORDER BY sequence LIMIT ?

-- name: answer_to
-- A stored answer whose time is not over.
SELECT * FROM idempotency_keys WHERE request_id = ? AND expires_at > ?

-- name: forget_answers
-- Answers whose time is over.
DELETE FROM idempotency_keys WHERE expires_at <= ?

-- name: remove_moves_of_tasks
-- What an archived workstream leaves in the trail. The ids of its tasks are those between w/ and w0, which comes next.
DELETE FROM state_transitions WHERE record_id > ?1 || '/' AND record_id < ?1 || '0' AND entity = 'task'

-- name: remove_moves_of_workstream
DELETE FROM state_transitions WHERE record_id = ?1 AND entity = 'workstream'

-- name: remove_attempts
DELETE FROM attempts WHERE task_id > ?1 || '/' AND task_id < ?1 || '0'

-- name: remove_checks
DELETE FROM checks WHERE task_id = ?1 OR (task_id > ?1 || '/' AND task_id < ?1 || '0')

-- name: remove_tasks
DELETE FROM tasks WHERE id > ?1 || '/' AND id < ?1 || '0'

-- name: remove_workstream
DELETE FROM workstreams WHERE id = ?1

-- name: trail_by_record
-- Every record's moves, record by record, in pages: after (record, entity, sequence).
SELECT *, CAST(record_id AS BLOB), CAST(entity AS BLOB), sequence FROM state_transitions
WHERE (record_id, entity, sequence) > (CAST(? AS TEXT), CAST(? AS TEXT), ?)
ORDER BY record_id, entity, sequence LIMIT ?

-- name: page_of_attempts
-- Every attempt, in pages: after (task, generation, attempt, outcome).
SELECT *, CAST(task_id AS BLOB), generation, attempt, CAST(outcome AS BLOB) FROM attempts
WHERE (task_id, generation, attempt, outcome) > (CAST(? AS TEXT), ?, ?, CAST(? AS TEXT))
ORDER BY task_id, generation, attempt, outcome LIMIT ?

-- name: page_of_workstream
-- Whole rows in pages, with the key as it is on the disk: after an id.
SELECT *, CAST(id AS BLOB) FROM workstreams WHERE id > CAST(?1 AS TEXT) ORDER BY id LIMIT ?2

-- name: page_of_worker
-- Whole rows in pages, with the key as it is on the disk: after an id.
SELECT *, CAST(id AS BLOB) FROM workers WHERE id > CAST(?1 AS TEXT) ORDER BY id LIMIT ?2

-- name: page_of_breaker
-- Whole rows in pages, with the key as it is on the disk: after an id.
SELECT *, CAST(id AS BLOB) FROM breakers WHERE id > CAST(?1 AS TEXT) ORDER BY id LIMIT ?2

-- name: page_of_task
-- Whole rows in pages, with the key as it is on the disk: after an id.
SELECT *, CAST(id AS BLOB) FROM tasks WHERE id > CAST(?1 AS TEXT) ORDER BY id LIMIT ?2

-- name: put_meta
-- What is to be known about the file itself.
INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)

-- name: select_meta
SELECT name, value FROM meta

-- name: count_workstreams_by_state
SELECT state, count(*) FROM workstreams GROUP BY state ORDER BY state

-- name: count_tasks_by_state
SELECT state, count(*) FROM tasks GROUP BY state ORDER BY state

-- name: count_tasks_of_workstream
-- The ids of a workstream's tasks are those between the two.
SELECT state, count(*) FROM tasks WHERE id > ? AND id < ? GROUP BY state ORDER BY state

-- name: state_of_task
SELECT state FROM tasks WHERE id = ?

-- name: orphans
-- Tasks of workstreams that are not there.
SELECT id FROM tasks WHERE workstream_id NOT IN (SELECT id FROM workstreams) LIMIT 100

-- name: page_of_answers
-- Every stored answer, in pages: after a request.
SELECT *, CAST(request_id AS BLOB) FROM idempotency_keys WHERE request_id > CAST(? AS TEXT) ORDER BY request_id LIMIT ?

-- name: without_moves
-- Records that no move leads to.
SELECT 'task ' || id FROM tasks t WHERE NOT EXISTS (SELECT 1 FROM state_transitions WHERE record_id = t.id AND entity = 'task')
UNION ALL
SELECT 'workstream ' || id FROM workstreams t WHERE NOT EXISTS (SELECT 1 FROM state_transitions WHERE record_id = t.id AND entity = 'workstream')
LIMIT 100

-- name: schema
-- What a database is made of.
SELECT type || ' ' || name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'
