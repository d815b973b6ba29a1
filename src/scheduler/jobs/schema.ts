/** The tables of a new queue. Files of earlier versions load for ever: test/fixtures/jobs has one of each. */
export const SCHEMA = `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE specs (id INTEGER PRIMARY KEY, spec TEXT NOT NULL);
  CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    spec INTEGER NOT NULL REFERENCES specs,
    environment TEXT,
    user TEXT NOT NULL,
    submitted_ms INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    after TEXT,
    ended_ms INTEGER,
    ran_ms INTEGER
  );
  CREATE INDEX jobs_by_kind ON jobs (kind, priority DESC, id);
  CREATE INDEX jobs_by_after ON jobs (kind) WHERE after IS NOT NULL;
  CREATE INDEX jobs_by_end ON jobs (ended_ms) WHERE ended_ms IS NOT NULL;
  CREATE TABLE lease (one INTEGER PRIMARY KEY CHECK (one = 1), token INTEGER NOT NULL, owner TEXT NOT NULL, until_ms INTEGER NOT NULL);
  INSERT INTO lease VALUES (1, 0, '', 0);
`

/**
 * What came later, and is of no consequence to a version that does not know it. `tally`: how many jobs there are of each kind,
 * kept by the file itself, so that a million that have ended are not counted again and again. Of results `attempt`: what was read is of it;
 * `is_final`: after it had ended.
 */
export const LATER_PARTS = `
  CREATE INDEX IF NOT EXISTS jobs_by_spec ON jobs (spec, kind);
  CREATE INDEX IF NOT EXISTS jobs_by_run ON jobs (ended_ms) WHERE ran_ms IS NOT NULL;
  CREATE INDEX IF NOT EXISTS jobs_in_line ON jobs (alike, user, priority, id)
    WHERE kind = 'queued' AND after IS NULL AND state = '{"kind":"queued"}';
  CREATE INDEX IF NOT EXISTS jobs_bound ON jobs (alike, user, priority)
    WHERE kind = 'queued' AND (after IS NOT NULL OR state <> '{"kind":"queued"}');
  CREATE INDEX IF NOT EXISTS jobs_unnamed ON jobs (spec) WHERE kind = 'queued' AND alike IS NULL;
  CREATE TABLE IF NOT EXISTS results (
    job INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, is_final INTEGER NOT NULL, metrics TEXT NOT NULL
  );
  CREATE TABLE IF NOT EXISTS tally (kind TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
  INSERT OR REPLACE INTO tally SELECT kind, count(*) FROM jobs GROUP BY kind;
  CREATE TRIGGER IF NOT EXISTS tally_new AFTER INSERT ON jobs BEGIN
    INSERT INTO tally VALUES (new.kind, 1) ON CONFLICT (kind) DO UPDATE SET count = count + 1;
  END;
  CREATE TRIGGER IF NOT EXISTS tally_change AFTER UPDATE OF kind ON jobs WHEN old.kind <> new.kind BEGIN
    UPDATE tally SET count = count - 1 WHERE kind = old.kind;
    INSERT INTO tally VALUES (new.kind, 1) ON CONFLICT (kind) DO UPDATE SET count = count + 1;
  END;
  CREATE TRIGGER IF NOT EXISTS tally_gone AFTER DELETE ON jobs BEGIN
    UPDATE tally SET count = count - 1 WHERE kind = old.kind;
  END;
`
export const HAS_LATER_PARTS = `SELECT 1 WHERE 10 = (SELECT count(*) FROM sqlite_master
  WHERE name IN ('jobs_by_spec', 'jobs_by_run', 'jobs_in_line', 'jobs_bound', 'jobs_unnamed', 'results',
    'tally', 'tally_new', 'tally_change', 'tally_gone'))`

/** Needed by later parts. It is the number of alike.ts; null where a version that does not know it submitted the job. */
export const ADD_ALIKE = 'ALTER TABLE jobs ADD COLUMN alike INTEGER'
export const HAS_ALIKE = "SELECT 1 FROM pragma_table_info('jobs') WHERE name = 'alike'"
