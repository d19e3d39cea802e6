-- Who does what should be done once; the term grows with every change of hands.
CREATE TABLE leader (
    role         TEXT PRIMARY KEY,
    holder       BLOB NOT NULL,
    term         INTEGER NOT NULL,
    lease_until  REAL NOT NULL
) WITHOUT ROWID;
