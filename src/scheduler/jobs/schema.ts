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
